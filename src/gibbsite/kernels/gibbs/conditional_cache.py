"""A cache of conditionals, for sites whose neighbours have few configurations.

The next value of a site depends on the states of its neighbours (its blanket), and with some rules on its own state.
If these have few configurations, each configuration has a row in a table of the chain, which is empty at first. A visit
reads the row of the current configuration; an empty row is filled with the conditional computed for that visit.
So nothing is computed in advance, and draws are bit-identical to those of a chain without a cache.

Reading a row is faster than computing it while the row stays in the processor's cache. In most real networks, a chain
visits a few hundred of the thousands or millions of configurations of a site, and computes hardly any conditional
twice. Computing is faster for sites that keep visiting new configurations: when a chain has filled as much as the
processor's cache holds, sites whose rows are empty too often are no longer remembered.
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
# From timings of networks with 8 to 10^4 sites. With more sites, no processor's cache holds a few rows of each.
_MOST_SITES = 4096
# Largest number of entries in the rows of one site, and of all sites: 8 MB, which occupy memory only when filled.
_MOST_OF_SITE, _MOST = 1 << 16, 1 << 20
# Number of entries that are filled before any site is judged: 512 kB, about the cache of one core.
_ROOM = 1 << 16
# Once the cache is full, each filling of a row must be balanced by this many reads.
_FINDS = 3


class Blankets(NamedTuple):
    """The sites that each site depends on, and the numbering of their configurations.

    The row of site i begins at ``place[i]`` plus the sum of ``stride[k] * x[member[k]]``, k from ``start[i]``
    to ``start[i + 1]``; a place of 0 means that the site is not remembered. The last row ends at ``size``. The arrays
    depend on scopes alone, so chains, and models of the same structure, share them.
    """

    start: Words32
    member: Words32
    stride: Words32
    place: Ints
    size: int


class Remembered(NamedTuple):
    """Memory of a chain that remembers conditionals.

    A row of ``table`` for a site of K states has 2 K entries: the factor of a uniform number before it is compared (0
    if the row is empty), the K - 1 levels that it is compared with, and the probabilities of the states given the rest.

    ``gain[i]`` counts the visits of site i that found a filled row, minus three times those that found an empty one.
    The entry after that of the last site is the number of entries that may be filled before sites are judged.
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
        """True: the cache has no influence on the draws, so a resumed chain begins with an empty one."""
        return True


def remembering_pays(graph: Graph) -> bool:
    """Return whether remembering conditionals is faster than computing them."""
    # On pairwise graphs, a step multiplies one row of a table per neighbour, which is about as fast as finding a row.
    return graph.kind == "table" and graph.n_sites <= _MOST_SITES


class _KeptBlankets(dict[bool, Blankets]):
    """Blankets of a graph, with and without the sites themselves."""


def find_blankets(graph: Graph, own: bool) -> Blankets:
    """Return the blankets, with numbers for the configurations of the smallest ones.

    With ``own``, the state of the site itself is part of its configuration.
    """
    kept = graph.shared[_KeptBlankets]
    if own not in kept:
        kept[own] = _number(graph, own)
    return kept[own]


def _number(graph: Graph, own: bool) -> Blankets:
    """Assign rows to the configurations of the sites that have the fewest, as far as the cache allows."""
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
    """Return all pairs of a site and a site with several states that it depends on, in order."""
    start, neighbour = markov_graph(graph)
    n, sites = graph.n_sites, np.arange(graph.n_sites)
    keys = np.repeat(sites, start[1:].astype(np.int64) - start[:-1]) * n + neighbour
    if own:
        keys = np.concatenate([keys, sites * n + sites])
    site, member = np.divmod(np.unique(keys), max(n, 1))
    several = graph.cards[member] > 1
    return site[several], member[several]


def remembered_memory(graph: Graph, own: bool) -> Remembered:
    """Allocate the memory of a chain, with all rows empty."""
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
    """Return the state that ``u`` in [0, 1) selects in a filled row."""
    memory.gain[i] += 1
    level, chosen = u * memory.table[row], 0
    for a in range(size - _ONE):
        chosen += level >= memory.table[row + _ONE + a]
    return chosen


@called
def remember_conditional(memory: Remembered, row: Integer, size: Integer, total: float) -> None:
    """Write the probabilities of the states to a row, given their weights."""
    if total > 0.0:  # a row without a possible state stays empty
        scale = 1.0 / total
        for a in range(np.uintp(size)):
            memory.table[row + np.uintp(size) + a] = memory.work[a] * scale


@called
def remember_levels(rule: Integer, memory: Remembered, i: Integer, row: Integer, size: Integer, total: float) -> None:
    """Write the levels to a row, given the weights of the next value, and decide whether the site stays cached."""
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
            # an infinite level, so that rounding cannot select a state after the last possible one
            table[row + _ONE + a] = passed if a < last else np.inf
    end = memory.gain.size - 1
    memory.gain[end] -= 2 * size
    memory.gain[i] -= _FINDS
    if memory.gain[end] < 0 and memory.gain[i] < 0:
        memory.place[i] = 0
