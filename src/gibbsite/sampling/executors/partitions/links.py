"""How states travel: a connection between any two hosts, worker to worker.

Sizes are known on both sides, so states travel as bare bytes; other arrays are announced by their names,
types and shapes. Nothing that comes is unpickled. Everything that is sent is handed to a thread of its own,
so that two hosts that send to each other at the same time do not wait for each other.
"""

from __future__ import annotations

import hmac
import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Thread

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Array

# Seconds without a sign of a host after which it counts as lost.
PATIENCE = 60.0
_CHUNK = 1 << 24  # bytes that are sent at a time: none is to take as long as hosts have patience


class LinkLost(Exception):
    """Another host cannot be reached any more."""


class Link:
    """A connection to one other host.

    Parameters
    ----------
    end : socket.socket
        This end of the connection.
    answer : bytes
        What the other end says first if it belongs to the run. Nothing is sent to it, and nothing taken from
        it, before it has said so.

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

    def __init__(self, end: socket.socket, answer: bytes = b"") -> None:
        self._end = end
        self._answer, self._known, self._heard = answer, False, Event()
        self._waiting: SimpleQueue[NDArray[np.generic] | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, daemon=True, name="gibbsite-halo")
        self._sender.start()

    def _hear(self) -> None:
        """Wait for the answer of the other end as long as the connection stands: it may be busy."""
        with suppress(OSError):
            self._end.settimeout(None)
            self._known = hmac.compare_digest(read_bytes(self._end, len(self._answer)), self._answer)
            self._end.settimeout(PATIENCE)
        self._heard.set()

    def _send_all(self) -> None:
        self._hear()
        if not self._known:
            self._shut()
            return
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
        if not self._heard.wait(PATIENCE) or not self._known:
            raise LinkLost("the other end has not shown that it belongs to the run")
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

    def send_arrays(self, arrays: Sequence[dict[str, Array]]) -> None:
        """Send copies of arrays by name, of sizes that the other end does not know."""
        words = [[(name, part.dtype.str, part.shape) for name, part in each.items()] for each in arrays]
        header = np.frombuffer(json.dumps(words).encode(), np.uint8)
        self.send(np.array([header.size]))
        self.send(header)
        for each in arrays:
            for part in each.values():
                self.send(np.array(part, order="C"))

    def receive_arrays(self) -> list[dict[str, Array]]:
        """Return arrays by name."""
        size = int(self.receive(np.empty(1, np.int64))[0])
        words = json.loads(self.receive(np.empty(size, np.uint8)).tobytes())
        return [{name: self.receive(np.empty(shape, dtype)) for name, dtype, shape in each} for each in words]

    def _shut(self) -> None:
        with suppress(OSError):  # closed already
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection."""
        self._waiting.put(None)
        self._shut()
        self._sender.join(PATIENCE)
        self._end.close()


def read_bytes(end: socket.socket, size: int) -> bytes:
    """Return ``size`` bytes, or fewer if the connection ends before."""
    said = b""
    while len(said) < size and (more := end.recv(size - len(said))):
        said += more
    return said
