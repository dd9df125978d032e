"""
Couplings from data
===================

The couplings of an Ising model are learned from 4,000 draws by maximum likelihood, with gradients from Gibbs
sampling.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

rng = np.random.default_rng(1)
grid = gs.ising_grid((5, 5), coupling=0.0)
pairs = np.concatenate([group.scopes for group in grid.groups if group.arity == 2])
couplings = rng.normal(0, 0.4, len(pairs))
true = gs.ising((pairs[:, 0], pairs[:, 1], couplings))
draws = gs.solve_exact(true).draw(4000, rng)
fit = gs.learn.fit_ising(draws, true, updates=500, rng=1, progress=False)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
gs.plots.plot_fit(fit, ax=left)
order = {tuple(pair): value for pair, value in zip(pairs.tolist(), couplings, strict=True)}
gs.plots.plot_fit(fit, reference=[order[tuple(sorted(pair))] for pair in fit.pairs.tolist()], ax=right)
