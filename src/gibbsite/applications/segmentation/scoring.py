"""How many pixels have the wrong label: the Hamming error, in all and by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite.applications.segmentation.features import PATCH, STRIDE


def spread(patches: Array, height: int, width: int) -> Array:
    """Give every pixel what the patch with the nearest centre has."""
    places = [
        np.clip((np.arange(pixels) - (PATCH - STRIDE) // 2) // STRIDE, 0, many - 1)
        for pixels, many in zip((height, width), patches.shape[:2], strict=True)
    ]
    return patches[np.ix_(*places)]


@dataclass(frozen=True, eq=False)
class HammingScore:
    """Labelled pixels, and how many of them have which label.

    Attributes
    ----------
    classes : tuple of str
        Names.
    confusion : int array (classes, classes)
        Pixels by true class (rows) and label.
    """

    classes: tuple[str, ...]
    confusion: Ints

    @property
    def hamming(self) -> float:
        """Share of labelled pixels with a wrong label."""
        total = self.confusion.sum()
        return float(1.0 - np.trace(self.confusion) / total) if total else float("nan")

    def by_class(self) -> dict[str, float | None]:
        """Return the share of wrong labels among pixels of each class; None where there are none."""
        totals = self.confusion.sum(axis=1)
        return {
            name: float(1.0 - self.confusion[k, k] / totals[k]) if totals[k] else None
            for k, name in enumerate(self.classes)
        }


def confuse(truth: Array, labels: Array, classes: int) -> Ints:
    """Count labelled pixels by true class and label."""
    known = truth >= 0
    codes = truth[known].astype(np.int64) * classes + labels[known]
    return np.bincount(codes, minlength=classes**2).reshape(classes, classes)
