"""Do conditionals belong to one joint distribution? Asked of functions that draw, with its log-density.

At random places each block is drawn many times. Given the rest of such a draw, a coordinate of the block
should follow the density along its own axis: its distribution function, by integration, makes it uniform,
whatever the other coordinates are (states are spread over the step of their code), and normal scores of that
standard normal. Five tests of every site ask whether they are, all of exact or bounded level:

* the sum over places of squared means of scores, times the number of draws: chi-squared;
* the sum of all squared scores, chi-squared: too wide or too narrow;
* the same for every place by itself, for widths that are wrong in different ways;
* the largest distance of the empirical from the uniform distribution function, over all draws, and at each
  place: at most 2 exp(-2 n distance^2), by the inequality of Dvoretzky, Kiefer and Wolfowitz [1]_.

For the same tests the smallest deviation is computed that they would have noticed: that a test was not failed
says that larger ones are absent, and nothing about smaller ones.

References
----------
.. [1] Massart, P. (1990). The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Annals of
   Probability 18.
"""

from __future__ import annotations

import functools
import math
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats, Ints32, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.foreign import Foreign, call_at
from gibbsite._numba.jit import announcing, compiled
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.kinds.conditionals import ConditionalsGraph
from gibbsite.models.conditionals import Conditionals
from gibbsite.sampling.progress import Progress, Status, choose_progress

_TESTS = 5  # of every site
_NODES = 100  # of the integral over each side of a value
_GRID = 600  # points besides the values themselves, for the integrals between many values
_PANEL_NODES = 6  # of the integrals beyond all values, between two steps
_FAR = 60.0  # log-density below its maximum that is as good as nothing
_STEPS = 80  # of growing length, to where that is so
_AT_A_TIME = 8  # of these steps
_ERROR = 1e-7  # of all mass, that an integral between two values may be wrong
_WARMUP = 20  # sweeps before the first place
_MOST_DRAWS = 10**7
_LEAST = 1e-12  # nearer to 0 or 1 a distribution function is rounding


class Deviations(NamedTuple):
    """Deviations of a conditional from the one that belongs to the density.

    Attributes
    ----------
    mean : float
        Of the mean, in standard deviations; the root mean square over places.
    sd : float
        Of the standard deviation, relative.
    distance : float
        Largest difference of distribution functions; of states, of the probability of the first few.
    """

    mean: float
    sd: float
    distance: float


@dataclass(frozen=True)
class Compatibility:
    """How well conditionals agree with a joint density.

    Attributes
    ----------
    verdict : {"compatible", "incompatible", "undecided"}
        Whether deviations as large as ``tolerance`` are excluded, one was found, or more draws are needed.
    p_values : dict
        Smallest p-value of each site, times the number of all tests (Bonferroni).
    worst : str
        The site that agrees least.
    evidence : str
        What is wrong with it, empty if nothing was found.
    detects : Deviations
        The smallest deviations that would have been found, with probability ``power``. Those of mean and
        standard deviation are exact for normal conditionals, otherwise they are about normal scores.
    tolerance, power, false_alarm : float
        As asked for.
    draws, needed : int
        Draws of every site, and how many are needed for a decision.
    """

    verdict: Literal["compatible", "incompatible", "undecided"]
    p_values: dict[str, float]
    worst: str
    evidence: str
    detects: Deviations
    tolerance: float
    power: float
    false_alarm: float
    draws: int
    needed: int

    @property
    def compatible(self) -> bool:
        """Whether deviations as large as the tolerance are excluded."""
        return self.verdict == "compatible"

    def __bool__(self) -> bool:
        return self.compatible

    def __str__(self) -> str:
        found = self.detects
        able = (
            f"standard deviations off by {found.sd:.1%}, means off by {found.mean:.2g} of them, or "
            f"distribution functions off by {found.distance:.2g} would have been found with probability "
            f"{self.power:.4g} ({self.draws:,} draws of every site)"
        )
        if self.verdict == "incompatible":
            return f"incompatible: {self.evidence} (p = {self.p_values[self.worst]:.2g})."
        if self.verdict == "undecided":
            return f"undecided: {able}; for {self.tolerance:g} take {self.needed:,} draws of every site."
        return f"compatible: {able}."


