"""Block and cutset moves of a search for the best state.

A block is drawn jointly from its conditional at temperature T, which is the model with all log-potentials divided by T
(:mod:`gibbsite.kernels.blocks.filtering`), or put into its best state given the rest
(:mod:`gibbsite.kernels.blocks.filtering`). Blocks hold most of the sites of a sparse model, so that few sweeps lead to
another region, and sites that zeros tie to each other move together.

A cutset is a set of sites without which the others form a block of small width. Each of its sites is drawn with the
whole block summed out, then the block given the cutset (:mod:`gibbsite.kernels.blocks.messages`). A site that zeros tie
to many others thus changes together with all of them, which draws of blocks could only do with one block for all.

Covers of blocks and cutsets are drawn at random, one after the other: the first ones are found quickly, and a site that
is cut in one moves freely in another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats
from gibbsite._numba.jit import interpreted
from gibbsite._numba.pointer import point_at
from gibbsite.graphs.graph import Graph, as_tables, seal
from gibbsite.graphs.kinds.distance import DistanceGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.kernels.blocks.cover import Limit, cover_sites, grow_block, tie_factors, tie_sites
from gibbsite.kernels.blocks.cutset import CutsetParameters, ask_collapse
from gibbsite.kernels.blocks.filtering import (
    BlockWorkspace,
    climb_blocks,
    draw_block,
    draw_blocks,
    make_workspace,
    score_state,
)
from gibbsite.kernels.blocks.message_tables import CutTree, CutWorkspace, lay_out_cutsets, make_messages
from gibbsite.kernels.blocks.messages import DRAW, collapse
from gibbsite.kernels.blocks.tables import BlockTables, find_interactions, lay_out_blocks

MOST_COVERS, MOST_CUTSETS = 6, 6  #: of a search
# Largest number of sites, and log2 of the largest table for it, such that a sweep takes milliseconds.
_WIDTHS = ((4_000, 12.0), (10_000, 10.0), (math.inf, 8.0))
_MOST_SITES = 30_000  # finding blocks takes long in larger models
_MOST_PAIRS = 32  # per site: blocks of denser models hold few of their sites
_MOST_ENTRIES = 1 << 24  # of the tables of a model: they are raised to a power for every sweep
_LOG_TINY = math.log(1e-300)


@dataclass(frozen=True)
class Cover:
    """Blocks that cover all sites: their tables, the entries of their pool and of all tables."""

    tables: BlockTables
    pool: int
    entries: int
    floors: Floats  # log of the smallest positive entry of each operand that is a factor
    zeros: Bools  # operands that are factors with zeros


class BlockMoves:
    """Moves of whole blocks of sites: covers of a model by blocks, and the arrays for draws and hill climbing.

    Hill climbing replaces the log-weight of a zero by ``-price``.
    """

    def __init__(self, graph: Graph, price: float) -> None:
        self.arrays: TableGraph = as_tables(graph).arrays
        self.dtype = graph.state_dtype
        self.near = find_interactions(self.arrays)
        self.ties = tie_sites(self.arrays)
        self.zeros = np.append(tie_factors(self.arrays) == 1.0, False)
        self.firm = self.cooled(1.0, price, plain=False)
        self.covers: list[Cover] = []
        found, pool = lay_out_blocks(self.arrays, [])
        empty = seal(found)
        work, x = make_workspace(empty, self.arrays, pool), np.zeros(self.arrays.card.size, self.dtype)
        self.draw = point_at(draw_block, empty, self.arrays, work, x)
        climb_blocks(empty, self.firm, work, x)  # compiled or loaded now, so that it does not count as time
        draw_blocks(self.draw, empty, self.arrays, work, x)
        score_state(self.firm, x)

    def add_cover(self) -> None:
        """Find another cover; the sequence of covers is deterministic."""
        number, n = len(self.covers), self.arrays.card.size
        log2 = next(width for most, width in _WIDTHS if n <= most)
        log2 = max(log2, math.log2(float(self.arrays.card.max(initial=1))) * 2.0)
        with interpreted(math.inf):
            blocks = cover_sites(self.near, self.arrays.card, Limit(log2), self.ties, None if number == 0 else number)
            found, pool = lay_out_blocks(self.arrays, blocks)
        tables = seal(found)
        sizes = self.arrays.card[tables.site] * tables.separator
        zeros = self.have_zeros(tables)
        self.covers.append(Cover(tables, pool, int(sizes.sum()), np.log(tables.floor), zeros))

    def have_zeros(self, tables: BlockTables) -> Bools:
        """Return which operands of tables are factors with zeros."""
        found: Bools = self.zeros[tables.factor] & (tables.factor >= 0)
        return found

    def workspace(self, cover: Cover) -> BlockWorkspace:
        """Allocate the workspace for the largest block of a cover."""
        return make_workspace(cover.tables, self.arrays, cover.pool)

    def cooled(self, inverse: float, price: float, plain: bool = True) -> TableGraph:
        """Return the model at an inverse temperature, with zeros at a price, which may be infinite."""
        unary, logs = (inverse * np.maximum(part, -price) for part in (self.arrays.log_unary, self.arrays.log_value))
        changed: dict[str, Any] = {"log_unary": unary, "log_value": logs}
        if plain:
            changed["value"] = np.exp(logs)
        return seal(self.arrays._replace(**changed))

    def draw_cover(
        self, cover: Cover, arrays: TableGraph, inverse: float, price: float, work: BlockWorkspace, x: Array
    ) -> None:
        """Draw all blocks of a cover from a model that was cooled down."""
        lowest = lower_floors(cover.floors, cover.zeros, price)
        tables = seal(cover.tables._replace(floor=np.exp(np.maximum(inverse * lowest, _LOG_TINY))))
        draw_blocks(self.draw, tables, arrays, work, x)

    def climb(self, x: Array, works: list[BlockWorkspace]) -> float:
        """Improve the state block by block until no cover does; return its log-potential, with zeros at their price."""
        value = float(score_state(self.firm, x))
        idle, turn = 0, 0
        while idle < len(self.covers):
            number = turn % len(self.covers)
            climb_blocks(self.covers[number].tables, self.firm, works[number], x)
            reached = float(score_state(self.firm, x))
            idle = 0 if reached > value + 1e-12 * (1.0 + abs(value)) else idle + 1
            value, turn = max(value, reached), turn + 1
        return value


def lower_floors(floors: Floats, zeros: Bools, price: float) -> Floats:
    """Return the logarithms of the smallest positive entries, given the price of zeros."""
    return np.minimum(floors, np.where(zeros, -price, 0.0)) if price < math.inf else floors


def find_block_moves(graph: Graph, price: float) -> BlockMoves | None:
    """Return the block moves of a model; None if blocks would be small, or take long to find."""
    n = graph.n_sites
    if not 1 < n <= _MOST_SITES or isinstance(graph.arrays, DistanceGraph):
        return None
    arrays: TableGraph = as_tables(graph).arrays
    if arrays.table.size > _MOST_PAIRS * n or arrays.log_value.size > _MOST_ENTRIES:
        return None
    return BlockMoves(graph, price)


# log2 of the largest table, such that a cutset site is drawn in microseconds and few sites are cut.
_WIDTH = 6.0
_MOST_CUT_SITES = 10_000  # larger models have too many cutset sites for repeated sweeps
_LEAST_REST = 0.7  # share of the sites that must be left to be summed out


@dataclass(frozen=True)
class Cutset:
    """A cutset with the tree of the other sites, and which of its operands are factors with zeros."""

    tree: CutTree
    zeros: Bools


class CutsetMoves:
    """Cutsets of a model, and the arrays for moving along them.

    ``width`` is log2 of the most entries of a table; at least the two largest sites fit together.
    """

    def __init__(self, blocks: BlockMoves, width: float = _WIDTH) -> None:
        self.blocks, self.width = blocks, width
        self.cutsets: list[Cutset] = []
        self.add()
        first, work = self.cutsets[0], self.workspace(self.cutsets[0])
        self.collapse = point_at(collapse, first.tree, blocks.arrays, work, work.codes)
        x = np.zeros(blocks.arrays.card.size, blocks.dtype)
        parameters = CutsetParameters(first.tree, blocks.firm, self.collapse)
        ask_collapse(parameters, work, x, DRAW, 0, 0)  # compiled or loaded now

    def add(self) -> None:
        """Find another cutset; the sequence of cutsets is deterministic."""
        blocks, number = self.blocks, len(self.cutsets)
        arrays = blocks.arrays
        n, log_card = arrays.card.size, np.log2(arrays.card)
        limit = Limit(max(self.width, 2.0 * float(log_card.max(initial=0.0))))
        rng = None if number == 0 else np.random.default_rng([number, n])
        every, none = np.ones(n, bool), np.zeros(n, bool)
        with interpreted(np.inf):
            rest = grow_block(blocks.near, log_card, limit, every, none, blocks.ties, rng)
            tree = seal(lay_out_cutsets(arrays, lay_out_blocks(arrays, [rest])[0]))
        self.cutsets.append(Cutset(tree, blocks.have_zeros(tree.tables)))

    @property
    def work(self) -> float:
        """Predicted average time of a sweep in nanoseconds, which depends on the model alone."""
        sites = self.blocks.arrays.card.size
        spans = sum(one.tree.spanned.size for one in self.cutsets) / len(self.cutsets)
        return 400.0 * (sites + 2.0 * spans)

    def workspace(self, cutset: Cutset) -> CutWorkspace:
        """Allocate the workspace for the messages of a cutset."""
        return make_messages(cutset.tree, self.blocks.arrays)

    def draw(
        self, cutset: Cutset, arrays: TableGraph, inverse: float, price: float, work: CutWorkspace, x: Array
    ) -> None:
        """Draw the sites of a cutset, then all others, from a model that was cooled down."""
        low = inverse * lower_floors(cutset.tree.low, cutset.zeros, price)
        work.valid[:] = 0
        work.fresh[:] = 0
        parameters = CutsetParameters(seal(cutset.tree._replace(low=low)), arrays, self.collapse)
        ask_collapse(parameters, work, x, DRAW, 0, 0)


def find_cutset_moves(blocks: BlockMoves | None) -> CutsetMoves | None:
    """Return the cutset moves of a model; None if it has no zeros, or too many sites are cut."""
    if blocks is None or not blocks.zeros.any() or blocks.arrays.card.size > _MOST_CUT_SITES:
        return None
    found = CutsetMoves(blocks)
    rest = found.cutsets[0].tree.tables.site.size
    return found if rest >= _LEAST_REST * blocks.arrays.card.size else None
