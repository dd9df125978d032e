"""Listeners of all compilations, and messages about long ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from gibbsite._numba.options import DISABLED
from gibbsite._numba.parts import try_part

_PATIENCE = 1.0  # seconds; faster compilations are not reported


#: Objects with ``on_start`` and ``on_end``, which are called at every compilation.
LISTENERS: list[Any] = []
# For the user's current call: a lock that is taken once compiling has been announced.
_call: ContextVar[threading.Lock | None] = ContextVar("call", default=None)


@dataclass(eq=False)
class _Announcer:
    """Listener that announces a compilation longer than a second, at most once in each call by the user."""

    say: Callable[[str], None]
    what: str
    said: threading.Lock
    thread: threading.local = field(default_factory=threading.local)  # compilations are nested

    def on_start(self, event: object) -> None:
        depth = getattr(self.thread, "depth", 0)
        self.thread.depth = depth + 1
        if not depth:
            self.thread.timer = threading.Timer(_PATIENCE, self._announce)
            self.thread.timer.daemon = True
            if not self.said.locked():
                self.thread.timer.start()

    def on_end(self, event: object) -> None:
        self.thread.depth -= 1
        if not self.thread.depth:
            self.thread.timer.cancel()

    def _announce(self) -> None:
        if self.said.acquire(blocking=False):
            self.say(compiling_message(self.what))


class _Notifier:
    """Listener that calls a function at the first compilation."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self.waiting = [notify]

    def on_start(self, event: object) -> None:
        if self.waiting:
            self.waiting.pop()()

    def on_end(self, event: object) -> None:
        pass


def compiling_message(what: str) -> str:
    """Return the message that ``what`` is being compiled."""
    return f"gibbsite: compiling {what} (first use only; this may take half a minute) ..."


@contextmanager
def announcing(say: Callable[[str], None], what: str) -> Iterator[None]:
    """Report the first compilation inside the block that takes longer than a second.

    ``say`` is called with the message; ``what`` names what is compiled: "the Gibbs kernel".
    """
    with announcing_once() as said, _listening(_Announcer(say, what, said)):
        yield


@contextmanager
def announcing_once() -> Iterator[threading.Lock]:
    """Limit the announcements inside the block to the first one."""
    said = _call.get() or threading.Lock()
    token = _call.set(said)
    try:
        yield said
    finally:
        _call.reset(token)


@contextmanager
def on_compile(notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify`` once if anything is compiled (not merely loaded) inside the block."""
    with _listening(_Notifier(notify)):
        yield


@contextmanager
def _listening(listener: Any) -> Iterator[None]:
    """Notify an object with ``on_start`` and ``on_end`` of all compilations inside the block."""
    LISTENERS.append(listener)
    try:
        yield
    finally:
        LISTENERS.remove(listener)


def _begin() -> None:
    """Ask Numba for its events, once in a process."""
    from numba.core import event

    class _Everybody(event.Listener):
        def on_start(self, event: object) -> None:
            for listener in tuple(LISTENERS):
                listener.on_start(event)

        def on_end(self, event: object) -> None:
            for listener in tuple(LISTENERS):
                listener.on_end(event)

    events: Any = event
    events.register("numba:compile", _Everybody())


if not DISABLED:
    try_part("events", _begin)
