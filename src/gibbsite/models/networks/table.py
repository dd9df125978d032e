"""The conditional table of a node, with the names of its parents and of all states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.html import card, grid
from gibbsite._common.wording import escaped, missing
from gibbsite.errors import GibbsiteError, ModelError
from gibbsite.models.domain import Domains, Label, make_domains

if TYPE_CHECKING:
    import pandas

    from gibbsite._common.arrays import Floats

_MOST_ROWS = 24  # shown


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalTable:
    """The probabilities of the states of a node, for every combination of states of its parents.

    Attributes
    ----------
    name : str
        The node.
    states : tuple
        Its states.
    given : tuple of str
        Its parents.
    given_states : tuple of tuples
        Their states.
    probabilities : array
        Of shape (states of each parent ..., states of the node), read-only.

    Examples
    --------
    >>> import gibbsite as gs
    >>> net = gs.BayesianNetwork()
    >>> net.add("rain", ["no", "yes"], table=[0.8, 0.2])
    >>> net.add("grass", ["dry", "wet"], given=["rain"], table={"no": [0.9, 0.1], "yes": [0.2, 0.8]})
    >>> net.table("grass")
    grass |  rain  dry  wet
             no    0.9  0.1
             yes   0.2  0.8
    >>> net.table("grass")["yes"]
    {'dry': 0.2, 'wet': 0.8}
    """

    name: str
    states: tuple[Label, ...]
    given: tuple[str, ...]
    given_states: tuple[tuple[Label, ...], ...]
    probabilities: Floats

    @property
    def _domains(self) -> Domains:
        return make_domains({**dict(zip(self.given, self.given_states, strict=True)), self.name: self.states})

    def rows(self) -> Iterator[tuple[tuple[Label, ...], Floats]]:
        """Yield the states of the parents, and the row of probabilities, for each row."""
        flat = self.probabilities.reshape(-1, len(self.states))
        yield from zip(itertools.product(*self.given_states), flat, strict=True)

    def __getitem__(self, labels: Any) -> dict[Label, float]:
        """Return the row at the states of the parents."""
        domains, key = self._domains, labels if isinstance(labels, tuple) else (labels,)
        if len(key) != len(self.given):
            raise ModelError(f"{self.name!r} has {len(self.given)} parents ({', '.join(self.given)}); got {labels!r}.")
        row = self.probabilities[tuple(domains.code(k, label) for k, label in enumerate(key))]
        return dict(zip(self.states, row.tolist(), strict=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.array(self.probabilities, dtype or np.float64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConditionalTable):
            return NotImplemented
        mine = (self.name, self.states, self.given, self.given_states)
        return mine == (other.name, other.states, other.given, other.given_states) and np.array_equal(
            self.probabilities, other.probabilities
        )

    __hash__ = None  # type: ignore[assignment]

    def to_dataframe(self, long: bool = False) -> pandas.DataFrame:
        """Return a pandas table.

        Parameters
        ----------
        long : bool
            A row for each entry, with the columns of the parents, of the node and "probability"; by default a row for
            each combination of states of the parents, which are the index, and a column for each state of the node.
            Both can be given to `BayesianNetwork.add`.

        Examples
        --------
        >>> import gibbsite as gs
        >>> net = gs.BayesianNetwork()
        >>> net.add("rain", ["no", "yes"], table=[0.8, 0.2])
        >>> net.table("rain").to_dataframe(long=True)
          rain  probability
        0   no          0.8
        1  yes          0.2
        """
        try:
            import pandas
        except ImportError:
            raise GibbsiteError(missing("Tables need", "pandas", "dataframe")) from None
        if long:
            cells = [*itertools.product(*self.given_states, self.states)]
            frame = pandas.DataFrame(cells, columns=[*self.given, self.name])
            return frame.assign(probability=self.probabilities.reshape(-1))
        rows = [row for _, row in self.rows()]
        wide = pandas.DataFrame(rows, columns=pandas.Index(self.states, name=self.name))
        if self.given:
            wide.index = pandas.MultiIndex.from_product(self.given_states, names=self.given)
        return wide

    def _cells(self) -> tuple[list[str], list[list[str]], int]:
        """Return heads, the first rows as text, and the number of other rows."""
        heads = [*self.given, *map(str, self.states)]
        first = itertools.islice(self.rows(), _MOST_ROWS)
        rows = [[*map(str, labels), *(f"{value:.6g}" for value in row)] for labels, row in first]
        return heads, rows, max(0, math.prod(map(len, self.given_states)) - _MOST_ROWS)

    def __repr__(self) -> str:
        heads, rows, left = self._cells()
        own = [f"{self.name} |" if self.given else self.name, *[""] * len(rows)]
        lines = [[first, *map(escaped, row)] for first, row in zip(own, [heads, *rows], strict=True)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        labels = 1 + len(self.given)  # columns of text
        aligned = [
            "  ".join(
                text.ljust(width) if k < labels else text.rjust(width)
                for k, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*aligned, *([f"... and {left:,} more rows"] if left else [])])

    def _repr_html_(self) -> str:
        heads, rows, left = self._cells()
        title = self.name + (f" | {', '.join(self.given)}" if self.given else "")
        return card(title, table=grid(heads, rows, left))
