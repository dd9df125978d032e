"""Random orders: a site drawn at every step, or all sites shuffled at every sweep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Floats, Ints32
from gibbsite._numba.random.alias import build_alias
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.graph import Graph
from gibbsite.models.base import Model
from gibbsite.scans.base import Ordered, Scan, drawn_by, shuffled
from gibbsite.scans.registry import register

_MOST_PERMUTED = 6  # sites whose permutations are listed


@register(name="random", proof=lambda n: [{}, {"weights": np.arange(1.0, n + 1)}])
@dataclass(frozen=True)
class RandomScan(Scan):
    """A site drawn at random at every step.

    Parameters
    ----------
    weights : array or mapping, optional
        How often each site is visited, in proportion; uniform by default. A mapping names sites.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.RandomScan().schedule(graph).n
    3
    """

    random: ClassVar[bool] = True
    independent: ClassVar[bool] = True
    weights: Sequence[float] | Floats | Mapping[str, float] | None = None

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits."""
        if self.weights is None:
            return drawn_by(graph.n_units)
        stay, other = build_alias(self._by_site(graph, model))
        return drawn_by(graph.n_units, stay, other)

    def chances(self, graph: Graph, model: Model | None = None) -> Floats:
        """Return the probability of each site at a step."""
        if self.weights is None:
            return np.full(graph.n_units, 1.0 / max(graph.n_units, 1))
        weights = self._by_site(graph, model)
        chances: Floats = weights / weights.sum()
        return chances

    def mixture(self, graph: Graph, model: Model | None = None) -> Iterable[tuple[float, Ints32]]:
        """Return each site with its probability according to the alias table."""
        drawn = self.schedule(graph, model)
        chances = np.full(drawn.n, 1.0 / max(drawn.n, 1))
        if drawn.stay.size:
            chances = drawn.stay / drawn.n
            np.add.at(chances, drawn.other, (1.0 - drawn.stay) / drawn.n)
        return [(p, np.array([i], np.int32)) for i, p in enumerate(chances.tolist())]

    def _by_site(self, graph: Graph, model: Model | None) -> Floats:
        """Return one checked weight per site."""
        if isinstance(self.weights, Mapping):
            if model is None:
                raise ArgumentError("Weights by name need the model; give an array instead.")
            listed: list[object] = [0.0] * graph.n_units
            for name, weight in self.weights.items():
                listed[model.index(name)] = weight
        else:
            listed = self.weights  # type: ignore[assignment]
        try:
            given = np.asarray(listed, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"Weights of a random scan must be numbers, got {describe(self.weights)}.") from None
        if given.shape != (graph.n_units,):
            raise ArgumentError(
                f"A random scan needs one weight for each of {graph.n_units} sites, got shape {given.shape}."
            )
        bad = np.flatnonzero(~np.isfinite(given) | (given < 0))
        if bad.size:
            name = bad[0] if model is None else repr(model.sites[bad[0]])
            raise ArgumentError(
                f"Weights of a random scan must be finite and not negative, but site {name} has {given[bad[0]]}."
            )
        if given.sum() <= 0:
            raise ArgumentError("Weights of a random scan are all zero; give at least one site a positive one.")
        return given


@register(name="shuffled")
@dataclass(frozen=True)
class Shuffled(Scan):
    """Every site once per sweep, in a new random order every sweep.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.scans.Shuffled().schedule(graph).n
    3
    """

    random: ClassVar[bool] = True
    once: ClassVar[bool] = True

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits."""
        return shuffled(graph.n_units)

    def buffer(self, graph: Graph) -> Ints32:
        """Return the sorted order; every sweep shuffles the previous one."""
        return np.arange(graph.n_units, dtype=np.int32)

    def mixture(self, graph: Graph, model: Model | None = None) -> Iterable[tuple[float, Ints32]]:
        """Return all permutations, equally probable."""
        if graph.n_units > _MOST_PERMUTED:
            raise IncompatibleError(f"The matrix of a shuffled scan needs at most {_MOST_PERMUTED} sites.")
        chance = 1.0 / math.factorial(graph.n_units)
        orders = itertools.permutations(range(graph.n_units))
        return ((chance, np.array(order, np.int32)) for order in orders)
