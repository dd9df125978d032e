"""Shares of a model on the workers of a Dask cluster.

Tasks open a host on every worker and move it, block by block; between blocks hosts stay where they are, and
the states at borders travel from worker to worker. At the end of a block the client has the whole state and
all that is recorded: when a worker is lost, hosts are opened anew from there, and make the block again.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.run.chain_layout import PackedLayout
from gibbsite.run.crew import Bundles, Threads
from gibbsite.run.recipe import Recipe
from gibbsite.run.tape import DRAWS
from gibbsite.scale.crew import MOST_ATTEMPTS
from gibbsite.scale.dask import LOOK, DaskCrew, allow_large_messages
from gibbsite.scale.partitions.halo import find_halo, host_ranges
from gibbsite.scale.partitions.host import Arrays, Host, Longs, count_planes, find_stretches, send_chain
from gibbsite.scale.partitions.joining import check_form, join_chain
from gibbsite.scale.partitions.links import LinkLost, connect, listen
from gibbsite.scale.segment import checksum, lay_out_run
from gibbsite.scale.versions import differences, installed_versions

_TOKEN = 32  # bytes that hosts of a run know each other by


class Moved(NamedTuple):
    """What a host returns: its part of each chain with a checksum, seconds, and itself; nothing if lost."""

    parts: list[Arrays]
    checksums: list[str]
    seconds: float
    worker: str


@dataclass
class _Opened:
    """A host that waits at its door until the others are there."""

    opening: str
    number: int
    host: Host
    door: socket.socket
    token: bytes

    def close(self) -> None:
        with suppress(OSError):  # not on every system
            self.door.shutdown(socket.SHUT_RDWR)  # whoever waits at the door goes on
        self.door.close()
        self.host.close()


_OPENED: dict[str, _Opened] = {}
_OPENING = Lock()


def open_host(
    versions: dict[str, str],
    run: str,
    opening: str,
    recipe: Recipe,
    parts: int,
    hosts: int,
    number: int,
    token: bytes,
    chains: Sequence[Arrays],
) -> tuple[str, int]:
    """Lay out the share of a worker, take over its chains, and return where the others can reach it."""
    from distributed import get_worker

    other = differences(versions)
    if other:
        raise ArgumentError(
            f"Worker {get_worker().address} has other versions than who asks it, and might give other "
            f"numbers: {other}. Install the same ones."
        )
    worker = lay_out_run(run, recipe)
    form = check_form(worker.form)
    ranges = host_ranges(form.arrays(1), parts, hosts)
    halo = find_halo(form.arrays(1), ranges, number)
    host = Host(form, worker.kernel, worker.schedule, halo, {}, int(get_worker().state.nthreads))
    host.load(chains)
    door = listen(urlsplit(str(get_worker().address)).hostname or "127.0.0.1")
    close_host(run)
    with _OPENING:
        _OPENED[run] = _Opened(opening, number, host, door, token)
    name = door.getsockname()
    return str(name[0]), int(name[1])


def move_host(
    run: str,
    opening: str,
    addresses: Sequence[tuple[str, int]],
    stage: list[tuple[int, int]],
    rounds: int,
    sweeps: int,
    keep: bool,
) -> Moved | None:
    """Move the share of a worker; return nothing if it is not there, or another one is lost."""
    from distributed import get_worker

    opened = _OPENED.get(run)
    if opened is None or opened.opening != opening or opened.host.stage() != stage:
        return None
    host = opened.host
    try:
        if not host.links:
            host.links = connect(opened.door, opened.number, addresses, opened.token)
        parts, seconds = host.move(rounds, sweeps, keep)
    except LinkLost:
        close_host(run)
        return None
    return Moved(parts, [checksum(part) for part in parts], seconds, str(get_worker().address))


def close_host(run: str) -> None:
    """Forget the share of a worker."""
    with _OPENING:
        opened = _OPENED.pop(run, None)
    if opened is not None:
        opened.close()


class _Hosts(NamedTuple):
    """Where the hosts are: workers, doors, and what each owns (hosts, colors, 2)."""

    opening: str
    workers: list[str]
    addresses: list[tuple[str, int]]
    ranges: Longs


class PartitionedCrew(DaskCrew):
    """Workers of a Dask cluster, each of which moves a share of the sites of every chain."""

    def __init__(self, client: Any, partitions: int) -> None:
        super().__init__(client)
        self.partitions = partitions
        self.hosts: _Hosts | None = None

    def move(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains, each of them on all workers."""
        form = check_form(chains.form)
        n = form.graph.n_sites
        if length % n or any(state.position[0] for state in chains.states):
            self._close()  # hosts make whole sweeps; what is left of a last one is made here
            return Threads().move(chains, rounds, length, keep)
        for _ in range(MOST_ATTEMPTS):
            self.blocks += 1
            moved = self._try(form, chains, rounds, length // n, keep)
            if moved is not None:
                break
            self.hosts = None  # those that are left find out themselves
            self.say("A worker was lost; its block is made again by the others.")
        else:
            raise SamplingError(
                f"Workers were lost {MOST_ATTEMPTS} times while they moved the same chains; what was "
                "recorded before is kept. Look at their logs: they may have too little memory."
            )
        assert self.hosts is not None
        for number, (state, tape) in enumerate(zip(chains.states, chains.tapes, strict=True)):
            parts = [each.parts[number] for each in moved]
            join_chain(form, self.hosts.ranges, parts, state, tape, rounds, length // n, keep)
        return max(each.seconds for each in moved)

    def _try(
        self, form: PackedLayout, chains: Bundles, rounds: int, sweeps: int, keep: bool
    ) -> list[Moved] | None:
        """Move all shares; return nothing if any was lost."""
        self._await_workers()
        if self.hosts is not None and len(self.hosts.workers) < min(self.partitions, len(self.workers())):
            self._close()  # there are more workers than before
        if self.hosts is None:
            self.hosts = self._open(form, chains)
        hosts = self.hosts
        if hosts is None:
            return None
        stage = [
            (int(state.position[1]), int(tape.counters[DRAWS]))
            for state, tape in zip(chains.states, chains.tapes, strict=True)
        ]
        given = (self.run, hosts.opening, hosts.addresses, stage, rounds, sweeps, keep)
        found = self._on_each("gibbs-partition", hosts.workers, move_host, [given] * len(hosts.workers))
        if found is None or any(each is None for each in found):
            return None
        for each in found:
            if [checksum(part) for part in each.parts] != each.checksums:
                self.say(f"Worker {each.worker} returned wrong numbers; it gets no more work.")
                self.drop(each.worker)
                return None
        return found

    def _open(self, form: PackedLayout, chains: Bundles) -> _Hosts | None:
        """Open a host on as many workers as there are partitions, or on all of them."""
        workers = sorted(self.workers())[: self.partitions]
        ranges = host_ranges(form.arrays(1), self.partitions, len(workers))
        opening, token = secrets.token_hex(8), secrets.token_bytes(_TOKEN)
        planes = count_planes(form, chains.tapes[0])
        arguments = []
        for number, own in enumerate(ranges):
            stretches = find_stretches(own, planes)
            sent = [
                send_chain(state, tape, stretches, form.graph.n_sites)
                for state, tape in zip(chains.states, chains.tapes, strict=True)
            ]
            shape = self.partitions, len(workers), number
            arguments.append((installed_versions(), self.run, opening, self.sent, *shape, token, sent))
        addresses = self._on_each("gibbs-open", workers, open_host, arguments)
        return None if addresses is None else _Hosts(opening, workers, addresses, ranges)

    def _on_each(
        self, name: str, workers: Sequence[str], function: Any, arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any] | None:
        """Run a task on each worker at the same time; return nothing if one of them is lost."""
        self.attempts += 1
        with allow_large_messages():
            futures = [
                self.client.submit(
                    function,
                    *given,
                    key=(name, self.run, number, self.blocks, self.attempts),
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for number, (worker, given) in enumerate(zip(workers, arguments, strict=True))
            ]
        try:
            self._wait(futures, workers)
            done = [self._is_done(future) for future in futures]  # all are asked: no error is to be missed
            if not all(done):
                self.client.cancel(futures, force=True)
                return None
            return self._gather(futures, workers)
        finally:
            for future in futures:
                future.release()  # so that the scheduler forgets the block

    def _gather(self, futures: list[Any], workers: Sequence[str]) -> list[Any] | None:
        """Bring here what tasks have returned; nothing if it was lost with a worker.

        What is lost would be waited for in vain: no other worker can make it again.
        """
        from distributed.scheduler import KilledWorker

        answer: SimpleQueue[Any] = SimpleQueue()

        def bring() -> None:
            try:
                answer.put(list(self.client.gather(futures)))
            except (CancelledError, KilledWorker):
                answer.put(None)
            except BaseException as wrong:  # raised again where somebody listens
                answer.put(wrong)

        Thread(target=bring, daemon=True, name="gibbsite-gather").start()
        while True:
            try:
                found = answer.get(timeout=LOOK)
            except Empty:
                if self._is_missing(workers):
                    self.client.cancel(futures, force=True)
                    return None
                continue
            if isinstance(found, BaseException):
                raise found
            return found  # type: ignore[no-any-return]

    def _close(self) -> None:
        """Let workers forget their shares."""
        if self.hosts is not None and self.client.status == "running":
            distributed: Any = import_module("distributed")
            for number, worker in enumerate(self.hosts.workers):
                # a worker that is gone has forgotten everything: nobody waits for the answer
                distributed.fire_and_forget(
                    self.client.submit(
                        close_host,
                        self.run,
                        key=("gibbs-close", self.run, number, self.blocks),
                        workers=[worker],
                        allow_other_workers=True,
                        pure=False,
                    )
                )
        self.hosts = None

    def dismiss(self) -> None:
        """Let workers forget the run."""
        self._close()
