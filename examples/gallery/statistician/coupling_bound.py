"""
How far is a chain from its target?
===================================

Two chains that are driven to meet bound the distance of one chain from the model, as an upper bound of the total
variation after any number of sweeps.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

figure, axes = plt.subplots(layout="constrained")
sweeps = np.arange(0, 120)
for coupling in (0.1, 0.2, 0.3):
    found = gs.couple(gs.ising_grid((12, 12), coupling=coupling, field=0.05), pairs=100, rng=1)
    axes.plot(sweeps, [found.bound(t) for t in sweeps], label=f"coupling {coupling}")
axes.set(xlabel="sweeps from the start", ylabel="upper bound of the total variation", ylim=(0, 1.02))
axes.legend(frameon=False)
