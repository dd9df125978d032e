"""Compiled functions as values: passed to a loop, which need not be compiled again for another one.

Numba types a function that is passed as an argument by its signature alone, if it is an object that tells its
address and its signature. So a loop that takes one is compiled, and kept on disk, once for all functions of
that signature, and a call costs some nanoseconds. Passing the compiled function itself would compile the
loop anew in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gibbsite._compile.jit import Entry
from gibbsite._compile.options import DISABLED, LEAN

if not DISABLED:
    import numba as _numba
    import numba.experimental.function_type  # registers how such values are typed
    from numba.core import types as numba_types

    nb: Any = numba_types
    typeof: Any = _numba.typeof

    class Pointer(nb.WrapperAddressProtocol):  # type: ignore[misc]
        """The address of a compiled function, and its signature."""

        def __init__(self, address: int, signature: Any, alive: Any) -> None:
            self.address, self.type, self.alive = address, signature, alive

        def __wrapper_address__(self) -> int:
            return self.address

        def signature(self) -> Any:
            """Return the types of arguments and result."""
            return self.type


P = ParamSpec("P")
R = TypeVar("R")


def pointed(function: Callable[P, R]) -> Entry[P, R]:
    """Mark a function that compiled loops call by its address; it must not allocate.

    Called from Python it runs as plain Python: to take its arguments apart for the compiled one would double
    the time it takes to compile.
    """
    return Entry(function, {**LEAN, "no_cpython_wrapper": True})


def point_at(entry: Entry[..., Any], *arguments: Any) -> Any:
    """Compile an entry point for arguments like these, or load it; return it as a value for compiled code.

    Examples
    --------
    >>> from gibbsite._compile.jit import compiled
    >>> @pointed
    ... def double(x: float) -> float:
    ...     return 2.0 * x
    >>> @compiled
    ... def apply(f: object, x: float) -> float:
    ...     return f(x)
    >>> apply(point_at(double, 1.0), 21.0)
    42.0
    """
    if DISABLED:
        return entry
    dispatcher, found = entry.compile_for(arguments)
    address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
    return Pointer(address, found.signature, dispatcher)


def point_nowhere(entry: Entry[..., Any], *arguments: Any) -> Any:
    """Return a value of the same type as :func:`point_at`, without compiling anything; it must not be called.

    The function must return nothing.
    """
    if DISABLED:
        return entry
    types = [typeof(argument) for argument in arguments]
    return Pointer(1, nb.void(*types), entry)  # Numba wants a positive number
