"""Scans: the order of visits, as data.

A scan turns a graph into a *schedule*, a named tuple that compiled code reads through three generic functions:

* :func:`period`: the number of steps after which the schedule starts again;
* :func:`refresh`: called at the start of every period, writes a new random order into ``order``
  (by default it does nothing);
* :func:`site_at`: the site visited at a position of the period.

:class:`Raster` visits the sites in their own order, without an array, and :class:`Phased` visits them color by color.
All other orders, fixed and random, are one schedule, :class:`Ordered`, so that loops over steps are compiled once for
all of them; its mode defines how a new period begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32, Positions
from gibbsite._common.wording import argument
from gibbsite._numba.jit import Integer, generic, implement
from gibbsite._numba.random.generators import Words, below, uniform
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.graph import Graph
from gibbsite.models.base import Model


@dataclass(frozen=True)
class Scan(ABC):
    """The order in which sites are visited.

    Attributes
    ----------
    random : bool
        New orders are drawn during the run.
    once : bool
        Every site is visited once in every sweep.
    by_color : bool
        All sites of a color come before those of the next, each once per sweep, so they may move simultaneously.
    independent : bool
        The site of every step is drawn independently, with the probabilities :meth:`chances`.
    """

    random: ClassVar[bool] = False
    once: ClassVar[bool] = False
    by_color: ClassVar[bool] = False
    independent: ClassVar[bool] = False

    @abstractmethod
    def schedule(self, graph: Graph, model: Model | None = None) -> NamedTuple:
        """Return the visits as compiled code sees them. ``model`` resolves site names."""

    def buffer(self, graph: Graph) -> Ints32:
        """Allocate the array :func:`refresh` writes to; empty for fixed schedules."""
        return np.zeros(graph.n_units if self.random else 0, np.int32)

    def cycle(self, graph: Graph, model: Model | None = None) -> int | None:
        """Return the number of visits after which the order repeats itself, None if it never does."""
        if self.random:
            return None
        return graph.n_units if self.by_color else period(self.schedule(graph, model))

    def visits(self, graph: Graph, model: Model | None = None) -> Ints32:
        """Return the sites of one period of a fixed order."""
        if self.random:
            raise IncompatibleError(f"{type(self).__name__} has no fixed order.")
        # a schedule without an order visits all in turn
        order: Ints32 | None = getattr(self.schedule(graph, model), "order", None)
        return np.arange(graph.n_units, dtype=np.int32) if order is None else order

    def chances(self, graph: Graph, model: Model | None = None) -> Floats:
        """Return the probability of each site at a step, where steps are drawn independently."""
        raise IncompatibleError(f"{type(self).__name__} does not draw its steps independently.")

    def mixture(self, graph: Graph, model: Model | None = None) -> Iterable[tuple[float, Ints32]]:
        """Return the possible orders between two random draws, each with its probability.

        The transition matrix of the scan is the mixture, with these probabilities, of the products of the
        matrices of single steps. A fixed order has one entry, its period; independent draws have one for
        each site. Any other random scan must override this method to be verified.
        """
        if not self.random:
            return [(1.0, self.visits(graph, model))]
        if not self.independent:
            raise IncompatibleError(
                f"{type(self).__name__} is random and does not define its transition matrix; override "
                "its method mixture."
            )
        return [(p, np.array([i], np.int32)) for i, p in enumerate(self.chances(graph, model).tolist())]

    def left_out(self, graph: Graph, model: Model | None = None) -> Positions:
        """Return the sites that are never visited; they keep their start state."""
        if self.independent:
            return np.flatnonzero(self.chances(graph, model) == 0)
        missing = np.full(graph.n_units, not self.random)
        if not self.random:
            missing[self.visits(graph, model)] = False
        return np.flatnonzero(missing)

    def kernel(self) -> Any:
        """Return the default kernel of runs with this scan; None for the default kernel of the model."""
        return None


class Raster(NamedTuple):
    """Sites 0 .. n - 1, repeated."""

    n: int


#: Modes of :class:`Ordered`: every period is the same, or its sites are drawn one by one, or shuffled.
FIXED, DRAWN, SHUFFLED = range(3)
_NO_NUMBERS, _NO_SITES = np.zeros(0), np.zeros(0, np.int32)


class Ordered(NamedTuple):
    """A sequence of ``n`` sites, repeated, or drawn again for every period.

    In mode FIXED it is ``order``. In mode DRAWN every site is drawn by the alias table ``stay`` and ``other``, or
    uniformly if that is empty. In mode SHUFFLED all sites are permuted.
    """

    mode: int
    n: int
    order: Ints32
    stay: Floats
    other: Ints32


def in_order(order: Ints32) -> Ordered:
    """Return the schedule of a fixed sequence of sites."""
    return Ordered(FIXED, order.size, np.array(order, np.int32), _NO_NUMBERS, _NO_SITES)


def drawn_by(n: int, stay: Floats = _NO_NUMBERS, other: Ints32 = _NO_SITES) -> Ordered:
    """Return the schedule of sites drawn one by one, by an alias table or uniformly."""
    return Ordered(DRAWN, n, _NO_SITES, stay, other)


def shuffled(n: int) -> Ordered:
    """Return the schedule of a new permutation of all sites for every period."""
    return Ordered(SHUFFLED, n, _NO_SITES, _NO_NUMBERS, _NO_SITES)


class Phased(NamedTuple):
    """A fixed sequence of sites, repeated; visits ``start[r]`` to ``start[r + 1]`` do not depend on each other."""

    order: Ints32
    start: Ints


@generic
def period(schedule: Any) -> int:
    """Return the number of steps after which the schedule starts again."""
    raise NotImplementedError


@generic
def refresh(schedule: Any, order: Ints32, rng: Words) -> Words:
    """Start a new period: write the order of a random schedule; return the advanced generator."""
    raise NotImplementedError


@generic
def site_at(schedule: Any, order: Ints32, k: Integer) -> Integer:
    """Return the site visited at position k of the period."""
    raise NotImplementedError


@generic
def run_end(schedule: Any, k: Integer, stop: Integer) -> Integer:
    """Return the end, at most ``stop``, of the visits from position k on that do not depend on each other.

    The default is ``stop``, because schedules without such visits use one thread.
    """
    raise NotImplementedError


@implement(run_end)
def _to_the_end(schedule: Any, k: Integer, stop: Integer) -> Integer:
    return stop


@implement(run_end, Phased)
def _run_end_phased(schedule: Phased, k: Integer, stop: Integer) -> Integer:
    for r in range(schedule.start.size):
        if np.uintp(schedule.start[r]) > k:
            return min(stop, np.uintp(schedule.start[r]))
    return stop


@implement(period, Raster)
def _period_raster(schedule: Raster) -> int:
    return schedule.n


@implement(refresh)
def _keep_order(schedule: Any, order: Ints32, rng: Words) -> Words:
    return rng


@implement(site_at, Raster)
def _site_at_raster(schedule: Raster, order: Ints32, k: Integer) -> Integer:
    return k


@implement(period, Ordered)
def _period_ordered(schedule: Ordered) -> int:
    return schedule.n


@implement(site_at, Ordered)
def _site_at_ordered(schedule: Ordered, order: Ints32, k: Integer) -> Integer:
    return np.uintp(schedule.order[k] if schedule.mode == FIXED else order[k])


@implement(refresh, Ordered)
def _refresh_ordered(schedule: Ordered, order: Ints32, rng: Words) -> Words:
    if schedule.mode == DRAWN:
        for k in range(order.size):
            rng, site = below(rng, schedule.n)
            if schedule.stay.size > 0:
                rng, u = uniform(rng)
                if u >= schedule.stay[site]:
                    site = np.int64(schedule.other[site])
            order[k] = site
    elif schedule.mode == SHUFFLED:
        # Fisher and Yates; the result is uniform for any previous order
        for k in range(order.size - 1, 0, -1):
            rng, j = below(rng, k + 1)
            order[k], order[j] = order[j], order[k]
    return rng


@implement(period, Phased)
def _period_phased(schedule: Phased) -> int:
    return schedule.order.size


@implement(site_at, Phased)
def _site_at_phased(schedule: Phased, order: Ints32, k: Integer) -> Integer:
    return np.uintp(schedule.order[k])


def site_sequence(order: Any, graph: Graph, model: Model | None, what: str = "The order") -> Ints32:
    """Resolve names or positions to an array of positions; refuse unknown ones."""
    if isinstance(order, str):
        raise ArgumentError(f"{argument(what)} must be a sequence of sites, got the word {order!r}.")
    if not isinstance(order, Iterable) or (isinstance(order, np.ndarray) and order.ndim == 0):
        raise ArgumentError(f"{argument(what)} must be a sequence of sites, got {order!r}.")
    listed = list(order) if not isinstance(order, np.ndarray) else order
    if len(listed) == 0:
        raise ArgumentError(f"{what} is empty; give at least one site.")
    named = any(isinstance(site, str) for site in listed)
    if named and graph.units is not None:
        raise ArgumentError(
            f"{argument(what)} must hold numbers of blocks, 0 to {graph.n_units - 1}, because this kernel "
            f"moves blocks of sites; got {order!r}."
        )
    if model is not None and named:
        sites = np.array([model.index(site) for site in listed], np.int64)
    else:
        try:
            given = np.asarray(listed)
            sites = given.astype(np.int64, casting="same_kind")
        except (TypeError, ValueError):
            raise ArgumentError(f"{argument(what)} must hold site names or positions, got {order!r}.") from None
        if sites.ndim != 1:
            raise ArgumentError(f"{argument(what)} must be a list of sites, got an array of shape {sites.shape}.")
    bad = np.flatnonzero((sites < 0) | (sites >= graph.n_units))
    if bad.size:
        raise ArgumentError(
            f"{what} names site {sites[bad[0]]} at entry {bad[0]}, but sites are 0..{graph.n_units - 1}."
        )
    return np.ascontiguousarray(sites, np.int32)
