"""Random draws from the factors of a site, the common part of all minibatch kernels.

A factor phi of two or more sites is shifted to minimum zero. Then M is its maximum, and phi / M, from 0 to 1, is its
*share*. L_i is the sum of M over the factors of site i, L the largest L_i, Psi the sum of M over all factors (each
counted once), and Delta the largest number of factors of a site. Factors of single sites are not shifted,
drawn or counted: they are cheap and always evaluated, so they may have zeros.

Kernels access factors through *rows*, a named tuple for each kind of graph, with at least these fields:

* ``local``, ``degree``, ``total``: L_i and the number of factors of each site, and Psi;
* ``rate``: the mean number of draws of a site per unit of tau: L_i, or more if some draws are rejected;
* ``offset``, ``log_unary``: the place of the first state of a site, and the factors of single sites.

Generic functions evaluate a factor. Its *view* is a number that stands for the states of the other sites, and that only
these functions interpret:

* :func:`draw_factor` draws a factor of a site with probability M / rate, with its view; a negative view means none;
* :func:`share_of` returns the share of a factor for a state of the site;
* :func:`add_gain` adds ``log(1 + share / tau)`` or ``share / tau``, which :func:`gains` has computed, to the
  log-weights of all states of a site;
* :func:`factor_at` returns a factor by its number, and :func:`add_factor` adds its log-potentials;
* :func:`bound_of` returns the bound M of a slot that :func:`factor_at` has found;
* :func:`is_counted` tells whether a factor counts if it is drawn from this site; it counts from two of its sites.

Here tau = lambda / L: a factor is drawn ``tau * M`` times on average in a minibatch that ignores the state.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked, describe
from gibbsite._common.arrays import Array, Codes, Floats, Ints, Words64
from gibbsite._common.wording import argument, part
from gibbsite._numba.jit import Integer, generic, implement, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.graph import Graph, compile_graph, seal
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.local import from_logs
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.rules import pick, put_cells
from gibbsite.models.base import Model

#: Graph kinds with states whose factors can be drawn.
DRAWN_KINDS = frozenset({"ising", "potts", "distance", "pairwise", "table"})
#: Cost of a drawn factor, in factors that plain Gibbs reads one after another; from timings with 10 states.
COST_OF_DRAW = 6.0
#: Value of a site that no factor depends on.
NOTHING = np.int64(-1)


@dataclass(frozen=True)
class LocalEnergies:
    """The constants that determine minibatch sizes.

    Attributes
    ----------
    local : float array (sites,)
        L_i, the sum of the bounds M of the factors of site i.
    largest : float
        L, the largest of them.
    total : float
        Psi, the sum of the bounds of all factors.
    degree : int
        Delta, the largest number of factors of a site.
    """

    local: Floats
    largest: float
    total: float
    degree: int


@checked
def local_energies(model: Model | Graph) -> LocalEnergies:
    """Compute L_i, L, Psi and Delta of a model, which determine the sizes of minibatches.

    Examples
    --------
    >>> import gibbsite as gs
    >>> weights = 0.5 * (np.ones((4, 4)) - np.eye(4))
    >>> seen = gs.kernels.local_energies(gs.potts(weights, 3))
    >>> seen.largest, seen.total, seen.degree
    (1.5, 3.0, 3)
    """
    if not isinstance(model, Graph):
        model = compile_graph(model, among=DRAWN_KINDS)
        check_drawn(model, "a minibatch")
    rows = drawn_rows(model)
    largest = float(rows.local.max(initial=0.0))
    return LocalEnergies(rows.local, largest, float(rows.total), int(rows.degree.max(initial=0)))


def check_drawn(graph: Graph, name: str) -> None:
    """Refuse a graph whose factors have no bounds."""
    values = getattr(graph.arrays, "log_value", np.zeros(0))
    if not np.isfinite(values).all():
        raise IncompatibleError(
            f"{name} needs bounded energies, but a factor of several sites has a zero, which is an infinite "
            f"energy; use {part('Gibbs')}, or replace zeros by small numbers."
        )


_BUILDERS: dict[str, Callable[[Graph], Any]] = {}


def builds_rows(*kinds: str) -> Callable[[Callable[[Graph], Any]], Callable[[Graph], Any]]:
    """Register a function that builds the rows of some kinds of graphs."""

    def register(function: Callable[[Graph], Any]) -> Callable[[Graph], Any]:
        _BUILDERS.update(dict.fromkeys(kinds, function))
        return function

    return register


class _DrawnRows(NamedTuple):
    rows: Any


def drawn_rows(graph: Graph) -> Any:
    """Return the rows of a graph, which are cached with it."""
    if graph.kind not in _BUILDERS:  # its module implements the generic functions, too
        importlib.import_module(f"gibbsite.kernels.{'minibatch.rows' if graph.discrete else 'continuous.energy'}")
    return graph.cache.find(_DrawnRows, lambda: _DrawnRows(seal(_BUILDERS[graph.kind](graph)))).rows


def row_sums(start: Array, values: Floats, step: int = 1) -> Floats:
    """Return the sums over compressed rows."""
    ends = start.astype(np.int64)
    if not step:
        return np.diff(ends) * float(values[0] if values.size else 0.0)
    # sums of pieces, because differences of running sums would lose accuracy; empty rows are skipped
    sums, full = np.zeros(ends.size - 1), np.flatnonzero(np.diff(ends))
    if full.size:
        sums[full] = np.add.reduceat(values, ends[full])
    return sums


def shares_of(log_value: Floats, place: Ints) -> tuple[Floats, Floats]:
    """Return the bound M of the table at each place, and the shares of all entries; every entry is in a table."""
    begins, which = np.unique(place, return_inverse=True)
    if not begins.size:
        return np.zeros(0), np.zeros(log_value.size)
    low = np.minimum.reduceat(log_value, begins)
    bound = np.maximum.reduceat(log_value, begins) - low
    length = np.diff(np.append(begins, log_value.size))
    share = (log_value - np.repeat(low, length)) / np.repeat(np.where(bound > 0.0, bound, 1.0), length)
    return bound[which], share


def gains(rows: Any, tau: float, log: bool) -> Floats:
    """Return the gain of a factor of share 1, or of each entry of its table, for the log-weight of a state."""
    share = getattr(rows, "share", np.ones(1))
    found: Floats = np.log1p(share / tau) if log else share / tau
    return found


#: Largest minibatch that users may choose: with larger ones, an update would take seconds.
LARGEST_BATCH = 100_000_000


def read_batch(name: str, given: Any, automatic: float) -> float:
    """Return a mean minibatch size lambda: a number, or that of ``"auto"``."""
    if isinstance(given, str) and given == "auto":
        return automatic
    if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 < given < math.inf:
        raise ArgumentError(f"{argument(name)} must be a positive number or 'auto', got {describe(given)}.")
    if given > LARGEST_BATCH:
        raise ArgumentError(f"{argument(name)} must be at most {LARGEST_BATCH:,}, got {describe(given)}.")
    return float(given)


def batch_rate(size: float, energy: float) -> float:
    """Return tau, the mean number of draws per unit of energy, or any number if there is no energy."""
    return size / energy if energy > 0.0 else 1.0


def guarantee(size: float, largest: float) -> str:
    """Return what theorem 1 of Zhang and De Sa (2019) guarantees for Poisson minibatches."""
    sizes = f"lambda = {size:.4g} and L = {largest:.4g}"
    if size < 2.0 * largest:
        return f"With {sizes} no spectral gap is guaranteed, because lambda is below 2 L; the target is still exact."
    factor = math.exp(-4.0 * largest**2 / size) if size > 0.0 else 1.0
    return (
        f"With {sizes} the spectral gap of random scans is at least exp(-4 L^2 / lambda) = {factor:.3g} "
        "times that of plain Gibbs."
    )


@generic
def draw_factor(rows: Any, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
    """Draw a factor of site i; return its slot and its view, which is negative if none was drawn."""
    raise NotImplementedError


@generic
def share_of(rows: Any, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    """Return phi / M of slot k of site i in state a."""
    raise NotImplementedError


@generic
def add_gain(rows: Any, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    """Add the gains of slot k of site i to the log-weights of its states, up to a common constant."""
    raise NotImplementedError


@generic
def factor_at(rows: Any, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    """Return slot and view of the factor of site i with this number, from 0 on."""
    raise NotImplementedError


@generic
def add_factor(rows: Any, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    """Add a multiple of slot k of site i to the log-weights of its states, up to a common constant."""
    raise NotImplementedError


@generic
def bound_of(rows: Any, k: Integer, i: Integer) -> float:
    """Return the bound M of a slot of site i that :func:`factor_at` has found."""
    raise NotImplementedError


@generic
def is_counted(rows: Any, k: Integer) -> bool:
    """Return whether a slot is one of the two from which its factor is counted."""
    raise NotImplementedError


@implement(is_counted)
def _both_ends(rows: Any, k: Integer) -> bool:
    return True


_ONE = np.uintp(1)
# Positions in the counts of a chain.
UPDATES, DRAWN, KEPT, ACCEPTED = range(4)


class Batched(NamedTuple):
    """Memory of a minibatch chain: scratch arrays, and counts of updates, drawn and kept factors, and moves."""

    work: Floats
    spare: Floats
    counts: Ints


@dataclass(frozen=True)
class MinibatchKernel(Kernel):
    """A kernel that evaluates a random part of the factors of a site."""

    kinds: ClassVar[frozenset[str]] = DRAWN_KINDS
    reads_all: ClassVar[bool] = False
    #: Whether a step may reject its proposal, so that reports contain the acceptance rate.
    rejects: ClassVar[bool] = False

    def check(self, graph: Graph) -> None:
        """Refuse a graph of another kind, or one with unbounded factors."""
        super().check(graph)
        name = type(self).__name__
        check_drawn(graph, part(name, name))

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate scratch arrays and counts."""
        return self.workspace(graph)

    def workspace(self, graph: Graph) -> Batched:
        """Allocate scratch arrays and counts."""
        states = max(int(graph.cards.max(initial=1)), 2)
        return Batched(np.zeros(states), np.zeros(states), np.zeros(4, np.int64))

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return means per update, including the warmup: factors in the minibatch, and all drawn factors."""
        counts = np.sum([memory.counts for memory in memories], axis=0)
        updates = max(int(counts[UPDATES]), 1)
        found = {"minibatch": counts[KEPT] / updates, "factors": counts[DRAWN] / updates}
        if self.rejects:
            found["acceptance"] = counts[ACCEPTED] / updates
        return {name: float(value) for name, value in found.items()}


@inlined
def start_logs(rows: Any, i: Integer, w: Floats) -> Integer:
    """Fill ``w`` with the log-weights of site i without its neighbours; return the number of states."""
    cell = np.uintp(rows.offset[i])
    size = np.uintp(rows.offset[i + _ONE]) - cell
    for a in range(size):
        w[a] = rows.log_unary[cell + a]
    return np.int64(size)


@inlined
def stays_in(rng: Words, share: float) -> tuple[Words, bool]:
    """Return True with probability ``share``; a certain outcome uses no random number."""
    stays = share >= 1.0
    if 0.0 < share < 1.0:
        rng, u = uniform(rng)
        stays = u < share
    return rng, stays


@generic
def draw_from_logs(
    arrays: Any, x: Codes, i: Integer, w: Floats, size: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw a value of site i from the log-weights ``w``, which are overwritten; write its conditional to ``cond``."""
    raise NotImplementedError


@implement(draw_from_logs, IsingGraph)
def _draw_binary(
    arrays: IsingGraph, x: Codes, i: Integer, w: Floats, size: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    if keep:
        cond[i] = w[1] - w[0]
    rng, u = uniform(rng)
    x[i] = pick(w, 2, u * from_logs(w, 2))
    return rng


@implement(draw_from_logs)
def _draw_states(
    arrays: Any, x: Codes, i: Integer, w: Floats, size: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    total = from_logs(w, size)
    if keep:
        put_cells(arrays, w, size, total, i, cond)
    rng, u = uniform(rng)
    x[i] = pick(w, size, u * total)
    return rng
