"""What hosts return, put together: the state and the tape that one process would have."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite._common.wording import argument, part
from gibbsite.errors import IncompatibleError
from gibbsite.sampling.batched_layouts import LEAST_SITES, PackedLayout
from gibbsite.sampling.executors.partitions.draws import Demand, rest_of
from gibbsite.sampling.executors.partitions.host import (
    Standing,
    carried,
    count_planes,
    find_stretches,
    kept_batches,
    new_cells,
    own_states,
)
from gibbsite.sampling.executors.partitions.slices import record_stretch, state_potential
from gibbsite.sampling.layout import LEAST_CHAINS, LEAST_COLORED, ChainLayout
from gibbsite.sampling.sweep import EVERY_DRAW, State, find_writer
from gibbsite.sampling.tape import COUNT, DRAWS, Tape, pulse_due


def check_layout(layout: ChainLayout) -> PackedLayout:
    """Refuse chains that cannot be shared out: those that move site by site."""
    scan = getattr(layout, "scan", None)
    sites = layout.graph.n_sites
    if sites < 2 * LEAST_SITES:
        raise IncompatibleError(
            f"The model has {sites:,} sites, too few for a partitioned run, which takes some {LEAST_SITES} "
            f"sites of one color that move at once; leave out {argument('partitions')}."
        )
    if scan is not None and not scan.by_color and sites < LEAST_COLORED:
        raise IncompatibleError(
            f"A run can be partitioned where many sites of a chain move at once, and this one goes site by "
            f"site: without a scan, models of fewer than {LEAST_COLORED:,} sites do, and this one has "
            f"{sites:,}. Give {argument('scan')} as {part('Chromatic')}, or leave out "
            f"{argument('partitions')}."
        )
    if not isinstance(layout, PackedLayout) or not layout.update.divisible:
        raise IncompatibleError(
            f"A run can be partitioned where many sites of a chain move at once, and this one has another "
            f"layout ({layout.name!r}). It takes {part('Gibbs')} or {part('HerdedGibbs')}, no scan or "
            f"{part('Chromatic')}, fewer than {LEAST_CHAINS} chains, some {LEAST_SITES} sites of one color, "
            f"and a model in memory that is binary or, with {part('Gibbs')}, a Potts lattice; or leave out "
            f"{argument('partitions')}."
        )
    return layout


@dataclass
class Room:
    """Room for what hosts have made of a chain: beside the chain as it was, which stays until all is here.

    Attributes
    ----------
    x, memory, tape
        What the state, what the chain carries besides, and the tape become. The counters of the tape are
        those of before.
    draws, pulses : list of arrays
        What each host has kept of every draw, and of those whose log-potentials are kept.
    before, now : int64 (4,)
        Counters of the tape.
    """

    x: Array
    memory: Any
    tape: Tape
    demand: Demand
    draws: list[Array]
    pulses: list[Array]
    before: Ints
    now: Ints

    @classmethod
    def beside(
        cls, layout: PackedLayout, state: State, tape: Tape, ranges: Ints, before: Ints, standing: Standing
    ) -> Room:
        """Make room for what hosts with these ranges have made of a chain since some counters."""
        now, demand = standing.counters, Demand.of(layout)
        new = int(now[DRAWS] - before[DRAWS])
        draws = [demand.always(own).room(new if demand.each else 0) for own in ranges]
        pulses = [demand.sometimes(own).room(standing.pulses) for own in ranges]
        fresh = tape._replace(
            counters=before.copy(), pulse=tape.pulse.copy(), best=tape.best.copy(), best_x=tape.best_x.copy()
        )
        if new:
            # zeros, of which the system makes memory when it is written to
            fresh = fresh._replace(
                open_batch=np.zeros(tape.open_batch.shape),
                recent=np.zeros(tape.recent.shape, tape.recent.dtype),
                total=np.zeros(tape.total.shape),
                trace=np.zeros(tape.trace.shape, tape.trace.dtype),
                observed=copy.deepcopy(tape.observed),
            )
            kept, own = kept_batches(before, now), tape.n_marginal
            fresh.trace[:kept] = tape.trace[:kept]
            # what is not recorded by hosts goes on from where it is
            for name in ("open_batch", "total"):
                getattr(fresh, name)[own:] = getattr(tape, name)[own:]
            fresh.trace[:, own:] = tape.trace[:, own:]
        return cls(state.x.copy(), copy.deepcopy(state.memory), fresh, demand, draws, pulses, before, now)

    def pieces(self, layout: PackedLayout, ranges: Ints, host: int) -> list[Array]:
        """Return where the pieces belong that a host sends (:meth:`.host.Host.news`): views."""
        n_sites, stretches = layout.graph.n_sites, find_stretches(ranges[host], count_planes(layout, self.tape))
        found = own_states(self.x, ranges[host])
        for stretch in stretches:
            found += new_cells(self.tape, stretch.cells(n_sites), self.before, self.now)
        found += carried(layout, self.memory, ranges[host])
        return found + [states for kept in (self.draws, self.pulses) for states in kept[host] if states.size]

    def move_in(self, layout: PackedLayout, ranges: Ints, state: State) -> tuple[State, Tape]:
        """Return state and tape, with draws counted and everything recorded that hosts have not."""
        state = state._replace(x=self.x, memory=self.memory)
        self._replay(layout, ranges, state)
        return state, self.tape

    def _replay(self, layout: PackedLayout, ranges: Ints, state: State) -> None:
        """Count the draws, and record what depends on more sites than a host has."""
        demand, tape = self.demand, rest_of(self.tape)
        always, sometimes = [demand.always(own) for own in ranges], [demand.sometimes(own) for own in ranges]
        recording = find_writer(tape, state.x, state.cond, keep=True)
        arrays, x = layout.arrays(1), np.empty_like(state.x)
        pulses = 0
        for draw in range(int(self.now[DRAWS] - self.before[DRAWS])):
            due = tape.pulse.size > 0 and pulse_due(tape.counters)
            for host in range(len(ranges)):
                if demand.each:
                    always[host].put(self.draws[host][draw], x)
                if demand.pulse and due:
                    sometimes[host].put(self.pulses[host][pulses], x)
            pulses += due
            needed = due or recording.potential == EVERY_DRAW
            now = state_potential(arrays, x) if needed else 0.0
            record_stretch(recording, x if demand.each else x[:0], now, COUNT)
        self.tape.trace[:, self.tape.n_marginal :] = tape.trace
