"""Answers of exact methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument, site_name
from gibbsite.errors import ArgumentError
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.table import SiteTable

MOST_CONFIGURATIONS = 32_767  # the largest number of states of a site

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


class ExactResult(Answer, ABC):
    """Exact answers about a model; each is computed when it is first used.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.solve_exact(gs.ising_grid((3, 3), coupling=0.5, field=0.1))
    >>> exact.assignment["4"], round(exact.log_potential, 4)  # 12 couplings and 9 fields
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
    def assignment_codes(self) -> Ints:
        """State codes of a most probable state of the free sites."""

    @abstractmethod
    def rank(self, many: int) -> Ints:
        """Return the most probable states of the free sites in order, as codes (states, sites)."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw independent states of the free sites, as codes (size, sites)."""

    @cached_property
    def assignment(self) -> dict[str, Any]:
        """A most probable state by name and label, observed sites included."""
        codes = self.assignment_codes.tolist()
        named = {name: self.model.labels(i)[codes[i]] for i, name in enumerate(self.model.sites)}
        return {**named, **self.model.evidence}

    @cached_property
    def log_potential(self) -> float:
        """Log-potential of the most probable state."""
        return float(self.model.log_potential(self.assignment_codes))

    def joint(self, *sites: str | int, given: Mapping[Any, Any] | None = None) -> Floats:
        """Return the exact joint probabilities of a set of sites, one axis per site as asked for.

        Parameters
        ----------
        *sites : str or int
            Sites by name or position, whether or not they share a factor; observed ones are allowed.
        given : mapping, optional
            Further evidence, as :meth:`gibbsite.FactorGraph.observe` takes it: probabilities are conditional on it.

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
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(f"{argument('given')} must be a mapping of sites to states, got {describe(given)}.")
        if given:
            return self._solve(self.model.observe(given)).joint(*(self._names(sites)))
        evidence, labels = self.model.evidence, self.model.evidence_labels
        free = find_free(sites, self.model.domains, evidence, MOST_CONFIGURATIONS)
        table = self._joint(free) if free else np.ones(())
        return add_observed(table, sites, evidence, labels)

    def _names(self, sites: tuple[str | int, ...]) -> list[str]:
        """Return sites by name, because evidence changes positions."""
        domains = self.model.domains
        names = map(site_name, sites)
        return [name if isinstance(name, str) else domains.names[domains.position(cast(int, name))] for name in names]

    @abstractmethod
    def _joint(self, free: list[int]) -> Floats:
        """Return the joint probabilities of sites given by position."""

    @abstractmethod
    def _solve(self, model: FactorGraph) -> ExactResult:
        """Solve another model in the same way."""

    @property
    def mcse(self) -> SiteTable:
        """Standard errors: zero."""
        return self._site_table(np.zeros_like(self.marginals.cells), self.marginals.binary, 0.0)

    @property
    def log_z_error(self) -> float:
        """Standard error of log Z: zero."""
        return 0.0

    @property
    def log_z_bounds(self) -> tuple[float, float]:
        """Bounds of log Z: both are log Z itself."""
        return self.log_z, self.log_z

    @property
    def diagnostics(self) -> Diagnostics:
        """The verdict: the answer is exact."""
        return Diagnostics("exact", True, figures={"rhat_max": 1.0, "ess_min": None})

    @property
    def plan(self) -> dict[str, Any]:
        """Everything that determined the numbers, as plain data."""
        return {"exact": True}

    def line(self) -> str:
        """Return log Z in one line."""
        return f"exact: log Z = {self.log_z:.10g}"

    def _lines(self, most: int) -> Iterator[str]:
        yield from self._site_lines(self.marginals, most)

    def __repr__(self) -> str:
        return f"ExactResult({self.model.n_sites} sites, log_z={self.log_z:.6g})"
