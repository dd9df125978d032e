"""
Binder cumulants cross at the critical point
============================================

The Binder cumulant of the magnetisation is nearly independent of the size of the lattice at the critical temperature.
Clusters of Swendsen and Wang keep the draws nearly independent there. The dashed line is the exact critical coupling
of the infinite lattice, ln(1 + sqrt(2)) / 2.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

couplings = np.linspace(0.40, 0.48, 7)
quick = gs.Criteria(dispersed_starts=False)
figure, axes = plt.subplots(layout="constrained")
for size in (8, 16, 32):
    found = []
    for coupling in couplings:
        model = gs.ising_grid((size, size), coupling=coupling, periodic=True)
        how = {"sweeps": 1200, "record": ["marginals", "magnetisation"], "criteria": quick}
        run = gs.sample(model, gs.SwendsenWang(), rng=1, progress=False, **how)
        found.append(run.observables.derive(lambda m: 1 - m[3] / (3 * m[2] ** 2), "magnetisation"))
    gs.plots.plot_observable(
        couplings, found, label=f"{size} x {size}", xlabel="coupling", ylabel="Binder cumulant", ax=axes
    )
axes.axvline(np.log(1 + np.sqrt(2)) / 2, color="0.5", lw=0.8, ls="--")
