"""
Perfect draws
=============

Coupling from the past makes draws without any bias: there is no warmup to choose. How far it has to go back depends
on the couplings.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for coupling, axes in zip((0.1, 0.25, 0.38), panels, strict=True):
    model = gs.ising_grid((48, 48), coupling=coupling, field=0.01, periodic=True)
    (state,) = gs.perfect_draws(model, 1, rng=1)
    axes.imshow(state.reshape(48, 48), cmap="PuOr_r", interpolation="nearest")
    axes.set_title(f"coupling {coupling}", fontsize=9)
    axes.set_axis_off()
