"""How states travel: a connection between any two hosts, worker to worker.

Sizes are known on both sides, so states travel as bare bytes. Everything that is sent is handed to a thread
of its own, so that two hosts that send to each other at the same time do not wait for each other.
"""

from __future__ import annotations

import hmac
import pickle
import socket
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Seconds without a sign of a host after which it counts as lost.
PATIENCE = 60.0
# Seconds that hosts wait for each other at the beginning.
MEETING = 20.0
# Seconds until a host that does not answer counts as out of reach.
CALL = 5.0
_GREETING = 4  # bytes of a host's number
_CHUNK = 1 << 24  # bytes that are sent at a time: none is to take as long as hosts have patience


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
    >>> one.send_arrays([{"a": np.arange(3)}])
    >>> other.receive_arrays()
    [{'a': array([0, 1, 2])}]
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
            data = memoryview(values.reshape(-1).view(np.uint8).data)
            try:
                for begin in range(0, len(data), _CHUNK):
                    self._end.sendall(data[begin : begin + _CHUNK])
            except OSError:
                self._shut()  # whoever waits for an answer finds out
                return

    def send(self, values: NDArray[np.generic]) -> None:
        """Send values, which must not change before they are there."""
        self._waiting.put(values)

    def receive(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Fill an array with what was sent."""
        room = memoryview(values.reshape(-1).view(np.uint8).data)  # no copy, where they are contiguous
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

    def send_arrays(self, arrays: Sequence[dict[str, NDArray[Any]]]) -> None:
        """Send arrays by name, of sizes that the other end does not know."""
        data = np.frombuffer(pickle.dumps(arrays, protocol=5), np.uint8)
        self.send(np.array([data.size]))
        self.send(data)

    def receive_arrays(self) -> list[dict[str, NDArray[Any]]]:
        """Return arrays by name; whoever sends them knows the secret of the run."""
        size = self.receive(np.empty(1, np.int64))
        found: list[dict[str, NDArray[Any]]] = pickle.loads(self.receive(np.empty(size[0], np.uint8)).data)
        return found

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
    door: socket.socket, number: int, addresses: Sequence[tuple[str, int]], token: bytes, client: bool = False
) -> dict[int, Link]:
    """Connect host ``number`` to all others: it calls those before it, and is called by those behind it.

    ``token`` is known to the hosts of a run alone; whoever calls without it is turned away. The ``client``
    calls as if it were a host behind the last one.
    """
    found: dict[int, socket.socket] = {}
    callers = len(addresses) + client
    door.settimeout(MEETING)
    try:
        for other in range(number):
            found[other] = _call(addresses[other], number, token, PATIENCE)
        while len(found) < callers - 1:
            end, _ = door.accept()
            end.settimeout(PATIENCE)
            said = _read(end, len(token) + _GREETING)
            caller = int.from_bytes(said[len(token) :], "big")
            if hmac.compare_digest(said[: len(token)], token) and number < caller < callers:
                found[caller] = end
            else:
                end.close()
    except OSError as wrong:
        for end in found.values():
            end.close()
        raise LinkLost(str(wrong)) from None
    return {other: _link(end) for other, end in found.items()}


def call_all(addresses: Sequence[tuple[str, int]], token: bytes) -> list[Link] | None:
    """Connect the client of a run to all hosts; None if one of them is out of reach.

    Examples
    --------
    >>> with listen("127.0.0.1") as door:
    ...     (link,) = call_all([door.getsockname()], b"token")
    ...     connect(door, 0, [door.getsockname()], b"token", client=True)[1].send(np.arange(2))
    >>> link.receive(np.empty(2, np.int64)).tolist()
    [0, 1]
    """
    found: list[socket.socket] = []
    try:
        found.extend(_call(address, len(addresses), token, CALL) for address in addresses)
    except OSError:
        for end in found:
            end.close()
        return None
    return [_link(end) for end in found]


def _call(address: tuple[str, int], number: int, token: bytes, patience: float) -> socket.socket:
    end = socket.create_connection(address, timeout=patience)
    end.sendall(token + number.to_bytes(_GREETING, "big"))
    return end


def _link(end: socket.socket) -> Link:
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Link(end)


def _read(end: socket.socket, size: int) -> bytes:
    said = b""
    while len(said) < size:
        more = end.recv(size - len(said))
        if not more:
            break
        said += more
    return said
