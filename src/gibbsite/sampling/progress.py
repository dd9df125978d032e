"""Progress and interrupts of a run.

Progress is a live line on a terminal, a bar in a notebook, plain lines in a log, or nothing. Terminals and
logs get it on stderr. Runs that end within a second show nothing. The first Ctrl-C or SIGTERM ends a run
after the current block, the second one stops it immediately.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from gibbsite._common.html import escape
from gibbsite._common.wording import argument, escaped
from gibbsite.errors import ArgumentError, ConvergenceWarning

_QUIET_SECONDS = 1.0  # shorter runs show nothing
_LOG_SECONDS = 10.0  # between two lines in a log
_BAR_SECONDS = 0.2  # between two states of the bar in a notebook


@dataclass(frozen=True)
class Status:
    """How far a run has got.

    Attributes
    ----------
    phase : str
        "warmup", "sampling", "mean field", or the name of an experiment.
    done, total : int
        Sweeps (or what ``unit`` says) made and asked for, in all phases; ``total`` is 0 when only time
        limits the run.
    seconds : float
        Since the start.
    limit : float
        Time limit, infinite if there is none.
    chains : int
        Number of chains.
    unit : str
        What is counted.
    """

    phase: str
    done: int
    total: int
    seconds: float
    limit: float
    chains: int
    unit: str = "sweep"

    @property
    def fraction(self) -> float:
        """Share of the work that is done, by sweeps or by time, whichever is further."""
        by_sweeps = self.done / self.total if self.total else 0.0
        return min(1.0, max(by_sweeps, self.seconds / self.limit))

    def text(self) -> str:
        """Return one line about it."""
        share = f"{self.fraction:6.1%}"
        of = f"/{self.total:,}" if self.total else ""
        left = self.seconds * (1 / self.fraction - 1) if self.fraction > 0 else float("inf")
        ahead = f", {left:.0f} s left" if left < 1e6 else ""
        chains = f" x {self.chains} chains" if self.chains > 1 else ""
        counted = f"{self.unit} {self.done:,}{of}{chains}"
        return f"gibbsite: {self.phase} {share}  {counted}, {self.seconds:.0f} s{ahead}"


class Progress(Protocol):
    """Something that shows the progress of a run."""

    def show(self, status: Status) -> None:
        """Show the status."""

    def say(self, message: str) -> None:
        """Show a message."""

    def close(self) -> None:
        """End the display."""


class Silent:
    """Show nothing."""

    def show(self, status: Status) -> None:
        """Ignore the status."""

    def say(self, message: str) -> None:
        """Ignore the message."""

    def close(self) -> None:
        """Do nothing."""


@dataclass
class Callback(Silent):
    """Hand every status to a function."""

    function: Callable[[Status], Any]

    def show(self, status: Status) -> None:
        """Call the function."""
        self.function(status)


@dataclass
class Lines:
    """A plain line at intervals."""

    last: float = 0.0

    def show(self, status: Status) -> None:
        """Write a line if the last one is old enough."""
        if status.seconds - self.last >= _LOG_SECONDS:
            self.last = status.seconds
            self.say(status.text())

    def say(self, message: str) -> None:
        """Write the message."""
        print(escaped(message), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing."""


@dataclass
class Live:
    """A line that is renewed in place, by rich."""

    bar: Any = None
    task: Any = None

    def show(self, status: Status) -> None:
        """Renew the line; the first comes after a second."""
        if self.bar is None:
            if status.seconds < _QUIET_SECONDS:
                return
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                BarColumn(),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self.task = self.bar.add_task("", total=1.0)
            self.bar.start()
        self.bar.update(self.task, completed=status.fraction, description=escaped(status.text()))

    def say(self, message: str) -> None:
        """Write a message above the line."""
        if self.bar is not None:
            self.bar.console.print(escaped(message), highlight=False, markup=False)
        else:
            print(escaped(message), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the line away."""
        if self.bar is not None:
            self.bar.stop()


@dataclass
class Notebook:
    """A bar below the cell of a notebook that is being run, which is renewed in place.

    ``display`` shows an object and returns its handle, as that of IPython does.
    """

    display: Callable[..., Any]
    handle: Any = None
    bar: str = ""
    messages: list[str] = field(default_factory=list)
    last: float = 0.0

    def show(self, status: Status) -> None:
        """Renew the bar; the first comes after a second."""
        if status.seconds < _QUIET_SECONDS or status.seconds - self.last < _BAR_SECONDS:
            return
        self.last = status.seconds
        self.bar = f'<progress max="1" value="{status.fraction:.3f}"></progress> {escape(status.text())}'
        self._renew()

    def say(self, message: str) -> None:
        """Show a message above the bar."""
        self.messages.append(escape(message))
        self._renew()

    def close(self) -> None:
        """Take the bar away; messages stay."""
        if self.bar:
            self.bar = ""
            self._renew()

    def _renew(self) -> None:
        shown = _Html("".join(f"<div>{line}</div>" for line in (*self.messages, self.bar) if line))
        if self.handle is None:
            self.handle = self.display(shown, display_id=True)
        else:
            self.handle.update(shown)


@dataclass
class _Html:
    """A piece of HTML."""

    text: str

    def _repr_html_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return ""


def _notebook_display() -> Callable[..., Any] | None:
    """Return the function that shows objects in a notebook; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):  # a terminal
        return None
    from IPython.display import display

    found: Callable[..., Any] = display
    return found


def name_kernel(kernel: object | None) -> str:
    """Return how messages name a kernel, or the one that a model is given by default.

    Examples
    --------
    >>> import gibbsite as gs
    >>> name_kernel(gs.Gibbs()), name_kernel(None)
    ('the Gibbs kernel', 'the default kernel')
    """
    return "the default kernel" if kernel is None else f"the {type(kernel).__name__} kernel"


def choose_progress(progress: Any, first: float | None = None) -> Progress:
    """Turn the ``progress`` argument into a display.

    None: live on a terminal and in a notebook, lines elsewhere; True: the same; False: silent; a function: called
    with every :class:`Status`. ``first`` is the number of seconds before the first line in a log.

    Examples
    --------
    >>> type(choose_progress(False)).__name__
    'Silent'
    """
    if threading.current_thread() is not threading.main_thread():  # every function that takes long begins here
        from gibbsite._common.loading import load_for_threads

        load_for_threads()
    if progress is False:
        return Silent()
    if progress is None or progress is True:
        if (display := _notebook_display()) is not None:
            return Notebook(display)
        if sys.stderr is not None and sys.stderr.isatty():
            return Live()
        return Lines(0.0 if first is None else first - _LOG_SECONDS)
    if callable(progress):
        return Callback(progress)
    raise ArgumentError(f"{argument('progress')} must be True, False, None or a function, got {progress!r}.")


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


@contextmanager
def inner_runs() -> Iterator[None]:
    """Let runs inside the block be parts of another computation: whole or interrupted, and without warnings.

    Examples
    --------
    >>> with inner_runs():
    ...     warnings.warn("not converged", ConvergenceWarning)
    """
    with warnings.catch_warnings(), whole_runs_only():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


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
            after = "stopping" if _WHOLE.get() else "returning partial results"
            notify(f"interrupted: finishing the current block and {after} (again: stop now)")

    signals = (signal.SIGINT, signal.SIGTERM)
    before = dict(zip(signals, map(signal.signal, signals, (handle, handle)), strict=True))
    try:
        yield flag
    finally:
        for number, handler in before.items():  # None: it was not set from Python
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if flag.up and _WHOLE.get():
        raise KeyboardInterrupt
