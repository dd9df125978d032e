"""Pictures made up for trying out: regions of several textures and colours, with label maps."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.labelled import Example, LabelledImages

_CLASSES = ("sky", "grass", "wall", "tiger")
_COLOURS = np.array([[90, 140, 230], [70, 150, 50], [150, 140, 135], [220, 130, 40]], np.uint8)


def make_pictures(
    count: int, *, height: int = 213, width: int = 320, noise: float = 28.0, rng: int = 0
) -> LabelledImages:
    """Make up pictures of two backgrounds, one above the other, and often a striped thing before them.

    Parameters
    ----------
    count : int
        Number of pictures.
    height, width : int
        Their pixels.
    noise : float
        Standard deviation of what is added to grey values, and to the hue of every patch of them.
    rng : int
        Seed.

    Examples
    --------
    >>> pictures = make_pictures(2, rng=3)
    >>> pictures.classes, pictures.examples[0].image.shape
    (('sky', 'grass', 'wall', 'tiger'), (213, 320, 3))
    """
    random = np.random.default_rng(rng)
    y, x = np.mgrid[:height, :width]
    examples = []
    for number in range(count):
        above, below = ((0, 1), (0, 2), (2, 1))[int(random.integers(3))]
        horizon = height * random.uniform(0.35, 0.65) + 12 * np.sin(x / random.uniform(20, 60))
        labels = np.where(y < horizon, above, below)
        if random.random() < 0.7:
            centre, size = random.uniform(0.3, 0.7, 2), random.uniform(0.15, 0.3, 2)
            inside = ((y / height - centre[0]) / size[0]) ** 2 + ((x / width - centre[1]) / size[1]) ** 2 < 1
            labels = np.where(inside, 3, labels)
        colour = _COLOURS[labels].astype(np.float64)
        texture = np.stack(
            [
                np.zeros((height, width)),
                random.normal(0.0, 25.0, (height, width)),
                40.0 * (((x // 12 + y // 6) % 2) - 0.5),
                60.0 * np.sign(np.sin(y / 3.0)),
            ]
        )
        colour += np.take_along_axis(texture, labels[None], axis=0)[0][..., None]
        # blotches as large as patches: patches by themselves are wrong now and then, their neighbours right
        coarse = random.normal(0.0, 1.5 * noise, (height // 16 + 2, width // 16 + 2, 3))
        colour += np.kron(coarse, np.ones((16, 16, 1)))[:height, :width]
        colour += random.normal(0.0, 0.3 * noise, (height, width, 1))
        labels = labels.astype(np.int16)
        labels[np.abs(y - horizon) < 3] = -1  # borders are void, as in label maps drawn by hand
        image = np.clip(colour, 0, 255).astype(np.uint8)
        examples.append(Example(f"picture {number}", image, labels))
    return LabelledImages(examples, _CLASSES, _COLOURS)
