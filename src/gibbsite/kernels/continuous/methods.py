"""Methods that draw a new value of a site: each asks for energies at some points, and then possibly at more.

The loop over factors is in one place, separate from the methods: a method asks for the energies at some points, reads
them, and asks again or has found a value. All methods are compiled together; a number selects the method of a site.
Interpolation is in :mod:`.interpolated`; the other methods are here.

*Inverse*: if the energy is a polynomial of degree 2 at most, the density on the unit interval is exp(b t + c t^2): a
truncated exponential or normal, or, for c > 0, a density with its mass at the ends. It is drawn by rejection from at
most three exponential pieces: tangents of a concave energy at the mode and one standard deviation to the left and right
of it, which meet halfway, or chords of a convex energy on both sides of its minimum. The difference of the energy and a
tangent at p is ``c (t - p)^2``, and that of the energy and a chord over [l, r] is ``c (t - l)(t - r)``, so there is no
cancellation for flat or steep energies. At least about half of the proposals are accepted, 84 % for a normal, and all
if c = 0.

*Rejection*: uniform proposals, accepted with probability exp(U(v) - bound of U), the sum of the bounds of the
factors. Several are evaluated together, because a factor is costly to find and cheap to call again.

*Slice*: a level below the current density is drawn, then uniform draws from a shrinking interval. It begins as the
interval of the site, so there is no width to choose [1]_. A draw below the level becomes the new end on its side, and
a few dozen evaluations find even a very narrow slice. For an angle, the interval is a whole turn, cut at random.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31 (section 4.1, shrinkage).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints8
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.functions.bounds import Bounds
from gibbsite.graphs.functions.densities import wrapped
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.local import from_logs
from gibbsite.kernels.continuous.energy import CHOSEN, FACTOR, HOPELESS, MOST_TRIES, ContinuousMemory
from gibbsite.kernels.continuous.interpolated import Interpolation, answer_nodes, ask_nodes
from gibbsite.kernels.rules import pick


@inlined
def _log_mass(level: float, slope: float, width: float) -> float:
    """Return the logarithm of the integral of exp(level + slope s) over 0 < s < width."""
    if width <= 0.0:
        return -math.inf
    steep = abs(slope) * width
    top = level + max(slope * width, 0.0)
    if steep < 1e-15:
        return top + math.log(width)
    return top + math.log(-math.expm1(-steep) / steep * width)


@inlined
def draw_exponential(slope: float, u: float) -> float:
    """Return the quantile u of the density ~ exp(slope t) on the unit interval."""
    steep = abs(slope)
    if steep < 1e-15:
        return u
    t = -math.log1p(u * math.expm1(-steep)) / steep  # from the upper end, exactly where the mass is
    t = min(t, 1.0)
    return 1.0 - t if slope > 0.0 else t


@called
def draw_quadratic(b: float, c: float, rng: Words) -> tuple[Words, Any]:
    """Draw from the density ~ exp(b t + c t^2) on the unit interval."""
    # pieces [0, k1], [k1, k2], [k2, 1] with slopes s of their lines, and values e at their left ends
    k1, k2 = 0.0, 1.0
    mode, sd = 0.0, 0.0
    if c < 0.0:
        mode, sd = -0.5 * b / c, math.sqrt(-0.5 / c)
        s2 = 0.0 if 0.0 < mode < 1.0 else b if mode <= 0.0 else b + 2.0 * c
        mode = min(max(mode, 0.0), 1.0)
        if mode > sd:
            k1 = mode - 0.5 * sd
        if mode + sd < 1.0:
            k2 = mode + 0.5 * sd
        s1, s3 = s2 - 2.0 * c * sd, s2 + 2.0 * c * sd
        e2, e3 = s2 * (k1 - mode), s2 * (k2 - mode)  # above the energy at the mode
        e1 = e2 - s1 * k1
    else:
        if c > 0.0:
            k1 = k2 = min(max(-0.5 * b / c, 0.0), 1.0)
        s1, s2, s3 = b + c * k1, b, b + c * (1.0 + k2)
        e1, e2, e3 = 0.0, 0.0, b * k2 + c * k2 * k2
    m1 = _log_mass(e1, s1, k1)
    m2 = _log_mass(e2, s2, k2 - k1)
    m3 = _log_mass(e3, s3, 1.0 - k2)
    top = max(m1, m2, m3)
    w1, w2, w3 = math.exp(m1 - top), math.exp(m2 - top), math.exp(m3 - top)
    while True:
        rng, which = uniform(rng)
        rng, u = uniform(rng)
        which *= w1 + w2 + w3
        left, right, slope, touch = k1, k2, s2, mode
        if which < w1:
            left, right, slope, touch = 0.0, k1, s1, mode - sd
        elif which >= w1 + w2:
            left, right, slope, touch = k2, 1.0, s3, mode + sd
        t = left + (right - left) * draw_exponential(slope * (right - left), u)
        below = c * (t - touch) * (t - touch) if c < 0.0 else c * (t - left) * (t - right)
        if below == 0.0:
            return rng, t
        rng, u = uniform(rng)
        if u < math.exp(below):
            return rng, t


@inlined
def ask_ends(arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer) -> Integer:
    """Ask for the energies that determine a polynomial of degree 1 or 2; return their number."""
    points = memory.workspace.points
    points[0], points[1] = arrays.low[i], arrays.high[i]
    points[2] = 0.5 * (arrays.low[i] + arrays.high[i])
    return 1 + np.int64(arrays.degree[i])


@inlined
def answer_ends(arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words) -> Words:
    """Draw a new value of a site whose energy is a polynomial of degree 1 or 2."""
    low, high, energy = arrays.low[i], arrays.high[i], memory.workspace.energy
    rise = energy[1] - energy[0]
    c = 2.0 * (rise - 2.0 * (energy[2] - energy[0])) if arrays.degree[i] == 2 else 0.0
    rng, t = draw_quadratic(rise - c, c, rng)
    memory.workspace.stage[CHOSEN] = min(max(low + t * (high - low), low), high)
    return rng


#: Number of proposals that are evaluated together.
TOGETHER = 8
# Entries of the stage of an update: the bound, and the number of proposals.
_BOUND, _TRIES = 1, 2


@inlined
def _try(arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words) -> tuple[Words, Integer]:
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        memory.workspace.points[k] = arrays.low[i] + u * (arrays.high[i] - arrays.low[i])
    return rng, TOGETHER


@inlined
def ask_trials(
    bounds: Bounds, gain: float, arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Ask for the energies of some proposals; ``gain`` is log(1 + 1 / tau), the most that a drawn factor adds."""
    workspace = memory.workspace
    bound = 0.0
    begin = arrays.start[arrays.row[i]]
    for k in range(begin, begin + workspace.reach[0]):
        bound += bounds.bound[arrays.factor[k]]
    for k in range(workspace.reach[1]):
        bound += workspace.times[k] * gain
    workspace.stage[_BOUND], workspace.stage[_TRIES] = bound, 0.0
    return _try(arrays, memory, i, rng)


