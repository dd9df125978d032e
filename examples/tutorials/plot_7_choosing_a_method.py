"""
Choosing a method
=================

``gs.infer`` chooses a method and says why; ``gs.recommend`` measures the methods that apply; ``method=`` takes your
own choice.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

# %%
# Let ``infer`` choose
# --------------------

for name in ("asia", "alarm"):
    answer = gs.infer(gs.example(name))
    print(name, "->", answer.method, "|", answer.line())

# %%
# Measure
# -------
#
# ``recommend`` runs every method that applies for a moment, and ranks them by effective draws per second of the
# variables you ask for.

lattice = gs.ising_grid((16, 16), coupling=0.43, field=0.001)
advice = gs.recommend(lattice, seconds=2, rng=1)
print(advice)

# %%
# Compare by error
# ----------------
#
# On a lattice that can be solved exactly, the errors of the methods are known. The blocks of this small lattice hold
# all of its sites, so that their probabilities are exact, too.

model = gs.ising_grid((10, 10), coupling=0.42, field=0.01)
exact = gs.solve_exact(model)
kernels = {"Gibbs": gs.Gibbs(), "blocks": gs.BlockGibbs(), "clusters": gs.SwendsenWang(), "tempered": gs.Tempered()}
figure, axes = plt.subplots(layout="constrained")
for number, kernel in enumerate(kernels.values()):
    run = gs.sample(model, kernel, sweeps=2000, rng=1, progress=False)
    bars = axes.barh(number, gs.compare(run, exact).max_abs, color="#0072B2")
    axes.bar_label(bars, fmt=" %.2g")
axes.set_yticks(range(len(kernels)), list(kernels))
axes.invert_yaxis()
axes.margins(x=0.12)
axes.set(xlabel="largest error of a marginal after 2,000 sweeps")

# %%
# Rules of thumb
# --------------
#
# ======================================================  ==========================================
# your model                                              try
# ======================================================  ==========================================
# small, or nearly a tree                                 ``gs.solve_exact``
# Bayesian network, improbable evidence                   ``gs.sample_weighted``, ``method="mini-bucket"``
# attractive lattice near its critical point              ``gs.SwendsenWang()``, ``gs.Wolff()``
# several modes, frustration                              ``gs.Tempered()``
# strong local dependence, zeros                          ``gs.BlockGibbs()``, ``gs.CutsetGibbs()``
# thousands of factors at a site                          ``gs.PoissonGibbs()``
# a few variables of interest, guarantees                 ``gs.dogs``, ``gs.certify``
# most probable state                                     ``gs.infer(model, task="MAP")``
# ======================================================  ==========================================
