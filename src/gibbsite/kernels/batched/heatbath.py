"""Heat bath of many sites at once, in loops that compile to vector instructions.

Random numbers are keyed by chain, sweep and position.

Two states: given log-odds y and a random number v in (0, 1), a site takes its less probable state if
v < 1 / (1 + exp|y|), which resolves small probabilities equally well in both tails.

Any number of states: given weights w with sum W, a site takes the first state q with v W < w_0 + ... + w_q. The
weights are 32-bit floats and their sums 64-bit floats, so that small weights count at any position.

The distribution of a draw is the conditional of the model with a relative error of about 1e-6 (from the exponential,
and from the log-odds or weights), rounded to multiples of 2^-31, the resolution of v.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats, Floats32, Ints8, Ints16, Words32
from gibbsite._numba.intrinsic import float_from_bits
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite._numba.random.generators import BLOCK, chain_key
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import MOST_MEMBERS, Kernel
from gibbsite.kernels.batched.base import BatchedUpdate, PackedModel, Streams
from gibbsite.kernels.gibbs.gibbs import Gibbs, GibbsParameters

if TYPE_CHECKING:
    from gibbsite.models import Model

F = np.float32
_LOG2_E = F(1.4426950408889634)
MOST = F(80.0)
# 2^r for |r| <= 1/2 with an error of 3e-9: interpolation in Chebyshev nodes
_POWERS = tuple(
    F(c)
    for c in (
        0.00015461444724808513,
        0.0013400428177711937,
        0.00961805667843204,
        0.05550327226669895,
        0.24022650922289554,
        0.6931472067028329,
        1.0,
    )
)
_TO_UNIT = F(2.0**-31)
_HALF, _ONE = F(0.5), F(1.0)


@inlined
def exponential(y: Any) -> Any:
    """Return exp(y) for 0 <= y <= 80."""
    scaled = y * _LOG2_E
    whole = np.int32(scaled + _HALF)
    r = scaled - F(whole)
    power = _POWERS[0] * r + _POWERS[1]
    power = power * r + _POWERS[2]
    power = power * r + _POWERS[3]
    power = power * r + _POWERS[4]
    power = power * r + _POWERS[5]
    power = power * r + _POWERS[6]
    return power * float_from_bits(np.int32((whole + np.int32(127)) << np.int32(23)))


@inlined
def unit(word: np.uint32) -> Any:
    """Return a number in (0, 1] from 31 bits, with full resolution near zero."""
    return (F(np.int32(word >> np.uint32(1))) + _HALF) * _TO_UNIT


@called
def draw_at_once(
    odds: Floats32, words: Words32, at: Integer, x: Ints8, first: Integer, count: Integer, sums: Floats32, keep: bool
) -> None:
    """Draw the sites ``first``, ... from their log-odds and the random words from ``at`` on.

    The probabilities of state 1 are added to ``sums`` if ``keep`` is set; the log-odds are overwritten.
    """
    for k in range(np.uintp(count)):
        y = odds[k]
        inverse = _ONE + exponential(min(abs(y), MOST))
        up = y > F(0.0)
        x[first + k] = up != (unit(words[at + k]) * inverse < _ONE)
        odds[k] = inverse if up else -inverse
    if keep:
        add_chances(odds, np.uintp(0), sums, first, count)


@inlined
def add_chances(odds: Floats32, at: Integer, sums: Floats32, first: Integer, count: Integer) -> None:
    """Add probabilities of state 1 to sums from ``first`` on.

    ``odds`` has, from ``at`` on, the inverse probability of the less probable state, with a minus sign where
    that is state 1.
    """
    for k in range(np.uintp(count)):
        small = _ONE / odds[at + k]
        sums[first + k] += _ONE - small if small > F(0.0) else -small


@called
def draw_states_at_once(
    weight: Floats32,
    total: Floats,
    left: Floats,
    words: Words32,
    at: Integer,
    x: Ints16,
    first: Integer,
    count: Integer,
    sums: Floats32,
    keep: bool,
) -> None:
    """Draw the sites ``first``, ... from their weights and the random words from ``at`` on.

    ``weight[q, k]`` is that of state q at the k-th site, ``total`` and ``left`` are buffers with a number per
    site. The probabilities of state q are added to ``sums`` from ``q * x.size`` on if ``keep`` is set.

    v < 1 - 2^-32, so that v times the total stays below the total in 64-bit floats: a state of weight zero
    is never taken. The last state is taken if no other has been.
    """
    states, sites = np.uintp(weight.shape[0]), np.uintp(count)
    for k in range(sites):
        total[k] = 0.0
    for q in range(states):
        own = weight[q]
        for k in range(sites):
            total[k] += own[k]
    for k in range(sites):
        left[k] = (np.int32(words[at + k] >> np.uint32(1)) + 0.5) * 2.0**-31 * total[k]
        x[first + k] = 0
    for q in range(states - np.uintp(1)):
        own = weight[q]
        for k in range(sites):
            left[k] -= own[k]
            x[first + k] += left[k] >= 0.0
    if keep:
        for k in range(sites):
            total[k] = 1.0 / total[k]
        for q in range(states):
            own, cell = weight[q], q * np.uintp(x.size) + first
            for k in range(sites):
                sums[cell + k] += F(own[k] * total[k])


# Number of positions that are updated together: one for each byte of a block of random words.
UNIT = 4 * BLOCK
# Entries of the buffer of a member of a team. The padding keeps members out of each other's cache lines, because two
# processors that write to one line wait for each other.
ROOM = BLOCK + 64


class KeyedMemory(NamedTuple):
    """The key of a chain; for each member of a team, random words and a buffer for odds.

    ``quarters`` are the bytes of ``words``, lowest first, on little-endian machines.
    """

    key: Words32
    words: Words32
    quarters: Bytes
    room: Floats32


class HeatBath(BatchedUpdate):
    """A batched heat bath, whose new value does not depend on the old one; by default for binary sites."""

    parameters = GibbsParameters
    divisible = True

    def prepare(self, kernel: Kernel, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a model out, unless the kernel follows another rule."""
        if not isinstance(kernel, Gibbs) or kernel.rule != "heat-bath":
            return None
        return self.pack(model, graph)

    @abstractmethod
    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Return a model's layout, or None if the update does not fit it."""

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> NamedTuple:
        """Allocate buffers for random numbers and log-odds."""
        (stream,) = streams
        words, odds = np.zeros((MOST_MEMBERS, ROOM), np.uint32), np.zeros((MOST_MEMBERS, ROOM), np.float32)
        return KeyedMemory(chain_key(stream), words, words.view(np.uint8), odds)
