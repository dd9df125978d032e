"""A picture made with NumPy, strokes in four colours, and the regions they stand for."""

import sys

import numpy as np

import gibbsite as gs


def paint(height: int = 240, width: int = 360) -> np.ndarray:
    """Return a landscape: sky, a moon, hills and a lake that mirrors the sky, all with noise."""
    rows, columns = np.mgrid[:height, :width]
    y, x = rows / height, columns / height
    image = np.stack([90 + 70 * y, 120 + 60 * y, 170 + 30 * y], axis=-1)
    image[np.hypot(y - 0.2, x - 1.15) < 0.1] = (235, 225, 190)
    hills = y > 0.52 - 0.10 * np.sin(4.5 * x) - 0.04 * np.sin(13 * x + 1)
    image[hills] = (74, 92, 54)
    lake = y > 0.74 + 0.03 * np.sin(5 * x + 2)
    image[lake] = np.stack([70 + 50 * y, 100 + 50 * y, 130 + 40 * y], axis=-1)[lake]
    noise = np.random.default_rng(1).normal(0, 8, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def scribble(shape: tuple[int, ...]) -> np.ndarray:
    """Return strokes in four colours on a transparent ground."""
    strokes = np.zeros((*shape[:2], 4), np.uint8)
    strokes[8:11, 20:340] = strokes[10:110, 215:218] = strokes[10:80, 330:333] = (86, 180, 233, 255)  # sky
    strokes[44:47, 266:284] = (240, 228, 66, 255)  # moon
    strokes[158:161, 20:345] = (0, 158, 115, 255)  # hills
    strokes[215:218, 20:340] = (0, 114, 178, 255)  # lake
    return strokes


def main(out: str | None = None) -> None:
    image = paint()
    found = gs.applications.segment_scribbles(image, scribble(image.shape), rng=1, progress=False)
    for name, share in found.shares.items():
        print(f"{name} {share:6.1%}")
    if out is not None:
        print(*found.save(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
