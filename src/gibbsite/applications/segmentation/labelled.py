"""Photographs with label maps, read from folders or synthetic, and the Hamming error of labels.

A folder holds ``NAME.png``, ``NAME_GT.png`` and ``classes.json``. A label map is an image of whole numbers, with a
palette or grey. ``classes.json`` contains an object with the list "classes" of {"index", "name", "rgb"}; index 0 and
the name "void" mean no class. If it has a list "v1_nine_classes" or "used" of names, all other classes are ignored. The
file is in the folder or in its parent; without it, classes are named by their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number, checked
from gibbsite._common.arrays import Array, Bytes, Ints, Ints16
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.images import need_pillow, read_photograph
from gibbsite.errors import ArgumentError, FormatError, ModelError
from gibbsite.formats.parsing.text import PathLike

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
_TRUTH = "_GT"


@dataclass(frozen=True, eq=False)
class Example:
    """A photograph with a label map.

    Attributes
    ----------
    name : str
        Of the file, without suffix.
    image : uint8 array (height, width, 3)
        The photograph.
    labels : int16 array (height, width)
        Positions in the list of classes; -1 for pixels without a class.
    """

    name: str
    image: Bytes
    labels: Ints16

    def present(self) -> list[int]:
        """Return the classes that occur, which is all that learning uses."""
        return [int(k) for k in np.unique(self.labels) if k >= 0]


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Photographs with label maps.

    Attributes
    ----------
    examples : list of Example
        The photographs, in the order of their names.
    classes : tuple of str
        Names of the classes.
    colours : uint8 array (classes, 3) or None
        Their colours.
    """

    examples: list[Example]
    classes: tuple[str, ...]
    colours: Bytes | None = None


@checked
def read_labelled(folder: PathLike, classes: Sequence[str] | None = None) -> LabelledImages:
    """Read a folder of photographs with label maps.

    Parameters
    ----------
    folder : str or path
        With files ``NAME.png`` (or .jpg, .bmp, .tif) and ``NAME_GT.png``.
    classes : sequence of str, optional
        Names of the classes to use; all others are ignored. By default all classes of ``classes.json`` that occur.

    Raises
    ------
    FormatError
        If the folder does not exist, or a label map is missing or differs in size from its photograph.
    """
    place = Path(folder)
    if not place.is_dir():
        raise FormatError("there is no such folder." if not place.exists() else "this is not a folder.", str(place))
    photographs = sorted(
        path for path in place.iterdir() if path.suffix.lower() in SUFFIXES and not path.stem.endswith(_TRUTH)
    )
    if not photographs:
        raise FormatError(f"the folder has no photograph (names that end in {', '.join(SUFFIXES)}).", str(place))
    maps = {path: path.with_name(f"{path.stem}{_TRUTH}.png") for path in photographs}
    for path, truth in maps.items():
        if not truth.exists():
            raise FormatError(f"the photograph has no label map; expected {truth.name} beside it.", str(path))
    raw = [(path.stem, read_photograph(path), read_map(truth)) for path, truth in maps.items()]
    for (path, truth), (_, image, values) in zip(maps.items(), raw, strict=True):
        if image.shape[:2] != values.shape:
            sizes = [f"{shape[1]} x {shape[0]}" for shape in (values.shape, image.shape)]
            raise FormatError(f"the label map has {sizes[0]} pixels, its photograph {sizes[1]}.", str(truth))
        del path
    seen = np.unique(np.concatenate([np.unique(values) for _, _, values in raw]))
    names, colours, used = _read_names(place, seen)
    chosen = _choose(names, used, seen, classes)
    table = np.full(int(max(seen.max(), max(names, default=0))) + 1, -1, np.int16)
    table[list(chosen)] = np.arange(len(chosen))
    examples = [Example(name, image, table[values]) for name, image, values in raw]
    palette = np.array([colours[k] for k in chosen], np.uint8) if all(k in colours for k in chosen) else None
    return LabelledImages(examples, tuple(names[k] for k in chosen), palette)


