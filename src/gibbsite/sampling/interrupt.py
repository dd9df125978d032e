"""Ctrl-C and SIGTERM: once ends the run in good order, twice stops it at once.

A run that is a part of something larger must not hand back what it has so far: whoever makes several runs
would go on with truncated numbers. Inside :func:`whole_runs_only` an interrupted run raises
KeyboardInterrupt at its end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType

_WHOLE: ContextVar[bool] = ContextVar("whole", default=False)


@contextmanager
def whole_runs_only() -> Iterator[None]:
    """Let every run inside the block end in KeyboardInterrupt if it was interrupted.

    Examples
    --------
    >>> try:
    ...     with whole_runs_only(), catch_interrupt(print) as flag:
    ...         flag.up = True  # as an interrupt does
    ... except KeyboardInterrupt:
    ...     print("stopped")
    stopped
    """
    token = _WHOLE.set(True)
    try:
        yield
    finally:
        _WHOLE.reset(token)


@dataclass
class Flag:
    """Whether an interrupt has been asked for."""

    up: bool = False


@contextmanager
def catch_interrupt(notify: Callable[[str], None]) -> Iterator[Flag]:
    """Raise the flag at the first interrupt inside the block, KeyboardInterrupt at the second.

    An interrupt is Ctrl-C, or SIGTERM, which schedulers send some time before they kill. Outside the main
    thread signals cannot be caught; then nothing changes. Inside :func:`whole_runs_only` a raised flag ends
    in KeyboardInterrupt when the block is left.

    Examples
    --------
    >>> with catch_interrupt(print) as flag:
    ...     flag.up
    False
    """
    flag = Flag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if flag.up:
            raise KeyboardInterrupt
        flag.up = True
        with suppress(RuntimeError):  # a signal in the middle of a write: Python refuses another one
            after = "stopping" if _WHOLE.get() else "returning what there is"
            notify(f"interrupted: finishing the current block and {after} (again: stop now)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():  # None: it was not set from Python
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if flag.up and _WHOLE.get():
        raise KeyboardInterrupt
