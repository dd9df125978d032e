"""What exact methods answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_count
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import escaped
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.rows import site_lines
from gibbsite.results.table import SiteTable, observed_cells

MOST_CONFIGURATIONS = 32_767  # as many as a site may have states

if TYPE_CHECKING:
    import pandas

    from gibbsite.models import FactorGraph


class ExactResult(ABC):
    """Exact answers about a model; what was not asked for is computed when first used.

    Attributes
    ----------
    model : FactorGraph
        The model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.solve_exact(gs.ising_grid((3, 3), coupling=0.5, field=0.1))
    >>> exact.best_state["4"], round(exact.log_potential, 4)  # 12 couplings and 9 fields
    (1, 6.9)
    """

    model: FactorGraph

    @property
    @abstractmethod
    def marginals(self) -> SiteTable:
        """Exact probabilities of the states of all sites, observed ones included."""

    @property
    @abstractmethod
    def log_z(self) -> float:
        """Natural logarithm of the partition function, evidence included."""

    @property
    @abstractmethod
    def best_codes(self) -> Ints:
        """State codes of a most probable state of the free sites."""

    @abstractmethod
    def rank(self, many: int) -> Ints:
        """Return the most probable states of the free sites in order, as codes (states, sites)."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw independent states of the free sites, as codes (size, sites)."""

    @cached_property
    def best_state(self) -> dict[str, Any]:
        """A most probable state by name and label, observed sites included."""
        codes = self.best_codes.tolist()
        named = {name: self.model.labels(i)[codes[i]] for i, name in enumerate(self.model.sites)}
        return {**named, **self.model.evidence}

    @cached_property
    def log_potential(self) -> float:
        """Log-potential of the most probable state."""
        return float(self.model.log_potential(self.best_codes))

    def joint(self, *sites: str | int, given: Mapping[Any, Any] | None = None) -> Floats:
        """Return the exact joint probabilities of a set of sites, one axis per site as asked for.

        Parameters
        ----------
        *sites : str or int
            Sites by name or position, whether or not they share a factor; observed ones are allowed.
        given : mapping, optional
            Further evidence, as :meth:`gibbsite.FactorGraph.observe` takes it: probabilities are
            conditional on it.

        Returns
        -------
        float array (K1, ..., Kr)
            States in the order of ``model.labels(site)``.

        Raises
        ------
        ModelError
            If a site is unknown, or the sites have more than 32,767 configurations.
        TooLargeError
            If an exact answer does not fit into the limits of this solution.

        Examples
        --------
        >>> import gibbsite as gs
        >>> chain = gs.FactorGraph(
        ...     {"a": 2, "b": 2, "c": 2}, [(("a", "b"), [[3, 1], [1, 1]]), (("b", "c"), [[2, 1], [1, 1]])]
        ... )
        >>> (16 * gs.solve_exact(chain).joint("a", "c")).round(6).tolist()
        [[7.0, 4.0], [3.0, 2.0]]
        >>> gs.solve_exact(chain).joint("c", given={"b": 1}).tolist()
        [0.5, 0.5]
        """
        if given:
            return self._solve(self.model.observe(given)).joint(*(self._names(sites)))
        evidence, labels = self.model.evidence, self.model.evidence_labels
        free = find_free(sites, self.model.domains, evidence, MOST_CONFIGURATIONS)
        table = self._joint(free) if free else np.ones(())
        return add_observed(table, sites, evidence, labels)

    def _names(self, sites: tuple[str | int, ...]) -> list[str]:
        """Return sites by name, because evidence moves positions."""
        domains = self.model.domains
        return [site if isinstance(site, str) else domains.names[domains.position(site)] for site in sites]

    @abstractmethod
    def _joint(self, free: list[int]) -> Floats:
        """Return the joint probabilities of sites given by position."""

    @abstractmethod
    def _solve(self, model: FactorGraph) -> ExactResult:
        """Solve another model in the same way."""

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a pandas table with one row for each state of each site.

        Columns are ``site``, ``state``, ``probability``, ``mcse`` (zero) and ``observed``.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.solve_exact(gs.FactorGraph({"a": 2}, [("a", [1, 3])])).to_dataframe().values.tolist()
        [['a', 0, 0.25, 0.0, False], ['a', 1, 0.75, 0.0, False]]
        """
        from gibbsite.results.dataframe import make_dataframe

        return make_dataframe(self.marginals, {"mcse": self.mcse})

    @property
    def mcse(self) -> SiteTable:
        """Standard errors: zero."""
        return SiteTable(
            self.marginals.domains,
            np.zeros_like(self.marginals.cells),
            self.marginals.binary,
            False,
            observed_cells(self.model.evidence, self.model.evidence_labels, 0.0),
        )

    def summary(self, most: int = 20) -> str:
        """Return log Z and the marginals as a readable table.

        Parameters
        ----------
        most : int
            Number of sites to show.

        Examples
        --------
        >>> import gibbsite as gs
        >>> print(gs.solve_exact(gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])])))
        exact: log Z = 1.386294361
        a  no 0.2500  yes 0.7500
        """
        check_count("most", most)
        names = list(islice(self.marginals, most))
        rows = ((name, self.marginals[name], None) for name in names)
        width = max((len(escaped(name)) for name in names), default=0)
        lines = [f"exact: log Z = {self.log_z:.10g}"]
        lines += site_lines(rows, observed=self.model.evidence, width=width)
        if len(self.marginals) > len(names):
            lines.append(f"... and {len(self.marginals) - len(names):,} more sites")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from gibbsite.results.html import answer_div, marginals_table

        table = marginals_table(self.marginals, None, self.model.evidence)
        return answer_div("exact", True, [repr(self)], (), table)

    def __repr__(self) -> str:
        return f"ExactResult({self.model.n_sites} sites, log_z={self.log_z:.6g})"
