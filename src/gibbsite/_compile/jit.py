"""Compilation: the one place that knows Numba.

* :func:`compiled` marks an entry point, called from Python: lazily compiled, cached on disk, releases
  the GIL.
* :func:`inlined` marks a helper of compiled code that is always merged into its caller, :func:`called` one
  that stays a function of its own (compiled once, whoever calls it).
* :func:`interpreted` lets a small job run as plain Python rather than wait for the compiler.
* :func:`generic` makes a function with one implementation per type of its leading arguments (the named
  tuples that describe a kernel, a graph, a schedule). The choice is made while compiling, so a loop
  written once over named tuples is specialised for each combination and costs nothing at run time.

The disk cache lives in a directory of our own whose name contains a hash of all sources of the package:
Numba stamps a cached function with the file that *defines* it only, so without this a changed callee in
another file would keep running in its old form. Kernels defined outside the package are compiled
without disk cache for the same reason. Nothing about the cache ever raises: an unwritable or damaged
cache means compiling again.

Directories of other versions that have not been used for 30 days are removed when a new one is made.

Environment: ``GIBBSITE_CACHE_DIR`` chooses the directory, ``off`` disables the disk cache;
``NUMBA_DISABLE_JIT=1`` runs everything as plain Python (debugging, coverage).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import re
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

#: An integer of compiled code, of whatever width; type checkers cannot follow NumPy scalars there.
Integer = Any

#: What is said when a call has to wait for the compiler.
COMPILING = "gibbsite: compiling (5 to 30 seconds; kept for later runs, but for functions of yours)"

log = logging.getLogger("gibbsite")


@contextmanager
def _postponed_blas_check() -> Iterator[None]:
    """Keep Numba from importing ``scipy.linalg`` (0.25 s) just to learn that BLAS exists.

    Numba asks once, while it loads its array functions. SciPy is a dependency, so the answer is yes;
    functions that use BLAS still check for themselves.
    """
    import numba.np.linalg as linalg

    asked = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        yield
    finally:
        linalg.ensure_blas = asked


import numba  # noqa: E402
import numba.extending  # noqa: E402
import numpy as np  # noqa: E402

from gibbsite._compile.lean import helper_options  # noqa: E402

_config: Any = numba.config

with _postponed_blas_check():
    import numba.np.arraymath

DISABLED: bool = bool(_config.DISABLE_JIT)

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Without Numba's runtime there is no allocation in compiled code, and no reference counting either: a
# sweep that hands tuples of arrays to its step pays several atomic operations per update otherwise (a
# factor of three, and twice the compile time).
LEAN: dict[str, Any] = {**_OPTIONS, "_nrt": False}
_HELPER: dict[str, Any] = {} if DISABLED else helper_options()


_UNUSED_DAYS = 30
_HASH = re.compile(r"[0-9a-f]{16}")  # names of directories that are ours


@functools.cache
def _source_hash() -> str:
    """Hash of every source file of the package and of the compiler's version."""
    root = Path(__file__).parent.parent
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, or None when the disk cache is off or unusable.

    Examples
    --------
    >>> directory = cache_directory()
    >>> directory is None or directory.is_dir()
    True
    """
    chosen = os.environ.get("GIBBSITE_CACHE_DIR", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        base = Path(chosen)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "gibbsite"
    else:
        try:
            home_cache = Path.home() / ".cache"
        except RuntimeError:
            home_cache = Path("/nonexistent")
        base = Path(os.environ.get("XDG_CACHE_HOME") or home_cache) / "gibbsite"
    directory = base / _source_hash()
    try:
        if not directory.exists():
            _remove_unused(base)
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as reason:
        log.info("compiled kernels are not kept on disk (%s)", reason)
        return None
    return directory


def _remove_unused(base: Path) -> None:
    """Remove what other versions of the package keep, if no process has begun to use it for long.

    Every process that begins changes the time of its directory (see the probe above). Should one that has run
    for longer miss its files, it compiles again.
    """
    limit = time.time() - 86400.0 * _UNUSED_DAYS
    with suppress(OSError):
        for directory in base.iterdir():
            if _HASH.fullmatch(directory.name) and directory.stat().st_mtime < limit:
                shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _cache_at(directory: Path) -> Iterator[None]:
    """Let functions decorated inside the block keep their cache in ``directory``."""
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        _config.CACHE_DIR = before


# The place of the cache is a global setting of Numba while a function is decorated: one at a time.
_DECORATING = threading.RLock()


def _decorate(function: Callable[P, R], options: dict[str, Any], cache: bool) -> Callable[P, R]:
    directory = cache_directory() if cache else None
    if directory is not None:
        try:
            with _cache_at(directory):
                kept = numba.njit(cache=True, **options)(function)
            _name_apart(kept)
            _stop_clock(kept)
            return cast(Callable[P, R], kept)
        except RuntimeError as reason:  # numba found no place for its cache
            log.info("compiled kernels are not kept on disk (%s)", reason)
    return cast(Callable[P, R], numba.njit(**options)(function))


# What reading a damaged cache file may raise: a kill during a write leaves a torn index behind.
_TORN_CACHE = (EOFError, pickle.UnpicklingError, OSError, AttributeError, ImportError, KeyError)


def _stop_clock(dispatcher: Any) -> None:
    """Let the clock of budgets stand still also while compiled code is loaded, or written to the disk.

    Numba tells when it compiles, but not of that; where nothing has been compiled yet it may take seconds.
    """
    prepare = dispatcher.compile

    def timed(signature: Any) -> Any:
        _STOPWATCH.on_start(None)
        try:
            return prepare(signature)
        finally:
            _STOPWATCH.on_end(None)

    dispatcher.compile = timed


def _name_apart(dispatcher: Any) -> None:
    """Give the files of compiled code names that no other process gives.

    Numba numbers them by the index it has read. Two processes that fill one cache at the same time would take
    the same number for different code, and one of them would later load the other's. With names of their
    own the worst that can happen is that an entry of the index is lost, and compiled again.
    """
    files = dispatcher._cache._cache_file
    files._data_name_pattern = files._data_name_pattern.replace(
        "{number:d}", f"{uuid.uuid4().hex}-{{number:d}}"
    )


class _Patience:
    """Steps of plain Python, of about a microsecond, that this process may still do instead of compiling.

    The first few jobs of a process may be all there are; where there are many, compiling pays soon.
    """

    steps = 3e6
    least_charge = 1e5


_interpreting: ContextVar[bool] = ContextVar("interpreting", default=False)


@contextmanager
def interpreted(steps: float) -> Iterator[None]:
    """Run the block as plain Python if it is small and its compiled code is not at hand.

    Compiling takes seconds, which pays for itself in large jobs or in many small ones. The results are the
    same bit by bit.

    Parameters
    ----------
    steps : float
        About how often the body of an innermost loop will be run.

    Examples
    --------
    >>> @compiled
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> with interpreted(steps=1):
    ...     add(40, 2)
    42
    """
    small = steps <= _Patience.steps
    if small:
        _Patience.steps -= max(steps, _Patience.least_charge)
    token = _interpreting.set(small)
    try:
        yield
    finally:
        _interpreting.reset(token)


def compile_always() -> None:
    """From now on, :func:`interpreted` changes nothing in this process."""
    _Patience.steps = -1.0


class Entry(Generic[P, R]):
    """A compiled function called from Python.

    Calls whose arguments involve types from outside the package go to a twin without disk cache.
    """

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.plain = function
        self.options = options
        self._kept: Callable[P, R] | None = None
        self._fresh: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if DISABLED or (_interpreting.get() and not self._at_hand()):
            with np.errstate(all="ignore"):  # as in compiled code; 64-bit words wrap around by design
                return self.plain(*args, **kwargs)
        if not _are_ours(args):
            return self.dispatcher_for(args)(*args, **kwargs)
        with _DECORATING:
            if self._kept is None:
                self._kept = _decorate(self.plain, self.options, cache=True)
        try:
            return self._kept(*args, **kwargs)
        except _TORN_CACHE as reason:
            log.info("the cache of compiled kernels was damaged (%r) and is rebuilt", reason)
            directory = cache_directory()
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)
                with suppress(OSError):
                    directory.mkdir(parents=True, exist_ok=True)
            self._kept = _decorate(self.plain, self.options, cache=False)
            return self._kept(*args, **kwargs)

    def dispatcher_for(self, args: tuple[object, ...]) -> Callable[P, R]:
        """Return Numba's dispatcher for such arguments: with disk cache if it involves our code only."""
        with _DECORATING:
            if _are_ours(args):
                if self._kept is None:
                    self._kept = _decorate(self.plain, self.options, cache=True)
                return self._kept
            if self._fresh is None:
                self._fresh = _decorate(self.plain, self.options, cache=False)
            return self._fresh

    def _at_hand(self) -> bool:
        """Whether it has been compiled by this process, or by an earlier one that kept it."""
        if self.signatures:
            return True
        directory = cache_directory()
        module = self.plain.__module__.rpartition(".")[2]
        pattern = f"*/{module}.{self.plain.__qualname__}-*.nbi"
        return directory is not None and any(directory.glob(pattern))

    @property
    def signatures(self) -> list[Any]:
        """Type signatures compiled or loaded so far."""
        found: list[Any] = []
        for dispatcher in (self._kept, self._fresh):
            found += getattr(dispatcher, "signatures", [])
        return found


