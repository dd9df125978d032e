"""Possible states: those that propagation of zeros from factor to factor does not exclude.

A state of a site dies when some factor has no positive entry that contains it and otherwise only living states
(generalised arc consistency on tables). The algorithm is a worklist over factors. For every (factor, member, state) it
remembers the last supporting entry, and searches for a new one cyclically from there only when that entry has died
(AC-3 with residues: Lecoutre and Hemery 2007). Between two deaths a table is read at most once per member and state.

A dead state never occurs in a state of positive probability. Whether a living one occurs is decided by a search
(:mod:`gibbsite.graphs.support.start`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gibbsite._common.arrays import Array, Bools, Codes, Ints, Positions
from gibbsite._numba.jit import called, compiled_loop, interpreted
from gibbsite.errors import SupportError
from gibbsite.graphs.graph import Graph, as_tables, compile_graph
from gibbsite.graphs.rows import row_lengths, row_starts
from gibbsite.models.factorgraph import FactorGraph

Whole: TypeAlias = int | np.int64  # an integer in compiled code

_STEPS = 20.0  # estimated steps of plain Python for each state and table entry


class Support(NamedTuple):
    """The factors with zeros of a graph, and the states that survive their propagation.

    ``touched`` are the sites that have more than one living state and a factor with zeros; ``steps`` is an estimate of
    the steps of plain Python for propagating a zero.
    """

    constraints: Constraints
    board: LiveStates
    touched: Bools
    steps: float


class _Zeros(NamedTuple):
    found: bool


class Constraints(NamedTuple):
    """The factors with zeros; sites and cells are numbered as in the graph.

    Rows ``start[i]`` to ``start[i + 1]`` of ``factor`` and ``own_stride`` belong to site i. Factor f has the members
    ``member_start[f]`` to ``member_start[f + 1]``; an entry is possible where ``allowed[table[f] + entry]``.
    ``slot[m] + a`` numbers the states of all members, ``offset[i] + a`` (the *cells*) those of all sites.
    """

    start: Ints
    factor: Ints
    own_stride: Ints
    member_start: Ints
    member: Ints
    stride: Ints
    slot: Ints
    table: Ints
    allowed: Bools
    card: Ints
    offset: Ints


class LiveStates(NamedTuple):
    """The states that are still possible, and the other arrays that propagation writes.

    ``alive`` is by cell, ``living`` counts by site. ``trail`` lists the dead cells in the order of their
    death, ``killer`` the factor that excluded each, ``residue`` the last known support of each slot.
    ``counters`` holds positions in trail and queue, and the work done so far in table entries.
    """

    alive: Bools
    living: Ints
    residue: Ints
    trail: Ints
    owner: Ints
    killer: Ints
    queue: Ints
    queued: Bools
    digits: Ints
    counters: Ints


def has_zeros(graph: Graph) -> bool:
    """Return whether some log-potential is minus infinity, so that not every state is possible."""
    kept = graph.cache.get(_Zeros)
    if kept is None:
        found = False
        if not (graph.binary or graph.on_disk):  # neither can hold infinite numbers
            arrays = graph.arrays.tables if graph.kind == "causes" else _known(graph).arrays
            logs = [arrays.log_unary, getattr(arrays, "log_value", np.zeros(0))]  # agreements have no zeros
            found = any(bool(part.size) and bool(np.isneginf(part.min())) for part in logs)
        if graph.kind == "causes":
            found = found or any(getattr(group, "has_zeros", False) for group in graph.require_model().groups)
        kept = graph.cache.put(_Zeros(found))
    return kept.found


def with_hidden_sites(graph: Graph) -> Graph:
    """Return the graph in which the noisy nodes of another one are tables; its further sites, the last, are hidden."""
    from gibbsite.models.networks.expansion import expand, without_powers

    return compile_graph(expand(without_powers(graph.require_model())), "table")


def _known(graph: Graph) -> Graph:
    """Return a graph of many-state sites in which zeros can be found: itself, or its model as tables."""
    return graph if graph.kind in ("pairwise", "table", "potts", "distance") else as_tables(graph)


def alive_states(graph: Graph, model: FactorGraph | None = None) -> Bools:
    """Return which states survive propagation, by site and state; the model is used in messages."""
    if not has_zeros(graph):
        return np.ones(int(graph.cards.sum(dtype=np.int64)), np.bool_)
    if graph.kind == "causes":
        wide = with_hidden_sites(graph)
        return find_support(wide, wide.model).board.alive[: graph.n_cells].copy()
    return find_support(graph, model).board.alive.copy()


def find_support(graph: Graph, model: FactorGraph | None = None) -> Support:
    """Propagate the zeros of a graph, and cache the result; the model is used in messages."""
    kept = graph.cache.get(Support)
    if kept is None:
        constraints = find_constraints(graph)
        board = new_live(constraints, graph)
        values: Any = getattr(graph.arrays, "log_value", np.zeros(0))
        steps = _STEPS * float(graph.n_cells + values.size)
        with interpreted(steps):
            site = int(tighten(constraints, board, -1, -1))
        if site >= 0:
            raise SupportError(_wipe_out_text(constraints, board, site, model))
        touched = (np.diff(constraints.start) > 0) & (board.living > 1)
        kept = graph.cache.put(Support(constraints, board, touched, steps))
    return kept


def find_constraints(graph: Graph) -> Constraints:
    """Collect the factors of a graph of many-state sites that have a zero entry."""
    if graph.binary:
        raise TypeError(f"a {graph.kind} graph has no zeros")
    known = _known(graph)
    arrays = known.arrays
    if known.kind == "pairwise":
        # every pair is in the rows of both ends; the row of the smaller site is used
        site = np.repeat(np.arange(graph.n_sites), row_lengths(arrays.start))
        taken = np.flatnonzero(arrays.neighbour > site)
        member = np.stack([site[taken], arrays.neighbour[taken]], axis=1).ravel()
        stride = np.stack([np.ones_like(taken), arrays.card[site[taken]]], axis=1).ravel()
        table = arrays.table[taken]
        width = np.full(taken.size, 2, np.int64)
    elif known.kind == "table":
        member, stride, table = arrays.member, arrays.stride, arrays.table
        width = row_lengths(arrays.member_start)
    else:  # agreements have no zeros, only single sites do
        member = stride = table = width = np.zeros(0, np.int64)
    logs: Any = getattr(arrays, "log_value", np.zeros(0))
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
    """Return which factors have at least one zero entry."""
    if not table.size:
        return np.zeros(0, np.bool_)
    size = np.multiply.reduceat(card[member], row_starts(width)[:-1])
    zeros = row_starts(~allowed)
    kept: Bools = zeros[table + size] > zeros[table]
    return kept


def new_live(constraints: Constraints, graph: Graph) -> LiveStates:
    """Return a board on which the states with positive unary weights are alive."""
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
    """Return a copy of a board that may be overwritten."""
    return LiveStates._make(map(np.copy, board))


def scope_text(constraints: Constraints, f: int, model: FactorGraph | None) -> str:
    """Return the scope of a factor for a message: ``(a, b)``."""
    members = constraints.member[constraints.member_start[f] : constraints.member_start[f + 1]]
    return f"({', '.join(site_name(int(i), model) for i in members)})"


def site_name(i: int, model: FactorGraph | None) -> str:
    """Return the name of a site for a message."""
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


TRAIL, HEAD, QUEUED, WORK = range(4)


@compiled_loop
def tighten(c: Constraints, b: LiveStates, i: Whole, a: Whole) -> Whole:
    """Give site i the state a, if it is not -1, and propagate; return -1, or the first site without a state."""
    if a >= 0:
        give(c, b, i, a)
    else:
        for f in range(c.table.size):
            _enqueue(b, f)
    return propagate(c, b)


def broken_factors(c: Constraints, x: Codes) -> Positions:
    """Return the factors that forbid a state."""
    if not c.table.size:
        return np.zeros(0, np.intp)
    entry = c.table + np.add.reduceat(c.stride * x[c.member], c.member_start[:-1])
    return np.flatnonzero(~c.allowed[entry])


@called
def _enqueue(b: LiveStates, f: Whole) -> None:
    """Put a factor on the worklist."""
    if not b.queued[f]:
        b.queued[f] = True
        b.queue[(b.counters[HEAD] + b.counters[QUEUED]) % b.queue.size] = f
        b.counters[QUEUED] += 1


@called
def kill(c: Constraints, b: LiveStates, i: Whole, a: Whole, by: Whole) -> None:
    """Exclude state a of site i on behalf of factor ``by`` (-1: none) and queue the site's factors."""
    cell = c.offset[i] + a
    b.alive[cell] = False
    b.living[i] -= 1
    b.killer[cell] = by
    b.trail[b.counters[TRAIL]] = cell
    b.counters[TRAIL] += 1
    for k in range(c.start[i], c.start[i + 1]):
        if c.factor[k] != by:  # no support in ``by`` used this state, or it would not have died
            _enqueue(b, c.factor[k])


