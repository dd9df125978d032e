"""Scans of blocks, whose sites are drawn jointly given all others.

*The bound.* Let a step draw the sites of block A jointly from their conditional distribution. Take two chains with
disagreements outside A bounded by b, and run Gibbs sampling inside A for both, one site after another, optimally
coupled. The disagreements inside A satisfy b_i <= sum_j C_ij b_j at every visit. If the influence inside A has spectral
radius below 1, they converge to at most the solution of b_A = C_AA b_A + C_A,rest b_rest, which is (I - C_AA)^-1
C_A,rest b_rest, while the two inner chains converge to the two conditional distributions. A limit of the couplings
couples these, so a block step sets b_A to that solution: influence collapsed on the block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked_constructor, is_numeric
from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite._numba.jit import Integer, called, compiled_loop, inlined
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.rows import row_starts
from gibbsite.inference.influence.descent import Descent, first_largest, make_tree, set_leaf
from gibbsite.inference.influence.matrix import Influence
from gibbsite.inference.influence.variation import OrderDecay
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.blocks.gibbs import BlockGibbs
from gibbsite.scans.base import Ordered, Scan, in_order

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model


@checked_constructor
@dataclass(frozen=True, eq=False)
class BlockOrder(Scan):
    """A scan of steps that draw whole blocks of sites, each from its joint conditional distribution.

    It can be certified and optimised like scans of sites, and the certificate applies to ``gs.sample(model,
    scan=...)`` and ``gs.influence.short_runs`` with :class:`gibbsite.BlockGibbs` on the same blocks.

    Parameters
    ----------
    blocks : sequence of sequences of sites
        They may overlap.
    order : sequence of int, optional
        Numbers of blocks, step by step; by default all in turn, repeatedly.
    variation, input_variation : float, optional
        The guarantee after one pass, and that of the initial scan, if the scan was optimised.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.2)
    >>> columns = gs.influence.BlockOrder([[c, c + 4, c + 8, c + 12] for c in range(4)])
    >>> gs.certify(model, scan=columns, accuracy=0.01).steps < gs.certify(model, accuracy=0.01).steps
    True
    >>> gs.sample(model, scan=columns, sweeps=100, rng=1, progress=False).plan.kernel["name"]
    'BlockGibbs'
    """

    blocks: Sequence[Any]
    order: Sequence[int] | Ints32 | None = None
    variation: float | None = None
    input_variation: float | None = None

    def _check(self) -> None:
        """Refuse blocks that are not a list of at least one."""
        if isinstance(self.blocks, str) or not isinstance(self.blocks, Collection) or not len(self.blocks):
            raise ArgumentError("Blocks must be a list of lists of sites, with at least one block.")

    def kernel(self) -> Kernel:
        """Return the kernel that draws these blocks; sites outside all blocks keep their start."""
        self._check()
        return BlockGibbs(self.blocks, complete=False)

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits."""
        if graph.n_units != len(self.blocks) or graph.units is None:
            raise IncompatibleError(
                f"This order is one of {len(self.blocks)} blocks, and the kernel moves {graph.n_units} "
                f"{'sites' if graph.units is None else 'other blocks'}; leave the kernel out, or give "
                "gs.BlockGibbs(order.blocks)."
            )
        return in_order(self._numbers(len(self.blocks)))

    def read(self, model: FactorGraph) -> tuple[list[Ints], Ints32]:
        """Return the sites of the blocks and the order, checked."""
        self._check()
        found = []
        for number, block in enumerate(self.blocks):
            if isinstance(block, str) or not isinstance(block, Iterable):
                raise ArgumentError(f"Block {number} must be a list of sites, got {block!r}.")
            sites = np.array([model.index(site) for site in block], np.int64)
            if not sites.size or np.unique(sites).size != sites.size:
                raise ArgumentError(f"Block {number} is empty or names a site twice.")
            found.append(sites)
        return found, self._numbers(len(found))

    def _numbers(self, many: int) -> Ints32:
        """Return the order of the blocks, checked."""
        given = np.arange(many) if self.order is None else self.order
        order = np.asarray(given if is_numeric(given) else ())
        if order.ndim != 1 or not order.size or order.dtype.kind not in "iu":
            raise ArgumentError("The order of blocks must be a list of block numbers.")
        bad = np.flatnonzero((order < 0) | (order >= many))
        if bad.size:
            raise ArgumentError(f"The order names block {order[bad[0]]}, but blocks are 0..{many - 1}.")
        return order.astype(np.int32)


