"""Bayesian logistic regression on millions of rows: box priors, and control variates for small minibatches.

The log-likelihood is its parabola at the mode plus a remainder of each row. The parabola is one factor, known exactly
from one pass over the data. The remainder of a row is of third order in the distance from the mode, so its bound on the
box of the posterior is tiny, and minibatch kernels evaluate few rows: L is the sum of the bounds. Nothing is
approximated; the parabola only determines which part of the sum is computed in advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import gibbsite as gs
from gibbsite._common.arguments import checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.models.functions.factors import read_scopes

# The largest third derivative of log(1 / (1 + exp(-t))).
_THIRD = 1.0 / (6.0 * np.sqrt(3.0))
_STEPS = 50


@dataclass(frozen=True)
class LogisticRegression:
    """A logistic regression, ready to be sampled.

    Attributes
    ----------
    model : ContinuousModel
        Coefficients as sites, with control variates.
    plain : ContinuousModel
        The same density, with one factor for each row in full.
    mode, covariance : arrays
        The mode of the likelihood, and the inverse of its curvature at the mode.
    """

    model: gs.ContinuousModel
    plain: gs.ContinuousModel
    mode: Floats
    covariance: Floats


@checked
def logistic_regression(
    rows: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    box: tuple[float, float] = (-10.0, 10.0),
    reach: float = 6.0,
    names: Sequence[str] | None = None,
) -> LogisticRegression:
    """Set up a Bayesian logistic regression with uniform priors on a box.

    Parameters
    ----------
    rows : float array (rows, coefficients)
        The data; add a column of ones for an intercept.
    labels : array (rows,)
        0 or 1 (or booleans, or -1 and 1).
    box : (low, high)
        The prior of every coefficient.
    reach : float
        The box is cut off at this number of standard deviations from the mode; at 6, each coefficient loses a mass of
        about 2e-9.
    names : sequence of str, optional
        Names of the coefficients.

    Returns
    -------
    LogisticRegression

    Raises
    ------
    ModelError
        If the data are invalid, or the likelihood has no mode inside the box, for example because a coefficient
        separates the labels.

    Examples
    --------
    >>> import gibbsite as gs
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(2000, 2))
    >>> labels = rng.random(2000) < 1 / (1 + np.exp(-rows @ [1.0, -0.5]))
    >>> regression = logistic_regression(rows, labels)
    >>> kernel = gs.kernels.ContinuousGibbs(minibatch="auto")
    >>> result = gs.sample(regression.model, kernel, sweeps=200, rng=1, progress=False)
    >>> bool(abs(result.marginals["0"]["mean"] - regression.mode[0]) < 0.1)
    True
    """
    data, signed = _read(rows, labels)
    n = data.shape[1]
    ends = read_reals(box, "box")
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ArgumentError(f"{argument('box')} must be two numbers (low, high), got {describe(box)}.")
    mode, curvature = _find_mode(signed, (float(ends[0]), float(ends[1])))
    covariance: Floats = np.asarray(np.linalg.inv(curvature), float)
    width = reach * np.sqrt(np.diag(covariance))
    low, high = np.maximum(mode - width, ends[0]), np.minimum(mode + width, ends[1])
    called = [str(k) for k in range(n)] if names is None else list(names)
    if len(called) != n:
        raise ArgumentError(f"{n} names are needed, one for each coefficient, got {len(called)}.")
    if not all(isinstance(name, str) for name in called):
        raise ArgumentError(f"{argument('names')} must be texts, got {describe(called)}.")
    sites = {name: gs.Interval(a, b) for name, a, b in zip(called, low, high, strict=True)}
    gradient = signed.T @ _sigmoid(-(signed @ mode))
    scope = np.arange(n)
    model = gs.ContinuousModel(sites, [quadratic_factor(scope, mode, gradient, curvature), _rest(signed, mode)])
    plain = gs.ContinuousModel(sites, [gs.factors.logistic_factors(scope, data, labels)])
    return LogisticRegression(model, plain, mode, covariance)


def _rest(signed: Floats, mode: Floats) -> gs.factors.FunctionFactors:
    """Return the remainder of each row beyond its parabola at the mode."""

    def farthest(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        across = p[:, :-1]
        ends = np.stack([across * (low - mode), across * (high - mode)])
        return ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)

    def bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        # Taylor's remainder: a sixth of the third derivative times the cube of the distance
        far = np.maximum(*np.abs(farthest(p, low, high)))
        most = _THIRD / 6.0 * far**3
        return -most, most

    def slopes(p: Floats, low: Floats, high: Floats) -> Floats:
        far = np.maximum(*np.abs(farthest(p, low, high)))
        found: Floats = 0.5 * _THIRD * far**2 * np.linalg.norm(p[:, :-1], axis=1)
        return found

    parameters = np.concatenate([signed, (signed @ mode)[:, None]], axis=1)
    scope = np.arange(mode.size)
    return gs.factors.FunctionFactors(
        logistic_rest, scope, parameters, bounds=bounds, slopes=slopes, name="logistic rest"
    )


def _sigmoid(t: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -t))


def _read(rows: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, Floats]:
    data, given = read_reals(rows, "the rows of a logistic regression"), read_reals(labels, "labels")
    if data.ndim != 2 or not data.size or given.shape != (len(data),):
        raise ModelError(
            f"a logistic regression needs rows (rows, coefficients) and as many labels, got {data.shape} and "
            f"{given.shape}."
        )
    if not np.isfinite(data).all():
        row = int(np.argwhere(~np.isfinite(data))[0, 0])
        raise ModelError(f"row {row} of the data has an entry that is not finite.")
    if not np.isin(given, (-1, 0, 1)).all() or np.unique(given).size != 2:
        raise ModelError("the labels of a logistic regression must be 0 and 1, or -1 and 1, and both must occur.")
    return data, data * np.where(given > 0, 1.0, -1.0)[:, None]


def _find_mode(signed: Floats, box: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the mode of the likelihood and its curvature there, by Newton's method with halved steps."""
    low, high = box
    mode = np.zeros(signed.shape[1])
    value = -np.logaddexp(0.0, -(signed @ mode)).sum()
    for _ in range(_STEPS):
        p = _sigmoid(-(signed @ mode))
        gradient = signed.T @ p
        curvature = (signed * (p * (1.0 - p))[:, None]).T @ signed
        try:
            move = np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:
            raise ModelError("columns of the data depend on each other; leave some of them out.") from None
        size = 1.0
        while size > 1e-10:
            there = mode + size * move
            now = -np.logaddexp(0.0, -(signed @ there)).sum()
            if now >= value:
                break
            size *= 0.5
        mode, value = there, now
        if not ((mode > low) & (mode < high)).all():
            k = int(np.argmax(np.maximum(low - mode, mode - high)))
            raise ModelError(
                f"the likelihood has no mode inside the box: coefficient {k} leaves {low:g} .. {high:g}; it "
                "may separate the labels."
            )
        if np.abs(move).max() <= 1e-10 * (1.0 + np.abs(mode).max()):
            break
    p = _sigmoid(-(signed @ mode))
    return mode, (signed * (p * (1.0 - p))[:, None]).T @ signed


