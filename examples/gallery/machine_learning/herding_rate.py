"""
Herded Gibbs sampling: errors that fall like 1/T
================================================

Random Gibbs sampling has errors that fall like one over the square root of the number of sweeps. Herded Gibbs
sampling is deterministic, and on complete graphs its errors fall like 1/T.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

rng = np.random.default_rng(2)
model = gs.ising(np.triu(rng.normal(0, 0.5, (5, 5)), 1), rng.normal(0, 0.3, 5))
exact = gs.solve_exact(model)
quick = gs.Criteria(dispersed_starts=False)
lengths = 2 ** np.arange(6, 16)
figure, axes = plt.subplots(layout="constrained")
for name, kernel in {"random": gs.Gibbs(), "herded": gs.HerdedGibbs()}.items():
    errors = []
    for sweeps in lengths:
        run = gs.sample(model, kernel, sweeps=int(sweeps), rng=1, progress=False, criteria=quick)
        errors.append(gs.compare(run, exact).max_abs)
    axes.loglog(lengths, errors, "o-", ms=3, label=name)
axes.set(xlabel="sweeps", ylabel="largest error of a marginal")
axes.legend(frameon=False)
