"""Compile time: a clock that leaves it out, and what is said to those who wait.

How long functions took to compile is kept beside the caches, so that the next time can be foretold.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gibbsite._compile.cache import cache_directory
from gibbsite._compile.options import DISABLED
from gibbsite._compile.parts import try_part

_PATIENCE = 1.0  # seconds; what is compiled faster is not mentioned
_NOTEWORTHY = 0.5  # seconds; what is compiled faster is not kept
_NAMED = 3  # types by which a function is told from its siblings


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


class _Outermost(threading.local):
    """Of each thread: how deep in functions that are compiled for others, and since when."""

    depth = 0
    since = 0.0


class _Timekeeper:
    """Keep how long functions that are called from Python take to compile."""

    def __init__(self) -> None:
        self.place = _Outermost()

    def on_start(self, event: Any) -> None:
        if not self.place.depth:
            self.place.since = time.monotonic()
        self.place.depth += 1

    def on_end(self, event: Any) -> None:
        self.place.depth -= 1
        taken = time.monotonic() - self.place.since
        if not self.place.depth and taken > _NOTEWORTHY:
            _keep_duration(describe(event.data), taken)


class _Announcer:
    """Say what is compiled where that takes longer than a second."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.place = _Outermost()
        self.timers: dict[int, threading.Timer] = {}

    def on_start(self, event: Any) -> None:
        if not self.place.depth:
            timer = threading.Timer(_PATIENCE, self._tell, [describe(event.data)])
            timer.daemon = True
            self.timers[threading.get_ident()] = timer
            timer.start()
        self.place.depth += 1

    def on_end(self, event: Any) -> None:
        self.place.depth -= 1
        if not self.place.depth:
            self.timers.pop(threading.get_ident()).cancel()

    def _tell(self, name: str) -> None:
        self.say(compiling_message(name))


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


def describe(data: Any) -> str:
    """Return the name of a function that is compiled, with the named tuples it is compiled for."""
    function = getattr(data["dispatcher"], "py_func", data["dispatcher"])
    name = str(getattr(function, "__name__", "a function"))
    kinds = [getattr(kind, "instance_class", None) for kind in data.get("args", ())]
    named = [str(kind.__name__) for kind in kinds if kind is not None][:_NAMED]
    return f"{name} for {', '.join(named)}" if named else name


def compiling_message(name: str) -> str:
    """Return what is said to those who wait for a function to be compiled.

    Examples
    --------
    >>> compiling_message("nothing")
    'gibbsite: compiling nothing (5 to 30 seconds; kept for later runs, but for functions of yours)'
    """
    before = _durations().get(name)
    how_long = "5 to 30 seconds" if before is None else f"took {before:.0f} s the last time"
    return f"gibbsite: compiling {name} ({how_long}; kept for later runs, but for functions of yours)"


def _durations_file() -> Path | None:
    directory = cache_directory()
    return None if directory is None else directory.parent / "durations.json"


def _durations() -> dict[str, float]:
    """Return how many seconds functions took to compile, as far as that is known."""
    place = _durations_file()
    if place is not None:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            return {str(name): float(taken) for name, taken in json.loads(place.read_text()).items()}
    return {}


def _keep_duration(name: str, taken: float) -> None:
    place = _durations_file()
    if place is None:
        return
    known = {**_durations(), name: round(taken, 1)}
    with suppress(OSError):  # what another process writes at the same moment may be lost, and comes again
        fresh = place.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        fresh.write_text(json.dumps(known))
        fresh.replace(place)


@contextmanager
def announcing(say: Callable[[str], None]) -> Iterator[None]:
    """Say what is compiled inside the block, and how long it usually takes, if it takes more than a second.

    Examples
    --------
    >>> with announcing(print):
    ...     pass
    """
    with _listening(_Announcer(say)):
        yield


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
_listen(_Timekeeper())
