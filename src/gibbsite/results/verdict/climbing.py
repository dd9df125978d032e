"""Hill climbing from many places at once: quasi-Newton steps, with finite differences if need be.

All climbers make a step at the same time, so that the places of a step are evaluated in one call. A step
goes along the direction of a quasi-Newton method (BFGS); its length is the best of a few that are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Positions

Values = Callable[[Floats], Floats]

WIDTH = 1e-5  # of finite differences, in units of the coordinates
_LENGTHS = 4.0 ** np.arange(1, -7, -1)  # lengths of a step that are tried, times the one of the method
_TRIES = 3
_LITTLE = 1e-3  # a gain of the log-density that is not worth a step


class Ends(NamedTuple):
    """Where climbers have arrived: places (rows) and log-densities; whether they have come to rest."""

    places: Floats
    values: Floats
    rested: Bools


def climb(values: Values, gradients: Values | None, starts: Floats, steps: int, even: bool = False) -> Ends:
    """Climb from places of finite log-density.

    Parameters
    ----------
    values : function
        Returns the log-densities of places (rows), minus infinity or NaN where there is none.
    gradients : function or None
        Returns the gradients at places; None: differences of values are taken.
    starts : float array (climbers, n)
        Where to start, in coordinates whose unit is a natural distance.
    steps : int
        Most steps.
    even : bool
        Take differences to both sides, which cost twice as much and are more exact.

    Examples
    --------
    >>> ends = climb(lambda x: -0.5 * ((x - 3.0) ** 2).sum(axis=1), None, np.array([[40.0, -7.0]]), 50)
    >>> bool(np.abs(ends.places - 3.0).max() < 0.01)
    True
    """
    x = np.array(starts, float)
    many, n = x.shape
    now = _clean(values(x))
    shape = np.broadcast_to(np.eye(n), (many, n, n)).copy()
    plain = np.ones(many, np.bool_)  # whether nothing is known of the curvature
    slope, before = np.zeros((many, n)), np.zeros((many, n))  # gradient before the last step, and that step
    known = np.zeros(many, np.bool_)  # whether there was one
    active = np.isfinite(now)
    rested = ~active
    failed = np.zeros(many, np.int64)  # steps one after another that gained little
    for _ in range(steps):
        go = np.flatnonzero(active)
        if not go.size:
            break
        new = _slopes(values, gradients, x[go], now[go], even)
        _update(shape, plain, go[known[go]], before, slope[go] - new, known[go])
        slope[go] = new
        way = np.einsum("kij,kj->ki", shape[go], new)
        rise = np.einsum("ki,ki->k", way, new)
        lost = ~(rise > 0.0)  # the shape is of no use there
        if lost.any():
            shape[go[lost]], plain[go[lost]] = np.eye(n), True
            way[lost], rise[lost] = new[lost], np.square(new[lost]).sum(axis=1)
        tried = x[go][:, None] + _LENGTHS[:, None] * way[:, None, :]
        found = _clean(values(tried.reshape(-1, n))).reshape(go.size, _LENGTHS.size)
        best = np.argmax(found, axis=1)
        rows = np.arange(go.size)
        gain = found[rows, best] - now[go]
        better = known[go] = gain > 0.0
        moved = go[better]
        before[moved] = tried[rows, best][better] - x[moved]
        x[moved] += before[moved]
        now[moved] = found[rows, best][better]
        shape[go[better & (best == 0)]] *= _LENGTHS[0] ** 2  # further
        little = gain < _LITTLE
        failed[go] = np.where(little, failed[go] + 1, 0)
        done = little & ((rise < _LITTLE) | (failed[go] > _TRIES))
        active[go[done]] = False
        rested[go[done]] = True
        again = go[little & ~done]  # once more along the gradient, at last with shorter steps
        scale = np.where(failed[again] > 1, _LENGTHS[-1] ** (failed[again] - 1), 1.0)
        shape[again] = scale[:, None, None] * np.eye(n)
        plain[again], known[again] = True, False
    return Ends(x, now, rested)


def _clean(values: Floats) -> Floats:
    return np.where(np.isnan(values), -np.inf, values)


def _slopes(values: Values, gradients: Values | None, x: Floats, now: Floats, even: bool) -> Floats:
    """Return the gradients at places; zero where a difference is not finite."""
    if gradients is not None:
        found = gradients(x)
        return np.where(np.isfinite(found), found, 0.0)
    many, n = x.shape
    aside = (x[:, None] + WIDTH * np.eye(n)).reshape(-1, n)
    ahead = _clean(values(aside)).reshape(many, n)
    rises = (ahead - now[:, None]) / WIDTH
    wrong = ~np.isfinite(rises)
    if even or wrong.any():  # at the edge of the support: from the other side
        behind = _clean(values((x[:, None] - WIDTH * np.eye(n)).reshape(-1, n))).reshape(many, n)
        falls = (now[:, None] - behind) / WIDTH
        if even:
            rises = np.where(np.isfinite(falls) & ~wrong, 0.5 * (rises + falls), rises)
        rises = np.where(wrong, falls, rises)
    return np.where(np.isfinite(rises), rises, 0.0)


def _update(shape: Floats, plain: Bools, at: Positions, steps: Floats, falls: Floats, known: Bools) -> None:
    """Update the inverse curvature by the fall of the gradient along a step."""
    s, y = steps[at], falls[known]
    p = np.einsum("ki,ki->k", s, y)
    size = np.linalg.norm(s, axis=1) * np.linalg.norm(y, axis=1)
    good = p > 1e-10 * np.maximum(size, 1e-300)
    if not good.any():
        return
    at, s, y, p = at[good], s[good], y[good], p[good]
    first = plain[at]
    if first.any():  # the scale of the curvature is not known before
        scale = p[first] / np.square(y[first]).sum(axis=1)
        shape[at[first]] = scale[:, None, None] * np.eye(y.shape[1])
    plain[at] = False
    old = shape[at]
    turned = np.einsum("kij,kj->ki", old, y)
    bend = np.einsum("ki,ki->k", y, turned)
    outer = np.einsum("ki,kj->kij", turned, s)
    shape[at] = (
        old
        - (outer + np.swapaxes(outer, 1, 2)) / p[:, None, None]
        + ((1.0 + bend / p) / p)[:, None, None] * np.einsum("ki,kj->kij", s, s)
    )
