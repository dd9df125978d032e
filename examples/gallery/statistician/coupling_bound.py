"""
How far is a chain from its target?
===================================

Two chains that are driven to meet bound the distance of one chain from its stationary distribution, in total variation,
after any number of sweeps. The bound is an average over pairs of chains, here 200, and has an error of sampling.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

figure, axes = plt.subplots(layout="constrained")
sweeps = np.arange(0, 81)
for coupling in (0.1, 0.2, 0.3, 0.35):
    found = gs.couple(gs.ising_grid((12, 12), coupling=coupling, field=0.05), pairs=200, rng=1)
    axes.plot(sweeps, [found.bound(t) for t in sweeps], label=f"coupling {coupling}")
axes.set(xlabel="sweeps from the start", ylabel="bound on the total variation distance", ylim=(0, 1.02))
axes.legend(frameon=False)
