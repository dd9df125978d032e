"""Model files of any known format, chosen by suffix or by content."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._wording import unknown
from gibbsite.errors import FormatError, IncompatibleError, UnknownFormatError
from gibbsite.formats.bif import parse_bif, write_bif
from gibbsite.formats.bqm_file import MAGIC, parse_bqm, write_bqm
from gibbsite.formats.coo import parse_coo, write_coo
from gibbsite.formats.edges import TITLE, parse_edges, write_edges
from gibbsite.formats.parsing.text import PathLike, Source, load, path_text
from gibbsite.formats.rudy import parse_rudy, write_rudy
from gibbsite.formats.uai import parse_uai, write_uai
from gibbsite.formats.xmlbif import parse_xmlbif, write_xmlbif
from gibbsite.model.factorgraph import FactorGraph

_PARSERS: dict[str, Callable[[Source], FactorGraph]] = {
    "uai": parse_uai,
    "bif": parse_bif,
    "xmlbif": parse_xmlbif,
    "bqm": parse_bqm,
    "coo": parse_coo,
    "rudy": parse_rudy,
    "edges": parse_edges,
}
_WRITERS: dict[str, Callable[[FactorGraph, PathLike], None]] = {
    "uai": write_uai,
    "bif": write_bif,
    "xmlbif": write_xmlbif,
    "bqm": write_bqm,
    "coo": write_coo,
    "rudy": write_rudy,
    "edges": write_edges,
}
_SUFFIXES = {
    ".uai": "uai",
    ".bif": "bif",
    ".xmlbif": "xmlbif",
    ".bifxml": "xmlbif",
    ".xml": "xmlbif",
    ".bqm": "bqm",
    ".coo": "coo",
    ".rudy": "rudy",
    ".gset": "rudy",
    ".mc": "rudy",
    ".edges": "edges",
    ".edgelist": "edges",
}
# How each format may begin, after blanks and comments.
_COMMENTS = rb"(?:\s++|//[^\n]*+|/\*.*?\*/|#[^\n]*+(?:\n|\Z))*+"
_OPENINGS = (
    ("bqm", re.compile(re.escape(MAGIC))),
    ("xmlbif", re.compile(rb"\s*+<[?!A-Za-z]")),
    ("coo", re.compile(rb"(?:\s*+#[^\n]*+\n)*?\s*+#[^\n]*?vartype[:=]")),
    ("uai", re.compile(_COMMENTS + rb"(?i:markov|bayes)\b", re.DOTALL)),
    ("bif", re.compile(_COMMENTS + rb"(?i:network|variable|probability)\b", re.DOTALL)),
    ("edges", re.compile(re.escape(TITLE.encode()))),
    # two whole numbers on the first line, three numbers on the next
    ("rudy", re.compile(_COMMENTS + rb"\d++[ \t]++\d++[ \t\r]*+\n\s*+\d++[ \t]++\d++[ \t]++[-+.\d]")),
)

FORMATS = tuple(_PARSERS)
"""Names of the formats `read_model` and `write_model` know."""


def read_model(path: PathLike, format: str | None = None) -> FactorGraph:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    format : {"uai", "bif", "xmlbif", "bqm", "coo", "rudy", "edges"}, optional
        By default from the suffix (.uai .bif .xmlbif .bifxml .xml .bqm .coo .rudy .gset .mc .edges
        .edgelist, each also with .gz), or from the content when the suffix says nothing: so are files of
        Gset and Biq Mac known, but not edge lists.

    Returns
    -------
    FactorGraph
        The model.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.txt")
    ...     _ = path.write_text("MARKOV 1 2 1 1 0 2 0.5 0.5")
    ...     read_model(path)
    FactorGraph(1 site of 2 states, 1 factor in 1 group)
    """
    chosen = _known(format, path) if format is not None else _by_suffix(path)
    source = load(path, text=chosen not in (None, "bqm"))
    if chosen is None:
        chosen = next((name for name, opening in _OPENINGS if opening.match(source.data)), None)
    if chosen is None:
        raise UnknownFormatError(source.name, f"say which it is with {{}}, one of {', '.join(FORMATS)}")
    if chosen != "bqm" and b"\0" in source.data:
        raise source.error("this is a binary file (it holds NUL bytes); expected text.")
    return _PARSERS[chosen](source)


