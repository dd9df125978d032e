"""Check the updates of a model: what they claim against the joint density, and what they draw against both."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.checks.claims import CLAIMS
from gibbsite.applications.bugs.checks.drift import weighted_drift
from gibbsite.applications.bugs.checks.quadrature import multinomial_p, real_numbers, whole_numbers
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.machine import call
from gibbsite.applications.bugs.compiled.updates import LEARNING
from gibbsite.applications.bugs.elements import element_of

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel

_CLOSE = 1e-8
_DRAWS, _ALARM = 2000, 1e-10
_LARGEST_Z = 6.5
_MOST_JOINT = 1000  # joint values of discrete unknowns
_LEAST = 900.0  # log-densities this far below the largest are not compared
NAMES = {
    units.FORWARD: "forward draw",
    units.SLICE: "slice",
    units.WHOLE_SLICE: "slice of whole numbers",
    units.FINITE: "all values",
    units.SCALED_GAMMA: "gamma",
    units.CONJUGATE_BETA: "beta",
    units.CONJUGATE_DIRICHLET: "Dirichlet",
    units.CONJUGATE_WISHART: "Wishart",
    units.CONJUGATE_NORMAL: "normal",
    units.NORMAL_BLOCK: "normal block",
    units.SIMPLEX_SLICE: "slice of probabilities",
    units.PREDICTOR_BLOCK: "block with proposals",
    units.CHAIN: "chain",
    units.SCALE: "move with a scale",
    units.SHIFT: "move that keeps predictors",
    units.BATCH: "all values of many at once",
}


class Outcome(NamedTuple):
    """What was checked, of which unknowns, whether it holds, and the figures."""

    name: str
    subject: str
    passed: bool
    detail: str


def check_updates(model: BugsModel, states: int = 3, units_each: int = 2, seed: int = 1) -> Iterator[Outcome]:
    """Check updates at random states: for each relation, those of a few of its unknowns."""
    bench = Bench(model, seed)
    for turn in range(states):
        bench.load(model.draw_start(bench.rng))
        bench.chain.counts[LEARNING] = 1
        for _ in range(10 if turn else 60):
            for unit in range(bench.n):
                if not bench.update(unit):
                    yield Outcome("update", _subject(bench, unit), False, "the update fails")
                    return
        bench.chain.counts[LEARNING] = 0
        for unit in _some(bench, units_each):
            yield from _check_unit(bench, unit)


def _some(bench: Bench, most: int) -> list[int]:
    """Return a few random units of each relation and kind."""
    found: dict[tuple[int, int], list[int]] = {}
    for unit in bench.rng.permutation(bench.n).tolist():
        row = bench.rows[unit]
        mine = found.setdefault((int(row[units.OWN]), int(row[units.UPDATE])), [])
        if len(mine) < most:
            mine.append(unit)
    return sorted(unit for each in found.values() for unit in each)


def _subject(bench: Bench, unit: int) -> str:
    places = bench.places(unit)
    name = element_of(bench.model.assembly, int(places[0]))[1]
    more = f" and {places.size - 1} more" if places.size > 1 else ""
    return f"{name}{more}, {NAMES[int(bench.rows[unit][units.UPDATE])]}"


def _check_unit(bench: Bench, unit: int) -> Iterator[Outcome]:
    kind, subject = int(bench.rows[unit][units.UPDATE]), _subject(bench, unit)
    before = bench.values[bench.places(unit)].copy()
    if not bench.draws(unit, 1).size:
        yield Outcome("update", subject, False, "the update fails")
        return
    claim = CLAIMS.get(kind)
    if claim is not None:
        claimed, points, p_value = claim(bench, unit, before)
        joint = bench.along(bench.places(unit), points)
        yield _compare(subject, claimed(points), joint)
        if p_value is None and kind == units.BATCH:
            return
        # draws between narrow bounds depend on the value before
        p, many = (p_value(bench.draws(unit, _DRAWS)), _DRAWS) if p_value else _invariance(bench, unit, kind)
        yield Outcome("draws", subject, p > _ALARM, f"p = {p:.2g} with {many} draws")
        return
    drifting = (units.PREDICTOR_BLOCK, units.SCALE, units.SHIFT)
    if kind in drifting or (kind == units.SIMPLEX_SLICE and before.size > 2):
        z = weighted_drift(bench, unit, kind == units.SIMPLEX_SLICE)
        yield Outcome("draws", subject, z < _LARGEST_Z, f"moments drift by {z:.1f} standard errors")
        return
    if kind == units.CHAIN:
        p, many = _joint(bench, unit)
    else:
        p, many = _invariance(bench, unit, kind)
    yield Outcome("draws", subject, p > _ALARM, f"p = {p:.2g} with {many} draws")


def _compare(subject: str, claimed: Floats, joint: Floats) -> Outcome:
    """Compare two log-densities up to a constant."""
    finite = np.isfinite(joint)
    same = bool((finite == np.isfinite(claimed)).all() and finite.any())
    worst = np.inf
    if same:
        one, other = claimed[finite], joint[finite]
        top = int(other.argmax())
        one, other = one - one[top], other - other[top]
        near = other > -_LEAST
        scale = np.maximum(1.0, np.abs(other)) + 1e-5 * np.abs(joint[finite]).max()
        worst = float((np.abs(one - other) / scale)[near].max())
    return Outcome("conditional", subject, worst < _CLOSE, f"log-densities differ by {worst:.1e}")


# draws of the others, from exact draws of the conditional distribution


def _invariance(bench: Bench, unit: int, kind: int) -> tuple[float, int]:
    """Return a p-value for "the update keeps the conditional distribution, normalised numerically"."""
    from scipy import stats

    places = bench.places(unit)
    discrete = kind == units.WHOLE_SLICE or _is_discrete(bench, int(places[0]))
    pair = kind == units.SIMPLEX_SLICE
    total = float(bench.values[places].sum()) if pair else 0.0

    def log_density(at: Floats) -> Floats:
        return bench.along(places, np.stack([at, total - at], axis=1) if pair else at[:, None])

    here = float(bench.values[places[0]])
    if not bench.density() > -np.inf:
        return 0.0, 0
    grid, weights = whole_numbers(log_density, here) if discrete else real_numbers(log_density, here)
    cdf = np.cumsum(weights) / weights.sum()
    u = bench.rng.random(_DRAWS)
    if discrete:
        starts = grid[np.searchsorted(cdf, u)]
    else:
        starts = np.interp(u, np.append(0.0, cdf), grid)
    before, x, ends = bench.values.copy(), bench.x.copy(), np.empty(_DRAWS)
    for k, start in enumerate(starts):
        bench.values[:] = before
        bench.values[places] = [start, total - start] if pair else start
        call(bench.static, bench.chain, bench.x, bench.n)
        ends[k] = bench.values[places[0]] if bench.update(unit) else np.nan
    bench.values[:], bench.x[:] = before, x
    if np.isnan(ends).any() or (ends == starts).mean() > 0.999 > weights.max() / weights.sum():
        return 0.0, _DRAWS
    if discrete:
        seen = np.searchsorted(grid, ends)
        if (seen >= grid.size).any() or (grid[np.minimum(seen, grid.size - 1)] != ends).any():
            return 0.0, _DRAWS
        return multinomial_p(np.bincount(seen, minlength=grid.size), weights / weights.sum()), _DRAWS
    return float(stats.kstest(ends, lambda at: np.interp(at, grid, np.append(0.0, cdf))).pvalue), _DRAWS


def _joint(bench: Bench, unit: int) -> tuple[float, int]:
    """Return a p-value for joint draws of discrete unknowns, of as many as can be enumerated; the others are data."""
    row = bench.rows[unit]
    low, high, places = int(row[units.EXTRA_A]), int(row[units.EXTRA_B]), bench.places(unit)
    many = max(1, int(np.log(_MOST_JOINT) / np.log(high - low + 1)))
    first = int(bench.rng.integers(0, max(1, places.size - many + 1)))
    some = places[first : first + many]
    points = np.array(list(itertools.product(range(low, high + 1), repeat=some.size)), float)
    logs = bench.along(some, points)
    weights = np.exp(logs - logs.max())
    draws = bench.draws(unit, _DRAWS * (1 if some.size == places.size else 20))
    others = np.ones(places.size, np.bool_)
    others[first : first + many] = False
    fixed = bench.values[places[others]]
    draws = draws[(draws[:, others] == fixed).all(axis=1)][:, ~others]
    seen = np.ravel_multi_index(tuple((draws - low).astype(int).T), (high - low + 1,) * some.size)
    return multinomial_p(np.bincount(seen, minlength=len(points)), weights / weights.sum()), len(draws)


def _is_discrete(bench: Bench, place: int) -> bool:
    rule = bench.model.assembly.compiled[int(bench.model.network.owner[place])].rule
    return rule.distribution is not None and rule.distribution.discrete
