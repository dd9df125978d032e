"""Model files of any known format, chosen by suffix or by content, and the networks that come with the package."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from gibbsite._common.arguments import checked
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError, FormatError, IncompatibleError, UnknownFormatError
from gibbsite.formats.parsing.text import PathLike, load, path_text
from gibbsite.formats.registry import Format, find_format, known_suffixes, recognise, registered_formats
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.stored import MANIFEST

EXAMPLES = ("alarm", "asia", "child")
"""Names of the networks :func:`example` returns; networks/NOTICE has their sources and licences."""

_FOLDER = Path(__file__).with_name("networks")


def read_model(path: PathLike, format: str | None = None) -> FactorGraph:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    format : {"bif", "bqm", "coo", "dsc", "edges", "net", "rudy", "uai", "wcnf", "wcsp", "xdsl", "xmlbif"}, optional
        By default from the suffix (.bif .bqm .coo .dsc .edges .edgelist .net .hugin .rudy .gset .mc .uai .wcnf
        .wcsp .xdsl .xmlbif .bifxml .xml, each also with .gz), or from the content when the suffix is unknown: files
        of Gset and Biq Mac are recognised in this way, edge lists are not.

    Returns
    -------
    FactorGraph
        The model.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    See Also
    --------
    write_model : Write a model to a file.
    example : Networks that come with the package.
    read_evidence : Read observations.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.txt")
    ...     _ = path.write_text("MARKOV 1 2 1 1 0 2 0.5 0.5")
    ...     read_model(path)
    FactorGraph(1 site of 2 states, 1 factor in 1 group)
    """
    if is_stored(path):
        raise FormatError(
            "this folder is a stored model, which gibbsite infer and info take; in Python, gs.sample and "
            "gs.infer take gs.open_model(folder).",
            str(path),
        )
    chosen = _known(format, path) if format is not None else _by_suffix(path)
    possible = registered_formats().values() if chosen is None else [chosen]
    source = load(path, magic=tuple(one.magic for one in possible if one.magic))
    chosen = recognise(source.data) if chosen is None else chosen
    if chosen is None:
        known = ", ".join(known_suffixes())
        raise UnknownFormatError(source.name, f"say which it is with {{}}, one of {known}")
    if not chosen.magic and b"\0" in source.data:
        raise source.error("this is a binary file (it holds NUL bytes); expected text.")
    return chosen.parse(source)


def is_stored(path: PathLike) -> bool:
    """Whether a path is the folder of a stored model, :func:`gibbsite.open_model`."""
    name = path_text(path)
    with suppress(OSError, ValueError):  # names that no file can have are refused later
        return name != "-" and Path(name, MANIFEST).is_file()
    return False


@checked
def write_model(model: FactorGraph, path: PathLike, format: str | None = None) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : FactorGraph
        The model. UAI files hold any; BIF, XMLBIF, XDSL, NET and DSC Bayesian networks; BQM and COO two-state
        sites with at most pairwise factors; rudy files and edge lists the same without fields. WCSP and WCNF files
        are read only.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.
    format : {"bif", "bqm", "coo", "dsc", "edges", "net", "rudy", "uai", "wcnf", "wcsp", "xdsl", "xmlbif"}, optional
        By default from the suffix.

    Raises
    ------
    FormatError
        When the format is not known or the file cannot be written.
    IncompatibleError
        When the format cannot hold the model.

    See Also
    --------
    read_model : Read a model from a file.
    save : Save answers.

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
    if chosen.write is None:
        raise IncompatibleError(f"{chosen.name} files are read, but not written; write UAI instead.")
    chosen.write(model, path)


def find_lost_names(model: FactorGraph, path: PathLike, format: str | None = None) -> str:
    """Return a sentence about the names that a file will not hold; empty if it holds all."""
    chosen = _format_to_write(path, format)
    unnamed, unlabelled = not chosen.keeps_sites(model), not chosen.keeps_states(model)
    first = {"sites": chosen.first_site} if unnamed else {}
    first |= {"states": 0} if unlabelled else {}
    if not first:
        return ""
    what = "no names" if unnamed else "no names of states"
    alike = [(" and ".join(first), min(first.values()))] if len({*first.values()}) == 1 else [*first.items()]
    numbered = " and ".join(f"{each} are numbered from {number}" for each, number in alike)
    return f"{chosen.name} files hold {what}: {numbered}, in order."


def _format_to_write(path: PathLike, format: str | None) -> Format:
    chosen = _known(format, path) if format is not None else _by_suffix(path)
    if chosen is None:
        endings = ", ".join(suffix for suffixes in known_suffixes().values() for suffix in suffixes)
        advice = f"end the name in one of {endings}, or give it with {{}}"
        raise UnknownFormatError(path_text(path), advice, writing=True)
    return chosen


def _by_suffix(path: PathLike) -> Format | None:
    name = path_text(path).lower().removesuffix(".gz")
    return next((find_format(one) for one, suffixes in known_suffixes().items() if name.endswith(suffixes)), None)


def _known(format: str, path: PathLike) -> Format:
    """Return a format by its name, or by one of its suffixes."""
    name = str(format).lower().removeprefix(".")
    for one, suffixes in known_suffixes().items():
        if name == one or f".{name}" in suffixes:
            return find_format(one)
    raise FormatError(unknown("format", format, known_suffixes()), path_text(path))


@checked
def example(name: str) -> FactorGraph:
    """Return a network that comes with the package.

    Parameters
    ----------
    name : {"alarm", "asia", "child"}
        ALARM, patient monitoring, 37 sites (Beinlich et al. 1989); a chest clinic of 8 sites, with a
        deterministic OR that single-site moves cannot cross (Lauritzen and Spiegelhalter 1988); CHILD,
        birth asphyxia, 20 sites (Spiegelhalter and Cowell 1992).

    Returns
    -------
    FactorGraph
        The model.

    See Also
    --------
    read_model : Read a model from a file.

    Notes
    -----
    The networks are under the Creative Commons Attribution-ShareAlike 3.0 licence, see ``formats/networks/NOTICE`` in
    the package.

    Examples
    --------
    >>> import gibbsite as gs
    >>> gs.example("asia").sites[:3]
    ('asia', 'tub', 'smoke')
    """
    if name not in EXAMPLES:
        raise ArgumentError(unknown("example", name, EXAMPLES))
    return _read_example(name)


@cache
def _read_example(name: str) -> FactorGraph:
    """Read an example once in a process: models cannot be changed."""
    return read_model(example_path(name), "bif")


def example_path(name: str) -> Path:
    """Return the file of an example."""
    return _FOLDER / f"{name}.bif"
