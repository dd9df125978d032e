"""Random orders: a site drawn at every step, or all sites shuffled at every sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import Integer, implement
from gibbsite._random.alias import build_alias
from gibbsite._random.generators import Words, below, uniform
from gibbsite.errors import ArgumentError
from gibbsite.scan.base import Order, Scan, period, refresh, site_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gibbsite.graph.graph import Graph
    from gibbsite.model import Model


class Drawn(NamedTuple):
    """A site drawn at every step; by alias table, or uniformly where that is empty."""

    n: int
    stay: NDArray[np.float64]
    other: NDArray[np.int32]


class Shuffle(NamedTuple):
    """A new permutation of all sites at every sweep."""

    n: int


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
    >>> graph = gs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.RandomScan().schedule(graph).n
    3
    """

    random: ClassVar[bool] = True
    weights: Sequence[float] | NDArray[np.float64] | Mapping[str, float] | None = None

    def schedule(self, graph: Graph, model: Model | None = None) -> Drawn:
        """Return the visits."""
        if self.weights is None:
            return Drawn(graph.n_units, np.zeros(0), np.zeros(0, np.int32))
        stay, other = build_alias(self._by_site(graph, model))
        return Drawn(graph.n_units, stay, other)

    def left_out(self, graph: Graph, model: Model | None = None) -> NDArray[np.intp]:
        """Return the sites of weight zero."""
        if self.weights is None:
            return np.zeros(0, np.intp)
        return np.flatnonzero(self._by_site(graph, model) == 0)

    def chances(self, graph: Graph, model: Model | None = None) -> NDArray[np.float64]:
        """Return the probability of each site at a step."""
        if self.weights is None:
            return np.full(graph.n_units, 1.0 / max(graph.n_units, 1))
        weights = self._by_site(graph, model)
        chances: NDArray[np.float64] = weights / weights.sum()
        return chances

    def _by_site(self, graph: Graph, model: Model | None) -> NDArray[np.float64]:
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
        except (TypeError, ValueError):
            raise ArgumentError(f"Weights of a random scan must be numbers, got {self.weights!r}.") from None
        if given.shape != (graph.n_units,):
            raise ArgumentError(
                f"A random scan needs one weight for each of {graph.n_units} sites, got shape {given.shape}."
            )
        bad = np.flatnonzero(~np.isfinite(given) | (given < 0))
        if bad.size:
            name = bad[0] if model is None else repr(model.sites[bad[0]])
            raise ArgumentError(
                f"Weights of a random scan must be finite and not negative, but site {name} has "
                f"{given[bad[0]]}."
            )
        if given.sum() <= 0:
            raise ArgumentError(
                "Weights of a random scan are all zero; give at least one site a positive one."
            )
        return given


@dataclass(frozen=True)
class Shuffled(Scan):
    """Every site once per sweep, in a new random order every sweep.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.compile_graph(gs.ising_grid((1, 3), coupling=1.0))
    >>> gs.Shuffled().schedule(graph)
    Shuffle(n=3)
    """

    random: ClassVar[bool] = True
    once: ClassVar[bool] = True

    def schedule(self, graph: Graph, model: Model | None = None) -> Shuffle:
        """Return the visits."""
        return Shuffle(graph.n_units)

    def buffer(self, graph: Graph) -> Order:
        """Allocate the order, sorted; every sweep shuffles what the last one left."""
        return np.arange(graph.n_units, dtype=np.int32)


@implement(period, Drawn)
def _period_drawn(schedule: Drawn) -> int:
    return schedule.n


@implement(site_at, Drawn)
def _site_at_drawn(schedule: Drawn, order: Order, k: Integer) -> Integer:
    return np.uintp(order[k])


@implement(refresh, Drawn)
def _refresh_drawn(schedule: Drawn, order: Order, rng: Words) -> Words:
    for k in range(order.size):
        rng, site = below(rng, schedule.n)
        if schedule.stay.size > 0:
            rng, u = uniform(rng)
            if u >= schedule.stay[site]:
                site = np.int64(schedule.other[site])
        order[k] = site
    return rng


@implement(period, Shuffle)
def _period_shuffle(schedule: Shuffle) -> int:
    return schedule.n


@implement(site_at, Shuffle)
def _site_at_shuffle(schedule: Shuffle, order: Order, k: Integer) -> Integer:
    return np.uintp(order[k])


@implement(refresh, Shuffle)
def _refresh_shuffle(schedule: Shuffle, order: Order, rng: Words) -> Words:
    # Fisher and Yates; starting from any permutation gives a uniform one
    for k in range(order.size - 1, 0, -1):
        rng, j = below(rng, k + 1)
        order[k], order[j] = order[j], order[k]
    return rng
