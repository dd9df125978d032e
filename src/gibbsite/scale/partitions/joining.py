"""What hosts return, put together: the state and the tape that one process would have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import IncompatibleError
from gibbsite.kernel.at_once.keyed import HeatBath
from gibbsite.run.chain import State
from gibbsite.run.chain_layout import ChainLayout, PackedLayout
from gibbsite.run.stretch import record_stretch, state_potential, tape_of_cells
from gibbsite.run.tape import COUNT, Tape, pulse_due, recording_on
from gibbsite.scale.partitions.host import Arrays, count_planes, find_stretches, receive_chain

Longs = NDArray[np.int64]


def check_form(form: ChainLayout) -> PackedLayout:
    """Refuse chains that cannot be shared out: those that move site by site, or record other things."""
    if not isinstance(form, PackedLayout) or not isinstance(form.way, HeatBath):
        raise IncompatibleError(
            f"A run can be partitioned where many sites of a chain move at once, and this one has another "
            f"layout ({form.name!r}): take Gibbs() with Chromatic(), fewer than 16 chains, and a binary "
            "model or a Potts lattice; or leave out the partitions."
        )
    if not form.layout.only_marginals or not form.layout.n_marginal:
        raise IncompatibleError(
            "A partitioned run records marginals only; leave out the other recorders, or the partitions."
        )
    return form


def join_chain(
    form: PackedLayout,
    ranges: Longs,
    parts: Sequence[Arrays],
    state: State,
    tape: Tape,
    rounds: int,
    sweeps: int,
    keep: bool,
) -> None:
    """Write the parts of all hosts into the state and the tape of a chain that was moved so far."""
    n = form.graph.n_sites
    planes = count_planes(form, tape)
    for own, part in zip(ranges, parts, strict=True):
        receive_chain(part, state, tape, find_stretches(own, planes), n)
    state.position[1] += rounds * sweeps
    if keep:
        _replay(form, ranges, [part["pulses"] for part in parts], state, tape, rounds)


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
