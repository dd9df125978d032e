"""What a worker does in a partitioned run: it opens its share, moves it, gives what it has, forgets it."""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite.sampling.executors.partitions.halo import find_halo, host_ranges
from gibbsite.sampling.executors.partitions.host import Arrays, Host, Standing
from gibbsite.sampling.executors.partitions.joining import check_layout
from gibbsite.sampling.executors.partitions.links import LinkLost
from gibbsite.sampling.executors.partitions.meeting import connect, listen
from gibbsite.sampling.executors.segment import lay_out_run
from gibbsite.sampling.executors.versions import differences, refuse_others
from gibbsite.sampling.setup import Recipe


class Moved(NamedTuple):
    """The report of a host after a block: the positions of the tapes of its chains, and the seconds it took."""

    standing: list[Standing]
    seconds: float


class Given(NamedTuple):
    """What a host gives by way of the scheduler: pieces and their checksum; none where it has sent them."""

    pieces: list[Array]
    checksum: int


def checksum(piece: Array, before: int) -> int:
    """Return the checksum of all pieces up to this one, given that of those before it.

    Examples
    --------
    >>> checksum(np.arange(3), checksum(np.arange(2), 0)) == checksum(np.arange(2), checksum(np.arange(3), 0))
    False
    """
    return zlib.crc32(np.ascontiguousarray(piece).view(np.uint8).data, before)


@dataclass
class _Opened:
    """A host that listens until the others are there."""

    opening: str
    number: int
    host: Host
    listener: socket.socket
    token: bytes

    def close(self) -> None:
        with suppress(OSError):  # not on every system
            self.listener.shutdown(socket.SHUT_RDWR)  # a thread that waits for connections continues
        self.listener.close()
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
    chains: Sequence[Arrays] | None,
) -> tuple[str, int]:
    """Lay out the share of a worker, and return where the others can reach it.

    Chains are given where the client cannot send them by a connection of its own.
    """
    from distributed import get_worker

    refuse_others(str(get_worker().address), differences(versions))
    setup = lay_out_run(run, recipe)
    layout = check_layout(setup.layout)
    ranges = host_ranges(layout.packed, parts, hosts)
    halo = find_halo(layout.arrays(1), ranges, number)
    host = Host(layout, setup.parameters, setup.schedule, halo, {}, int(get_worker().state.nthreads))
    if chains is not None:
        host.load(chains)
    listener = listen(urlsplit(str(get_worker().address)).hostname or "127.0.0.1")
    close_host(run)
    with _OPENING:
        _OPENED[run] = _Opened(opening, number, host, listener, token)
    name = listener.getsockname()
    return str(name[0]), int(name[1])


def move_host(
    run: str,
    opening: str,
    addresses: Sequence[tuple[str, int]],
    client: bool,
    stage: list[tuple[int, int]],
    rounds: int,
    sweeps: int,
    keep: bool,
) -> Moved | None:
    """Move the share of a worker; return nothing if it is not there, or another one is lost."""
    opened = _OPENED.get(run)
    if opened is None or opened.opening != opening:
        return None
    host = opened.host
    try:
        if not host.links:
            host.links = connect(opened.listener, opened.number, addresses, opened.token, client)
            if client:
                host.load(host.links[len(addresses)].receive_arrays())
        if host.stage() != stage:
            return None
        seconds = host.move(rounds, sweeps, keep)
    except LinkLost:
        close_host(run)
        return None
    return Moved(host.standing(), seconds)


def give_host(run: str, opening: str, hosts: int, client: bool) -> Given | None:
    """Send the client what it has not had yet, or return it where there is no connection."""
    opened = _OPENED.get(run)
    if opened is None or opened.opening != opening:
        return None
    found = 0
    pieces = opened.host.news()
    for piece in pieces:
        if client:
            opened.host.links[hosts].send(piece)
        found = checksum(piece, found)
    if client:
        opened.host.links[hosts].send(np.array([found]))
    return Given([] if client else pieces, found)


def close_host(run: str, opening: str | None = None) -> None:
    """Forget the share of a worker; that of a certain opening alone, if one is given."""
    with _OPENING:
        opened = _OPENED.get(run)
        if opened is None or opening not in (None, opened.opening):
            return
        del _OPENED[run]
    opened.close()


async def forget_host(run: str, opening: str) -> None:
    """Forget the share of a worker, beside whatever it does: if it waits for others, it does so no longer."""
    await asyncio.to_thread(close_host, run, opening)
