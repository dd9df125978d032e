"""Updates of any unknown: slice sampling, weighing of all values, draws from its distribution, in compiled code."""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.evaluator import (
    C_COUNTS,
    C_REGISTERS,
    C_TUNING,
    C_VALUES,
    C_WORDS,
    C_X,
    LANES,
    S_INDEX,
    S_LEAF,
    S_LIST,
    S_RULE,
    S_SEGMENT,
    S_SLICES,
    S_UNIT,
    run_rule,
    slice_size,
)
from gibbsite.applications.bugs.compiled.forward import draw_from
from gibbsite.applications.bugs.compiled.segments import compute_segment, segment_density
from gibbsite.applications.bugs.distributions import CATEGORICAL
from gibbsite.applications.bugs.tables import CODE, FIRST, SECOND
from gibbsite.models.random import exponential, uniform

_WIDER, SHRINK = 60, 200
# Slices along quantiles: draws from which centre and scale are learned, share of other slices, scale in standard
# deviations, and the largest distance in scales.
_KNOWN, _MEMORY, _OTHER, _SCALE, _FARTHEST = 50, 150.0, 0.05, 1.1, 1e5
# Entries of the counts of a chain: whether widths are learned; the unit whose update failed, counted from 1; whether
# the values of a chain are those of its state; and how many updates of blocks are still to be made with more slices,
# and how many slices without what was learned, because the state was set from outside.
LEARNING, FAILED, LOADED, MOVED = range(4)
FIRST_COUNT = 4
#: Numbers that are learned of an unknown that is updated by slice sampling: a width, a mean and a variance.
LEARNED = 3


