"""Weighted maximum satisfiability in WCNF, in its format up to 2021 and in that of 2022.

A clause has a weight and literals, numbers of variables with a minus where a variable is negated, and ends with 0. The
sum of the weights of clauses that do not hold is an energy, and the model is ``p(x) ~ exp(-beta * E(x))``; what does
not satisfy a hard clause is impossible. Hard clauses begin with ``h``, in the older format with the weight that is
last in the line ``p wcnf``, or a larger one.
"""

from __future__ import annotations

import re

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats, Ints
from gibbsite.errors import ModelError
from gibbsite.formats.network import MOST_MEMBERS
from gibbsite.formats.objects.bqm import read_beta
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import PathLike, Source, load
from gibbsite.formats.registry import register
from gibbsite.formats.uai import FREE_STATES
from gibbsite.models.domain import Domains, SiteNames
from gibbsite.models.factor import TableFactors
from gibbsite.models.factorgraph import FactorGraph, _restore

_COMMENT = re.compile(rb"^[ \t]*c(?:[ \t][^\r\n]*)?\r?$", re.MULTILINE)
_PROBLEM = re.compile(rb"^[ \t]*p([ \t][^\r\n]*)?\r?$", re.MULTILINE)
_HARD = re.compile(rb"^[ \t]*(h)(?=\s|\Z)", re.MULTILINE)
_ENTRIES = 1 << 24  # most entries of all tables


@checked
def read_wcnf(path: PathLike, *, beta: float = 1.0) -> FactorGraph:
    r"""Read a problem of weighted maximum satisfiability.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``, E being the weight of the clauses that do not hold.

    Returns
    -------
    FactorGraph
        Sites "1", "2", ... with states 0 and 1, and a table for each clause, with one entry that is not 1.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there: also for clauses whose tables would
        have more than sixteen million entries.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pair.wcnf")
    ...     _ = path.write_text("c either\nh 1 2 0\n3 -1 0\n")
    ...     model = read_wcnf(path)
    >>> model.log_potential({"1": 1, "2": 0}), model.log_potential({"1": 0, "2": 0})
    (-3.0, -inf)
    """
    return parse_wcnf(load(path), beta=beta)


def parse_wcnf(source: Source, *, beta: float = 1.0) -> FactorGraph:
    """Return the model in the content of a file."""
    beta = read_beta(beta)
    data = _COMMENT.sub(lambda match: b" " * len(match[0]), source.data)
    problem = _PROBLEM.search(data)
    n, declared, top = _read_problem(source, problem)
    start = 0
    if problem:
        if data[: problem.start()].strip():
            raise source.error("expected the line 'p wcnf' before the clauses.", problem.start())
        start = problem.end()
    marks = np.array([match.start(1) - start for match in _HARD.finditer(data, start)], np.int64)
    if problem is None:
        data = _HARD.sub(lambda match: match[0][:-1] + b"1", data)
    numbers = Numbers(Source(source.name, data), start)
    values = numbers.values
    ends = np.flatnonzero(values == 0)
    if not len(values) or len(ends) == 0 or ends[-1] != len(values) - 1:
        raise numbers.error(len(values), "the file ends here; expected a clause that ends with 0.")
    starts = np.concatenate([[0], ends[:-1] + 1])
    if declared is not None and len(starts) != declared:
        raise source.error(
            f"{declared:,} clauses are declared, but {len(starts):,} are there.", problem and problem.start()
        )
    hard = np.zeros(len(values), np.bool_)
    hard[np.searchsorted(numbers.places(), marks)] = True
    weights, hard = values[starts], hard[starts]
    if top is not None:
        hard = weights >= top
    fine = (weights > 0) & (weights < 1e20)
    if not fine.all():
        k = int(starts[np.argmin(fine)])
        raise numbers.error(k, f"expected a weight, a positive number below 1e20, found {values[k]:g}.")
    literals = np.ones(len(values), np.bool_)
    literals[starts] = literals[ends] = False
    most = n if n is not None else 2**31 - 2
    right = ~literals | ((np.abs(values) <= most) & (values == np.floor(values)))
    numbers.require(right, f"expected the number of a variable, from 1 to {most}, or its negative, found {{}}.")
    used = int(np.abs(values[literals]).max(initial=0))
    n = used if n is None else n
    if n > len(np.unique(np.abs(values[literals]))) + FREE_STATES + 2 * len(values):
        raise source.error(f"there are {n:,} variables, most of them in no clause.")
    return _build(numbers, n, starts, ends, np.where(hard, -np.inf, -beta * weights))


