"""The keys of herding weights, and the tables that store the weights of each key.

A key is a number that identifies a site and, for example, the configuration of its neighbours. A table has a place for
every key, or it is a hash table that grows with the visited keys. The weights of a new key are zero, and the first
weight of a key in use is never zero. So an array of zeros is an empty table, which takes memory only where it is
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words32, Words64
from gibbsite._common.wording import part
from gibbsite._numba.intrinsic import fetch
from gibbsite._numba.jit import Integer, called, generic, implement, inlined
from gibbsite.errors import TooLargeError
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.rows import row_lengths

Rows = tuple[Words32, Words32]


class _Neighbours(NamedTuple):
    start: Words32
    neighbour: Words32


KEYS = ("blanket", "full", "shared", "binned", "randomised-binned", "site")
STORAGE = ("auto", "dense", "hash")
# What a key is computed from: other sites' states, the conditional, its bin, or a random bin.
CODED, SHARED, BINNED, RANDOM = range(4)

_NUMBERS = 2.0**62


@dataclass(frozen=True)
class Keys:
    """The keys of the sites of a graph."""

    kind: str  # one of ``KEYS``
    bins: int  # number of bins, for keys that are bins
    graph: Graph

    @property
    def found_by(self) -> int:
        """What keys are computed from: ``CODED``, ``SHARED``, ``BINNED`` or ``RANDOM``."""
        if self.counts:
            return CODED
        return {"shared": SHARED, "binned": BINNED, "randomised-binned": RANDOM}.get(self.kind, CODED)

    @property
    def width(self) -> int:
        """Number of entries of a key: one for two states, otherwise a mark and a weight per state."""
        return 1 if self.graph.binary else int(self.graph.cards.max(initial=1)) + 1

    @property
    def counts(self) -> bool:
        """Whether keys are conditionals that depend only on the number of neighbours in state 1."""
        if self.kind != "shared":
            return False
        g = self.graph.arrays
        if isinstance(g, LatticeGraph):
            return counts_suffice(g)
        if isinstance(g, IsingGraph):
            if not g.coupling.size:
                return True
            n = self.graph.n_sites
            owner = np.repeat(np.arange(n), row_lengths(g.start))
            coupling = np.asarray(g.coupling)
            first = coupling[g.start[:-1].astype(np.int64)[owner].clip(0, coupling.size - 1)]
            simple = np.unique(owner * n + g.neighbour.astype(np.int64)).size == owner.size
            return bool(simple and (coupling == first).all())
        return False

    def others(self) -> Rows:
        """Return the sites whose states are part of the key of each site, in compressed rows.

        They depend on scopes alone, so they are cached with the graph.
        """
        n = self.graph.n_sites
        if self.kind == "full":
            every = np.arange(n, dtype=np.uint32)
            member = np.concatenate([np.delete(every, i) for i in range(n)]) if n else every
            return (np.arange(n + 1) * max(n - 1, 0)).astype(np.uint32), member
        if self.kind != "blanket" and not self.counts:
            return np.zeros(n + 1, np.uint32), np.zeros(0, np.uint32)
        start, neighbour = self.graph.shared.find(_Neighbours, lambda: _Neighbours(*markov_graph(self.graph)))
        return start.astype(np.uint32, copy=False), neighbour.astype(np.uint32, copy=False)

    def sizes(self) -> Floats:
        """Return the number of possible keys of each site."""
        n = self.graph.n_sites
        if self.counts and isinstance(self.graph.arrays, LatticeGraph):  # sites at borders get as many as the others
            return np.full(n, 2.0 * sum(size > 1 for size in self.graph.arrays[0:3]) + 1.0)
        cards = self.graph.cards.astype(np.float64)
        start, member = self.others()
        degree = row_lengths(start)
        if self.kind == "site":
            return np.ones(n)
        if self.counts:
            return degree.astype(np.float64) + 1.0
        if self.kind in ("blanket", "full"):
            logs = np.bincount(np.repeat(np.arange(n), degree), np.log2(cards[member]), n)
            return np.asarray(np.rint(np.exp2(np.minimum(logs, 1000.0))), np.float64)
        if self.kind == "shared":
            return np.full(n, 2.0**63)
        many = np.where(cards <= 2, self.bins + 1.0, (self.bins + 1.0) ** np.minimum(cards, 100.0))
        return many.astype(np.float64)

    def numbers(self) -> tuple[Words64, Words64]:
        """Return the first key of each site, and the stride by which each other site's state changes the key."""
        (start, member), sizes = self.others(), self.sizes()
        n, cards = self.graph.n_sites, self.graph.cards
        if sizes.sum() >= _NUMBERS:  # too many keys to number: random strides distinguish the visited ones
            place = np.random.SeedSequence(1).generate_state(n, np.uint64).astype(np.uint64)
            return place, np.random.SeedSequence(2).generate_state(member.size, np.uint64).astype(np.uint64)
        stride = np.ones(member.size, np.uint64)
        if not self.counts:
            site = np.repeat(np.arange(n), row_lengths(start))
            depth, unit = np.arange(member.size) - start[site], np.ones(n, np.uint64)
            for d in range(int(depth.max(initial=-1)) + 1):
                k = np.flatnonzero(depth == d)
                stride[k] = unit[site[k]]
                unit[site[k]] *= cards[member[k]].astype(np.uint64)
        return (np.cumsum(sizes) - sizes).astype(np.uint64), stride

    def take_table(self, storage: str, limit: int) -> bool:
        """Return whether to use a table, with a place for every key, rather than a hash table.

        The table may have at most ``limit`` bytes; if it is requested explicitly and does not fit, it is refused.
        """
        if storage == "hash":
            return False
        need = 8.0 * self.sizes() * self.width
        fits = bool(need.sum() <= limit)
        if storage == "dense" and not fits:
            worst = int(np.argmax(need))
            others = int(row_lengths(self.others()[0])[worst])
            raise TooLargeError(
                f"A table of all keys would take {need.sum():.1e} bytes, but the limit is {limit:.1e}; "
                f"site {worst} alone, with {others} others to distinguish, takes {need[worst]:.1e}. "
                f"Use {named(storage='hash')}, or {named(keys='binned')}."
            )
        return fits


