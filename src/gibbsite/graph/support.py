"""Which states can occur at all: generalised arc consistency on the factors that have zeros.

A state of a site dies when some factor has no positive entry left that contains it and otherwise only
living states. What survives need not occur in a state of positive probability, but what dies never does.

The algorithm is a worklist over factors that remembers for every (factor, member, state) the entry that
supported it last and looks for a new one only when that entry has died, from there on and around (AC-3
with residues, Lecoutre and Hemery 2007; Bessiere and Regin 1997 for tables). Between two deaths a table
is read at most once per member, however often its factor is visited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import called, compiled_loop
from gibbsite.errors import SupportError
from gibbsite.graph.kinds import PairwiseGraph, TableGraph
from gibbsite.graph.lower import Graph

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph

Flags = NDArray[np.bool_]
Longs = NDArray[np.int64]


class Constraints(NamedTuple):
    """The factors that forbid something; sites and cells are those of the graph.

    Rows ``start[i]`` to ``start[i + 1]`` of ``factor`` and ``own_stride`` belong to site i. Factor f has the
    members ``member_start[f]`` to ``member_start[f + 1]``; its entry is possible where ``allowed[table[f] + entry]``.
    ``slot[m] + a`` numbers the states of all members, ``offset[i] + a`` the states of all sites.
    """

    start: Longs
    factor: Longs
    own_stride: Longs
    member_start: Longs
    member: Longs
    stride: Longs
    slot: Longs
    table: Longs
    allowed: Flags
    card: Longs
    offset: Longs


class Board(NamedTuple):
    """What is still possible, and how it came about: everything propagation writes.

    ``trail`` lists the dead cells in the order of their death, ``killer`` the factor that excluded each,
    ``residue`` the last known support of each slot. ``counters`` are positions in trail and queue, and the
    work done so far in table entries.
    """

    alive: Flags
    count: Longs
    residue: Longs
    trail: Longs
    owner: Longs
    killer: Longs
    queue: Longs
    queued: Flags
    digits: Longs
    counters: Longs


TRAIL, HEAD, QUEUED, WORK = range(4)


def has_zeros(graph: Graph) -> bool:
    """Whether some log-potential is minus infinity, so that not every state is possible.

    Examples
    --------
    >>> from gibbsite.graph import compile_graph
    >>> from gibbsite.model import FactorGraph
    >>> has_zeros(compile_graph(FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [1, 1]])])))
    True
    """
    arrays = graph.arrays
    if not isinstance(arrays, PairwiseGraph | TableGraph):
        return False
    return any(
        bool(logs.size) and bool(np.isneginf(logs.min())) for logs in (arrays.log_unary, arrays.log_value)
    )


def alive_states(graph: Graph, model: FactorGraph | None = None) -> Flags:
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
    >>> from gibbsite.graph import compile_graph
    >>> from gibbsite.model import FactorGraph
    >>> model = FactorGraph({"a": 2, "b": 2}, [("a", [0, 1]), (("a", "b"), [[1, 1], [1, 0]])])
    >>> alive_states(compile_graph(model)).tolist()
    [False, True, True, False]
    """
    if not has_zeros(graph):
        return np.ones(int(graph.cards.sum(dtype=np.int64)), np.bool_)
    return propagated(graph, model)[1].alive


def propagated(graph: Graph, model: FactorGraph | None = None) -> tuple[Constraints, Board]:
    """Return the factors with zeros, and the board on which they have been propagated.

    Parameters and errors are those of :func:`alive_states`.
    """
    constraints = find_constraints(graph)
    board = new_board(constraints, graph)
    site = int(tighten(constraints, board, -1, -1))
    if site >= 0:
        raise SupportError(_wipe_out_text(constraints, board, site, model))
    return constraints, board


