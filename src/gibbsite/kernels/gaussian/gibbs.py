"""Gibbs sampling of normal distributions: the conditional of a site is normal, given by a row of the precision.

With over-relaxation (Adler, 1981), the new value lies on the other side of the conditional mean m,

    x' = m + a (x - m) + s sqrt(1 - a^2) z,    -1 < a < 1,

which leaves the target invariant for every a; a = 0 is the heat bath. With chromatic scans, all sites of a color move
at once on any number of threads: the random number of a site is keyed by sweep and position, so results do not depend
on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Words32, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import BLOCK, LANES, SINGLE, WORDS, Words, chain_key, fill_keyed, philox
from gibbsite._numba.random.ziggurat import normal, normal_of
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.gaussian import GaussianGraph
from gibbsite.kernels.base import MOST_MEMBERS, Kernel, Span, step, visit
from gibbsite.kernels.batched.heatbath import ROOM
from gibbsite.kernels.registry import register
from gibbsite.scans.base import Phased, run_end

_U = np.uintp
_U32, _U64 = np.uint32, np.uint64
# Number of normal draws from a block of words; each draw takes two words of 32 bits.
_EACH = BLOCK // 2


class GaussianParameters(NamedTuple):
    """The weights of the old value and of the noise."""

    back: float
    noise: float


class GaussianMemory(NamedTuple):
    """The key of a chain, and a buffer for the random words of each member of a team."""

    key: Words32
    words: Words32


@register(
    proof="tests/proofs/test_gaussian.py",
    default_for=["gaussian"],
    recommend={"GaussianGibbs": {}, "GaussianGibbs, over-relaxed": {"relax": 0.9}},
)
@dataclass(frozen=True)
class GaussianGibbs(Kernel):
    """Gibbs sampling of a normal distribution.

    Parameters
    ----------
    relax : float
        Over-relaxation, from 0 (heat bath) to below 1: the mean distance of the new value beyond the conditional mean,
        relative to that of the old value. Values near 1 let strongly dependent sites move far in the same direction.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.Gaussian([1.0, 0.0], [[1.0, 0.8], [0.8, 2.0]])
    >>> result = gs.sample(target, gs.kernels.GaussianGibbs(), sweeps=4000, rng=1, progress=False)
    >>> abs(result.marginals["0"]["mean"] - 1.0) < 0.1, abs(result.marginals["1"]["sd"] - 2**0.5) < 0.1
    (True, True)
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"gaussian"})
    conditional: ClassVar[bool] = False
    relax: float = 0.0

    def parameters(self, graph: Graph) -> GaussianParameters:
        """Return the weights of old value and noise."""
        if not 0.0 <= self.relax < 1.0:
            raise ArgumentError(f"{argument('relax')} must be at least 0 and below 1, got {self.relax!r}.")
        return GaussianParameters(-float(self.relax), math.sqrt(1.0 - self.relax**2))

    def memory(self, graph: Graph, stream: Words64) -> GaussianMemory:
        """Allocate buffers for random words."""
        return GaussianMemory(chain_key(stream), np.zeros((MOST_MEMBERS, ROOM), np.uint32))

    def shareable(self, graph: Graph) -> bool:
        """Return True, because random numbers are keyed by position if colors are visited."""
        return True


@inlined
def _moved(parameters: GaussianParameters, arrays: GaussianGraph, x: Array, i: Integer, z: float) -> Any:
    """Return the new value of a site for a standard normal number."""
    mean = arrays.center[i]
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + np.uintp(1)])):
        mean -= arrays.weight[k] * x[arrays.neighbour[k]]
    return mean + parameters.back * (x[i] - mean) + parameters.noise * arrays.sd[i] * z


@implement(step, GaussianParameters)
def _step(
    params: Any, arrays: Any, memory: GaussianMemory, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    rng, z = normal(rng)
    x[i] = _moved(params, arrays, x, i, z)
    return rng


@inlined
def _spare(key: Words32, turn: Integer, position: Integer) -> Words:
    """Return a generator for one position of a sweep, for the few normal numbers that need a second try."""
    low, high = _U32(_U64(turn) & _U64(0xFFFFFFFF)), _U32(_U64(turn) >> _U64(32))
    at = _U64(position)
    first, second = _U32(at & _U64(0xFFFFFFFF)), _U32(at >> _U64(32)) | SINGLE
    a, b, c, d = philox(first, second, low, high, key[0], key[1])
    one, two = _U64(a) | (_U64(b) << _U64(32)), _U64(c) | (_U64(d) << _U64(32))
    return one, two, one ^ _U64(0x9E3779B97F4A7C15), two + _U64(0xBF58476D1CE4E5B9)


@implement(visit, GaussianParameters, GaussianGraph, Phased)
def _walk_colors(
    params: Any, arrays: Any, schedule: Phased, memory: Any, x: Array, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Draw the sites of one color after another, shared by the threads of a team."""
    stop, turn, team = span.stop, span.turn, span.team
    words, key = memory.words[team.member], memory.key
    begin = span.where
    while begin < stop:
        end = run_end(schedule, begin, stop)
        many, members, member = end - begin, _U(team.size), _U(team.member)
        low, high = begin + many * member // members, begin + many * (member + _U(1)) // members
        while low < high:
            block = low // _U(_EACH)
            last = min(high, (block + _U(1)) * _U(_EACH))
            fill_keyed(words, key[0], key[1], turn, block * _U(LANES), LANES, WORDS)
            for p in range(low, last):
                at = p - block * _U(_EACH)
                word = _U64(words[at]) | (_U64(words[at + _U(_EACH)]) << _U64(32))
                i = np.uintp(schedule.order[p])
                x[i] = _moved(params, arrays, x, i, normal_of(word, _spare(key, turn, p)))
            low = last
        begin = end
        if team.size > 1:
            wait_for_all(team.gate, team.size)
    return rng
