"""Rungs of one tempered chain on several processes.

Every rung has separate random numbers, and swaps need only the U of all rungs. So processes move their own rungs,
exchange U, and each process makes all swaps with the same random numbers. If rungs have their own graphs, a
state is sent to another process when it is swapped across a border. If replicas are side by side, states stay and
betas are swapped: any process may then have the lane of the target, and it sends the state to the recorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints8, Ints32, Words64
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.lane_sums import LANES
from gibbsite._numba.random.generators import load, store
from gibbsite.kernels.base import Span, alone
from gibbsite.kernels.ensemble import Arrays, Chain, Ensemble, Message, Place, Share, to_all
from gibbsite.kernels.tempered.exchange import BEGUN, SWEEPS, TemperedMemory, exchange
from gibbsite.kernels.tempered.rungs import TemperedParameters, is_possible, move_rung
from gibbsite.kernels.tempered.side_by_side import SideParameters, SideWork, lanes_for, move_lanes, sum_up
from gibbsite.scans.base import period, refresh

# Number of lanes that stay together, because loops over fewer lanes take as long.
_GROUP = 2 * LANES


@compiled_loop
def _refresh(schedule: Any, order: Ints32, words: Words64) -> None:
    store(words, refresh(schedule, order, load(words)))


@compiled_loop
def _period(schedule: Any) -> int:
    return period(schedule)


@compiled_loop
def _exchange(
    gap: Floats, cut: Floats, memory: TemperedMemory, x: Array, possible: bool, by_place: bool, words: Words64
) -> None:
    store(words, exchange(gap, cut, memory, x, possible, by_place, load(words)))


@compiled_loop
def _move_rungs(
    parameters: TemperedParameters,
    arrays: Any,
    schedule: Any,
    memory: TemperedMemory,
    x: Array,
    span: Span,
    cond: Floats,
    keep: bool,
    rungs: Ints,
) -> None:
    """Make a sweep of some rungs."""
    for k in rungs:
        move_rung(parameters, arrays, schedule, memory, x, span, cond, keep, k, True)


@compiled_loop
def _possible(parameters: TemperedParameters, arrays: Any, memory: TemperedMemory, x: Array) -> bool:
    return is_possible(parameters, arrays, memory, x)


@compiled_loop
def _sweep_lanes(
    parameters: SideParameters,
    schedule: Any,
    work: SideWork,
    states: Ints8,
    counts: Ints,
    span: Span,
    target: int,
    cond: Floats,
    keep: bool,
) -> None:
    """Make a sweep of the lanes of one process; ``target`` is the lane whose log-odds are kept, if any."""
    sum_up(parameters, work, states, counts)
    move_lanes(parameters, schedule, work, states, span, target, cond, keep)


class _Rungs(Ensemble):
    """The common part of both layouts of shared rungs."""

    def bare(self, memory: TemperedMemory) -> TemperedMemory:
        """Return the memory without states and sums."""
        return memory._replace(states=memory.states[:0], sums=memory.sums[:0])


class _TemperedShare(Share):
    """The place of a process, and the chain, with counts of the states at its rungs if these are kept."""

    def __init__(self, place: Place, chain: Chain) -> None:
        self.place, self.host, self.hosts = place, place.host, len(place.bounds) - 1
        memory, cells = chain.memory, chain.memory.sums.shape[1]
        sums = np.zeros((memory.gain.size if cells else 0, cells))
        self.chain = chain._replace(memory=memory._replace(sums=sums))

    def refresh(self) -> None:
        """Draw a new order if the scan is random."""
        _refresh(self.place.schedule, self.chain.order, self.chain.words)

    def span(self, turn: int) -> Span:
        """Return the visits of sweep number ``turn``."""
        return Span(self.chain.order, np.uintp(0), np.uintp(_period(self.place.schedule)), turn, alone())

    def swap(self, possible: bool, by_place: bool) -> None:
        """Make the swaps that all processes make."""
        parameters, chain = self.place.parameters, self.chain
        _exchange(parameters.gap, parameters.cut, chain.memory, chain.x, possible, by_place, chain.words)


class SharedRungs(_Rungs):
    """An ensemble of ranges of rungs, where each rung has its own graph."""

    def __init__(self, rungs: int) -> None:
        self.most = rungs

    def cut(self, memory: TemperedMemory, low: int, high: int) -> Arrays:
        """Return the states of some rungs, without that of the target, and their generators."""
        rows = memory.states.reshape(self.most - 1, -1)
        states = rows[memory.place[low : min(high, self.most - 1)]]
        return {"states": states, "words": memory.words[low:high]}

    def join(
        self, memory: TemperedMemory, before: TemperedMemory, bounds: Sequence[int], owned: Sequence[Arrays]
    ) -> TemperedMemory:
        """Put the states of all rungs in their places; add up the counts of states."""
        rows = memory.states.reshape(self.most - 1, -1)
        sums = before.sums.copy()
        for host, own in enumerate(owned):
            low, high = bounds[host], bounds[host + 1]
            rows[memory.place[low : min(high, self.most - 1)]] = own["states"]
            memory.words[low:high] = own["words"]
            sums += own["sums"]
        return memory._replace(sums=sums)

    def share(self, place: Place, chain: Chain, own: Arrays) -> Share:
        """Return the share of a process."""
        return _RungShare(self, place, chain, own)


class _RungShare(_TemperedShare):
    def __init__(self, ensemble: SharedRungs, place: Place, chain: Chain, own: Arrays) -> None:
        super().__init__(place, chain)
        self.ensemble, self.bounds = ensemble, place.bounds
        self.low, self.high = self.bounds[self.host], self.bounds[self.host + 1]
        self.recorder = self.hosts - 1  # has the last rung
        self.possible = np.ones(1)
        memory, rungs = self.chain.memory, ensemble.most
        rows = memory.states.reshape(rungs - 1, -1)
        if memory.counts[BEGUN]:
            rows[memory.place[self.low : min(self.high, rungs - 1)]] = own["states"]
        else:
            rows[:] = chain.x
            memory.counts[BEGUN] = 1
        memory.words[self.low : self.high] = own["words"]

    def sweep(self, turn: int, put: bool, members: int, member: int) -> None:
        """Move every ``members``-th rung of this process."""
        chain = self.chain
        _move_rungs(
            self.place.parameters,
            self.place.arrays,
            self.place.schedule,
            chain.memory,
            chain.x,
            self.span(turn),
            chain.cond,
            put,
            np.arange(self.low + member, self.high, members),
        )

    def tell(self) -> list[Message]:
        """Return messages with U of all rungs, and with whether the target allows the state of the rung before it."""
        memory, x = self.chain.memory, self.chain.x
        knows = int(np.searchsorted(self.bounds, memory.gain.size - 2, side="right")) - 1
        if self.host == knows:
            self.possible[0] = _possible(self.place.parameters, self.place.arrays, memory, x)
        found = to_all(knows, self.hosts, self.possible)
        for host in range(self.hosts):
            found += to_all(host, self.hosts, memory.gain[self.bounds[host] : self.bounds[host + 1]])
        return found

    def meet(self, put: bool, show: bool) -> list[Message]:
        """Make the swaps; return messages with the states that cross a border in both directions."""
        memory = self.chain.memory
        before, parity = memory.label.copy(), int(memory.counts[SWEEPS]) % 2
        self.swap(bool(self.possible[0]), by_place=False)
        found = []
        for host in range(1, self.hosts):
            k = self.bounds[host] - 1  # the last rung of the process before
            if k % 2 == parity and memory.label[k] != before[k]:
                # each process has swapped places, so its own state is now in the place of the other rung
                found += [Message(host - 1, host, self._state(k + 1)), Message(host, host - 1, self._state(k))]
        return found

    def _state(self, k: int) -> Array:
        memory, x = self.chain.memory, self.chain.x
        if k == memory.gain.size - 1:
            return x
        row: Array = memory.states[memory.place[k] * x.size : (memory.place[k] + 1) * x.size]
        return row

    def own(self) -> Arrays:
        """Return states and generators of the rungs of this process, and the counts of states."""
        memory = self.chain.memory
        return {**self.ensemble.cut(memory, self.low, self.high), "sums": memory.sums}


class SharedLanes(_Rungs):
    """An ensemble of groups of lanes, for replicas side by side."""

    def __init__(self, rungs: int) -> None:
        self.lanes = lanes_for(rungs)
        self.most = -(-self.lanes // _GROUP)

    def first(self, bounds: Sequence[int]) -> list[int]:
        """Return the first lane of each share, and the end of the last share."""
        return [min(_GROUP * bound, self.lanes) for bound in bounds]

    def cut(self, memory: TemperedMemory, low: int, high: int) -> Arrays:
        """Return the states and the U of some groups of lanes."""
        columns = slice(*self.first([low, high]))
        states = memory.states.reshape(-1, self.lanes)[:, columns]
        return {"states": states.copy(), "gain": memory.work.gain[columns]}

    def join(
        self, memory: TemperedMemory, before: TemperedMemory, bounds: Sequence[int], owned: Sequence[Arrays]
    ) -> TemperedMemory:
        """Put the lanes of all shares side by side; add up the counts of states."""
        sums, first = before.sums.copy(), self.first(bounds)
        for host, own in enumerate(owned):
            columns = slice(first[host], first[host + 1])
            memory.states.reshape(-1, self.lanes)[:, columns] = own["states"]
            memory.work.gain[columns] = own["gain"]
            sums += own["sums"]
        return memory._replace(sums=sums)

    def share(self, place: Place, chain: Chain, own: Arrays) -> Share:
        """Return the share of a process."""
        return _LaneShare(self, place, chain, own)


class _LaneShare(_TemperedShare):
    """The lanes of one process, contiguous in arrays of their own."""

    def __init__(self, ensemble: SharedLanes, place: Place, chain: Chain, own: Arrays) -> None:
        super().__init__(place, chain)
        self.first, self.recorder = ensemble.first(place.bounds), 0
        self.low, self.high = self.first[self.host], self.first[self.host + 1]
        memory, lanes = self.chain.memory, self.high - self.low
        key = memory.work.key.reshape(2, -1)[:, self.low : self.high]
        self.work = SideWork(
            key=np.ascontiguousarray(key).ravel(),
            words=np.zeros(4 * lanes, np.uint32),
            odds=np.zeros(lanes),
            beta=np.zeros(lanes),
            gain=own["gain"].copy(),
            fresh=np.zeros(lanes, np.int8),
            state=np.zeros(chain.x.size, np.int8),
        )
        self.gain = np.zeros(ensemble.lanes)  # U of the lanes of all processes
        if memory.counts[BEGUN]:
            self.states = np.array(own["states"]).ravel()
            if self._owner() == self.host:
                self._columns()[:, self._target()] = chain.x
        else:
            self.states = np.repeat(chain.x, lanes)
            memory.counts[BEGUN] = 1

    def _columns(self) -> Ints8:
        return self.states.reshape(-1, self.high - self.low)

    def _owner(self) -> int:
        """Return the process that has the lane of the target."""
        place = self.chain.memory.place
        return int(np.searchsorted(self.first, place[-1], side="right")) - 1

    def _target(self) -> int:
        """Return the position of the target's lane among those of this process."""
        return int(self.chain.memory.place[-1]) - self.low

    def sweep(self, turn: int, put: bool, members: int, member: int) -> None:
        """Move the lanes of this process, on one thread."""
        if member:
            return
        chain, mine = self.chain, self._owner() == self.host
        betas = np.zeros(self.gain.size)
        betas[chain.memory.place] = self.place.parameters.betas
        self.work.beta[:] = betas[self.low : self.high]
        _sweep_lanes(
            self.place.parameters,
            self.place.schedule,
            self.work,
            self.states,
            chain.memory.counts,
            self.span(turn),
            self._target() if mine else 0,
            chain.cond,
            put and mine,
        )
        self.gain[self.low : self.high] = self.work.gain

    def tell(self) -> list[Message]:
        """Return messages with the U of all lanes."""
        pairs = zip(self.first, self.first[1:], strict=False)
        return [m for host, (a, b) in enumerate(pairs) for m in to_all(host, self.hosts, self.gain[a:b])]

    def meet(self, put: bool, show: bool) -> list[Message]:
        """Swap betas; return messages with conditionals and state of the target for the processes that need them."""
        chain, found = self.chain, []
        memory, had = chain.memory, self._owner()
        memory.gain[:] = self.gain[memory.place]
        if memory.sums.size:
            self._count()
        self.swap(possible=True, by_place=True)
        has = self._owner()
        if put:  # the next owner needs the conditionals, because some scans do not visit all sites in a sweep
            needed = {has, self.recorder} if show else {has}
            found += [Message(had, other, chain.cond) for other in sorted(needed - {had})]
        if show:
            if has == self.host:
                chain.x[:] = self._columns()[:, self._target()]
            if has != self.recorder:
                found.append(Message(has, self.recorder, chain.x))
        return found

    def _count(self) -> None:
        """Count the states at the rungs whose lanes this process has."""
        memory, columns = self.chain.memory, self._columns()
        for k, lane in enumerate(memory.place.tolist()):
            if self.low <= lane < self.high:
                memory.sums[k, self.place.parameters.cell + columns[:, lane - self.low]] += 1.0

    def own(self) -> Arrays:
        """Return the states and the U of the lanes of this process, and the counts of states."""
        return {"states": self._columns(), "gain": self.work.gain, "sums": self.chain.memory.sums}