class BlockRows(NamedTuple):
    """Blocks as compiled code sees them.

    Block a has the sites ``member[start[a] : start[a + 1]]`` and the boundary ``edge[rim[a] : rim[a + 1]]``; the
    response of its k-th site to the m-th of its boundary is ``response[table[a] + k * boundary + m]``. Site i is in,
    or at the boundary of, the blocks ``near[near_start[i] : near_start[i + 1]]``.
    """

    start: Ints
    member: Ints
    rim: Ints
    edge: Ints
    table: Ints
    response: Floats
    near_start: Ints
    near: Ints


def collapse(influence: Influence, blocks: list[Ints]) -> BlockRows:
    """Collapse influence on blocks; raise :class:`ModelError` if the influence inside one is too large for a bound."""
    edges, tables = [], []
    for number, block in enumerate(blocks):
        place = {int(site): k for k, site in enumerate(block)}
        rim: dict[int, int] = {}
        inner = np.eye(block.size)
        outer: list[tuple[int, int, float]] = []
        for k, site in enumerate(block):
            for entry in range(int(influence.start[site]), int(influence.start[site + 1])):
                j, value = int(influence.neighbour[entry]), float(influence.value[entry])
                if j in place:
                    inner[k, place[j]] -= value
                else:
                    outer.append((k, rim.setdefault(j, len(rim)), value))
        reach = np.zeros((block.size, len(rim)))
        for k, m, value in outer:
            reach[k, m] = value
        if np.abs(np.linalg.eigvals(np.eye(block.size) - inner)).max() >= 1.0:
            raise ModelError(f"The influence inside block {number} is 1 or more: no bound; make it smaller.")
        # the exact solution is nonnegative; only rounding makes entries negative
        tables.append(np.maximum(np.linalg.solve(inner, reach), 0.0))
        edges.append(np.array(list(rim), np.int64))
    sizes, rims = np.array([b.size for b in blocks]), np.array([e.size for e in edges])
    member, edge = np.concatenate(blocks), np.concatenate(edges)
    touched = np.concatenate([member, edge])
    owner = np.concatenate([np.repeat(np.arange(len(blocks)), sizes), np.repeat(np.arange(len(blocks)), rims)])
    by_site = np.argsort(touched, kind="stable")
    near = np.bincount(touched, minlength=influence.n_sites)
    return BlockRows(
        row_starts(sizes),
        member,
        row_starts(rims),
        edge,
        row_starts(sizes * rims),
        np.concatenate([table.ravel() for table in tables]),
        row_starts(near),
        owner[by_site],
    )


@inlined
def _response(rows: BlockRows, a: Integer, k: Integer, b: Floats) -> Any:
    """Return the bound of the k-th site of a block after a step on it."""
    width = rows.rim[a + 1] - rows.rim[a]
    first = rows.table[a] + k * width
    total = 0.0
    for m in range(width):
        total += rows.response[first + m] * b[rows.edge[rows.rim[a] + m]]
    return total


@inlined
def _step(rows: BlockRows, a: Integer, b: Floats) -> None:
    for k in range(rows.start[a + 1] - rows.start[a]):
        b[rows.member[rows.start[a] + k]] = _response(rows, a, k, b)


@compiled_loop
def _walk(
    rows: BlockRows, order: Ints32, at: Integer, steps: Integer, weights: Floats, b: Floats, v: float, goal: float
) -> Integer:
    for t in range(steps):
        a = np.int64(order[at])
        at = (at + 1) % order.size
        for k in range(rows.start[a], rows.start[a + 1]):
            v -= weights[rows.member[k]] * b[rows.member[k]]
        _step(rows, a, b)
        for k in range(rows.start[a], rows.start[a + 1]):
            v += weights[rows.member[k]] * b[rows.member[k]]
        if v <= goal:
            return t + 1
    return steps


