"""What weighted draws answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ArgumentError
from gibbsite.inference.importance.estimate import WeightedEstimate
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.table import SiteTable
from gibbsite.results.wording import in_words

if TYPE_CHECKING:
    from gibbsite.models.domain import Domains


@dataclass(frozen=True, eq=False, repr=False)
class WeightedResult(Answer):
    """Marginals and the log-partition function from weighted draws, with errors and a verdict.

    Attributes
    ----------
    domains : Domains
        The sites and their states.
    evidence, evidence_labels : dict
        What was observed, and the states that observed sites have.
    estimate : WeightedEstimate
        Probabilities, log Z and their errors as arrays, those of all proposals combined.
    diagnostics : Diagnostics
        Effective size, tail of the weights, what may have been missed, and the verdict.
    sources : tuple of dict
        The proposals drawn from, with draws, effective size, log Z and its bound.
    plan : dict
        Everything that decided the numbers, as plain data.
    remarks : tuple of str
        What the proposal says about its draws.
    interrupted : bool
        Ended early by Ctrl-C.
    seconds : float
        Time taken, without compilation.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.sample_weighted(gs.example("asia"), draws=40_000, rng=1, progress=False)
    >>> abs(found.marginals["bronc"]["yes"] - 0.45) < 0.02, found.diagnostics.draws
    (True, 40192)
    """

    domains: Domains
    evidence: Mapping[str, Any]
    evidence_labels: Mapping[str, Any]
    estimate: WeightedEstimate
    diagnostics: Diagnostics = field()
    sources: tuple[dict[str, Any], ...] = ()
    plan: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    interrupted: bool = False
    seconds: float = float("nan")

    @cached_property
    def marginals(self) -> SiteTable:
        """Probabilities of the states of all sites, observed ones included; NaN for sites not asked for."""
        return self._site_table(self.estimate.cells, False, 1.0)

    @cached_property
    def mcse(self) -> SiteTable:
        """Standard errors of the marginals."""
        return self._site_table(self.estimate.errors, False, 0.0)

    @property
    def log_z(self) -> float:
        """WeightedEstimate of the natural logarithm of the partition function, evidence included."""
        return self.estimate.log_z

    @property
    def log_z_error(self) -> float:
        """Standard error of :attr:`log_z`."""
        return self.estimate.log_z_error

    @property
    def draws(self) -> int:
        """Draws made."""
        return self.estimate.draws

    def joint(self, *sites: str | int) -> Floats:
        """Return the joint probabilities of a site and any observed ones; others were not recorded."""
        free = find_free(sites, self.domains, self.evidence)
        if len(free) > 1:
            raise ArgumentError(
                "weighted draws record the marginals of single sites, not joint probabilities; use "
                "gs.sample with record=gs.recorders.Joint(...)."
            )
        table = np.array(list(self.marginals[free[0]].values())) if free else np.ones(())
        return add_observed(table, sites, self.evidence, self.evidence_labels)

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from gibbsite.inference.importance.save import pack_weighted

        return pack_weighted(self)

    def _lines(self, most: int) -> Iterator[str]:
        """Yield log Z and the proposals drawn from."""
        yield f"log Z {in_words(self.log_z, '.4f')} ±{in_words(self.log_z_error, '.4f')}"
        for one in self.sources:
            yield (
                f"{one['name']}: {one['draws']:,} draws, effective size {one['effective']:,.0f}, log Z "
                f"{in_words(one['log_z'], '.4f')}, log-weights at most {in_words(one['log_bound'], '.4f')}"
            )

    def __repr__(self) -> str:
        return f"WeightedResult({self.domains.n_sites:,} sites; {self.line()})"
