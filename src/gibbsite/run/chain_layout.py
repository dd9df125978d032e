"""How chains are laid out for compiled code: one by one as in the model, color by color, or side by side.

A form is chosen once, before a run. The engine moves *bundles* of chains and knows nothing of forms; what
comes out is put back into the model's order, chain by chain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite.graph.color import color_sites
from gibbsite.graph.graph import Graph
from gibbsite.graph.layouts.by_color import color_binary
from gibbsite.graph.layouts.colored import ColoredGraph
from gibbsite.graph.layouts.site_order import PackedModel, Permutation, SiteOrder
from gibbsite.kernel.at_once.replicated import ReplicatedGraph, replica_memory
from gibbsite.run.chain import State, start_chain
from gibbsite.run.tape import BATCHES, Tape
from gibbsite.scan.base import Raster

if TYPE_CHECKING:
    from gibbsite.kernel.base import Kernel
    from gibbsite.model import Model
    from gibbsite.run.record import TapeLayout
    from gibbsite.scan.base import Scan

States = list[NDArray[Any]]
Streams = list[NDArray[np.uint64]]

# Chains side by side: at least so many, in bundles of about so many.
LEAST_CHAINS = 16
BUNDLE = 64
VECTOR = 32
# Sites of a color that make it worth while to move them at once.
LEAST_SITES = 64
# A model of so many sites is visited by color unless another order is asked for.
LEAST_COLORED = 4096
# Threads for one chain: at most so many, each with at least so many sites of a color.
MOST_MEMBERS = 16
LEAST_SHARE = 8192


class ChainLayout(ABC):
    """A layout of chains.

    Attributes
    ----------
    name : str
        For the plan: runs in different forms use different random numbers.
    graph : Graph
        The model.
    """

    name: str
    graph: Graph

    @property
    def width(self) -> int:
        """Chains of a bundle, at most."""
        return 1

    @property
    def most_members(self) -> int:
        """How many threads can share a bundle."""
        return 1

    @abstractmethod
    def arrays(self, chains: int) -> Any:
        """Return what compiled code sees of the model, for a bundle of some chains."""

    @abstractmethod
    def schedule(self) -> NamedTuple:
        """Return the visits as compiled code sees them."""

    @abstractmethod
    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a bundle from the states of its chains."""

    @abstractmethod
    def tape(self, chains: int) -> Tape:
        """Make the empty tape of a bundle."""

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[NDArray[Any], Tape]]:
        """Return state and tape of each chain of a bundle, sites in the model's order."""
        return [(state.x, tape)]

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> NDArray[Any]:
        """Return the states of all chains of some bundles (chains, sites), sites in the model's order."""
        return np.stack([state.x for state in states])

    def sums(self, tape: Tape, chains: int) -> NDArray[np.float64]:
        """Return the sums of all cells over the chains of a bundle, sites in the model's order."""
        return tape.total + tape.open_batch


