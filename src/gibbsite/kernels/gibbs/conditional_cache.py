"""Conditionals that are remembered, for sites whose neighbours have few configurations.

The next value of a site depends on the states of its neighbours (its blanket), by some rules also on its own.
Where these have few configurations, each of them has a row in a table of the chain, empty at first. A visit
numbers the configuration and reads its row; an empty row is filled with the conditional computed for that visit.
So nothing is computed in advance, and draws are bit by bit those of a chain without memory.

A row pays while it stays in the processor's cache. In most real networks a chain sees a few hundred of the
thousands or millions of configurations of a site, and hardly computes anything twice. Where it keeps seeing new
ones it is faster to compute: when a chain has filled as much as a cache holds, sites that find their rows empty too
often are no longer remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words32
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.rules import HEAT_BATH

_ONE = np.uintp(1)
# Found by timing networks of 8 to 10^4 sites. With more sites than this no cache holds a few rows of each.
_MOST_SITES = 4096
# Numbers in the rows of one site and of all, at most: 8 MB, which are taken only as they are filled.
_MOST_OF_SITE, _MOST = 1 << 16, 1 << 20
# Numbers that are filled before any site is judged: 512 kB, about what a core has for itself.
_ROOM = 1 << 16
# A row that is filled must be found this many times to be worth it, once there is no room left.
_FINDS = 3


class Blankets(NamedTuple):
    """The sites that each site depends on, and how their configurations are numbered.

    The row of site i begins at ``place[i]`` plus the sum of ``stride[k] * x[member[k]]``, k from ``start[i]``
    to ``start[i + 1]``; a place of 0 means that the site is not remembered. The last row ends at ``size``. All
    this depends on scopes alone: chains, and models of the same structure, share it.
    """

    start: Words32
    member: Words32
    stride: Words32
    place: Ints
    size: int


class Remembered(NamedTuple):
    """Memory of a chain that remembers conditionals.

    A row of ``table`` for a site of K states has 2 K numbers: what a number in [0, 1) is multiplied by to be
    compared (0 where the row is empty), the K - 1 levels it is compared with, and the K probabilities of the
    states given the rest.

    ``gain[i]`` is how often site i found its row filled, less three times how often empty. The entry behind
    the last site is how many numbers may be filled before that matters.
    """

    work: Floats
    start: Words32
    member: Words32
    stride: Words32
    place: Ints
    table: Floats
    gain: Ints

    @property
    def rebuildable(self) -> bool:
        """Nothing in here has any influence on the numbers: a resumed chain begins with an empty one."""
        return True


def remembering_pays(graph: Graph) -> bool:
    """Return whether remembering conditionals is faster than computing them."""
    # Pairs of sites multiply one row of a table for each neighbour, which is about as fast as finding a row.
    return graph.kind == "table" and graph.n_sites <= _MOST_SITES


class _KeptBlankets(dict[bool, Blankets]):
    """Blankets of a graph, with and without the sites themselves."""


def find_blankets(graph: Graph, own: bool) -> Blankets:
    """Return the blankets, with numbers for the configurations of the smallest ones.

    ``own``: whether the state of the site itself is part of its configuration.
    """
    kept = graph.shared.find(_KeptBlankets, _KeptBlankets)
    if own not in kept:
        kept[own] = _number(graph, own)
    return kept[own]


def _number(graph: Graph, own: bool) -> Blankets:
    n, cards = graph.n_sites, graph.cards.astype(np.int64)
    site, member = _dependences(graph, own)
    numbers = 2.0 * cards
    np.multiply.at(numbers, site, cards[member])  # may overflow to infinity, which is too many
    order = np.argsort(numbers, kind="stable")
    fits = np.zeros(n, bool)
    fits[order] = (numbers[order] <= _MOST_OF_SITE) & (np.cumsum(numbers[order]) <= _MOST)
    site, member = site[fits[site]], member[fits[site]]
    start = row_starts(np.bincount(site, minlength=n), np.uint32)
    stride, step = np.zeros(site.size, np.uint32), 2 * cards
    depth = np.arange(site.size) - start[site]
    for d in range(int(depth.max(initial=-1)) + 1):
        k = np.flatnonzero(depth == d)
        stride[k] = step[site[k]]
        step[site[k]] *= cards[member[k]]
    step[~fits] = 0
    end = 1 + np.cumsum(step)
    return seal(
        Blankets(
            start=start,
            member=member.astype(np.uint32),
            stride=stride,
            place=np.where(fits, end - step, 0),
            size=1 + int(step.sum()),
        )
    )


def _dependences(graph: Graph, own: bool) -> tuple[Ints, Ints]:
    """Return all pairs of a site and one of several states that it depends on, in order."""
    start, neighbour = markov_graph(graph)
    n, sites = graph.n_sites, np.arange(graph.n_sites)
    keys = np.repeat(sites, start[1:].astype(np.int64) - start[:-1]) * n + neighbour
    if own:
        keys = np.concatenate([keys, sites * n + sites])
    site, member = np.divmod(np.unique(keys), max(n, 1))
    several = graph.cards[member] > 1
    return site[several], member[several]


def remembered_memory(graph: Graph, own: bool) -> Remembered:
    """Allocate the memory of a chain, all rows empty."""
    blankets = find_blankets(graph, own)
    gain = np.zeros(graph.n_sites + 1, np.int64)
    gain[-1] = _ROOM
    return Remembered(
        work=np.zeros(int(graph.cards.max(initial=1))),
        start=blankets.start,
        member=blankets.member,
        stride=blankets.stride,
        place=blankets.place.copy(),
        table=np.zeros(blankets.size),
        gain=gain,
    )


@inlined
def find_row(memory: Remembered, x: Codes, i: Integer) -> Integer:
    """Return where the row of a remembered site begins."""
    row = np.uintp(memory.place[i])
    for k in range(np.uintp(memory.start[i]), np.uintp(memory.start[i + _ONE])):
        row += np.uintp(memory.stride[k]) * np.uintp(x[np.uintp(memory.member[k])])
    return row


@inlined
def pick_by_row(memory: Remembered, i: Integer, row: Integer, size: Integer, u: float) -> Integer:
    """Return the state that ``u`` in [0, 1) chooses by a row that is filled."""
    memory.gain[i] += 1
    level, chosen = u * memory.table[row], 0
    for a in range(size - _ONE):
        chosen += level >= memory.table[row + _ONE + a]
    return chosen


@called
def remember_conditional(memory: Remembered, row: Integer, size: Integer, total: float) -> None:
    """Write the probabilities of the states to a row, from their weights."""
    if total > 0.0:  # a row without a possible state stays empty
        scale = 1.0 / total
        for a in range(np.uintp(size)):
            memory.table[row + np.uintp(size) + a] = memory.work[a] * scale


@called
def remember_levels(rule: Integer, memory: Remembered, i: Integer, row: Integer, size: Integer, total: float) -> None:
    """Write the levels to a row, from the weights of the next value, and judge the site."""
    w, table = memory.work, memory.table
    if total > 0.0:
        table[row] = total if rule == HEAT_BATH else 1.0
        last = np.uintp(0)
        for a in range(np.uintp(size)):
            if w[a] > 0.0:
                last = np.uintp(a)
        passed = 0.0
        for a in range(np.uintp(size) - _ONE):
            passed += w[a]
            # whatever rounding does, nothing lies above the level of the last possible state
            table[row + _ONE + a] = passed if a < last else np.inf
    end = memory.gain.size - 1
    memory.gain[end] -= 2 * size
    memory.gain[i] -= _FINDS
    if memory.gain[end] < 0 and memory.gain[i] < 0:
        memory.place[i] = 0
