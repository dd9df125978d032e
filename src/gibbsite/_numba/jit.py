"""Compilation: the decorators.

* :func:`compiled` marks an entry point, a function that Python calls: it is compiled at its first call, cached on
  disk (:mod:`.cache`), and releases the GIL.
* :func:`inlined` marks a helper of compiled code that is always inlined, :func:`called` one that remains a separate
  function and is compiled once for all callers.
* :func:`interpreted` runs a small job as plain Python instead of compiling it.
* :func:`generic` makes a function with one implementation for each type of its leading arguments, the named tuples
  that describe a kernel, a graph or a schedule. The choice is made during compilation, so a loop written once over
  named tuples is specialised for each combination, at no cost at run time.
* :func:`clock` is a clock that stops during compilations.

Environment: ``GIBBSITE_CACHE_DIR`` chooses the directory of the disk cache, ``off`` disables it;
``NUMBA_DISABLE_JIT=1`` runs everything as plain Python (debugging, coverage); ``GIBBSITE_WITHOUT`` names private parts
of Numba to switch off (:mod:`.parts`).
"""

from __future__ import annotations

import functools
import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numba.extending
import numpy as np

import numba
from gibbsite._numba.announcing import LISTENERS, announcing, announcing_once, on_compile
from gibbsite._numba.cache import DECORATING, cache_directory, decorate, is_kept
from gibbsite._numba.options import DISABLED, FROM_PYTHON, HELPER, LEAN, LOOP, OPTIONS

__all__ = [
    "DISABLED",
    "Entry",
    "Helper",
    "Integer",
    "announcing",
    "announcing_once",
    "cache_directory",
    "called",
    "clock",
    "compile_always",
    "compiled",
    "compiled_loop",
    "generic",
    "implement",
    "inlined",
    "interpreted",
    "intrinsic_for",
    "on_compile",
]

P = ParamSpec("P")
R = TypeVar("R")

#: An integer of any width in compiled code; type checkers cannot follow NumPy scalars there.
Integer = Any


class _Patience:
    """The number of steps, of about a microsecond each, that this process may still run as plain Python.

    A process may have only a few jobs, which are done faster without compiling; for many jobs, compiling soon pays.
    """

    steps = 3e6
    least_charge = 1e5


_interpreting: ContextVar[bool] = ContextVar("interpreting", default=False)


@contextmanager
def interpreted(steps: float, least_charge: float | None = None) -> Iterator[None]:
    """Run the block as plain Python if it is small and its compiled code is not available.

    Compiling takes seconds, which is worthwhile for large jobs or many small ones. The results are bit-identical.

    Parameters
    ----------
    steps : float
        Approximate number of iterations of the innermost loop; infinite if unknown.
    least_charge : float, optional
        The least number of steps that the job is charged. The default is large, so that compiling begins after a few
        dozen small jobs; pass a small number if the number of jobs is known to be small.

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
        least = _Patience.least_charge if least_charge is None else least_charge
        _Patience.steps -= max(steps, least)
    token = _interpreting.set(small)
    try:
        yield
    finally:
        _interpreting.reset(token)


def compile_always() -> None:
    """Make :func:`interpreted` do nothing in this process from now on."""
    _Patience.steps = -1.0


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
LISTENERS.append(_STOPWATCH)


def clock() -> float:
    """Return the time in seconds of a clock that stops while code is compiled or loaded.

    Time limits are measured with it, so that they do not depend on what was compiled before.
    """
    with _STOPWATCH.lock:
        now = time.monotonic()
        running = now - _STOPWATCH.since if _STOPWATCH.depth else 0.0
        return now - _STOPWATCH.spent - running


def _stopping_clock(dispatcher: Any) -> Any:
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


class Entry(Generic[P, R]):
    """A compiled function called from Python.

    Calls with argument types from outside the package go to a second dispatcher, without disk cache.
    """

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.plain = function
        self.options = options
        self._kept: Callable[P, R] | None = None
        self._fresh: Callable[P, R] | None = None
        self._kept_before: bool | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if DISABLED or (_interpreting.get() and not self._at_hand()):
            with np.errstate(all="ignore"):  # as in compiled code; 64-bit words wrap around by design
                return self.plain(*args, **kwargs)
        return cast(R, self._dispatcher(args)(*args, **kwargs))

    def _dispatcher(self, args: tuple[object, ...]) -> Any:
        """Return Numba's dispatcher for these arguments, with a disk cache if all their types belong to the package."""
        ours = _are_ours(args)
        with DECORATING:
            if ours and self._kept is None:
                self._kept = _stopping_clock(decorate(self.plain, self.options, cache=True))
            elif not ours and self._fresh is None:
                self._fresh = decorate(self.plain, self.options, cache=False)
        return self._kept if ours else self._fresh

    def compile_for(self, args: tuple[object, ...]) -> Any:
        """Compile or load the function for these arguments; return Numba's result."""
        type_of: Any = numba.typeof
        types = tuple(map(type_of, args))
        dispatcher = self._dispatcher(args)
        dispatcher.compile(types)
        return dispatcher.overloads[types]

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[], R]:
        """Return a function that repeats this call and inspects the types of the arguments only once.

        Inspecting types takes most of the time of a short call with named tuples of many arrays.
        """
        if not DISABLED and not kwargs:
            entry_point = getattr(self.compile_for(args), "entry_point", None)  # not public
            if entry_point is not None:
                return functools.partial(entry_point, *args)
        return functools.partial(self, *args, **kwargs)

    def _at_hand(self) -> bool:
        """Whether compiled code exists in this process or on disk."""
        if getattr(self._kept, "signatures", ()) or getattr(self._fresh, "signatures", ()):
            return True
        if self._kept_before is None:  # the disk is read once
            self._kept_before = is_kept(self.plain)
        return self._kept_before

    @property
    def signatures(self) -> list[Any]:
        """The type signatures compiled or loaded so far."""
        found: list[Any] = []
        for dispatcher in (self._kept, self._fresh):
            found += getattr(dispatcher, "signatures", [])
        return found


