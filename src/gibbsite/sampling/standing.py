"""Chains of one model that stand ready: moved on by so many sweeps, as often as one likes.

What :func:`gibbsite.sample` does around a run (blocks, time limits, progress, checkpoints) is left out; a
call costs little more than its updates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.support.start import start_states
from gibbsite.kernels.base import Kernel, Team, units_of
from gibbsite.kernels.protocols import Adaptive, Fallible, Resolvable, RunOutline, Stateful
from gibbsite.kernels.registry import default_kernel
from gibbsite.sampling.chain import State, advance
from gibbsite.sampling.chain_layout import ChainLayout, PlainLayout, choose_scan_and_layout
from gibbsite.sampling.checkpoint import is_rebuildable
from gibbsite.sampling.plan import Plan, make_plan, start_text
from gibbsite.sampling.record import TapeLayout, lay_out
from gibbsite.sampling.tape import DRAWS, NEVER, Tape

if TYPE_CHECKING:
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan

Move = Callable[[], None]


class Standing:
    """Chains of one model: laid out, started, with a tape each.

    Parameters
    ----------
    model, kernel, scan, record, start
        As in :func:`gibbsite.sample`.
    chains : int
        Number of chains.
    entropy : int
        The seed: chain c starts and draws as chain c of a run with this seed.
    sweeps : int, optional
        Length of the run, where it is known beforehand.
    """

    def __init__(
        self,
        model: Model,
        kernel: Kernel | None,
        scan: Scan | None,
        record: Any,
        chains: int,
        entropy: int,
        start: Any = None,
        sweeps: int | None = None,
    ) -> None:
        self.model, self.chains, self.entropy, self.begin = model, chains, entropy, start
        self.asked_scan, self.asked_kernel, self.asked_record = scan, kernel, record
        self.graph, self.kernel, self.layout, self.scan, self.form = self._lay_out(model, sweeps)
        starts = start_states(model, self.graph, chains, start, entropy)
        self.states = self._place(starts, range(chains))
        self.tapes = self._blank()
        self.prepare()

    def _lay_out(self, model: Model, sweeps: int | None) -> tuple[Graph, Kernel, TapeLayout, Scan, ChainLayout]:
        given = self.asked_kernel
        graph = compile_graph(model, among=given.kinds if given is not None else ())
        kernel = default_kernel(graph) if given is None else given
        kernel.check(graph)
        units = units_of(kernel, graph)
        if units is not None:
            graph = replace(graph, units=units)
        layout = lay_out(model, graph, kernel, self.asked_record)
        if layout.meetings:
            raise ArgumentError(f"{type(layout.meetings[0]).__name__} is recorded by gs.sample only.")
        scan, form = choose_scan_and_layout(model, graph, kernel, self.asked_scan, layout, self.chains)
        visits = None if sweeps is None else sweeps * graph.n_units
        if isinstance(kernel, Resolvable):
            outline = RunOutline(type(scan).__name__, scan.cycle(graph, model), graph.n_units, 1, visits)
            kernel = kernel.resolve(outline)
            scan, form = choose_scan_and_layout(model, graph, kernel, scan, layout, self.chains)
        return graph, kernel, layout, scan, form

    def _place(self, starts: list[Array], numbers: range) -> list[State]:
        """Put chains at their states, each with the stream of its number."""
        streams = [stream(self.entropy, number) for number in numbers]
        width = self.form.width
        return [self.form.start(starts[a : a + width], streams[a : a + width]) for a in range(0, self.chains, width)]

    def _blank(self) -> list[Tape]:
        return [self.form.tape(size) for size in self.sizes]

    @property
    def sizes(self) -> list[int]:
        """Chains of each bundle."""
        width = self.form.width
        return [min(width, self.chains - a) for a in range(0, self.chains, width)]

    def prepare(self) -> None:
        """Look up what compiled code is called with."""
        self.parameters = self.kernel.parameters(self.form.moving)
        self.schedule = self.form.schedule()
        self.arrays = [self.form.arrays(size) for size in self.sizes]

    # ---- moving

    def moves(self, sweeps: int, keep: bool, threads: int) -> list[Move]:
        """Return what has to be done to move all chains on by some sweeps; each may go to a thread."""
        if keep:
            room = [int(tape.counters[DRAWS]) + sweeps for tape in self.tapes]
            self.tapes = [self.layout.grow(*pair) for pair in zip(self.tapes, room, strict=True)]
        length = self.form.graph.n_units
        members = min(self.form.most_members, max(1, threads // len(self.states)))
        gates = [np.zeros(1, np.int64) for _ in self.states]

        def move(bundle: int, member: int) -> Move:
            return lambda: advance(
                self.parameters,
                self.arrays[bundle],
                self.schedule,
                self.states[bundle],
                self.tapes[bundle],
                sweeps,
                length,
                keep,
                Team(member, members, gates[bundle]),
            )

        return [move(bundle, member) for bundle in range(len(self.states)) for member in range(members)]

    def inspect(self) -> None:
        """Refuse to go on where steps went wrong."""
        for state, tape in zip(self.states, self.tapes, strict=True):
            if isinstance(self.kernel, Fallible):
                self.kernel.inspect(self.model, self.graph, state.memory)
            self.layout.inspect(tape)

    def freeze(self) -> None:
        """End whatever chains learn in a warmup."""
        for state in self.states:
            if isinstance(self.kernel, Adaptive):
                self.kernel.freeze(state.memory)

    def erase(self) -> None:
        """Begin a new recording on the same tapes."""
        self.tapes = [self.layout.erase_open(tape) for tape in self.tapes]
        for tape in self.tapes:
            tape.counters[:] = 0, 0, 0, 1 if self.layout.batches else NEVER
            tape.best[:] = -np.inf
            for sums in (tape.open_batch, tape.recent, tape.total):
                sums[:] = 0

    # ---- what there is

    def released(self) -> list[tuple[Array, Tape]]:
        """Return state and tape of each chain, sites in the model's order."""
        bundles = zip(self.states, self.tapes, self.sizes, strict=True)
        return [pair for state, tape, size in bundles for pair in self.form.release(state, tape, size)]

    def plan(self, warmup: int | None) -> Plan:
        """Return everything that decides the numbers."""
        return make_plan(
            self.graph,
            self.kernel,
            self.scan,
            self.layout,
            form=self.form.name,
            chains=self.chains,
            thin=1,
            warmup=warmup,
            entropy=self.entropy,
            start=start_text(self.begin),
        )

    # ---- other states, another model

    def put(self, start: Any, epoch: int) -> None:
        """Put chains at given states, with new streams; ``epoch`` numbers such changes."""
        starts = start_states(self.model, self.graph, self.chains, start, self.entropy)
        self.states = self._place(starts, range(epoch * self.chains, (epoch + 1) * self.chains))
        self.prepare()
        self.freeze()

    def reweight(self, model: Model, epoch: int) -> None:
        """Go on in another model of the same sites; ``epoch`` numbers such changes.

        Chains keep states and streams unless they have to be laid out in another way.
        """
        if not np.array_equal(model.cards, self.model.cards):
            raise ArgumentError("Chains can only go on in a model of the same sites with as many states each.")
        form, sizes, before = self.form, self.sizes, self._arrangement()
        self.model = model
        self.graph, self.kernel, self.layout, self.scan, self.form = self._lay_out(model, None)
        if self._arrangement() != before:
            codes = form.codes(self.states, sizes)
            self.states = self._place([*codes], range(epoch * self.chains, (epoch + 1) * self.chains))
            self.tapes = self._blank()
        elif isinstance(self.form, PlainLayout):
            self.states = [self._refreshed(state) for state in self.states]
        self.prepare()

    def _arrangement(self) -> tuple[Any, ...]:
        """Return what decides how states are laid out; orders follow from the structure of the model."""
        plain = isinstance(self.form, PlainLayout)
        structure = None if plain else id(self.graph.shared)
        return type(self.form), self.form.name, self.form.width, self.graph.kind, structure

    def _refreshed(self, state: State) -> State:
        """Drop what the memory of a chain says about weights."""
        if is_rebuildable(state.memory):
            return state._replace(memory=self.kernel.memory(self.graph, state.rng))
        if isinstance(self.kernel, Stateful):
            self.kernel.forget(state.memory)
        return state
