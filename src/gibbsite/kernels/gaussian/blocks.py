"""Blocked Gibbs sampling of normal distributions: the sites of a block are drawn together.

Given the others, the sites b of a block are normal with precision Q_bb = L L^T and mean

    mean_b - Q_bb^-1 Q_bo (x_o - mean_o),

so with standard normal numbers z, x_b = mean_b + L^-T (z - L^-1 Q_bo (x_o - mean_o)). Sites that depend
strongly on each other should be in one block; blocks may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Positions, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words
from gibbsite._numba.random.ziggurat import normal
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.gaussian import GaussianGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.registry import register


class BlockParameters(NamedTuple):
    """Blocks as arrays."""

    # start, member: sites of block b: ``member[start[b] : start[b + 1]]``
    start: Ints
    member: Ints
    # place, factor: its Cholesky factor, row by row, from ``factor[place[b]]`` on
    place: Ints
    factor: Floats
    # row, other, entry: entries of the precision between the k-th member and sites outside its block:
    # ``row[k] : row[k + 1]``
    row: Ints
    other: Ints
    entry: Floats


class BlockMemory(NamedTuple):
    """Room for a block."""

    work: Floats

    @property
    def rebuildable(self) -> bool:
        """Every step begins anew."""
        return True


@register(proof="tests/proofs/test_gaussian.py")
@dataclass(frozen=True)
class BlockedGaussianGibbs(Kernel):
    """Gibbs sampling of a normal distribution, block by block.

    Parameters
    ----------
    blocks : sequence of sequences of int
        Positions of the sites of each block; every site must be in one. Blocks may overlap.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.Gaussian(covariance=[[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> kernel = gs.kernels.BlockedGaussianGibbs([[0, 1], [2]])
    >>> result = gs.sample(target, kernel, sweeps=1000, rng=1, progress=False)
    >>> result.ess["0"]["mean"] > 2000
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"gaussian"})
    conditional: ClassVar[bool] = False
    blocks: Sequence[Sequence[int]] = ()

    def units(self, graph: Graph) -> int | None:
        """Visit blocks."""
        return len(self._read(graph))

    def sites_of(self, graph: Graph, unit: int) -> Positions:
        """Return the sites of a block."""
        return self._read(graph)[unit]

    def _read(self, graph: Graph) -> list[Ints]:
        try:
            blocks = [np.asarray(block, np.int64).ravel() for block in self.blocks]
        except (TypeError, ValueError):
            raise ArgumentError(
                f"{argument('blocks')} must be lists of positions of sites, got {self.blocks!r}."
            ) from None
        seen = np.zeros(graph.n_sites, bool)
        for number, block in enumerate(blocks):
            if not block.size or (block < 0).any() or (block >= graph.n_sites).any():
                raise ArgumentError(
                    f"block {number} must name positions from 0 to {graph.n_sites - 1}, got {block.tolist()}."
                )
            if np.unique(block).size < block.size:
                raise ArgumentError(f"block {number} names a site twice: {block.tolist()}.")
            seen[block] = True
        if not seen.all():
            raise ArgumentError(f"site {int(np.argmin(seen))} is in no block; every site must be in one.")
        return blocks

    def parameters(self, graph: Graph) -> BlockParameters:
        """Return the blocks with their Cholesky factors."""
        arrays: GaussianGraph = graph.arrays
        factors, rows, others, entries = [], [0], [], []
        blocks = self._read(graph)
        place_in = np.full(graph.n_sites, -1)
        for block in blocks:
            place_in[block] = np.arange(block.size)
            own = np.diag(arrays.sd[block] ** -2)
            for k, site in enumerate(block.tolist()):
                near = slice(int(arrays.start[site]), int(arrays.start[site + 1]))
                neighbour = arrays.neighbour[near].astype(np.int64)
                value = arrays.weight[near] / arrays.sd[site] ** 2
                inside = place_in[neighbour] >= 0
                own[k, place_in[neighbour[inside]]] = value[inside]
                others.append(neighbour[~inside])
                entries.append(value[~inside])
                rows.append(rows[-1] + int((~inside).sum()))
            factors.append(np.linalg.cholesky(0.5 * (own + own.T)).ravel())
            place_in[block] = -1
        sizes = np.array([block.size for block in blocks])
        return BlockParameters(
            start=row_starts(sizes),
            member=np.concatenate(blocks),
            place=row_starts(sizes**2),
            factor=np.concatenate(factors),
            row=np.array(rows, np.int64),
            other=np.concatenate(others),
            entry=np.concatenate(entries),
        )

    def memory(self, graph: Graph, stream: Words64) -> BlockMemory:
        """Allocate room for the largest block."""
        return BlockMemory(np.zeros(max(block.size for block in self._read(graph))))


@implement(step, BlockParameters)
def _step(
    params: Any, arrays: Any, memory: BlockMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    first, factor, at, work = params.start[i], params.factor, params.place[i], memory.work
    size = params.start[i + 1] - first
    for k in range(size):  # forward: z - L^-1 Q_bo (x_o - mean_o), with L^-1 row by row
        pull = 0.0
        for e in range(params.row[first + k], params.row[first + k + 1]):
            j = params.other[e]
            pull += params.entry[e] * (x[j] - arrays.mean[j])
        for m in range(k):
            pull -= factor[at + k * size + m] * work[m]
        work[k] = pull / factor[at + k * size + k]
    for k in range(size):
        rng, z = normal(rng)
        work[k] = z - work[k]
    for b in range(size):  # backward: L^-T
        k = size - 1 - b
        value = work[k]
        for m in range(k + 1, size):
            value -= factor[at + m * size + k] * work[m]
        work[k] = value / factor[at + k * size + k]
    for k in range(size):
        site = params.member[first + k]
        x[site] = arrays.mean[site] + work[k]
    return rng
