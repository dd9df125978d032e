"""Perfect draws by coupling from the past: the state that chains from all starts in the distant past have in common.

Gibbs sweeps with the same random numbers are made from all states at once, by bounds, from one sweep ago until now,
then from two, four, eight sweeps ago, and so on. Once only one state is left, it is a draw from the model
itself. The random numbers of a sweep are the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._common.cache import Recent
from gibbsite._common.wording import argument, in_python, part
from gibbsite._numba.jit import Integer, generic, implement
from gibbsite._numba.random.generators import Words, bits
from gibbsite.errors import ArgumentError, IncompatibleError, SamplingError
from gibbsite.graphs.graph import KINDS, Graph, as_tables, compile_graph, seal
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.perfect.bounds import MOST_STATES, PairBounds, SetBounds, come_from, come_from_sets, find_bounds
from gibbsite.kernels.registry import default_kernel, register

if TYPE_CHECKING:
    from gibbsite.models import Model

# By default, a draw goes back by at most this number of updates of sites (those of sets cost more), and by a number of
# sweeps in this range.
_UPDATES, _SET_UPDATES = 2**27, 2**22
_LEAST, _MOST = 2**6, 2**20
_TAKEN, _SWEEPS, _FARTHEST, _APART = range(4)


class PairPast(NamedTuple):
    """A two-state model of pairs, and the longest past."""

    model: IsingGraph
    most: int


class SetPast(NamedTuple):
    """Any model, bounds of its weights, and the longest past."""

    model: TableGraph
    bound: Floats
    most: int


class PerfectMemory(NamedTuple):
    """Bounds of the states of all sites, and counts.

    ``tally`` has the number of draws, the number of sweeps by which they went back in total and at most, and the number
    of sites that were undecided when a draw was given up.
    """

    bounds: Any
    tally: Ints


_FOUND = Recent[Any]()


@register(methods={"perfect": ("MAR",)}, proof=[{"sweeps": 256}], recommend={"Perfect": {"sweeps": 1024}})
@dataclass(frozen=True)
class Perfect(Kernel):
    """Independent draws without bias, by coupling from the past.

    Parameters
    ----------
    sweeps : int, optional
        A draw that has not coalesced after going back this many sweeps is given up, and the run ends with a
        `SamplingError`. By default, the largest power of two, from 2^6 to 2^20, with at most 2^27 updates of sites
        (2^22 if sets are needed).

    Notes
    -----
    Two-state models of pairs are bounded by a lowest and a highest state, other models (with up to 64 states per site)
    by sets of states. Bounds meet soon if sites depend weakly on each other. Without frustration, as in a
    ferromagnet, they meet as soon as the Gibbs sampler has forgotten its start, which may take too long at low
    temperature; with frustration, or more than two states, couplings have to be weak.

    If a draw is given up, the draws before it are, strictly, conditioned on having coalesced in time.

    References
    ----------
    Propp and Wilson (1996), Exact sampling with coupled Markov chains and applications to statistical mechanics.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((6, 6), coupling=0.3, field=0.1)
    >>> result = gs.sample(model, gs.kernels.Perfect(), sweeps=1000, rng=1, progress=False)
    >>> abs(result.marginals["0"][1] - gs.solve_exact(model).marginals["0"][1]) < 0.03
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    joint: ClassVar[bool] = True
    conditional: ClassVar[bool] = False
    fallible: ClassVar[bool] = True
    sweeps: int | None = None

    def check(self, graph: Graph) -> None:
        """Refuse sites with too many states."""
        super().check(graph)
        if graph.cards.max(initial=1) > MOST_STATES:
            name = type(self).__name__
            raise IncompatibleError(
                f"{part(name, name)} takes sites of up to {MOST_STATES} states, and one has "
                f"{graph.cards.max()}; use {part(type(default_kernel(graph)).__name__)}."
            )

    def most(self, graph: Graph) -> int:
        """Return how many sweeps a draw may go back."""
        if self.sweeps is None:
            updates = _UPDATES if isinstance(_model_of(graph), IsingGraph) else _SET_UPDATES
            fits = 2 ** int(np.log2(max(updates / max(graph.n_sites, 1), 1.0)))
            return int(np.clip(fits, _LEAST, _MOST))
        if not isinstance(self.sweeps, int | np.integer) or isinstance(self.sweeps, bool) or self.sweeps < 1:
            raise ArgumentError(f"{argument('sweeps')} must be a whole number of at least 1, got {self.sweeps!r}.")
        return int(self.sweeps)

    def parameters(self, graph: Graph) -> PairPast | SetPast:
        """Return the model in the layout that bounds are computed from."""
        model = _model_of(graph)
        if isinstance(model, IsingGraph):
            return PairPast(model, self.most(graph))
        tables, bound = model
        return SetPast(tables, bound, self.most(graph))

    def memory(self, graph: Graph, stream: Words64) -> PerfectMemory:
        """Allocate bounds."""
        model = _model_of(graph)
        if isinstance(model, IsingGraph):
            bounds: Any = PairBounds(np.zeros(graph.n_sites, np.int8), np.zeros(graph.n_sites, np.int8))
        else:
            bounds = _make_set_bounds(model[0], model[1])
        return PerfectMemory(bounds, np.zeros(4, np.int64))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 8 * graph.n_sites + 16 * int(graph.cards.max(initial=1)) + 32

    def independent(self, graph: Graph) -> bool:
        """Return True: a draw does not depend on the last one."""
        return True

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Return True: draws come from the whole distribution."""
        return True

    def inspect(self, model: Model, graph: Graph, memory: PerfectMemory) -> None:
        """Raise an error if a draw was given up."""
        apart = int(memory.tally[_APART])
        if apart:
            raise SamplingError(
                f"A perfect draw did not coalesce within {self.most(graph):,} sweeps: {apart:,} of {graph.n_sites:,} "
                "sites still depended on the start; "
                f"{in_python(f'go back further with gs.kernels.Perfect(sweeps={4 * self.most(graph)}), or ')}use "
                f"{part(type(default_kernel(graph)).__name__)}."
            )

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return how many sweeps in the past the chains of a draw had to start, on average and at most."""
        drawn = max(sum(int(memory.tally[_TAKEN]) for memory in memories), 1)
        return {
            "sweeps_back": sum(int(memory.tally[_SWEEPS]) for memory in memories) / drawn,
            "most_sweeps_back": float(max(int(memory.tally[_FARTHEST]) for memory in memories)),
        }


