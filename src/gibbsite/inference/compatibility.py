"""Tests of whether conditionals, given as functions that draw, are those of a joint log-density.

At random places each block is drawn many times. Given the rest of such a draw, a coordinate of the block should follow
the density along its own axis. Its distribution function, found by integration, then maps it to a uniform number for
any values of the other coordinates (states are spread over the step of their code), whose normal score is standard
normal. Five tests of every site, all of exact or bounded level, check this:

* the sum over places of squared means of scores, times the number of draws: chi-squared;
* the sum of all squared scores: chi-squared, against widths that are too large or too small;
* the same for every place separately, against widths whose errors cancel between places;
* the largest distance of the empirical from the uniform distribution function, over all draws, and at each
  place: at most 2 exp(-2 n distance^2), by the inequality of Dvoretzky, Kiefer and Wolfowitz [1]_.

The smallest deviations that these tests would detect are computed, too: passing excludes larger deviations, but not
smaller ones.

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
import numpy.typing as npt

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Floats, Ints32, Words64
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument
from gibbsite._numba.foreign import Foreign, call_at
from gibbsite._numba.jit import announcing, compiled
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.kinds.conditionals import ConditionalsGraph
from gibbsite.inference.panels import Panels, find_panels, quadrature
from gibbsite.models.conditionals import Conditionals
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import Progress, Status, choose_progress

_TESTS = 5  # of every site
_NODES = 100  # of the integral over each side of a value
_PANELS = 16  # of equal width, between the smallest and the largest value
_SHARES = 8  # of the values, between which there are more panels
_PANEL_NODES = 6  # of the integral from the last point to a bound
_FAR = 60.0  # a log-density lower than its maximum by this is negligible
_STEPS = 80  # largest number of steps, of growing length, to such a place
_AT_A_TIME = 8  # number of these steps that are evaluated together
_WARMUP = 20  # sweeps before the first place
_MOST_DRAWS = 10**7
_QUIET_SECONDS = 2.0  # before the first line about progress
_LEAST = 1e-12  # closer to 0 or 1, a distribution function is dominated by rounding


class Deviations(NamedTuple):
    """Deviations of a conditional from the one that belongs to the density.

    Attributes
    ----------
    mean : float
        Deviation of the mean, in standard deviations (root mean square over places).
    sd : float
        Relative deviation of the standard deviation.
    distance : float
        Largest difference of distribution functions; for states, of their cumulative probabilities.
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
        Whether deviations as large as ``tolerance`` are excluded, a deviation was found, or more draws are needed.
    p_values : dict
        Smallest p-value of each site, times the number of all tests (Bonferroni).
    worst : str
        The site that agrees least.
    evidence : str
        What is wrong with it, empty if nothing was found.
    detects : Deviations
        The smallest deviations that would have been found with probability ``power``. Those of mean and standard
        deviation are exact for normal conditionals, and otherwise refer to normal scores.
    tolerance, power, false_alarm : float
        As asked for.
    n_draws, needed : int
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
    n_draws: int
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
            f"{self.power:.4g} ({self.n_draws:,} draws of every site)"
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
    start: npt.ArrayLike | None = None,
    rng: Any = 0,
    progress: Any = None,
) -> Compatibility:
    """Check that the conditionals of a model are those of its joint log-density.

    Parameters
    ----------
    model : Conditionals
        With ``log_density``.
    tolerance : float
        The deviation that must be detected, of a mean (in standard deviations), of a standard deviation (relative) and
        of a distribution function; see :class:`Deviations`.
    places : int
        Number of random places, which are reached from the start by the conditionals themselves.
    draws : int, optional
        Draws of every block at each place; by default the number that the tolerance requires.
    false_alarm : float
        Largest probability of calling correct conditionals incompatible.
    power : float
        Smallest probability of detecting a deviation as large as the tolerance.
    start : array (n,), optional
        A place to begin at.
    rng : int or Generator
        Seed.
    progress : optional
        None or True: a line on stderr if the check takes longer than two seconds; False: silent; a function: called
        with a ``Status``.

    Returns
    -------
    Compatibility
        Its truth value is whether it is "compatible"; ``print`` shows the verdict in a sentence.

    Raises
    ------
    ModelError
        If there is no joint density, it is not a number somewhere, or a conditional fails.

    Notes
    -----
    For a site that is a number and is drawn alone, the density is computed at about 300 points at each place, more
    where it has kinks or heavy tails. Details narrower than about a hundredth of the range of the draws may be missed.

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
    show = choose_progress(progress, first=_QUIET_SECONDS)
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
    for name, count in (("places", places), ("draws", 2 if draws is None else draws)):
        check_integer(name, count, 1)


# ---- tests and the deviations that they detect


class _Scores(NamedTuple):
    """Normal scores of all draws of a site (places, draws), the places, and whether the site has states.

    ``impossible`` describes a draw at which the density is zero; it is empty if there was none.
    """

    score: Floats
    places: list[str]
    discrete: bool
    impossible: str


def _judge(found: _Scores) -> list[tuple[float, str]]:
    """Return the p-value and the message of every test of a site; messages are formats for the name of the site."""
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
    """Return the deviations that tests of a given level detect with a given probability."""
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
    """Return the number of draws at each place that suffices to detect deviations as large as the tolerance."""
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


# ---- draws, and their positions in the distribution function of the density


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


class _Examination:
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

    def scores(self, places: int, draws: int, show: Progress) -> dict[str, _Scores]:
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
            domains.names[site]: _Scores(
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
