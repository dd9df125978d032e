"""Conditional distributions with many parents that act independently, as factors: no table is stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints32
from gibbsite.errors import IncompatibleError, ModelError, TooLargeError
from gibbsite.models.domain import Domains, frozen
from gibbsite.models.factor import FactorGroup, TableFactors, WeightedGroup, check_scopes
from gibbsite.models.networks.noisy import Causes, difference, log_conditional
from gibbsite.models.networks.reading import MOST_PARENTS

if TYPE_CHECKING:
    from gibbsite.models.evidence import Folding

MOST_TABLE = 1 << 12
"""Most entries of the table of a noisy node that is stored; larger ones are computed from their causes."""


class NoisyNodes(dict[str, Causes]):
    """The noisy nodes of a network by name, as the cache of its model keeps them: they may be tables in the model."""


#: Impossible states of a noisy node that is softened have about exp(-20) of the probability.
SOFT = 20.0
_MOST_ENTRIES = 1 << 22  # of tables that are made where they are needed


@dataclass(frozen=True, eq=False)
class CauseFactors(WeightedGroup):
    """One noisy node: its distribution given its parents, the last site, or the likelihood of its observed state.

    Attributes
    ----------
    scopes : int array (1, r)
        Positions of the parents and, unless it is observed, the node.
    kind : {"max", "logistic"}
        As in `Causes`.
    leak, effects : array, tuple of arrays
        As `Causes.logs` returns them.
    descending : bool
        The first state of the node is the strongest.
    seen : int
        The observed state of the node by strength (logistic: its code), -1 if it is free.
    power : float
        What log-potentials are multiplied by, where models are tempered.
    """

    scopes: Ints32
    kind: str
    leak: Floats
    effects: tuple[Floats, ...]
    descending: bool
    seen: int = -1
    name: str | None = None
    power: float = 1.0

    @property
    def arity(self) -> int:
        """Number of sites."""
        return int(self.scopes.shape[1])

    @property
    def directed(self) -> bool:
        """Whether this is a conditional distribution of the node."""
        return self.seen < 0 and self.power == 1.0

    @property
    def levels(self) -> int:
        """Number of states of the node."""
        return 2 if self.kind == "logistic" else self.leak.size

    @property
    def weights(self) -> tuple[Floats, ...]:
        """All numbers."""
        return (self.leak, *self.effects)

    @property
    def n_entries(self) -> int:
        """Entries of the table."""
        return math.prod(map(len, self.effects)) * (self.levels if self.seen < 0 else 1)

    @property
    def is_small(self) -> bool:
        """Whether models hold the table instead."""
        return self.n_entries <= MOST_TABLE

    @property
    def fits_table(self) -> bool:
        """Whether a table can be made."""
        return self.n_entries <= _MOST_ENTRIES and self.arity <= MOST_PARENTS

    @property
    def has_zeros(self) -> bool:
        """Whether some state of the node is impossible in some states of its parents."""
        if self.kind == "logistic":
            return False
        rows = [self.leak[None], *self.effects]
        levels = range(self.levels) if self.seen < 0 else [self.seen]
        if any(bool(np.isneginf(row[:, level]).any()) for row in rows for level in levels):
            return True
        return any(level and all((row[:, level] == row[:, level - 1]).any() for row in rows) for level in levels)

    def log_tables(self, cards: Ints32) -> Floats:
        """Return the table, shape (1, K1, ..., Kr); refuse one that is too large."""
        if not self.fits_table:
            raise TooLargeError(
                f"A noisy node with {len(self.effects)} parents has a table of {self.n_entries:.3g} entries, and this "
                "method needs it; use gs.solve_exact, gs.sample, gs.belief_propagation or gs.sample_weighted, and "
                "gs.AnnealedGibbs() for a most probable state."
            )
        logs = log_conditional(self.kind, self.leak, self.effects, self.descending)
        return self._raised(logs if self.seen < 0 else logs[..., self._code(self.seen)])[None]

    def log_potential(self, x: Ints32) -> float:
        """Return the log-probability of the state of the node at ``x``."""
        codes = x[self.scopes[0]].tolist()
        parents = tuple(each[code : code + 1] for each, code in zip(self.effects, codes, strict=False))
        row = log_conditional(self.kind, self.leak, parents, self.descending).reshape(-1)
        return float(self._raised(row)[codes[-1] if self.seen < 0 else self._code(self.seen)])

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless the group fits the sites."""
        check_scopes(self, domains)
        cards = domains.cards[self.scopes[0]].tolist()
        wanted = [*map(len, self.effects), *([self.levels] if self.seen < 0 else [])]
        if cards != wanted:
            raise ModelError(f"a noisy node over {domains.scope_text(self.scopes[0])} does not fit these sites.")

    def reweighted(self, weights: Any) -> Any:
        """Refuse other numbers."""
        raise IncompatibleError("noisy nodes have no weights that can be changed; change the network with set_table.")

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Add the effects of observed parents to the leak; an observed node becomes a likelihood of its parents."""
        codes = folding.codes[self.scopes[0]].tolist()
        free = [k for k, code in enumerate(codes) if code < 0]
        if len(free) == len(codes):
            return [replace(self, scopes=folding.position[self.scopes])], 0.0
        n = len(self.effects)
        leak = self.leak
        for each, code in zip(self.effects, codes, strict=False):
            leak = leak + each[code] if code >= 0 else leak
        seen = self._code(codes[-1]) if self.seen < 0 and codes[-1] >= 0 else self.seen
        parents = [k for k in free if k < n]
        scope = folding.position[self.scopes[0][free]]
        left = replace(self, scopes=scope[None], leak=leak, effects=tuple(self.effects[k] for k in parents), seen=seen)
        groups, constant = left.simplified()
        if constant == -np.inf or any(bool(np.isneginf(part.weights.max())) for part in groups if part is not left):
            text = f"the noisy node over {folding.domains.scope_text(self.scopes[0])}"
            raise folding.impossible(text, self.scopes[0])
        return groups, constant

    def causes(self) -> Causes:
        """Return the noisy node of which this is the distribution."""
        if self.kind == "logistic":
            return Causes(self.kind, self.effects, self.leak)
        rows = [np.exp(difference(each)) for each in (self.leak, *self.effects)]
        leak, *effects = [frozen(each[..., ::-1] if self.descending else each, np.float64) for each in rows]
        return Causes(self.kind, tuple(effects), leak, self.descending)

    def simplified(self) -> tuple[list[Any], float]:
        """Return the group in simpler factors, if there are any, and a constant.

        If the weakest state of a noisy maximum is observed, its parents do not depend on each other; small tables are
        stored.
        """
        if self.seen == 0 and self.kind == "max":
            parts = [
                TableFactors([[site]], self._raised(each[None, :, 0]))
                for site, each in zip(self.scopes[0].tolist(), self.effects, strict=True)
            ]
            return parts, float(self._raised(self.leak)[0])
        if self.effects and self.arity > 1 and self.n_entries > MOST_TABLE:
            return [self], 0.0
        logs = self.log_tables(np.zeros(0, np.int32))
        if not self.arity:
            return [], float(logs[0])
        return [TableFactors(self.scopes, logs, self.directed)], 0.0

    def tempered(self, beta: float) -> CauseFactors:
        """Return the node with its log-potentials times a number."""
        return replace(self, power=beta * self.power)

    def softened(self) -> CauseFactors:
        """Return a similar noisy node for which nothing is impossible."""
        if not self.has_zeros:
            return self
        share = math.exp(-SOFT) * np.arange(1, self.levels + 1) / self.levels
        soft = [np.log((1.0 - math.exp(-SOFT)) * np.exp(each) + share) for each in (self.leak, *self.effects)]
        return replace(self, leak=soft[0], effects=tuple(soft[1:]))

    def _raised(self, logs: Floats) -> Floats:
        """Return log-potentials, given logarithms of probabilities."""
        return logs if self.power == 1.0 else np.where(np.isneginf(logs), logs, self.power * logs)

    def _code(self, level: int) -> int:
        """Turn a level of strength into the code of a state, or back."""
        return self.levels - 1 - level if self.descending else level


def make_factors(scope: Sequence[int], causes: Causes) -> CauseFactors:
    """Return the factor of a noisy node; its scope lists the parents and, last, the node."""
    leak, effects = causes.logs()
    return CauseFactors(np.array([scope], np.int32), causes.kind, leak, effects, causes.descending)
