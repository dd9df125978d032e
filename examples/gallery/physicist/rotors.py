"""
Rotors on a lattice
===================

The XY model: every site is an angle, and neighbours want to be parallel. Below the transition vortices are bound in
pairs.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

quick = gs.Criteria(dispersed_starts=False)
size = 16
sites = np.arange(size * size).reshape(size, size)
pairs = [[a, b] for axis in (0, 1) for a, b in zip(sites.ravel(), np.roll(sites, -1, axis).ravel(), strict=True)]
figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for strength, axes in zip((0.5, 2.0), panels, strict=True):
    bonds = gs.factors.FunctionFactors(lambda x, p: p[0] * np.cos(x[0] - x[1]), pairs, [[strength]] * len(pairs))
    model = gs.ContinuousModel(size * size, [bonds], states=gs.Angle())
    result = gs.sample(model, sweeps=100, chains=2, rng=1, record=[gs.Draws()], progress=False, criteria=quick)
    angle = result.values[0, -1].reshape(size, size)
    axes.quiver(np.cos(angle), np.sin(angle), angle % (2 * np.pi), cmap="twilight", pivot="mid")
    axes.set_title(f"coupling {strength}", fontsize=9)
    axes.set_aspect("equal")
    axes.set_axis_off()
