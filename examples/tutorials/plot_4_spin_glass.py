"""
A spin glass and its ground state
=================================

Couplings of both signs frustrate each other: there are many states of nearly the lowest energy. We look for the
ground state, prove it where that is possible, and sample the glass at a finite temperature with replica exchange.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

rng = np.random.default_rng(7)
size = 12
signs = rng.choice([-1.0, 1.0], (2, size, size))
glass = gs.ising_grid((size, size), coupling=signs)
figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
gs.plot_model(glass, names=False, ax=axes)
axes.set_title("blue: spins want to be equal; orange: they want to differ", loc="left", fontsize=9)

# %%
# The ground state
# ----------------
#
# ``infer(task="MAP")`` solves a lattice of this width exactly. Annealing does not prove its answer, but says how many
# of its chains found the same best state.

proved = gs.infer(glass, task="MAP")
annealed = gs.infer(glass, task="MAP", method="annealed", rng=1, progress=False)
print(proved.line(), proved.log_potential)
print(annealed.line(), annealed.log_potential)
figure, axes = plt.subplots(figsize=(3.6, 3.6), layout="constrained")
state = np.array([proved.assignment[site] for site in glass.sites], float).reshape(size, size)
axes.imshow(state, cmap="PuOr_r", interpolation="nearest")
axes.set_title("a ground state", loc="left", fontsize=9)
axes.set_axis_off()

# %%
# At a finite temperature
# -----------------------
#
# Gibbs sampling alone stays in one valley. Replica exchange (``Tempered``) moves states along a ladder of
# temperatures; the ladder is tuned before the run.

warm = gs.ising_grid((size, size), coupling=0.9 * signs, field=0.05)
run = gs.sample(warm, gs.Tempered(), sweeps=12_000, rng=1, progress=False)
print(run.diagnostics.line())
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
gs.plots.plot_round_trips(run, ax=left)
gs.plots.plot_comparison(gs.solve_exact(warm), run, labels=("exact", "tempered"), ax=right)

# %%
# The same run estimates log Z.

print(f"{run.log_z:.3f} +- {run.log_z_error:.3f}, exact {gs.solve_exact(warm).log_z:.3f}")
