"""How chains are laid out for compiled code: what a layout is, the plain one, and the choice among all of them.

A layout is chosen once, before a run. The driver moves *bundles* of chains and knows nothing of layouts; states and
records are put back into the model's order, chain by chain. The layouts in which many sites or chains move at once are
in :mod:`.batched_layouts`, which is loaded for models that may need them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Words64
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.nearness import WINDOW
from gibbsite.kernels.base import MOST_MEMBERS
from gibbsite.kernels.protocols import Shareable, Shared
from gibbsite.sampling.sweep import State, start_chain
from gibbsite.sampling.tape import Tape
from gibbsite.scans.systematic import Systematic

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model
    from gibbsite.sampling.executor import Threads
    from gibbsite.sampling.record import TapeLayout
    from gibbsite.scans.base import Scan

States = list[Array]
Streams = list[Words64]

# Models of at least this many sites are visited by color unless another order is asked for.
LEAST_COLORED = 4096
# Chains that move side by side, at least.
LEAST_CHAINS = 16
# Of the threads that share a chain, each has at least this many sites of a color.
LEAST_SHARE = 8192


class ChainLayout(ABC):
    """A layout of chains.

    Attributes
    ----------
    name : str
        Its name in plans: layouts of different names use different random numbers.
    graph : Graph
        The model, in its own order: the one graph of a run.
    width : int
        Largest number of chains in a bundle.
    """

    name: str
    graph: Graph
    width: int = 1

    @property
    def moving(self) -> Graph:
        """The graph that kernels compute their parameters from."""
        return self.graph

    @property
    def log_offset(self) -> float:
        """Constant to be added to log-potentials on a tape."""
        return self.graph.log_offset

    @property
    def most_members(self) -> int:
        """Largest number of threads that can share a bundle."""
        return 1

    @abstractmethod
    def arrays(self, chains: int) -> Any:
        """Return the arrays of the model that compiled code reads, for a bundle of ``chains`` chains."""

    @abstractmethod
    def schedule(self) -> NamedTuple:
        """Return the visits as compiled code sees them."""

    @abstractmethod
    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a bundle from the states of its chains."""

    @abstractmethod
    def tape(self, chains: int) -> Tape:
        """Make the empty tape of a bundle."""

    def release(self, state: State, tape: Tape, chains: int) -> list[tuple[Array, Tape]]:
        """Return state and tape of each chain of a bundle, sites in the model's order."""
        return [(state.x, tape)]

    def release_all(
        self, states: list[State], tapes: list[Tape], sizes: list[int], bundles: int | None, threads: Threads
    ) -> tuple[list[Array], list[Tape]]:
        """Return states and tapes of all chains of the first ``bundles`` bundles, or of all of them."""
        items = list(zip(states, tapes, sizes, strict=True))[:bundles]
        released = [pair for pairs in threads.map(lambda item: self.release(*item), items) for pair in pairs]
        return [x for x, _ in released], [tape for _, tape in released]

    def codes(self, states: Sequence[State], sizes: Sequence[int]) -> Array:
        """Return the states of all chains of some bundles (chains, sites), sites in the model's order."""
        return np.stack([state.x for state in states])

    def sums(self, tape: Tape, chains: int) -> Floats:
        """Return the sums of all cells over the chains of a bundle, sites in the model's order."""
        return tape.total + tape.open_batch


@dataclass(frozen=True, eq=False)
class PlainLayout(ChainLayout):
    """One chain, sites as in the model: for every kernel and scan."""

    graph: Graph
    kernel: Kernel
    scan: Scan
    record: TapeLayout
    model: Model
    name: str = "plain"

    def arrays(self, chains: int) -> Any:
        """Return the graph's arrays."""
        return self.graph.arrays

    @property
    def most_members(self) -> int:
        """Number of threads that can share the steps, or the colors, of a chain and have enough sites each."""
        graph, kernel, shared = self.graph, self.kernel, 1
        if isinstance(kernel, Shared) and not self.scan.random:  # the members of a team read one order
            shared = kernel.members(graph)
        colored = self.scan.by_color and isinstance(kernel, Shareable) and kernel.shareable(graph)
        if shared > 1 or not colored:
            return shared
        from gibbsite.graphs.color import color_sites

        longest = int(np.bincount(color_sites(self.graph)).max(initial=0))
        return min(MOST_MEMBERS, max(1, longest // LEAST_SHARE))

    def schedule(self) -> NamedTuple:
        """Return the scan's schedule."""
        return self.scan.schedule(self.graph, self.model)

    def start(self, starts: States, streams: Streams) -> State:
        """Make the state of a chain."""
        (x0,), (words,) = starts, streams
        return start_chain(self.graph, self.kernel, self.scan, x0, words, self.record.conditional)

    def tape(self, chains: int) -> Tape:
        """Make an empty tape."""
        return self.record.empty_tape(self.graph)

    def release_all(
        self, states: list[State], tapes: list[Tape], sizes: list[int], bundles: int | None, threads: Threads
    ) -> tuple[list[Array], list[Tape]]:
        """Return states and tapes as they are."""
        return list(map(attrgetter("x"), states[:bundles])), tapes[:bundles]


def choose_scan_and_layout(
    model: Model, graph: Graph, kernel: Kernel, scan: Scan | None, record: TapeLayout, chains: int
) -> tuple[Scan, ChainLayout]:
    """Return the scan of a run, and the fastest layout for it.

    A run that names no scan goes by color where there are many sites or chains that can move at once.
    """
    found: ChainLayout | None = None
    if scan is None:
        if graph.n_sites >= LEAST_COLORED or chains >= LEAST_CHAINS:
            from gibbsite.sampling.batched_layouts import move_at_once

            found = move_at_once(model, graph, kernel, record, chains)
        scan = Systematic()
        if found is not None:
            from gibbsite.scans.chromatic import Chromatic

            scan = Chromatic()
        if found is None and graph.n_sites > WINDOW:
            from gibbsite.sampling.batched_layouts import renumber_sites

            found = renumber_sites(model, graph, kernel, scan, record)
    elif scan.by_color:
        from gibbsite.sampling.batched_layouts import move_at_once

        found = move_at_once(model, graph, kernel, record, chains)
    return scan, PlainLayout(graph, kernel, scan, record, model) if found is None else found
