"""How kernels in densities are proved: exact draws, a few compiled steps each, and the law again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import units_of
from gibbsite.kernels.protocols import Adaptive, Fallible, Stateful
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import repeatedly, start_chain

Floats = NDArray[np.float64]
Law = Callable[[Floats], dict[str, tuple[Floats, Callable[[Floats], Floats]]]]

FALSE_ALARM = 1e-7  # of one test, all its comparisons together


def move_each(
    model: gs.Model,
    kernel: gs.kernels.Kernel,
    starts: Floats,
    sweeps: int,
    scan: gs.scans.Scan | None = None,
    inspect: bool = True,
) -> Floats:
    """Return where each start gets to in some sweeps."""
    graph = gs.graphs.compile_graph(model)
    kernel.check(graph)
    units = units_of(kernel, graph)
    if units is not None:
        graph = replace(graph, units=units)
    scan = gs.Systematic() if scan is None else scan
    layout = lay_out(model, graph, kernel, gs.Draws([]))
    state = start_chain(graph, kernel, scan, starts[0], stream(7, 0), layout.conditional)
    tape, parameters = layout.empty_tape(graph), kernel.parameters(graph)
    schedule: Any = scan.schedule(graph, model)
    if isinstance(kernel, Adaptive):
        kernel.freeze(state.memory)
    steps = sweeps * graph.n_units
    ends = np.empty_like(starts)
    move = repeatedly(parameters, graph.arrays, schedule, state, tape, 1, steps)
    for k, start in enumerate(starts):
        state.x[:] = start
        if isinstance(kernel, Stateful):
            kernel.forget(state.memory)
        move()
        ends[k] = state.x
    if inspect and isinstance(kernel, Fallible):
        kernel.inspect(model, graph, state.memory)
    return ends


def p_value(law: Law, places: Floats) -> float:
    """Return the smallest Kolmogorov-Smirnov p-value of what a law says about places, times their number."""
    views = law(places)
    return min(float(stats.kstest(seen, cdf).pvalue) for seen, cdf in views.values()) * len(views)


class Grid:
    """A density on a rectangle as a table of fine cells: exact draws, and the laws of both coordinates."""

    def __init__(self, model: gs.LogDensity, low: Floats, high: Floats, cells: int) -> None:
        sides = [np.linspace(a, b, cells + 1) for a, b in zip(low, high, strict=True)]
        self.edges, self.widths = sides, [side[1] - side[0] for side in sides]
        middles = [0.5 * (side[1:] + side[:-1]) for side in sides]
        if len(sides) == 1:
            logs = np.array([model.function(np.array([v])) for v in middles[0]])
        else:
            x, y = np.meshgrid(*middles, indexing="ij")
            logs = model.function(np.stack([x, y]))
        self.mass = np.exp(logs - logs.max())
        self.mass /= self.mass.sum()

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        cells = np.searchsorted(np.cumsum(self.mass.ravel()), rng.random(count))
        at = np.stack(np.unravel_index(np.minimum(cells, self.mass.size - 1), self.mass.shape), axis=1)
        corner = np.stack([side[at[:, k]] for k, side in enumerate(self.edges)], axis=1)
        return corner + rng.random(at.shape) * self.widths

    def law(self, places: Floats) -> dict[str, tuple[Floats, Callable[[Floats], Floats]]]:
        found = {}
        for k, side in enumerate(self.edges):
            rest = tuple(axis for axis in range(len(self.edges)) if axis != k)
            total = np.concatenate([[0.0], np.cumsum(self.mass.sum(axis=rest))])
            found[str(k)] = (places[:, k], lambda t, side=side, total=total: np.interp(t, side, total / total[-1]))
        return found


class Normal:
    """A normal law: exact draws, and how whitened draws are distributed."""

    def __init__(self, mean: Floats, covariance: Floats) -> None:
        self.mean, self.factor = mean, np.linalg.cholesky(covariance)
        self.precision = np.linalg.inv(covariance)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        return self.mean + rng.standard_normal((count, self.mean.size)) @ self.factor.T

    def law(self, places: Floats) -> dict[str, tuple[Floats, Callable[[Floats], Floats]]]:
        white = np.linalg.solve(self.factor, (places - self.mean).T).T
        n = self.mean.size
        views: dict[str, Any] = {str(k): (white[:, k], stats.norm.cdf) for k in range(n)}
        views["sum"] = white.sum(axis=1) / np.sqrt(n), stats.norm.cdf
        views["distance"] = (white**2).sum(axis=1), lambda t: stats.chi2.cdf(t, n)
        return views
