"""How strongly factors tie their sites: from 0, not at all, to 1, zeros."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths


def tie_factors(arrays: TableGraph) -> Floats:
    """Return the strength of every factor: tanh(r / 4), r the range of its log-potentials; 1 with zeros.

    For a pair of two-state sites with log-potentials J and -J that is tanh(J / 2), about the influence of one
    site on the other.

    Examples
    --------
    >>> import gibbsite as gs
    >>> equal, alike = (("a", "b"), [[1, 0], [0, 1]]), (("b", "c"), [[2, 1], [1, 2]])
    >>> model = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [equal, alike])
    >>> tie_factors(gs.graphs.compile_graph(model, "table").arrays).round(2).tolist()
    [1.0, 0.17]
    """
    count = arrays.table.size
    found = np.zeros(count)
    if not count:
        return found
    sizes = np.multiply.reduceat(arrays.card[arrays.member].astype(np.int64), arrays.member_start[:-1].astype(np.int64))
    known: dict[tuple[int, int], float] = {}
    for f, (first, size) in enumerate(zip(arrays.table.tolist(), sizes.tolist(), strict=True)):
        if (first, size) not in known:
            logs = arrays.log_value[first : first + size]
            low, high = logs.min(), logs.max()
            known[first, size] = 1.0 if low == -np.inf else float(np.tanh((high - low) / 4.0))
        found[f] = known[first, size]
    return found


def tie_sites(arrays: TableGraph) -> Floats:
    """Return the strength of the strongest factor of every site."""
    strength = np.repeat(tie_factors(arrays), row_lengths(arrays.member_start))
    found = np.zeros(arrays.card.size)
    np.maximum.at(found, arrays.member.astype(np.int64), strength)
    return found


def tied_groups(arrays: TableGraph, least: float) -> Ints:
    """Return the number of the group of every site: sites joined by factors of at least such strength.

    Examples
    --------
    >>> import gibbsite as gs
    >>> equal, alike = (("a", "b"), [[1, 0], [0, 1]]), (("b", "c"), [[2, 1], [1, 2]])
    >>> model = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [equal, alike])
    >>> tied_groups(gs.graphs.compile_graph(model, "table").arrays, 0.9).tolist()
    [0, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, width = arrays.card.size, row_lengths(arrays.member_start)
    strong = np.repeat(tie_factors(arrays) >= least, width)
    factor = np.repeat(np.arange(width.size), width)[strong] + n  # factors are vertices, too
    member = arrays.member.astype(np.int64)[strong]
    size = n + width.size
    links = coo_array((np.ones(member.size), (factor, member)), shape=(size, size))
    labels = connected_components(links, directed=False)[1][:n]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
