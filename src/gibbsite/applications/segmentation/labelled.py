"""Folders of photographs with label maps: ``NAME.png``, ``NAME_GT.png`` and ``classes.json``.

A label map is an image of whole numbers, with a palette or grey. ``classes.json`` tells their names: it is an
object with the list "classes" of {"index", "name", "rgb"}; index 0 and the name "void" are no class. If it
has the list "v1_nine_classes" or "used" of names, other classes are no classes either. It lies in the
folder or above it; without it, classes are called by their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arrays import Bytes, Ints, Ints16
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
        Positions in the list of classes; -1 is no class.
    """

    name: str
    image: Bytes
    labels: Ints16

    def present(self) -> list[int]:
        """Return the classes that occur: all that is used in learning."""
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


def read_labelled(folder: PathLike, classes: Sequence[str] | None = None) -> LabelledImages:
    """Read a folder of photographs with label maps.

    Parameters
    ----------
    folder : str or path
        With files ``NAME.png`` (or .jpg, .bmp, .tif) and ``NAME_GT.png``.
    classes : sequence of str, optional
        Names of the classes to use; all others are none. By default those of ``classes.json``, as far as they occur.

    Raises
    ------
    FormatError
        When there is no such folder, a label map is missing, or of another size than its photograph.
    """
    place = Path(folder)
    if not place.is_dir():
        raise FormatError("there is no such folder." if not place.exists() else "this is no folder.", str(place))
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
    """Read a label map as whole numbers: those of a palette, or grey values."""
    pillow = need_pillow()
    try:
        with pillow.open(path) as image:
            if image.mode not in ("P", "L", "1", "I", "I;16"):
                raise FormatError(
                    f"a label map has one number a pixel (a palette, or grey), this one is {image.mode}.", str(path)
                )
            return np.asarray(image).astype(np.int64)
    except pillow.UnidentifiedImageError:
        raise FormatError("this is not an image, or of an unknown format.", str(path)) from None
    except (OSError, SyntaxError, ValueError, EOFError) as reason:
        raise FormatError(f"the label map cannot be read: {reason}.", str(path)) from None


def _read_names(place: Path, seen: Ints) -> tuple[dict[int, str], dict[int, Any], list[str] | None]:
    """Return names and colours by number, and the names to be used, if that is said."""
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
        raise FormatError(f"this does not tell names of classes: {reason!r:.80}.", str(found)) from None
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
                raise ArgumentError(
                    f"{argument('classes')}: {name!r} has no example, no label map shows it; leave it out."
                )
        chosen = [number[name] for name in classes]
    if not chosen:
        raise ModelError("no label map shows any class; there is nothing to learn or to compare with.")
    return chosen
