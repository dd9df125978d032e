"""The text of a BIF or DSC file: words, marks, probabilities and their places; probability blocks and their tables."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import FormatError
from gibbsite.formats.network import MOST_MEMBERS, build_network, find_wrong_row
from gibbsite.formats.parsing.text import Source, shortened
from gibbsite.models.factorgraph import FactorGraph

_PROPERTY_TAIL = r'(?:(?:"[^"\n]*+"|[^;"])*+;|[^;]*+(?:;|\Z))'
# Quoted text and properties are matched, too, so that comment marks in them are ignored.
_SKIPPED = re.compile(
    r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|\bproperty\b' + _PROPERTY_TAIL + r"|(//[^\n]*+|/\*.*?(?:\*/|\Z))", re.DOTALL
)
_PROPERTY = re.compile(r"\s*+property\b" + _PROPERTY_TAIL)
_NAME = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s{}()\[\];,|"]++))', re.DOTALL)
_PLAIN = re.compile(r'(?:[^\s{}()\[\];,|"/]|/(?![/*]))++')
_BLANK = re.compile(r"\s*+")
_GAP = re.compile(r"[\s,]*+")
_LIST = re.compile(r"[0-9eE+\-.,\s]*+")
_WORD = re.compile(r"\S++")
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*+"|[^";{}])*+;', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_DEFAULT_ENTRIES = 1 << 22  # most entries of tables that default rows fill, which may be larger than the file


class Cursor:
    """A place in the text of a file, whose comments are replaced by blanks.

    Subclasses are for formats with other comments (`skipped`, of which the first group is a comment) and other words
    (`word`, of which the groups are a quoted text and a plain word).
    """

    skipped, word = _SKIPPED, _NAME

    def __init__(self, source: Source) -> None:
        self.source, self._original = source, source.decoded()
        self.text = self.skipped.sub(self._blank, self._original)
        self.at = 0

    def _blank(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        if match[1].startswith("/*") and (len(match[1]) < 4 or not match[1].endswith("*/")):
            raise self.error("this comment is not closed; expected */ somewhere.", match.start())
        return re.sub(r"[^\n]++", lambda line: " " * len(line[0]), match[1])

    def error(self, message: str, place: int | None = None) -> FormatError:
        """Return the error about a place, by default about what comes next."""
        at = self.next() if place is None else place
        line = self._original.count("\n", 0, at) + 1
        return FormatError(shortened(message), self.source.name, line, at - self._original.rfind("\n", 0, at))

    def next(self) -> int:
        """Return the place of what comes next."""
        return _end(_BLANK.match(self.text, self.at), self.at)

    @property
    def ended(self) -> bool:
        """Whether only blanks are left."""
        return self.next() == len(self.text)

    def found(self) -> str:
        """Return what comes next, for a message."""
        at = self.next()
        if at == len(self.text):
            return "the end of the file"
        word = self.word.match(self.text, at)
        return repr(word[0][:30] if word else self.text[at])

    def take(self, mark: str) -> bool:
        """Step over a mark if it comes next."""
        at = self.next()
        if not self.text.startswith(mark, at):
            return False
        self.at = at + len(mark)
        return True

    def take_word(self, word: str) -> bool:
        """Step over a word if it comes next, in capitals or not."""
        match = self.word.match(self.text, self.at)
        if match is None or match[2] is None or match[2].lower() != word:
            return False
        self.at = match.end()
        return True

    def take_property(self) -> bool:
        """Step over a property if one comes next."""
        match = _PROPERTY.match(self.text, self.at)
        if match is None:
            return False
        if not match[0].endswith(";"):
            raise self.error("this property has no end; expected ';'.")
        self.at = match.end()
        return True

    def expect(self, mark: str, where: str) -> None:
        """Step over a mark that must come next."""
        if not self.take(mark):
            raise self.error(f"expected {mark!r} {where}, found {self.found()}.")

    def name(self, what: str) -> str:
        """Step over the word or quoted text that must come next, and return it."""
        match = self.word.match(self.text, self.at)
        if match is None:
            raise self.error(f"expected {what}, found {self.found()}.")
        self.at = match.end()
        return match[2] if match[1] is None else re.sub(r'\\(["\\])', r"\1", match[1])

    def names(self, closing: str, what: str) -> list[tuple[int, str]]:
        """Step over all words up to a closing mark, and return them with their places."""
        names: list[tuple[int, str]] = []
        while True:
            self.at = _end(_GAP.match(self.text, self.at), self.at)
            if self.take(closing):
                return names
            names.append((self.at, self.name(f"{what} or {closing!r}")))

    def probabilities(self) -> list[float]:
        """Step over numbers up to a semicolon, and return them."""
        start = self.at
        self.at = end = _end(_LIST.match(self.text, start), start)
        if not self.take(";"):
            raise self.error(f"expected a number or ';', found {self.found()}.")
        return self.numbers(start, end, ",")

    def numbers(self, start: int, end: int, marks: str) -> list[float]:
        """Return the probabilities between two places, which blanks and marks separate."""
        blank = str.maketrans(marks, " " * len(marks))
        part = self.text[start:end].translate(blank)
        try:
            values = [float(word) for word in part.split()]
        except ValueError:
            values = [math.nan]
        if not all(0.0 <= value < math.inf for value in values):
            for match in _WORD.finditer(part):
                if not _NUMBER.fullmatch(match[0]) or not 0.0 <= float(match[0]) < math.inf:
                    raise self.error(f"expected a probability, found {match[0][:30]!r}.", start + match.start())
        return values

    def states(self, owner: str, mark: str = "") -> dict[str, int]:
        """Step over a number in brackets, an optional mark, and states in braces; return the codes of the states."""
        self.expect("[", "before the number of states")
        at, count = self.next(), self.name("the number of states")
        self.expect("]", "after the number of states")
        self.take(mark)
        self.expect("{", "before the states")
        words = self.names("}", "a state")
        self.take(";")
        states = {word: code for code, (_, word) in enumerate(words)}
        if count != str(len(words)):
            raise self.error(f"{count[:30]} states are declared, but {len(words)} are listed.", at)
        if len(states) < len(words):
            raise self.error(f"the {owner} has two states of the same name.", at)
        return states

    def skip_value(self) -> None:
        """Step over the rest of an attribute, up to its semicolon."""
        match = _VALUE.match(self.text, self.at)
        if match is None:
            raise self.error(f"expected ';' after the value of this attribute, found {self.found()}.")
        self.at = match.end()


def quoted(name: str) -> str:
    r"""Return a name for a file, in quotes only if they are necessary."""
    if _PLAIN.fullmatch(name):
        return name
    return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def _end(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise


class Row(NamedTuple):
    """Numbers, with their place and the parent states that they are for."""

    place: int
    states: tuple[str, ...]
    values: list[float]


@dataclass
class Block:
    """A probability block of a file; the child is the first name."""

    place: int
    names: list[tuple[int, str]]
    table: Row | None = None
    default: Row | None = None
    rows: list[Row] = field(default_factory=list)


class Variable(NamedTuple):
    """A variable block: its place, the number of the variable, its states with their codes."""

    place: int
    number: int
    states: dict[str, int]


def open_block(cursor: Cursor, kind: str, place: int, blocks: dict[str, Block]) -> Block:
    """Step over the names of a probability block and its opening brace; add the block to the others, and return it."""
    cursor.expect("(", "after 'probability'")
    names = [(cursor.next(), cursor.name(f"the name of a {kind}"))]
    cursor.take("|")
    block = Block(place, names + cursor.names(")", "the name of a parent"))
    child = names[0][1]
    if child in blocks:
        raise cursor.error(f"the {kind} {child!r} has two probability blocks.", place)
    cursor.expect("{", f"after the names of {child!r} and its parents")
    blocks[child] = block
    return block


def build_from_blocks(
    cursor: Cursor,
    kind: str,
    variables: dict[str, Variable],
    blocks: dict[str, Block],
    translate: Callable[[Block], Block] = lambda block: block,
) -> FactorGraph:
    """Return the network of the blocks of a file, which calls its variables ``kind``.

    ``translate`` is applied to each probability block first.
    """
    if not variables:
        raise cursor.error(f"the file has no {kind}s; expected a block '{kind} NAME {{ ... }}'.")
    for name, block in blocks.items():
        if name not in variables:
            raise cursor.error(f"there is no variable {name!r}.", block.names[0][0])
    resolver = Resolver(cursor, variables)
    tables = []
    for name, variable in variables.items():
        if name not in blocks:
            raise cursor.error(f"the {kind} {name!r} has no probability block.", variable.place)
        tables.append(resolver.resolve(translate(blocks[name])))

    def fail(message: str, name: str | None) -> FormatError:
        return cursor.source.error(message) if name is None else cursor.error(message, blocks[name].place)

    return build_network({name: tuple(each.states) for name, each in variables.items()}, tables, fail)


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
        wrong = find_wrong_row(table)
        if wrong is not None:
            states = _states(wrong[0], parents)
            place = next((row.place for row in block.rows if list(row.states) == states), block.place)
            given = f" for ({', '.join(states)})" if states else ""
            raise self.cursor.error(f"the probabilities{given} sum to {wrong[1]:.6g}; expected 1.", place)
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