def named(**parameter: str) -> str:
    """Return the text that names herding with a parameter, such as ``keys='site'``, in a message."""
    ((name, value),) = parameter.items()
    return part("HerdedGibbs", f"{name}={value!r}", **parameter)


def counts_suffice(g: LatticeGraph) -> bool:
    """Return whether the conditionals of a lattice depend only on the number of neighbours in state 1.

    They do not if couplings differ, or on a ring of two sites, where a neighbour counts twice.
    """
    axes = [(float(w[0]), size, wrap) for w, size, wrap in zip(g[10:13], g[0:3], g[3:6], strict=True)]
    used = {w for w, size, _ in axes if size > 1}
    doubled = any(wrap and size == 2 for _, size, wrap in axes)
    return len(used) <= 1 and not (g.step_0 or g.step_1 or g.step_2) and not doubled


_U, _U32, _U64 = np.uintp, np.uint32, np.uint64
# A hash table grows by an eighth when more than this share of its slots is in use. Afterwards at least 67 % are in use,
# so a key with its weight, 16 bytes, takes less than 24.
_FULL = 0.76
_LEAST = 1024
# Number of slots after the end of the table, because searches do not wrap around. It is far larger than the longest run
# of used slots, and unused slots take no memory.
_TAIL = 1 << 16
# Number of entries in a cache line.
_LINE = 8
# Keys of a group differ only in this number of bits.
_GROUP, _INSIDE, _MARK = _U64(4), _U64(15), _U64(1 << 63)
# Multipliers of the finaliser of MurmurHash3.
_MIX_1, _MIX_2, _SHIFT = _U64(0xFF51AFD7ED558CCD), _U64(0xC4CEB9FE1A85EC53), _U64(33)


class Table(NamedTuple):
    """A table with a place for every key: the weights of key k begin at ``weight[k * width]``."""

    weight: Array
    width: int


