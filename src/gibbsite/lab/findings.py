"""The findings of an experiment: tables, curves and notes, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gibbsite._common.arrays import Array
from gibbsite.formats.parsing.plain_json import as_plain, write_json

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """A small table with a title.

    Examples
    --------
    >>> print(Table("Errors", ("method", "paper", "ours"), [("Gibbs", 21.6, 27.2)]).text())
    Errors
      method  paper  ours
      Gibbs    21.6  27.2
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def text(self) -> str:
        """Return the table as text."""
        lines = [list(self.columns), *self.shown()]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]
        words = [all(isinstance(row[k], str | None) for row in self.rows) for k in range(len(widths))]
        aligned = [
            "  ".join(
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(line, widths, words, strict=True)
            )
            for line in lines
        ]
        return "\n".join([self.title, *("  " + line.rstrip() for line in aligned)])

    def shown(self) -> list[list[str]]:
        """Return the cells as text.

        Examples
        --------
        >>> Table("Errors", ("method", "ours"), [("Gibbs", 0.12345), ("exact", None)]).shown()
        [['Gibbs', '0.123'], ['exact', '-']]
        """
        return [[_show(cell) for cell in row] for row in self.rows]

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        return card(self.title, table=grid(self.columns, self.shown()))

    def column(self, name: str) -> list[Cell]:
        """Return the cells of a column."""
        k = list(self.columns).index(name)
        return [row[k] for row in self.rows]


class Rows(list[tuple[Any, ...]]):
    """Rows of a table that is filled step by step."""

    def add(self, *cells: Any) -> None:
        """Append a row."""
        self.append(cells)


HOLDS, FAILS, NOT_TESTED = "holds", "does not hold", "not tested at this size"


class Claim(NamedTuple):
    """A claim of a paper, and the finding here.

    ``holds`` is None where the run is too small or its data are made up, so that nothing is decided, and where the
    uncertainty of the finding includes both answers.
    """

    paper: str
    ours: str
    holds: Any  # True, False, or None if it is not tested at this size


def all_hold(facts: Iterable[bool | None]) -> bool | None:
    """Return False if a fact does not hold, otherwise None if one is not tested, otherwise True.

    Examples
    --------
    >>> all_hold([True, None]), all_hold([None, False]), all_hold([True])
    (None, False, True)
    """
    known = [None if fact is None else bool(fact) for fact in facts]
    return False if False in known else None if None in known else True


def compare_claims(*claims: Claim, subject: str = "") -> Table:
    """Return the table of claims of a paper, with the findings here and a verdict for each claim.

    Examples
    --------
    >>> print(compare_claims(Claim("errors fall like 1 / T", "slope -1.02", True)).text())
    Paper against ours
      the paper says          found here   verdict
      errors fall like 1 / T  slope -1.02  holds
    """
    answers = [NOT_TESTED if claim.holds is None else HOLDS if claim.holds else FAILS for claim in claims]
    title = "Paper against ours" + (f": {subject}" if subject else "")
    rows = [(claim.paper, claim.ours, answer) for claim, answer in zip(claims, answers, strict=True)]
    return Table(title, ("the paper says", "found here", "verdict"), rows)


@dataclass(frozen=True)
class Findings:
    """The findings of an experiment.

    Attributes
    ----------
    tables : sequence of Table
        The claims of the paper beside the findings here, and further numbers.
    arrays : mapping
        The numbers of the figure.
    notes : sequence of str
        Caveats.
    settings : mapping
        Parameters of the run.
    pictures : mapping
        Images of the figure, which are not saved in the JSON file because of their size.
    data : str
        Which data were used, in a sentence.
    name, quick, long, rng, seconds
        Filled in by :func:`gibbsite.lab.run`.
    """

    tables: Sequence[Table]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    pictures: Mapping[str, Array] = field(default_factory=dict)
    data: str = ""
    name: str = ""
    quick: bool = False
    long: bool = False
    rng: int = 0
    seconds: float = 0.0

    def table(self, title: str) -> Table:
        """Return the table whose title begins with a text."""
        return next(table for table in self.tables if table.title.startswith(title))

    def text(self) -> str:
        """Return the data that were used, tables and notes as text."""
        return "\n\n".join(
            [
                *([self.data] if self.data else []),
                *(table.text() for table in self.tables),
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card

        return "\n".join([*(table._repr_html_() for table in self.tables), card("Notes", notes=self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the pictures as plain data.

        Examples
        --------
        >>> import numpy as np
        >>> Findings([], {"errors": np.array([0.5, np.nan])}).to_dict()["arrays"]
        {'errors': [0.5, None]}
        """
        return {
            "experiment": self.name,
            "data": self.data,
            "quick": self.quick,
            "long": self.long,
            "rng": self.rng,
            "seconds": round(self.seconds, 3),
            "settings": as_plain(dict(self.settings)),
            "tables": [
                {"title": t.title, "columns": list(t.columns), "rows": as_plain([list(row) for row in t.rows])}
                for t in self.tables
            ],
            "arrays": {name: as_plain(array) for name, array in self.arrays.items()},
            "notes": list(self.notes),
        }

    def json(self) -> str:
        """Return :meth:`to_dict` as text."""
        return write_json(self.to_dict(), indent=None) + "\n"


def _show(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.3g}" if math.isfinite(cell) else "-"
    return str(cell)
