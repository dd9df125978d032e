"""Draws of conditionals at many places, and their positions in the distribution function of the joint density."""

from __future__ import annotations

import functools
import math
import time
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints32, Words64
from gibbsite._common.reals import read_reals
from gibbsite._numba.foreign import Foreign, call_at
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.kinds.conditionals import ConditionalsGraph
from gibbsite.inference.panels import Panels, find_panels, quadrature
from gibbsite.models.conditionals import Conditionals
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import Progress, Status

_NODES = 100  # of the integral over each side of a value
_PANELS = 16  # of equal width, between the smallest and the largest value
_SHARES = 8  # of the values, between which there are more panels
_PANEL_NODES = 6  # of the integral from the last point to a bound
_FAR = 60.0  # a log-density lower than its maximum by this is negligible
_STEPS = 80  # largest number of steps, of growing length, to such a place
_AT_A_TIME = 8  # number of these steps that are evaluated together
_WARMUP = 20  # sweeps before the first place
_LEAST = 1e-12  # closer to 0 or 1, a distribution function is dominated by rounding


class Scores(NamedTuple):
    """Normal scores of all draws of a site (places, draws), the places, and whether the site has states.

    ``impossible`` describes a draw at which the density is zero; it is empty if there was none.
    """

    score: Floats
    places: list[str]
    discrete: bool
    impossible: str


@compiled
def _fill_draws(address: int, x: Floats, out: Floats, words: Words64) -> int:
    """Draw a block many times; return the number of successful draws."""
    many, count = out.shape
    for k in range(many):
        if np.isnan(call_at(address, x, 0, x.size, out, k * count, count, words)):
            return int(k)
    return int(many)


@compiled
def _fill_logs(density: int, x: Floats, site: int, values: Floats, logs: Floats, words: Words64) -> None:
    for k in range(values.size):
        x[site] = values[k]
        logs[k] = call_at(density, x, 0, x.size, x, 0, 0, words)


