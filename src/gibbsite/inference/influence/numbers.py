"""Influence between sites that are numbers, in Wasserstein distance.

*Distance.* The distance of two distributions of numbers is W, the smallest expected abs(x - y) of a pair x, y that has
the two distributions. Let C_ij bound the change of W of the conditional distribution of site i per unit of change of
site j. Between any two conditions, W of the conditional distributions of i is then at most sum_j C_ij abs(x_j - y_j):
go from one to the other, one site at a time. Couple a chain with the stationary one, and let b bound, site by site, the
expected distance: at first that of the start from a draw of the model; a step on site i, coupled as well as possible,
makes b_i = sum_j C_ij b_j, because expectations are linear. That is the recursion of the Dobrushin variation, so
certificates and scans follow as for states. The *variation* sum_i d_i b_i bounds the difference of the expectations of
all functions f with abs(f(x) - f(y)) <= sum_i d_i abs(x_i - y_i).

*Units.* In units of the distance s_i of the start of each site, b is 1 at first, as it is for states; the influence
becomes C_ij s_j / s_i, and the weights d_i s_i.

*Normal distributions.* With precision matrix Q, the conditional distribution of i is normal, with a variance that does
not depend on the others and the mean mu_i - sum_j Q_ij (x_j - mu_j) / Q_ii. So C_ij = abs(Q_ij) / Q_ii, exactly.

*Log-concave conditionals.* Let U be minus the log-density, on a box. If the second derivative of U by x_i is at least
m_i > 0, and the mixed one by x_i and x_j at most L_ij in absolute value, then C_ij = L_ij / m_i. Proof: let p be the
conditional density of i, F its distribution function, and t the value of x_j. With h the derivative of U by t, p
changes at the rate -(h - E h) p, so the quantiles of p move at the velocity v = (1 / p) times the integral of (h - E h)
p up to x. Integrating by parts, v = -(1 / p) * integral of h'(y) K(x, y) dy with the kernel K(x, y) = F(min(x, y)) (1 -
F(max(x, y))) >= 0. As abs(h') <= L_ij, abs(v) is at most L_ij times tau(x) = (1 / p) * integral of K(x, y) dy, the
Stein kernel of p. Where U'' >= m on an interval, tau <= 1 / m: p(x) tau(x) is the integral of (y - E y) p(y) from x on;
its difference from p(x) / m is at most zero at both ends and has the derivative p (U' / m - (x - E x)), whose second
factor does not decrease, so that the difference first falls and then rises, and is never above zero. W is at most the
expectation of abs(v), integrated over t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_real, read_reals
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.graphs.rows import row_lengths
from gibbsite.inference.influence.matrix import Influence, from_entries, read_influence

if TYPE_CHECKING:
    from gibbsite.models import Gaussian, Model

_MOST_DENSE = 4000  # sites up to which the variances of a sparse normal distribution are computed


def need_normal(model: Any) -> Gaussian:
    """Return a normal distribution, and refuse anything else."""
    from gibbsite.models import Gaussian

    if not isinstance(model, Gaussian):
        raise ArgumentError(
            f"A gs.Gaussian or a gs.FactorGraph is needed, got {type(model).__name__}; for other models of numbers "
            "gs.influence.bound_curvature makes bounds on influence from bounds on second derivatives."
        )
    return model


def normal_influence(model: Gaussian) -> Influence:
    """Return abs(Q_ij) / Q_ii for the precision matrix Q of a normal distribution."""
    precision = model.precision
    if model.sparse:
        entries = precision.tocoo()
        row, column, value = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    else:
        row, column = np.nonzero(precision)
        value = precision[row, column]
    apart = (row != column) & (value != 0.0)
    row, column, value = row[apart], column[apart], value[apart]
    found = from_entries(row, column, np.abs(value) / precision.diagonal()[row], model.n_sites)
    return Influence(found.start, found.neighbour, found.value, np.ones(model.n_sites, bool))


@checked
def bound_curvature(own: Any, mixed: Any) -> Influence:
    """Bound influence by the second derivatives of minus the log-density, for sites with log-concave conditionals.

    Parameters
    ----------
    own : array (sites,)
        A positive lower bound of the second derivative by each site.
    mixed : array or SciPy sparse matrix (sites, sites)
        Upper bounds of the absolute values of the mixed second derivatives; the diagonal is ignored.

    Returns
    -------
    Influence
        ``mixed[i, j] / own[i]``: how much the conditional distribution of site i may move, in Wasserstein distance, per
        unit of change of site j; for ``certify`` and ``dogs``.

    Examples
    --------
    >>> import gibbsite as gs
    >>> influence = gs.influence.bound_curvature([2.0, 4.0], [[0.0, 1.0], [1.0, 0.0]])
    >>> influence.to_dense().tolist()
    [[0.0, 0.5], [0.25, 0.0]]
    """
    least = read_reals(own, "own", dimensions=1)
    bad = np.flatnonzero(~((least > 0) & np.isfinite(least)))
    if bad.size:
        raise ArgumentError(
            f"{argument('own')} must be positive: without a lower bound on the second derivative by site {bad[0]}, "
            f"nothing follows; got {least[bad[0]]}."
        )
    if hasattr(mixed, "tocoo"):
        entries = mixed.tocsr().tocoo()
        shape = tuple(entries.shape)
        row, column, value = entries.row.astype(np.int64), entries.col.astype(np.int64), np.asarray(entries.data, float)
    else:
        dense = read_reals(mixed, "mixed", dimensions=2)
        shape = dense.shape
        row, column = np.nonzero(dense)
        value = dense[row, column]
    if shape != (least.size, least.size):
        raise ArgumentError(f"{argument('mixed')} must have the shape {(least.size, least.size)}, got {shape}.")
    if not ((value >= 0) & np.isfinite(value)).all():
        raise ArgumentError(f"{argument('mixed')} must have finite entries of at least 0: absolute values of bounds.")
    apart = (row != column) & (value != 0.0)
    row, column = row[apart], column[apart]
    return from_entries(row, column, value[apart] / least[row], least.size)


@checked
def start_distance(model: Gaussian, start: Any = None) -> Floats:
    """Return the expected distance of a start from a draw of a normal distribution, site by site.

    Parameters
    ----------
    model : Gaussian
        The model.
    start : array (sites,), float or mapping of site to number, optional
        Where chains start; the mean of the model by default.

    Returns
    -------
    array (sites,)
        E abs(start_i - x_i), for the argument ``distance`` of ``certify`` and ``dogs``.

    Examples
    --------
    >>> import gibbsite as gs
    >>> pair = gs.Gaussian([1.0, 0.0], [[1.0, 0.8], [0.8, 4.0]])
    >>> gs.influence.start_distance(pair).round(3).tolist(), gs.influence.start_distance(pair, 9.0).round(3).tolist()
    ([0.798, 1.596], [8.0, 9.0])
    """
    model = need_normal(model)
    if model.sparse and model.n_sites > _MOST_DENSE:
        raise ArgumentError(
            f"The variances of {model.n_sites} sites with a sparse precision are not computed (at most "
            f"{_MOST_DENSE}); give {argument('distance')}, bounds of the expected distance of the start from a draw."
        )
    sd = np.sqrt(np.diagonal(model.covariance))
    if isinstance(start, Mapping):
        place = np.array(model.mean, np.float64)
        for site, value in start.items():
            place[model.index(site)] = read_real(value, "start")
    else:
        given = model.mean if start is None else read_reals(start, "start")
        if given.shape not in ((), sd.shape):
            raise ArgumentError(
                f"{argument('start')} must be a number, or one for each of {sd.size} sites, got an array of shape "
                f"{given.shape}."
            )
        place = np.broadcast_to(given, sd.shape)
    z = (place - model.mean) / sd
    beyond = np.array([math.erf(abs(each) / math.sqrt(2.0)) for each in z])
    found: Floats = sd * (np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z * z) + np.abs(z) * beyond)
    return found


def has_numbers(model: Model) -> bool:
    """Return whether all sites are numbers of the real line or of intervals."""
    from gibbsite.models.domain import Interval

    return bool(model.domains.numbers.all()) and all(type(kind) is Interval for kind in model.domains.kinds)


def choose_numbers(model: Model, influence: Any) -> Influence:
    """Return the influence that the user gave, checked, or that of a normal distribution."""
    from gibbsite.models import Gaussian

    if influence is not None:
        return read_influence(influence, model.n_sites, most=np.inf)
    if isinstance(model, Gaussian):
        return normal_influence(model)
    raise ArgumentError(
        f"No influence is known for {type(model).__name__}; give {argument('influence')}, as "
        "gs.influence.bound_curvature makes it from bounds on second derivatives."
    )


def read_distance(model: Model, distance: Any) -> Floats:
    """Return the expected distance of the start of each site from a draw of the model; of normal ones at the mean."""
    from gibbsite.models import Gaussian

    if distance is None:
        if isinstance(model, Gaussian):
            return start_distance(model)
        raise ArgumentError(
            f"{argument('distance')} is needed: a bound on the expected distance of the start of a site from a draw of "
            "the model, one number or one for each site."
        )
    given = read_reals(distance, "distance")
    if given.ndim > 1 or (given.ndim == 1 and given.shape != (model.n_sites,)):
        raise ArgumentError(
            f"{argument('distance')} must be a number, or one for each of {model.n_sites} sites, got an array of shape "
            f"{given.shape}."
        )
    found: Floats = np.broadcast_to(given, (model.n_sites,)).astype(np.float64)
    if not ((found > 0) & np.isfinite(found)).all():
        raise ArgumentError(f"{argument('distance')} must be positive and finite, got {found.min():g}.")
    return found


def in_units(influence: Influence, distance: Floats) -> Influence:
    """Return the influence in units of the distance of the start of each site."""
    row = np.repeat(np.arange(distance.size), row_lengths(influence.start))
    value = influence.value * distance[influence.neighbour] / distance[row]
    return Influence(influence.start, influence.neighbour, value, influence.exact)
