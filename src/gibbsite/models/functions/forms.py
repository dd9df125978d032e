"""Ready-made factors that are functions: logistic, mixture, normal, product, difference.

Each has the bounds and slopes that minibatch methods need; those that are no polynomials state their growth, too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.functions.factors import FunctionFactors, read_scopes


def logistic(value: Floats, parameters: Floats) -> Any:
    """Return log(1 / (1 + exp(-t))) for t = parameters . value."""
    t = 0.0
    for k in range(value.size):
        t += value[k] * parameters[k]
    return -np.log1p(np.exp(-t)) if t > 0 else t - np.log1p(np.exp(t))


def _logistic_bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    extremes = np.stack([p * low, p * high])
    least, most = extremes.min(axis=0).sum(axis=1), extremes.max(axis=0).sum(axis=1)
    return -np.logaddexp(0.0, -least), -np.logaddexp(0.0, -most)


def _logistic_slopes(p: Floats, low: Floats, high: Floats) -> Floats:
    return np.asarray(np.linalg.norm(p, axis=1))


def _reach(low: Floats, high: Floats, rho: float) -> Floats:
    """Return the half axis of the ellipse across an interval, which is the largest distance from the interval."""
    return 0.25 * (high - low) * (rho - 1.0 / rho)


def _over_cosine(values: Floats, angle: Floats) -> Floats:
    """Return values / cos(angle / 2); infinity for angles of pi and more.

    For complex r of this angle, abs(1 + r) is at least (1 + abs(r)) cos(angle / 2).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(angle < np.pi, values / np.cos(0.5 * np.minimum(angle, np.pi)), np.inf)
    return found


def _logistic_growth(p: Floats, low: Floats, high: Floats, rho: float) -> Floats:
    """Bound the derivative 1 / (1 + exp(t)) in the ellipse, where t has an imaginary part of at most ``away``."""
    away = np.abs(p) * _reach(low, high, rho)
    least = np.minimum(p * low, p * high).sum(axis=1)[:, None] - away
    return away * _over_cosine(1.0 / (1.0 + np.exp(np.minimum(least, 700.0))), away)


