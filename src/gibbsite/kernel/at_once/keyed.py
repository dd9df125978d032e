"""What a chain carries whose random numbers are keyed by sweep and position."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import generic, implement
from gibbsite._random.generators import BLOCK, chain_key

# Positions that are worked on at a time: the bytes of a block of random words.
UNIT = 4 * BLOCK
# Room for the block of a member of a team. What lies behind it keeps members out of each other's cache lines:
# two processors that write to one line wait for each other.
ROOM = BLOCK + 64


class KeyedMemory(NamedTuple):
    """What a chain with keyed numbers carries: its key; for each member of a team, words and room for odds.

    ``quarters`` are the bytes of ``words``, lowest first: little-endian machines only, as all we know of are.
    """

    key: NDArray[np.uint32]
    words: NDArray[np.uint32]
    quarters: NDArray[np.uint8]
    room: NDArray[np.float32]


@generic
def keyed_memory(arrays: Any, stream: NDArray[np.uint64], team: int) -> Any:
    """Allocate the memory of a chain with keyed numbers that is shared by a team."""
    raise NotImplementedError


@implement(keyed_memory)
def _binary_memory(arrays: Any, stream: NDArray[np.uint64], team: int) -> KeyedMemory:
    words = np.zeros((team, ROOM), np.uint32)
    return KeyedMemory(chain_key(stream), words, words.view(np.uint8), np.zeros((team, ROOM), np.float32))
