"""Tables of herding weights: with a place for every key, or growing with the keys met.

A key is a number: of a site and of what distinguishes its weights. A key that has not been met has weights of zero, the
first of which is never zero in use: an array of zeros is an empty table, and takes memory only where it is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Ints, Words64
from gibbsite._numba.intrinsic import fetch
from gibbsite._numba.jit import Integer, called, generic, implement, inlined

_U, _U32, _U64 = np.uintp, np.uint32, np.uint64
# A hash table grows by an eighth when more than this share is in use: from then on at least 67 %
# are, and 16 bytes (key, weight) make less than 24 for each key.
_FULL = 0.76
_LEAST = 1024
# Slots behind the table, for keys whose home is near its end: there is no going round. Far more than the
# longest run of slots in use, and no memory until they are.
_TAIL = 1 << 16
# Numbers in a line of the cache.
_LINE = 8
# Keys of a group differ in this many bits only.
_GROUP, _INSIDE, _MARK = _U64(4), _U64(15), _U64(1 << 63)
# Multipliers of the finaliser of MurmurHash3.
_MIX_1, _MIX_2, _SHIFT = _U64(0xFF51AFD7ED558CCD), _U64(0xC4CEB9FE1A85EC53), _U64(33)


class Table(NamedTuple):
    """A place for every key: the weights of key k begin at ``weight[k * width]``."""

    weight: Array
    width: int


class Hashed(NamedTuple):
    """Open addressing with linear probing; the weights of slot s begin at ``weight[s * width]``.

    ``key[s]`` is the key with its highest bit turned, or 0 if the slot is free. ``fill`` holds the slots that
    are part of the table, the keys in it, and how many keys found no room.
    """

    key: Words64
    weight: Array
    width: int
    fill: Ints

    def follows(self, fresh: Hashed) -> bool:
        """Return whether keys from a file stand so that every search among them comes to a free slot.

        New keys that find a stretch of slots taken stand behind it. There is room for them behind the last
        slot as long as no stretch of the table is much fuller than others.
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
    """Return a hash table with ``width`` weights of some type for each key that grows up to some memory."""
    slots = max(_LEAST, min(most_bytes // (8 + 8 * width), 2**32 - 1)) + _TAIL
    weight: Array = np.zeros(slots * width, kind)
    return Hashed(np.zeros(slots, np.uint64), weight, width, np.array([_LEAST, 0, 0], np.int64))


@generic
def expect(ledger: Any, first: Integer, last: Integer) -> None:
    """Bring the weights of some keys near, one of which will soon be asked for."""
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
    """Return where the weights of a key begin, making room for it if it is new."""
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
    """Return the slot from which on a key is looked for.

    Neighbouring keys are adjacent, in groups, so that those of a site can be prefetched together; where a group begins
    is random: its share of the slots, without division. With more slots it is the same or a later one.
    """
    h = wanted >> _GROUP
    h = (h ^ (h >> _SHIFT)) * _MIX_1
    h = (h ^ (h >> _SHIFT)) * _MIX_2
    h ^= h >> _SHIFT
    return _U((((h >> _U64(32)) * slots) >> _U64(32)) + (wanted & _INSIDE))


@inlined
def _probe(ledger: Hashed, wanted: np.uint64) -> Integer:
    """Return the slot of a key, or the free slot where it would stand."""
    slot = _home(wanted, _U64(ledger.fill[0]))
    while ledger.key[slot] != _U64(0) and ledger.key[slot] != wanted:
        slot += _U(1)
    return slot


@called
def _insert(ledger: Hashed, wanted: np.uint64) -> Integer:
    """Add a key; those that come when there is no more room are counted, and share the last slot."""
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

    Going down, every key moves to a free slot at or after its new home, which is never before the old one.
    Going up, every key moves to the first free slot from its home on: slots before it are never vacated
    again, so looking for it will find it.
    """
    last = _U(ledger.fill[0] + _TAIL)
    ledger.fill[0] = larger
    for k in range(last):
        _move(ledger, last - _U(1) - k)
    for k in range(_U(larger + _TAIL)):
        _move(ledger, _U(k))


@inlined
def _move(ledger: Hashed, s: Integer) -> None:
    """Take a key out of its slot and put it into the first free one from its home on."""
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
