"""Propagation of zeros: generalised arc consistency on tables, compiled.

A state of a site dies when some factor has no positive entry left that contains it and otherwise only
living states. The algorithm is a worklist over factors that remembers for every (factor, member, state)
the entry that supported it last, and looks for a new one only when that entry has died, from there on and
once around (AC-3 with residues: Lecoutre and Hemery 2007). Between two deaths a table is read at most once
per member and state, however often its factor is visited.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from gibbsite._common.arrays import Bools, Codes, Ints
from gibbsite._numba.jit import called, compiled_loop

Whole: TypeAlias = int | np.int64  # an integer in compiled code


class Constraints(NamedTuple):
    """The factors that forbid something; sites and cells are those of the graph.

    Rows ``start[i]`` to ``start[i + 1]`` of ``factor`` and ``own_stride`` belong to site i. Factor f has
    the members ``member_start[f]`` to ``member_start[f + 1]``; an entry is possible where
    ``allowed[table[f] + entry]``. ``slot[m] + a`` numbers the states of all members, ``offset[i] + a`` (the
    *cells*) those of all sites.
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
    """What is still possible, and how it came about: everything propagation writes.

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


TRAIL, HEAD, QUEUED, WORK = range(4)


@compiled_loop
def tighten(c: Constraints, b: LiveStates, i: Whole, a: Whole) -> Whole:
    """Give site i the state a (a = -1: nothing is given) and propagate.

    Return -1, or the first site without a state.
    """
    if a >= 0:
        give(c, b, i, a)
    else:
        for f in range(c.table.size):
            _enqueue(b, f)
    return propagate(c, b)


def is_allowed(c: Constraints, x: Codes) -> bool:
    """Tell whether no factor forbids a state."""
    if not c.table.size:
        return True
    entry = c.table + np.add.reduceat(c.stride * x[c.member], c.member_start[:-1])
    return bool(c.allowed[entry].all())


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
    """Take back all deaths beyond this length of the trail."""
    for t in range(length, b.counters[TRAIL]):
        cell = b.trail[t]
        b.alive[cell] = True
        b.living[b.owner[cell]] += 1
    b.counters[TRAIL] = length


@called
def propagate(c: Constraints, b: LiveStates) -> Whole:
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
            if b.living[i] == 0:
                wiped = i
                break
    return wiped


@called
def _next_alive(alive: Bools, cell: Whole, last: Whole, first: Whole) -> Whole:
    """Return the first living cell from ``cell`` on, going on at ``first`` after ``last``."""
    while cell < last and not alive[cell]:
        cell += 1
    if cell == last:
        cell = first
        while not alive[cell]:
            cell += 1
    return cell


@called
def _supported(c: Constraints, b: LiveStates, f: Whole, own: Whole, state: Whole) -> bool:
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
