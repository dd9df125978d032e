"""Ways of the heat bath; its random numbers are keyed by chain, sweep and position."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats32, Words32
from gibbsite._numba.random.generators import BLOCK, chain_key
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import MOST_MEMBERS, Kernel
from gibbsite.kernels.batched.base import BatchedUpdate, Streams
from gibbsite.kernels.batched.site_order import PackedModel
from gibbsite.kernels.gibbs.gibbs import Gibbs, GibbsParameters

if TYPE_CHECKING:
    from gibbsite.models import Model

# Positions that are worked on at a time: the bytes of a block of random words.
UNIT = 4 * BLOCK
# Room for the block of a member of a team. What lies behind it keeps members out of each other's cache lines:
# two processors that write to one line wait for each other.
ROOM = BLOCK + 64


class KeyedMemory(NamedTuple):
    """What a chain with keyed numbers carries: its key; for each member of a team, words and room for odds.

    ``quarters`` are the bytes of ``words``, lowest first: little-endian machines only, as all we know of are.
    """

    key: Words32
    words: Words32
    quarters: Bytes
    room: Floats32


class HeatBath(BatchedUpdate):
    """A way of the heat bath, whose new value does not depend on the old one; by default for binary sites."""

    parameters = GibbsParameters
    divisible = True

    def prepare(self, kernel: Kernel, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a model out, unless the kernel follows another rule."""
        if not isinstance(kernel, Gibbs) or kernel.rule != "heat-bath":
            return None
        return self.pack(model, graph)

    @abstractmethod
    def pack(self, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a model out; None where it does not fit."""

    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> NamedTuple:
        """Allocate room for random numbers, and for what is made of the neighbours."""
        (stream,) = streams
        words, odds = np.zeros((MOST_MEMBERS, ROOM), np.uint32), np.zeros((MOST_MEMBERS, ROOM), np.float32)
        return KeyedMemory(chain_key(stream), words, words.view(np.uint8), odds)
