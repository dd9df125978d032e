"""Ctrl-C and SIGTERM: once ends the run in good order, twice stops it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType


@dataclass
class Flag:
    """Whether an interrupt has been asked for."""

    up: bool = False


@contextmanager
def catch_interrupt(notify: Callable[[str], None]) -> Iterator[Flag]:
    """Raise the flag at the first interrupt inside the block, KeyboardInterrupt at the second.

    An interrupt is Ctrl-C, or SIGTERM, which schedulers send some time before they kill. Outside the main
    thread signals cannot be caught; then nothing changes.

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
            notify("interrupted: finishing the current block and returning what there is (again: stop now)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():  # None: it was not set from Python
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