class BlockDecay(OrderDecay):
    """Blocks in a fixed order, repeated."""

    def __init__(self, rows: BlockRows, influence: Influence, weights: Floats, order: Ints32) -> None:
        super().__init__(influence, weights, order)
        self.rows = rows

    def _advance(self, b: Floats, done: int, steps: int, v: float, goal: float) -> int:
        at = done % self.order.size
        return int(_walk(self.rows, self.order, at, steps, self.weights, b, v, goal))


@called
def _score(rows: BlockRows, a: Integer, weight: Floats, b: Floats, top: Floats) -> None:
    """Write the gain of a step on a block into the tree."""
    gain = 0.0
    for k in range(rows.start[a + 1] - rows.start[a]):
        i = rows.member[rows.start[a] + k]
        if weight[i] != 0.0:
            gain += weight[i] * (b[i] - _response(rows, a, k, b))
    set_leaf(top, a, gain)


@called
def _score_near(rows: BlockRows, site: Integer, weight: Floats, b: Floats, top: Floats) -> None:
    for k in range(rows.near_start[site], rows.near_start[site + 1]):
        _score(rows, rows.near[k], weight, b, top)


@compiled_loop
def _descend(
    rows: BlockRows,
    scan: Ints32,
    new: Ints32,
    first: Ints,
    old: Floats,
    weight: Floats,
    b: Floats,
    top: Floats,
    total: float,
    goal: float,
) -> tuple[Any, Integer]:
    for t in range(scan.size):
        a = np.int64(scan[t])
        for k in range(rows.start[a + 1] - rows.start[a]):
            old[first[t] + k] = b[rows.member[rows.start[a] + k]]
        _step(rows, a, b)
    for number in range(rows.start.size - 1):
        _score(rows, number, weight, b, top)
    tracked, kept = total, scan.size
    while kept > 0 and tracked > goal:
        kept -= 1
        a = np.int64(scan[kept])
        for k in range(rows.start[a + 1] - rows.start[a]):
            b[rows.member[rows.start[a] + k]] = old[first[kept] + k]
        for k in range(rows.start[a], rows.start[a + 1]):
            _score_near(rows, rows.member[k], weight, b, top)
        leaves = top.size // 2
        best = np.int64(first_largest(top))
        if top[leaves + best] <= top[leaves + a]:
            best = a
        tracked += top[leaves + a] - top[leaves + best]
        new[kept] = np.int32(best)
        width = rows.rim[best + 1] - rows.rim[best]
        for k in range(rows.start[best + 1] - rows.start[best]):
            i = rows.member[rows.start[best] + k]
            for m in range(width):
                response = rows.response[rows.table[best] + k * width + m]
                weight[rows.edge[rows.rim[best] + m]] += weight[i] * response
            weight[i] = 0.0
        for k in range(rows.start[best], rows.start[best + 1]):
            _score_near(rows, rows.member[k], weight, b, top)
        for m in range(rows.rim[best], rows.rim[best + 1]):
            _score_near(rows, rows.edge[m], weight, b, top)
    for t in range(kept):
        new[t] = scan[t]
    return tracked, kept


def descend_blocks(
    rows: BlockRows, influence: Influence, weights: Floats, scan: Ints32, goal: float = -np.inf
) -> tuple[Ints32, Descent]:
    """Improve a fixed scan of blocks, as :func:`gibbsite.inference.influence.descent.descend` does for sites."""
    length = np.array([len(scan)])
    before = float(BlockDecay(rows, influence, weights, scan).values(length)[0])
    first = row_starts((rows.start[1:] - rows.start[:-1])[scan])
    top = make_tree(rows.start.size - 1)
    new, old, b = np.empty_like(scan), np.empty(int(first[-1])), np.ones(weights.size)
    tracked, kept = _descend(rows, scan, new, first, old, weights.astype(float), b, top, before, goal)
    after = float(BlockDecay(rows, influence, weights, new).values(length)[0])
    return new, Descent(before, after, float(tracked), int(kept))
