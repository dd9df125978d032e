"""Which states can occur at all, as far as propagating zeros from factor to factor tells.

What dies never occurs in a state of positive probability. What survives need not occur in one either: that
would take a search (`gibbsite.graphs.support.start`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Ints
from gibbsite._numba.jit import interpreted
from gibbsite.errors import SupportError
from gibbsite.graphs.compile import as_tables
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.distance import DistanceGraph
from gibbsite.graphs.kinds.pairwise import PairwiseGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths, row_starts
from gibbsite.graphs.support.propagate import Constraints, LiveStates, tighten

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


_STEPS = 20.0  # of plain Python, for each state and table entry


def has_zeros(graph: Graph) -> bool:
    """Whether some log-potential is minus infinity, so that not every state is possible.

    Examples
    --------
    >>> from gibbsite.graphs import compile_graph
    >>> from gibbsite.models import FactorGraph
    >>> has_zeros(compile_graph(FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [1, 1]])])))
    True
    """
    if graph.binary or graph.on_disk:  # neither can hold infinite numbers
        return False
    arrays = _known(graph).arrays
    logs = [arrays.log_unary]
    if isinstance(arrays, PairwiseGraph | TableGraph):  # agreements have none
        logs.append(arrays.log_value)
    return any(bool(part.size) and bool(np.isneginf(part.min())) for part in logs)


def _known(graph: Graph) -> Graph:
    """Return a graph of many-state sites whose zeros can be found: itself, or its model as tables."""
    known = isinstance(graph.arrays, PairwiseGraph | TableGraph | PottsGraph | DistanceGraph)
    return graph if known else as_tables(graph)


def alive_states(graph: Graph, model: FactorGraph | None = None) -> Bools:
    """Return which states survive propagation, site after site in state order.

    Parameters
    ----------
    graph : Graph
        The compiled model, of any kind.
    model : FactorGraph, optional
        Where names for the error message come from.

    Returns
    -------
    array of bool
        One entry per state of each site; the states of site i start at ``cards[:i].sum()``.

    Raises
    ------
    SupportError
        If a site loses all its states; it names the site and the factors that exclude them.

    Examples
    --------
    >>> from gibbsite.graphs import compile_graph
    >>> from gibbsite.models import FactorGraph
    >>> model = FactorGraph({"a": 2, "b": 2}, [("a", [0, 1]), (("a", "b"), [[1, 1], [1, 0]])])
    >>> alive_states(compile_graph(model)).tolist()
    [False, True, True, False]
    """
    if not has_zeros(graph):
        return np.ones(int(graph.cards.sum(dtype=np.int64)), np.bool_)
    return propagated(graph, model)[1].alive


def propagated(graph: Graph, model: FactorGraph | None = None) -> tuple[Constraints, LiveStates]:
    """Return the factors with zeros, and the board on which they have been propagated.

    Parameters and errors are those of :func:`alive_states`.
    """
    constraints = find_constraints(graph)
    board = new_live(constraints, graph)
    with interpreted(steps_to_propagate(graph)):
        site = int(tighten(constraints, board, -1, -1))
    if site >= 0:
        raise SupportError(_wipe_out_text(constraints, board, site, model))
    return constraints, board


def steps_to_propagate(graph: Graph) -> float:
    """Return about how many steps of plain Python propagation takes."""
    values: Any = getattr(graph.arrays, "log_value", np.zeros(0))
    return _STEPS * float(graph.n_cells + values.size)


def find_constraints(graph: Graph) -> Constraints:
    """Collect the factors of a graph of many-state sites that have a zero entry."""
    if graph.binary:
        raise TypeError(f"a {graph.kind} graph has no zeros")
    arrays = _known(graph).arrays
    if isinstance(arrays, PairwiseGraph):
        # every pair is in the rows of both ends; the one seen from the smaller site is taken
        site = np.repeat(np.arange(graph.n_sites), row_lengths(arrays.start))
        taken = np.flatnonzero(arrays.neighbour > site)
        member = np.stack([site[taken], arrays.neighbour[taken]], axis=1).ravel()
        stride = np.stack([np.ones_like(taken), arrays.card[site[taken]]], axis=1).ravel()
        table = arrays.table[taken]
        width = np.full(taken.size, 2, np.int64)
    elif isinstance(arrays, TableGraph):
        member, stride, table = arrays.member, arrays.stride, arrays.table
        width = row_lengths(arrays.member_start)
    else:  # agreements have no zeros, only single sites do
        member = stride = table = width = np.zeros(0, np.int64)
    logs = np.zeros(0) if isinstance(arrays, PottsGraph | DistanceGraph) else arrays.log_value
    allowed, card = logs > -np.inf, arrays.card.astype(np.int64)
    kept = _with_zeros(member, table, width, allowed, card)
    of_kept = np.repeat(kept, width)
    member, stride = member[of_kept].astype(np.int64), stride[of_kept].astype(np.int64)
    table, width = table[kept], width[kept]
    factor = np.repeat(np.arange(width.size), width)
    by_site = np.argsort(member, kind="stable")
    return Constraints(
        start=row_starts(np.bincount(member, minlength=graph.n_sites)),
        factor=factor[by_site],
        own_stride=stride[by_site],
        member_start=row_starts(width),
        member=member,
        stride=stride,
        slot=row_starts(card[member]),
        table=table,
        allowed=allowed,
        card=card,
        offset=arrays.offset,
    )


def _with_zeros(member: Array, table: Ints, width: Ints, allowed: Bools, card: Ints) -> Bools:
    """Which factors have at least one zero entry."""
    if not table.size:
        return np.zeros(0, np.bool_)
    size = np.multiply.reduceat(card[member], row_starts(width)[:-1])
    zeros = row_starts(~allowed)
    kept: Bools = zeros[table + size] > zeros[table]
    return kept


def new_live(constraints: Constraints, graph: Graph) -> LiveStates:
    """Make a board on which the states with positive weights of their own are alive."""
    arrays: Any = _known(graph).arrays
    alive = arrays.log_unary > -np.inf
    n_factors, n_sites = constraints.table.size, graph.n_sites
    owner = np.repeat(np.arange(n_sites), constraints.card)
    return LiveStates(
        alive=alive,
        living=np.bincount(owner[alive], minlength=n_sites),
        residue=np.full(int(constraints.slot[-1]), -1, np.int64),
        trail=np.zeros(alive.size, np.int64),
        owner=owner,
        killer=np.full(alive.size, -1, np.int64),
        queue=np.zeros(n_factors, np.int64),
        queued=np.zeros(n_factors, np.bool_),
        digits=np.zeros(int(np.diff(constraints.member_start).max(initial=1)), np.int64),
        counters=np.zeros(4, np.int64),
    )


def copy_live(board: LiveStates) -> LiveStates:
    """Return a board that can be used up."""
    return LiveStates._make(part.copy() for part in board)


def scope_text(constraints: Constraints, f: int, model: FactorGraph | None) -> str:
    """Return the scope of a factor for a message: ``(a, b)``."""
    members = constraints.member[constraints.member_start[f] : constraints.member_start[f + 1]]
    return f"({', '.join(site_name(int(i), model) for i in members)})"


def site_name(i: int, model: FactorGraph | None) -> str:
    """Return what a message calls a site."""
    return str(i) if model is None else model.sites[i]


def _wipe_out_text(c: Constraints, b: LiveStates, site: int, model: FactorGraph | None) -> str:
    cells = slice(int(c.offset[site]), int(c.offset[site + 1]))
    killers = dict.fromkeys(int(f) for f in b.killer[cells] if f >= 0)
    scopes = ", ".join(scope_text(c, f, model) for f in list(killers)[:3])
    own = " and its own weights" if (b.killer[cells] < 0).any() else ""
    observed = "" if model is None else evidence_text(model)
    return (
        f"Site {site_name(site, model)!r} has no possible state: the factors over {scopes}{own} together "
        f"exclude every one{observed}; check their zeros and the evidence."
    )


def evidence_text(model: FactorGraph) -> str:
    """Return the evidence for a message, empty if there is none."""
    seen = [f"{name}={label!r}" for name, label in model.evidence.items()]
    more = f" and {len(seen) - 3} more" if len(seen) > 3 else ""
    return f" given {', '.join(seen[:3])}{more}" if seen else ""
