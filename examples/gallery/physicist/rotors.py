"""
Rotors on a lattice
===================

The XY model: every site is an angle, and neighbours want to be parallel. Around a vortex the angle turns once: red
points turn to the left, blue ones to the right. Vortices are free at a coupling of 0.7; above the
Kosterlitz-Thouless transition at 1.12 hardly any are left, and those are bound in pairs that cancel.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

warnings.simplefilter("ignore", gs.ConvergenceWarning)  # one state is shown, and nothing is averaged
quick = gs.Criteria(dispersed_starts=False)
size = 16
sites = np.arange(size * size).reshape(size, size)
pairs = [[a, b] for axis in (0, 1) for a, b in zip(sites.ravel(), np.roll(sites, -1, axis).ravel(), strict=True)]
figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for strength, axes in zip((0.7, 1.3), panels, strict=True):
    bonds = gs.factors.FunctionFactors(lambda x, p: p[0] * np.cos(x[0] - x[1]), pairs, [[strength]] * len(pairs))
    model = gs.ContinuousModel(size * size, [bonds], states=gs.Angle())
    result = gs.sample(model, sweeps=500, chains=2, rng=1, record=[gs.Draws()], progress=False, criteria=quick)
    angle = result.draws[0, -1].reshape(size, size)
    corners = [angle, np.roll(angle, -1, 1), np.roll(angle, -1, (0, 1)), np.roll(angle, -1, 0)]
    turns = sum((b - a + np.pi) % (2 * np.pi) - np.pi for a, b in zip(corners, np.roll(corners, -1, 0), strict=True))
    axes.quiver(np.cos(angle), np.sin(angle), angle, cmap="hsv", pivot="mid", scale=18, width=0.006)
    for sign, color in ((1, "#D55E00"), (-1, "#0072B2")):
        row, column = np.nonzero(np.round(turns / (2 * np.pi)) == sign)
        axes.plot(column + 0.5, row + 0.5, "o", ms=6, color=color)
    axes.set_title(f"coupling {strength}", fontsize=9)
    axes.set_aspect("equal")
    axes.set_axis_off()
