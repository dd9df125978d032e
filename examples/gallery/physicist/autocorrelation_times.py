"""
Critical slowing down of three kernels
======================================

Autocorrelation times of the squared magnetisation at the critical point, against the size of the lattice: single-site
updates slow down, clusters hardly do.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

quick = gs.Criteria(dispersed_starts=False)
kernels = {"Gibbs": gs.Gibbs(), "Swendsen-Wang": gs.SwendsenWang(), "Wolff": gs.Wolff()}
sizes = [8, 12, 16, 24]
figure, axes = plt.subplots(layout="constrained")
for name, kernel in kernels.items():
    times = []
    for size in sizes:
        model = gs.ising_grid((size, size), coupling=0.4407, periodic=True)
        run = gs.sample(
            model, kernel, sweeps=4000, rng=1, record=["marginals", "magnetisation"], progress=False, criteria=quick
        )
        times.append(run.observables["magnetisation"].tau[2])
    axes.loglog(sizes, times, "o-", label=name)
axes.set(xlabel="sites along a side", ylabel="autocorrelation time in sweeps")
axes.set_xticks(sizes, [str(size) for size in sizes])
axes.minorticks_off()
axes.legend(frameon=False)
