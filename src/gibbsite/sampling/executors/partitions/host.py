"""A worker's share of a model, and what it does with it: move its sites, exchange states, record.

Arrays of states and of sums have room for all positions, but only what a host owns or sees is ever written,
so the rest takes no memory. What is recorded is kept for the host's own cells alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats32, Ints
from gibbsite._numba.jit import clock
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import Team
from gibbsite.sampling.batched_layouts import PackedLayout
from gibbsite.sampling.executor import Threads
from gibbsite.sampling.executors.partitions.draws import Demand
from gibbsite.sampling.executors.partitions.halo import Halo
from gibbsite.sampling.executors.partitions.links import Link
from gibbsite.sampling.executors.partitions.slices import move_stretches, record_stretch, tape_of_cells
from gibbsite.sampling.stored_tuples import flatten, restore
from gibbsite.sampling.sweep import State, Writer, find_writer
from gibbsite.sampling.tape import ADDED, BATCHES, COUNT, DRAWS, FILL, LENGTH, Tape, pulse_due

Arrays = dict[str, Array]


class Stretch(NamedTuple):
    """Cells that stand side by side: of positions ``low`` to ``high``, and of one plane of a tape."""

    low: int
    high: int
    plane: int

    def cells(self, n_sites: int) -> slice:
        """Return where the cells stand on the tape of a chain."""
        return slice(self.plane * n_sites + self.low, self.plane * n_sites + self.high)


def find_stretches(ranges: Ints, planes: int) -> list[Stretch]:
    """Return the ranges of positions that a host owns, plane by plane.

    Examples
    --------
    >>> find_stretches(np.array([[0, 2], [5, 8]]), 1)
    [Stretch(low=0, high=2, plane=0), Stretch(low=5, high=8, plane=0)]
    """
    return [Stretch(low, high, plane) for low, high in ranges.tolist() for plane in range(planes)]


def count_planes(layout: PackedLayout, tape: Tape) -> int:
    """Return how many cells of a tape a site has."""
    return int(tape.n_marginal // max(layout.graph.n_sites, 1))


def send_chain(state: State, tape: Tape, stretches: Sequence[Stretch], n_sites: int) -> Arrays:
    """Return what a host needs of a chain: the whole state, and what is recorded of its own cells."""
    found = dict(flatten("state", state)) | {"counters": tape.counters}
    if tape.counters[DRAWS]:
        for s, stretch in enumerate(stretches):
            found |= {f"{s}/{name}": part for name, part in _parts(tape, stretch.cells(n_sites)).items()}
    return found


def _parts(tape: Tape, cells: slice) -> Arrays:
    """Return some cells of a tape by name: views."""
    return {
        "open": tape.open_batch[cells],
        "recent": tape.recent[cells],
        "total": tape.total[cells],
        "trace": tape.trace[:, cells],
    }


def kept_batches(before: Ints, now: Ints) -> int:
    """Return how many batches are as they were, by the counters of a tape then and now."""
    return int(before[BATCHES]) if now[LENGTH] == before[LENGTH] else 0


def new_cells(tape: Tape, cells: slice, before: Ints, now: Ints) -> list[Array]:
    """Return what has changed of some cells of a tape: views, in the order in which they travel."""
    if now[DRAWS] == before[DRAWS]:
        return []
    found = [tape.total[cells], tape.trace[kept_batches(before, now) : now[BATCHES], cells]]
    if now[FILL]:  # they are zero otherwise
        found += [tape.open_batch[cells], tape.recent[cells]]
    return [part for part in found if part.size]


def carried(layout: PackedLayout, memory: Any, ranges: Ints) -> list[Array]:
    """Return what a chain carries for the positions of a host besides states and records: views."""
    found = [
        layout.update.carried(layout.packed, memory, segment, low, high)
        for segment, (low, high) in enumerate(ranges.tolist())
        if low < high
    ]
    return [part for part in found if part.size]


def own_states(x: Array, ranges: Ints) -> list[Array]:
    """Return the states of the positions of a host: views."""
    return [x[low:high] for low, high in ranges.tolist() if low < high]


class Standing(NamedTuple):
    """How far the tape of a chain is: its counters; of how many draws states are kept for log-potentials."""

    counters: Ints
    pulses: int


@dataclass
class _Chain:
    """The part of a chain that a host sees: its state, and its own ranges of the tape.

    ``counting`` counts draws; ``fetched`` has the counters of the moment when the client last had everything. What
    it needs since then is in ``draws``, of every draw, and in ``pulses``, of those whose log-potentials are kept.
    """

    state: State
    sums: Floats32
    counters: Ints
    fetched: Ints
    counting: Writer
    tapes: list[Tape]
    recordings: list[Writer]
    draws: list[Array] = field(default_factory=list)
    pulses: list[Array] = field(default_factory=list)


class Host:
    """A share of a model.

    Parameters
    ----------
    layout, kernel, schedule
        The layout of the chains, and the parameters of the kernel as compiled code sees it.
    halo : Halo
        What the host owns and exchanges.
    links : dict
        Connections to the other hosts.
    threads : int
        How many threads share its work.
    """

    def __init__(
        self, layout: PackedLayout, kernel: Any, schedule: Any, halo: Halo, links: dict[int, Link], threads: int
    ) -> None:
        self.layout, self.kernel, self.schedule = layout, kernel, schedule
        self.halo, self.links = halo, links
        self.arrays = layout.arrays(1)
        self.members = max(1, min(threads, layout.most_members))
        self.chains: list[_Chain] = []
        self.blank = layout.tape(1)
        self.stretches = find_stretches(halo.ranges, count_planes(layout, self.blank))
        self.demand = Demand.of(layout)
        self.always, self.sometimes = self.demand.always(halo.ranges), self.demand.sometimes(halo.ranges)
        self._room = [
            {other: np.empty(at.size, layout.graph.state_dtype) for other, at in color.items()}
            for color in halo.received
        ]

    def load(self, chains: Sequence[Arrays]) -> None:
        """Take over chains as they stand."""
        n = self.layout.graph.n_sites
        self.chains = []
        for arrays in chains:
            start = self.layout.start([np.zeros(n, self.layout.graph.state_dtype)], [stream(0, 0)])
            state = restore("state", start, arrays)
            sums = np.zeros(self.blank.recent.size, np.float32)
            tapes, recordings = [], []
            for s, stretch in enumerate(self.stretches):
                cells = stretch.cells(n)
                own = tape_of_cells(
                    self.blank, stretch.high - stretch.low, sums[cells], arrays["counters"].copy(), self.blank.pulse[:0]
                )
                for name, part in _parts(own, slice(None)).items():
                    given = arrays.get(f"{s}/{name}")
                    if given is not None:
                        part[: len(given)] = given
                tapes.append(own)
                recordings.append(find_writer(own, state.x, state.cond, keep=True))
            counters, told = arrays["counters"].copy(), arrays["counters"].copy()
            empty = tape_of_cells(self.blank, 0, sums[:0], counters, self.blank.pulse[:0])
            counting = find_writer(empty, state.x, state.cond, keep=True)
            self.chains.append(_Chain(state, sums, counters, told, counting, tapes, recordings))

    def stage(self) -> list[tuple[int, int]]:
        """Return how far the chains are: sweeps and draws."""
        return [(int(chain.state.position[1]), int(chain.counters[DRAWS])) for chain in self.chains]

    def move(self, rounds: int, sweeps: int, keep: bool) -> float:
        """Make ``rounds`` times ``sweeps`` sweeps of all chains; record a draw after each round if ``keep``.

        Return the seconds that it took.
        """
        began = clock()
        with Threads(self.members) as executor:
            for chain in self.chains:
                if not rounds:
                    self._move(chain, 0, np.zeros((1, 2), np.int64), False, executor)  # compiled, at least
                for _ in range(rounds):
                    for sweep in range(sweeps):
                        put = keep and chain.sums.size > 0 and sweep == sweeps - 1
                        self._sweep(chain, put, executor)
                    if keep:
                        self._record(chain, executor)
        return clock() - began

    def _sweep(self, chain: _Chain, put: bool, executor: Threads) -> None:
        """Move all own sites of a chain, color by color; what others need goes out first."""
        x = chain.state.x
        turn = int(chain.state.position[1])
        for color, (outer, inner) in enumerate(zip(self.halo.outer, self.halo.inner, strict=True)):
            self._move(chain, turn, outer, put, executor)
            for other, at in self.halo.sent[color].items():
                self.links[other].send(x[at])
            self._move(chain, turn, inner, put, executor)
            for other, at in self.halo.received[color].items():
                x[at] = self.links[other].receive(self._room[color][other])
        chain.state.position[1] = turn + 1

    def _move(self, chain: _Chain, turn: int, ranges: Ints, put: bool, executor: Threads) -> None:
        state, gate = chain.state, np.zeros(1, np.int64)

        def move(member: int) -> None:
            move_stretches(
                self.kernel,
                self.arrays,
                self.schedule,
                state.memory,
                state.x,
                state.order,
                state.rng,
                turn,
                ranges,
                chain.sums,
                put,
                Team(member, self.members, gate),
            )

        executor.map(move, range(self.members if len(ranges) else 0))

    def _record(self, chain: _Chain, executor: Threads) -> None:
        """Record a draw of all own cells; keep own states that the client needs."""
        x = chain.state.x
        if self.demand.each:
            chain.draws.append(self.always.take(x))
        if self.demand.pulse and pulse_due(chain.counters):
            chain.pulses.append(self.sometimes.take(x))
        added, binary = chain.sums.size > 0, count_planes(self.layout, self.blank) == 1

        def record(s: int) -> None:
            stretch = self.stretches[s]
            seen = x[stretch.low : stretch.high]
            if not added and not binary:
                seen = (seen == stretch.plane).astype(x.dtype)
            record_stretch(chain.recordings[s], seen, 0.0, ADDED if added else COUNT)

        executor.map(record, range(len(self.stretches)))
        record_stretch(chain.counting, x[:0], 0.0, COUNT)

    def standing(self) -> list[Standing]:
        """Return how far the tapes of the chains are."""
        return [Standing(chain.counters.copy(), len(chain.pulses)) for chain in self.chains]

    def news(self) -> list[Array]:
        """Return what the client has not had yet, in the order of :meth:`.joining.Room.pieces`.

        They are views, which are valid until the next move.
        """
        found: list[Array] = []
        for chain in self.chains:
            found += own_states(chain.state.x, self.halo.ranges)
            for tape in chain.tapes:
                found += new_cells(tape, slice(None), chain.fetched, chain.counters)
            found += carried(self.layout, chain.state.memory, self.halo.ranges)
            found += [states for states in (*chain.draws, *chain.pulses) if states.size]
            chain.fetched, chain.draws, chain.pulses = chain.counters.copy(), [], []
        return found

    def close(self) -> None:
        """End all connections."""
        for link in self.links.values():
            link.close()