@called
def give(c: Constraints, b: LiveStates, i: Whole, a: Whole) -> None:
    """Exclude all states of site i except a."""
    for other in range(c.card[i]):
        if other != a and b.alive[c.offset[i] + other]:
            kill(c, b, i, np.int64(other), np.int64(-1))


@called
def revive(b: LiveStates, length: Whole) -> None:
    """Undo all deaths beyond this length of the trail."""
    for t in range(length, b.counters[TRAIL]):
        cell = b.trail[t]
        b.alive[cell] = True
        b.living[b.owner[cell]] += 1
    b.counters[TRAIL] = length


@called
def propagate(c: Constraints, b: LiveStates) -> Whole:
    """Process the worklist until it is empty; return -1, or the first site without a state."""
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
            if b.living[i] == 0:
                wiped = i
                break
    return wiped


@called
def _next_alive(alive: Bools, cell: Whole, last: Whole, first: Whole) -> Whole:
    """Return the first living cell from ``cell`` on, continuing at ``first`` after ``last``."""
    while cell < last and not alive[cell]:
        cell += 1
    if cell == last:
        cell = first
        while not alive[cell]:
            cell += 1
    return cell


@called
def _supported(c: Constraints, b: LiveStates, f: Whole, own: Whole, state: Whole) -> bool:
    """Return whether factor f has a living positive entry in which its member ``own`` has the given state.

    The entry that was found last is tried first, then all other living combinations of the other members in turn. An
    entry that is found supports the states of all its members.
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
            found = _next_alive(b.alive, cell, c.offset[i + 1], c.offset[i])
            fresh = fresh or found != cell
            digit = found - c.offset[i]
            total *= b.living[i]
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
                found = _next_alive(b.alive, cell + 1, c.offset[i + 1], c.offset[i])
                b.digits[m - first] = found - c.offset[i]
                entry += (found - cell) * c.stride[m]
                if found > cell:
                    break
    b.counters[WORK] += total
    return False
