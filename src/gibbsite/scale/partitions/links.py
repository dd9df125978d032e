"""How states travel: a connection between any two hosts, worker to worker.

Sizes are known on both sides, so states travel as bare bytes. Everything that is sent is handed to a thread
of its own, so that two hosts that send to each other at the same time do not wait for each other.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

import numpy as np
from numpy.typing import NDArray

# Seconds without a sign of a host after which it counts as lost.
PATIENCE = 60.0
# Seconds that hosts wait for each other at the beginning.
MEETING = 20.0
_GREETING = 4  # bytes of a host's number


class LinkLost(Exception):
    """Another host cannot be reached any more."""


class Link:
    """A connection to one other host.

    Examples
    --------
    >>> one, other = (Link(end) for end in socket.socketpair())
    >>> one.send(np.arange(3))
    >>> other.receive(np.empty(3, np.int64)).tolist()
    [0, 1, 2]
    >>> one.close(), other.close()
    (None, None)
    """

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(PATIENCE)
        self._end = end
        self._waiting: SimpleQueue[NDArray[np.generic] | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, daemon=True, name="gibbsite-halo")
        self._sender.start()

    def _send_all(self) -> None:
        while (values := self._waiting.get()) is not None:
            try:
                self._end.sendall(values.view(np.uint8).data)
            except OSError:
                self._shut()  # whoever waits for an answer finds out
                return

    def send(self, values: NDArray[np.generic]) -> None:
        """Send values, which must not change any more."""
        self._waiting.put(values)

    def receive(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Fill an array with what was sent."""
        room = memoryview(values.view(np.uint8).data)
        have = 0
        while have < len(room):
            try:
                got = self._end.recv_into(room[have:])
            except OSError as wrong:
                raise LinkLost(str(wrong)) from None
            if not got:
                raise LinkLost("the connection was closed")
            have += got
        return values

    def _shut(self) -> None:
        with suppress(OSError):  # closed already
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection."""
        self._waiting.put(None)
        self._shut()
        self._sender.join(PATIENCE)
        self._end.close()


def listen(host: str) -> socket.socket:
    """Wait for other hosts at a free port.

    Examples
    --------
    >>> with listen("127.0.0.1") as door:
    ...     door.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family)


def connect(
    door: socket.socket, number: int, addresses: Sequence[tuple[str, int]], token: bytes
) -> dict[int, Link]:
    """Connect host ``number`` to all others: it calls those before it, and is called by those behind it.

    ``token`` is known to the hosts of a run alone; whoever calls without it is turned away.
    """
    found: dict[int, socket.socket] = {}
    door.settimeout(MEETING)
    try:
        for other in range(number):
            end = socket.create_connection(addresses[other], timeout=PATIENCE)
            found[other] = end
            end.sendall(token + number.to_bytes(_GREETING, "big"))
        while len(found) < len(addresses) - 1:
            end, _ = door.accept()
            end.settimeout(PATIENCE)
            said = _read(end, len(token) + _GREETING)
            caller = int.from_bytes(said[len(token) :], "big")
            if hmac.compare_digest(said[: len(token)], token) and number < caller < len(addresses):
                found[caller] = end
            else:
                end.close()
    except OSError as wrong:
        for end in found.values():
            end.close()
        raise LinkLost(str(wrong)) from None
    for end in found.values():
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return {other: Link(end) for other, end in found.items()}


def _read(end: socket.socket, size: int) -> bytes:
    said = b""
    while len(said) < size:
        more = end.recv(size - len(said))
        if not more:
            break
        said += more
    return said
