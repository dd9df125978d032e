"""The answer of belief propagation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import Text, argument
from gibbsite.errors import ArgumentError
from gibbsite.inference.mean_field.fixed_point import Approximation
from gibbsite.results.answer import Diagnostics
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.wording import in_words

if TYPE_CHECKING:
    from gibbsite.inference.belief.readout import JointBeliefs
    from gibbsite.models import FactorGraph
    from gibbsite.results.table import SiteTable


@dataclass(frozen=True, eq=False, repr=False)
class BeliefResult(Approximation):
    """Beliefs: approximate marginals and log-partition function, or a state that is probable.

    Exact if the factors form a tree. Otherwise the error is not known, except for the upper bound of kind
    "tree-reweighted". There are no standard errors, because nothing was drawn.

    Attributes
    ----------
    kind, schedule : str
        As asked for.
    log_z : float
        Approximate natural logarithm of the partition function, evidence included; an upper bound for
        "tree-reweighted", NaN for "max".
    messages, edges : int
        Number of updates of messages, and of messages: one from each factor to each of its sites.
    residual : float
        Largest change of a message in the last pass over all of them; messages have a maximum of one.
    tolerance : float
        Changes up to this size count as converged.
    exact : bool
        True if there is no cycle and messages have converged, so that all answers are exact up to rounding.
    codes : int array, optional
        The state decoded from the maxima (kind "max").

    Examples
    --------
    >>> import gibbsite as gs
    >>> gs.belief_propagation(gs.ising_grid((5,), coupling=0.1, field=0.2))
    BeliefResult(5 sites; exact marginals, log_z = 3.60172, settled after 8 messages)
    """

    model: FactorGraph
    cells: Floats
    binary: bool
    kind: str
    schedule: str
    log_z: float = field()
    messages: int
    edges: int
    residual: float
    tolerance: float
    exact: bool
    codes: Ints | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = float("nan")
    beliefs: JointBeliefs | None = None
    task: str = "MAR"

    @cached_property
    def marginals(self) -> SiteTable | None:
        """Approximate probabilities of the states of all sites, observed ones included; None for kind "max"."""
        return None if self.kind == "max" else self._site_table(self.cells, self.binary, 1.0)

    def joint(self, *sites: str | int) -> Floats:
        """Return the approximate joint probabilities of sites that share a factor, one axis per site.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 1], [1, 3]])])
        >>> gs.belief_propagation(model).joint("a", "b").tolist()
        [[0.375, 0.125], [0.125, 0.375]]
        """
        if self.kind == "max":
            raise ArgumentError(
                f"Messages of maxima give a state and no joint probabilities; use {argument('kind', 'sum')} for them."
            )
        free = find_free(sites, self.model.domains, self.model.evidence)
        table: Floats | None = np.ones(())
        if len(free) == 1:
            table = np.array(list(self._site_table(self.cells, self.binary, 1.0)[free[0]].values()))
        elif free:
            table = self.beliefs.joint(list(free)) if self.beliefs is not None else None
        if table is None:
            names = " and ".join(repr(self.model.sites[i]) for i in free)
            raise ArgumentError(
                f"No factor contains the sites {names}, and joint beliefs are those of a factor; ask for "
                "fewer sites, or sample the model."
            )
        return add_observed(table, sites, self.model.evidence, self.model.evidence_labels)

    @property
    def assignment_codes(self) -> Ints | None:
        """The state decoded from the maxima, as codes (kind "max")."""
        return self.codes

    @property
    def assignment(self) -> dict[str, Any] | None:
        """The state decoded from the maxima, by name and label, observed sites included (kind "max")."""
        if self.codes is None:
            return None
        named = {name: self.model.labels(i)[int(self.codes[i])] for i, name in enumerate(self.model.sites)}
        return {**named, **self.model.evidence}

    @property
    def log_potential(self) -> float | None:
        """Log-potential of that state; minus infinity if it is impossible (kind "max")."""
        return None if self.codes is None else float(self.model.log_potential(self.codes))

    @property
    def log_z_bounds(self) -> tuple[float, float]:
        """Guaranteed lower and upper bound of the log-partition function, infinite where there is none."""
        if self.exact and self.kind != "max":
            return self.log_z, self.log_z
        return -math.inf, self.log_z if self.kind == "tree-reweighted" else math.inf

    @property
    def settled(self) -> bool:
        """Whether the messages have converged."""
        return self.residual <= self.tolerance

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """How far to trust the beliefs."""
        reasons = []
        if not self.settled:
            reasons.append(
                f"messages still change by up to {self.residual:.2g} after {self.messages:,} of them, more "
                f"than {self.tolerance:g}; allow more iterations, or use a {argument('damping')} below 1."
            )
        if self.kind == "max" and self.log_potential == -np.inf:
            reasons.append(
                f"the decoded state is impossible; search for a possible one with {argument('method', 'annealed')}."
            )
        bound = "upper bound" if self.kind == "tree-reweighted" else "approximation"
        kind = "best found" if self.kind == "max" else bound if self.task == "PR" else "approximation"
        names = ("residual", "messages", "edges", "tolerance")
        figures = {**{name: getattr(self, name) for name in names}, "tree": self.exact}
        if self.exact:
            good = "the factors form a tree, so that it is exact"
        elif self.kind == "max":
            good = "nothing is proved about the state"
        else:
            good = "marginals are approximate, their error is not known"
        text = (
            f"largest change {in_words(self.residual, '.2g')} after {self.messages:,} messages; {good}; "
            f"{self._value('log Z')}"
        )
        return self._diagnose(kind, list(map(Text, reasons)), figures, text)

    def _value(self, name: str) -> str:
        if self.kind == "max":
            return f"log-potential {self.log_potential:.6g}"
        sign = "=" if self.exact else "<=" if self.kind == "tree-reweighted" else "~"
        return f"{name} {sign} {self.log_z:.6g}"

    def __repr__(self) -> str:
        word = "settled" if self.settled else "NOT settled"
        how = "exact" if self.exact else "approximate"
        what = "a state" if self.kind == "max" else f"{how} marginals"
        return (
            f"BeliefResult({self.model.n_sites:,} sites; {what}, {self._value('log_z')}, {word} after "
            f"{self.messages:,} messages)"
        )
