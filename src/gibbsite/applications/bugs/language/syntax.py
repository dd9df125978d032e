"""A BUGS program as a tree: expressions, relations, and where each of them stands in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the text of a program, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


NOWHERE = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Number:
    """A number; ``text`` is how it was written."""

    value: float
    at: Place = field(default=NOWHERE, compare=False)
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Empty:
    """An index that is left out, as in ``x[, 2]``: all indices of that dimension."""

    at: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or elements of it.

    ``indices`` is None where no brackets follow the name. An index is an expression, ``Call(":", (a, b))`` for a range,
    or :class:`Empty`.
    """

    name: str
    indices: tuple[Expression | Empty, ...] | None = None
    at: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of expressions; operators are functions with names such as "+", "%*%", "==", "&&" and ":".

    The names of unary operators are "neg" and "!".
    """

    function: str
    arguments: tuple[Expression | Empty, ...]
    at: Place = field(default=NOWHERE, compare=False)


Expression: TypeAlias = Number | Variable | Call


@dataclass(frozen=True, slots=True)
class Logical:
    """A deterministic relation ``target <- value``, or ``link(target) <- value``."""

    target: Variable
    value: Expression
    link: str | None = None
    at: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Stochastic:
    """A stochastic relation ``target ~ distribution(...)``.

    ``bounded`` is "T" if the distribution is truncated, "I" if it is censored as WinBUGS writes it, otherwise None;
    ``lower`` and ``upper`` are the bounds that are given.
    """

    target: Variable
    distribution: Call
    bounded: str | None = None
    lower: Expression | None = None
    upper: Expression | None = None
    at: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """``for (counter in range) { body }``."""

    counter: str
    range: Expression
    body: tuple[Relation, ...]
    at: Place = field(default=NOWHERE, compare=False)


Relation: TypeAlias = Logical | Stochastic | Loop


@dataclass(frozen=True, slots=True)
class Declaration:
    """A variable of a ``var`` statement, with its dimensions; none for a scalar."""

    name: str
    dimensions: tuple[Expression, ...]
    at: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole text: declarations, the relations of the data block, and those of the model block."""

    declarations: tuple[Declaration, ...]
    data: tuple[Relation, ...]
    model: tuple[Relation, ...]