_OURS: set[type] = {tuple}  # types of tuples that are known to be ours


def _are_ours(values: tuple[object, ...]) -> bool:
    """Tell whether the types of all arguments belong to the package."""
    kind = type(values)
    if kind not in _OURS:
        if kind.__module__.partition(".")[0] != "gibbsite":
            return False
        _OURS.add(kind)
    # a loop instead of all(...), because this takes most of the time of a short call
    for value in values:  # noqa: SIM110
        if isinstance(value, tuple) and not _are_ours(value):
            return False
    return True


def compiled(function: Callable[P, R]) -> Entry[P, R]:
    """Mark an entry point, which is compiled at its first call, kept on disk, and run without the GIL.

    Examples
    --------
    >>> @compiled
    ... def double(x: float) -> float:
    ...     return 2.0 * x
    >>> double(21.0)
    42.0
    """
    return Entry(function, {**OPTIONS, **FROM_PYTHON})


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
    return Entry(function, {**LEAN, **LOOP, **FROM_PYTHON})


class Helper(Generic[P, R]):
    """A function for compiled code; called from Python, it runs as plain Python.

    Omitting the wrappers that Python would need to call the compiled code saves a third of its compile time.
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
    return Helper(function, numba.njit(**LEAN, **HELPER, **options)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a helper of compiled code that is always inlined; it must not allocate.

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
    """Mark a helper of compiled code that remains a separate function; it must not allocate.

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
    """The registry behind :func:`generic`, of implementations by the types of the leading arguments."""

    def __init__(self, stub: Callable[P, R]) -> None:
        self.name = getattr(stub, "__name__", "function")
        self.table: dict[tuple[type | None, ...], Callable[..., Any]] = {}

    def find(self, types: tuple[type | None, ...]) -> Callable[..., Any] | None:
        """Return the implementation with the longest match of these argument types.

        An implementation for a named tuple also serves types derived from it, unless they have their own.
        """
        for length in range(min(len(types), 3), -1, -1):
            found = self.table.get(types[:length])
            if found is not None:
                return found
            for kin in itertools.product(*map(_kin, types[:length])):
                if kin in self.table:
                    return self.table[kin]
        return None


@functools.cache
def _kin(kind: type | None) -> tuple[type | None, ...]:
    """Return a type and the named tuples it is derived from, nearest first."""
    return kind, *(base for base in getattr(kind, "__mro__", ())[1:] if hasattr(base, "_fields"))


def generic(stub: Callable[P, R]) -> Callable[P, R]:
    """Make a function whose implementation is chosen by the types of its leading arguments.

    The decorated function is a stub: name, signature and docstring. Implementations are added with :func:`implement`.
    This works in compiled code, where the choice is made at compile time, and in Python.

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

        options: Any = {"forceinline": True, **LEAN, **HELPER}
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
    options: Any = {"forceinline": True, **LEAN, **HELPER}
    register: Any = numba.extending.overload(function, jit_options=options)
    return cast("Callable[[Callable[..., Any]], Callable[..., Any]]", register)