def find_constraints(graph: Graph) -> Constraints:
    """Collect the factors of a pairwise or table graph that have a zero entry."""
    arrays = graph.arrays
    if isinstance(arrays, PairwiseGraph):
        # every pair is in the rows of both ends; the one seen from the smaller site is taken
        site = np.repeat(np.arange(graph.n_sites), np.diff(arrays.start.astype(np.int64)))
        taken = np.flatnonzero(arrays.neighbour > site)
        member = np.stack([site[taken], arrays.neighbour[taken]], axis=1).ravel()
        stride = np.stack([np.ones_like(taken), arrays.card[site[taken]]], axis=1).ravel()
        table = arrays.table[taken]
        width = np.full(taken.size, 2, np.int64)
    elif isinstance(arrays, TableGraph):
        member, stride, table = arrays.member, arrays.stride, arrays.table
        width = np.diff(arrays.member_start.astype(np.int64))
    else:
        raise TypeError(f"a {graph.kind} graph has no zeros")
    allowed, card = arrays.log_value > -np.inf, arrays.card.astype(np.int64)
    kept = _with_zeros(member, table, width, allowed, card)
    of_kept = np.repeat(kept, width)
    member, stride = member[of_kept].astype(np.int64), stride[of_kept].astype(np.int64)
    table, width = table[kept], width[kept]
    factor = np.repeat(np.arange(width.size), width)
    by_site = np.argsort(member, kind="stable")
    return Constraints(
        start=_starts(np.bincount(member, minlength=graph.n_sites)),
        factor=factor[by_site],
        own_stride=stride[by_site],
        member_start=_starts(width),
        member=member,
        stride=stride,
        slot=_starts(card[member]),
        table=table,
        allowed=allowed,
        card=card,
        offset=arrays.offset,
    )


def _with_zeros(member: NDArray[Any], table: Longs, width: Longs, allowed: Flags, card: Longs) -> Flags:
    """Which factors have at least one zero entry."""
    if not table.size:
        return np.zeros(0, np.bool_)
    size = np.multiply.reduceat(card[member], _starts(width)[:-1])
    zeros = _starts(~allowed)
    kept: Flags = zeros[table + size] > zeros[table]
    return kept


def _starts(sizes: NDArray[Any]) -> Longs:
    start = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


def new_board(constraints: Constraints, graph: Graph) -> Board:
    """Make a board on which the states with positive weights of their own are alive."""
    arrays: Any = graph.arrays
    alive = arrays.log_unary > -np.inf
    n_factors, n_sites = constraints.table.size, graph.n_sites
    owner = np.repeat(np.arange(n_sites), constraints.card)
    return Board(
        alive=alive,
        count=np.bincount(owner[alive], minlength=n_sites),
        residue=np.full(int(constraints.slot[-1]), -1, np.int64),
        trail=np.zeros(alive.size, np.int64),
        owner=owner,
        killer=np.full(alive.size, -1, np.int64),
        queue=np.zeros(n_factors, np.int64),
        queued=np.zeros(n_factors, np.bool_),
        digits=np.zeros(int(np.diff(constraints.member_start).max(initial=1)), np.int64),
        counters=np.zeros(4, np.int64),
    )


@compiled_loop
def tighten(c: Constraints, b: Board, i: int, a: int) -> int:
    """Give site i the state a (a = -1: nothing is given) and propagate.

    Return -1, or the first site without a state.
    """
    if a >= 0:
        give(c, b, i, a)
    else:
        for f in range(c.table.size):
            _enqueue(b, f)
    return propagate(c, b)


@called
def _enqueue(b: Board, f: int) -> None:
    """Put a factor on the worklist."""
    if not b.queued[f]:
        b.queued[f] = True
        b.queue[(b.counters[HEAD] + b.counters[QUEUED]) % b.queue.size] = f
        b.counters[QUEUED] += 1


@called
def kill(c: Constraints, b: Board, i: int, a: int, by: int) -> None:
    """Exclude state a of site i on behalf of factor ``by`` (-1: none) and queue the site's factors."""
    cell = c.offset[i] + a
    b.alive[cell] = False
    b.count[i] -= 1
    b.killer[cell] = by
    b.trail[b.counters[TRAIL]] = cell
    b.counters[TRAIL] += 1
    for k in range(c.start[i], c.start[i + 1]):
        if c.factor[k] != by:  # no support in ``by`` used this state, or it would not have died
            _enqueue(b, c.factor[k])