_OURS: set[type] = {tuple}  # types of tuples that have been looked at


def _are_ours(values: tuple[object, ...]) -> bool:
    """Whether compiling for these arguments, a tuple themselves, involves code of the package only."""
    kind = type(values)
    if kind not in _OURS:
        if kind.__module__.partition(".")[0] != "gibbsite":
            return False
        _OURS.add(kind)
    # a loop, not all(...): this is most of what a call of a short loop costs
    for value in values:  # noqa: SIM110
        if isinstance(value, tuple) and not _are_ours(value):
            return False
    return True


def compiled(function: Callable[P, R]) -> Entry[P, R]:
    """Mark an entry point: compiled at its first call, kept on disk, run without the GIL.

    Examples
    --------
    >>> @compiled
    ... def double(x: float) -> float:
    ...     return 2.0 * x
    >>> double(21.0)
    42.0
    """
    return Entry(function, _OPTIONS)


def compiled_loop(function: Callable[P, R]) -> Entry[P, R]:
    """Mark an entry point that allocates nothing, and is therefore free of reference counting.

    Examples
    --------
    >>> @compiled_loop
    ... def triple(x: float) -> float:
    ...     return 3.0 * x
    >>> triple(14.0)
    42.0
    """
    return Entry(function, LEAN)


class Helper(Generic[P, R]):
    """A function for compiled code; called from Python, it runs as plain Python.

    Without the wrappers that Python would need to call it, a third of its compile time is saved.
    """

    def __init__(self, function: Callable[P, R], dispatcher: Any) -> None:
        functools.update_wrapper(self, function)
        self.plain = function
        self.dispatcher = dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return self.plain(*args, **kwargs)


