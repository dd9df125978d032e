"""
Critical slowing down of three kernels
======================================

Autocorrelation times of the squared magnetisation at the critical point, against the size of the lattice: with
single-site updates they grow like the square of the size, with clusters hardly at all. A sweep of Wolff's algorithm
draws clusters until as many sites have been visited as the lattice has, on average.
"""

import warnings

import matplotlib.pyplot as plt

import gibbsite as gs

warnings.simplefilter("ignore", gs.ConvergenceWarning)  # no verdict on the marginals of single sites is needed
quick = gs.Criteria(dispersed_starts=False)
kernels = {"Gibbs": gs.Gibbs(), "Swendsen-Wang": gs.SwendsenWang(), "Wolff": gs.Wolff()}
sizes = [8, 12, 16, 24]
figure, axes = plt.subplots(layout="constrained")
for name, kernel in kernels.items():
    times = []
    for size in sizes:
        model = gs.ising_grid((size, size), coupling=0.4407, periodic=True)
        run = gs.sample(
            model, kernel, sweeps=8000, rng=1, record=["marginals", "magnetisation"], progress=False, criteria=quick
        )
        times.append(run.observables["magnetisation"].tau[2])
    axes.loglog(sizes, times, "o-", label=name)
axes.loglog(sizes, [0.2 * size**2 for size in sizes], "--", color="0.5", lw=1, label="square of the size")
axes.set(xlabel="sites along a side", ylabel="autocorrelation time in sweeps")
axes.set_xticks(sizes, [str(size) for size in sizes])
axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
axes.minorticks_off()
axes.legend(frameon=False)