def _read_problem(source: Source, problem: re.Match[bytes] | None) -> tuple[int | None, int | None, float | None]:
    """Return the numbers of variables and clauses, and the weight of hard clauses, of the older format."""
    if problem is None:
        return None, None, None
    words = (problem[1] or b"").split()
    if words[:1] != [b"wcnf"] or len(words) not in (3, 4) or not all(w.isdigit() and len(w) < 20 for w in words[1:]):
        raise source.error("expected 'p wcnf VARIABLES CLAUSES' and, if there are hard clauses, TOP.", problem.start())
    n, declared, *top = map(int, words[1:])
    if n >= 2**31 - 1:
        raise source.error(f"a model has fewer than 2**31 sites, found {n:,}.", problem.start())
    return n, declared, float(top[0]) if top else np.inf


def _build(numbers: Numbers, n: int, starts: Ints, ends: Ints, logs: Floats) -> FactorGraph:
    values = numbers.values
    sizes = ends - starts - 1
    offset, spare = 0.0, _ENTRIES
    groups = []
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        if size == 0:
            if np.isinf(logs[rows]).any():
                k = int(starts[rows[np.argmax(np.isinf(logs[rows]))]])
                raise numbers.error(k, "this hard clause has no literals, so that no state satisfies it.")
            offset += float(logs[rows].sum())
            continue
        clauses = values[starts[rows][:, None] + 1 + np.arange(size)].astype(np.int64)
        clauses = np.take_along_axis(clauses, np.argsort(np.abs(clauses), axis=1, kind="stable"), axis=1)
        twice = (np.abs(clauses[:, 1:]) == np.abs(clauses[:, :-1])).any(axis=1)
        parts = [(clauses[~twice], logs[rows[~twice]])]
        for clause, log in zip(clauses[twice].tolist(), logs[rows[twice]].tolist(), strict=True):
            short = sorted(set(clause), key=abs)
            if len({*map(abs, short)}) == len(short):  # otherwise a variable or its negation always holds
                parts.append((np.array([short]), np.array([log])))
        for part, part_logs in parts:
            length = part.shape[1]
            spare -= len(part) << length
            if length > MOST_MEMBERS or spare < 0:
                k = int(starts[rows[0]])
                raise numbers.error(
                    k,
                    f"the tables of clauses of up to {length} literals have more than {_ENTRIES:,} entries; "
                    "split long clauses.",
                )
            if len(part):
                groups.append(_tables(part, part_logs))
    domains = Domains(SiteNames(n, None, np.arange(1, n + 1, dtype=np.int32)), ((0, 1),), np.zeros(0, np.int32))
    try:
        for group in groups:
            group.check(domains)
    except ModelError as error:
        raise numbers.source.error(str(error)) from None
    return _restore(domains, tuple(groups), offset, {}, {})


def _tables(clauses: Ints, logs: Floats) -> TableFactors:
    """Return clauses of equal length as tables whose entry is not zero where all literals are false."""
    m, size = clauses.shape
    tables = np.zeros((m, 1 << size))
    false = ((clauses < 0) << np.arange(size)[::-1]).sum(axis=1)
    tables[np.arange(m), false] = logs
    return TableFactors((np.abs(clauses) - 1).astype(np.int32), tables.reshape(m, *[2] * size))


register(
    name="wcnf",
    suffixes=(".wcnf",),
    parse=parse_wcnf,
    recognise=re.compile(rb"(?:\s++|c(?:[ \t][^\n]*+)?\n)*+(?:p[ \t]++wcnf\b|h[ \t]++(?:-?\d++[ \t]++)*+0\s)").match,
)
