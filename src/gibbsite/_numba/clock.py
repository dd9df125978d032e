"""Compile time: a clock that leaves it out, and what is said to those who wait."""

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

_PATIENCE = 1.0  # seconds; what is compiled faster is not mentioned


class _Stopwatch:
    """Seconds this process has spent compiling, whatever number of threads did."""

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
    """Return the time in seconds, on a clock that stands still while code is compiled, or loaded.

    Budgets are measured with it, so that they do not depend on what has been compiled before.

    Examples
    --------
    >>> clock() <= clock()
    True
    """
    with _STOPWATCH.lock:
        now = time.monotonic()
        running = now - _STOPWATCH.since if _STOPWATCH.depth else 0.0
        return now - _STOPWATCH.spent - running


def stopping_clock(dispatcher: Any) -> Any:
    """Let the clock stand still also while a function is loaded from the disk, or written to it.

    Numba tells when it compiles, but not of that; where nothing has been compiled yet it may take seconds.
    """
    prepare = dispatcher.compile

    def timed(signature: Any) -> Any:
        _STOPWATCH.on_start(None)
        collecting = gc.isenabled()
        gc.disable()  # hardly any of the objects that Numba makes can be freed before it is done
        try:
            return prepare(signature)
        finally:
            if collecting:
                gc.enable()
            _STOPWATCH.on_end(None)

    dispatcher.compile = timed
    return dispatcher


class _Depth(threading.local):
    """Of each thread: how deep in functions that are compiled for others."""

    depth = 0


class _Call:
    """A call of the user, in which one line is said about compiling."""

    def __init__(self) -> None:
        self.lock, self.said = threading.Lock(), False

    def begin_to_say(self) -> bool:
        """Tell whether nothing has been said yet; from now on, something has."""
        with self.lock:
            said, self.said = self.said, True
            return not said


_call: ContextVar[_Call | None] = ContextVar("call", default=None)


class _Announcer:
    """Say that something is compiled, where that takes longer than a second."""

    def __init__(self, say: Callable[[str], None], what: str, call: _Call) -> None:
        self.say, self.what, self.call = say, what, call
        self.place = _Depth()
        self.timers: dict[int, threading.Timer] = {}

    def on_start(self, event: object) -> None:
        if not self.place.depth and not self.call.said:
            timer = threading.Timer(_PATIENCE, self._tell)
            timer.daemon = True
            self.timers[threading.get_ident()] = timer
            timer.start()
        self.place.depth += 1

    def on_end(self, event: object) -> None:
        self.place.depth -= 1
        if not self.place.depth and (timer := self.timers.pop(threading.get_ident(), None)):
            timer.cancel()

    def _tell(self) -> None:
        if self.call.begin_to_say():
            self.say(compiling_message(self.what))


class _Notifier:
    """Call a function once, when the first thing is compiled."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self.notify: Callable[[], None] | None = notify

    def on_start(self, event: object) -> None:
        notify, self.notify = self.notify, None
        if notify is not None:
            notify()

    def on_end(self, event: object) -> None:
        pass


def compiling_message(what: str) -> str:
    """Return what is said to those who wait for something to be compiled.

    Examples
    --------
    >>> compiling_message("the Gibbs kernel")
    'gibbsite: compiling the Gibbs kernel (first use only; this may take half a minute) ...'
    """
    return f"gibbsite: compiling {what} (first use only; this may take half a minute) ..."


@contextmanager
def announcing(say: Callable[[str], None], what: str) -> Iterator[None]:
    """Say once that code is compiled inside the block, if that takes more than a second.

    Parameters
    ----------
    say : callable
        Takes the message.
    what : str
        What is compiled, for those who wait: "the Gibbs kernel".

    Examples
    --------
    >>> with announcing(print, "the Gibbs kernel"):
    ...     pass
    """
    with announcing_once() as call, _listening(_Announcer(say, what, call)):
        yield


@contextmanager
def announcing_once() -> Iterator[_Call]:
    """Let all that is announced inside the block be announced in one line, that of the first.

    Examples
    --------
    >>> with announcing_once(), announcing(print, "one"), announcing(print, "another"):
    ...     pass
    """
    call = _call.get() or _Call()
    token = _call.set(call)
    try:
        yield call
    finally:
        _call.reset(token)


@contextmanager
def on_compile(notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify`` once if anything is compiled (not merely loaded) inside the block.

    Examples
    --------
    >>> with on_compile(lambda: print("compiling")):
    ...     pass
    """
    with _listening(_Notifier(notify)):
        yield


@contextmanager
def _listening(listener: Any) -> Iterator[None]:
    heard = _listen(listener)
    try:
        yield
    finally:
        if heard is not None:
            from numba.core import event

            events: Any = event
            events.unregister("numba:compile", heard)


def _listen(listener: Any) -> object | None:
    """Let an object with ``on_start`` and ``on_end`` hear of all compilations; return what to unregister."""
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
