"""Answers for many cases of evidence: probabilities of targets, or most probable states, a row for each case."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument, escaped, unknown
from gibbsite.applications.cases.reading import CaseTable, read_case_table
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.inference.exact.cases import CaseTree
from gibbsite.inference.questions.cases import CaseSolver
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph
from gibbsite.models.domain import Label
from gibbsite.sampling.executor import read_threads

if TYPE_CHECKING:
    import pandas

_BLOCK = 4096  # cases that are solved between two looks at interrupts
IMPOSSIBLE = "the observations are impossible together"
UNSURE = "not converged"


class Block(NamedTuple):
    """Answers for some consecutive cases; ``cells`` and ``errors`` are those of the targets, one after another."""

    first: int
    cells: Floats
    errors: Floats | None
    states: Ints | None
    log_evidence: Floats
    problems: dict[int, str]


@dataclass(frozen=True, eq=False, repr=False)
class CaseAnswers(Shown):
    """Answers for many cases.

    Attributes
    ----------
    targets : tuple of str
        The sites that were asked for.
    labels : tuple of tuples
        The states of each.
    cells : float array (rows, cells)
        Probabilities of the states of all targets, one target after another; NaN where a case has no answer. Empty for
        most probable states.
    errors : float array (rows, cells) or None
        Their standard errors; None if they are exact.
    states : int array (rows, targets) or None
        Codes of the most probable states, -1 where a case has no answer.
    log_evidence : float array (rows,)
        Logarithm of the probability of each case in a Bayesian network; in other models log Z. For most probable
        states the log-potential of the state.
    problems : dict
        Row -> why it has no answer, or one that cannot be relied upon.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.applications.solve_cases(gs.example("asia"), {"xray": ["yes", "no", ""]}, ["lung"])
    >>> found.probabilities("lung").round(4).tolist()
    [[0.4887, 0.5113], [0.0012, 0.9988], [0.055, 0.945]]
    """

    targets: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    cells: Floats
    errors: Floats | None
    states: Ints | None
    log_evidence: Floats
    problems: dict[int, str]

    def probabilities(self, target: str) -> Floats:
        """Return the probabilities of the states of a target, a row for each case."""
        if target not in self.targets:
            raise ArgumentError(unknown("target", target, self.targets))
        at = self.targets.index(target)
        first = sum(len(each) for each in self.labels[:at])
        return self.cells[:, first : first + len(self.labels[at])]

    def best(self, target: str) -> list[Label | None]:
        """Return the most probable state of a target in each case, None where there is no answer."""
        if target not in self.targets:
            raise ArgumentError(unknown("target", target, self.targets))
        at = self.targets.index(target)
        if self.states is not None:
            codes = self.states[:, at]
        else:
            p = self.probabilities(target)
            codes = np.where(np.isnan(p).any(axis=1), -1, np.nan_to_num(p).argmax(axis=1))
        return [None if code < 0 else self.labels[at][code] for code in codes.tolist()]

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the answers as a pandas table with a row for each case."""
        from gibbsite.results.dataframe import load_pandas

        rows = list(csv_rows(self.targets, self.labels, self._block(), len(self.log_evidence)))
        names = header(self.targets, self.labels, self.states is None, self.errors is not None)
        frame = load_pandas().DataFrame(rows, columns=names)
        numbers: list[str] = names[1:-1] if self.states is None else names[-2:-1]
        return frame.assign(**{name: load_pandas().to_numeric(frame[name]) for name in numbers})

    def __repr__(self) -> str:
        many, bad = len(self.log_evidence), len(self.problems)
        said = f", {bad:,} with problems" if bad else ""
        return f"CaseAnswers({many:,} case{'s' * (many != 1)}, {len(self.targets):,} targets{said})"

    def lines(self, most: int = 20) -> Iterator[str]:
        """Yield the answers of the first cases as a table."""
        names = header(self.targets, self.labels, self.states is None, self.errors is not None)
        many = len(self.log_evidence)
        shown = min(most, many)
        block = self._block()
        rows = [[_rounded(cell) for cell in row] for row in csv_rows(self.targets, self.labels, block, shown)]
        widths = [max(len(escaped(row[k])) for row in [names, *rows]) for k in range(len(names))]
        for row in [names, *rows]:
            yield "  ".join(f"{escaped(cell):<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        if many > shown:
            yield f"... and {many - shown:,} more cases"

    def _block(self) -> Block:
        return Block(0, self.cells, self.errors, self.states, self.log_evidence, self.problems)


def _rounded(cell: Any) -> str:
    """Return a cell of a table for readers: numbers of the file with four digits."""
    try:
        return f"{float(cell):.4f}" if isinstance(cell, str) and "." in cell else str(cell)
    except ValueError:
        return str(cell)


@checked
def solve_cases(
    model: FactorGraph,
    cases: Any,
    targets: Sequence[str] | None = None,
    *,
    task: str = "MAR",
    threads: int | None = None,
    method: Any = "auto",
    exact: bool = True,
    seconds: float | None = None,
    **run: Any,
) -> CaseAnswers:
    """Answer many cases of evidence about one model.

    Parameters
    ----------
    model : FactorGraph
        The model; evidence that is folded in holds for all cases.
    cases : pandas.DataFrame, mapping of columns, or path
        A row for each case and a column for each site that may be observed; empty cells, NA, NaN, ?, * and None are not
        observed. Columns that are no sites are ignored. A file is CSV, also packed (.gz), or Parquet. Rows with a cell
        that is no state of its site get no answer, and are named in ``problems``.
    targets : sequence of sites, optional
        What to answer about; by default all sites that are not columns, or all sites if there are no others.
    task : {"MAR", "MAP"}
        Probabilities of the targets, or the most probable state of all sites together, of which the targets are shown.
    threads : int, optional
        All cores by default.
    method, exact, seconds, **run
        For models that cannot be solved exactly: as in :func:`gibbsite.infer`, with ``seconds`` for all cases together.

    Returns
    -------
    CaseAnswers

    Raises
    ------
    TooLargeError
        If most probable states are asked for and the model cannot be solved exactly.

    Notes
    -----
    If the model can be solved exactly, one clique tree serves all cases.

    Examples
    --------
    >>> import gibbsite as gs
    >>> cases = {"xray": ["yes", "no"], "smoke": ["yes", "?"]}
    >>> found = gs.applications.solve_cases(gs.example("asia"), cases, ["lung"])
    >>> found.best("lung"), found.problems
    (['yes', 'no'], {})
    """
    table = read_case_table(model, cases)
    names, labels = read_targets(model, table, targets)
    solver = CaseSolver(model, method, exact, seconds, run)
    blocks = list(answer_blocks(solver, table, names, task, threads=threads))

    def joined(name: str) -> Any:
        parts = [getattr(block, name) for block in blocks]
        return None if parts[0] is None else np.concatenate(parts)

    problems = {row: text for block in blocks for row, text in block.problems.items()}
    cells, errors, states, logs = map(joined, ("cells", "errors", "states", "log_evidence"))
    return CaseAnswers(names, labels, cells, errors, states, logs, problems)


def read_targets(
    model: FactorGraph, table: CaseTable, targets: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[tuple[Label, ...], ...]]:
    """Return the targets by name, and their states."""
    if targets is None:
        seen = np.asarray((table.codes >= 0).any(axis=0))
        chosen = [model.sites[k] for k in np.flatnonzero(~seen)]
        names = tuple(chosen or model.sites)
    else:
        names = tuple(dict.fromkeys(model.sites[model.index(site)] for site in targets))
    if not names:
        raise ArgumentError(f"{argument('targets')} is empty; name at least one site.")
    return names, tuple(model.labels(name) for name in names)


def answer_blocks(
    solver: CaseSolver,
    table: CaseTable,
    targets: Sequence[str],
    task: str = "MAR",
    *,
    first: int = 0,
    threads: int | None = None,
    show: Callable[[int, int], None] | None = None,
) -> Iterator[Block]:
    """Yield the answers in blocks of consecutive cases, beginning with a row; ``show`` gets rows done and all rows."""
    if task not in ("MAR", "MAP"):
        raise ArgumentError(unknown("task", task, ("MAR", "MAP")))
    model = solver.model
    if task == "MAP" and not solver.is_exact:
        raise TooLargeError(f"Most probable states of many cases need an exact solution: {solver.chosen[1]}.")
    tree = CaseTree(model, threads=read_threads(threads)) if solver.is_exact else None
    where = np.concatenate([np.arange(*solver.cells_of(name).indices(1 << 62)) for name in targets]).astype(np.int64)
    sites = [model.index(name) for name in targets]
    size = _BLOCK if solver.is_exact else 1
    share = None if solver.seconds is None else solver.seconds / max(len(table), 1)
    for begin in range(first, len(table), size):
        codes = np.asarray(table.codes[begin : begin + size], np.int64)
        rows = range(begin, begin + len(codes))
        problems = {row: table.problems[row] for row in rows if row in table.problems}
        bad = np.array([row - begin for row in problems], np.int64)
        errors: Floats | None = None
        states: Ints | None = None
        if tree is None:
            block, errors, logs = _sample_one(solver, codes[0], targets, where, share, problems, begin)
        elif task == "MAP":
            states, logs = tree.maximise(codes)
            states, block = states[:, sites], np.zeros((len(codes), 0))
            states[bad] = -1
        else:
            logs, cells = tree.solve(codes)
            block = cells[:, where]
            block[bad] = np.nan
        for row in np.flatnonzero(np.isneginf(logs)).tolist():
            problems.setdefault(begin + row, f"row {begin + row + 1}: {IMPOSSIBLE}")
        logs[bad] = np.nan
        yield Block(begin, block, errors, states, logs, problems)
        if show is not None:
            show(begin + len(codes), len(table))


def _sample_one(
    solver: CaseSolver,
    codes: Ints,
    targets: Sequence[str],
    where: Ints,
    share: float | None,
    problems: dict[int, str],
    row: int,
) -> tuple[Floats, Floats, Floats]:
    """Answer one case by a method that samples."""
    nothing = np.full((1, where.size), np.nan)
    if row in problems:
        return nothing, nothing.copy(), np.full(1, np.nan)
    model = solver.model
    case = {model.sites[k]: model.labels(k)[code] for k, code in enumerate(codes.tolist()) if code >= 0}
    own = CaseSolver(model, solver.method, solver.exact, share, solver.run)
    solved = own.solve([case], query=list(targets), log_z=False)
    if solved.reasons:
        problems[row] = f"row {row + 1}: {UNSURE}, {solved.reasons[0]}"
    return solved.cells[:, where], solved.errors[:, where], solved.log_z


def header(
    targets: Sequence[str], labels: Sequence[tuple[Label, ...]], probabilities: bool, errors: bool = False
) -> list[str]:
    """Return the names of the columns of answers.

    Examples
    --------
    >>> header(["lung"], [("yes", "no")], True)
    ['row', 'lung=yes', 'lung=no', 'log_evidence', 'problem']
    """
    if not probabilities:
        return ["row", *targets, "log_potential", "problem"]
    cells = [f"{name}={label}" for name, each in zip(targets, labels, strict=True) for label in each]
    return ["row", *cells, *(f"{cell} +-" for cell in cells if errors), "log_evidence", "problem"]


def csv_rows(
    targets: Sequence[str], labels: Sequence[tuple[Label, ...]], block: Block, rows: int
) -> Iterator[list[Any]]:
    """Yield the rows of a block below :func:`header`; what is not known is empty."""
    logs = block.log_evidence.tolist()
    for k in range(rows):
        row = block.first + k
        if block.states is None:
            numbers = block.cells[k].tolist() + ([] if block.errors is None else block.errors[k].tolist())
            shown: list[Any] = ["" if math.isnan(number) else repr(number) for number in numbers]
        else:
            codes = block.states[k].tolist()
            shown = ["" if code < 0 else each[code] for code, each in zip(codes, labels, strict=True)]
        log = "" if math.isnan(logs[k]) else repr(logs[k])
        yield [row + 1, *shown, log, block.problems.get(row, "")]
