"""What a search for the best state gives: the states, and how often they were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gibbsite._common.arrays import Array, Floats
from gibbsite.models.domain import Domains, Label

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


@dataclass(frozen=True)
class Assignment(Mapping[str, Label]):
    """A state by name and label, looked up as it is asked for: of very many sites, there is no dictionary.

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
        position = self.domains.names.find(site)
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
        How many chains have seen it, or another state of the same log-potential; None if it was not found by
        chains, but solved for.
    """

    assignment: Mapping[str, Any]
    log_potential: float
    found: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """What a search has found.

    Attributes
    ----------
    model : FactorGraph
        The model.
    codes : int array (states, sites)
        The best states as codes, the best one first; all are local maxima.
    ranked : tuple of RankedState
        The same by name and label.
    bests : float array (chains,)
        Largest log-potential each chain has reached.
    found : int
        How many chains have reached the largest log-potential; 0 if it took parts of several.
    restarts, hits : int
        Restarts of all chains, and how many of them ended at the largest log-potential by themselves.
    sweeps : int
        Sweeps of each chain, single-site sweeps and passes over the blocks of a cover or the sites of a
        cutset; of the chain that made the most, where time is limited.
    ties : int
        How many distinct states of the largest log-potential were seen: at least so many best states there
        are, if that is the largest of all.
    ties_complete : bool
        False if no more of them were kept.
    interrupted : bool
        Ended early by Ctrl-C.
    seconds : float
        Time taken.
    plan : dict
        What decided the numbers, as plain data.
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
    interrupted: bool
    seconds: float
    plan: dict[str, Any] = field(default_factory=dict)

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.bests)

    @property
    def best_codes(self) -> Array:
        """State codes of the best state."""
        best: Array = self.codes[0]
        return best

    @property
    def best_state(self) -> Mapping[str, Any]:
        """The best state by name and label, observed sites included."""
        return self.ranked[0].assignment

    @property
    def log_potential(self) -> float:
        """Log-potential of the best state."""
        return self.ranked[0].log_potential

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the best state cannot be relied upon, one sentence each."""
        if self.found >= 2 or not self.model.n_sites:
            return ()
        who = "one chain" if self.found else "no chain alone, but put together from the states of several,"
        return (
            f"the best state was found by {who} of {self.chains}: there may be better ones; run longer, or "
            "use more chains.",
        )

    def line(self) -> str:
        """Return how often the best state was found."""
        if not self.found:
            return (
                f"the best state was put together from the states of several of {self.chains} chains, after "
                f"{self.restarts:,} restarts"
            )
        return (
            f"the best state found by {self.found} of {self.chains} chains, at the end of {self.hits:,} of "
            f"{self.restarts:,} restarts"
        )

    def __repr__(self) -> str:
        return f"SearchResult({self.log_potential:.10g}, {self.line()})"