@checked
def check_conditionals(
    model: Conditionals,
    *,
    tolerance: float = 0.1,
    places: int = 10,
    draws: int | None = None,
    false_alarm: float = 1e-6,
    power: float = 0.999,
    start: Any = None,
    rng: Any = 0,
    progress: Any = None,
) -> Compatibility:
    """Check that the conditionals of a model are those of its joint log-density.

    Parameters
    ----------
    model : Conditionals
        With ``log_density``.
    tolerance : float
        The deviation that must not go unnoticed: of a mean, in standard deviations, of a standard deviation,
        relative, and of a distribution function; see :class:`Deviations`.
    places : int
        Random places: where the conditionals themselves lead to from the start.
    draws : int, optional
        Draws of every block at each place; by default as many as the tolerance needs.
    false_alarm : float
        How likely conditionals that are right are called incompatible, at most.
    power : float
        How likely a deviation as large as the tolerance is found, at least.
    start : array (n,), optional
        A place to begin at.
    rng : int or Generator
        Seed.
    progress : optional
        None or True: a line on stderr where it takes longer than a second; False: silent; a function: called
        with a ``Status``.

    Returns
    -------
    Compatibility
        True in conditions if it is "compatible"; ``print`` shows the verdict in a sentence.

    Raises
    ------
    ModelError
        If there is no joint density, it is not a number somewhere, or a conditional fails.

    Examples
    --------
    >>> import gibbsite as gs
    >>> density = lambda x: -0.5 * (x[0] ** 2 - 1.6 * x[0] * x[1] + x[1] ** 2) / 0.36
    >>> right = lambda k: lambda x, rng: rng.normal(0.8 * x[k], 0.6)
    >>> check_conditionals(gs.Conditionals({"a": right(1), "b": right(0)}, log_density=density)).verdict
    'compatible'
    >>> wrong = lambda x, rng: rng.normal(0.8 * x[0], 0.5)
    >>> found = check_conditionals(gs.Conditionals({"a": right(1), "b": wrong}, log_density=density))
    >>> found.verdict, found.evidence
    ('incompatible', "the standard deviation of 'b' is 0.84 times that of the density")
    """
    if not isinstance(model, Conditionals) or model.log_density is None:
        raise ArgumentError("check_conditionals needs gs.Conditionals(..., log_density=...), the joint density.")
    _check_numbers(tolerance, places, draws, false_alarm, power)
    tested = [name for block, draw in zip(model.blocks, model.draws, strict=True) if draw for name in block]
    level = false_alarm / (_TESTS * max(len(tested), 1))
    needed = _draws_needed(tolerance, places, level, power)
    many = needed if draws is None else int(draws)
    show = choose_progress(progress)
    with closing(show), announcing(show.say, "your functions"):
        scores = _Examination(model, rng, start).scores(places, many, show)
    findings = {name: _judge(each) for name, each in scores.items()}
    p_values = {name: min(min(p for p, _ in found) * _TESTS * len(findings), 1.0) for name, found in findings.items()}
    worst = min(p_values, key=lambda name: p_values[name], default="")
    detects = _detectable(places, many, level, power)
    evidence = ""
    verdict: Literal["compatible", "incompatible", "undecided"] = "undecided"
    if worst and p_values[worst] < false_alarm:
        verdict = "incompatible"
        evidence = min(findings[worst])[1].format(repr(worst))
    elif max(detects) <= tolerance or not findings:
        verdict = "compatible"
    return Compatibility(
        verdict,
        p_values,
        worst,
        evidence,
        detects,
        float(tolerance),
        float(power),
        float(false_alarm),
        places * many,
        places * needed,
    )


