"""Layouts in which many sites, or many chains, move at once, or neighbours are near each other in memory.

Which batched updates there are is declared in :mod:`gibbsite.kernels.batched`; here the fastest one is chosen, and
what it records is put back into the model's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.nearness import rank_positions, rank_sites, renumber
from gibbsite.kernels.base import MOST_MEMBERS
from gibbsite.kernels.batched.base import Permutation, find_batched_update
from gibbsite.models.distance import DistanceFactors
from gibbsite.sampling.layout import LEAST_CHAINS, LEAST_SHARE, ChainLayout, PlainLayout, States, Streams
from gibbsite.sampling.sweep import State
from gibbsite.sampling.tape import BATCHES, Tape
from gibbsite.scans.base import Raster

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.kernels.batched.base import BatchedUpdate, PackedModel, SiteOrder
    from gibbsite.models import Model
    from gibbsite.sampling.record import TapeLayout
    from gibbsite.scans.base import Scan

# Chains of a bundle, about.
BUNDLE = 64
# A color has at least this many sites for them to move at once.
LEAST_SITES = 64


@dataclass(frozen=True, eq=False)
class RenumberedLayout(ChainLayout):
    """One chain, sites in an order in which neighbours are near each other; records marginals only.

    ``near`` is the model in that order, ``order`` the order of its sites and ``cells`` that of its cells.
    """

    graph: Graph
    kernel: Kernel
    scan: Scan
    record: TapeLayout
    near: Graph
    order: Permutation
    cells: Permutation
    name: str = "renumbered"

    @property
    def plain(self) -> PlainLayout:
        """The plain layout of the model in the other order."""
        assert self.near.model is not None
        return PlainLayout(self.near, self.kernel, self.scan, self.record, self.near.model)

    @property
    def moving(self) -> Graph:
        """The model in the other order."""
        return self.near

    @property
    def log_offset(self) -> float:
        """Constant to be added to log-potentials on a tape."""
        return self.near.log_offset

    @property
    def most_members(self) -> int:
        """How many threads can share a chain."""
        return self.plain.most_members

    def arrays(self, chains: int) -> Any:
        """Return the arrays of the model in the other order."""
        return self.near.arrays

    def schedule(self) -> NamedTuple:
        """Return the visits: in the other order."""
        return self.plain.schedule()

    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a chain."""
        return self.plain.start([self.order.pack(np.asarray(x0)) for x0 in starts], streams)

    def tape(self, chains: int) -> Tape:
        """Make an empty tape."""
        return self.plain.tape(chains)

    def _back(self, values: Array) -> Array:
        return self.cells.unpack(values) if values.shape[-1] else values

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[Array, Tape]]:
        """Return the chain in the model's order."""
        back = tape._replace(
            open_batch=self._back(tape.open_batch),
            total=self._back(tape.total),
            trace=self._back(tape.trace[: tape.counters[BATCHES]]),
        )
        return [(self.order.unpack(state.x), back)]

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> Array:
        """Return the states of all chains in the model's order."""
        return self.order.unpack(super().codes(states, sizes))

    def sums(self, tape: Tape, chains: int) -> Floats:
        """Return the sums of all cells in the model's order."""
        return self._back(super().sums(tape, chains))


