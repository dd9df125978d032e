"""Two replicas on every rung, which exchange clusters of the sites at which they differ.

Frustrated models on sparse graphs have no clusters of sites that agree. But two states at the same temperature differ
in clusters, and Houdayer's move [1]_ exchanges one of them without rejection. A cluster is connected and contains all
neighbours at which the states differ, so every factor of a site in the cluster has the same states at its other sites
in both. The exchange therefore moves log-potential from one state to the other and keeps the sum, for factors of any
kind: the product of the target with itself is invariant. On sparse graphs, clusters are neither single sites nor the
whole graph, and both states change far more than by single-site updates at low temperature. The move is not
ergodic by itself: sites at which the states agree do not change.

So two ladders run in parallel [2]_. After every sweep, and its swaps along each ladder, both replicas of each rung
exchange a cluster. The product of the distributions of all replicas is invariant; draws are those of the target of the
first ladder.

References
----------
.. [1] Houdayer, J. (2001). A cluster Monte Carlo algorithm for 2-dimensional spin glasses. EPJ B 22.
.. [2] Zhu, Z., Ochoa, A. J. and Katzgraber, H. G. (2015). Efficient cluster algorithm for spin glasses in any
       space dimension. PRL 115.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bytes, Floats, Ints, Ints32, Words32, Words64
from gibbsite._numba.jit import Integer, compiled, generic, implement, inlined
from gibbsite._numba.random.generators import Words, below, load, store
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.local import log_weights
from gibbsite.kernels.base import Kernel, Span, visit
from gibbsite.kernels.clusters.swendsen_wang import SwendsenWang
from gibbsite.kernels.registry import register
from gibbsite.kernels.tempered.exchange import TemperedMemory
from gibbsite.kernels.tempered.ladder import find_ladder
from gibbsite.kernels.tempered.rungs import TemperedParameters
from gibbsite.kernels.tempered.side_by_side import SideParameters
from gibbsite.kernels.tempered.tempered import Tempered
from gibbsite.models.tempered import blend
from gibbsite.scans.base import period

if TYPE_CHECKING:
    from gibbsite.kernels.protocols import Pilot


class ExchangeMemory(NamedTuple):
    """Buffers for a cluster."""

    # start, neighbour: sites that share a factor with site i: ``neighbour[start[i] : start[i + 1]]``
    start: Words32
    neighbour: Words32
    todo: Ints32  # (sites,): the sites at which states differ, then the cluster
    mark: Bytes  # (sites,): whether a site is in the cluster; zeros between moves

    @property
    def rebuildable(self) -> bool:
        """True: no move reads what an earlier one has written."""
        return True


def exchange_memory(graph: Graph) -> ExchangeMemory:
    """Allocate buffers for exchanges between states of a model."""
    start, neighbour = markov_graph(graph)
    return ExchangeMemory(start, neighbour, np.zeros(graph.n_sites, np.int32), np.zeros(graph.n_sites, np.uint8))


@inlined
def choose_cluster(memory: ExchangeMemory, x: Array, y: Array, rng: Words) -> tuple[Words, Integer]:
    """Write the cluster of a random site at which two states differ to ``todo``, mark it, and return its size."""
    todo, apart = memory.todo, np.int64(0)
    for i in range(x.size):
        todo[apart] = i
        apart += x[i] != y[i]
    if apart == 0:
        return rng, apart
    rng, which = below(rng, apart)
    return rng, find_cluster(memory, x, y, np.intp(todo[which]))


@compiled
def exchange(memory: ExchangeMemory, x: Array, y: Array, words: Words64) -> Integer:
    """Exchange a random cluster between two states, in place; return its size, 0 if the states are equal.

    ``memory`` comes from :func:`exchange_memory`; ``words`` are the generator, which is advanced.
    """
    rng, size = choose_cluster(memory, x, y, load(words))
    store(words, rng)
    for k in range(size):
        i = np.intp(memory.todo[k])
        memory.mark[i] = 0
        kept = x[i]
        x[i] = y[i]
        y[i] = kept
    return size


@inlined
def find_cluster(memory: ExchangeMemory, x: Array, y: Array, seed: Integer) -> Integer:
    """Write the sites at which states differ that are connected with a seed to ``todo``, and mark them."""
    todo, mark = memory.todo, memory.mark
    todo[0], mark[seed] = seed, 1
    done, known = np.int64(0), np.int64(1)
    while done < known:
        i = np.intp(todo[done])
        done += 1
        for k in range(np.uintp(memory.start[i]), np.uintp(memory.start[i + 1])):
            j = np.intp(memory.neighbour[k])
            if mark[j] == 0 and x[j] != y[j]:
                mark[j] = 1
                todo[known] = j
                known += 1
    return known


# Largest mean number of neighbours for which clusters are smaller than the model.
_FEW_NEIGHBOURS = 5


class PairedParameters(NamedTuple):
    """Parameters of each ladder, and the graph of U, which is the model without its reference."""

    ladder: Any
    beyond: Any


class PairedMemory(NamedTuple):
    """Both ladders, the state of the target of the second one, and buffers for a cluster.

    ``weight`` is a buffer for the log-weights of a site; ``tally`` counts exchanges and their sites.
    """

    one: TemperedMemory
    other: TemperedMemory
    state: Array
    room: ExchangeMemory
    weight: Floats
    tally: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        return {"state": (0, cards - 1)}


@register(proof=[{"ladder": (0.0, 0.4, 1.0)}], recommend={"PairedTempered": {}})
@dataclass(frozen=True)
class PairedTempered(Tempered):
    """Replica exchange with two replicas on every rung, which also exchange clusters of sites.

    It takes the arguments of :class:`Tempered`, and a sweep takes twice as long. It is more efficient for frustrated
    models with few neighbours, such as spin glasses on lattices, whose states differ in clusters of many sites.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=np.random.default_rng(1).normal(size=(2, 4, 4)), field=0.1)
    >>> result = gs.sample(model, gs.kernels.PairedTempered(), sweeps=4000, rng=1, progress=False)
    >>> abs(result.log_z - gs.solve_exact(model).log_z) < 4 * result.log_z_error
    True
    """

    def tune(self, pilot: Pilot) -> Kernel:
        """Find the ladder by runs of a single ladder."""
        single = Tempered(self.kernel, self.ladder, self.reference, self.keep)
        return replace(self, found=find_ladder(single, pilot))

    def parameters(self, graph: Graph) -> PairedParameters:  # type: ignore[override]
        """Return the parameters of a ladder, and the graph of U."""
        ladder = super().parameters(graph)
        model = graph.model
        assert model is not None
        beyond = blend(model, 1.0, -1.0, self.start_ladder(graph).log_reference)
        kind = "ising" if isinstance(ladder, SideParameters) else graph.kind
        return PairedParameters(ladder, compile_graph(beyond, kind).arrays)

    def memory(self, graph: Graph, stream: Words64) -> PairedMemory:  # type: ignore[override]
        """Allocate both ladders."""
        # another stream, derived from that of the chain
        second = (
            np.random.SeedSequence([int(word) for word in stream] + [1]).generate_state(4, np.uint64).astype(np.uint64)
        )
        return PairedMemory(
            one=super().memory(graph, stream),
            other=super().memory(graph, second),
            state=np.full(graph.n_sites, -1, graph.state_dtype),
            room=exchange_memory(graph),
            weight=np.zeros(int(graph.cards.max(initial=1))),
            tally=np.zeros(2, np.int64),
        )

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 2 * super().memory_bytes(graph) + 7 * graph.n_sites

    def members(self, graph: Graph) -> int:
        """Return 1: every chain has one thread."""
        return 1

    def ensemble(self, graph: Graph) -> None:
        """Return None: both ladders exchange clusters at all rungs after every sweep, so they stay on one process."""

    def forget(self, memory: PairedMemory) -> None:  # type: ignore[override]
        """Make the next sweep compute U again."""
        super().forget(memory.one)
        super().forget(memory.other)

    def freeze(self, memory: PairedMemory) -> None:  # type: ignore[override]
        """Begin counting."""
        super().freeze(memory.one)
        super().freeze(memory.other)
        memory.tally[:] = 0

    def report(self, memories: Sequence[PairedMemory]) -> dict[str, float]:  # type: ignore[override]
        """Return the figures of both ladders, and the mean number of sites of a cluster."""
        found = super().report(_ladders(memories))
        made, sites = np.sum([memory.tally for memory in memories], axis=0).tolist()
        return {**found, "sites_per_cluster": sites / made} if found and made else found

    def crossing_warnings(self, memories: Sequence[PairedMemory]) -> tuple[str, ...] | None:  # type: ignore[override]
        """Require round trips on all ladders."""
        return super().crossing_warnings(_ladders(memories))

    def kept(self, memories: Sequence[PairedMemory]) -> dict[str, Array]:  # type: ignore[override]
        """Return the records of the first ladders; the second ones depend on them."""
        return super().kept([memory.one for memory in memories])

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans and reports, without the ladder that was found."""
        return {**super().describe(), "name": "PairedTempered"}


