"""Collapsed moves of a search: few sites are drawn at a temperature with all others summed out.

A cutset leaves a block of small width. Each of its sites is drawn with the whole block summed out, then the
block given the cutset (:mod:`gibbsite.kernels.blocks.collapsed`). A site that zeros tie to many others thus
changes together with all of them; draws of blocks would have to hold all of them in one block.

Cutsets are drawn at random, number by number: a site of one is summed out in another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Array, Bools
from gibbsite._numba.jit import interpreted
from gibbsite._numba.pointer import point_at
from gibbsite.graphs.graph import seal
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.inference.best_states.blocks import BlockMoves, lower_floors
from gibbsite.kernels.blocks.collapsed import DRAW, collapse
from gibbsite.kernels.blocks.cover import Limit, grow_block
from gibbsite.kernels.blocks.cut import lay_out_cutsets
from gibbsite.kernels.blocks.cutset import CutsetParameters, ask_collapse
from gibbsite.kernels.blocks.message_tables import CutTree, CutWorkspace, workspace_sizes
from gibbsite.kernels.blocks.tables import lay_out_blocks

#: Cutsets that a search goes through at most.
MOST_CUTSETS = 6
# log2 of the most entries of a table: a cutset site is drawn in microseconds, and few sites are cut.
_WIDTH = 6.0
_MOST_SITES = 10_000  # larger models have more cutset sites than can be gone through again and again
_LEAST_REST = 0.7  # share of the sites that must be left to be summed out


@dataclass(frozen=True)
class Cutset:
    """A cutset with the tree of the other sites, and which of its operands are factors with zeros."""

    tree: CutTree
    zeros: Bools


class CutsetMoves:
    """Cutsets of a model and what is needed to move along them.

    Parameters
    ----------
    blocks : BlockMoves
        The model as tables.
    width : float
        log2 of the most entries of a table, or of the two largest sites together if that is more.
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
        """Find another cutset; always the same ones in the same order."""
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
        """About how long a sweep takes on average, in nanoseconds that depend on the model alone."""
        sites = self.blocks.arrays.card.size
        spans = sum(one.tree.spanned.size for one in self.cutsets) / len(self.cutsets)
        return 400.0 * (sites + 2.0 * spans)

    def workspace(self, cutset: Cutset) -> CutWorkspace:
        """Allocate room for the messages of a cutset."""
        sizes = workspace_sizes(cutset.tree, self.blocks.arrays)
        return CutWorkspace(*(np.zeros(length, kind) for length, kind in sizes))

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
    """Return the collapsed moves of a model; None where it has no zeros, or too many sites are cut."""
    if blocks is None or not blocks.zeros.any() or blocks.arrays.card.size > _MOST_SITES:
        return None
    found = CutsetMoves(blocks)
    rest = found.cutsets[0].tree.tables.site.size
    return found if rest >= _LEAST_REST * blocks.arrays.card.size else None
