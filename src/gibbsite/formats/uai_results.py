"""Answers in the formats of the UAI competitions: marginals (MAR), best state (MAP), partition function (PR).

The first word is the task. ``MAR`` is followed by the number of variables, and the number of states and their
probabilities for each; ``MAP`` by the number of variables and a state of each; ``PR`` by the logarithm to base 10.
Older files have the number of evidence sets, 1, after the word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite.errors import ModelError
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.models.base import Model
from gibbsite.models.domain import Label
from gibbsite.models.factorgraph import FactorGraph

_TASK = re.compile(rb"\s*(\S*)")


@checked
def read_uai_mar(path: PathLike) -> list[Floats]:
    r"""Read marginals.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip.

    Returns
    -------
    list of arrays
        The probabilities of the states of each variable, in the order of the model file.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.MAR")
    ...     _ = path.write_text("MAR\n2  2 0.25 0.75  3 0 1 0")
    ...     [p.tolist() for p in read_uai_mar(path)]
    [[0.25, 0.75], [0.0, 1.0, 0.0]]
    """
    return parse_uai_mar(load(path))


def parse_uai_mar(source: Source) -> list[Floats]:
    """Return the marginals in the content of a file."""
    numbers = _task_numbers(source, "MAR")
    values = numbers.values
    start = 0
    if len(values) > 1 and values[0] == 1 and not _is_complete(values) and _is_complete(values[1:]):
        start = 1
    n = numbers.whole(start, "the number of variables", 0, 2**53)
    if n > len(numbers) - start - 1:
        raise numbers.error(start, f"{n:,} variables are declared, but the file has no room for them.")
    at = start + 1
    result: list[Floats] = []
    for k in range(n):
        states = numbers.whole(at, f"the number of states of variable {k}", 1, 2**53)
        if at + states >= len(numbers):
            raise numbers.error(len(numbers), f"the file ends here; expected {states} probabilities of variable {k}.")
        row = values[at + 1 : at + 1 + states]
        numbers.require((row >= 0) & (row <= 1.001), "expected a probability, found {}.", at + 1)
        result.append(row)
        at += 1 + states
    if at < len(numbers):
        raise numbers.error(at, f"expected the end of the file after {n} variables.")
    return result


def _is_complete(values: Floats) -> bool:
    """Return whether marginals that begin with the first number end with the last."""
    at, count, view = 1, 0, memoryview(values.data)
    while at < len(view) and view[at] >= 1:
        at += 1 + int(min(view[at], len(view)))
        count += 1
    return bool(at == len(view) and count == view[0])


@checked
def write_uai_mar(
    marginals: Mapping[str, Mapping[Label, float]],
    path: PathLike,
    model: Model,
    evidence: Mapping[Any, Label] | None = None,
) -> None:
    """Write marginals of all variables, observed ones with probability one for their state.

    Parameters
    ----------
    marginals : mapping
        Site name -> state label -> probability, of the sites that are not observed.
    path : str or path
        The file; ``"-"`` is standard output.
    model : Model
        The model before any evidence: it gives the order of the variables and their states.
    evidence : mapping, optional
        Site -> observed state label.

    Examples
    --------
    >>> model = FactorGraph({"a": 2, "b": ["x", "y"]})
    >>> write_uai_mar({"a": {0: 0.25, 1: 0.75}}, "-", model, {"b": "y"})
    MAR
    2 2 0.25 0.75 2 0 1
    """
    observed = {model.index(site): model.code(site, label) for site, label in (evidence or {}).items()}

    def words() -> Iterator[str]:
        for at, name in enumerate(model.domains.names):
            labels = model.labels(at)
            if at in observed:
                numbers = ["1" if code == observed[at] else "0" for code in range(len(labels))]
            elif name in marginals:
                found = marginals[name]
                if not isinstance(found, Mapping) or not all(label in found for label in labels):
                    raise ModelError(
                        f"the marginals of the site {name!r} must be a mapping from its states to numbers."
                    )
                numbers = [repr(float(found[label])).removesuffix(".0") for label in labels]
            else:
                raise ModelError(f"there are no marginals of the site {name!r}, and it is not observed.")
            yield f" {len(labels)} {' '.join(numbers)}"

    save(path, chain([f"MAR\n{model.n_sites}"], words(), ["\n"]))


@checked
def read_uai_map(path: PathLike, model: FactorGraph | None = None) -> Ints32:
    r"""Read a most probable state.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip.
    model : FactorGraph, optional
        The model before any evidence; numbers of variables and states are then checked.

    Returns
    -------
    int array (n,)
        State codes of all variables, in the order of the model file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.MAP")
    ...     _ = path.write_text("MAP\n3 0 1 1")
    ...     read_uai_map(path).tolist()
    [0, 1, 1]
    """
    return parse_uai_map(load(path), model)


def parse_uai_map(source: Source, model: FactorGraph | None = None) -> Ints32:
    """Return the state in the content of a file."""
    numbers = _task_numbers(source, "MAP")
    values = numbers.values
    n = numbers.whole(0, "the number of variables", 0, 2**53)
    start = 1
    if len(values) != n + 1 and n == 1 and len(values) > 1 and len(values) == values[1] + 2:
        n, start = int(values[1]), 2
    if len(values) != start + n:
        raise numbers.error(
            min(len(values), start + n), f"expected {n} states, one per variable, found {len(values) - start}."
        )
    if model is not None and n != model.n_sites:
        raise numbers.error(start - 1, f"expected the states of {model.n_sites} variables, found {n}.")
    most: Array = np.full(n, 2**31) if model is None else model.cards
    fine = (values[start:] >= 0) & (values[start:] < most) & (values[start:] == np.floor(values[start:]))
    numbers.require(fine, "expected the number of a state of this variable, found {}.", start)
    codes: Ints32 = values[start:].astype(np.int32)
    return codes


@checked
def write_uai_map(
    assignment: Mapping[str, Label], path: PathLike, model: Model, evidence: Mapping[Any, Label] | None = None
) -> None:
    """Write a most probable state of all variables.

    Parameters
    ----------
    assignment : mapping
        Site name -> state label, of the sites that are not observed.
    path : str or path
        The file; ``"-"`` is standard output.
    model : Model
        The model before any evidence: it gives the order of the variables and their states.
    evidence : mapping, optional
        Site -> observed state label.

    Examples
    --------
    >>> write_uai_map({"a": "x"}, "-", FactorGraph({"b": 2, "a": ["z", "x"]}), {"b": 0})
    MAP
    2 0 1
    """
    observed = {model.index(site): model.code(site, label) for site, label in (evidence or {}).items()}

    def words() -> Iterator[str]:
        for at, name in enumerate(model.domains.names):
            if at not in observed and name not in assignment:
                raise ModelError(f"there is no state of the site {name!r}, and it is not observed.")
            yield f" {observed[at] if at in observed else model.code(at, assignment[name])}"

    save(path, chain([f"MAP\n{model.n_sites}"], words(), ["\n"]))


@checked
def write_uai_mmap(assignment: Mapping[str, Label], path: PathLike, model: Model) -> None:
    """Write a best state of some variables: how many, then variable and state of each.

    Parameters
    ----------
    assignment : mapping
        Site name -> state label, of the sites that were maximised over.
    path : str or path
        The file; ``"-"`` is standard output.
    model : Model
        The model before any evidence: it gives the order of the variables and their states.

    Examples
    --------
    >>> write_uai_mmap({"a": "x"}, "-", FactorGraph({"b": 2, "a": ["z", "x"]}))
    MMAP
    1 1 1
    """
    words = [str(len(assignment))]
    for site in sorted(assignment, key=model.index):
        words += [str(model.index(site)), str(model.code(site, assignment[site]))]
    save(path, f"MMAP\n{' '.join(words)}\n")


@checked
def read_uai_pr(path: PathLike) -> float:
    r"""Read a log-partition function and return it as a *natural* logarithm.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.PR")
    ...     _ = path.write_text("PR\n-2")
    ...     round(read_uai_pr(path), 3)
    -4.605
    """
    return parse_uai_pr(load(path))


def parse_uai_pr(source: Source) -> float:
    """Return the natural logarithm in the content of a file."""
    numbers = _task_numbers(source, "PR")
    at = 1 if len(numbers) == 2 and numbers.values[0] == 1 else 0
    if len(numbers) != at + 1:
        raise numbers.error(min(1, len(numbers)), "expected one number, a logarithm to base 10.")
    return float(numbers.values[at]) * math.log(10.0)


@checked
def write_uai_pr(log_z: float, path: PathLike) -> None:
    """Write a natural log-partition function; the file holds it to base 10.

    Examples
    --------
    >>> write_uai_pr(-4.605170185988092, "-")
    PR
    -2
    """
    save(path, f"PR\n{log_z / math.log(10.0):.15g}\n")


def _task_numbers(source: Source, task: str) -> Numbers:
    head = _TASK.match(source.data)
    word = head[1].decode(errors="replace") if head else ""
    if head is None or word.upper() != task:
        raise source.error(f"expected the word {task}, found {word[:30]!r}.", head.start(1) if head else 0)
    numbers = Numbers(source, head.end())
    numbers.require(np.isfinite(numbers.values), "this number is too large; expected a smaller one.")
    return numbers