@called
def give(c: Constraints, b: Board, i: int, a: int) -> None:
    """Exclude all states of site i except a."""
    for other in range(c.card[i]):
        if other != a and b.alive[c.offset[i] + other]:
            kill(c, b, i, other, np.int64(-1))


@called
def revive(b: Board, length: int) -> None:
    """Take back all deaths beyond this length of the trail."""
    for t in range(length, b.counters[TRAIL]):
        cell = b.trail[t]
        b.alive[cell] = True
        b.count[b.owner[cell]] += 1
    b.counters[TRAIL] = length


@called
def propagate(c: Constraints, b: Board) -> int:
    """Work off the list; return -1, or the first site without a state (the list is then empty)."""
    wiped = np.int64(-1)
    while b.counters[QUEUED] > 0:
        f = b.queue[b.counters[HEAD]]
        b.counters[HEAD] = (b.counters[HEAD] + 1) % b.queue.size
        b.counters[QUEUED] -= 1
        b.queued[f] = False
        if wiped >= 0:
            continue  # only the list is emptied
        for m in range(c.member_start[f], c.member_start[f + 1]):
            i = c.member[m]
            for a in range(c.card[i]):
                if b.alive[c.offset[i] + a] and not _supported(c, b, f, m, a):
                    kill(c, b, i, a, f)
            if b.count[i] == 0:
                wiped = i
                break
    return wiped


@called
def _next_alive(alive: Flags, cell: int, last: int, first: int) -> int:
    """Return the first living cell from ``cell`` on, going on at ``first`` after ``last``."""
    while cell < last and not alive[cell]:
        cell += 1
    if cell == last:
        cell = first
        while not alive[cell]:
            cell += 1
    return cell


@called
def _supported(c: Constraints, b: Board, f: int, own: int, state: int) -> bool:
    """Whether factor f has a living positive entry in which its member ``own`` has the given state.

    The entry that was found last is tried first. From there the living combinations of the other members
    are counted through like an odometer, once around. An entry found supports the states of all its members.
    """
    first, last = c.member_start[f], c.member_start[f + 1]
    known = b.residue[c.slot[own] + state]
    fresh = known < 0
    entry, total = np.int64(0), np.int64(1)
    for m in range(first, last):
        i = c.member[m]
        digit = state
        if m != own:
            cell = c.offset[i] + (np.int64(0) if known < 0 else known // c.stride[m] % c.card[i])
            living = _next_alive(b.alive, cell, c.offset[i + 1], c.offset[i])
            fresh = fresh or living != cell
            digit = living - c.offset[i]
            total *= b.count[i]
        b.digits[m - first] = digit
        entry += digit * c.stride[m]
    b.counters[WORK] += 1
    if not fresh:
        return True
    for step in range(total):
        if c.allowed[c.table[f] + entry]:
            b.counters[WORK] += step
            for m in range(first, last):
                b.residue[c.slot[m] + b.digits[m - first]] = entry
            return True
        for m in range(last - 1, first - 1, -1):
            if m != own:
                i, digit = c.member[m], b.digits[m - first]
                cell = c.offset[i] + digit
                living = _next_alive(b.alive, cell + 1, c.offset[i + 1], c.offset[i])
                b.digits[m - first] = living - c.offset[i]
                entry += (living - cell) * c.stride[m]
                if living > cell:
                    break
    b.counters[WORK] += total
    return False


def scope_text(constraints: Constraints, f: int, model: FactorGraph | None) -> str:
    """Return the scope of a factor for a message: ``(a, b)``."""
    members = constraints.member[constraints.member_start[f] : constraints.member_start[f + 1]]
    return f"({', '.join(site_name(int(i), model) for i in members)})"


def site_name(i: int, model: FactorGraph | None) -> str:
    """Return what a message calls a site."""
    return str(i) if model is None else model.sites[i]


def _wipe_out_text(c: Constraints, b: Board, site: int, model: FactorGraph | None) -> str:
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
