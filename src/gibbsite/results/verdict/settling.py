"""The dispersed-start check of models of numbers whose density cannot be climbed: where chains from far away settle.

Models given by conditionals need not have a joint density, models with states beside numbers have hills in
each of their states, and large models are too large to be searched. There, chains of the run's kernel start
up to 300 of its standard deviations away. A chain has *arrived* when the mean of its latest places lies where
such means of the run's own chains lie; it is *approaching* while it comes nearer. A chain that does neither,
after as many sweeps as there are for it, *stays* in another mode, or moves too slowly to tell. Where there is
a joint density, chains that stay where next to nothing of it is, stuck, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import SupportError
from gibbsite.graphs.functions.densities import evaluate_places
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.verdict.convergence import StartCheck
from gibbsite.results.verdict.modes import measure_picture, run_deviations, take_picture
from gibbsite.results.verdict.walkers import Walkers
from gibbsite.sampling.tape import DRAWS

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording


MOST_SITES = 4096
# Chains; the larger number where their first sweeps are a small part of all that may be made, the smaller one where
# each of more chains could be looked at once or twice only, which does not tell whether it is approaching.
CHAINS, _MANY, _FEW = 32, 160, 16
_SHARE = 0.1  # of the sweeps of a run, for these chains
# Sweeps that are made in any case; the larger number where functions are compiled, up to a number of updates.
_SWEEPS, _CHEAP = (16, 256), 1 << 18
_FIRST = 16
_RADII = (3.0, 10.0, 30.0, 100.0, 300.0)
_NEARBY = 4  # one of this number of chains starts as any run would; one of two, where there are few
_LEAST = 3.0  # standard deviations from the run that are near in any case
_NEARER = 0.8  # of its distance: how much nearer a chain must have come to be approaching
_LIGHT = -7.0  # logarithm of a weight, compared with that of the run, that is next to nothing


def has_no_density(graph: Graph) -> bool:
    """Whether the joint density of a model is not known."""
    return getattr(graph.arrays, "density", None) == 0


class Settling:
    """Chains from far away beside a run."""

    def __init__(self, recording: Recording, threads: int) -> None:
        self.setup, self.threads = recording.setup, threads
        self.found: StartCheck | None = None
        self.draws = 0

    def examine(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> StartCheck | str:
        """Let chains settle, and say which of them stay away from the run."""
        draws = int(recording.tapes[0].counters[DRAWS])
        if self.found is not None and self.found.findings.agree and draws < 4 * self.draws:
            return self.found
        if stop(0.0):
            return "no time"
        picture = take_picture(recording, self.threads)
        if picture is None:
            return "impossible"
        found = _Settlers(recording, picture, run_deviations(recording, result), self.threads).run(stop)
        self.setup.graph.take_raised()
        if isinstance(found, StartCheck):
            self.found, self.draws = found, draws
        return found


def _direction(turn: int, size: int, rng: np.random.Generator) -> Floats:
    """Return a direction, of length one: at random, along the diagonal or another one, along an axis, in turn."""
    away = rng.standard_normal(size)
    if turn % 3 == 1:
        away = np.sign(away) if turn % 2 else np.full(size, np.sign(away[0]))
    elif turn % 3 == 2:
        away *= np.abs(away) == np.abs(away).max()
    return away / float(np.linalg.norm(away))


class _Settlers:
    def __init__(self, recording: Recording, picture: Floats, deviations: Floats, threads: int) -> None:
        self.recording, self.threads = recording, threads
        self.setup = recording.setup
        self.model: Any = self.setup.model
        self.picture = picture
        seen = picture.std(axis=(0, 1))
        wide = np.where(np.isfinite(deviations), np.maximum(deviations, seen), seen)
        self.deviations = np.where(wide > 0.0, wide, 1.0)
        self.features = [self._features(chain) for chain in picture]
        everything = np.concatenate(self.features)
        self.middle = everything.mean(axis=0)
        self.spread = everything - self.middle

    def _features(self, places: Floats) -> Floats:
        """Return numbers in standard deviations, angles as directions, states one by one."""
        domains = self.model.domains
        numbers, turns = domains.numbers, domains.periods > 0.0
        plain = places[:, numbers & ~turns] / self.deviations[numbers & ~turns]
        parts = [plain]
        if turns.any():
            angle = 2.0 * np.pi * places[:, turns] / domains.periods[turns]
            parts += [2.0 * np.cos(angle), 2.0 * np.sin(angle)]
        for i in np.flatnonzero(~numbers).tolist():
            codes = np.arange(int(domains.cards[i]))
            parts.append(2.0 * (places[:, i, None] == codes))
        return np.concatenate(parts, axis=1)

    def run(self, stop: Callable[[float], bool]) -> StartCheck | str:
        """Let chains settle."""
        recording, setup = self.recording, self.setup
        length = int(recording.tapes[0].counters[DRAWS]) * setup.plan.thin + recording.warmup
        fewest = _SWEEPS[0]
        if all(code.compiled for code in setup.graph.functions):
            fewest = int(np.clip(_CHEAP / (CHAINS * setup.graph.n_units), *_SWEEPS))
        most = CHAINS * max(fewest, int(_SHARE * len(recording.tapes) * length / CHAINS))
        thin = measure_picture(recording)[1]
        starts = self._starts(int(np.clip(most // (4 * _FIRST * thin), _FEW, _MANY)))
        if len(starts) < 2:
            return "impossible"
        walkers = Walkers(recording, starts, 3, self.threads)
        away = np.arange(len(starts))
        distance = np.full(len(starts), np.inf)
        last: dict[int, Floats] = {}
        done, spent = 0, 0
        approaching = np.zeros(len(starts), np.bool_)
        lost: set[int] = set()
        while away.size and not stop(0.0):
            more = max(_FIRST, done)
            if done and spent + more * thin * away.size > most:
                break
            seen = walkers.walk(more, thin, away.tolist())
            spent += more * thin * away.size
            done += more
            window = min(more, self.picture.shape[1] // 2)
            limit = max(_LEAST, 1.5 * self._own_distance(window) + 1.0)
            still = []
            for k, places in zip(away.tolist(), seen, strict=True):
                if places is None:
                    lost.add(k)
                    continue
                now = self._distance(self._features(places[-window:]).mean(axis=0))
                approaching[k] = now < _NEARER * distance[k] and np.isfinite(distance[k])
                distance[k] = now
                if now > limit:
                    still.append(k)
                    last[k] = places[-window:]
            away = np.array(still, np.intp)
        if not done or len(lost) > len(starts) - 2:
            return "no time" if not done else "impossible"
        staying = [k for k in away.tolist() if not approaching[k]]
        staying = [k for k in staying if self._relative_weight(last[k]) > _LIGHT]
        if not staying:
            return StartCheck(len(starts) - len(lost), done * thin)
        said = self._describe(staying, last, len(starts), done * thin)
        return StartCheck(len(starts) - len(lost), done * thin, Findings(said=said))

    def _distance(self, mean: Floats) -> float:
        """Return how far a mean is from the run, in standard deviations of the run in that direction."""
        gap = mean - self.middle
        size = float(np.linalg.norm(gap))
        if size == 0.0:
            return 0.0
        return size / max(float((self.spread @ (gap / size)).std()), 0.1)

    def _own_distance(self, window: int) -> float:
        """Return the largest distance of means over ``window`` draws of the run's own chains."""
        far = 0.0
        for chain in self.features:
            for first in range(0, len(chain) - window + 1, window):
                far = max(far, self._distance(chain[first : first + window].mean(axis=0)))
        return far

    def _starts(self, many: int) -> list[Floats]:
        """Return places to start at: a quarter as any run would start, the others far away from this one.

        They are far away at random, along diagonals and along axes: conditionals lead to a mode from a part of all
        directions only, which can be small.
        Where the weight of a mode cannot be known, because there is no joint density, and the user has said
        where to start, all are places of the run that are moved away from there.
        """
        setup, model = self.setup, self.model
        domains, graph = model.domains, setup.graph
        low, high = domains.bounds
        between = domains.numbers & np.isfinite(low) & np.isfinite(high)
        moved = getattr(model, "movable", domains.numbers & ~between)
        possible = getattr(model, "is_possible", None)
        given = has_no_density(graph) and setup.plan.start is not None and possible is None
        run = self.picture.reshape(-1, graph.n_sites)
        rng = np.random.default_rng(np.random.SeedSequence(setup.plan.entropy, spawn_key=(0, 4)))
        found: list[Floats] = []
        nearby = _NEARBY if many >= CHAINS else 2
        for number in range(4 * many):
            x = run[rng.integers(len(run))].copy() if given or (possible and number % nearby) else self._draw(rng, run)
            if given or number % nearby:
                turn, radius = divmod(number - number // nearby, len(_RADII))
                far = run.mean(axis=0) + _RADII[radius] * self.deviations * _direction(turn, x.size, rng)
                far = np.where(far < low, 2.0 * np.where(np.isfinite(low), low, 0.0) - far, far)
                far = np.where(far > high, 2.0 * np.where(np.isfinite(high), high, 0.0) - far, far)
                x = np.where(moved, np.clip(far, low, high), x)
            if self._heights(x[None])[0] > -np.inf and (possible is None or possible(x)):
                found.append(x)
            if len(found) == many:
                break
        return found

    def _draw(self, rng: np.random.Generator, run: Floats) -> Floats:
        """Return a random start, or a place of the run for models for which none is found."""
        try:
            return np.asarray(self.model.draw_start(rng))
        except SupportError:
            return np.array(run[rng.integers(len(run))])

    def _heights(self, places: Floats) -> Floats:
        """Return log-densities; zero where the model has none."""
        out = np.zeros(len(places))
        if self.setup.graph.kind != "gaussian":
            evaluate_places(self.setup.graph.arrays, np.ascontiguousarray(places), out)
        return np.where(np.isnan(out), -np.inf, out)

    def _relative_weight(self, places: Floats) -> float:
        """Return the logarithm of the weight of where a chain stays, compared with the run; zero if unknown.

        Height times volume, site by site; too small where the chain has not filled its mode.
        """
        graph = self.setup.graph
        heights = getattr(self.model, "log_densities", None if has_no_density(graph) else self._heights)
        if heights is None:
            return 0.0
        run = self.picture.reshape(-1, places.shape[1])
        gain = float(heights(places[-8:]).mean() - heights(run[:: max(1, len(run) // 32)]).mean())
        numbers = getattr(self.model, "movable", self.model.domains.numbers)
        here, there = run[:, numbers].std(axis=0), places[:, numbers].std(axis=0)
        ratio = np.log(np.maximum(there, 1e-300) / np.maximum(here, 1e-300))
        return gain + float(np.clip(ratio, -1.0, 5.0).sum())

    def _describe(self, staying: list[int], last: dict[int, Floats], chains: int, sweeps: int) -> str:
        x = last[staying[0]].mean(axis=0)
        codes = ~self.model.domains.numbers
        x[codes] = last[staying[0]][-1][codes]
        return (
            f"{len(staying)} of {chains} chains that were started elsewhere stay away from the run, the "
            f"first near {self.model.place_text(x)}, after {sweeps} sweeps: there may be another mode, whose "
            "weight is not known; start some chains there (start=), or run longer."
        )
