"""
Segment an image from scribbles
===============================

A few strokes say what belongs together. Colors are modelled, neighbouring pixels agree where the image is smooth, and
Gibbs sampling gives the probability of each region at each pixel.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

y, x = np.indices((80, 100))
disc = np.hypot(x - 50, y - 40) < 24
rng = np.random.default_rng(1)
image = np.where(disc, 150, 110) + rng.normal(0, 15, disc.shape)
scribbles = np.zeros(disc.shape, int)  # 0: no scribble
scribbles[40, 30:70] = scribbles[22:58, 50] = 1
scribbles[[5, 75], 5:95] = scribbles[5:75, [8, 92]] = 2
found = gs.applications.segment_scribbles(image, scribbles, rng=1, progress=False)
print(f"right pixels: {((found.labels == 0) == disc).mean():.3f}")

figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
panels[0].imshow(image, cmap="gray")
panels[0].imshow(np.ma.masked_equal(scribbles, 0), cmap="tab10")
panels[1].imshow(found.labels, cmap="tab10")
shown = panels[2].imshow(found.certainty, cmap="viridis", vmax=1)
figure.colorbar(shown, ax=panels[2], shrink=0.8)
for axes, title in zip(panels, ("image and scribbles", "regions", "probability of the region"), strict=True):
    axes.set_title(title, fontsize=9)
    axes.set_axis_off()
