"""The file formats of models, each of which is registered in its own file.

The registered formats are those that :func:`gibbsite.read_model` and :func:`gibbsite.write_model` know and recognise,
and the choices of the command line.
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
    name, suffixes : str, tuple of str
        Its name, and the endings of file names with their dot.
    parse, write : function
        Make a model from the content of a file; write a model to a path, None where files are only read.
    recognise : function, optional
        Whether the content of a file is of this format; by default the format is known by the suffix only.
    vague : bool
        The content of other formats may look like this one, which is therefore tried last.
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
    write: Callable[[FactorGraph, PathLike], None] | None = None
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

    ``name`` and ``suffixes`` must be literals, because they are read from the source before it is loaded.
    """
    found = Format(**declaration)
    # the declaration that was read from the source also names the module
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
    """Return whether all names of sites are numbers."""
    return all(name.isdecimal() for name in model.sites)


def sites_are_counted(model: FactorGraph) -> bool:
    """Return whether the names of the sites are 0, 1, 2 and so on."""
    return all(name == str(number) for number, name in enumerate(model.sites))


def states_are_counted(model: FactorGraph) -> bool:
    """Return whether the states of each site are 0, 1, 2 and so on."""
    return {tuple(range(card)) for card in np.unique(model.cards)}.issuperset(model.domains.kinds)


def states_are_bits_or_spins(model: FactorGraph) -> bool:
    """Return whether the states of each site are 0 and 1, or -1 and 1."""
    return {(0, 1), (-1, 1)}.issuperset(model.domains.kinds)
