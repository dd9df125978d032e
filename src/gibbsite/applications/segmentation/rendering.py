"""Segmented images as files: a label image with its legend, a map of certainty, and an overlay to look at.

A segmentation named ``cow.png`` is four files. ``cow.png`` has a palette: the value of a pixel is its label,
its colour that of the legend, and the legend is also stored in the file, as the text "legend".
``cow-legend.json`` is the legend alone, ``cow-certainty.png`` shows certainty from black (0) to white (1),
and ``cow-overlay.jpg`` the image in the colours of its labels, with the legend below it.
"""

from __future__ import annotations

import colorsys
import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked, read_integers
from gibbsite._common.arrays import Array, Bytes
from gibbsite._common.reals import read_reals
from gibbsite.applications.images import as_photograph, need_pillow
from gibbsite.errors import FormatError, ModelError, UnknownFormatError
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.formats.parsing.text import PathLike, check_writable, save

#: Largest number of labels in a file with a palette.
MOST_LABELS = 255
#: Value of a pixel without label in a file.
NO_LABEL = 255
_TINT = 0.45  # share of the colour of a label in an overlay
# distinguishable with all kinds of colour vision (Okabe and Ito, 2008)
_FIRST = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#999999")


@dataclass(frozen=True, eq=False)
class Legend:
    """Names and colours of labels.

    Attributes
    ----------
    names : tuple of str
        Of the labels 0, 1, ...
    colours : uint8 array (labels, 3)
        Red, green and blue of each.
    """

    names: tuple[str, ...]
    colours: Bytes

    def facts(self, labels: Array) -> dict[str, Any]:
        """Return the legend as plain data, with the share of pixels of each label."""
        counts = np.bincount(np.where(labels < 0, NO_LABEL, labels).ravel(), minlength=NO_LABEL + 1)
        each = [
            {"value": k, "name": name, "colour": _as_hex(self.colours[k]), "share": counts[k] / labels.size}
            for k, name in enumerate(self.names)
        ]
        return {"labels": each, "no_label": NO_LABEL, "no_label_share": counts[NO_LABEL] / labels.size}


class Outputs(NamedTuple):
    """Where the files of a segmentation are."""

    labels: str
    legend: str
    certainty: str
    overlay: str


@checked
def make_legend(names: Sequence[str], colours: Any = None) -> Legend:
    """Make the legend of an image: names of labels with their colours.

    Parameters
    ----------
    names : sequence of str
        Names of the labels 0, 1, ..., at most 255.
    colours : uint8 array (labels, 3), optional
        By default, easily distinguishable colours.

    Examples
    --------
    >>> legend = make_legend(["grass", "cow"])
    >>> legend.colours.tolist()
    [[0, 114, 178], [230, 159, 0]]
    """
    names = list(names)
    if len(names) > MOST_LABELS:
        raise ModelError(f"there are {len(names)} labels; a label image holds at most {MOST_LABELS}.")
    chosen = _distinct(len(names)) if colours is None else _read_colours(colours)
    if len(chosen) != len(names):
        raise ModelError(f"{len(names)} labels need as many colours, got {len(chosen)}.")
    return Legend(tuple(str(name) for name in names), chosen)


def _read_colours(colours: Any) -> Bytes:
    found = read_integers("colours", colours, 0, 255)
    if found.ndim not in (1, 2) or found.size % 3 or found.shape[-1] % 3:
        raise ModelError(f"colours must have the shape (labels, 3), got {found.shape}.")
    return found.astype(np.uint8).reshape(-1, 3)