def quadratic(value: Floats, parameters: Floats) -> Any:
    """Return g . d - d . H d / 2 for d = x - center; parameters are center, g and H, row by row."""
    n = value.size
    total = 0.0
    for i in range(n):
        d = value[i] - parameters[i]
        pull = 0.0
        for j in range(n):
            pull += parameters[2 * n + i * n + j] * (value[j] - parameters[j])
        total += d * (parameters[n + i] - 0.5 * pull)
    return total


def _quadratic_bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bound every product separately, which is valid but not tight."""
    n = low.shape[1]
    reach = np.maximum(np.abs(low - p[:, :n]), np.abs(high - p[:, :n]))
    curve = np.abs(p[:, 2 * n :]).reshape(-1, n, n)
    most = (np.abs(p[:, n : 2 * n]) * reach).sum(axis=1)
    most += 0.5 * np.einsum("fi,fij,fj->f", reach, curve, reach)
    return -most, most


def quadratic_factor(
    scope: npt.ArrayLike, center: npt.ArrayLike, gradient: npt.ArrayLike, curvature: npt.ArrayLike
) -> gs.factors.FunctionFactors:
    """Return one quadratic factor of many sites, g . d - d . H d / 2 with d = x - center, always evaluated."""
    parts = [np.ravel(np.asarray(part, float)) for part in (center, gradient, curvature)]
    n = parts[0].size
    if parts[1].size != n or parts[2].size != n * n or np.size(scope) != n:
        raise ModelError("a quadratic factor needs center and gradient (n,), curvature (n, n) and n sites.")
    return gs.factors.FunctionFactors(
        quadratic,
        read_scopes(scope)[None],
        np.concatenate(parts)[None],
        bounds=_quadratic_bounds,
        degree=2,
        always=True,
        name="quadratic",
    )


def logistic_rest(value: Floats, parameters: Floats) -> Any:
    """Return log(1 / (1 + exp(-t))) minus its parabola at t0, where t = p . x; the parameters are p and t0."""
    n = value.size
    t = 0.0
    for k in range(n):
        t += value[k] * parameters[k]
    t0 = parameters[n]
    d = t - t0
    s = 1.0 / (1.0 + np.exp(t0))
    if abs(d) < 0.05:  # use the series, because the difference of large terms would lose digits
        c = s * (1.0 - s)
        third = c * (1.0 - 2.0 * s)
        fourth = -c * (1.0 - 6.0 * c)
        fifth = third * (1.0 - 12.0 * c)
        sixth = -c * (1.0 - 30.0 * c + 120.0 * c * c)
        # up to terms of d^7 / 5040
        return d * d * d * (third / 6.0 + d * (fourth / 24.0 + d * (fifth / 120.0 + d * sixth / 720.0)))
    now = -np.log1p(np.exp(-t)) if t > 0 else t - np.log1p(np.exp(t))
    then = -np.log1p(np.exp(-t0)) if t0 > 0 else t0 - np.log1p(np.exp(t0))
    return now - then - s * d + 0.5 * s * (1.0 - s) * d * d
