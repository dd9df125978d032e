"""
Denoise an image
================

Thirty percent of the pixels of a black and white image are flipped. A grid of spins that prefer to agree with their
neighbours restores it; the strength of the noise is estimated, too.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

y, x = np.indices((100, 100))
picture = (np.hypot(x - 38, y - 50) < 28) | ((abs(x - 78) < 10) & (abs(y - 50) < 38))
noisy = picture ^ (np.random.default_rng(1).random(picture.shape) < 0.3)
done = gs.applications.denoise(noisy, reference=picture, progress=False)
print(f"estimated noise {done.flip:.3f}, wrong pixels {done.error['wrong_before']:.3f} -> {done.error['wrong']:.3f}")

figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
images = {"noisy": noisy, "restored": done.image, "probability of bright": done.probability}
for axes, (title, image) in zip(panels, images.items(), strict=True):
    axes.imshow(image, cmap="gray", interpolation="nearest")
    axes.set_title(title, fontsize=9)
    axes.set_axis_off()
