"""Compilation: the decorators.

* :func:`compiled` marks an entry point, a function that Python calls: it is compiled at its first call, cached on
  disk (:mod:`.cache`), and releases the GIL.
* :func:`inlined` marks a helper of compiled code that is always inlined, :func:`called` one that remains a separate
  function and is compiled once for all callers.
* :func:`interpreted` runs a small job as plain Python instead of compiling it.
* :func:`.generic.generic` makes a function with one implementation for each type of its leading arguments.

Environment: ``GIBBSITE_CACHE_DIR`` chooses the directory of the disk cache, ``off`` disables it;
``NUMBA_DISABLE_JIT=1`` runs everything as plain Python (debugging, coverage); ``GIBBSITE_WITHOUT`` names private parts
of Numba to switch off (:mod:`.parts`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

import numba
from gibbsite._numba.cache import DECORATING, cache_directory, decorate, is_kept
from gibbsite._numba.clock import announcing, announcing_once, clock, on_compile, stopping_clock
from gibbsite._numba.generic import generic, implement, intrinsic_for
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
                self._kept = stopping_clock(decorate(self.plain, self.options, cache=True))
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
