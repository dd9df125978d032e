"""Ctrl-C while the command line is being loaded: the process ends at once, with the exit code of any interrupt.

An exception would be lost where it passes through a callback of the import system. Nothing has been written by then.
"""

from __future__ import annotations

import os
import signal


def leave_at_once() -> None:
    """Let Ctrl-C end the process at once, where it would raise KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"gibbsite: interrupted\n")
    os._exit(130)