@called
def recompute(static: Ints, chain: Ints, unit: Integer) -> None:
    """Compute the deterministic nodes that depend on a unit."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    at = units.UNIT_WIDTH * unit
    for s in range(row[at + units.BEGIN], row[at + units.MIDDLE]):
        compute_segment(static, chain, segment[4 * s], bool(segment[4 * s + 1]), segment[4 * s + 2], segment[4 * s + 3])


@called
def log_likelihood(static: Ints, chain: Ints, unit: Integer) -> float:
    """Return the sum of the log-densities of the stochastic nodes that depend on a unit."""
    row = array_in(static, S_UNIT, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    at, total = units.UNIT_WIDTH * unit, 0.0
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        total += segment_density(
            static, chain, segment[4 * s], bool(segment[4 * s + 1]), segment[4 * s + 2], segment[4 * s + 3]
        )
        if not total > -math.inf:
            return -math.inf
    return total


@called
def density_at(static: Ints, chain: Ints, unit: Integer, value: float) -> float:
    """Return the log-density of a unit at a value of its element, which takes it."""
    row = array_in(static, S_UNIT, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    at = units.UNIT_WIDTH * unit
    v[row[at + units.PLACE]] = value
    if row[at + units.UPDATE] == units.WHOLE_SLICE:
        v[row[at + units.PLACE]] = math.floor(value)
    own = segment_density(static, chain, row[at + units.OWN], False, row[at + units.OWN_INSTANCE], 1)
    if not own > -math.inf:
        return -math.inf
    recompute(static, chain, unit)
    found = own + log_likelihood(static, chain, unit)
    return found if found < math.inf else -math.inf


@called
def accept(static: Ints, chain: Ints, unit: Integer) -> None:
    """Copy the elements of a unit to the state."""
    row = array_in(static, S_UNIT, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    x = array_in(chain, C_X, np.float64)
    lists = array_in(static, S_LIST, np.int32)
    at = units.UNIT_WIDTH * unit
    count = row[at + units.COUNT]
    if count == 1:
        x[row[at + units.SITE]] = v[row[at + units.PLACE]]
        return
    begin = row[at + units.LISTS]
    for k in range(count):
        x[lists[begin + count + k]] = v[lists[begin + k]]


@called
def fail(chain: Ints, unit: Integer) -> None:
    """Note that an update failed."""
    array_in(chain, C_COUNTS, np.int64)[FAILED] = unit + 1


@called
def update_slice(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw an element by slice sampling with stepping out (Neal, 2003); whole numbers as intervals of length 1."""
    row = array_in(static, S_UNIT, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    widths = array_in(chain, C_TUNING, np.float64)
    counts = array_in(chain, C_COUNTS, np.int64)
    at = units.UNIT_WIDTH * unit
    place, tune = row[at + units.PLACE], row[at + units.TUNE]
    whole = row[at + units.UPDATE] == units.WHOLE_SLICE
    before = v[place]
    if whole:
        before += uniform(words)
    now = density_at(static, chain, unit, before)
    if not now > -math.inf:
        fail(chain, unit)
        return
    # what is learned leads to where it was learned, but from other starts, other modes are to be found
    moved = counts[MOVED] > 0
    counts[MOVED] = max(counts[MOVED] - 1, 0)
    known = counts[LEARNING] == 0 and not whole and not moved and counts[FIRST_COUNT + tune] >= _KNOWN
    if known and uniform(words) >= _OTHER:
        _slice_quantiles(static, chain, unit, before, now)
        accept(static, chain, unit)
        return
    height = now - exponential(words)
    width = widths[LEARNED * tune]
    low = before - width * uniform(words)
    high = low + width
    left = np.int64(uniform(words) * _WIDER)
    right = _WIDER - 1 - left
    while left > 0 and density_at(static, chain, unit, low) > height:
        low -= width
        left -= 1
    while right > 0 and density_at(static, chain, unit, high) > height:
        high += width
        right -= 1
    after, found = before, False
    for _ in range(SHRINK):
        candidate = low + uniform(words) * (high - low)
        if density_at(static, chain, unit, candidate) > height:
            after, found = candidate, True
            break
        if candidate < before:
            low = candidate
        else:
            high = candidate
    if not found:
        density_at(static, chain, unit, before)
    if counts[LEARNING] != 0:
        counts[FIRST_COUNT + tune] += 1
        learn = LEARNED * tune
        share = 1.0 / min(counts[FIRST_COUNT + tune] + 1.0, 50.0)
        widths[learn] += (max(2.5 * abs(after - before), 1e-12 * (1.0 + abs(after))) - width) * share
        if whole:
            widths[learn] = max(widths[learn], 2.0)
        share, away = 1.0 / min(float(counts[FIRST_COUNT + tune]), _MEMORY), after - widths[learn + 1]
        widths[learn + 1] += share * away
        widths[learn + 2] = (1.0 - share) * (widths[learn + 2] + share * away * away)
    accept(static, chain, unit)


@called
def _slice_quantiles(static: Ints, chain: Ints, unit: Integer, before: float, now: float) -> None:
    """Draw an element by slice sampling of its quantile under a Student distribution with two degrees of freedom.

    Where that distribution resembles the conditional one, the first candidate is nearly always taken, and is nearly
    independent of the value before (Heiner, Johnson, Christensen and Dahl, 2024).
    """
    row = array_in(static, S_UNIT, np.int64)
    words = array_in(chain, C_WORDS, np.uint64)
    widths = array_in(chain, C_TUNING, np.float64)
    learn = LEARNED * row[units.UNIT_WIDTH * unit + units.TUNE]
    centre, scale = widths[learn + 1], _SCALE * math.sqrt(widths[learn + 2])
    z = (before - centre) / scale if scale > 0.0 else math.inf
    if not abs(z) < _FARTHEST:  # left to the other slices
        return
    height = now + 1.5 * math.log(2.0 + z * z) - exponential(words)
    middle, high = z / math.sqrt(2.0 + z * z), _FARTHEST / math.sqrt(2.0 + _FARTHEST * _FARTHEST)
    low = -high
    for _ in range(SHRINK):
        u = low + uniform(words) * (high - low)
        z = u * math.sqrt(2.0 / (1.0 - u * u))
        if density_at(static, chain, unit, centre + scale * z) + 1.5 * math.log(2.0 + z * z) > height:
            return
        if u < middle:
            low = u
        else:
            high = u
    density_at(static, chain, unit, before)


@called
def update_finite(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw an element with finitely many values."""
    row = array_in(static, S_UNIT, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    at = units.UNIT_WIDTH * unit
    low, high, begin = row[at + units.EXTRA_A], row[at + units.EXTRA_B], row[at + units.EXTRA_C]
    logs = array_in(chain, C_TUNING, np.float64)
    many, top = high - low + 1, -math.inf
    if row[at + units.EXTRA_D] > 0:
        _look_up(static, chain, unit)
    else:
        for k in range(many):
            logs[begin + k] = density_at(static, chain, unit, float(low + k))
    for k in range(many):
        top = max(top, logs[begin + k])
    if not top > -math.inf:
        fail(chain, unit)
        return
    total = 0.0
    for k in range(many):
        logs[begin + k] = math.exp(logs[begin + k] - top)
        total += logs[begin + k]
    left = uniform(words) * total
    chosen = many - 1
    for k in range(many):
        left -= logs[begin + k]
        if left < 0.0:
            chosen = k
            break
    while logs[begin + chosen] == 0.0:
        chosen -= 1
    v[row[at + units.PLACE]] = float(low + chosen)
    recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def _look_up(static: Ints, chain: Ints, unit: Integer) -> None:
    """Read log-densities of all values of an element from the table of its neighbours, where they are kept."""
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    logs = array_in(chain, C_TUNING, np.float64)
    at = units.UNIT_WIDTH * unit
    low, begin, given = row[at + units.EXTRA_A], row[at + units.EXTRA_C], row[at + units.EXTRA_D]
    many, place, alone = row[at + units.EXTRA_B] - low + 1, row[at + units.PLACE], row[at + units.TUNE] != 0
    own, instance = row[at + units.OWN], row[at + units.OWN_INSTANCE]
    key = 0
    for k in range(lists[given]):
        key += (np.int64(v[lists[given + 1 + 3 * k]]) - lists[given + 2 + 3 * k]) * lists[given + 3 + 3 * k]
    table = row[at + units.EXTRA_E] + key * many
    if math.isnan(logs[table]):
        for k in range(many):
            v[place] = float(low + k)
            recompute(static, chain, unit)
            found = log_likelihood(static, chain, unit)
            if not alone:
                found += segment_density(static, chain, own, False, instance, 1)
            logs[table + k] = found if found > -math.inf else -math.inf
    for k in range(many):
        logs[begin + k] = logs[table + k]
        if alone and logs[table + k] > -math.inf:
            v[place] = float(low + k)
            logs[begin + k] += segment_density(static, chain, own, False, instance, 1)


@called
def update_forward(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw an element that nothing observed depends on from its distribution."""
    row = array_in(static, S_UNIT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    at = units.UNIT_WIDTH * unit
    rule, k = row[at + units.OWN], row[at + units.OWN_INSTANCE]
    run_rule(static, chain, rule, False, k, 1)
    r = array_in(chain, C_REGISTERS, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    code = rules[16 * rule + CODE]
    if code == CATEGORICAL:
        found = _draw_category(static, chain, rule, k, uniform(words))
    else:
        found = draw_from(
            words,
            code,
            r[rules[16 * rule + FIRST] * LANES],
            r[rules[16 * rule + SECOND] * LANES],
            r[rules[16 * rule + SECOND + 1] * LANES],
        )
    if math.isnan(found):
        fail(chain, unit)
        return
    v[row[at + units.PLACE]] = found
    recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def _draw_category(static: Ints, chain: Ints, rule: Integer, k: Integer, u: float) -> float:
    """Return a category, drawn with the weights that a rule has for instance k, by a uniform number."""
    slices = array_in(static, S_SLICES, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    number = array_in(static, S_RULE, np.int64)[16 * rule + FIRST]
    begin = array_in(chain, C_REGISTERS, np.float64)[slices[4 * number] * LANES]
    if not begin >= 0.0:
        return math.nan
    size = slice_size(slices, array_in(static, S_LEAF, np.int64), index, number, k)
    place, relative, total = np.int64(begin), slices[4 * number + 1], 0.0
    for e in range(size):
        total += v[place + index[relative + e]]
    if not 0.0 < total < math.inf:
        return math.nan
    left, last = u * total, 0
    for e in range(size):
        weight = v[place + index[relative + e]]
        if weight > 0.0:
            last = e
            if left < weight:
                break
        left -= weight
    return last + 1.0


@called
def update_simplex(static: Ints, chain: Ints, unit: Integer) -> None:
    """Draw a vector of probabilities by slice sampling: each entry with the next one, whose sum is kept."""
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    words = array_in(chain, C_WORDS, np.uint64)
    at = units.UNIT_WIDTH * unit
    count, begin = row[at + units.COUNT], row[at + units.LISTS]
    for e in range(count):
        one, other = lists[begin + e], lists[begin + (e + 1) % count]
        both, before = v[one] + v[other], v[one]
        height = _simplex_density(static, chain, unit) - exponential(words)
        if not height > -math.inf:
            fail(chain, unit)
            return
        low, high, found = 0.0, both, False
        for _ in range(SHRINK):
            v[one] = low + uniform(words) * (high - low)
            v[other] = both - v[one]
            if _simplex_density(static, chain, unit) > height:
                found = True
                break
            if v[one] < before:
                low = v[one]
            else:
                high = v[one]
        if not found:
            v[one], v[other] = before, both - before
            recompute(static, chain, unit)
    accept(static, chain, unit)


@called
def _simplex_density(static: Ints, chain: Ints, unit: Integer) -> float:
    row = array_in(static, S_UNIT, np.int64)
    at = units.UNIT_WIDTH * unit
    own = segment_density(static, chain, row[at + units.OWN], False, row[at + units.OWN_INSTANCE], 1)
    if not own > -math.inf:
        return -math.inf
    recompute(static, chain, unit)
    return own + log_likelihood(static, chain, unit)
