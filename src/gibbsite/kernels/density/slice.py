"""Slice sampling, one coordinate at a time: uniform draws under the graph of the density.

A height below the density at x_i is drawn, then an interval around x_i that is widened until the density at both ends
is below the height. Then values are drawn from the interval, which shrinks to each rejected value, until the density at
one of them is above the height (Neal, 2003, figures 3 and 5). The kernel is exact for every width. For an angle, the
interval is a whole turn, cut at random.

References
----------
.. [1] Neal, R. M. (2003). Slice sampling. Annals of Statistics 31.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import Words, below, uniform
from gibbsite._numba.random.ziggurat import exponential
from gibbsite.graphs.functions.densities import is_whole, part_of, period_of, wrapped
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import step
from gibbsite.kernels.density.metropolis import read_scale
from gibbsite.kernels.density.moves import ACCEPTED, MOVES, TUNING, MoveMemory, WalkingKernel, arrive, checked, is_stuck
from gibbsite.kernels.registry import register

_WIDER = 64  # how often an interval may be widened
_SHRINK = 200  # after this many cuts an interval has shrunk to the place itself


class SliceParameters(NamedTuple):
    """The limit on widening an interval."""

    most: int


@register(proof="tests/proofs/test_densities.py", recommend={"Slice": {}})
@dataclass(frozen=True)
class Slice(WalkingKernel):
    """Slice sampling of one coordinate at a time, in the order of the scan; it needs no gradient and little tuning.

    Parameters
    ----------
    width : float or array (n,), optional
        First width of intervals, ideally about as wide as the conditional distribution of a coordinate. By default it
        is learned in the warmup, as twice the mean distance of a move.

    References
    ----------
    Neal (2003), Slice sampling.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.LogDensity(lambda x: -abs(x[0]) - abs(x[1] - x[0]), dim=2)
    >>> result = gs.sample(target, gs.Slice(), sweeps=5000, rng=1, progress=False)
    >>> 1.2 < result.marginals["0"]["sd"] < 1.6
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"density", "data", "functions"})
    joint: ClassVar[bool] = False
    rejects: ClassVar[bool] = False
    size_name: ClassVar[str] = "width"
    width: npt.ArrayLike | None = None

    def learns(self) -> tuple[bool, bool]:
        """Return whether widths are learned in the warmup."""
        return self.width is None, False

    def first_size(self, graph: Graph) -> Floats:
        """Return the first widths."""
        return read_scale(1.0 if self.width is None else self.width, graph.n_sites)

    def parameters(self, graph: Graph) -> SliceParameters:
        """Return the limit on widening."""
        self.first_size(graph)  # refuses invalid arguments
        return SliceParameters(_WIDER)

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the width, and the mean number of evaluations of the density per move."""
        counts = np.sum([memory.counts for memory in memories], axis=0)
        evaluations = counts[ACCEPTED] / max(int(counts[MOVES]), 1)
        return {**super().report(memories), "evaluations": float(evaluations)}


@inlined
def _look(arrays: Any, memory: MoveMemory, x: Floats, i: Integer, v: Any) -> float:
    """Return the log-density, or the part that depends on coordinate i, with the coordinate at v; -inf if outside."""
    v = wrapped(arrays.low[i], period_of(arrays, i), v)
    if not arrays.low[i] <= v <= arrays.high[i]:
        return -math.inf
    memory.counts[ACCEPTED] += 1
    before = x[i]
    x[i] = v
    value = checked(memory, part_of(arrays, x, i), x)
    x[i] = before
    return value


@implement(step, SliceParameters)
def _slice(
    params: Any, arrays: Any, memory: MoveMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw coordinate i by slice sampling."""
    whole = is_whole(arrays)
    if is_stuck(memory) or (whole and not arrive(arrays, memory, x)):
        return rng
    now = memory.now[0] if whole else checked(memory, part_of(arrays, x, i), x)
    turn = period_of(arrays, i)
    before, width = x[i], memory.size[i] if turn == 0.0 else turn
    rng, e = exponential(rng)
    height = now - e
    rng, u = uniform(rng)
    low = before - u * width
    high = low + width
    # the limit is divided at random between both ends, so that the reverse move is as likely (Neal, figure 3)
    rng, left = below(rng, params.most)
    right = params.most - 1 - left
    if turn > 0.0:  # a whole turn, cut at random
        left = right = 0
    while left > 0 and _look(arrays, memory, x, i, low) > height:
        low -= width
        left -= 1
    while right > 0 and _look(arrays, memory, x, i, high) > height:
        high += width
        right -= 1
    after, value = before, now
    for _ in range(_SHRINK):
        rng, u = uniform(rng)
        v = low + u * (high - low)
        found = _look(arrays, memory, x, i, v)
        if found > height:
            after, value = v, found
            break
        if v < before:
            low = v
        else:
            high = v
    if is_stuck(memory):
        return rng
    x[i] = wrapped(arrays.low[i], turn, after)
    memory.now[0] = value
    memory.counts[MOVES] += 1
    if memory.counts[TUNING] != 0 and after != before and turn == 0.0:
        memory.visits[i] += 1
        memory.size[i] += (2.0 * abs(after - before) - width) / (memory.visits[i] + 1.0)
    return rng
