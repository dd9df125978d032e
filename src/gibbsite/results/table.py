"""Numbers by site and state label: the form in which every method answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gibbsite._common.arguments import check_integer, checked, describe
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, site_name
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Interval
from gibbsite.results.wording import number_text, probability_text, with_sign

if TYPE_CHECKING:
    from gibbsite.models.domain import Domains

_PIECE = 1 << 20  # sites looked at at a time

__all__ = ["SiteTable", "observed_cells", "with_sign"]


@checked
@dataclass(frozen=True, eq=False, repr=False)
class SiteTable(Mapping[str, dict[Any, float]]):
    """A number for every state of every site, as ``table["A"]["yes"]``.

    Behaves as a read-only mapping from site names to dictionaries; observed sites are included. The nodes of a
    graph from which a model was made may be used as well: ``table[(0, 1)]``. Large models should use :meth:`to_array`.

    Parameters
    ----------
    domains : Domains
        Names and labels of the free sites.
    cells : float array
        One number per state, site by site; for ``binary`` one number per site, that of state 1.
    binary : bool
        Layout of the cells.
    complement : bool
        For binary layouts: whether the number of state 0 is one minus that of state 1 (probabilities) or
        the same (standard errors).
    observed : mapping, optional
        Site name to its dictionary, for observed sites.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])])
    >>> gs.solve_exact(model).marginals["a"]
    {'no': 0.25, 'yes': 0.75}
    """

    domains: Domains
    cells: Floats
    binary: bool = False
    complement: bool = True
    observed: Mapping[str, dict[Any, float]] = field(default_factory=dict)

    def _offsets(self) -> Ints:
        cached = self.__dict__.get("_offset")
        if cached is None:
            cached = self.domains.offset
            object.__setattr__(self, "_offset", cached)
        found: Ints = cached
        return found

    def __getitem__(self, site: str | int) -> dict[Any, float]:
        site = cast("str | int", site_name(site))
        if isinstance(site, str) and site in self.observed:
            return dict(self.observed[site])
        try:
            position = self.domains.position(site)
        except ValueError as reason:
            raise KeyError(str(reason)) from None
        if self.binary:
            one = float(self.cells[position])
            numbers = [1.0 - one if self.complement else one, one]
        else:
            first, last = self._offsets()[position : position + 2]
            numbers = self.cells[first:last].tolist()
        return dict(zip(self.domains.labels(position), numbers, strict=True))

    def __contains__(self, site: object) -> bool:
        try:
            self[site]  # type: ignore[index]
        except (KeyError, TypeError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        yield from self.domains.names
        yield from self.observed

    def __len__(self) -> int:
        return self.domains.n_sites + len(self.observed)

    def __repr__(self) -> str:
        shown = [f"{name!r}: {self[name]}" for name, _ in zip(self, range(3), strict=False)]
        more = ", ..." if len(self) > 3 else ""
        return f"SiteTable({{{', '.join(shown)}{more}}}, {len(self)} sites)"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card
        from gibbsite.results.html import marginals_table

        counted = f"{len(self):,} site{'s' * (len(self) != 1)}"
        return card("SiteTable", [counted], table=marginals_table(self, None, self.observed, self.complement))

    def is_number(self, site: str | int) -> bool:
        """Whether a site is a number, which has a mean and a standard deviation, and not one with states."""
        if (name := site_name(site)) in self.observed and isinstance(name, str):
            return False
        return isinstance(self.domains.kind(self.domains.position(site)), Interval)

    def texts(self, site: str | int, errors: SiteTable | None) -> dict[Any, str]:
        """Return what is known of a site as people read it, with standard errors where they are known.

        Examples
        --------
        >>> import gibbsite as gs
        >>> exact = gs.solve_exact(gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])]))
        >>> exact.marginals.texts("a", None)
        {'no': '0.2500', 'yes': '0.7500'}
        """
        write = number_text if self.is_number(site) else probability_text
        known = {} if errors is None else errors[site]
        return {state: write(value, known.get(state, np.nan)) for state, value in self[site].items()}

    def to_array(self) -> Floats:
        """Return the numbers of the free sites as an array (sites, states).

        Sites with fewer states than the largest are padded with zeros.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.solve_exact(gs.ising_grid((1, 2), coupling=0.5)).marginals.to_array().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        if self.binary:
            zero = 1.0 - self.cells if self.complement else self.cells
            return np.stack([zero, self.cells], axis=1)
        cards = self.domains.cards
        widest = int(cards.max(initial=1))
        out = np.zeros((cards.size, widest))
        out[np.arange(widest) < np.asarray(cards)[:, None]] = self.cells
        return out

    def histogram(
        self, bins: int = 20, state: Any = None, within: tuple[float, float] = (0.0, 1.0)
    ) -> tuple[Ints, Floats]:
        """Count sites by the number of one of their states: how many lie in each of some bins of equal width.

        Numbers are read piece by piece, so that those in files need not fit into memory. Estimates are
        counted as they are: after R independent draws a probability p has the standard deviation
        sqrt(p (1 - p) / R), and bins narrower than that show the noise.

        Parameters
        ----------
        bins : int
            Number of bins.
        state : label, optional
            Which state; the last one of each site by default. Sites without that state are left out.
        within : pair of floats
            Ends of the first and the last bin; a number at the upper end is in the last bin.

        Returns
        -------
        counts : int array (bins,)
        edges : float array (bins + 1,)

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 2}, [("a", [1, 3]), ("b", [4, 1])])
        >>> counts, edges = gs.solve_exact(model).marginals.histogram(bins=4)
        >>> counts.tolist(), edges.tolist()
        ([1, 0, 0, 1], [0.0, 0.25, 0.5, 0.75, 1.0])
        """
        bins, ends = check_integer("bins", bins, 1), read_reals(within, "within")
        if ends.shape != (2,) or not -np.inf < ends[0] < ends[1] < np.inf:
            raise ArgumentError(f"{argument('within')} must be two numbers in order, got {describe(within)}.")
        low, high = float(ends[0]), float(ends[1])
        if not isinstance(state, Hashable):
            raise ArgumentError(f"{argument('state')} must be the label of a state, got {describe(state)}.")
        kinds = self.domains.kinds
        labels = [kind.moments if isinstance(kind, Interval) else kind for kind in kinds]
        codes = np.array(
            [len(own) - 1 if state is None else own.index(state) if state in own else -1 for own in labels]
        )
        if (codes < 0).all():
            raise ArgumentError(f"No site has the state {state!r}; name one of the labels of the sites.")
        counts, edges = np.zeros(bins, np.int64), np.linspace(low, high, bins + 1)
        first = 0 if self.binary else self._offsets()
        for begin in range(0, self.domains.n_sites, _PIECE):
            part = slice(begin, min(begin + _PIECE, self.domains.n_sites))
            code = codes[self.domains.kind_of[part]]
            has = code >= 0
            if self.binary:
                found = self.cells[part][has]
                found = np.where(code[has] == 0, 1.0 - found, found) if self.complement else found
            else:
                found = self.cells[(first[:-1][part] + code)[has]]  # type: ignore[index]
            counts += np.histogram(found, bins, (low, high))[0]
        return counts, edges


def observed_cells(
    evidence: Mapping[str, Any], labels: Mapping[str, tuple[Any, ...]], certain: float, other: float = 0.0
) -> dict[str, dict[Any, float]]:
    """Return the dictionaries of observed sites: ``certain`` at the observed state, ``other`` elsewhere.

    Of an observed number the estimates (where the two differ) are the number itself, without any spread.

    Examples
    --------
    >>> observed_cells({"a": "yes", "b": 1.5}, {"a": ("no", "yes"), "b": ("mean", "sd")}, 1.0)
    {'a': {'no': 0.0, 'yes': 1.0}, 'b': {'mean': 1.5, 'sd': 0.0}}
    """
    found = {}
    for site, state in evidence.items():
        if state in labels[site] or certain == other:
            found[site] = {label: certain if label == state else other for label in labels[site]}
        else:
            alone = {"mean": float(state), "sd": 0.0, "resultant": 1.0}
            found[site] = {label: alone[label] for label in labels[site]}
    return found