@dataclass(frozen=True, eq=False)
class PlainLayout(ChainLayout):
    """One chain, sites as in the model: for every kernel and scan."""

    graph: Graph
    kernel: Kernel
    scan: Scan
    layout: TapeLayout
    model: Model
    name: str = "plain"

    def arrays(self, chains: int) -> Any:
        """Return the graph's arrays."""
        return self.graph.arrays

    @property
    def most_members(self) -> int:
        """As many threads as have enough to do, where sites need not wait for each other."""
        if not (self.scan.by_color and self.kernel.shareable(self.graph)):
            return 1
        longest = int(np.bincount(color_sites(self.graph)).max(initial=0))
        return min(MOST_MEMBERS, max(1, longest // LEAST_SHARE))

    def schedule(self) -> NamedTuple:
        """Return the scan's schedule."""
        return self.scan.schedule(self.graph, self.model)

    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a chain."""
        (x0,), (words,) = starts, streams
        return start_chain(self.graph, self.kernel, self.scan, x0, words, self.layout.conditional)

    def tape(self, chains: int) -> Tape:
        """Make an empty tape."""
        return self.layout.empty_tape(self.graph)


@dataclass(frozen=True, eq=False)
class PackedLayout(ChainLayout):
    """One chain, sites color by color, updated many at once."""

    kernel: Kernel
    layout: TapeLayout
    arranged: PackedModel

    @property
    def graph(self) -> Graph:  # type: ignore[override]
        """The model."""
        return self.arranged.graph

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the layout."""
        return self.arranged.name

    @property
    def there(self) -> SiteOrder:
        """The order of the sites."""
        return self.arranged.there

    def arrays(self, chains: int) -> Any:
        """Return the arrays in this order."""
        return self.arranged.arrays

    @property
    def most_members(self) -> int:
        """As many threads as have enough to do."""
        return min(MOST_MEMBERS, max(1, self.arranged.longest // LEAST_SHARE))

    def schedule(self) -> NamedTuple:
        """Return all positions one after another."""
        return Raster(self.graph.n_sites)

    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a chain."""
        (x0,), (words,) = starts, streams
        x = self.there.pack(np.asarray(x0, self.graph.state_dtype))
        memory = self.kernel.packed_memory(self.arranged.arrays, words, MOST_MEMBERS)
        return _keyed_state(x, self.layout, words, memory)

    def tape(self, chains: int) -> Tape:
        """Make an empty tape; recorded sites are named by position, marginals come state by state."""
        tape, n = self.layout.empty_tape(self.graph, adding=True), self.graph.n_sites
        return tape._replace(
            offset=np.arange(n, dtype=np.int64) if tape.offset.size else tape.offset,
            stride=n,
            set_member=self.there.locate(tape.set_member).astype(np.int32)
            if tape.set_member.size
            else tape.set_member,
            sites=self.there.locate(tape.sites).astype(np.int32) if tape.sites.size else tape.sites,
        )

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[NDArray[Any], Tape]]:
        """Return the chain in the model's order."""
        return [(self.there.unpack(state.x), _unpacked(tape, self.there, self.graph.n_sites))]

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> NDArray[Any]:
        """Return the states of the chains in the model's order."""
        return self.there.unpack(super().codes(states, sizes))

    def sums(self, tape: Tape, chains: int) -> NDArray[np.float64]:
        """Return the sums of all cells in the model's order."""
        return super().sums(_unpacked(tape, self.there, self.graph.n_sites), chains)


@dataclass(frozen=True, eq=False)
class ReplicatedLayout(ChainLayout):
    """Many chains side by side; records marginals only."""

    graph: Graph
    layout: TapeLayout
    colored: ColoredGraph
    there: Permutation
    bundle: int
    name: str = "arranged"

    def arrays(self, chains: int) -> Any:
        """Return the graph for so many chains."""
        return ReplicatedGraph(self.colored, _lanes(chains))

    @property
    def width(self) -> int:
        """Chains of a bundle."""
        return self.bundle

    def schedule(self) -> NamedTuple:
        """Return all positions one after another."""
        return Raster(self.graph.n_sites)

    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a bundle; the first chain fills what vectors leave over."""
        spare = _lanes(len(starts)) - len(starts)
        packed = [self.there.pack(np.asarray(x0, self.graph.state_dtype)) for x0 in starts]
        x = np.stack(packed + spare * packed[:1], axis=1)
        return _keyed_state(x.ravel(), self.layout, streams[0], replica_memory(streams + spare * streams[:1]))

    def tape(self, chains: int) -> Tape:
        """Make the empty tape of a bundle: as many cells as its chains have together."""
        lanes, layout = _lanes(chains), self.layout
        many = replace(
            layout, n_marginal=lanes * layout.n_marginal, n_cells=lanes * layout.n_cells, pulse=False
        )
        return many.empty_tape(self.graph, adding=True)

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[NDArray[Any], Tape]]:
        """Return state and tape of each chain."""
        found = []
        lanes = _lanes(chains)
        for c in range(chains):
            own = tape._replace(
                n_marginal=self.layout.n_marginal,
                open_batch=np.ascontiguousarray(tape.open_batch[c::lanes]),
                recent=np.ascontiguousarray(tape.recent[c::lanes]),
                total=np.ascontiguousarray(tape.total[c::lanes]),
                trace=np.ascontiguousarray(tape.trace[:, c::lanes]),
            )
            found.append(
                (self.there.unpack(state.x[c::lanes]), _unpacked(own, self.there, self.graph.n_sites))
            )
        return found

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> NDArray[Any]:
        """Return the states of all chains in the model's order."""
        rows = [
            state.x.reshape(self.graph.n_sites, -1).T[:size]
            for state, size in zip(states, sizes, strict=True)
        ]
        return self.there.unpack(np.concatenate(rows))

    def sums(self, tape: Tape, chains: int) -> NDArray[np.float64]:
        """Return the sums of all cells over the chains, in the model's order."""
        cells = tape.total + tape.open_batch
        cells[: tape.recent.size] += tape.recent
        return self.there.unpack(cells.reshape(self.graph.n_sites, -1)[:, :chains].sum(axis=1))


def _lanes(chains: int) -> int:
    """Return how many chains fill whole vectors of bytes."""
    return -(-chains // VECTOR) * VECTOR


def _keyed_state(x: NDArray[Any], layout: TapeLayout, words: NDArray[np.uint64], memory: NamedTuple) -> State:
    return State(
        x=np.ascontiguousarray(x),
        cond=np.zeros(int(layout.conditional), np.float32),
        rng=np.array(words, np.uint64),
        position=np.zeros(2, np.int64),
        order=np.zeros(0, np.int32),
        memory=memory,
    )


def _unpacked(tape: Tape, there: SiteOrder, n_sites: int) -> Tape:
    """Return a tape with the marginals site by site, and the best state, in the model's order."""

    def back(values: NDArray[Any]) -> NDArray[Any]:
        if not tape.n_marginal:
            return values
        head, rest = values[..., : tape.n_marginal], values[..., tape.n_marginal :]
        planes = there.unpack(head.reshape(*head.shape[:-1], tape.n_marginal // n_sites, n_sites))
        cells = np.swapaxes(planes, -1, -2).reshape(head.shape)
        return np.concatenate([cells, rest], axis=-1) if rest.shape[-1] else cells

    batch = tape.open_batch.copy()
    batch[: tape.recent.size] += tape.recent
    return tape._replace(
        open_batch=back(batch),
        recent=tape.recent[:0].copy(),
        total=back(tape.total),
        trace=back(tape.trace[: tape.counters[BATCHES]]),
        best_x=there.unpack(tape.best_x) if tape.best_x.size else tape.best_x,
    )


def choose_scan_and_layout(
    model: Model, graph: Graph, kernel: Kernel, scan: Scan | None, layout: TapeLayout, chains: int
) -> tuple[Scan, ChainLayout]:
    """Return the scan of a run, and the fastest form for it.

    A run that names no scan goes by color where there are many sites or chains that can move at once.
    """
    from gibbsite.scan.chromatic import Chromatic
    from gibbsite.scan.systematic import Systematic

    found: ChainLayout | None = None
    if scan is None:
        if graph.n_sites >= LEAST_COLORED or chains >= LEAST_CHAINS:
            found = move_at_once(model, graph, kernel, layout, chains)
        scan = Systematic() if found is None else Chromatic()
    elif scan.by_color:
        found = move_at_once(model, graph, kernel, layout, chains)
    return scan, PlainLayout(graph, kernel, scan, layout, model) if found is None else found


def move_at_once(
    model: Model, graph: Graph, kernel: Kernel, layout: TapeLayout, chains: int
) -> ChainLayout | None:
    """Return the fastest form in which many sites or chains move at once, if there is one worth while."""
    if chains >= LEAST_CHAINS and layout.only_marginals and kernel.side_by_side:
        bundles = -(-chains // BUNDLE)
        replicated = replicate(model, graph, layout, -(-chains // bundles))
        if replicated is not None:
            return replicated
    arranged = arrange(model, graph, kernel, layout)
    return arranged if arranged is not None and arranged.arranged.longest >= LEAST_SITES else None


def replicate(model: Any, graph: Graph, layout: TapeLayout, width: int) -> ReplicatedLayout | None:
    """Lay the chains of a model out side by side, if it is binary and its couplings allow it."""
    found = color_binary(model, graph)
    if found is None:
        return None
    graph, colored, there = found
    return ReplicatedLayout(graph, layout, colored, there, width)


def arrange(model: Model, graph: Graph, kernel: Kernel, layout: TapeLayout) -> PackedLayout | None:
    """Lay a model out as a kernel wants it to move many sites at once, if it does."""
    found = kernel.pack(model, graph)
    return None if found is None else PackedLayout(kernel, layout, found)
