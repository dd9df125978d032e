"""The best state of a block given the rest: the tables of filtering, with maxima in place of sums.

Forward, the message of a site is the maximum over its states; backward, each site takes the best state of its
column. A block that is already in a best state keeps it, whatever ties there are, so that hill climbing ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite._numba.pointer import call_pointer
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.blocks.filtering import DRAW, BlockWorkspace, fill_logs, find_column
from gibbsite.kernels.blocks.tables import BlockTables

# Log-weights that differ by less, relative to the largest of a column, differ by rounding alone.
_ROUNDING = 1e-12


@called
def _fill_maxima(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> None:
    """Fill the tables from ``begin`` to ``end`` with logarithms; messages are maxima."""
    pool = work.pool
    for t in range(begin, end):
        size = fill_logs(tables, arrays, work, x, t)
        many, place = tables.separator[t], tables.place[t]
        first = tables.message[t]
        for k in range(many):
            pool[first + k] = pool[place + k]
        for a in range(1, size):
            for k in range(many):
                pool[first + k] = max(pool[first + k], pool[place + a * many + k])


@called
def maximise_block(
    tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array, begin: Integer, end: Integer
) -> None:
    """Put the sites of a block into a best state given all other sites."""
    _fill_maxima(tables, arrays, work, x, begin, end)
    pool = work.pool
    for t in range(end - 1, begin - 1, -1):
        i = tables.site[t]
        size, many, column = np.int64(arrays.card[i]), tables.separator[t], find_column(tables, x, t)
        best = np.int64(x[i])
        for a in range(size):
            value, top = pool[column + a * many], pool[column + best * many]
            if value > top and not value - top <= _ROUNDING * (1.0 + abs(top)):
                best = np.int64(a)
        x[i] = best


@compiled_loop
def climb_blocks(tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array) -> None:
    """Put one block after another into a best state given the rest."""
    for block in range(tables.start.size - 1):
        maximise_block(tables, arrays, work, x, tables.start[block], tables.start[block + 1])


@compiled_loop
def draw_blocks(draw: Any, tables: BlockTables, arrays: TableGraph, work: BlockWorkspace, x: Array) -> None:
    """Draw one block after another given the rest; ``draw`` is the address of ``draw_block``."""
    for block in range(tables.start.size - 1):
        work.what[0], work.what[1] = block, DRAW
        call_pointer(draw, tables, arrays, work, x)


@compiled_loop
def score_state(arrays: TableGraph, x: Array) -> float:
    """Return the log-potential of a state, without ``Graph.log_offset``."""
    return log_potential(arrays, x)
