"""
Bounds of the log-partition function
====================================

Certain lower and upper bounds of log Z come from mean field and from tree-reweighted belief propagation; they are
widest near the critical coupling. Annealed importance sampling gives an estimate and, forwards and backwards, an
interval that contains log Z with a probability of 95 percent. All are shown as differences from the exact value.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

couplings = [0.1, 0.3, 0.5, 0.7]
figure, axes = plt.subplots(layout="constrained")
for coupling in couplings:
    model = gs.ising_grid((8, 8), coupling=coupling, field=0.1)
    exact = gs.solve_exact(model).log_z
    lower = gs.mean_field(model).log_z_bounds[0]
    upper = gs.belief_propagation(model, kind="tree-reweighted").log_z_bounds[1]
    estimate = gs.log_z.annealed_importance(model, steps=500, rng=1)
    axes.plot([coupling, coupling], [lower - exact, upper - exact], color="#0072B2", lw=6, alpha=0.3)
    error = [[estimate.log_z - estimate.lower], [estimate.upper - estimate.log_z]]
    axes.errorbar(coupling, estimate.log_z - exact, yerr=error, fmt="o", ms=4, color="#D55E00", capsize=3)
axes.axhline(0.0, color="black", lw=0.8)
axes.set(xlabel="coupling", ylabel="difference from the exact log Z", xticks=couplings)
axes.set_title("bars: certain bounds; points: annealed importance sampling with its interval", fontsize=9)
