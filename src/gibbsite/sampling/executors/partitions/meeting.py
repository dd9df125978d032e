"""How the hosts of a run find each other and recognise strangers.

A run has a token, random bytes that reach its hosts by the connections of the cluster. It never travels
between hosts: whoever calls proves to know it by a keyed hash of both numbers, and is answered by another.
A proof is good for one pair of hosts and is accepted once. Others may call, be silent, or hang up: they are
turned away, and hosts of the run do not wait for them.
"""

from __future__ import annotations

import hmac
import socket
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Any

import numpy as np

from gibbsite.sampling.executors.partitions.links import PATIENCE, Link, LinkLost

# Seconds that hosts wait for each other at the beginning.
MEETING = 20.0
# Seconds until a host that does not answer counts as out of reach.
CALL = 5.0
_NUMBER = 4  # bytes of a host's number
_PROOF = 32  # bytes of a keyed hash
_GREETING = _NUMBER + _PROOF
_POLL = 1.0  # seconds after which a closed listener is noticed
_MOST_SILENT = 64  # callers that have not proved anything yet; the oldest of more is turned away


def _prove(token: bytes, word: bytes, caller: int, called: int) -> bytes:
    numbers = caller.to_bytes(_NUMBER, "big") + called.to_bytes(_NUMBER, "big")
    return hmac.digest(token, word + numbers, "sha256")


def listen(host: str) -> socket.socket:
    """Wait for other hosts at a free port.

    Examples
    --------
    >>> with listen("127.0.0.1") as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family)


def connect(
    listener: socket.socket, number: int, addresses: Sequence[tuple[str, int]], token: bytes, client: bool = False
) -> dict[int, Link]:
    """Connect host ``number`` to all others: it calls those before it, and is called by those behind it.

    ``token`` is known to the hosts of a run alone; whoever calls without it is turned away. The ``client``
    calls as if it were a host behind the last one.
    """
    found: dict[int, Link] = {}
    try:
        for other in range(number):
            found[other] = _call(addresses[other], number, other, token, PATIENCE)
        _await_callers(listener, number, len(addresses) + client, token, found)
    except (OSError, ValueError) as wrong:  # the latter of a listener that is closed meanwhile
        for link in found.values():
            link.close()
        raise LinkLost(str(wrong)) from None
    return found


def call_all(addresses: Sequence[tuple[str, int]], token: bytes) -> list[Link] | None:
    """Connect the client of a run to all hosts; None if one of them is out of reach.

    Examples
    --------
    >>> with listen("127.0.0.1") as listener:
    ...     (link,) = call_all([listener.getsockname()], b"token")
    ...     connect(listener, 0, [listener.getsockname()], b"token", client=True)[1].send(np.arange(2))
    >>> link.receive(np.empty(2, np.int64)).tolist()
    [0, 1]
    """
    found: list[Link] = []
    try:
        for number, address in enumerate(addresses):
            found.append(_call(address, len(addresses), number, token, CALL))
    except OSError:
        for link in found:
            link.close()
        return None
    return found


def _call(address: tuple[str, int], caller: int, called: int, token: bytes, patience: float) -> Link:
    end = socket.create_connection(address, timeout=patience)
    try:
        end.sendall(caller.to_bytes(_NUMBER, "big") + _prove(token, b"call", caller, called))
    except OSError:
        end.close()
        raise
    return _link(end, _prove(token, b"answer", caller, called))


def _link(end: socket.socket, answer: bytes = b"") -> Link:
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Link(end, answer)


def _await_callers(listener: socket.socket, number: int, callers: int, token: bytes, found: dict[int, Link]) -> None:
    """Add the links to all callers of the run, in the order in which they prove who they are."""
    deadline = time.monotonic() + MEETING
    with closing(_PendingCallers(listener)) as pending:
        while len(found) < callers - 1:
            left = deadline - time.monotonic()
            if left <= 0 or listener.fileno() < 0:
                raise TimeoutError("another host did not call in time")
            for end, greeting in pending.greetings(min(left, _POLL)):
                caller = int.from_bytes(greeting[:_NUMBER], "big")
                expected = number < caller < callers and caller not in found
                if expected and hmac.compare_digest(greeting[_NUMBER:], _prove(token, b"call", caller, number)):
                    found[caller] = _link(end)
                    found[caller].send(np.frombuffer(_prove(token, b"answer", caller, number), np.uint8))
                else:
                    end.close()


class _PendingCallers:
    """Callers whose greeting is incomplete; a silent caller does not delay the others."""

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._received: dict[socket.socket, bytes] = {}
        self._selector = DefaultSelector()
        self._selector.register(listener, EVENT_READ)

    def greetings(self, seconds: float) -> list[tuple[socket.socket, bytes]]:
        """Return callers whose greeting is complete, with the greetings; wait for data up to some seconds."""
        found = []
        for key, _ in self._selector.select(seconds):
            end: Any = key.fileobj
            if end is self._listener:
                self._accept()
            elif end in self._received:  # not removed meanwhile
                more = b""
                with suppress(OSError):
                    more = end.recv(_GREETING - len(self._received[end]))
                self._received[end] += more
                if not more:  # the caller has closed the connection
                    self._remove(end).close()
                elif len(self._received[end]) == _GREETING:
                    found.append((end, self._received[end]))
                    self._remove(end)
        return found

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):  # the caller has left
            end, _ = self._listener.accept()
            end.setblocking(False)
            self._selector.register(end, EVENT_READ)
            self._received[end] = b""
        if len(self._received) > _MOST_SILENT:
            self._remove(next(iter(self._received))).close()

    def _remove(self, end: socket.socket) -> socket.socket:
        self._selector.unregister(end)
        del self._received[end]
        return end

    def close(self) -> None:
        """Close the connections to callers that are left."""
        for end in [*self._received]:
            self._remove(end).close()
        self._selector.close()