@inlined
def answer_trials(arrays: ContinuousGraph, memory: ContinuousMemory, i: Integer, rng: Words) -> tuple[Words, Integer]:
    """Take the first proposal that is accepted, or make more proposals."""
    workspace = memory.workspace
    for k in range(TOGETHER):
        rng, u = uniform(rng)
        if math.log(1.0 - u) <= workspace.energy[k] - workspace.stage[_BOUND]:
            workspace.stage[CHOSEN] = workspace.points[k]
            return rng, 0
    workspace.stage[_TRIES] += TOGETHER
    if workspace.stage[_TRIES] >= MOST_TRIES:
        memory.fault[0], memory.fault[FACTOR] = HOPELESS, i
        return rng, 0
    return _try(arrays, memory, i, rng)


# Entries of the stage of an update: the level, the ends of the interval, and the point that is being evaluated.
_LEVEL, _LOW, _HIGH, _AT = 1, 2, 3, 4


@inlined
def ask_slice(arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer) -> Integer:
    """Ask for the energy of the current value."""
    stage = memory.workspace.stage
    stage[_LEVEL], stage[_LOW], stage[_HIGH] = math.inf, arrays.low[i], arrays.high[i]
    stage[_AT] = x[i]
    memory.workspace.points[0] = x[i]
    return 1


@inlined
def answer_slice(
    arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Draw the level, accept a value above it, or shrink the interval."""
    stage, v, energy = memory.workspace.stage, memory.workspace.stage[_AT], memory.workspace.energy[0]
    rng, u = uniform(rng)
    if stage[_LEVEL] == math.inf:  # this was the current value
        stage[_LEVEL] = energy + math.log(1.0 - u)
        rng, u = uniform(rng)
        if arrays.period[i] > 0.0:  # a whole turn, cut at random
            stage[_LOW] = x[i] - u * arrays.period[i]
            stage[_HIGH] = stage[_LOW] + arrays.period[i]
            rng, u = uniform(rng)
    elif energy >= stage[_LEVEL] or v == x[i]:
        stage[CHOSEN] = memory.workspace.points[0]
        return rng, 0
    elif v < x[i]:
        stage[_LOW] = v
    else:
        stage[_HIGH] = v
    v = stage[_LOW] + u * (stage[_HIGH] - stage[_LOW])
    stage[_AT] = min(max(v, stage[_LOW]), stage[_HIGH])
    memory.workspace.points[0] = wrapped(arrays.low[i], arrays.period[i], stage[_AT])
    return rng, 1


STATES, INVERSE, INTERPOLATED, REJECTED, SLICED = range(5)


class Method(NamedTuple):
    """The method of each site, and the parameters of methods; ``gain`` is log(1 + 1 / tau)."""

    kind: Ints8
    interpolation: Interpolation
    gain: float
    bounds: Bounds


@inlined
def ask(
    method: Method, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Write the first points where the energy of site i is needed to the workspace; return their number."""
    kind = method.kind[i]
    if kind == STATES:
        for a in range(arrays.card[i]):
            memory.workspace.points[a] = a
        return rng, np.int64(arrays.card[i])
    if kind == INVERSE:
        return rng, ask_ends(arrays, memory, i)
    if kind == INTERPOLATED:
        return rng, ask_nodes(method.interpolation, arrays, memory, x, i)
    if kind == REJECTED:
        return ask_trials(method.bounds, method.gain, arrays, memory, i, rng)
    return rng, ask_slice(arrays, memory, x, i)


@inlined
def answer(
    method: Method, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Read the energies; return the number of further points, or write a value to ``workspace.stage`` and return 0."""
    kind = method.kind[i]
    if kind == STATES:
        size, w = np.int64(arrays.card[i]), memory.workspace.energy
        rng, u = uniform(rng)
        memory.workspace.stage[CHOSEN] = pick(w, size, u * from_logs(w, size))
        return rng, 0
    if kind == INVERSE:
        return answer_ends(arrays, memory, i, rng), 0
    if kind == INTERPOLATED:
        return answer_nodes(method.interpolation, arrays, memory, x, i, rng)
    if kind == REJECTED:
        return answer_trials(arrays, memory, i, rng)
    return answer_slice(arrays, memory, x, i, rng)
