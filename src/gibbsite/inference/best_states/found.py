"""The answer of a search for the best state: the states, and the number of chains that found each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gibbsite._common.arrays import Array, Floats
from gibbsite._common.wording import site_name
from gibbsite.models.domain import Domains, Label
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.wording import verdict_word

if TYPE_CHECKING:
    from gibbsite.inference.best_states.proved import Proof
    from gibbsite.models import FactorGraph


@dataclass(frozen=True)
class Assignment(Mapping[str, Label]):
    """A state by name and label, whose labels are looked up on demand instead of stored in a dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> import gibbsite as gs
    >>> state = Assignment(gs.ising_grid((2, 2)).domains, np.array([0, 1, 1, 0]))
    >>> state["1"], dict(state)
    (1, {'0': -1, '1': 1, '2': 1, '3': -1})
    """

    domains: Domains
    codes: Array

    def __getitem__(self, site: str) -> Label:
        name = site_name(site)
        position = self.domains.names.find(name) if isinstance(name, str) else None
        if position is None:
            raise KeyError(site)
        return self.domains.labels(position)[int(self.codes[position])]

    def __iter__(self) -> Iterator[str]:
        return iter(self.domains.names)

    def __len__(self) -> int:
        return self.domains.n_sites


@dataclass(frozen=True)
class RankedState:
    """One of the best states.

    Attributes
    ----------
    assignment : mapping
        The state by name and label, observed sites included.
    log_potential : float
        Its log-potential.
    found : int or None
        How many chains have seen it, or another state of the same log-potential; None if it comes from an exact
        solution.
    """

    assignment: Mapping[str, Any]
    log_potential: float
    found: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult(Answer):
    """The best states that a search has found.

    Attributes
    ----------
    codes : int array (states, sites)
        The best states as codes, the best one first; all are local maxima.
    ranked : tuple of RankedState
        The best states by name and label.
    bests : float array (chains,)
        Largest log-potential each chain has reached.
    found : int
        How many chains have reached the largest log-potential; 0 if the state was combined from those of several.
    restarts, hits : int
        Restarts of all chains, and how many of them ended at the largest log-potential without recombination.
    sweeps : int
        Largest number of sweeps of a chain: single-site sweeps, and passes over the blocks of a cover or the sites of
        a cutset.
    ties : int
        How many distinct states of the largest log-potential were seen, a lower bound of their number.
    ties_complete : bool
        Whether all of these were kept.
    proof : Proof or str or None
        What toulbar2 has proved about the best state, or why there is no proof; None if none was asked for.
    """

    model: FactorGraph
    codes: Array
    ranked: tuple[RankedState, ...]
    bests: Floats
    found: int
    restarts: int
    hits: int
    sweeps: int
    ties: int
    ties_complete: bool
    interrupted: bool = field()
    seconds: float
    plan: dict[str, Any] = field(default_factory=dict)
    proof: Proof | str | None = None

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.bests)

    @property
    def proven(self) -> Proof | None:
        """What toulbar2 has found out; None if no proof was asked for or it did not run."""
        return None if isinstance(self.proof, str) else self.proof

    @property
    def assignment_codes(self) -> Array:
        """State codes of the best state."""
        return self.codes[0] if self.proven is None else self.proven.codes

    @property
    def assignment(self) -> Mapping[str, Any]:
        """The best state by name and label, observed sites included."""
        if self.proven is None:
            return self.ranked[0].assignment
        return {**Assignment(self.model.domains, self.proven.codes), **self.model.evidence}

    @property
    def log_potential(self) -> float:
        """Log-potential of the best state."""
        return self.ranked[0].log_potential if self.proven is None else self.proven.log_potential

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """How often the best state was found, or what is proved if a proof was asked for."""
        if self.proof is not None:
            return self._judge_proof(self.proof)
        reasons: tuple[str, ...] = ()
        if self.found < 2 and self.model.n_sites:
            who = "one chain" if self.found else "no chain alone, but combined from the states of several,"
            reasons = (
                f"the best state was found by {who} of {self.chains}: there may be better ones; run longer, or "
                "use more chains.",
            )
        figures = {
            "found": self.found,
            "chains": self.chains,
            "restarts": self.restarts,
            "restarts_found": self.hits,
            "sweeps": self.sweeps,
        }
        text = f"{verdict_word(not reasons)}: {self._found_by()}"
        return Diagnostics("best found", not reasons, reasons, figures, text)

    def _judge_proof(self, proof: Proof | str) -> Diagnostics:
        """Return the verdict on a state for which a proof was asked for."""
        if isinstance(proof, str):
            return Diagnostics("best found", False, (f"{proof}.",), {"bound": None}, f"no proof: {proof}")
        bounded = math.isfinite(proof.bound)
        figures = {
            "bound": proof.bound if bounded else None,
            "gap": proof.bound - proof.log_potential if bounded else None,
            "tolerance": proof.tolerance,
            "search_log_potential": self.ranked[0].log_potential,
            "improved": proof.improved,
        }
        if proof.proved:
            text = f"proved by toulbar2: no state is better by more than {proof.tolerance:.1g}"
            return Diagnostics("exact", True, (), figures, text)
        said = f"no state is better than {proof.bound:.10g}" if bounded else "there is no bound"
        reasons = (f"toulbar2 has not finished: {said}; give it more time.",)
        return Diagnostics("best found", False, reasons, figures, f"NOT PROVED: {said}")

    def _found_by(self) -> str:
        """Return how often the best state was found."""
        if not self.found:
            return (
                f"the best state was combined from the states of several of {self.chains} chains, after "
                f"{self.restarts:,} restarts"
            )
        return (
            f"the best state found by {self.found} of {self.chains} chains, at the end of {self.hits:,} of "
            f"{self.restarts:,} restarts"
        )

    def __repr__(self) -> str:
        return f"SearchResult({self.log_potential:.10g}, {self._found_by()})"
