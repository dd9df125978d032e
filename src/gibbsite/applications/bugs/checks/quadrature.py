"""Conditional distributions of one number, normalised numerically."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gibbsite._common.arrays import Floats, Ints

_GRID = 4001
_FEW_CELLS = 200  # that hold nearly all
_DEEPEST = 45.0  # log-densities this far below the largest are left out


def multinomial_p(seen: Ints, law: Floats) -> float:
    """Return a p-value of counts: the smallest of exact binomial tests, times their number."""
    from scipy.stats import binom

    total = seen.sum()
    both = 2.0 * np.minimum(binom.cdf(seen, total, law), binom.sf(seen - 1, total, law))
    return float(min(1.0, both.min() * seen.size))


def whole_numbers(log_density: Callable[[Floats], Floats], here: float) -> tuple[Floats, Floats]:
    """Return whole numbers and their weights."""
    low, high = here, here
    found = {here: float(log_density(np.array([here]))[0])}
    for step in (-1.0, 1.0):
        at, bad = here, 0
        while bad < 12:
            at += step
            found[at] = float(log_density(np.array([at]))[0])
            bad = bad + 1 if found[at] < max(found.values()) - _DEEPEST else 0
        low, high = min(low, at), max(high, at)
    grid = np.array(sorted(found))
    logs = np.array([found[each] for each in grid.tolist()])
    return grid, np.exp(logs - logs.max())


def _edge(log_density: Callable[[Floats], Floats], outside: float, inside: float) -> float:
    """Return the last point of positive density between a point of positive density and another one."""
    if log_density(np.array([outside]))[0] > -np.inf:
        return outside
    for _ in range(60):
        middle = 0.5 * (outside + inside)
        if log_density(np.array([middle]))[0] > -np.inf:
            inside = middle
        else:
            outside = middle
    return inside


def real_numbers(log_density: Callable[[Floats], Floats], here: float) -> tuple[Floats, Floats]:
    """Return edges of cells that hold the conditional distribution, and their weights."""
    low, high = here, here
    for sign in (-1.0, 1.0):
        step, top = 1e-3 * max(1.0, abs(here)), -np.inf
        for _ in range(60):
            at = here + sign * step
            value = float(log_density(np.array([at]))[0])
            top = max(top, value)
            if sign < 0.0:
                low = at
            else:
                high = at
            if value < top - _DEEPEST or not value > -np.inf:
                break
            step *= 2.0
    for _ in range(30):  # zoom in on what matters
        coarse = np.linspace(low, high, 201)
        logs = log_density(coarse)
        inside = np.flatnonzero(logs > logs.max() - _DEEPEST)
        new = coarse[max(inside[0] - 1, 0)], coarse[min(inside[-1] + 1, 200)]
        done = new[1] - new[0] > 0.7 * (high - low)
        low, high = new
        if done:
            break
    middle = float(coarse[logs.argmax()])
    low, high = _edge(log_density, low, middle), _edge(log_density, high, middle)
    grid = np.linspace(low, high, _GRID)
    logs = log_density(0.5 * (grid[1:] + grid[:-1]))
    weights = np.exp(logs - logs.max())
    if weights.sum() ** 2 < _FEW_CELLS * (weights**2).sum():  # heavy tails: cells grow with the distance from here
        scale = 1e-3 * max(1.0, abs(here))
        ends = np.arcsinh((np.array([low, high]) - here) / scale)
        grid = here + scale * np.sinh(np.linspace(ends[0], ends[1], 4 * _GRID))
        logs = log_density(0.5 * (grid[1:] + grid[:-1]))
        weights = np.exp(logs - logs.max()) * np.diff(grid)
    return grid, weights
