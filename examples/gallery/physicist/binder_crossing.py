"""
Binder cumulants cross at the critical point
============================================

The Binder cumulant of the magnetisation is nearly independent of the size of the lattice at the critical temperature.
Clusters of Swendsen and Wang keep the draws independent there.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

couplings = np.linspace(0.40, 0.48, 7)
figure, axes = plt.subplots(layout="constrained")
for size in (8, 16, 32):
    found = []
    for coupling in couplings:
        model = gs.ising_grid((size, size), coupling=coupling, periodic=True)
        run = gs.sample(
            model, gs.SwendsenWang(), sweeps=600, rng=1, record=["marginals", "magnetisation"], progress=False
        )
        found.append(run.observables.derive(lambda m: 1 - m[3] / (3 * m[2] ** 2), "magnetisation"))
    gs.plots.plot_observable(
        couplings, found, label=f"{size} x {size}", xlabel="coupling", ylabel="Binder cumulant", ax=axes
    )
axes.axvline(np.log(1 + np.sqrt(2)) / 2, color="0.5", lw=0.8, ls="--")
