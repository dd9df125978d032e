"""Scribbles: the labels that a drawing assigns to pixels.

Every colour other than the background is a label. The background is the first of these that applies: the colour that is
given; transparent pixels; value 0 of a palette; unchanged pixels, if the drawing is a copy of the photograph that was
painted on; black or white, whichever covers more.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Ints16, Ints32
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument
from gibbsite.applications.segmentation.rendering import MOST_LABELS, Legend, make_legend
from gibbsite.errors import ArgumentError, ModelError

# a drawing that equals the photograph in at least this share of pixels is a copy of it
_COPY = 0.5
# a soft brush leaves mixed colours along its strokes: if there are more than _FEW colours, only those that cover at
# least the share _PLAIN are labels
_FEW, _PLAIN = 8, 0.01


class Strokes(NamedTuple):
    """Scribbled pixels and their legend."""

    labels: Ints16  # (height, width): 0, 1, ..., and -1 where there is no scribble
    legend: Legend


def read_scribbles(
    drawing: Any, image: Bytes, background: str | None = None, first: tuple[int, int, int] | None = None
) -> Strokes:
    """Return the labels of a drawing.

    ``drawing``: whole numbers (height, width), 0 being background; or uint8 colours (height, width, 3 or 4);
    ``image`` (height, width, 3): what was scribbled on; ``background``: the colour of the background, as "#rrggbb";
    ``first``: the colour of value 0 of the palette of a file.

    Raises
    ------
    ModelError
        If the sizes differ, or there are fewer than two labels or too many.
    """
    try:
        array = np.asarray(drawing)
    except ValueError:
        raise ModelError("the scribbles have rows of unequal length.") from None
    numbers = array.ndim == 2 and array.dtype.kind in "biu"
    colours = array.ndim == 3 and array.shape[2] in (3, 4) and array.dtype == np.uint8
    if not numbers and not colours:
        raise ModelError(
            "the scribbles must be whole numbers (height, width) or colours of 8 bits "
            f"(height, width, 3 or 4), got {array.dtype} of shape {array.shape}."
        )
    if array.shape[:2] != image.shape[:2]:
        (h, w), (height, width) = array.shape[:2], image.shape[:2]
        raise ModelError(f"the scribbles have {w} x {h} pixels and the image {width} x {height}; they must be equal.")
    if numbers:
        if background is not None:
            raise ArgumentError(f"{argument('background')} is for scribbles in colours; here it is 0.")
        return _number(array, None)
    codes = (array[..., 0].astype(np.int32) << 16) | (array[..., 1].astype(np.int32) << 8) | array[..., 2]
    codes += 1  # 0 is background from here on
    _blank(codes, array, image, background, first)
    return _number(codes, 1)


def _blank(
    codes: Ints32, drawing: Bytes, image: Bytes, background: str | None, first: tuple[int, int, int] | None
) -> None:
    """Set the pixels of the background to 0."""
    opaque = drawing[..., 3] >= 128 if drawing.shape[2] == 4 else None
    if opaque is not None:
        codes[~opaque] = 0
    if background is not None:
        codes[codes == 1 + _parse(background)] = 0
        return
    if opaque is not None and not opaque.all():
        return
    if first is not None:
        codes[codes == 1 + (first[0] << 16 | first[1] << 8 | first[2])] = 0
        return
    same = (drawing[..., :3] == image).all(axis=2)
    if same.mean() >= _COPY:
        codes[same] = 0
        return
    black, white = 1, 1 + 0xFFFFFF
    most = white if np.count_nonzero(codes == white) > np.count_nonzero(codes == black) else black
    codes[codes == most] = 0


def _parse(colour: Any) -> int:
    if isinstance(colour, str) and re.fullmatch(r"#?[0-9a-fA-F]{6}", colour):
        return int(colour.removeprefix("#"), 16)
    raise ArgumentError(f"{argument('background')} must be a colour such as #ffffff, got {colour!r}.")


def _number(codes: Array, coloured: int | None) -> Strokes:
    """Return the values that are not 0 as labels."""
    drawn = codes != 0
    values, counts = np.unique(codes[drawn], return_counts=True)
    if coloured and len(values) > _FEW:
        plain = counts >= max(2, _PLAIN * counts.sum())
        if plain.sum() >= 2 and not plain.all():
            warn_user(
                f"the scribbles have {len(values):,} colours; {len(values) - plain.sum():,} of them cover "
                "less than 1 % each and are taken for soft edges of a brush. Draw with a hard one."
            )
            values = values[plain]
    if len(values) < 2:
        found = "no scribbles" if not len(values) else "scribbles of one label only"
        raise ModelError(f"there are {found}; mark at least two labels, each in a colour of its own.")
    if len(values) > MOST_LABELS:
        raise ModelError(
            f"the scribbles have {len(values):,} labels; there may be {MOST_LABELS}. Draw with a hard brush, "
            "and save the file without loss (PNG)."
        )
    labels, marked = np.full(codes.shape, -1, np.int16), codes[drawn]
    place = np.searchsorted(values, marked).clip(max=len(values) - 1)
    labels[drawn] = np.where(values[place] == marked, place, -1)
    if not coloured:
        return Strokes(labels, make_legend([str(value) for value in values.tolist()]))
    rgb = np.stack([(values - 1) >> shift & 0xFF for shift in (16, 8, 0)], axis=1).astype(np.uint8)
    return Strokes(labels, make_legend([f"#{value - 1:06x}" for value in values.tolist()], rgb))
