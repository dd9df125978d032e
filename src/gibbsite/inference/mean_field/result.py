"""What mean field answers, and what all approximations have in common: marginals of unknown error."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.table import SiteTable
from gibbsite.results.wording import in_words, verdict_word

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


class Approximation(Answer):
    """Marginals that were computed, not drawn: their tables, and the verdict on them.

    Attributes
    ----------
    model : FactorGraph
        The model.
    cells : float array
        One probability per state of each site, for ``binary`` one per site, that of state 1.
    exact : bool
        All answers are exact up to rounding.
    """

    model: FactorGraph
    cells: Floats
    binary: bool
    exact: bool

    @cached_property
    def mcse(self) -> SiteTable | None:
        """Standard errors: NaN, because nothing was drawn."""
        nothing = np.full(self.cells.shape, np.nan)
        return None if self.marginals is None else self._site_table(nothing, self.binary, 0.0)

    def _diagnose(self, kind: str, reasons: list[str], figures: dict[str, Any], text: str) -> Diagnostics:
        """Return the verdict: settled, with an error that is not known, unless the answer is exact."""
        converged = False if reasons else True if self.exact else None
        return Diagnostics(kind, converged, tuple(reasons), figures, f"{verdict_word(converged)}: {text}")


@dataclass(frozen=True, eq=False, repr=False)
class MeanFieldResult(Approximation):
    """A product law close to a model: approximate marginals, and a lower bound of the log-partition function.

    How far the marginals are from those of the model is not known. There are no standard errors: nothing was drawn.

    Attributes
    ----------
    model : FactorGraph
        The model.
    cells : float array
        The law: one probability per state of each site, for ``binary`` one per site, that of state 1.
    bounds : float array (sweeps,)
        Lower bound of the log-partition function after each sweep.
    changes : float array (sweeps,)
        Largest difference, in each sweep, between a probability and the one its site should have.
    tolerance : float
        Changes up to this count as none.
    plan : dict
        Everything that decided the numbers, as plain data.
    interrupted : bool
        Ended early by Ctrl-C.
    seconds : float
        Time taken.

    Examples
    --------
    >>> import gibbsite as gs
    >>> gs.mean_field(gs.ising_grid((3, 3), coupling=0.1, field=0.2))
    MeanFieldResult(9 sites; approximate marginals, log_z >= 6.48108, settled in sweep 7)
    """

    model: FactorGraph
    cells: Floats
    binary: bool
    bounds: Floats
    changes: Floats
    tolerance: float
    plan: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = float("nan")
    task: str = "MAR"

    exact = False

    @cached_property
    def marginals(self) -> SiteTable:
        """Approximate probabilities of the states of all sites, observed ones included."""
        return self._site_table(self.cells, self.binary, 1.0)

    def joint(self, *sites: str | int) -> Floats:
        """Return the joint probabilities of a set of sites under the law: products of marginals.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.mean_field(gs.FactorGraph({"a": 2, "b": 2}, [("a", [1, 3])])).joint("a", "b").tolist()
        [[0.125, 0.125], [0.375, 0.375]]
        """
        table = np.ones(())
        for site in find_free(sites, self.model.domains, self.model.evidence):
            table = np.multiply.outer(table, np.array(list(self.marginals[site].values())))
        return add_observed(table, sites, self.model.evidence, self.model.evidence_labels)

    @property
    def log_z(self) -> float:
        """Lower bound of the natural logarithm of the partition function, evidence included.

        Minus infinity if the law gives a positive probability to something impossible.
        """
        return float(self.bounds[-1])

    @property
    def sweeps(self) -> int:
        """Sweeps made."""
        return int(self.bounds.size)

    @property
    def change(self) -> float:
        """Largest change of the last sweep, before damping."""
        return float(self.changes[-1])

    @property
    def settled(self) -> bool:
        """Whether the iteration has come to rest."""
        return self.change <= self.tolerance

    @property
    def log_z_bounds(self) -> tuple[float, float]:
        """The lower bound, and no upper one."""
        return self.log_z, float("inf")

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """How far to trust the approximation."""
        reasons = []
        if not self.settled:
            reasons.append(
                f"probabilities still change by up to {self.change:.2g} in sweep {self.sweeps:,}, more than "
                f"{self.tolerance:g}; allow more iterations, use damping, or update in place."
            )
        if self.log_z == -np.inf:
            reasons.append(
                "the approximation gives a positive probability to something impossible, so it bounds nothing; use "
                "start='support'."
            )
        figures = {"change": self.change, "sweeps": self.sweeps, "tolerance": self.tolerance}
        text = (
            f"largest change {in_words(self.change, '.2g')} in sweep {self.sweeps:,}; marginals are approximate, "
            f"their error is not known; {self._bound('log Z')}"
        )
        return self._diagnose("lower bound" if self.task == "PR" else "approximation", reasons, figures, text)

    def _bound(self, name: str) -> str:
        return f"{name} >= {self.log_z:.6g}" if np.isfinite(self.log_z) else f"no bound of {name}"

    def __repr__(self) -> str:
        return (
            f"MeanFieldResult({self.model.n_sites:,} sites; approximate marginals, {self._bound('log_z')}, "
            f"{self.diagnostics.word} in sweep {self.sweeps:,})"
        )
