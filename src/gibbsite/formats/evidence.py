"""Evidence in files: UAI numbers, lines ``NAME=STATE``, or JSON ``{"NAME": "STATE"}``."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from gibbsite.errors import FormatError, ModelError
from gibbsite.formats.parsing.text import COMMENTS, PathLike, Source, load, shortened
from gibbsite.formats.uai_evidence import parse_uai_evidence
from gibbsite.models import evidence as findings
from gibbsite.models.evidence import Finding
from gibbsite.models.factorgraph import FactorGraph

_MOST_MARKS = 30
_LONGEST_NAME = 1000


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
    """Refuse a text that begins with a word, where nothing but the numbers of UAI evidence is left."""
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
        # A line of nothing but such marks must not cost the square of its length.
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
            raise source.error(f"there is no site {name[:30]!r}...; no name is that long.")
        try:
            hard, _ = findings.read_evidence(model.domains, {name: finding}, model.evidence)
        except (ModelError, OverflowError) as error:  # 10**400 is JSON, but no float
            raise source.error(str(error)) from None
        evidence[name] = model.labels(name)[next(iter(hard.values()))] if hard else finding
    return evidence
