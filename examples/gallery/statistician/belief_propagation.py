"""
Belief propagation against the exact answer
===========================================

Belief propagation is exact on trees and an approximation elsewhere. On a lattice its error grows with the couplings.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

figure, panels = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for coupling, axes in zip((0.1, 0.3, 0.5), panels, strict=True):
    model = gs.ising_grid((8, 8), coupling=coupling, field=0.1)
    beliefs, exact = gs.belief_propagation(model), gs.solve_exact(model)
    gs.plots.plot_comparison(exact, beliefs, labels=("exact", "belief propagation"), ax=axes)
    axes.set_title(f"coupling {coupling}: " + axes.get_title(loc="left"), loc="left", fontsize=9)