def _check_numbers(tolerance: Any, places: Any, draws: Any, false_alarm: Any, power: Any) -> None:
    for name, value in (("tolerance", tolerance), ("false_alarm", false_alarm), ("power", power)):
        if not isinstance(value, int | float | np.number) or not 0 < value < 1:
            raise ArgumentError(f"{argument(name)} must be a number between 0 and 1, got {value!r}.")
    for name, value in (("places", places), ("draws", 2 if draws is None else draws)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ArgumentError(f"{argument(name)} must be a whole number of at least 1, got {value!r}.")


# ---- what tests say, and what they can see


class _Scores(NamedTuple):
    """Normal scores of all draws of a site (places, draws), where they were drawn, and whether it has states.

    ``impossible`` tells of a draw where the density is zero; empty if there was none.
    """

    score: Floats
    places: list[str]
    discrete: bool
    impossible: str


def _judge(found: _Scores) -> list[tuple[float, str]]:
    """Return the p-value of every test of a site, and what it says, with room for the name of the site."""
    from scipy import special, stats

    z = found.score
    places, draws = z.shape
    shift, squares = z.mean(axis=1), np.square(z).sum(axis=1)
    each = special.ndtri(stats.chi2.cdf(squares, draws))
    below = float(stats.chi2.cdf(squares.sum(), z.size))
    above = float(stats.chi2.sf(squares.sum(), z.size))
    distance = _distance(z.ravel())
    apart = [_distance(row) for row in z]
    far, wide, off = (int(np.argmax(np.abs(part))) for part in (shift, each, apart))
    width = math.sqrt(float(np.square(z).mean()))
    said = "the distribution function of {} is off by "
    wrong = [
        f"given {found.places[far]}, the mean of {{}} is off by {shift[far]:.3g} standard deviations",
        f"the standard deviation of {{}} is {width:.3g} times that of the density",
        f"given {found.places[wide]}, the standard deviation of {{}} is "
        f"{math.sqrt(squares[wide] / draws):.3g} times that of the density",
        f"{said}{distance:.3g}",
        f"{said}{apart[off]:.3g} given {found.places[off]}",
    ]
    if found.discrete:
        wrong[:3] = [f"the probabilities of {{}} are off by {max(apart):.3g} given {found.places[off]}"] * 3
    if found.impossible:
        return [(0.0, found.impossible)] * _TESTS
    chances = [
        float(stats.chi2.sf(draws * np.square(shift).sum(), places)),
        2.0 * min(below, above),
        float(stats.chi2.sf(np.square(each).sum(), places)),
        2.0 * math.exp(-2.0 * z.size * distance**2),
        2.0 * places * math.exp(-2.0 * draws * max(apart) ** 2),
    ]
    return list(zip(chances, wrong, strict=True))


def _distance(z: Floats) -> float:
    """Return the largest difference between the empirical and the normal distribution function."""
    from scipy import special

    u = np.sort(special.ndtr(z))
    steps = np.arange(u.size + 1) / u.size
    return float(max((steps[1:] - u).max(), (u - steps[:-1]).max()))


def _detectable(places: int, draws: int, level: float, power: float) -> Deviations:
    """Return the deviations that tests of a level find with a given probability."""
    from scipy import optimize, stats

    total = places * draws
    limit = float(stats.chi2.isf(level, places))
    most = 4.0 * limit + 100.0
    shift = optimize.brentq(lambda nc: stats.ncx2.sf(limit, places, nc) - power, 1e-9, most)
    wide = math.sqrt(stats.chi2.isf(0.5 * level, total) / stats.chi2.isf(power, total)) - 1.0
    narrow = 1.0 - math.sqrt(stats.chi2.ppf(0.5 * level, total) / stats.chi2.ppf(power, total))
    apart = math.sqrt(math.log(2.0 / level)) + math.sqrt(math.log(2.0 / (1.0 - power)))
    return Deviations(math.sqrt(shift / total), max(wide, narrow), apart / math.sqrt(2.0 * total))


def _draws_needed(tolerance: float, places: int, level: float, power: float) -> int:
    """Return how many draws at each place find deviations as large as the tolerance."""
    low, high = 1, 2
    while max(_detectable(places, high, level, power)) > tolerance:
        low, high = high, 2 * high
        if high > _MOST_DRAWS:
            raise ArgumentError(
                f"a tolerance of {tolerance:g} needs more than {_MOST_DRAWS:,} draws at a place; raise it."
            )
    while high - low > 1:
        middle = (low + high) // 2
        if max(_detectable(places, middle, level, power)) > tolerance:
            low = middle
        else:
            high = middle
    return high


# ---- draws, and where they lie in the law of the density


@compiled
def _fill_draws(address: int, x: Floats, out: Floats, words: Words64) -> int:
    """Draw a block many times; return how often it went well."""
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


class _Examination:
    """Draws of all blocks at a sequence of places."""

    def __init__(self, model: Conditionals, rng: Any, start: Any) -> None:
        self.model = model
        graph = compile_graph(model)
        self.arrays: ConditionalsGraph = graph.arrays
        self.codes: dict[int, Foreign] = {code.address: code for code in graph.functions}
        seed = int(rng.integers(2**62)) if isinstance(rng, np.random.Generator) else int(rng or 0)
        self.words = stream(seed, 0)
        self.generator = np.random.default_rng(seed)
        self.x = model.draw_start(self.generator) if start is None else np.array(start, float)
        if self.x.shape != (model.n_sites,):
            raise ArgumentError(f"start needs {model.n_sites} numbers, got shape {self.x.shape}.")

    def scores(self, places: int, draws: int, show: Progress) -> dict[str, _Scores]:
        """Return the normal scores of draws of all sites that have a function."""
        from scipy import special

        domains, graph = self.model.domains, self.arrays
        uniform: dict[int, list[Floats]] = {}
        where: dict[int, list[str]] = {}
        impossible: dict[int, str] = {}
        for _ in range(_WARMUP):
            self._sweep()
        begun, blocks = time.monotonic(), self._blocks()
        for visit in range(places):
            for block, sites in enumerate(blocks):
                done, taken = visit * len(blocks) + block, time.monotonic() - begun
                total = places * len(blocks)
                show.show(Status("checking conditionals", done, total, taken, math.inf, 1, "function"))
                if graph.address[block] == 0:
                    self._move_by_density(int(sites[0]))
                    continue
                drawn = self._draw(block, sites, draws)
                for k, site in enumerate(sites.tolist()):
                    u, at = self._places_in_law(sites, drawn, k)
                    uniform.setdefault(site, []).append(u)
                    where.setdefault(site, []).append(self.model.place_text(self.x))
                    if at is not None and site not in impossible:
                        impossible[site] = f"the density is zero where {{}} was drawn, {at}"
                self.x[sites] = drawn[-1]
        return {
            domains.names[site]: _Scores(
                special.ndtri(np.clip(np.stack(us), _LEAST, 1.0 - _LEAST)),
                where[site],
                bool(graph.card[site]),
                impossible.get(site, ""),
            )
            for site, us in uniform.items()
        }

    def _blocks(self) -> list[Ints32]:
        return np.split(self.arrays.member, self.arrays.start[1:-1])

    def _sweep(self) -> None:
        for block, sites in enumerate(self._blocks()):
            if self.arrays.address[block]:
                self.x[sites] = self._draw(block, sites, 1)[0]

    def _draw(self, block: int, sites: Ints32, many: int) -> Floats:
        """Draw a block; refuse what is no value of its sites."""
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
                f"the conditional of {names} returned {out[row, k]:g} for {name!r}, which cannot be, "
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

    def _places_in_law(self, sites: Ints32, drawn: Floats, k: int) -> tuple[Floats, str | None]:
        """Return where drawn values lie in the law of their coordinate given all others, numbers in (0, 1).

        The second value tells of a draw where the density is zero, None if there is none.
        """
        site, values = int(sites[k]), drawn[:, k]
        if sites.size == 1 and not self.arrays.card[site]:
            edges, mass, known = self._law(self.x, site, values)
            upto = np.concatenate([[0.0], np.cumsum(mass)])
            at = np.searchsorted(edges, values)
            return upto[at] / upto[-1], self._zero(self.x, sites, drawn, known[at])
        u, logs = np.empty(len(drawn)), np.empty(len(drawn))
        axes: dict[bytes, Floats] = {}
        for row, each in enumerate(drawn):
            there = self.x.copy()
            there[sites] = each
            if not self.arrays.card[site]:
                u[row], logs[row] = self._place_in_law(there, site)
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

    def _law(self, place: Floats, site: int, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return points, values among them, the mass of the density along an axis between them, and its logs.

        Between the values, and points of a grid where values leave much room, the logarithm is taken as
        linear where that is exact enough. Elsewhere, and beyond all values, there are Gauss-Legendre nodes.
        The logarithms of points beyond all values are not known, but NaN.
        """
        inner = _fill_gaps(np.unique(values))
        known = self._logs(place, site, inner)
        below, above = (
            np.unique(np.append(self._reach(place, site, float(inner[k]), side), inner[k]))
            for k, side in ((0, -1.0), (-1, 1.0))
        )
        edges = np.concatenate([below[:-1], inner, above[1:]])
        logs = np.full(edges.size, np.nan)
        logs[below.size - 1 : below.size - 1 + inner.size] = known
        half = 0.5 * np.diff(edges)
        nodes, weights = _quadrature(_PANEL_NODES)
        top = float(known.max())
        mass, error = _between(inner, known - (top if top > -math.inf else 0.0))
        rough = np.ones(half.size, np.bool_)
        rough[below.size - 1 : below.size - 1 + mass.size] = (error > _ERROR * mass.sum()) | (top == -math.inf)
        at = (edges[:-1] + half)[rough, None] + half[rough, None] * nodes
        fine = self._logs(place, site, at.ravel()).reshape(at.shape)
        highest = max(top, fine.max(initial=-math.inf))
        if highest == -math.inf:
            raise ModelError(
                f"the joint density is zero for all values of {self.model.domains.names[site]!r} given "
                f"{self.model.place_text(place)}; give start=, a place of positive density."
            )
        found = np.empty(half.size)
        found[below.size - 1 : below.size - 1 + mass.size] = mass * math.exp(top - highest)
        found[rough] = half[rough] * (np.exp(fine - highest) @ weights)
        return edges, found, logs

    def _move_by_density(self, site: int) -> None:
        """Draw a site that has no function from the density itself."""
        edges, mass, _ = self._law(self.x, site, np.array([self.x[site]]))
        upto = np.concatenate([[0.0], np.cumsum(mass)])
        self.x[site] = np.interp(self.generator.random() * upto[-1], upto, edges)

    def _place_in_law(self, place: Floats, site: int) -> tuple[float, float]:
        """Return where the value at a place lies in the law of its coordinate, and the log-density there."""
        at = float(place[site])
        low, high = (float(np.append(at, self._reach(place, site, at, side))[-1]) for side in (-1.0, 1.0))
        nodes, weights = _quadrature(_NODES)
        points = [0.5 * (b - a) * nodes + 0.5 * (a + b) for a, b in ((low, at), (at, high))]
        logs = self._logs(place, site, np.concatenate([*points, [at]]))
        sides = logs[:-1].reshape(2, -1)
        if sides.max() == -math.inf:
            return 0.5, logs[-1]
        below, above = np.exp(sides - sides.max()) @ weights * np.array([at - low, high - at])
        return below / (below + above), logs[-1]

    def _reach(self, place: Floats, site: int, at: float, side: float) -> Floats:
        """Return values on one side of a value (-1 below, 1 above), beyond which there is hardly any mass.

        They are in the order in which they move away.
        """
        bound = self.arrays.low[site] if side < 0 else self.arrays.high[site]
        points = at + side * 1e-3 * (1.0 + abs(at)) * 1.5 ** np.arange(_STEPS)
        points = points[side * (bound - points) > 0]  # not the bound itself, where it may be infinite
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


def _fill_gaps(values: Floats) -> Floats:
    """Return ascending values, with points of a grid between those that are farther apart than its step."""
    grid, step = np.linspace(values[0], values[-1], _GRID, retstep=True)
    at = np.clip(np.searchsorted(values, grid), 1, max(values.size - 1, 1))
    wide = np.append(np.diff(values), 0.0)[at - 1] > step
    return np.unique(np.concatenate([values, grid[wide]]))


def _between(points: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Return the integrals of exp(logs) from point to point, and about how wrong they are.

    Logarithms are taken as linear in between; how much their slope changes tells the error.
    """
    high = np.maximum(logs[1:], logs[:-1])
    width = np.diff(points)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.nan_to_num(np.diff(logs) / width, nan=0.0)
        fall = np.abs(np.diff(logs))
        share = np.where(fall > 0.0, -np.expm1(-fall) / fall, 1.0)
        mass = np.where(np.isfinite(high), width * np.exp(high) * share, 0.0)
        turn = np.abs(np.diff(slope, prepend=slope[:1], append=slope[-1:]))
        turn = np.nan_to_num(turn, nan=math.inf, posinf=math.inf)
        relative = np.minimum(width * np.maximum(turn[1:], turn[:-1]) / 12.0, 1.0)
    largest = np.where(np.isfinite(high), width * np.exp(high), 0.0)
    return mass, np.where(np.isfinite(fall), mass, largest) * relative


@functools.cache
def _quadrature(many: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss and Legendre."""
    return np.polynomial.legendre.leggauss(many)