@dataclass(frozen=True, eq=False)
class AtOnceLayout(ChainLayout):
    """Chains in a layout in which many sites, or many chains, move at once."""

    graph: Graph
    kernel: Kernel
    record: TapeLayout
    update: BatchedUpdate
    packed: PackedModel

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the batched update in plans."""
        return self.update.form

    @property
    def log_offset(self) -> float:
        """Constant of the packed arrays, which may differ from that of the graph."""
        return self.packed.log_offset

    @property
    def order(self) -> SiteOrder:
        """The order of the sites."""
        return self.packed.order

    def lanes(self, chains: int) -> int:
        """Return the number of lanes of a bundle: its chains, rounded up to whole vectors."""
        return -(-chains // self.update.lanes) * self.update.lanes

    def arrays(self, chains: int) -> Any:
        """Return the arrays in this layout."""
        return self.update.arrays(self.packed, self.lanes(chains))

    def schedule(self) -> NamedTuple:
        """Return all positions one after another."""
        return Raster(self.graph.n_sites)

    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a bundle; copies of its first chain fill the spare lanes."""
        spare = self.lanes(len(starts)) - len(starts)
        packed = [self.order.pack(np.asarray(x0, self.graph.state_dtype)) for x0 in starts]
        memory = self.update.memory(self.kernel, self.packed, streams + spare * streams[:1])
        return State(
            x=np.stack(packed + spare * packed[:1], axis=1).ravel(),
            cond=np.zeros(int(self.record.conditional), np.float32),
            rng=np.array(streams[0], np.uint64),
            position=np.zeros(2, np.int64),
            order=np.zeros(0, np.int32),
            memory=memory,
        )

    def _unpack(self, tape: Tape) -> Tape:
        """Return the tape of a chain with its marginals and its best state in the model's order."""
        n_sites, unpack = self.graph.n_sites, self.order.unpack

        def back(values: Array) -> Array:
            if not tape.n_marginal:
                return values
            head, rest = values[..., : tape.n_marginal], values[..., tape.n_marginal :]
            planes = unpack(head.reshape(*head.shape[:-1], tape.n_marginal // n_sites, n_sites))
            cells = np.swapaxes(planes, -1, -2).reshape(head.shape)
            return np.concatenate([cells, rest], axis=-1) if rest.shape[-1] else cells

        batch = tape.open_batch.copy()
        batch[: tape.recent.size] += tape.recent
        return tape._replace(
            open_batch=back(batch),
            recent=tape.recent[:0].copy(),
            total=back(tape.total),
            trace=back(tape.trace[: tape.counters[BATCHES]]),
            best_x=unpack(tape.best_x) if tape.best_x.size else tape.best_x,
        )


@dataclass(frozen=True, eq=False)
class PackedLayout(AtOnceLayout):
    """One chain, many sites of which are updated at once."""

    @property
    def most_members(self) -> int:
        """Number of threads that have enough sites each."""
        return min(MOST_MEMBERS, max(1, self.packed.longest // LEAST_SHARE))

    def tape(self, chains: int) -> Tape:
        """Make an empty tape; recorded sites are named by position, marginals come state by state."""
        tape, n = self.record.empty_tape(self.graph, adding=True), self.graph.n_sites
        if tape.observed.code.step.size:
            site_at = self.order.locate(np.arange(n)).astype(np.int32)
            code = tape.observed.code._replace(site_at=site_at)
            tape = tape._replace(observed=tape.observed._replace(code=code))
        return tape._replace(
            offset=np.arange(n, dtype=np.int64) if tape.offset.size else tape.offset,
            stride=n,
            set_member=self.order.locate(tape.set_member).astype(np.int32) if tape.set_member.size else tape.set_member,
            sites=self.order.locate(tape.sites).astype(np.int32) if tape.sites.size else tape.sites,
        )

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[Array, Tape]]:
        """Return the chain in the model's order."""
        return [(self.order.unpack(state.x), self._unpack(tape))]

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> Array:
        """Return the states of the chains in the model's order."""
        return self.order.unpack(super().codes(states, sizes))

    def sums(self, tape: Tape, chains: int) -> Floats:
        """Return the sums of all cells in the model's order."""
        return super().sums(self._unpack(tape), chains)


@dataclass(frozen=True, eq=False)
class ReplicatedLayout(AtOnceLayout):
    """Many chains side by side, in bundles of limited size; records marginals only."""

    bundle: int

    @property
    def width(self) -> int:  # type: ignore[override]
        """Chains of a bundle."""
        return self.bundle

    def tape(self, chains: int) -> Tape:
        """Make the empty tape of a bundle: as many cells as its chains have together."""
        lanes, record = self.lanes(chains), self.record
        many = replace(record, n_marginal=lanes * record.n_marginal, n_cells=lanes * record.n_cells, pulse=False)
        return many.empty_tape(self.graph, adding=True)

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[Array, Tape]]:
        """Return state and tape of each chain."""
        found = []
        lanes = self.lanes(chains)
        for c in range(chains):
            own = tape._replace(
                n_marginal=self.record.n_marginal,
                open_batch=np.ascontiguousarray(tape.open_batch[c::lanes]),
                recent=np.ascontiguousarray(tape.recent[c::lanes]),
                total=np.ascontiguousarray(tape.total[c::lanes]),
                trace=np.ascontiguousarray(tape.trace[:, c::lanes]),
            )
            found.append((self.order.unpack(state.x[c::lanes]), self._unpack(own)))
        return found

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> Array:
        """Return the states of all chains in the model's order."""
        rows = [state.x.reshape(self.graph.n_sites, -1).T[:size] for state, size in zip(states, sizes, strict=True)]
        return self.order.unpack(np.concatenate(rows))

    def sums(self, tape: Tape, chains: int) -> Floats:
        """Return the sums of all cells over the chains, in the model's order."""
        cells = tape.total + tape.open_batch
        cells[: tape.recent.size] += tape.recent
        return self.order.unpack(cells.reshape(self.graph.n_sites, -1)[:, :chains].sum(axis=1))


def move_at_once(model: Model, graph: Graph, kernel: Kernel, record: TapeLayout, chains: int) -> ChainLayout | None:
    """Return the fastest layout in which many sites or chains move at once; None if the plain one is faster."""
    if graph.on_disk:
        return None  # a layout would be a copy
    if chains >= LEAST_CHAINS and record.only_marginals:
        bundles = -(-chains // BUNDLE)
        replicated = pack_chains(model, graph, kernel, record, -(-chains // bundles))
        if replicated is not None:
            return replicated
    packed = pack_sites(model, graph, kernel, record)
    return packed if packed is not None and packed.packed.longest >= LEAST_SITES else None


class _NearOrder(NamedTuple):
    """The sites in an order in which neighbours are near each other, where one is known."""

    order: Ints | None


def renumber_sites(
    model: Model, graph: Graph, kernel: Kernel, scan: Scan, record: TapeLayout
) -> RenumberedLayout | None:
    """Lay one chain out so that neighbours are near each other in memory; None where that is impossible or no gain."""
    own = graph.units is not None or kernel.joint
    if own or graph.model is None or not record.only_marginals:
        return None
    kept = graph.shared.get(_NearOrder)
    if kept is None:
        at = [group.positions for group in graph.model.groups if isinstance(group, DistanceFactors)]
        if at:
            rank = rank_positions(at[0])
        else:
            rank = rank_sites(*markov_graph(graph)) if hasattr(graph.arrays, "neighbour") else None
        kept = graph.shared.put(_NearOrder(None if rank is None else np.argsort(rank, kind="stable")))
    order = kept.order
    near = None if order is None else renumber(graph.model, order)
    if near is None or order is None:
        return None
    local = compile_graph(near, graph.kind)
    if graph.binary:
        cells = order
    else:
        width = np.diff(local.offset)
        cells = np.repeat(graph.offset[order] - local.offset[:-1], width) + np.arange(int(local.offset[-1]))
    return RenumberedLayout(graph, kernel, scan, record, local, Permutation(order), Permutation(cells))


def pack_chains(model: Model, graph: Graph, kernel: Kernel, record: TapeLayout, bundle: int) -> ReplicatedLayout | None:
    """Lay many chains out side by side, in bundles of at most ``bundle``, if a batched update moves them."""
    found = find_batched_update(kernel, model, graph, chains=True)
    return None if found is None else ReplicatedLayout(graph, kernel, record, *found, bundle)


def pack_sites(model: Model, graph: Graph, kernel: Kernel, record: TapeLayout) -> PackedLayout | None:
    """Lay one chain out for updates of many sites at once, if there is a batched update for them."""
    found = find_batched_update(kernel, model, graph)
    return None if found is None else PackedLayout(graph, kernel, record, *found)
