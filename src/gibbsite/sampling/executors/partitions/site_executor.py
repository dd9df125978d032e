"""Shares of a model on the workers of a Dask cluster.

Tasks open a host on every worker and move it, block by block; between blocks hosts stay where they are with
all that they have recorded, and the states at borders travel from worker to worker. After some seconds, and
whenever it is needed, the client brings everything here, by connections of its own to the hosts. When a
worker is lost, hosts are opened anew from there, and make again what was made since then.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite.kernels.protocols import Replicated
from gibbsite.sampling.batched_layouts import PackedLayout
from gibbsite.sampling.executor import Bundles, Executor
from gibbsite.sampling.executors.partitions.draws import Demand
from gibbsite.sampling.executors.partitions.halo import host_ranges
from gibbsite.sampling.executors.partitions.host import Standing, count_planes, find_stretches, send_chain
from gibbsite.sampling.executors.partitions.joining import Room, check_layout
from gibbsite.sampling.executors.partitions.links import Link, LinkLost
from gibbsite.sampling.executors.partitions.meeting import call_all
from gibbsite.sampling.executors.partitions.rung_executor import RungExecutor
from gibbsite.sampling.executors.partitions.serving import Given, checksum, forget_host, give_host, move_host, open_host
from gibbsite.sampling.executors.partitions.together import TogetherExecutor
from gibbsite.sampling.executors.remote import MOST_ATTEMPTS, lost_too_often
from gibbsite.sampling.executors.versions import installed_versions
from gibbsite.sampling.layout import ChainLayout
from gibbsite.sampling.tape import DRAWS

_TOKEN = 32  # bytes that hosts of a run know each other by
_SHORT = 1 << 16  # bytes of a row that is not worth a message of its own
# What hosts have made comes here when that takes at most this share of the time that they have been at it.
_SHARE = 0.2
# Bytes of draws that hosts keep for what the client records: they come here before there are more.
_KEPT_BYTES = 1 << 28


class _Hosts(NamedTuple):
    """Where the hosts are: workers, listening sockets, what each owns (hosts, segments, 2), and connections to them."""

    opening: str
    workers: list[str]
    addresses: list[tuple[str, int]]
    ranges: Ints
    links: list[Link] | None

    def close(self) -> None:
        for link in self.links or ():
            link.close()


class _Step(NamedTuple):
    """A block of sweeps of all chains."""

    rounds: int
    sweeps: int
    keep: bool


class PartitionExecutor(TogetherExecutor):
    """Workers of a Dask cluster, each of which moves a share of the sites of every chain.

    Attributes
    ----------
    steps, made
        Blocks since everything was here; how many of them the present hosts have made.
    """

    def __init__(self, client: Any, partitions: int) -> None:
        super().__init__(client)
        self.partitions = partitions
        self.hosts: _Hosts | None = None
        self.steps: list[_Step] = []
        self.made = 0
        self.before: list[tuple[Ints, Ints]] = []  # counters and positions, when everything was here
        self.left = self.bringing = 0.0  # when that was; the seconds that it took
        self.draws = 0  # recorded since then
        self.standing: list[Standing] = []
        self.reachable = True
        self.by_rungs: RungExecutor | None = None

    def employ(self, recipe: Any, say: Callable[[str], None], layout: ChainLayout | None = None) -> Executor:
        """Share out the sites of each chain, or its replicas, where it has some."""
        if isinstance(recipe.kernel, Replicated):
            self.by_rungs = RungExecutor(self.client, self.partitions)
            return self.by_rungs.employ(recipe, say, layout)
        if layout is not None:
            check_layout(layout)
        return super().employ(recipe, say, layout)

    @property
    def away(self) -> bool:  # type: ignore[override]
        """Whether states and tapes are with workers."""
        return bool(self.steps)

    def most_draws(self, chains: Bundles) -> int:
        """As many as hosts have room for, where the client needs their states."""
        layout = check_layout(chains.layout)
        each = Demand.of(layout).size(layout.graph.n_sites) * len(chains.states)
        return max(1, _KEPT_BYTES // max(each, 1))

    def advance(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains, each of them on all workers."""
        n = check_layout(chains.layout).graph.n_sites
        if length % n or any(state.position[0] for state in chains.states):
            self.bring(chains)  # hosts make whole sweeps; what is left of a last one is made here
            self._close()
            return chains.threads.advance(chains, rounds, length, keep)
        self._await_workers()
        if self.hosts is not None and len(self.hosts.workers) < min(self.partitions, len(self.workers())):
            self.bring(chains)
            self._close()  # there are more workers than before
        if not self.steps:
            self.before = [
                (tape.counters.copy(), state.position.copy())
                for state, tape in zip(chains.states, chains.tapes, strict=True)
            ]
            self.left, self.draws = time.monotonic(), 0
        self.steps.append(_Step(rounds, length // n, keep))
        self.draws += rounds * keep
        self.blocks += 1
        seconds = self._insist(chains, bring=False)
        # after every block of full length, unless that takes too long
        full = self.draws >= self.most_draws(chains)
        if full or time.monotonic() - self.left >= max(0.5 * self.block_seconds, self.bringing / _SHARE):
            self.bring(chains)
        return seconds

    def bring(self, chains: Bundles) -> None:
        """Bring states and tapes here."""
        if self.steps:
            self._insist(chains, bring=True)

    def _insist(self, chains: Bundles, bring: bool) -> float:
        """Have all steps made, and brought here if asked; return the seconds of the last one.

        What is lost with a worker is made again.
        """
        for _ in range(MOST_ATTEMPTS):
            seconds = self._catch_up(chains)
            if seconds is not None and (not bring or self._fetch(chains)):
                return seconds
            self._go_back(chains)
            self.say("A worker was lost; what was made since the last block came here is made again.")
        self.steps = []
        raise lost_too_often(MOST_ATTEMPTS)

    def _go_back(self, chains: Bundles) -> None:
        """Go back to where everything was here."""
        self._close()
        self.made = 0
        for state, tape, (counters, position) in zip(chains.states, chains.tapes, self.before, strict=True):
            tape.counters[:], state.position[:] = counters, position

    def _catch_up(self, chains: Bundles) -> float | None:
        """Make the steps that have not been made yet; return nothing if a worker was lost."""
        seconds = 0.0
        while self.made < len(self.steps):
            self._await_workers()
            step = self.steps[self.made]
            if self.hosts is None:
                self.hosts = self._open(check_layout(chains.layout), chains)
            hosts = self.hosts
            if hosts is None:
                return None
            stage = [
                (int(state.position[1]), int(tape.counters[DRAWS]))
                for state, tape in zip(chains.states, chains.tapes, strict=True)
            ]
            given = (self.run, hosts.opening, hosts.addresses, hosts.links is not None, stage, *step)
            moved = self.on_each("gibbs-partition", hosts.workers, move_host, [given] * len(hosts.workers))
            if moved is None or any(each is None for each in moved):
                return None
            self.standing = moved[0].standing
            seconds = max(each.seconds for each in moved)
            for state, tape, standing in zip(chains.states, chains.tapes, self.standing, strict=True):
                state.position[1] += step.rounds * step.sweeps
                tape.counters[:] = standing.counters
            self.made += 1
        return seconds

    def _fetch(self, chains: Bundles) -> bool:
        """Bring here what hosts have made; return whether it came whole."""
        began = time.monotonic()
        layout, hosts = check_layout(chains.layout), self.hosts
        assert hosts is not None
        rooms = [
            Room.beside(layout, state, tape, hosts.ranges, counters, standing)
            for state, tape, (counters, _), standing in zip(
                chains.states, chains.tapes, self.before, self.standing, strict=True
            )
        ]
        pieces = [
            [piece for room in rooms for piece in room.pieces(layout, hosts.ranges, k)]
            for k in range(len(hosts.workers))
        ]
        told = self._receive(hosts, pieces)
        if told is None:
            return False
        for worker, (found, said) in zip(hosts.workers, told, strict=True):
            if found != said:
                self.say(f"Worker {worker} returned wrong numbers; it gets no more work.")
                self.drop(worker)
                return False
        for number, room in enumerate(rooms):
            moved = room.move_in(layout, hosts.ranges, chains.states[number])
            chains.states[number], chains.tapes[number] = moved
        self.steps, self.made, self.bringing = [], 0, time.monotonic() - began
        return True

    def _receive(self, hosts: _Hosts, pieces: list[list[Array]]) -> list[tuple[int, int]] | None:
        """Fill pieces with what hosts send; return checksums, found and said by each, or nothing."""
        direct = hosts.links is not None
        given = [(self.run, hosts.opening, len(hosts.workers), direct)] * len(hosts.workers)
        with ThreadPoolExecutor(len(hosts.workers)) as pool:
            coming = [pool.submit(_fill, *each) for each in zip(hosts.links or (), pieces, strict=direct)]
            told: list[Given] = []
            try:
                found = self.on_each("gibbs-bring", hosts.workers, give_host, given)
                told = [each for each in found or () if each is not None]
            finally:
                if len(told) < len(hosts.workers):
                    hosts.close()  # so that no host waits for what does not come
            if len(told) < len(hosts.workers):
                return None
            try:
                return [future.result() for future in coming] if direct else _copy(pieces, told)
            except LinkLost:
                return None

    def _open(self, layout: PackedLayout, chains: Bundles) -> _Hosts | None:
        """Open a host on as many workers as there are partitions, or on all of them."""
        workers = sorted(self.workers())[: self.partitions]
        if not workers:  # all of them are gone
            return None
        ranges = host_ranges(layout.packed, self.partitions, len(workers))
        opening, token = secrets.token_hex(8), secrets.token_bytes(_TOKEN)
        planes = count_planes(layout, chains.tapes[0])
        sent = [
            [
                send_chain(state, tape, find_stretches(own, planes), layout.graph.n_sites)
                for state, tape in zip(chains.states, chains.tapes, strict=True)
            ]
            for own in ranges
        ]
        asked = [
            (installed_versions(), self.run, opening, self.sent, self.partitions, len(workers), number, token)
            for number in range(len(workers))
        ]
        # not by way of the scheduler, if that can be: what was recorded of a large model is large
        given = [None if self.reachable else each for each in sent]
        arguments = [(*each, chain) for each, chain in zip(asked, given, strict=True)]
        addresses = self.on_each("gibbs-open", workers, open_host, arguments)
        if addresses is None:
            return None
        links = call_all(addresses, token) if self.reachable else None
        if links is None and self._is_missing(workers):
            return None
        if links is None and self.reachable:
            self.reachable = False
            self.say("Workers cannot be reached from here; everything goes by way of the scheduler.")
            return self._open(layout, chains)
        for link, own in zip(links or (), sent, strict=links is not None):
            link.send_arrays(own)
        return _Hosts(opening, workers, addresses, ranges, links)

    def _close(self) -> None:
        """Let workers forget their shares."""
        if self.hosts is not None:
            self.tell_to_forget(forget_host, self.hosts.workers, self.hosts.opening)
            self.hosts.close()
        self.hosts = None

    def dismiss(self) -> None:
        """Let workers forget the run."""
        if self.by_rungs is not None:
            self.by_rungs.dismiss()
        self._close()
        super().dismiss()


def _fill(link: Link, pieces: list[Array]) -> tuple[int, int]:
    """Fill pieces with what comes; return its checksum, and the one that was sent."""
    found = 0
    for piece in pieces:
        if piece.ndim == 2 and piece[0].nbytes < _SHORT:  # many short rows at once
            rows = link.receive(np.empty(piece.shape, piece.dtype))
            piece[:] = rows
            found = checksum(rows, found)
        else:
            for row in piece if piece.ndim == 2 else (piece,):
                found = checksum(link.receive(row), found)
    return found, int(link.receive(np.empty(1, np.int64))[0])


def _copy(pieces: list[list[Array]], told: Sequence[Given]) -> list[tuple[int, int]]:
    """Do the same with what has come by way of the scheduler."""
    found = []
    for to, given in zip(pieces, told, strict=True):
        sum_ = 0
        for piece, values in zip(to, given.pieces, strict=True):
            piece[:] = values
            sum_ = checksum(values, sum_)
        found.append((sum_, given.checksum))
    return found
