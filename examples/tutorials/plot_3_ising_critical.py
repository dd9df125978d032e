"""
The Ising model at its critical point
=====================================

Magnetisation, specific heat and autocorrelation times of the two-dimensional Ising model, with errors, and why
clusters help at the critical temperature.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

# %%
# A lattice and its observables
# -----------------------------
#
# ``record=`` says what to keep besides marginals. The coupling is the inverse temperature in units of the
# interaction; the critical point is at ln(1 + sqrt(2)) / 2.

critical = np.log(1 + np.sqrt(2)) / 2
size, couplings = 24, np.array([0.30, 0.36, 0.40, 0.43, critical, 0.46, 0.50])
runs = []
for coupling in couplings:
    model = gs.ising_grid((size, size), coupling=coupling, periodic=True)
    runs.append(
        gs.sample(model, gs.SwendsenWang(), sweeps=1500, rng=1, record=["energy", "magnetisation"], progress=False)
    )

# %%
# Derived quantities get errors by the jackknife. The dashed line is the critical coupling of the infinite lattice.

heats, sizes = [], size**2
for run in runs:
    heat = run.observables["energy"].variance()
    heats.append((heat.value / sizes, heat.mcse / sizes))
magnetisations = [run.observables.derive(lambda m: m[1], "magnetisation") for run in runs]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
gs.plots.plot_observable(couplings, magnetisations, xlabel="coupling", ylabel="mean absolute magnetisation", ax=left)
gs.plots.plot_observable(couplings, heats, xlabel="coupling", ylabel="specific heat per site", ax=right)
for axes in (left, right):
    axes.axvline(critical, color="0.5", lw=0.8, ls="--")

# %%
# Why clusters?
# -------------
#
# At the critical point neighbouring spins hold each other, and single-site updates need many sweeps to change the
# magnetisation. The run with single-site updates has not converged, and says so.

model = gs.ising_grid((size, size), coupling=critical, periodic=True)
magnetisation = gs.Observable("m", lambda x: abs(x.mean()), series=True)
how = {"sweeps": 4000, "rng": 1, "record": ["marginals", magnetisation], "progress": False}
plain, clusters = gs.sample(model, gs.Gibbs(), **how), gs.sample(model, gs.SwendsenWang(), **how)
axes = gs.plots.plot_autocorrelation(plain.observables["m"], 100, label="Gibbs")
axes = gs.plots.plot_autocorrelation(clusters.observables["m"], 100, label="Swendsen-Wang", ax=axes)
axes.set_title("autocorrelation of the absolute magnetisation", loc="left", fontsize=9)
print(plain.diagnostics.line())
print(clusters.diagnostics.line())

# %%
# States of the lattice
# ---------------------
#
# Perfect draws show the domains that grow towards the critical point.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
for coupling, axes in zip((0.2, 0.35, 0.42), panels, strict=True):
    (state,) = gs.perfect_draws(gs.ising_grid((48, 48), coupling=coupling, periodic=True), 1, rng=1)
    axes.imshow(state.reshape(48, 48), cmap="PuOr_r", interpolation="nearest")
    axes.set_title(f"coupling {coupling}", fontsize=9)
    axes.set_axis_off()
