"""Compile time: a clock that stops during compilations, and messages about long ones."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gibbsite._numba.options import DISABLED
from gibbsite._numba.parts import try_part

_PATIENCE = 1.0  # seconds; faster compilations are not reported


class _Stopwatch:
    """A counter of the seconds that this process has spent compiling, on any number of threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth, self.since, self.spent = 0, 0.0, 0.0

    def on_start(self, event: object) -> None:
        with self.lock:
            if not self.depth:
                self.since = time.monotonic()
            self.depth += 1

    def on_end(self, event: object) -> None:
        with self.lock:
            self.depth -= 1
            if not self.depth:
                self.spent += time.monotonic() - self.since


_STOPWATCH = _Stopwatch()


def clock() -> float:
    """Return the time in seconds of a clock that stops while code is compiled or loaded.

    Time limits are measured with it, so that they do not depend on what was compiled before.
    """
    with _STOPWATCH.lock:
        now = time.monotonic()
        running = now - _STOPWATCH.since if _STOPWATCH.depth else 0.0
        return now - _STOPWATCH.spent - running


def stopping_clock(dispatcher: Any) -> Any:
    """Make a dispatcher stop the clock also while it loads a function from disk or writes it.

    Numba reports compilations only; the first load of a process may take seconds.
    """
    prepare = dispatcher.compile

    def timed(signature: Any) -> Any:
        _STOPWATCH.on_start(None)
        collecting = gc.isenabled()
        gc.disable()  # few of the objects that Numba creates could be freed before it is done
        try:
            return prepare(signature)
        finally:
            if collecting:
                gc.enable()
            _STOPWATCH.on_end(None)

    dispatcher.compile = timed
    return dispatcher


# For the user's current call: a lock that is taken once compiling has been announced.
_call: ContextVar[threading.Lock | None] = ContextVar("call", default=None)


class _Announcer:
    """Listener that announces a compilation longer than a second, at most once in each call by the user."""

    def __init__(self, say: Callable[[str], None], what: str, said: threading.Lock) -> None:
        self.say, self.what, self.said = say, what, said
        self.thread = threading.local()  # compilations are nested

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
    heard = _listen(listener)
    try:
        yield
    finally:
        if heard is not None:
            from numba.core import event

            events: Any = event
            events.unregister("numba:compile", heard)


def _listen(listener: Any) -> object | None:
    """Notify an object of all compilations; return the listener to unregister."""
    heard: list[object] = []

    def begin() -> None:
        from numba.core import event

        class _Listener(event.Listener):
            def on_start(self, event: object) -> None:
                listener.on_start(event)

            def on_end(self, event: object) -> None:
                listener.on_end(event)

        heard.append(_Listener())
        events: Any = event
        events.register("numba:compile", heard[0])

    return heard[0] if not DISABLED and try_part("events", begin) else None


_listen(_STOPWATCH)
