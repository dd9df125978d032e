"""Orders of sites that place neighbours near each other in memory, for the cache.

The order of the sites of a model is arbitrary. If neighbours are far apart in memory, most of the time of an update is
spent waiting for their states.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words32
from gibbsite._common.cache import Cache
from gibbsite._numba.jit import compiled
from gibbsite.graphs.rows import row_lengths
from gibbsite.models.distance import DistanceFactors
from gibbsite.models.domain import Domains, SiteNames, frozen
from gibbsite.models.factor import FactorGroup, TableFactors, store
from gibbsite.models.factorgraph import FactorGraph, _restore
from gibbsite.models.lattice import FieldFactors
from gibbsite.models.weighted import AgreementFactors, SpinFactors

#: Sites that are at most this many positions apart count as near.
WINDOW = 1 << 15
_GAIN = 0.5  # the share of distant pairs that a new order must bring near
_BITS = 20  # of each coordinate of a position


def share_far(start: Array, neighbour: Array, rank: Ints | None = None) -> float:
    """Return the share of neighbouring pairs that are far apart in the order of the ranks."""
    if not neighbour.size:
        return 0.0
    row = np.repeat(np.arange(start.size - 1), row_lengths(start))
    there = neighbour.astype(np.int64)
    if rank is not None:
        row, there = rank[row], rank[there]
    return float((np.abs(there - row) > WINDOW).mean())


def rank_sites(start: Array, neighbour: Array) -> Ints | None:
    """Rank the sites of a graph, given as rows of neighbours, so that neighbours have near ranks.

    Return None if the original order is as good. The candidates are the order of a breadth-first search (reverse
    Cuthill-McKee), which is good if few sites have the same distance from the first, and that of a depth-first walk,
    which keeps long paths in one piece.
    """
    before = share_far(start, neighbour) if start.size - 1 > WINDOW else 0.0
    if before <= 0.1:
        return None
    found = [(before, None), *((share_far(start, neighbour, r), r) for r in _tries(start, neighbour))]
    share, rank = min(found, key=lambda pair: pair[0])
    return rank if share <= _GAIN * before or start.size - 1 > 8 * WINDOW else None


def _tries(start: Array, neighbour: Array) -> list[Ints]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = start.size - 1
    ones = np.ones(neighbour.size, np.int8)
    graph = csr_array((ones, neighbour.astype(np.int32), start.astype(np.int32)), shape=(n, n))
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    band = np.empty(n, np.int64)
    band[order] = np.arange(n)
    return [band, _walk_ranks(start, neighbour)]


@compiled
def _walk_ranks(start: Words32, neighbour: Words32) -> Ints:
    """Rank the sites in the order of a depth-first walk, which keeps long paths in one piece."""
    n = start.size - 1
    rank = np.full(n, -1, np.int64)
    stack = np.empty(neighbour.size + 1, np.int64)
    count = 0
    for root in range(n):
        stack[0] = root
        top = 0
        while top >= 0:
            site = stack[top]
            top -= 1
            if rank[site] >= 0:
                continue
            rank[site] = count
            count += 1
            for k in range(start[site], start[site + 1]):
                if rank[neighbour[k]] < 0:
                    top += 1
                    stack[top] = neighbour[k]
    return rank


def rank_positions(positions: Floats) -> Ints | None:
    """Rank sites along a space-filling curve (Morton's); return None if they are few or their order is as good."""
    n, dim = positions.shape
    if n <= WINDOW:
        return None
    low, high = positions.min(axis=0), positions.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    bits = min(_BITS, 62 // dim)
    coordinates = ((positions - low) / spread * ((1 << bits) - 1)).astype(np.uint64)
    key = np.zeros(n, np.uint64)
    for bit in range(bits):
        for axis in range(dim):
            key |= ((coordinates[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * dim + axis)
    order = np.argsort(key, kind="stable")

    def step(along: Floats) -> float:
        return float(np.abs(np.diff(along[: 1 << 16], axis=0)).sum(axis=1).mean())

    if step(positions[order]) > _GAIN * step(positions):
        return None
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    return rank


class _Renumbered(NamedTuple):
    shared: Cache


def renumber(model: FactorGraph, order: Array) -> FactorGraph | None:
    """Return the model with site ``order[p]`` at position p, and numbers as names.

    Return None if a group of its factors, such as a lattice, requires its own order. Results about the structure of the
    new model are cached in the old one and reused for the same order.
    """
    position = np.empty(order.size, np.int32)
    position[order] = np.arange(order.size, dtype=np.int32)
    groups: list[FactorGroup] = []
    for group in model.groups:
        found = _renumbered(group, order, position)
        if found is None:
            return None
        groups.append(found)
    old = model.domains
    kind_of = old.kind_of if len(old.kinds) == 1 else old.kind_of[order]
    domains = Domains(SiteNames(old.n_sites), old.kinds, kind_of)
    shared = model.shared.find(_Renumbered, lambda: _Renumbered(Cache())).shared
    return _restore(domains, tuple(groups), model.log_offset, {}, {}, shared)


def _renumbered(group: FactorGroup, order: Array, position: Ints32) -> FactorGroup | None:
    if isinstance(group, DistanceFactors):
        return DistanceFactors(group.positions[order], group.gamma, group.weights, group.name, group.coupling)
    if isinstance(group, FieldFactors):
        each = len(group.weights) > 1
        weights = group.weights[order] if each else group.weights
        return FieldFactors(group.n_sites, weights, group.spin, group.name)
    if isinstance(group, TableFactors | SpinFactors | AgreementFactors):
        found = copy.copy(group)
        store(found, scopes=frozen(position[group.scopes], np.int32))
        return found
    return None
