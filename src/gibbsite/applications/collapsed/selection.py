"""Which columns of a table explain a number: Bayesian variable selection with a spike and a slab.

A column is in the model with some prior probability; its coefficient then has a normal prior (the slab), otherwise it
is zero (the spike). Coefficients and noise are integrated out, so only the choices are left: a distribution on subsets
of the columns, in which each choice depends on all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number, checked, describe
from gibbsite._common.arrays import Bytes, Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.collapsed.averages import (
    MOST_BATCHES,
    describe_verdict,
    exact_verdict,
    judge_averages,
    unjudged,
    warn_unless_converged,
)
from gibbsite.applications.collapsed.evidence import (
    BINNED,
    FULL,
    GIBBS,
    Regression,
    average_all,
    make_work,
    run_chain,
    weigh_all,
)
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.results.answer import Diagnostics

METHODS = ("auto", "exact", "gibbs", "herded")
_MOST_EXACT = 20  # columns of which all subsets are enumerated
_MOST_FULL = 14  # columns up to which herding has a weight for each state of all others
_BINS = 32  # of conditional probabilities, for herding with more columns
_MODELS = 10  # number of subsets that are listed


@dataclass(frozen=True)
class Selection:
    """The result of a variable selection.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    inclusion : array (columns,)
        Probabilities that the columns are in the model.
    mcse : array (columns,)
        Their standard errors: 0 if exact, NaN if unknown.
    coefficients : array (columns,)
        Posterior means of the coefficients, in the units of the data; columns that are left out count as zero.
    intercept : float
        The intercept that belongs to them.
    models : list of (names, probability)
        The most probable subsets, or the most visited ones with their shares.
    method : str
        "exact", "gibbs" or "herded".
    diagnostics : Diagnostics
        How far to trust it.
    """

    names: tuple[str, ...]
    inclusion: Floats
    mcse: Floats
    coefficients: Floats
    intercept: float
    models: list[tuple[tuple[str, ...], float]]
    method: str
    diagnostics: Diagnostics

    @checked
    def predict(self, X: Any) -> Floats:
        """Return the posterior mean of the number for new rows."""
        table = read_reals(X, "X")
        if table.ndim != 2 or table.shape[1] != len(self.names):
            raise ArgumentError(f"{argument('X')} must have {len(self.names)} columns, got shape {table.shape}.")
        return np.asarray(self.intercept + table @ self.coefficients)

    def summary(self) -> str:
        """Return a table of the columns, the most probable first, and the verdict."""
        width = max(len("column"), *map(len, self.names))
        lines = [f"{'column':<{width}}  inclusion   error  coefficient"]
        for k in np.argsort(-self.inclusion, kind="stable").tolist():
            error = f"{self.mcse[k]:.4f}" if np.isfinite(self.mcse[k]) else "-"
            lines.append(
                f"{self.names[k]:<{width}}  {self.inclusion[k]:9.4f}  {error:>6}  {self.coefficients[k]:11.4g}"
            )
        return "\n".join([*lines, describe_verdict(self.method, self.diagnostics), *self.diagnostics.reasons])

    def __repr__(self) -> str:
        return f"Selection({len(self.names)} columns, {describe_verdict(self.method, self.diagnostics)})"


@checked
def select_variables(
    X: Any,
    y: Any,
    *,
    names: Sequence[str] | None = None,
    inclusion: Any = 0.5,
    slab: float = 1.0,
    method: str = "auto",
    sweeps: int = 2000,
    chains: int = 4,
    rng: int = 1,
) -> Selection:
    """Compute which columns of a table explain a number, by a regression with a spike and a slab.

    Parameters
    ----------
    X : array or DataFrame (rows, columns)
        The columns; they are centred and scaled to a standard deviation of 1.
    y : array (rows,)
        The number.
    names : sequence of str, optional
        Names of the columns, by default those of the DataFrame, or their positions.
    inclusion : float or array (columns,)
        Prior probabilities that columns are in the model, between 0 and 1.
    slab : float
        Prior standard deviation of the coefficients of scaled columns, in units of the noise.
    method : {"auto", "exact", "gibbs", "herded"}
        "exact" adds up all subsets of up to twenty columns; "gibbs" and "herded" average the conditional probabilities
        of the columns over sweeps. Herding has a weight for each state of all other columns, up to 14 of them, which is
        the case with a theorem, otherwise for each of 32 bins of the conditional probability. "auto" is "exact" if
        possible, otherwise "gibbs".
    sweeps : int
        Sweeps of each chain; a tenth of them is left out at the beginning.
    chains : int
        Number of chains, which start from subsets of different sizes.
    rng : int
        Seed.

    Returns
    -------
    Selection

    Warns
    -----
    ConvergenceWarning
        If the chains of Gibbs sampling have not converged.

    References
    ----------
    George and McCulloch (1997), Approaches for Bayesian variable selection.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsite.applications import select_variables
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 6))
    >>> found = select_variables(X, 2.0 * X[:, 1] - X[:, 4] + rng.normal(size=100))
    >>> [name for name, p in zip(found.names, found.inclusion, strict=True) if p > 0.5]
    ['1', '4']
    """
    if method not in METHODS:
        raise ArgumentError(unknown("method", method, METHODS))
    labels, table, target = _read_data(X, y, names)
    prior = _read_prior(inclusion, table.shape[1])
    check_number("slab", slab)
    sweeps = check_integer("sweeps", sweeps, 20)
    chains, rng = check_integer("chains", chains, 1), check_integer("rng", rng, 0)
    columns = table.shape[1]
    if method == "exact" and columns > _MOST_EXACT:
        raise TooLargeError(
            f"The subsets of {columns} columns are too many; an exact sum takes at most {_MOST_EXACT} columns. Use "
            f"{argument('method', 'gibbs')}."
        )
    if method == "auto":
        method = "exact" if columns <= _MOST_EXACT else "gibbs"
    scale, middle = table.std(axis=0), table.mean(axis=0)
    scaled, centred = (table - middle) / scale, target - target.mean()
    data = Regression(
        np.ascontiguousarray(scaled.T @ scaled),
        scaled.T @ centred,
        float(centred @ centred),
        (len(target) - 1) / 2.0,
        float(slab) ** 2,
        np.log(prior) - np.log1p(-prior),
    )
    if method == "exact":
        shares, errors, mean, models, verdict = _sum(data)
    else:
        shares, errors, mean, models, verdict = _sample(data, method, sweeps, chains, rng)
        warn_unless_converged(verdict)
    mean = mean / scale
    return Selection(
        labels,
        shares,
        errors,
        mean,
        float(target.mean() - middle @ mean),
        [(tuple(labels[k] for k in np.flatnonzero(row)), share) for row, share in models],
        method,
        verdict,
    )


def _read_data(X: Any, y: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], Floats, Floats]:
    table, target = read_reals(X, "X"), read_reals(y, "y")
    if table.ndim != 2 or target.shape != table.shape[:1] or len(target) < 4 or not table.shape[1]:
        raise ArgumentError(
            f"{argument('X')} must have at least four rows and a column, and {argument('y')} a number for each row, "
            f"got shapes {table.shape} and {target.shape}."
        )
    if names is None:
        names = [str(name) for name in getattr(X, "columns", range(table.shape[1]))]
    labels = tuple(names)
    if len(labels) != table.shape[1] or not all(isinstance(name, str) for name in labels):
        raise ArgumentError(f"{argument('names')} must be {table.shape[1]} texts, got {describe(names)}.")
    for name, array in (("X", table), ("y", target)):
        if not np.isfinite(array).all():
            raise ArgumentError(f"{argument(name)} has a value that is not a finite number; leave such rows out.")
    still = np.flatnonzero(np.ptp(table, axis=0) <= 1e-12 * np.abs(table).max(axis=0))
    if still.size:
        raise ArgumentError(f"The column {labels[still[0]]!r} has the same value in every row; leave it out.")
    if np.ptp(target) == 0.0:
        raise ArgumentError(f"{argument('y')} has the same value in every row, so there is nothing to explain.")
    return labels, table, target


def _read_prior(inclusion: Any, columns: int) -> Floats:
    prior = read_reals(inclusion, "inclusion")
    if prior.shape not in ((), (columns,)) or not ((prior > 0.0) & (prior < 1.0)).all():
        raise ArgumentError(
            f"{argument('inclusion')} must be a number between 0 and 1, or {columns} of them, got "
            f"{describe(inclusion)}."
        )
    return np.array(np.broadcast_to(prior, (columns,)), float)


def _sum(data: Regression) -> tuple[Floats, Floats, Floats, list[Any], Diagnostics]:
    """Add up all subsets."""
    columns = data.cross.size
    law, work, state = np.zeros(2**columns), make_work(columns), np.zeros(columns, np.uint8)
    weigh_all(data, work, state, law)
    np.exp(law - law.max(), out=law)
    law /= law.sum()
    shares, mean = np.zeros(columns), np.zeros(columns)
    average_all(data, work, state, law, shares, mean)
    best = np.argsort(-law, kind="stable")[:_MODELS]
    models = [(code >> np.arange(columns) & 1, float(law[code])) for code in best.tolist()]
    errors, verdict = exact_verdict(columns)
    return shares, errors, mean, models, verdict


def _sample(
    data: Regression, method: str, sweeps: int, chains: int, rng: int
) -> tuple[Floats, Floats, Floats, list[Any], Diagnostics]:
    """Average conditional probabilities over chains."""
    columns, warmup = data.cross.size, max(sweeps // 10, 1)
    kept = sweeps - warmup
    every = -(-kept // min(kept, MOST_BATCHES))
    trace = np.zeros((chains, kept // every, columns))
    mean, visited = np.zeros(columns), np.zeros((chains, kept, columns), np.uint8)
    how = GIBBS if method == "gibbs" else FULL if columns <= _MOST_FULL else BINNED
    for chain, stream in enumerate(np.random.SeedSequence(rng).spawn(chains)):
        draw, work = np.random.default_rng(stream), make_work(columns)
        state: Bytes = (draw.random(columns) < chain / max(chains - 1, 1) * min(0.5, 10.0 / columns)).astype(np.uint8)
        keys = {GIBBS: 1, BINNED: _BINS, FULL: 2 ** (columns - 1)}[how]
        weights = draw.random((columns, keys))
        nothing, rest = np.zeros((0, columns)), np.zeros(columns)
        first = draw.random((warmup, columns))
        run_chain(data, state, how, first, weights, 1, work, nothing, rest, np.zeros((warmup, columns), np.uint8))
        uniforms = draw.random((kept, columns))
        run_chain(data, state, how, uniforms, weights, every, work, trace[chain], mean, visited[chain])
    subsets, counts = np.unique(visited.reshape(-1, columns), axis=0, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:_MODELS]
    models = [(subsets[k], float(counts[k] / counts.sum())) for k in best.tolist()]
    errors, verdict = judge_averages(trace) if method == "gibbs" else unjudged(columns)
    return trace.mean(axis=(0, 1)), errors, mean / (chains * kept), models, verdict
