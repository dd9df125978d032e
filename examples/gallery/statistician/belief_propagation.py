"""
Belief propagation against the exact answer
===========================================

Belief propagation is exact on trees and an approximation elsewhere. On this lattice its error is largest near the
critical coupling of the infinite lattice (dashed). Beyond it, the weak field decides the state of nearly all sites, and
the error falls again.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

couplings = np.linspace(0.1, 0.8, 15)
errors, worst = [], {}
for coupling in couplings:
    model = gs.ising_grid((8, 8), coupling=coupling, field=0.05)
    beliefs, exact = gs.belief_propagation(model), gs.solve_exact(model)
    errors.append(gs.compare(beliefs, exact).max_abs)
    worst[errors[-1]] = (coupling, beliefs, exact)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogy(couplings, errors, "o-", ms=4)
left.axvline(np.log(1 + np.sqrt(2)) / 2, color="0.5", lw=0.8, ls="--")
left.set(xlabel="coupling", ylabel="largest error of a marginal")
coupling, beliefs, exact = worst[max(worst)]
gs.plots.plot_comparison(exact, beliefs, labels=("exact", "belief propagation"), ax=right)
right.set_title(f"marginals at coupling {coupling:.2f}", loc="left", fontsize=9)
