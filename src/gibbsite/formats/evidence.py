"""Evidence in files: UAI numbers, lines ``NAME=STATE``, or JSON ``{"NAME": "STATE"}``.

UAI evidence has two layouts. The newer one is ``k v1 x1 ... vk xk``: how many variables are observed, then pairs of
variable and state. The older one has the number of evidence sets, always 1, on a line before that. The count of all
numbers distinguishes them: it is odd in the newer layout and even in the older one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite.errors import FormatError, ModelError
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import COMMENTS, PathLike, Source, load, save, shortened
from gibbsite.models import evidence as findings
from gibbsite.models.domain import Label
from gibbsite.models.evidence import Finding
from gibbsite.models.factorgraph import FactorGraph

_MOST_MARKS = 30  # equals signs of a line that may end its name
_LONGEST_NAME = 1000


@checked
def read_evidence(path: PathLike, model: FactorGraph) -> dict[str, Finding]:
    """Read evidence for a model.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input. One of: UAI evidence; a line
        ``NAME=STATE`` per site, ``#`` beginning a comment; a JSON object name -> state, where
        likelihoods ``{"STATE": 0.7, ...}`` stand for soft evidence.
    model : FactorGraph
        The model the evidence is for.

    Returns
    -------
    dict
        Site name -> state label or likelihoods, as `FactorGraph.observe` takes it.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there: also for unknown sites and states.

    See Also
    --------
    read_model : Read a model from a file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> model = FactorGraph({"rain": ["no", "yes"], "grass": ["dry", "wet"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "evidence.txt")
    ...     _ = path.write_text("grass = wet  # seen from the window")
    ...     read_evidence(path, model)
    {'grass': 'wet'}
    """
    return parse_evidence(load(path), model)


def parse_evidence(source: Source, model: FactorGraph) -> dict[str, Finding]:
    """Return the evidence in the content of a file."""
    if source.data.lstrip().startswith(b"{"):
        return _read_json(source, model)
    if b"=" in source.data:
        return _read_lines(source, model)
    _refuse_words(source)
    return dict(parse_uai_evidence(source, model))


def _refuse_words(source: Source) -> None:
    """Refuse a text that begins with a word, if only the numbers of UAI evidence are possible."""
    opening = re.match(COMMENTS, source.data, re.DOTALL)
    at = opening.end() if opening is not None else 0
    words = source.data[at:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if not words or words[0].lstrip("+-.")[:1].isdigit():
        return
    meant = f" (perhaps {words[0]}={words[1]})" if len(words) == 2 else ""
    raise source.error(
        f"expected NAME=STATE on every line{meant}, JSON, or the numbers of UAI evidence, found {words[0]!r}.", at
    )


def _read_lines(source: Source, model: FactorGraph) -> dict[str, Finding]:
    evidence: dict[str, Finding] = {}
    for number, line in enumerate(source.decoded().split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, label = _split(source, number, text, model)
        if name in evidence:
            raise FormatError(f"the site {name!r} is observed twice.", source.name, number, 1)
        evidence[name] = label
    return evidence


def _split(source: Source, number: int, text: str, model: FactorGraph) -> tuple[str, Any]:
    """Return site and state of a line; names and states may contain ``=`` and ``#``."""
    problem = ""
    for ending in (text, text.partition(" #")[0].rstrip(), text.partition("\t#")[0].rstrip()):
        head = ""
        # The limit keeps a line of equals signs from taking quadratic time.
        for piece in ending.split("=", _MOST_MARKS)[:-1]:
            head += piece
            name, state = _bare(head.strip()), _bare(ending[len(head) + 1 :].strip())
            head += "="
            if len(name) > _LONGEST_NAME:
                break
            if name in model.evidence or model.domains.names.find(name) is not None:
                try:
                    site = model.index(name)
                    return model.sites[site], model.labels(site)[model.code(site, state)]
                except ModelError as error:
                    problem = problem or str(error)
    if not problem:
        name, mark, _ = text.partition("=")
        short = mark and len(name) <= _LONGEST_NAME
        problem = _unknown(model, _bare(name.strip())) if short else "expected NAME=STATE."
    raise FormatError(shortened(problem), source.name, number, 1)


def _unknown(model: FactorGraph, name: str) -> str:
    try:
        model.index(name)
    except ModelError as error:
        return str(error)
    return "expected NAME=STATE."


def _bare(text: str) -> str:
    """Return a text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _read_json(source: Source, model: FactorGraph) -> dict[str, Finding]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise source.error("the JSON has a name twice.")
        return found

    def refuse(constant: str) -> NoReturn:
        raise source.error(f"expected a number, found {constant}.")

    try:
        given = json.loads(source.decoded(), object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise FormatError(f"this is not JSON: {error.msg}.", source.name, error.lineno, error.colno) from None
    except FormatError:
        raise
    except (ValueError, RecursionError):
        raise source.error("this JSON is nested too deeply or has too long a number.") from None
    evidence: dict[str, Finding] = {}
    for name, finding in given.items():
        if len(name) > _LONGEST_NAME:
            raise source.error(f"there is no site {name[:30]!r}...; this name is too long.")
        try:
            hard, _ = findings.read_evidence(model.domains, {name: finding}, model.evidence)
        except (ModelError, OverflowError) as error:  # 10**400 is JSON, but no float
            raise source.error(str(error)) from None
        evidence[name] = model.labels(name)[next(iter(hard.values()))] if hard else finding
    return evidence


@checked
def read_uai_evidence(path: PathLike, model: FactorGraph | None = None) -> dict[str, Label]:
    """Read UAI evidence.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    model : FactorGraph, optional
        The model the evidence is for, before any evidence; variables and states are then checked, and may have names.

    Returns
    -------
    dict
        Site name -> state label, as `FactorGraph.observe` takes it. Without a model names are the
        numbers of the variables, and labels the numbers of the states.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.evid")
    ...     _ = path.write_text("2  5 1  7 0")
    ...     read_uai_evidence(path)
    {'5': 1, '7': 0}
    """
    return parse_uai_evidence(load(path), model)


def parse_uai_evidence(source: Source, model: FactorGraph | None = None) -> dict[str, Label]:
    """Return the evidence in the content of a file."""
    numbers = Numbers(source)
    start = _first_pair(numbers)
    values = numbers.values[start:]
    fine = (values >= 0) & (values < 2**31) & (values == np.floor(values))
    numbers.require(fine, "expected the number of a variable or state, found {}.", start)
    codes: dict[int, int] = {}
    for k, (site, code) in enumerate(values.astype(np.int64).reshape(-1, 2).tolist()):
        at = start + 2 * k
        if model is not None:
            if site >= model.n_sites:
                raise numbers.error(at, f"expected a variable from 0 to {model.n_sites - 1}, found {site}.")
            if code >= model.cards[site]:
                raise numbers.error(
                    at + 1, f"variable {site} has {model.cards[site]} states; expected one from 0 on, found {code}."
                )
        if codes.setdefault(site, code) != code:
            raise numbers.error(at, f"variable {site} is observed twice, as {codes[site]} and as {code}.")
    if model is None:
        return {str(site): code for site, code in codes.items()}
    return {model.sites[site]: model.labels(site)[code] for site, code in codes.items()}


def _first_pair(numbers: Numbers) -> int:
    """Return the position of the first pair, which depends on the layout."""
    total = len(numbers)
    count = numbers.whole(0, "the number of observed variables", 0, 2**53)
    if total == 2 * count + 1:
        return 1
    inner = float(numbers.values[1]) if total > 1 else -1.0
    if count == 1 and total % 2 == 0 and total == 2 * inner + 2 and not (inner == 0 and numbers.same_line(0, 1)):
        return 2
    if count > 1 and total > 1 and not numbers.same_line(0, 1):
        raise numbers.error(0, f"expected one evidence set, or all pairs of {count} observed variables on this line.")
    raise numbers.error(
        min(total, 2 * count + 1),
        f"expected {2 * count} numbers, a variable and a state {count} times, found {total - 1}.",
    )


@checked
def write_uai_evidence(evidence: Mapping[Any, Label], path: PathLike, model: FactorGraph) -> None:
    """Write evidence in the newer UAI layout.

    Parameters
    ----------
    evidence : mapping
        Site -> state label.
    path : str or path
        The file; ``"-"`` is standard output.
    model : FactorGraph
        The model before any evidence, which numbers the sites and states.

    Examples
    --------
    >>> model = FactorGraph({"rain": ["no", "yes"], "grass": ["dry", "wet"]})
    >>> write_uai_evidence({"grass": "wet"}, "-", model)
    1 1 1
    """
    pairs: dict[int, int] = {}
    for site, label in evidence.items():
        at = model.index(site)
        if at in pairs:
            raise ModelError(f"the evidence has the site {model.sites[at]!r} twice, by name and by position.")
        pairs[at] = model.code(at, label)
    words = [len(pairs), *(number for pair in sorted(pairs.items()) for number in pair)]
    save(path, " ".join(map(str, words)) + "\n")
