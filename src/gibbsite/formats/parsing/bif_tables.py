"""The probability blocks of a BIF file and the tables they stand for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.formats.network import MOST_MEMBERS, ROW_TOLERANCE
from gibbsite.formats.parsing.bif_text import Cursor

# Only default rows make tables larger than the file; so many entries they may make anyway.
_DEFAULT_ENTRIES = 1 << 22


class Row(NamedTuple):
    """Some numbers: where they stand, for which parent states, what they are."""

    place: int
    states: tuple[str, ...]
    values: list[float]


@dataclass
class Block:
    """A probability block as it stands in the file; the child is the first name."""

    place: int
    names: list[tuple[int, str]]
    table: Row | None = None
    default: Row | None = None
    rows: list[Row] = field(default_factory=list)


class Variable(NamedTuple):
    """A variable block: where it stands, which one it is, its states with their codes."""

    place: int
    number: int
    states: dict[str, int]


class Resolver:
    """Turns probability blocks into tables, once all variables are known."""

    def __init__(self, cursor: Cursor, variables: dict[str, Variable]) -> None:
        self.cursor, self.variables = cursor, variables
        self.spare = _DEFAULT_ENTRIES

    def resolve(self, block: Block) -> tuple[tuple[int, ...], Floats]:
        """Return the scope, child last, and the table of that shape."""
        for place, name in block.names:
            if name not in self.variables:
                raise self.cursor.error(f"there is no variable {name!r}.", place)
        child, *parents = (self.variables[name] for _, name in block.names)
        scope = (*(parent.number for parent in parents), child.number)
        if len(set(scope)) < len(scope):
            raise self.cursor.error("this block names a variable twice.", block.place)
        if len(scope) > MOST_MEMBERS:
            raise self.cursor.error(f"expected at most {MOST_MEMBERS - 1} parents.", block.place)
        shape = [len(parent.states) for parent in parents]
        width = len(child.states)
        if block.table is not None:
            table = self._flat(block, block.table, shape, width)
        else:
            table = self._by_rows(block, parents, shape, width)
        sums = table.sum(axis=1)
        wrong = (np.abs(sums - 1.0) > ROW_TOLERANCE) & (sums != 0.0)
        if wrong.any():
            k = int(np.argmax(wrong))
            states = _states(k, parents)
            place = next((row.place for row in block.rows if list(row.states) == states), block.place)
            given = f" for ({', '.join(states)})" if states else ""
            raise self.cursor.error(f"the probabilities{given} sum to {sums[k]:.6g}; expected 1.", place)
        if not table.any():
            raise self.cursor.error("all probabilities of this block are zero.", block.place)
        return scope, table.reshape(*shape, width)

    def _flat(self, block: Block, given: Row, shape: list[int], width: int) -> Floats:
        size = math.prod(shape) * width
        if block.rows:
            raise self.cursor.error("expected no rows beside a table.", block.rows[0].place)
        if len(given.values) != size:
            raise self.cursor.error(f"expected {size} numbers, found {len(given.values)}.", given.place)
        return np.ascontiguousarray(np.array(given.values).reshape(width, -1).T)

    def _by_rows(self, block: Block, parents: list[Variable], shape: list[int], width: int) -> Floats:
        count = math.prod(shape)
        rows: dict[int, Row] = {}
        for row in (*block.rows, *([block.default] if block.default else [])):
            if len(row.values) != width:
                raise self.cursor.error(f"expected {width} numbers, found {len(row.values)}.", row.place)
        for row in block.rows:
            if rows.setdefault(self._position(row, parents), row) is not row:
                raise self.cursor.error("these parent states have a row already.", row.place)
        if len(rows) < count:
            if block.default is None:
                missing = next(k for k in itertools.count() if k not in rows)
                states = ", ".join(_states(missing, parents))
                raise self.cursor.error(f"expected a row for ({states}), or a default.", block.place)
            self.spare -= (count - len(rows)) * width
            if self.spare < 0:
                raise self.cursor.error(
                    f"the default row fills a table of {count * width} entries, which is too large.",
                    block.default.place,
                )
        table = np.empty((count, width))
        if block.default is not None:
            table[:] = block.default.values
        if rows:
            table[list(rows)] = [row.values for row in rows.values()]
        return table

    def _position(self, row: Row, parents: list[Variable]) -> int:
        if len(row.states) != len(parents):
            raise self.cursor.error(f"expected {len(parents)} states, found {len(row.states)}.", row.place)
        position = 0
        for state, parent in zip(row.states, parents, strict=True):
            if state not in parent.states:
                known = ", ".join(itertools.islice(parent.states, 8))
                raise self.cursor.error(f"there is no state {state!r}; expected one of {known}.", row.place)
            position = position * len(parent.states) + parent.states[state]
        return position


def _states(position: int, parents: list[Variable]) -> list[str]:
    """Return the parent states of a row; the last parent is the fastest."""
    states: list[str] = []
    for parent in reversed(parents):
        position, code = divmod(position, len(parent.states))
        states.append(list(parent.states)[code])
    return states[::-1]
