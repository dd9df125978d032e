"""What exact methods answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.result.table import SiteTable, observed_cells

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph


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
    def best_codes(self) -> NDArray[np.int64]:
        """State codes of a most probable state of the free sites."""

    @abstractmethod
    def rank(self, many: int) -> NDArray[np.int64]:
        """Return the most probable states of the free sites in order, as codes (states, sites)."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
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

    def __repr__(self) -> str:
        return f"ExactResult({self.model.n_sites} sites, log_z={self.log_z:.6g})"