class Examination:
    """Draws of all blocks at a sequence of places."""

    def __init__(self, model: Conditionals, rng: Any, start: Any) -> None:
        self.model = model
        graph = compile_graph(model)
        self.arrays: ConditionalsGraph = graph.arrays
        self.codes: dict[int, Foreign] = {code.address: code for code in graph.functions}
        self.begun, self.shown = time.monotonic(), math.inf
        seed = (
            int(rng.integers(2**62))
            if isinstance(rng, np.random.Generator)
            else read_entropy(0 if rng is None else rng)
        )
        self.words = stream(seed, 0)
        self.generator = np.random.default_rng(seed)
        self.x = model.draw_start(self.generator) if start is None else read_reals(start, "start")
        if self.x.shape != (model.n_sites,):
            raise ArgumentError(f"start needs {model.n_sites} numbers, got shape {self.x.shape}.")

    def scores(self, places: int, draws: int, show: Progress) -> dict[str, Scores]:
        """Return the normal scores of draws of all sites that have a function."""
        from scipy import special

        domains, graph = self.model.domains, self.arrays
        uniform: dict[int, list[Floats]] = {}
        where: dict[int, list[str]] = {}
        impossible: dict[int, str] = {}
        for _ in range(_WARMUP):
            self._sweep()
        blocks = self._blocks()
        for visit in range(places):
            for block, sites in enumerate(blocks):
                self._show_progress(show, visit * len(blocks) + block, places * len(blocks))
                if graph.address[block] == 0:
                    self._move_by_density(int(sites[0]))
                    continue
                drawn = self._draw(block, sites, draws)
                for k, site in enumerate(sites.tolist()):
                    u, at = self._distribution_of_draws(sites, drawn, k)
                    uniform.setdefault(site, []).append(u)
                    where.setdefault(site, []).append(self.model.place_text(self.x))
                    if at is not None and site not in impossible:
                        impossible[site] = f"the density is zero where {{}} was drawn, {at}"
                self.x[sites] = drawn[-1]
        return {
            domains.names[site]: Scores(
                special.ndtri(np.clip(np.stack(us), _LEAST, 1.0 - _LEAST)),
                where[site],
                bool(graph.card[site]),
                impossible.get(site, ""),
            )
            for site, us in uniform.items()
        }

    def _show_progress(self, show: Progress, done: int, total: int) -> None:
        """Show how many functions have been checked."""
        seconds = time.monotonic() - self.begun
        self.again = functools.partial(self._show_progress, show, done, total)
        self.shown = seconds
        show.show(Status("checking conditionals", done, total, seconds, math.inf, 1, "function"))

    def _blocks(self) -> list[Ints32]:
        return np.split(self.arrays.member, self.arrays.start[1:-1])

    def _sweep(self) -> None:
        for block, sites in enumerate(self._blocks()):
            if self.arrays.address[block]:
                self.x[sites] = self._draw(block, sites, 1)[0]

    def _draw(self, block: int, sites: Ints32, many: int) -> Floats:
        """Draw a block; refuse invalid values of its sites."""
        graph, out = self.arrays, np.zeros((many, sites.size))
        names = self.model.domains.scope_text(sites)
        place, words = self.x.copy(), self.words.copy()
        well = _fill_draws(int(graph.address[block]), place, out, self.words)
        if well < many:
            raised = self.codes[int(graph.address[block])].cause_at(place, np.zeros(sites.size), words)
            why = "failed" if raised is None else f"raised {raised!r}"
            raise ModelError(f"the conditional of {names} {why}, given {self.model.place_text(self.x)}.") from raised
        if not np.array_equal(place, self.x):
            raise ModelError(f"the conditional of {names} changes its argument; let it work on a copy.")
        turns = np.flatnonzero(graph.period[sites] > 0)
        low, period = graph.low[sites[turns]], graph.period[sites[turns]]
        out[:, turns] = low + np.mod(out[:, turns] - low, period)
        inside = (out >= graph.low[sites]) & (out <= graph.high[sites]) & np.isfinite(out)
        inside &= (graph.card[sites] == 0) | (out == np.floor(out))
        if not inside.all():
            row, k = (int(n) for n in np.argwhere(~inside)[0])
            name = self.model.domains.names[int(sites[k])]
            raise ModelError(
                f"the conditional of {names} returned {out[row, k]:g} for {name!r}, which is not a possible value, "
                f"given {self.model.place_text(self.x)}."
            )
        return out

    def _logs(self, place: Floats, site: int, values: Floats) -> Floats:
        """Return the joint log-density along an axis."""
        there, logs = place.copy(), np.empty(values.size)
        _fill_logs(self.arrays.density, there, site, values, logs, self.arrays.nothing)
        wrong = np.isnan(logs) | (logs == math.inf)
        if wrong.any():
            there[site] = values[int(np.argmax(wrong))]
            raised = self.codes[self.arrays.density].cause_at(there, np.zeros(0))
            why = "" if raised is None else f" The function raised {raised!r}."
            raise ModelError(
                f"the joint log-density is {logs[wrong][0]} at {self.model.place_text(there)}.{why}"
            ) from raised
        return logs

    def _distribution_of_draws(self, sites: Ints32, drawn: Floats, k: int) -> tuple[Floats, str | None]:
        """Return the conditional distribution functions, in (0, 1), of drawn values given all other coordinates.

        The second value describes a draw at which the density is zero; it is None if there is none.
        """
        site, values = int(sites[k]), drawn[:, k]
        if sites.size == 1 and not self.arrays.card[site]:
            panels, beyond = self._law(self.x, site, values)
            below, doubtful = panels.below(values)
            logs = np.zeros(values.size)
            logs[doubtful] = self._logs(self.x, site, values[doubtful])
            return (beyond[0] + below) / (beyond.sum() + panels.mass.sum()), self._zero(self.x, sites, drawn, logs)
        u, logs = np.empty(len(drawn)), np.empty(len(drawn))
        axes: dict[bytes, Floats] = {}
        for row, each in enumerate(drawn):
            if time.monotonic() - self.begun - self.shown > 1.0:  # blocks take long
                self.again()
            there = self.x.copy()
            there[sites] = each
            if not self.arrays.card[site]:
                u[row], logs[row] = self._distribution_at(there, site)
                continue
            key = np.delete(each, k).tobytes()
            if key not in axes:
                axes[key] = self._logs(there, site, np.arange(float(self.arrays.card[site])))
            chances = np.exp(axes[key] - axes[key].max())
            upto, code = np.cumsum(chances) / chances.sum(), int(each[k])
            u[row] = upto[code] - self.generator.random() * chances[code] / chances.sum()
            logs[row] = axes[key][code]
        return u, self._zero(self.x, sites, drawn, logs)

    def _zero(self, place: Floats, sites: Ints32, drawn: Floats, logs: Floats) -> str | None:
        if not (logs == -math.inf).any():
            return None
        there = place.copy()
        there[sites] = drawn[int(np.argmin(logs))]
        return self.model.place_text(there)

    def _law(self, place: Floats, site: int, values: Floats) -> tuple[Panels, Floats]:
        """Return the density along an axis, and the masses beyond its first and last panel, up to finite bounds.

        Panels near the values are a fixed share of their range wide, or contain a fixed share of them; farther away
        they grow.
        """
        low, high = float(values.min()), float(values.max())
        knots = [np.linspace(low, high, _PANELS + 1), np.quantile(values, np.linspace(0.0, 1.0, _SHARES + 1))]
        bounds, ends = (self.arrays.low[site], self.arrays.high[site]), []
        for at, side, bound in zip((low, high), (-1.0, 1.0), bounds, strict=True):
            away = self._reach(place, site, at, side)
            away = away[away != bound]
            ends.append(float(np.append(at, away)[-1]))
            step = np.abs(np.diff(away, prepend=at)) >= (high - low) / _PANELS
            knots.append(np.append(away[step][::2], away[-1:]))
        panels = find_panels(functools.partial(self._logs, place, site), np.unique(np.concatenate(knots)))
        if panels is None:
            raise ModelError(
                f"the joint density is zero for all values of {self.model.domains.names[site]!r} given "
                f"{self.model.place_text(place)}; give start=, a place of positive density."
            )
        # the density may be infinite at a bound
        nodes, weights = quadrature(_PANEL_NODES)
        beyond = np.zeros(2)
        for k, (end, bound) in enumerate(zip(ends, bounds, strict=True)):
            if math.isfinite(bound) and end != bound and panels.logs[-k, -k] > panels.top - _FAR:
                half = 0.5 * abs(bound - end)
                logs = self._logs(place, site, 0.5 * (bound + end) + half * nodes)
                beyond[k] = half * (np.exp(np.minimum(logs - panels.top, 700.0)) @ weights)
        return panels, beyond

    def _move_by_density(self, site: int) -> None:
        """Draw a site that has no function from the density itself."""
        panels, _ = self._law(self.x, site, np.array([self.x[site]]))
        upto = np.append(0.0, np.cumsum(panels.mass))
        self.x[site] = np.interp(self.generator.random() * upto[-1], upto, panels.edges)

    def _distribution_at(self, place: Floats, site: int) -> tuple[float, float]:
        """Return the conditional distribution function of a coordinate at its value, and the log-density there."""
        at = float(place[site])
        low, high = (float(np.append(at, self._reach(place, site, at, side))[-1]) for side in (-1.0, 1.0))
        nodes, weights = quadrature(_NODES)
        points = [0.5 * (b - a) * nodes + 0.5 * (a + b) for a, b in ((low, at), (at, high))]
        logs = self._logs(place, site, np.concatenate([*points, [at]]))
        sides = logs[:-1].reshape(2, -1)
        if sides.max() == -math.inf:
            return 0.5, logs[-1]
        below, above = np.exp(sides - sides.max()) @ weights * np.array([at - low, high - at])
        return below / (below + above), logs[-1]

    def _reach(self, place: Floats, site: int, at: float, side: float) -> Floats:
        """Return values on one side of a value (-1 below, 1 above), beyond which there is hardly any mass.

        They are in order of increasing distance.
        """
        bound = self.arrays.low[site] if side < 0 else self.arrays.high[site]
        points = at + side * 1e-3 * (1.0 + abs(at)) * 1.5 ** np.arange(_STEPS)
        points = points[side * (bound - points) > 0]  # excluding the bound itself, at which the density may be infinite
        top = -math.inf
        for first in range(0, points.size, _AT_A_TIME):
            logs = self._logs(place, site, points[first : first + _AT_A_TIME])
            highest = np.maximum(np.maximum.accumulate(logs), top)
            over = np.flatnonzero(logs < highest - _FAR)
            if over.size:
                near: Floats = points[: first + over[0] + 1]
                return near
            top = highest[-1]
        found: Floats = np.append(points, bound) if math.isfinite(bound) else points
        return found
