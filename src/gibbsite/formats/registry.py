"""The file formats of models: each is registered in its own file, and everything else is derived.

From here come the formats that :func:`gibbsite.read_model` and :func:`gibbsite.write_model` know, how they
tell one from another, and the choices of the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite.formats.parsing.text import PathLike, Source
from gibbsite.models.factorgraph import FactorGraph


@dataclass(frozen=True)
class Format:
    """A file format of models.

    Attributes
    ----------
    name : str
        What it is called.
    suffixes : tuple of str
        Endings of names that tell it, with their dot.
    parse : function
        From the content of a file to the model.
    write : function
        Writes a model to a path.
    recognise : function, optional
        From the content of a file to whether it is of this format; without it only a suffix tells.
    vague : bool
        Whether content of other formats may be taken for this one: it is tried last.
    magic : bytes
        What files begin with that are not text; empty for text.
    first_site : int
        From where sites are numbered in files without their names.
    keeps_sites, keeps_states : function, optional
        Whether a file holds the names of the sites of a model, and of its states; by default any.
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


_REGISTERED: dict[str, Format] = {}


def register(format: Format) -> None:
    """Make a format known to all that read and write models."""
    _REGISTERED[format.name] = format


def registered_formats() -> dict[str, Format]:
    """Return all formats by name.

    Examples
    --------
    >>> registered_formats()["xmlbif"].suffixes
    ('.xmlbif', '.bifxml', '.xml')
    """
    return dict(sorted(_REGISTERED.items()))


def recognise(data: bytes) -> Format | None:
    """Return the format that the content of a file shows.

    Examples
    --------
    >>> recognise(b"MARKOV 1 2").name
    'uai'
    """
    tried = sorted(_REGISTERED.values(), key=lambda one: one.vague)
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
