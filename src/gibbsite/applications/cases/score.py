"""How well a model predicts cases: log-likelihood, and accuracy, log loss and calibration for a target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import escaped
from gibbsite.applications.cases.reading import read_case_table
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.inference.exact.cases import CaseTree
from gibbsite.inference.questions.cases import CaseSolver
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph
from gibbsite.models.domain import Label
from gibbsite.sampling.executor import read_threads

_LEAST = 1e-300  # a probability of zero that came true has an infinite loss


@dataclass(frozen=True)
class CalibrationBin:
    """Predictions between two probabilities: their mean, how often they came true, and how many there are."""

    low: float
    high: float
    predicted: float
    observed: float
    count: int


@dataclass(frozen=True)
class CaseScore(Shown):
    """How well a model predicts cases.

    Attributes
    ----------
    rows : int
        Cases that were scored.
    log_likelihood : float
        Sum of the logarithms of the probabilities of the cases; minus infinity if one is impossible. The log-partition
        function is subtracted for models that are not Bayesian networks.
    target : str or None
        The site that was predicted from all other cells.
    labels : tuple
        Its states.
    predicted_rows : int
        Cases in which the target is known.
    accuracy : float
        Share of the cases in which the most probable state came true.
    log_loss : float
        Mean of minus the logarithm of the probability of what came true.
    brier : float
        Mean of the squared distance between predicted probabilities and what came true.
    confusion : int array (states, states)
        Cases by what came true (rows) and what was most probable (columns).
    calibration : tuple of CalibrationBin
        Probabilities of all states, in bins of equal width, and how often these states came true.
    problems : dict
        Row -> why it was left out.

    Examples
    --------
    >>> import gibbsite as gs
    >>> cases = {"xray": ["yes", "no", "no"], "lung": ["yes", "no", "yes"], "smoke": ["yes", "no", "yes"]}
    >>> found = gs.applications.score_cases(gs.example("asia"), cases, "lung")
    >>> found.accuracy, found.confusion.tolist(), round(found.log_likelihood, 4)
    (0.6666666666666666, [[1, 1], [0, 1]], -10.6884)
    """

    rows: int
    log_likelihood: float
    target: str | None
    labels: tuple[Label, ...]
    predicted_rows: int
    accuracy: float
    log_loss: float
    brier: float
    confusion: Ints
    calibration: tuple[CalibrationBin, ...]
    problems: dict[int, str]

    @property
    def calibration_error(self) -> float:
        """Mean distance between predicted probabilities and frequencies, over the bins by their counts."""
        full = [one for one in self.calibration if one.count]
        gaps = sum(one.count * abs(one.predicted - one.observed) for one in full)
        return gaps / max(sum(one.count for one in full), 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data; the schema of ``gibbsite score --json``."""
        found: dict[str, Any] = {"rows": self.rows}
        found["log_likelihood"] = self.log_likelihood if math.isfinite(self.log_likelihood) else None
        if self.target is not None:
            found |= {"target": self.target, "states": [str(label) for label in self.labels]}
            found |= {"predicted_rows": self.predicted_rows, "accuracy": self.accuracy, "brier": self.brier}
            found["log_loss"] = self.log_loss if math.isfinite(self.log_loss) else None
            found |= {"confusion": self.confusion.tolist(), "calibration_error": self.calibration_error}
            found["calibration"] = [asdict(one) for one in self.calibration if one.count]
        found["problems"] = list(self.problems.values())
        return found

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the answer line by line."""
        yield f"{self.rows:,} cases, log-likelihood {self.log_likelihood:.6g}"
        if self.target is None:
            return
        yield (
            f"{escaped(self.target)}: accuracy {self.accuracy:.4f}, log loss {self.log_loss:.4f}, Brier score "
            f"{self.brier:.4f}, calibration error {self.calibration_error:.4f} ({self.predicted_rows:,} cases)"
        )
        names = [escaped(label) for label in self.labels]
        width = max(len("came true"), *(len(name) for name in names), len(f"{self.confusion.max(initial=0):,}"))
        yield f"{'came true':<{width}}  " + "  ".join(f"{name:>{width}}" for name in names) + "   (most probable)"
        for name, counts in zip(names, self.confusion.tolist(), strict=True):
            yield f"{name:<{width}}  " + "  ".join(f"{count:>{width},}" for count in counts)
        yield "probability    predicted  came true  cases"
        for one in self.calibration:
            if one.count:
                place = f"{one.low:.2f} to {one.high:.2f}"
                yield f"{place}   {one.predicted:<9.4f}  {one.observed:<9.4f}  {one.count:,}"


@checked
def score_cases(
    model: FactorGraph, cases: Any, target: str | None = None, *, bins: int = 10, threads: int | None = None
) -> CaseScore:
    """Return how probable cases are under a model, and how well it predicts a target from the other cells.

    Parameters
    ----------
    model : FactorGraph
        A model that can be solved exactly, usually a Bayesian network.
    cases : pandas.DataFrame, mapping of columns, or path
        As in :func:`solve_cases`.
    target : site, optional
        The column to predict.
    bins : int
        Number of bins of the calibration table.
    threads : int, optional
        All cores by default.

    Examples
    --------
    >>> import gibbsite as gs
    >>> round(gs.applications.score_cases(gs.example("asia"), {"smoke": ["yes", "no"]}).log_likelihood, 6)
    -1.386294
    """
    solver = CaseSolver(model)
    if not solver.is_exact:
        raise TooLargeError(f"Scores need an exact solution: {solver.chosen[1]}.")
    bins = check_integer("bins", bins, 1)
    table = read_case_table(model, cases)
    tree = CaseTree(model, threads=read_threads(threads))
    good = np.array([row not in table.problems for row in range(len(table))])
    codes = np.asarray(table.codes, np.int64)[good]
    logs, _ = tree.solve(codes, marginals=False)
    total = float((logs - tree.solve(np.full((1, model.n_sites), -1))[0][0]).sum())
    if target is None:
        nothing = np.zeros((0, 0), np.int64)
        return CaseScore(len(codes), total, None, (), 0, math.nan, math.nan, math.nan, nothing, (), table.problems)
    at = model.index(target)
    true = codes[:, at].copy()
    if not (true >= 0).any():
        raise ArgumentError(f"The cases do not say what {target!r} was; the column is missing or empty.")
    codes[:, at] = -1
    codes, true = codes[true >= 0], true[true >= 0]
    _, cells = tree.solve(codes)
    p = cells[:, solver.cells_of(target)]
    possible = ~np.isnan(p).any(axis=1)
    p, true = p[possible], true[possible]
    return CaseScore(
        int(good.sum()),
        total,
        model.sites[at],
        model.labels(at),
        len(true),
        *_measure(p, true),
        _count_confusion(p, true),
        _calibrate(p, true, bins),
        table.problems,
    )


def _measure(p: Floats, true: Ints) -> tuple[float, float, float]:
    """Return accuracy, log loss and Brier score."""
    if not len(true):
        return math.nan, math.nan, math.nan
    of_true = p[np.arange(len(true)), true]
    hit = np.zeros(p.shape)
    hit[np.arange(len(true)), true] = 1.0
    loss = math.inf if (of_true <= _LEAST).any() else float(-np.log(of_true).mean())
    return float((p.argmax(axis=1) == true).mean()), loss, float(((p - hit) ** 2).sum(axis=1).mean())


def _count_confusion(p: Floats, true: Ints) -> Ints:
    found = np.zeros((p.shape[1], p.shape[1]), np.int64)
    np.add.at(found, (true, p.argmax(axis=1)), 1)
    return found


def _calibrate(p: Floats, true: Ints, bins: int) -> tuple[CalibrationBin, ...]:
    hit = np.zeros(p.shape)
    hit[np.arange(len(true)), true] = 1.0
    # rounding must not move probabilities such as 0.9 into the bin below
    which = np.minimum((p * bins + 1e-9).astype(np.int64), bins - 1).ravel()
    counts = np.bincount(which, minlength=bins)
    sums = np.bincount(which, p.ravel(), bins), np.bincount(which, hit.ravel(), bins)
    means = [np.divide(each, counts, out=np.full(bins, np.nan), where=counts > 0) for each in sums]
    return tuple(
        CalibrationBin(k / bins, (k + 1) / bins, float(means[0][k]), float(means[1][k]), int(counts[k]))
        for k in range(bins)
    )