def read_map(path: PathLike) -> Ints:
    """Read a label map as whole numbers: indices of a palette, or grey values."""
    pillow = need_pillow()
    try:
        with pillow.open(path) as image:
            if image.mode not in ("P", "L", "1", "I", "I;16"):
                raise FormatError(
                    f"a label map has one number for each pixel (a palette, or grey), but this one is {image.mode}.",
                    str(path),
                )
            return np.asarray(image).astype(np.int64)
    except pillow.UnidentifiedImageError:
        raise FormatError("this is not an image, or its format is unknown.", str(path)) from None
    except (OSError, SyntaxError, ValueError, EOFError) as reason:
        raise FormatError(f"the label map cannot be read: {reason}.", str(path)) from None


def _read_names(place: Path, seen: Ints) -> tuple[dict[int, str], dict[int, Any], list[str] | None]:
    """Return names and colours by number, and the names to use if the file lists them."""
    found = next((path for path in (place / "classes.json", place.parent / "classes.json") if path.exists()), None)
    if found is None:
        return {int(k): str(k) for k in seen if k > 0}, {}, None
    try:
        said = json.loads(found.read_text(encoding="utf-8"))
        entries = [one for one in said["classes"] if one["index"] != 0 and one["name"] != "void"]
        names = {int(one["index"]): str(one["name"]) for one in entries}
        colours = {int(one["index"]): [int(c) for c in one["rgb"]] for one in entries if "rgb" in one}
        used = said.get("used", said.get("v1_nine_classes"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as reason:
        raise FormatError(f"this is not a list of classes: {reason!r:.80}.", str(found)) from None
    return names, colours, used


def _choose(names: dict[int, str], used: list[str] | None, seen: Ints, classes: Sequence[str] | None) -> list[int]:
    """Return the numbers of the classes to use."""
    number = {name: k for k, name in names.items()}
    present = set(seen.tolist())
    if classes is None:
        wanted = [name for name in (used if used is not None else number) if name in number]
        chosen = [number[name] for name in wanted if number[name] in present]
    else:
        for name in classes:
            if name not in number:
                raise ArgumentError(unknown("class", name, tuple(number)))
            if number[name] not in present:
                raise ArgumentError(f"{argument('classes')}: no label map shows {name!r}; leave it out.")
        chosen = [number[name] for name in classes]
    if not chosen:
        raise ModelError("no label map shows any class; there is nothing to learn or to compare with.")
    return chosen


@dataclass(frozen=True, eq=False)
class HammingScore:
    """Counts of labelled pixels by true class and assigned label.

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


_CLASSES = ("sky", "grass", "wall", "tiger")
_COLOURS = np.array([[90, 140, 230], [70, 150, 50], [150, 140, 135], [220, 130, 40]], np.uint8)


@checked
def make_pictures(
    count: int, *, height: int = 213, width: int = 320, noise: float = 28.0, rng: int = 0
) -> LabelledImages:
    """Draw synthetic pictures of two backgrounds, one above the other, often with a striped object in front.

    Parameters
    ----------
    count : int
        Number of pictures.
    height, width : int
        Size in pixels.
    noise : float
        Standard deviation of the noise of grey values and of the hue of patches.
    rng : int
        Seed.

    Examples
    --------
    >>> pictures = make_pictures(2, rng=3)
    >>> pictures.classes, pictures.examples[0].image.shape
    (('sky', 'grass', 'wall', 'tiger'), (213, 320, 3))
    """
    count, rng = check_integer("count", count, 0, 100_000), check_integer("rng", rng, 0)
    height, width = (check_integer(name, size, 1, 10_000) for name, size in (("height", height), ("width", width)))
    noise = check_number("noise", noise, zero=True)
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
        # blotches as large as patches, so that single patches are misclassified while their neighbours are right
        coarse = random.normal(0.0, 1.5 * noise, (height // 16 + 2, width // 16 + 2, 3))
        colour += np.kron(coarse, np.ones((16, 16, 1)))[:height, :width]
        colour += random.normal(0.0, 0.3 * noise, (height, width, 1))
        labels = labels.astype(np.int16)
        labels[np.abs(y - horizon) < 3] = -1  # borders have no label, as in label maps drawn by hand
        image = np.clip(colour, 0, 255).astype(np.uint8)
        examples.append(Example(f"picture {number}", image, labels))
    return LabelledImages(examples, _CLASSES, _COLOURS)