def _sizes(least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest absolute value of numbers between two others."""
    return np.maximum(np.maximum(least, -most), 0.0), np.maximum(np.abs(least), np.abs(most))


def _spread(given: Any, shape: tuple[int, ...], what: str) -> Floats:
    """Return one number for all factors, or one for each."""
    values = read_reals(given, what)
    if values.shape not in ((), (1,), shape):
        raise ModelError(f"{what} have shape {values.shape}; expected a number or an array of shape {shape}.")
    found: Floats = np.broadcast_to(values, shape)
    return found


@checked
def logistic_factors(
    scope: npt.ArrayLike, rows: npt.ArrayLike, labels: npt.ArrayLike, *, weight: float = 1.0
) -> FunctionFactors:
    """Return the likelihood of a logistic regression: one factor for each row of the data.

    Parameters
    ----------
    scope : array (coefficients,)
        The sites that are the coefficients, by name or position.
    rows : float array (rows, coefficients)
        The data; a column of ones makes an intercept.
    labels : array (rows,)
        0 or 1 (or -1 and 1, or booleans).
    weight : float
        One over a temperature.

    Examples
    --------
    >>> factors = logistic_factors([0, 1], [[1.0, 0.5], [1.0, -2.0]], [1, 0])
    >>> factors.size, factors.parameters.tolist()
    (2, [[1.0, 0.5], [-1.0, 2.0]])
    """
    given = np.asarray(read_reals(labels, "the labels"))
    if not np.isin(given, (-1, 0, 1)).all() or given.ndim != 1 or np.unique(given).size > 2:
        raise ModelError("the labels of a logistic regression must be two of -1, 0 and 1.")
    sign = np.where(given > 0, 1.0, -1.0)
    table = read_reals(rows, "the rows")
    if table.ndim != 2 or len(table) != given.size:
        raise ModelError(f"the rows have shape {table.shape}; expected one for each of {given.size} labels.")
    signed = table * sign[:, None]
    forms: dict[str, Any] = {"bounds": _logistic_bounds, "slopes": _logistic_slopes, "growth": _logistic_growth}
    return FunctionFactors(logistic, scope, signed, **forms, weight=weight)


_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


def mixture(value: Floats, parameters: Floats) -> Any:
    """Return log(N(y; a, s^2) / 2 + N(y; a + b, s^2) / 2) for values a, b and parameters y, s."""
    s = parameters[1]
    first = (parameters[0] - value[0]) / s
    second = (parameters[0] - value[0] - value[1]) / s
    p, q = -0.5 * first * first, -0.5 * second * second
    top = max(p, q)
    return top + np.log(0.5 * np.exp(p - top) + 0.5 * np.exp(q - top)) - np.log(s) - _LOG_ROOT


def _mixture_bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bound each component by itself, from the distances of y to its mean."""
    s = p[:, 1]
    constant = -np.log(s) - _LOG_ROOT
    near, far = zip(*((a / s, b / s) for a, b in _distances_to_means(p, low, high)), strict=True)
    least = np.logaddexp(-0.5 * far[0] ** 2, -0.5 * far[1] ** 2) - np.log(2.0) + constant
    most = np.logaddexp(-0.5 * near[0] ** 2, -0.5 * near[1] ** 2) - np.log(2.0) + constant
    return least, most


def _distances_to_means(p: Floats, low: Floats, high: Floats) -> list[tuple[Floats, Floats]]:
    """Return the least and the largest distance of the data to the means a and a + b."""
    ends = (low[:, 0], high[:, 0]), (low[:, 0] + low[:, 1], high[:, 0] + high[:, 1])
    return [_sizes(least - p[:, 0], most - p[:, 0]) for least, most in ends]


def _mixture_slopes(p: Floats, low: Floats, high: Floats) -> Floats:
    """Bound a mean of the gradients of both components, (d, 0) and (d, d), with d at most a distance / s^2."""
    first, second = (far / p[:, 1] ** 2 for _, far in _distances_to_means(p, low, high))
    found: Floats = np.maximum(first, np.sqrt(2.0) * second)
    return found


def _mixture_growth(p: Floats, low: Floats, high: Floats, rho: float) -> Floats:
    """Bound a mean of the gradients of both components, whose weights are complex in the ellipse.

    With the distances u and w of the datum to the means, the angle of the ratio of the components is b Im(u) / s^2
    where the first site moves, and Re(w) Im(w) / s^2 where the second one does.
    """
    square = p[:, 1] ** 2
    (_, first), (_, second) = _distances_to_means(p, low, high)
    away = _reach(low, high, rho)
    near, far = away[:, 0], away[:, 1]
    shift = np.maximum(np.abs(low[:, 1]), np.abs(high[:, 1]))
    both = _over_cosine(near * (np.maximum(first, second) + near) / square, near * shift / square)
    one = _over_cosine(far * (second + far) / square, far * (second + far) / square)
    return np.stack([both, one], axis=1)


@checked
def mixture_factors(scope: npt.ArrayLike, data: npt.ArrayLike, sd: float, *, weight: float = 1.0) -> FunctionFactors:
    """Return the likelihood of a mixture of two normals with means a and a + b, one factor for each datum.

    Parameters
    ----------
    scope : two sites
        The sites a and b, by name or position.
    data : float array
        The data.
    sd : float
        Standard deviation of both components.
    weight : float
        One over a temperature.

    Examples
    --------
    >>> mixture_factors([0, 1], [0.3, 1.2, -0.5], sd=2.0**0.5).size
    3
    """
    values = read_reals(data, "data").ravel()
    if not math.isfinite(sd) or sd <= 0:
        raise ModelError(f"sd must be a positive number, got {sd!r}.")
    parameters = np.stack([values, np.full(values.size, float(sd))], axis=1)
    forms: dict[str, Any] = {"bounds": _mixture_bounds, "slopes": _mixture_slopes, "growth": _mixture_growth}
    return FunctionFactors(mixture, scope, parameters, **forms, weight=weight)


def normal(value: Floats, parameters: Floats) -> Any:
    """Return -(x - mean)^2 / (2 sd^2) for parameters mean, sd."""
    z = (value[0] - parameters[0]) / parameters[1]
    return -0.5 * z * z


def _normal_bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    near, far = _sizes((low[:, 0] - p[:, 0]) / p[:, 1], (high[:, 0] - p[:, 0]) / p[:, 1])
    return -0.5 * far**2, -0.5 * near**2


def _normal_slopes(p: Floats, low: Floats, high: Floats) -> Floats:
    return np.asarray(_sizes(low[:, 0] - p[:, 0], high[:, 0] - p[:, 0])[1] / p[:, 1] ** 2)


@checked
def normal_factors(
    sites: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike, *, weight: float = 1.0, always: bool = False
) -> FunctionFactors:
    """Return normal factors of single sites, as priors or measurements.

    Examples
    --------
    >>> normal_factors([0, 1], mean=0.0, sd=[1.0, 2.0]).parameters.tolist()
    [[0.0, 1.0], [0.0, 2.0]]
    """
    where = np.atleast_1d(read_scopes(sites))
    mean, sd = (_spread(part, where.shape, what) for part, what in ((mean, "mean"), (sd, "sd")))
    if not (sd > 0).all():
        raise ModelError("the standard deviations of normal factors must be positive.")
    parameters = np.stack([mean, sd], axis=1)
    forms: dict[str, Any] = {"bounds": _normal_bounds, "slopes": _normal_slopes}
    return FunctionFactors(normal, where[:, None], parameters, **forms, weight=weight, degree=2, always=always)


def product(value: Floats, parameters: Floats) -> Any:
    """Return w x y, the coupling of two continuous spins."""
    return parameters[0] * value[0] * value[1]


def _product_bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    corners = np.stack([a * b for a in (low[:, 0], high[:, 0]) for b in (low[:, 1], high[:, 1])]) * p[:, 0]
    return corners.min(axis=0), corners.max(axis=0)


def _product_slopes(p: Floats, low: Floats, high: Floats) -> Floats:
    return np.asarray(np.abs(p[:, 0]) * np.linalg.norm(np.maximum(np.abs(low), np.abs(high)), axis=1))


@checked
def product_factors(pairs: npt.ArrayLike, couplings: npt.ArrayLike, *, weight: float = 1.0) -> FunctionFactors:
    """Return the couplings of continuous spins: ``coupling * x_i * x_j`` for each pair.

    Examples
    --------
    >>> product_factors([[0, 1], [1, 2]], 0.5).size
    2
    """
    forms = {"bounds": _product_bounds, "slopes": _product_slopes}
    return _pair_factors(product, pairs, couplings, "couplings", **forms, weight=weight, degree=1)


def _pair_factors(function: Any, pairs: npt.ArrayLike, given: npt.ArrayLike, what: str, **how: Any) -> FunctionFactors:
    """Return factors of pairs with one parameter each."""
    where = np.atleast_2d(read_scopes(pairs))
    return FunctionFactors(function, where, _spread(given, (len(where),), what)[:, None], **how)


def difference(value: Floats, parameters: Floats) -> Any:
    """Return -w (x - y)^2 / 2, the Gaussian coupling of two sites."""
    d = value[0] - value[1]
    return -0.5 * parameters[0] * d * d


def _difference_bounds(p: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    near, far = _sizes(low[:, 0] - high[:, 1], high[:, 0] - low[:, 1])
    ends = np.stack([-0.5 * p[:, 0] * far**2, -0.5 * p[:, 0] * near**2])
    return ends.min(axis=0), ends.max(axis=0)


def _difference_slopes(p: Floats, low: Floats, high: Floats) -> Floats:
    _, far = _sizes(low[:, 0] - high[:, 1], high[:, 0] - low[:, 1])
    return np.asarray(np.sqrt(2.0) * np.abs(p[:, 0]) * far)


@checked
def difference_factors(pairs: npt.ArrayLike, precisions: npt.ArrayLike, *, weight: float = 1.0) -> FunctionFactors:
    """Return Gaussian couplings of pairs: ``-precision * (x_i - x_j)**2 / 2``.

    Examples
    --------
    >>> difference_factors([[0, 1]], 2.0).size
    1
    """
    forms = {"bounds": _difference_bounds, "slopes": _difference_slopes}
    return _pair_factors(difference, pairs, precisions, "precisions", **forms, weight=weight, degree=2)