def _model_of(graph: Graph) -> Any:
    """Return the model as pairs of two-state sites, or as tables with bounds of weights; the result is cached."""
    return _FOUND.find(graph.digest, lambda: _lay_out(graph))


def _lay_out(graph: Graph) -> Any:
    try:
        return compile_graph(graph.require_model(), "ising").arrays
    except IncompatibleError:
        tables: TableGraph = as_tables(graph).arrays
        bounds = _make_set_bounds(tables, np.zeros(int(tables.offset[-1])))
        find_bounds(tables, bounds)
        return seal((tables, bounds.bound))


def _make_set_bounds(model: TableGraph, bound: Floats) -> SetBounds:
    most, widest = int(model.card.max(initial=1)), int(np.diff(model.member_start).max(initial=1))
    inside = np.zeros(model.card.size, np.uint64)
    return SetBounds(inside, bound, np.zeros(most), np.zeros(most), np.zeros(widest, np.int64))


@generic
def _come(parameters: Any, bounds: Any, key: np.uint64, span: Integer) -> Integer:
    """Make sweeps from ``span`` sweeps ago until now; return the number of undecided sites."""
    raise NotImplementedError


@implement(_come, PairPast)
def _come_pairs(parameters: PairPast, bounds: PairBounds, key: np.uint64, span: Integer) -> Integer:
    return come_from(parameters.model, bounds, key, span)


@implement(_come, SetPast)
def _come_sets(parameters: SetPast, bounds: SetBounds, key: np.uint64, span: Integer) -> Integer:
    return come_from_sets(parameters.model, bounds, key, span)


@generic
def _write(parameters: Any, bounds: Any, x: Array) -> None:
    """Write the only state that bounds allow."""
    raise NotImplementedError


@implement(_write, PairPast)
def _write_pairs(parameters: PairPast, bounds: PairBounds, x: Array) -> None:
    for i in range(x.size):
        x[i] = bounds.low[i]


@implement(_write, SetPast)
def _write_sets(parameters: SetPast, bounds: SetBounds, x: Array) -> None:
    for i in range(x.size):
        word, code = bounds.inside[i], 0
        while word > np.uint64(1):
            word >>= np.uint64(1)
            code += 1
        x[i] = code


def _step(
    parameters: Any, arrays: Any, memory: PerfectMemory, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    tally = memory.tally
    if tally[_APART] > 0:  # the run is over
        return rng
    rng, key = bits(rng)
    span = np.int64(1)
    apart = _come(parameters, memory.bounds, key, span)
    while apart > 0 and 2 * span <= parameters.most:
        span *= 2
        apart = _come(parameters, memory.bounds, key, span)
    if apart > 0:
        tally[_APART] = apart
        return rng
    _write(parameters, memory.bounds, x)
    tally[_TAKEN] += 1
    tally[_SWEEPS] += span
    tally[_FARTHEST] = max(tally[_FARTHEST], span)
    return rng


implement(step, PairPast)(_step)
implement(step, SetPast)(_step)
