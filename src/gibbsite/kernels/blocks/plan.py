"""Blocks with their clique tables, and the compiled step that draws one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Positions, Words64
from gibbsite._numba.jit import Integer, compiled_loop, generic, implement
from gibbsite._numba.pointer import call_pointer, point_at
from gibbsite._numba.random.generators import Words, load, store
from gibbsite.graphs.elimination.order import EliminationOrder
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.kernels.base import Buffer, step, transition
from gibbsite.kernels.blocks.filtering import (
    DRAW,
    MARGINALS,
    BlockWorkspace,
    chance_of,
    draw_block,
    filter_block,
    make_workspace,
)
from gibbsite.kernels.blocks.tables import BlockTables
from gibbsite.kernels.gibbs.gibbs import GibbsParameters
from gibbsite.kernels.rules import HEAT_BATH, HeatBath

_ADDRESSES: dict[Any, Any] = {}


class BlockParameters(NamedTuple):
    """The tables of the blocks, the model as tables, and the address of :func:`.filtering.draw_block`."""

    tables: BlockTables
    model: TableGraph
    draw: Any


class BlockMemory(NamedTuple):
    """Buffers for a block, and for a single site."""

    block: BlockWorkspace
    site: Buffer

    @property
    def rebuildable(self) -> bool:
        """True: no step reads what an earlier one has written."""
        return True


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """The blocks of a model, with their clique tables."""

    blocks: list[Ints]  # the sites of each
    orders: list[EliminationOrder]  # orders of elimination, as positions in the block, with costs
    tables: BlockTables
    pool: int  # entries of the tables of the largest block
    model: TableGraph

    members = 1  # threads that can share a block

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    @property
    def log2_largest(self) -> float:
        """log2 of the entries of the largest table."""
        return max(order.log2_largest for order in self.orders)

    @property
    def total(self) -> float:
        """Number of entries of all tables of all blocks, a measure of the cost of a sweep."""
        return sum(order.total for order in self.orders)

    def sites_of(self, unit: int) -> Positions:
        """Return the sites of a block, in the order in which they are eliminated."""
        tables = self.tables
        return tables.site[tables.start[unit] : tables.start[unit + 1]].astype(np.intp)

    def parameters(self, graph: Graph) -> BlockParameters:
        """Return the tables of the blocks."""
        return BlockParameters(self.tables, self.model, _address(self, graph))

    def memory(self, graph: Graph) -> BlockMemory:
        """Allocate buffers for the largest block."""
        site = Buffer(np.zeros(int(graph.cards.max(initial=1))))
        work = make_workspace(self.tables, self.model, self.pool)
        return BlockMemory(work, site)


@compiled_loop
def do_meet(parameters: BlockParameters, work: BlockWorkspace, x: Array, y: Array, words: Words64, sweeps: int) -> bool:
    """Draw all blocks of two states with the same random numbers, repeatedly; return whether they meet."""
    tables, model, what = parameters.tables, parameters.model, work.what
    for _ in range(sweeps):
        for block in range(tables.start.size - 1):
            what[0], what[1] = block, DRAW
            store(work.words, load(words))
            call_pointer(parameters.draw, tables, model, work, x)
            store(work.words, load(words))
            call_pointer(parameters.draw, tables, model, work, y)
            store(words, load(work.words))
        apart = 0
        for i in range(x.size):
            apart += x[i] != y[i]
        if apart == 0:
            return True
    return False


def _address(plan: BlockPlan, graph: Graph) -> Any:
    """Return the address of the function that draws a block, compiled for the states of a graph."""
    found = _ADDRESSES.get(graph.state_dtype)
    if found is None:
        work = BlockWorkspace(*(np.zeros(1, part) for part in "ddqdddQq"))
        x = np.zeros(1, graph.state_dtype)
        found = point_at(draw_block, plan.tables, plan.model, work, x)
        _ADDRESSES[graph.state_dtype] = found
    return found


@generic
def put_marginal(arrays: Any, w: Floats, at: Integer, size: Integer, i: Integer, cond: Floats) -> None:
    """Copy the marginal of a site given the sites outside its block, from ``w[at]`` on, to ``cond``."""
    raise NotImplementedError


@implement(put_marginal)
def _put_cells(arrays: Any, w: Floats, at: Integer, size: Integer, i: Integer, cond: Floats) -> None:
    for a in range(size):
        cond[arrays.offset[i] + a] = w[at + a]


@implement(put_marginal, IsingGraph)
@implement(put_marginal, LatticeGraph)
def _put_odds(arrays: Any, w: Floats, at: Integer, size: Integer, i: Integer, cond: Floats) -> None:
    if w[at] == 0.0:
        cond[i] = np.inf
    else:
        cond[i] = math.log(w[at + 1] / w[at]) if w[at + 1] > 0.0 else -np.inf


@implement(step, BlockParameters)
def _step(
    params: Any, arrays: Any, memory: BlockMemory, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    tables, model, work = params.tables, params.model, memory.block
    begin, end = tables.start[i], tables.start[i + np.uintp(1)]
    if end == begin + 1:
        site = np.uintp(tables.site[begin])
        return step(GibbsParameters(HeatBath(HEAT_BATH)), arrays, memory.site, x, site, rng, cond, keep)
    what = work.what
    what[0], what[1] = i, MARGINALS if keep else DRAW
    store(work.words, rng)
    call_pointer(params.draw, tables, model, work, x)
    if keep and what[2] == 1:
        at = np.int64(0)
        for t in range(begin, end):
            site = np.uintp(tables.site[t])
            size = np.int64(model.card[site])
            put_marginal(arrays, work.marginal, at, size, site, cond)
            at += size
    return load(work.words)


@implement(transition, BlockParameters)
def _transition(
    parameters: BlockParameters, arrays: Any, memory: BlockMemory, x: Array, i: Integer, row: Floats
) -> Integer:
    """Write, for all states of the block, the product of the probabilities with which its sites are drawn."""
    tables, model, work = parameters.tables, parameters.model, memory.block
    begin, end = tables.start[i], tables.start[i + np.uintp(1)]
    filter_block(tables, model, work, x, begin, end)
    count = np.int64(1)
    for t in range(begin, end):
        count *= np.int64(model.card[tables.site[t]])
    for number in range(count):
        rest = np.int64(number)
        for t in range(end - 1, begin - 1, -1):
            site = tables.site[t]
            x[site] = rest % np.int64(model.card[site])
            rest //= np.int64(model.card[site])
        row[number] = 1.0
        for t in range(begin, end):
            row[number] *= chance_of(tables, model, work, x, t)
    return count