def pairing_pays(graph: Graph) -> bool:
    """Return whether a model has two states, few neighbours, and cycles that are frustrated.

    If clusters percolate, two states differ in a single cluster, and exchanging it has no effect; if no cycle is
    frustrated, states differ at all sites.
    """
    if not graph.binary or graph.model is None:
        return False
    _, neighbour = markov_graph(graph)
    return neighbour.size <= _FEW_NEIGHBOURS * graph.n_sites and not SwendsenWang().accepts(graph)


def _ladders(memories: Sequence[PairedMemory]) -> list[TemperedMemory]:
    return [ladder for memory in memories for ladder in (memory.one, memory.other)]


@implement(visit, PairedParameters)
def _visit(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Array, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Move both ladders by a span of visits, and exchange clusters at the end of a sweep."""
    own, one, other, y = params.ladder, memory.one, memory.other, memory.state
    if x.size > 0 and y[0] < 0:  # not set yet
        for i in range(x.size):
            y[i] = x[i]
    rng = visit(own, arrays, schedule, one, x, span, rng, cond, keep)
    rng = visit(own, arrays, schedule, other, y, span, rng, cond, False)
    if span.stop == np.uintp(period(schedule)):
        last = one.gain.size - 1
        for k in range(1, last):
            first, gap = place_of(own, one, x.size, k)
            second, _ = place_of(own, other, x.size, k)
            a = one.states[first : first + gap * x.size : gap]
            b = other.states[second : second + gap * x.size : gap]
            rng, gained = exchange_pair(params.beyond, memory, a, b, rng)
            note_gain(own, one, k, gained)
            note_gain(own, other, k, -gained)
        rng, gained = exchange_pair(params.beyond, memory, x, y, rng)
        note_gain(own, one, last, gained)
        note_gain(own, other, last, -gained)
    return rng


@inlined
def exchange_pair(beyond: Any, memory: PairedMemory, x: Array, y: Array, rng: Words) -> tuple[Words, float]:
    """Exchange a cluster between two states; return the change of U of the first one."""
    room, w = memory.room, memory.weight
    rng, size = choose_cluster(room, x, y, rng)
    gained = 0.0
    for k in range(size):  # one site after another, each given the current states of the others
        i = np.uintp(room.todo[k])
        room.mark[i] = 0
        log_weights(beyond, x, i, w)
        gained += w[np.uintp(y[i])] - w[np.uintp(x[i])]
        kept = x[i]
        x[i] = y[i]
        y[i] = kept
    memory.tally[0] += size > 0
    memory.tally[1] += size
    return rng, gained


@generic
def place_of(parameters: Any, memory: TemperedMemory, sites: Integer, k: Integer) -> tuple[Integer, Integer]:
    """Return where the state of a rung begins in ``states``, and the distance of its successive sites there."""
    raise NotImplementedError


@implement(place_of, TemperedParameters)
def _in_row(
    parameters: TemperedParameters, memory: TemperedMemory, sites: Integer, k: Integer
) -> tuple[Integer, Integer]:
    return memory.place[k] * np.int64(sites), np.int64(1)


@implement(place_of, SideParameters)
def _in_lane(parameters: SideParameters, memory: TemperedMemory, sites: Integer, k: Integer) -> tuple[Integer, Integer]:
    return memory.place[k], np.int64(memory.work.beta.size)


@generic
def note_gain(parameters: Any, memory: TemperedMemory, k: Integer, gained: float) -> None:
    """Add to the U of a rung if it is kept from sweep to sweep."""
    raise NotImplementedError


@implement(note_gain, TemperedParameters)
def _summed_anew(parameters: TemperedParameters, memory: TemperedMemory, k: Integer, gained: float) -> None:
    pass


@implement(note_gain, SideParameters)
def _kept_by_lane(parameters: SideParameters, memory: TemperedMemory, k: Integer, gained: float) -> None:
    memory.work.gain[memory.place[k]] += gained
