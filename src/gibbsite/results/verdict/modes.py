"""Other modes of a log-density: where they are, whether they are separate from a run, what they weigh.

Before a run of a model of numbers is called converged, its landscape is searched:

1. *A picture of the run.* Its chains go on for a while and write down where they are.
2. *Other places.* Many are drawn around the run, from 2 to 300 of its standard deviations away, along its
   main axes, along lines and at random, uniformly between bounds. Some of them are climbed from: those where
   the density is largest compared with a normal law as wide as the run, summits along lines, and others at
   random (:mod:`.climbing`).
3. *Separate or not.* A summit belongs to the run if the density does not fall on a straight way between it
   and one of the places nearest to it in the picture. Of a log-concave density every summit does.
4. *Weights.* What is left is weighed: height times volume, from the curvature at the summit (Laplace).
   Summits that weigh less than half a percent do not matter.
5. *A last trial.* Chains of the run's kernel start at the summit. If they come to the run, it is no mode.

Everything is bounded by numbers of evaluations; whether a density is slow, middling or fast decides on the least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats, Positions
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.verdict.climbing import climb
from gibbsite.results.verdict.convergence import StartCheck
from gibbsite.results.verdict.landscape import Landscape
from gibbsite.results.verdict.walkers import Walkers
from gibbsite.sampling.tape import DRAWS

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording


MOST_SITES = 128  # of larger models the curvature is not computed
_SHARE, _SECONDS = 0.1, 0.33  # of the evaluations of a run, or seconds, for the search
_EACH_UPDATE = 5  # evaluations that an update of a site takes in the run, about
_EVALUATIONS = (1 << 9, 1 << 13, 1 << 16)  # the fewest for slow, middling and fast densities; the last is also the most
_MOST_PLACES, _MOST_DRAWN = 1 << 16, 1 << 11  # more, and fewer of those that the model draws
_PICTURE = 0.03  # of the sweeps of a run, for the picture of it
_PLACES, _MOST_NUMBERS = 256, 1 << 18  # of each chain in it, at most
_NEAREST, _FARTHEST = 2.0, 300.0  # standard deviations between which places are drawn
_RADII = (3.0, 10.0, 30.0, 100.0, 300.0)  # of those along axes
_LINE = np.concatenate([np.arange(2.0, 20.0), np.arange(20.0, 100.0, 2.0), [110.0, 130.0, 160.0, 200.0, 300.0]])
_MOST_LINES = 16
_CLIMBERS = (8, 160)  # fewest and most
_OWN = 8  # climbers from places of the run
_STEPS = 40  # of a climber, and as many again for each coordinate where there is no gradient
_DIP = 2.0  # by how much the log-density falls between two modes, at least
_WAY = (np.arange(16) + 0.5) / 16.0  # places on a straight way
_FRIENDS = 4  # nearest places of the run that ways are tried to
LEAST_WEIGHT = 0.005  # of a mode that matters
_VISITS, _VISIT_SWEEPS = 4, 200  # chains that start at a summit, and their sweeps, at most


class ModeSearch:
    """Searches the landscape of a model of numbers beside a run."""

    def __init__(self, recording: Recording, threads: int) -> None:
        self.setup, self.threads = recording.setup, threads
        self.found: StartCheck | None = None
        self.draws = 0

    def examine(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> StartCheck | str:
        """Search for other modes than those that a run has been to.

        Returns
        -------
        StartCheck or str
            "no time" if there was none, "impossible" if the chains of the run cannot go on.
        """
        draws = int(recording.tapes[0].counters[DRAWS])
        if self.found is not None and self.found.findings.agree and draws < 4 * self.draws:
            return self.found  # the same landscape, and hardly more of a run
        if stop(0.0):
            return "no time"
        setup = self.setup
        rng = np.random.default_rng(np.random.SeedSequence(setup.plan.entropy, spawn_key=(0, 3)))
        picture = take_picture(recording, self.threads)
        if picture is None:
            return "impossible"
        search = _Search(recording, picture, run_deviations(recording, result), rng, self.threads)
        start_check = search.run(stop)
        setup.graph.take_raised()
        self.found, self.draws = start_check, draws
        return start_check


def measure_picture(recording: Recording) -> tuple[int, int]:
    """Return how many places of each chain a picture of a run has, and sweeps from one to the next."""
    setup = recording.setup
    sweeps = int(recording.tapes[0].counters[DRAWS]) * setup.plan.thin + recording.warmup
    wanted = int(max(32, _PICTURE * sweeps))
    draws = max(32, min(wanted, _PLACES, _MOST_NUMBERS // setup.graph.n_sites))
    return draws, max(1, wanted // draws)


def take_picture(recording: Recording, threads: int) -> Floats | None:
    """Return places of the run (chains, places, n), whose chains go on where it ended; None if none can."""
    walkers = Walkers(recording, recording.states, 1, threads)
    seen = [places for places in walkers.walk(*measure_picture(recording)) if places is not None]
    return np.stack(seen) if seen else None


def run_deviations(recording: Recording, result: Result) -> Floats:
    """Return the standard deviations of the sites in the run; NaN where they were not recorded."""
    setup = recording.setup
    cards = np.asarray(setup.model.cards, np.intp)
    first = np.cumsum(cards) - cards
    deviations = np.full(setup.graph.n_sites, np.nan)
    if result.totals.shape[1] >= int(cards.sum()):
        numbers = np.flatnonzero(setup.model.domains.numbers)
        deviations[numbers] = result.numbers.scale[first[numbers]]
    return deviations


def count_evaluations(n_sites: int, sweeps: int, pace: float) -> int:
    """Return how often a search may evaluate the density: a share of the run's own evaluations, or a least number.

    The least number is one of three, by the seconds ``pace`` of an evaluation, which are measured once for a model:
    the same run gets the same number again, in another process unless that time is very close to one of two limits.
    """
    least = next((number for number in reversed(_EVALUATIONS) if number * pace <= _SECONDS), _EVALUATIONS[0])
    return int(np.clip(_SHARE * _EACH_UPDATE * n_sites * sweeps, least, _EVALUATIONS[-1]))


class _Search:
    def __init__(
        self, recording: Recording, picture: Floats, deviations: Floats, rng: np.random.Generator, threads: int
    ) -> None:
        self.recording, self.rng, self.threads = recording, rng, threads
        self.model: Any = recording.setup.model
        n = picture.shape[-1]
        self.n, self.places = n, picture.reshape(-1, n)
        self.land = Landscape(recording.setup.graph, self.places, deviations, rng)
        self.home = self.land.from_model(self.places)
        self.height = self.land.values(self.home)

    def run(self, stop: Callable[[float], bool]) -> StartCheck:
        """Search, and say what was found."""
        land, n = self.land, self.n
        tapes, setup = self.recording.tapes, self.recording.setup
        sweeps = len(tapes) * (int(tapes[0].counters[DRAWS]) * setup.plan.thin + self.recording.warmup)
        most = count_evaluations(n, sweeps, land.pace(self.home))
        gradients = land.gradients()
        steps = _STEPS if gradients is not None else _STEPS + n
        each = 15 * (len(_WAY) // 2 + (2 if gradients is not None else n))  # what a climber takes, about
        climbers = int(np.clip(0.6 * most / each, *_CLIMBERS))
        starts = self._choose(
            self._look_around(_MOST_PLACES if most == _EVALUATIONS[-1] else int(0.2 * most)), climbers
        )
        ends = climb(land.values, gradients, starts, steps)
        good = np.isfinite(ends.values)
        places, heights = ends.places[good], ends.values[good]
        apart = self._find_separate(places, heights)
        if apart.size and not stop(0.0):  # some may be on their way still
            again = climb(land.values, gradients, places[apart], 3 * steps, even=True)
            places = np.concatenate([np.delete(places, apart, axis=0), again.places])
            heights = np.concatenate([np.delete(heights, apart), again.values])
            late = np.arange(len(places) - apart.size, len(places))
            apart = late[self._find_separate(places[late], heights[late])]
        number = len(starts)
        if not apart.size:
            return StartCheck(number, 0)
        summits = self._group(places[apart], heights[apart])
        modes = self._weigh(summits, np.delete(places, apart, axis=0), np.delete(heights, apart))
        modes = [(weight, z) for weight, z in modes if weight >= LEAST_WEIGHT and self._stays(z)]
        if not modes:
            return StartCheck(number, 0)
        return StartCheck(number, 0, Findings(said=self._describe(modes)))

    # ---- places to climb from

    def _look_around(self, many: int) -> tuple[Floats, Floats]:
        """Return places around the run and their log-densities: along axes first, then at random."""
        n, rng, land = self.n, self.rng, self.land
        parts = []
        if n <= 32:
            both = np.concatenate([np.eye(n), -np.eye(n)])
            along = np.linalg.solve(land.factor, np.diag(np.diag(land.factor @ land.factor.T) ** 0.5)).T
            ways = np.concatenate([both, along, -along]) if n > 1 else both
            ways /= np.linalg.norm(ways, axis=1)[:, None]
            parts += [radius * ways for radius in _RADII]
        free = max(many - sum(map(len, parts)), 32)
        away = rng.standard_normal((free, n))
        away /= np.linalg.norm(away, axis=1)[:, None]
        radius = np.exp(rng.uniform(np.log(_NEAREST), np.log(_FARTHEST), free))
        around = radius[:, None] * away
        drawn = np.stack([self.model.draw_start(rng) for _ in range(min(max(16, free // 8), _MOST_DRAWN))])
        parts += [land.from_model(drawn), around]
        if land.bent:  # the same distances counted without the map; uniform between bounds
            straight = self._within_bounds(around[: free // 2])
            parts.append(land.from_model(straight))
        z = np.concatenate(parts)
        z = z[np.isfinite(z).all(axis=1)]
        heights = land.values(z)
        good = np.isfinite(heights)
        return z[good], heights[good]

    def _within_bounds(self, away: Floats) -> Floats:
        """Return places at several distances, in standard deviations of the run and in the coordinates of the model."""
        land, rng = self.land, self.rng
        sd = self.places.std(axis=0)
        x = self.places.mean(axis=0) + away * np.where(sd > 0.0, sd, 1.0) * np.sqrt(self.n)
        wide = np.where(land.between, land.high - land.low, 1.0)
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in (land.low, land.high))
        x = np.where(land.between, low + wide * rng.random(x.shape), x)
        x = np.where(land.above, low + np.abs(x - low), x)
        found: Floats = np.where(land.below, high - np.abs(high - x), x)
        return found

    def _summits_on_lines(self) -> Floats:
        """Return local summits on lines through the run, along its axes and those of the model."""
        n, land = self.n, self.land
        ways = np.eye(n)
        if n > 1:
            along = np.linalg.solve(land.factor, np.eye(n)).T
            corners = np.sign(self.rng.standard_normal((4, n))) @ along
            ways = np.concatenate([ways, along, np.ones((1, n)) @ along, corners])
            ways /= np.linalg.norm(ways, axis=1)[:, None]
        ways = ways[:_MOST_LINES]
        line = np.concatenate([-_LINE[::-1], [0.0], _LINE])
        z = line[None, :, None] * ways[:, None, :]
        heights = land.values(z.reshape(-1, n)).reshape(len(ways), line.size)
        inner = heights[:, 1:-1]
        tops = (inner > heights[:, :-2]) & (inner >= heights[:, 2:]) & np.isfinite(inner)
        tops[:, line.size // 2 - 1] = False  # the run itself
        found: Floats = z[:, 1:-1][tops]
        return found

    def _choose(self, around: tuple[Floats, Floats], many: int) -> Floats:
        """Return places to climb from: of the run, summits on lines, high ones, and others as they come."""
        z, heights = around
        own = self.home[self.rng.choice(len(self.home), min(_OWN, len(self.home)), replace=False)]
        parts = [own]
        if self.n <= _MOST_LINES:
            parts.append(self._summits_on_lines()[: max(4, many // 4)])
        if len(z):
            # The law is that of the run up to some percent, which is much far away: so its share counts, too.
            fall = 0.5 * np.square(z).sum(axis=1)
            excess = heights - self.height.mean() + fall
            orders = (np.argsort(-high, kind="stable") for high in (excess, excess / (fall + self.n)))
            parts += [_spread_out(z[order], max(2, many // 5)) for order in orders]
            left = max(many - sum(map(len, parts)), 2)
            parts.append(z[np.linspace(0, len(z) - 1, left).astype(np.intp)])
        return np.concatenate(parts)

    # ---- which of them are separate

    def _dips(self, a: Floats, b: Floats, whole: bool = False) -> Floats:
        """Return by how much the log-density falls between pairs of places, below the lower of the two."""
        land = self.land
        many = len(a)

        def fall(values: Callable[[Floats, bool], Floats], a: Floats, b: Floats) -> Floats:
            between = a[:, None] + _WAY[:, None] * (b - a)[:, None]
            on_way = values(between.reshape(-1, self.n), whole).reshape(many, _WAY.size).min(axis=1)
            dip: Floats = np.minimum(values(a, whole), values(b, whole)) - on_way
            return dip

        dips = fall(land.values, a, b)
        if land.bent:  # a valley in one of the two pictures may be none
            deep = np.flatnonzero(dips > _DIP)
            if deep.size:
                many = deep.size
                ends = [land.to_model(side[deep]) for side in (a, b)]
                dips[deep] = np.minimum(dips[deep], fall(land.heights, *ends))
        return dips

    def _find_separate(self, places: Floats, heights: Floats, whole: bool = False) -> Positions:
        """Return the numbers of places that no straight way connects with the run."""
        apart = np.arange(len(places))
        if not apart.size:
            return apart
        distance = np.square(places[:, None] - self.home[None]).sum(axis=2)
        nearest = np.argsort(distance, axis=1)
        top = np.argmax(self.height)
        for rank in range(_FRIENDS + 1):
            friends = nearest[apart, min(rank, nearest.shape[1] - 1)] if rank < _FRIENDS else top
            friend = np.broadcast_to(self.home[friends], (apart.size, self.n))
            apart = apart[self._dips(places[apart], friend, whole) > _DIP]
            if not apart.size:
                break
        return apart

    def _group(self, places: Floats, heights: Floats) -> list[tuple[float, Floats]]:
        """Return one summit of each mode, the highest first."""
        left = np.argsort(-heights, kind="stable")
        found: list[tuple[float, Floats]] = []
        while left.size and len(found) < 8:
            top = left[0]
            found.append((float(heights[top]), places[top]))
            rest = left[1:]
            if rest.size:
                again = np.broadcast_to(places[top], (rest.size, self.n))
                rest = rest[self._dips(places[rest], again) > _DIP]
            left = rest
        return found

    # ---- weights

    def _weigh(self, summits: list[tuple[float, Floats]], own: Floats, heights: Floats) -> list[tuple[float, Floats]]:
        """Return the share that each mode has of all, the run included, and where it is."""
        if self.land.sampled:
            summits = self._climb_whole(summits)
        logs = [height + self._volume(z) for height, z in summits]
        logs.append(self._run_weight(own, heights))
        whole = np.array(logs) - max(logs)
        shares = np.exp(whole) / np.exp(whole).sum()
        return [(float(share), z) for share, (_, z) in zip(shares, summits, strict=False)]

    def _climb_whole(self, summits: list[tuple[float, Floats]]) -> list[tuple[float, Floats]]:
        """Go on to the summits of the whole data."""
        found = []
        for _, z in summits[:2]:
            end = climb(lambda place: self.land.values(place, True), None, z[None], 8)
            if self._find_separate(end.places, end.values, whole=True).size:
                found.append((float(end.values[0]), end.places[0]))
        return found

    def _run_weight(self, own: Floats, heights: Floats) -> float:
        """Return the logarithm of the weight of what the run has seen, up to the same constant."""
        land, whole = self.land, self.land.sampled
        some = self.home if not whole else self.home[:: max(1, len(self.home) // 16)]
        height = land.values(some, True) if whole else self.height
        spread = np.linalg.slogdet(np.cov(self.home.T).reshape(self.n, self.n) + 1e-12 * np.eye(self.n))[1]
        filled = float(height[np.isfinite(height)].mean() + 0.5 * (self.n * (1.0 + np.log(2 * np.pi)) + spread))
        if whole or not len(own):
            return filled
        top = int(np.argmax(heights))
        curved = float(heights[top]) + self._volume(own[top])
        # the first is too large where a run is far from normal, the second may be anything there
        if len(self.home) < 8 * self.n:
            return curved
        return min(filled, max(curved, filled - 1.0))

    def _volume(self, z: Floats) -> float:
        """Return the logarithm of the volume of a summit: that of a normal law of the same curvature."""
        n, land = self.n, self.land
        base = float(land.values(z[None])[0])
        width = np.full(n, 0.5)
        axes = np.eye(n)
        for _ in range(24):  # so wide that the log-density falls by about a half
            sides = np.concatenate([z + width[:, None] * axes, z - width[:, None] * axes])
            fall = base - land.values(sides).reshape(2, n).min(axis=0)
            wide, narrow = fall > 2.0, fall < 0.02
            if not (wide | narrow).any():
                break
            width = np.where(wide, 0.4 * width, np.where(narrow, 2.0 * width, width))
        scaled = width[:, None] * axes
        sides = land.values(np.concatenate([z + scaled, z - scaled])).reshape(2, n)
        curve = np.diag(2.0 * base - sides[0] - sides[1])
        if n > 1:
            i, j = np.triu_indices(n, 1)
            mixed = [a * scaled[i] + b * scaled[j] for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
            seen = land.values(z + np.concatenate(mixed)).reshape(4, -1)
            curve[i, j] = curve[j, i] = -(seen[0] + seen[1] - seen[2] - seen[3]) / 4.0
        curve = np.where(np.isfinite(curve), curve, 0.0)
        roots = np.linalg.eigvalsh(curve)
        roots = np.where(roots > 1e-3, roots, 1.0)  # no summit in that direction
        return float(np.log(width).sum() - 0.5 * np.log(roots).sum() + 0.5 * n * np.log(2.0 * np.pi))

    # ---- the last trial

    def _stays(self, z: Floats) -> bool:
        """Tell whether most chains that start at a summit do not come to the run."""
        recording = self.recording
        x = self.land.to_model(z[None])[0]
        sweeps = int(recording.tapes[0].counters[DRAWS]) * recording.setup.plan.thin
        try:
            walkers = Walkers(recording, [x.copy() for _ in range(_VISITS)], 2, self.threads)
            seen = walkers.walk(1, int(np.clip(_PICTURE * sweeps, 8, _VISIT_SWEEPS)))
        except Exception:
            return True
        ends = [places[-1] for places in seen if places is not None]
        if not ends:
            return True
        after = self.land.from_model(np.stack(ends))
        return 2 * self._find_separate(after, np.zeros(len(after))).size >= len(ends)

    def _describe(self, modes: list[tuple[float, Floats]]) -> str:
        """Put modes into words, the heaviest first."""
        modes = sorted(modes, key=lambda mode: -mode[0])
        weight, z = modes[0]
        place = self.model.place_text(self.land.to_model(z[None])[0])
        said = f"there is another mode at {place}, of weight {_percent(weight)}"
        if len(modes) > 1:
            others = sum(weight for weight, _ in modes[1:])
            many = f"{len(modes) - 1} more" if len(modes) > 2 else "one more"
            said += f", and {many}, of weight {_percent(others)}"
        return (
            f"{said}; no chain of this run was seen there, so its numbers leave it out: start some chains "
            "there (start=), or use a kernel that moves between modes."
        )


def _percent(share: float) -> str:
    return f"about {100.0 * share:.2g} %" if share < 0.995 else "nearly 100 %"


def _spread_out(z: Floats, many: int) -> Floats:
    """Return the first of some places, but none near another one that was taken."""
    taken: list[Floats] = []
    for place in z[: 50 * many]:
        if len(taken) >= many:
            break
        near = 0.3 * max(float(np.linalg.norm(place)), 1.0)
        if all(np.linalg.norm(place - other) > near for other in taken):
            taken.append(place)
    return np.array(taken) if taken else z[:0]