def write_model(model: FactorGraph, path: PathLike, format: str | None = None) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : FactorGraph
        The model. UAI files hold any; BIF and XMLBIF Bayesian networks; BQM and COO two-state
        sites with at most pairwise factors; rudy files and edge lists the same without fields.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.
    format : {"uai", "bif", "xmlbif", "bqm", "coo", "rudy", "edges"}, optional
        By default from the suffix.

    Raises
    ------
    FormatError
        When the format cannot be told or the file cannot be written.
    IncompatibleError
        When the format cannot hold the model.

    Examples
    --------
    >>> write_model(FactorGraph({"a": 2}, [("a", [1, 3])]), "-", format="uai")
    MARKOV
    1
    2
    1
    1 0
    <BLANKLINE>
    2
    1 3
    """
    chosen = _format_to_write(path, format)
    if not isinstance(model, FactorGraph):
        raise IncompatibleError(
            f"files hold models of states (gs.FactorGraph, gs.ising and so on), got {type(model).__name__}."
        )
    _WRITERS[chosen](model, path)


def find_lost_names(model: FactorGraph, path: PathLike, format: str | None = None) -> str:
    """Say which names a file will not hold; nothing if it holds all.

    Examples
    --------
    >>> find_lost_names(FactorGraph({"rain": ["yes", "no"]}, [("rain", [1, 3])]), "rain.uai")
    'uai files hold no names: sites and states are numbered from 0, in order.'
    """
    chosen, sites = _format_to_write(path, format), model.sites
    plain: set[Any] = {(0, 1), (-1, 1)}
    if chosen == "uai":
        plain = {tuple(range(card)) for card in np.unique(model.cards)}
    numbers = map(str, range(len(sites)))
    unnamed = {
        "uai": any(name != number for name, number in zip(sites, numbers, strict=True)),
        "rudy": not all(name.isdecimal() for name in sites),
        "coo": not all(name.isdecimal() for name in sites),
    }.get(chosen, False)
    bare = chosen in ("uai", "bqm", "coo", "rudy", "edges")
    unlabelled = bare and not plain.issuperset(model.domains.kinds)
    first = {"sites": int(chosen == "rudy")} if unnamed else {}  # vertices of max-cut files count from 1
    first |= {"states": 0} if unlabelled else {}
    if not first:
        return ""
    what = "no names" if unnamed else "no names of states"
    alike = [(" and ".join(first), min(first.values()))] if len({*first.values()}) == 1 else [*first.items()]
    numbered = " and ".join(f"{each} are numbered from {number}" for each, number in alike)
    return f"{chosen} files hold {what}: {numbered}, in order."


def _format_to_write(path: PathLike, format: str | None) -> str:
    chosen = _known(format, path) if format is not None else _by_suffix(path)
    if chosen is None:
        endings = ", ".join(_SUFFIXES)
        advice = f"end the name in one of {endings}, or give it with {{}}"
        raise UnknownFormatError(path_text(path), advice, writing=True)
    return chosen


def _by_suffix(path: PathLike) -> str | None:
    name = path_text(path).lower().removesuffix(".gz")
    return next((known for suffix, known in _SUFFIXES.items() if name.endswith(suffix)), None)


def _known(format: str, path: PathLike) -> str:
    name = str(format).lower().removeprefix(".")
    name = _SUFFIXES.get(f".{name}", name)
    if name not in _PARSERS:
        raise FormatError(unknown("format", format, FORMATS), path_text(path))
    return name
