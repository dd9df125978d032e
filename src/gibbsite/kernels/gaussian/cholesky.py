"""Draws from normal distributions by Cholesky factors: whole states independently, or blocks given the other sites.

The precision is Q = L L^T, with sites ordered so that L has a narrow band. For standard normal numbers z, the solution
x of L^T (x - mean) = z has covariance Q^-1 (the transformation method). The draws are independent, but they are made as
a chain, so that all features of runs are available.

The conditional distribution of a block b given the other sites o is normal, too: its precision is Q_bb = L L^T, and its
mean is mean_b - Q_bb^-1 Q_bo (x_o - mean_o).
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
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.gaussian import GaussianGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.registry import register

_MOST_ENTRIES = 1 << 27  # entries of the factor: a gigabyte


class FactorParameters(NamedTuple):
    """The factor: entry (i + k, i) of L is ``band[i * width + k]``, and ``site[i]`` is the i-th site in its order."""

    band: Floats
    width: int
    site: Ints


@register(proof="tests/proofs/test_gaussian.py", recommend={"ExactGaussian": {}})
@dataclass(frozen=True)
class ExactGaussian(Kernel):
    """Independent draws from a normal distribution whose Cholesky factor fits into memory.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.Gaussian([1.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])
    >>> result = gs.sample(target, gs.kernels.ExactGaussian(), sweeps=1000, rng=1, progress=False)
    >>> abs(result.marginals["0"]["mean"] - 1.0) < 0.1, result.ess["0"]["mean"] > 2000
    (True, True)
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"gaussian"})
    conditional: ClassVar[bool] = False
    joint: ClassVar[bool] = True

    def parameters(self, graph: Graph) -> FactorParameters:
        """Return the factor, which is cached with the graph."""
        return graph.cache.find(FactorParameters, lambda: _factorise(graph.arrays))

    def independent(self, graph: Graph) -> bool:
        """Return True: a draw does not depend on the last state."""
        return True

    def memory(self, graph: Graph, stream: Words64) -> Any:
        """Allocate a buffer for a draw."""
        return Draw(np.zeros(graph.n_sites))


class Draw(NamedTuple):
    """Buffer for a draw in the order of the factor."""

    y: Floats

    @property
    def rebuildable(self) -> bool:
        """Return True: a draw does not depend on the last state."""
        return True


def _factorise(arrays: GaussianGraph) -> FactorParameters:
    """Return the banded Cholesky factor of the precision, in reverse Cuthill-McKee order."""
    from scipy.linalg import cholesky_banded
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = arrays.sd.size
    diagonal = arrays.sd**-2
    start: Ints = arrays.start.astype(np.int64)
    row = np.repeat(np.arange(n), start[1:] - start[:-1])
    column = arrays.neighbour.astype(np.int64)
    value = arrays.weight * diagonal[row]
    joined = csr_array((np.ones(row.size), (row, column)), shape=(n, n))
    site = np.asarray(reverse_cuthill_mckee(joined, symmetric_mode=True), np.int64)
    place = np.empty(n, np.int64)
    place[site] = np.arange(n)
    below = place[row] - place[column]
    width = int(below.max(initial=0)) + 1
    if width * n > _MOST_ENTRIES:
        raise TooLargeError(
            f"A Cholesky factor of {n:,} sites needs {width * n:,} entries, more than {_MOST_ENTRIES:,}; use "
            "gs.kernels.GaussianGibbs()."
        )
    band = np.zeros((width, n))
    band[0, place] = diagonal
    lower = below > 0
    band[below[lower], place[column[lower]]] = value[lower]
    factor = cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
    return FactorParameters(np.ascontiguousarray(factor.T).ravel(), width, site)


@implement(step, FactorParameters)
def _draw_all(
    params: FactorParameters, arrays: Any, memory: Draw, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw all sites independently of their state."""
    n, width, y = x.size, params.width, memory.y
    for k in range(n):
        j = n - 1 - k
        rng, z = normal(rng)
        first = j * width
        for m in range(1, min(width, n - j)):
            z -= params.band[first + m] * y[j + m]
        y[j] = z / params.band[first]
        x[params.site[j]] = arrays.mean[params.site[j]] + y[j]
    return rng


class BlockParameters(NamedTuple):
    """Blocks as arrays."""

    # start, member: ``member[start[b] : start[b + 1]]`` are the sites of block b
    start: Ints
    member: Ints
    # place, factor: the Cholesky factor of block b, row by row, begins at ``factor[place[b]]``
    place: Ints
    factor: Floats
    # row, other, entry: entries ``row[k]`` to ``row[k + 1]`` are those of the precision between the k-th member and
    # sites outside its block
    row: Ints
    other: Ints
    entry: Floats


class BlockMemory(NamedTuple):
    """A buffer for a block."""

    work: Floats

    @property
    def rebuildable(self) -> bool:
        """True: no step reads what an earlier one has written."""
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
        """Return the number of blocks."""
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
        """Allocate a buffer for the largest block."""
        return BlockMemory(np.zeros(max(block.size for block in self._read(graph))))


@implement(step, BlockParameters)
def _step_block(
    params: Any, arrays: Any, memory: BlockMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw a block given the other sites."""
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
