"""The file formats of models: each is registered in its own file, and everything else follows from that.

This list decides which formats :func:`gibbsite.read_model` and :func:`gibbsite.write_model` know, how they tell one
from another, and the choices of the command line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.loading import read_declarations
from gibbsite.formats.parsing.text import PathLike, Source
from gibbsite.models.factorgraph import FactorGraph


@dataclass(frozen=True)
class Format:
    """A file format of models.

    Attributes
    ----------
    name : str
        Its name.
    suffixes : tuple of str
        Endings of file names, with their dot.
    parse : function
        Makes a model from the content of a file.
    write : function
        Writes a model to a path.
    recognise : function, optional
        Tells from the content of a file whether it is of this format; without it only the suffix tells.
    vague : bool
        Content of other formats may be taken for this one, which is therefore tried last.
    magic : bytes
        First bytes of files that are not text; empty for text.
    first_site : int
        Number of the first site in files without names.
    keeps_sites, keeps_states : function, optional
        Whether a file holds the names of the sites of a model, and of its states; by default it holds all.
    """

    name: str
    suffixes: tuple[str, ...]
    parse: Callable[[Source], FactorGraph]
    write: Callable[[FactorGraph, PathLike], None]
    recognise: Callable[[bytes], Any] | None = None
    vague: bool = False
    magic: bytes = b""
    first_site: int = 0
    keeps_sites: Callable[[FactorGraph], bool] = lambda model: True
    keeps_states: Callable[[FactorGraph], bool] = lambda model: True


_DECLARED: dict[str, dict[str, Any]] = {given["name"]: given for given in read_declarations("formats", "register")}
_REGISTERED: dict[str, Format] = {}

FORMATS = tuple(sorted(_DECLARED))
"""Names of the formats that `read_model` and `write_model` know."""


def register(**declaration: Any) -> None:
    """Register a format; the arguments are the attributes of :class:`Format`.

    ``name`` and ``suffixes`` must be literals: they are read from the text of the file, which is loaded when the format
    is used.
    """
    found = Format(**declaration)
    # what was read from the text of a file also says which module to load
    _DECLARED[found.name] = _DECLARED.get(found.name, {}) | declaration
    _REGISTERED[found.name] = found


def known_suffixes() -> dict[str, tuple[str, ...]]:
    """Return the endings of file names of all formats, by name, without loading them."""
    return {name: _DECLARED[name]["suffixes"] for name in sorted(_DECLARED)}


def find_format(name: str) -> Format:
    """Return a format by its name."""
    if name not in _REGISTERED:
        importlib.import_module(_DECLARED[name]["module"])
    return _REGISTERED[name]


def registered_formats() -> dict[str, Format]:
    """Return all formats by name."""
    return {name: find_format(name) for name in sorted(_DECLARED)}


def recognise(data: bytes) -> Format | None:
    """Return the format that the content of a file shows."""
    tried = sorted(registered_formats().values(), key=lambda one: one.vague)
    return next((one for one in tried if one.recognise is not None and one.recognise(data)), None)


def sites_are_numbers(model: FactorGraph) -> bool:
    """Tell whether all names of sites are numbers."""
    return all(name.isdecimal() for name in model.sites)


def sites_are_counted(model: FactorGraph) -> bool:
    """Tell whether sites are called 0, 1, 2 and so on."""
    return all(name == str(number) for number, name in enumerate(model.sites))


def states_are_counted(model: FactorGraph) -> bool:
    """Tell whether the states of each site are 0, 1, 2 and so on."""
    return {tuple(range(card)) for card in np.unique(model.cards)}.issuperset(model.domains.kinds)


def states_are_bits_or_spins(model: FactorGraph) -> bool:
    """Tell whether the states of each site are 0 and 1, or -1 and 1."""
    return {(0, 1), (-1, 1)}.issuperset(model.domains.kinds)