class Hashed(NamedTuple):
    """A hash table with linear probing: the weights of slot s begin at ``weight[s * width]``.

    ``key[s]`` is the key with its highest bit flipped, or 0 if the slot is free. ``fill`` has the number of slots of
    the table, the number of keys in it, and the number of keys that did not fit.
    """

    key: Words64
    weight: Array
    width: int
    fill: Ints

    def follows(self, fresh: Hashed) -> bool:
        """Return whether keys from a file are placed such that every search among them reaches a free slot.

        A new key is placed after a run of used slots. There are free slots for it after the last one as long as no
        part of the table is much fuller than the others.
        """
        slots, keys, _ = self.fill.tolist()
        if not _LEAST <= slots <= fresh.key.size - _TAIL or np.count_nonzero(self.key) != keys:
            return False
        if keys > _FULL * slots + 1 or self.key[slots + _TAIL // 8 :].any():
            return False
        taken = np.add.reduceat(self.key[:slots] != 0, np.arange(0, min(slots, self.key.size), _TAIL))
        return bool(slots < 2 * _TAIL or (taken <= 0.9 * _TAIL).all())


def make_table(width: int, size: int, kind: type) -> Table:
    """Return a table with ``width`` weights of some type for each key below ``size``."""
    return Table(np.zeros(size * width, kind), width)


def make_hashed(width: int, most_bytes: int, kind: type) -> Hashed:
    """Return a hash table with ``width`` weights of some type for each key, which can grow to ``most_bytes``."""
    slots = max(_LEAST, min(most_bytes // (8 + 8 * width), 2**32 - 1)) + _TAIL
    weight: Array = np.zeros(slots * width, kind)
    return Hashed(np.zeros(slots, np.uint64), weight, width, np.array([_LEAST, 0, 0], np.int64))


@generic
def expect(ledger: Any, first: Integer, last: Integer) -> None:
    """Prefetch the weights of some keys, one of which will soon be needed."""
    raise NotImplementedError


@implement(expect)
def _expect_nothing(ledger: Any, first: Integer, last: Integer) -> None:
    pass


@implement(expect, Table)
def _expect_in_table(ledger: Table, first: Integer, last: Integer) -> None:
    step = _U(_LINE // ledger.width)
    for key in range(_U(first), min(_U(last), _U(first) + _U(4) * step), step):
        fetch(ledger.weight, key * _U(ledger.width))


@implement(expect, Hashed)
def _expect_hashed(ledger: Hashed, first: Integer, last: Integer) -> None:
    if ledger.width > 1 or last - first > _U64(2) << _GROUP:
        return
    slots = _U64(ledger.fill[0])
    for key in range(_U64(first) & ~_INSIDE, _U64(last), _U64(1) << _GROUP):
        slot = _home(key ^ _MARK, slots)
        for line in range(_U(3)):
            fetch(ledger.key, slot + line * _U(_LINE))
            fetch(ledger.weight, slot + line * _U(_LINE))


@generic
def find(ledger: Any, key: Integer) -> Integer:
    """Return where the weights of a key begin; insert the key if it is new."""
    raise NotImplementedError


@implement(find, Table)
def _find_in_table(ledger: Table, key: Integer) -> Integer:
    return _U(key) * _U(ledger.width)


@implement(find, Hashed)
def _find_hashed(ledger: Hashed, key: Integer) -> Integer:
    wanted = _U64(key) ^ _MARK
    slot = _probe(ledger, wanted)
    if ledger.key[slot] != wanted:
        slot = _insert(ledger, wanted)
    return slot * _U(ledger.width)


@inlined
def _home(wanted: np.uint64, slots: np.uint64) -> Integer:
    """Return the slot at which the search for a key begins.

    Keys of a group are adjacent, so that the keys of a site can be prefetched together. The first slot of a group is
    pseudo-random: a hash, scaled to the number of slots without division. With more slots, it is the same or a later
    one.
    """
    h = wanted >> _GROUP
    h = (h ^ (h >> _SHIFT)) * _MIX_1
    h = (h ^ (h >> _SHIFT)) * _MIX_2
    h ^= h >> _SHIFT
    return _U((((h >> _U64(32)) * slots) >> _U64(32)) + (wanted & _INSIDE))


@inlined
def _probe(ledger: Hashed, wanted: np.uint64) -> Integer:
    """Return the slot of a key, or the free slot where it would be inserted."""
    slot = _home(wanted, _U64(ledger.fill[0]))
    while ledger.key[slot] != _U64(0) and ledger.key[slot] != wanted:
        slot += _U(1)
    return slot


@called
def _insert(ledger: Hashed, wanted: np.uint64) -> Integer:
    """Add a key; keys that no longer fit are counted, and they share the last slot."""
    fill = ledger.fill
    if fill[1] + 1 > _FULL * fill[0]:
        larger = min(fill[0] + fill[0] // 8, ledger.key.size - _TAIL)
        if larger == fill[0]:
            fill[2] += 1
            return _U(ledger.key.size - 1)
        _grow(ledger, larger)
    slot = _probe(ledger, wanted)
    ledger.key[slot] = wanted
    fill[1] += 1
    return slot


@called
def _grow(ledger: Hashed, larger: Integer) -> None:
    """Give the table more slots, in place.

    The first pass, from the last slot to the first, moves every key to a free slot at or after its new home, which is
    never before the old one. The second pass, in ascending order, moves every key to the first free slot from its home
    on. Slots between its home and its place are not vacated later, so a search finds it.
    """
    last = _U(ledger.fill[0] + _TAIL)
    ledger.fill[0] = larger
    for k in range(last):
        _move(ledger, last - _U(1) - k)
    for k in range(_U(larger + _TAIL)):
        _move(ledger, _U(k))


@inlined
def _move(ledger: Hashed, s: Integer) -> None:
    """Move a key from its slot to the first free slot from its home on."""
    wanted: Any = ledger.key[s]
    width = _U(ledger.width)
    if wanted != _U64(0):
        ledger.key[s] = _U64(0)
        to = _probe(ledger, wanted)
        ledger.key[to] = wanted
        if to != s:
            for a in range(width):
                ledger.weight[to * width + a] = ledger.weight[s * width + a]
                ledger.weight[s * width + a] = 0