def _helper(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if DISABLED:
        return function
    return Helper(function, numba.njit(**LEAN, **_HELPER, **options)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a helper of compiled code that is always merged into its caller; it must not allocate.

    Examples
    --------
    >>> @inlined
    ... def square(x: float) -> float:
    ...     return x * x
    >>> square(3.0)
    9.0
    """
    return _helper(function, forceinline=True)


def called(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a helper of compiled code that stays a function of its own; it must not allocate.

    Examples
    --------
    >>> @called
    ... def cube(x: float) -> float:
    ...     return x * x * x
    >>> cube(3.0)
    27.0
    """
    return _helper(function)


class Dispatch(Generic[P, R]):
    """Registry behind :func:`generic`: implementations by the types of the leading arguments."""

    def __init__(self, stub: Callable[P, R]) -> None:
        self.name = getattr(stub, "__name__", "function")
        self.table: dict[tuple[type, ...], Callable[..., Any]] = {}

    def find(self, types: tuple[type | None, ...]) -> Callable[..., Any] | None:
        """Return the implementation for these argument types; the longest match wins, of no type the last."""
        for length in range(min(len(types), 3), -1, -1):
            found = self.table.get(cast("tuple[type, ...]", types[:length]))
            if found is not None:
                return found
        return None


def generic(stub: Callable[P, R]) -> Callable[P, R]:
    """Make a function whose implementation is chosen by the types of its leading arguments.

    The decorated function is a stub: name, signature and docstring. Implementations are added with
    :func:`implement`. Works inside compiled code (the choice is made while compiling) and in Python.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Circle(NamedTuple):
    ...     radius: float
    >>> @generic
    ... def area(shape: object) -> float:
    ...     '''Area of a shape.'''
    >>> @implement(area, Circle)
    ... def _area_circle(shape: Circle) -> float:
    ...     return 3.0 * shape.radius**2
    >>> area(Circle(2.0))
    12.0
    """
    registry = Dispatch(stub)

    @functools.wraps(stub)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = registry.find(tuple(type(arg) for arg in args[:3]))
        if found is None:
            raise TypeError(f"{registry.name} has no implementation for {type(args[0]).__name__}")
        return found(*args, **kwargs)

    call.__dict__["registry"] = registry
    if not DISABLED:

        def choose(*args: Any) -> Any:
            return registry.find(tuple(getattr(arg, "instance_class", None) for arg in args[:3]))

        options: Any = {"forceinline": True, **LEAN, **_HELPER}
        numba.extending.overload(call, strict=False, jit_options=options)(choose)
    return cast(Callable[P, R], call)


def implement(function: Callable[..., Any], *types: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register an implementation of a :func:`generic` function for the given leading types.

    See :func:`generic` for an example.
    """

    def register(implementation: Callable[P, R]) -> Callable[P, R]:
        registry: Dispatch[..., Any] = function.__dict__["registry"]
        registry.table[types] = implementation
        return implementation

    return register


def intrinsic_for(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give compiled code its own version of a Python function, chosen by the argument types."""
    options: Any = {"forceinline": True, **LEAN, **_HELPER}
    register: Any = numba.extending.overload(function, jit_options=options)
    return cast("Callable[[Callable[..., Any]], Callable[..., Any]]", register)


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


def _watch_compilation() -> None:
    from numba.core import event as events

    class _Watcher(events.Listener):
        def on_start(self, event: object) -> None:
            _STOPWATCH.on_start(event)

        def on_end(self, event: object) -> None:
            _STOPWATCH.on_end(event)

    watch: Any = events
    watch.register("numba:compile", _Watcher())


if not DISABLED:
    _watch_compilation()


@contextmanager
def on_compile(notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify`` once if anything is compiled (not merely loaded) inside the block.

    Examples
    --------
    >>> with on_compile(lambda: print("compiling")):
    ...     pass
    """
    if DISABLED:
        yield
        return
    from numba.core import event as events

    event: Any = events

    class _Listener(events.Listener):
        told = False

        def on_start(self, event: object) -> None:
            if not self.told:
                self.told = True
                notify()

        def on_end(self, event: object) -> None:
            pass

    listener = _Listener()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)
