"""What hosts return, put together: the state and the tape that one process would have."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import IncompatibleError
from gibbsite.run.chain import State
from gibbsite.run.chain_layout import ChainLayout, PackedLayout
from gibbsite.run.stretch import record_stretch, state_potential, tape_of_cells
from gibbsite.run.tape import COUNT, DRAWS, Tape, pulse_due, recording_on
from gibbsite.scale.partitions.host import (
    Standing,
    carried,
    count_planes,
    find_stretches,
    kept_batches,
    new_cells,
)

Longs = NDArray[np.int64]


def check_form(form: ChainLayout) -> PackedLayout:
    """Refuse chains that cannot be shared out: those that move site by site, or record other things."""
    if not isinstance(form, PackedLayout) or not form.way.divisible:
        raise IncompatibleError(
            f"A run can be partitioned where many sites of a chain move at once, and this one has another "
            f"layout ({form.name!r}): take Gibbs() or HerdedGibbs() with Chromatic(), fewer than 16 chains, "
            "and a binary model or, with Gibbs(), a Potts lattice; or leave out the partitions."
        )
    if not form.layout.only_marginals or not form.layout.n_marginal:
        raise IncompatibleError(
            "A partitioned run records marginals only, because what depends on all sites at once would have "
            "to be computed from the whole state of every draw; leave out the other recorders, or the "
            "partitions."
        )
    return form


@dataclass
class Room:
    """Room for what hosts have made of a chain: beside the chain as it was, which stays until all is here.

    Attributes
    ----------
    x, memory, tape
        What the state, what the chain carries besides, and the tape become. The counters of the tape are
        those of before.
    pulses : list of arrays
        For each host, its states at the moments of which log-potentials are kept.
    before, now : int64 (4,)
        Counters of the tape.
    """

    x: NDArray[Any]
    memory: Any
    tape: Tape
    pulses: list[NDArray[Any]]
    before: Longs
    now: Longs

    @classmethod
    def beside(cls, state: State, tape: Tape, ranges: Longs, before: Longs, standing: Standing) -> Room:
        """Make room for what hosts with these ranges have made of a chain since some counters."""
        sizes = (ranges[:, :, 1] - ranges[:, :, 0]).sum(axis=1).tolist()
        pulses = [np.empty((standing.pulses, size), state.x.dtype) for size in sizes]
        now = standing.counters
        fresh = tape._replace(counters=before.copy(), pulse=tape.pulse.copy())
        if now[DRAWS] > before[DRAWS]:
            # zeros, of which the system makes memory when it is written to
            fresh = fresh._replace(
                open_batch=np.zeros(tape.open_batch.shape),
                recent=np.zeros(tape.recent.shape, tape.recent.dtype),
                total=np.zeros(tape.total.shape),
                trace=np.zeros(tape.trace.shape, tape.trace.dtype),
            )
            kept = kept_batches(before, now)
            fresh.trace[:kept] = tape.trace[:kept]
        return cls(state.x.copy(), copy.deepcopy(state.memory), fresh, pulses, before, now)

    def pieces(self, form: PackedLayout, ranges: Longs, host: int) -> list[NDArray[Any]]:
        """Return where the pieces belong that a host sends (:meth:`.host.Host.news`): views."""
        n_sites, stretches = form.graph.n_sites, find_stretches(ranges[host], count_planes(form, self.tape))
        found: list[NDArray[Any]] = []
        for stretch in stretches:
            if stretch.plane == 0 and stretch.low < stretch.high:
                found.append(self.x[stretch.low : stretch.high])
            found += new_cells(self.tape, stretch.cells(n_sites), self.before, self.now)
        found += carried(form, self.memory, ranges[host])
        return found + [states for states in self.pulses[host] if states.size]

    def move_in(self, form: PackedLayout, ranges: Longs, state: State) -> tuple[State, Tape]:
        """Return state and tape, with draws counted and log-potentials noted."""
        state = state._replace(x=self.x, memory=self.memory)
        _replay(form, ranges, self.pulses, state, self.tape, int(self.now[DRAWS] - self.before[DRAWS]))
        return state, self.tape


def _replay(
    form: PackedLayout, ranges: Longs, pulses: Sequence[NDArray[Any]], state: State, tape: Tape, rounds: int
) -> None:
    """Count the draws, and note log-potentials of the states that hosts have kept for that."""
    bare = tape_of_cells(tape, 0, tape.recent[:0], tape.counters, tape.pulse)
    recording = recording_on(bare, state.x, state.cond, keep=True)
    arrays, x = form.arrays(1), np.empty_like(state.x)
    seen = 0
    for _ in range(rounds):
        now = 0.0
        if tape.pulse.size and pulse_due(tape.counters):
            for own, kept in zip(ranges, pulses, strict=True):
                at = 0
                for low, high in own.tolist():
                    x[low:high] = kept[seen, at : at + high - low]
                    at += high - low
            now = state_potential(arrays, x)
            seen += 1
        record_stretch(recording, state.x[:0], now, COUNT)
