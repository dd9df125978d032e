"""Rungs of tempered chains on several workers: what each of them does in a block of sweeps.

A block is a pure function of the chains as they stand, as a segment is (``executors/segment.py``), but it is made by
several tasks at the same time, which send each other log-potentials and states on the way. If one of them is lost, so
is the block, and it is made again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit

from gibbsite._numba.jit import clock
from gibbsite.kernels.ensemble import Chain, Ensemble, Message, Place, Share
from gibbsite.kernels.protocols import Replicated
from gibbsite.sampling.executor import Threads
from gibbsite.sampling.executors.partitions.links import Link, LinkLost
from gibbsite.sampling.executors.partitions.meeting import connect, listen
from gibbsite.sampling.executors.partitions.slices import record_stretch, state_potential
from gibbsite.sampling.executors.segment import (
    Arrays,
    Done,
    Segment,
    checksum,
    cut_segment,
    find_fault,
    join_segment,
    lay_out_run,
    open_segment,
    pack_segment,
)
from gibbsite.sampling.executors.versions import differences, refuse_others
from gibbsite.sampling.layout import ChainLayout
from gibbsite.sampling.setup import Recipe, Setup
from gibbsite.sampling.sweep import EVERY_DRAW, FOR_PULSE, State, find_writer, write_indicators
from gibbsite.sampling.tape import CONDITIONAL, COUNT, Tape, pulse_due


class Block(NamedTuple):
    """What the workers that share some chains do: for each chain its segment, and what each share needs."""

    segments: list[Segment]
    bounds: list[int]
    owned: list[list[Arrays]]

    def part(self, host: int) -> Block:
        """Return what one of the workers needs."""
        return self._replace(owned=[[own[host]] for own in self.owned])


class MovedBlock(NamedTuple):
    """What a worker returns: its share of each chain, and whole chains where it has recorded them."""

    owned: list[Done]
    chains: list[Done]


def cut_block(
    ensemble: Ensemble, chains: Sequence[tuple[State, Tape]], hosts: int, rounds: int, length: int, keep: bool
) -> Block:
    """Return what workers need to move chains on."""
    bounds = ensemble.bounds(hosts)
    segments, owned = [], []
    for state, tape in chains:
        bare = state._replace(memory=ensemble.bare(state.memory))
        segments.append(cut_segment(bare, tape, 1, rounds, length, keep, 1))
        owned.append([ensemble.cut(state.memory, bounds[host], bounds[host + 1]) for host in range(hosts)])
    return Block(segments, bounds, owned)


def join_block(
    ensemble: Ensemble, bounds: Sequence[int], moved: Sequence[MovedBlock], number: int, state: State, tape: Tape
) -> tuple[State, Tape]:
    """Return a chain as it stands after a block."""
    before = state.memory
    (done,) = [each.chains[number] for each in moved if each.chains]
    state, tape = join_segment(done, state, tape)
    owned = [each.owned[number].arrays for each in moved]
    return state._replace(memory=ensemble.join(state.memory, before, bounds, owned)), tape


def move_block(setup: Setup, block: Block, host: int, links: dict[int, Link], threads: int) -> MovedBlock:
    """Move the share of a worker in all chains, one after another."""
    ensemble, layout = find_ensemble(setup), setup.layout
    moved = MovedBlock([], [])
    for segment, (own,) in zip(block.segments, block.owned, strict=True):
        driver, marks = open_segment(setup, segment)
        (state,), (tape,) = driver.states, driver.tapes
        if segment.keep:
            tape = setup.record.grow(tape, marks.draws + segment.rounds)
        if segment.keep and state.cond.size and not marks.draws:
            write_indicators(tape, state.x, state.cond)
        chain = Chain(state.memory, state.x, state.cond, state.order, state.rng)
        place = Place(setup.parameters, layout.arrays(1), setup.schedule, block.bounds, host)
        share = ensemble.share(place, chain, own)
        if not segment.rounds:
            _rehearse(share, state.cond.size > 0)
            continue
        began = clock()
        _move(share, layout, segment, state, tape, links, max(1, min(threads, layout.most_members)))
        seconds = clock() - began
        owned, memory = share.own(), share.chain.memory
        moved.owned.append(Done(owned, checksum(owned), seconds))
        if host == share.recorder:
            found = pack_segment(state._replace(memory=ensemble.bare(memory)), tape, marks)
            driver.states, driver.tapes = [state._replace(memory=memory)], [tape]
            wrong = find_fault(driver)
            moved.chains.append(Done(found, checksum(found), seconds, wrong))
    return moved


def _rehearse(share: Share, put: bool) -> None:
    """Compile what moves replicas, before others wait for it."""
    share.refresh()
    share.sweep(0, put, 1, 0)
    share.tell()
    share.meet(put, True)


def _move(
    share: Share, layout: ChainLayout, segment: Segment, state: State, tape: Tape, links: dict[int, Link], members: int
) -> None:
    """Make whole sweeps; record a draw after each round, where the segment asks for it."""
    keep, sweeps = segment.keep, segment.length
    put = keep and state.cond.size > 0
    recording = find_writer(tape, state.x, state.cond, keep)
    with Threads(members) as executor:
        for number in range(segment.rounds):
            for sweep in range(sweeps):
                turn = int(state.position[1])
                share.refresh()
                executor.map(partial(share.sweep, turn, put, members), range(members))
                _deliver(share.host, share.tell(), links)
                last = sweep == sweeps - 1 and (keep or number == segment.rounds - 1)
                _deliver(share.host, share.meet(put, last), links)
                state.position[1] = turn + 1
            if keep and share.host == share.recorder:
                due = recording.potential == EVERY_DRAW or (
                    recording.potential == FOR_PULSE and pulse_due(tape.counters)
                )
                now = state_potential(layout.arrays(1), state.x) if due else 0.0
                record_stretch(recording, state.x, now, CONDITIONAL if put else COUNT)


def _deliver(host: int, messages: Sequence[Message], links: dict[int, Link]) -> None:
    """Send what is to be sent, then wait for what comes."""
    for message in messages:
        if message.sender == host:
            links[message.receiver].send(message.view.copy())
    for message in messages:
        if message.receiver == host:
            links[message.sender].receive(message.view)


def find_ensemble(setup: Setup) -> Ensemble:
    """Return how replicas are shared out."""
    found = setup.kernel.ensemble(setup.layout.moving) if isinstance(setup.kernel, Replicated) else None
    assert found is not None
    return found


@dataclass
class _Listener:
    """Where a worker waits for the others of a block, and the connections to them."""

    opening: str
    socket: socket.socket
    token: bytes
    links: dict[int, Link] = field(default_factory=dict)

    def close(self) -> None:
        with suppress(OSError):  # not on every system
            self.socket.shutdown(socket.SHUT_RDWR)  # a thread that waits for connections continues
        self.socket.close()
        for link in self.links.values():
            link.close()


_LISTENERS: dict[str, _Listener] = {}
_OPENING = Lock()


def open_listener(versions: dict[str, str], run: str, recipe: Recipe, opening: str, token: bytes) -> tuple[str, int]:
    """Lay out the model, and wait for the other workers of a block; return where they can reach this one."""
    from distributed import get_worker

    address = str(get_worker().address)
    refuse_others(address, differences(versions))
    lay_out_run(run, recipe)
    listener = listen(urlsplit(address).hostname or "127.0.0.1")
    close_listener(run)
    with _OPENING:
        _LISTENERS[run] = _Listener(opening, listener, token)
    name = listener.getsockname()
    return str(name[0]), int(name[1])


def move_rungs(
    run: str, recipe: Recipe, opening: str, addresses: Sequence[tuple[str, int]], host: int, block: Block
) -> MovedBlock | None:
    """Move the share of a worker; return nothing if another one is lost."""
    from distributed import get_worker

    listener = _LISTENERS.get(run)
    if listener is None or listener.opening != opening:
        return None
    setup = lay_out_run(run, recipe)
    try:
        listener.links = connect(listener.socket, host, addresses, listener.token)
        return move_block(setup, block, host, listener.links, int(get_worker().state.nthreads))
    except LinkLost:
        return None
    finally:
        close_listener(run, opening)


def close_listener(run: str, opening: str | None = None) -> None:
    """Wait no longer for the other workers of a block; of a certain opening alone, if one is given."""
    with _OPENING:
        listener = _LISTENERS.get(run)
        if listener is None or opening not in (None, listener.opening):
            return
        del _LISTENERS[run]
    listener.close()


async def forget_listener(run: str, opening: str) -> None:
    """Wait no longer for the others, beside whatever this worker does."""
    await asyncio.to_thread(close_listener, run, opening)