def _distinct(count: int) -> Bytes:
    """Return distinct colours: chosen ones first, then hues in irrational steps."""
    colours = [tuple(bytes.fromhex(text[1:])) for text in _FIRST[:count]]
    for k in range(count - len(colours)):
        parts = colorsys.hsv_to_rgb((0.05 + 0.618034 * k) % 1.0, (0.85, 0.5)[k % 2], (0.95, 0.65)[k // 2 % 2])
        colours.append(tuple(round(255 * part) for part in parts))
    return np.array(colours, np.uint8).reshape(-1, 3)


def _as_hex(colour: Any) -> str:
    return "#" + bytes(colour.tolist()).hex()


def check_outputs(path: PathLike) -> Outputs:
    """Return the names of the files of a segmentation; refuse a name that does not end in .png or cannot be written."""
    name = os.fspath(path)
    stem, suffix = os.path.splitext(name)
    if suffix.lower() != ".png":
        raise UnknownFormatError(name, "a label image is a PNG file, so end its name in .png", writing=True)
    need_pillow()
    places = Outputs(name, f"{stem}-legend.json", f"{stem}-certainty.png", f"{stem}-overlay.jpg")
    for place in places:
        check_writable(place)
    return places


@checked
def write_segmentation(
    path: PathLike, labels: Array, legend: Legend, *, certainty: Array | None = None, image: Array | None = None
) -> Outputs:
    """Write a segmentation: the label image, its legend, the certainty and an overlay.

    Parameters
    ----------
    path : str or path
        The label image, a PNG file; the other files are named after it.
    labels : integer array (height, width)
        Labels 0, 1, ...; negative values mean no label.
    legend : Legend
        Their names and colours.
    certainty : float array (height, width), optional
        Values between 0 and 1 for the map of certainty, which is written only if they are given.
    image : uint8 array (height, width, 3), optional
        The image that was segmented, for the overlay, which is written only if it is given.

    Returns
    -------
    Outputs
        The names of the files.

    Examples
    --------
    >>> import os, tempfile
    >>> labels = np.array([[0, 0, 1], [0, 1, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.png")
    ...     _ = write_segmentation(path, labels, make_legend(["sky", "sea"]), certainty=np.ones((2, 3)))
    ...     sorted(os.listdir(folder))
    ['a-certainty.png', 'a-legend.json', 'a.png']
    """
    places = check_outputs(path)
    labels = read_reals(labels, "labels", dimensions=2)
    if not (labels == np.floor(labels)).all():
        raise ModelError("labels must be whole numbers.")
    labels = labels.astype(np.int64)
    if certainty is not None:
        certainty = read_reals(certainty, "certainty", dimensions=2)
        if not ((certainty >= 0.0) & (certainty <= 1.0)).all() or certainty.shape != labels.shape:
            raise ModelError(f"certainty must be an array of shape {labels.shape} of numbers from 0 to 1.")
    if image is not None:
        image = as_photograph(image)
        if image.shape[:2] != labels.shape:
            raise ModelError(f"the image must have the shape {labels.shape} of the labels, got {image.shape[:2]}.")
    if labels.size and labels.max() >= len(legend.names):
        raise ModelError(f"label {labels.max()} has no name; the legend names the labels 0 to {len(legend.names) - 1}.")
    facts = write_json(legend.facts(labels))
    save(places.labels, encode_labels(labels, legend, facts))
    save(places.legend, facts)
    if certainty is not None:
        save(places.certainty, _encode(_grey(certainty), places.certainty))
    if image is not None:
        shown = draw_overlay(image, labels, legend)
        save(places.overlay, _encode(shown, places.overlay, quality=92, subsampling=0))
    return places


def encode_labels(labels: Array, legend: Legend, facts: str = "") -> bytes:
    """Return the bytes of a label image: a PNG file with a palette, and the legend as its text."""
    from PIL.PngImagePlugin import PngInfo

    codes = np.where(labels < 0, NO_LABEL, labels).astype(np.uint8)
    picture = need_pillow().fromarray(codes).convert("L")
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(legend.colours)] = legend.colours
    picture.putpalette(palette.tobytes())
    text = PngInfo()
    text.add_text("legend", facts or write_json(legend.facts(labels)))
    file = BytesIO()
    picture.save(file, "PNG", pnginfo=text)
    return file.getvalue()


def draw_overlay(image: Bytes, labels: Array, legend: Legend) -> Bytes:
    """Return the image tinted in the colours of its labels, with their borders, and the legend below.

    ``image`` (height, width, 3): the image; ``labels`` (height, width): its labels, negative ones are not tinted.
    """
    height, width = labels.shape
    tinted = np.empty((height, width, 3), np.uint8)
    # a table of mixed values for each channel avoids arithmetic for all pixels
    values = np.arange(256)
    codes = np.where(labels < 0, len(legend.names), labels).astype(np.uint8)
    for channel in range(3):
        mixed = (1 - _TINT) * values + _TINT * legend.colours[:, channel, None]
        table = np.vstack([mixed, values]).astype(np.uint8)
        tinted[..., channel] = table[codes, image[..., channel]]
    thick = max(1, round(max(height, width) / 1200))
    for axis in range(2):
        far, near = np.moveaxis(codes, axis, 0)[1:], np.moveaxis(codes, axis, 0)[:-1]
        along = np.moveaxis(tinted, axis, 0)
        for k in range(min(thick, len(along) - 1)):
            along[1 + k :][(far != near)[: len(along) - 1 - k]] = 255
    return np.vstack([tinted, _draw_legend(legend, codes, width, max(height, width))])


def _draw_legend(legend: Legend, codes: Array, width: int, longest: int) -> Bytes:
    """Return a strip with the colour and the name of every label that occurs."""
    from PIL import ImageDraw, ImageFont

    size = int(np.clip(longest / 40, 10, 80))
    font = ImageFont.load_default(size)
    counts = np.bincount(codes.ravel(), minlength=len(legend.names) + 1)
    seen = [k for k in range(len(legend.names)) if counts[k]]
    places, x, y, step = [], size // 2, size // 2, 3 * size // 2
    for k in seen:
        long = 2 * size + int(font.getlength(legend.names[k]))
        if x + long > width and x > size // 2:
            x, y = size // 2, y + step
        places.append((k, x, y))
        x += long + size // 2
    strip = need_pillow().new("RGB", (width, y + step), "white")
    draw = ImageDraw.Draw(strip)
    for k, left, top in places:
        fill = tuple(legend.colours[k].tolist())
        draw.rectangle((left, top, left + size, top + size), fill=fill, outline="black")
        draw.text((left + 3 * size // 2, top + size // 2), legend.names[k], fill="black", font=font, anchor="lm")
    return np.asarray(strip)


def _grey(certainty: Array) -> Bytes:
    """Return shares as grey values."""
    return np.rint(255.0 * np.clip(certainty, 0.0, 1.0)).astype(np.uint8)


def _encode(picture: Bytes, name: str, **options: Any) -> bytes:
    kind = {".png": "PNG", ".jpg": "JPEG"}[os.path.splitext(name)[1].lower()]
    file = BytesIO()
    try:
        need_pillow().fromarray(picture).save(file, kind, **options)
    except OSError as reason:  # JPEG ends at 65,535 pixels
        raise FormatError(f"the image cannot be written: {reason}.", name) from None
    return file.getvalue()
