"""Compiled functions as values: passed to a loop as their address, so that the loop need not know them.

A loop that calls a function by its address is compiled, and kept on disk, once for all functions of the same
types, and a call costs some nanoseconds. Numba has functions as values of its own, but a call of a loop that
takes one costs ten microseconds more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gibbsite._compile.generic import intrinsic_for
from gibbsite._compile.jit import Entry
from gibbsite._compile.options import DISABLED, LEAN

P = ParamSpec("P")
R = TypeVar("R")


def pointed(function: Callable[P, R]) -> Entry[P, R]:
    """Mark a function of five arguments, without a result, that compiled loops call by its address.

    It must not allocate. There is no way to call the compiled function from Python: to take its arguments
    apart would double the time it takes to compile.
    """
    return Entry(function, {**LEAN, "no_cpython_wrapper": True})


def point_at(entry: Entry[..., Any], *arguments: Any) -> Any:
    """Compile a pointed function for arguments like these, or load it; return its address.

    Without the compiler that is the function itself.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsite._compile.jit import compiled
    >>> @pointed
    ... def put(x: object, i: int, a: float, b: float, c: float) -> None:
    ...     x[i] = a + b + c
    >>> @compiled
    ... def apply(address: int, x: object) -> None:
    ...     call_pointer(address, x, 1, 1.0, 2.0, 3.0)
    >>> x = np.zeros(2)
    >>> apply(point_at(put, x, 0, 0.0, 0.0, 0.0), x)
    >>> x.tolist()
    [0.0, 6.0]
    """
    if DISABLED:
        return entry
    found = entry.compile_for(arguments)
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


def call_pointer(address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Call a function at an address; the arguments must be of the types it was compiled for."""
    address(a, b, c, d, e)


if not DISABLED:
    from llvmlite import ir
    from numba.core import types as numba_types

    from gibbsite._compile.intrinsic import intrinsic

    nb: Any = numba_types

    @intrinsic
    def _call(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        types = [nb.unliteral(kind) for kind in (a, b, c, d, e)]

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # the wrapper that Numba makes for calls from C takes values, and returns nothing as a pointer
            kinds = [context.get_value_type(kind) for kind in signature.args[1:]]
            called = ir.FunctionType(context.get_value_type(nb.none), kinds)
            function = builder.inttoptr(arguments[0], called.as_pointer())
            builder.call(function, arguments[1:])
            return context.get_dummy_value()

        return nb.none(nb.int64, *types), build

    intrinsic_for(call_pointer)(
        lambda address, a, b, c, d, e: lambda address, a, b, c, d, e: _call(address, a, b, c, d, e)
    )
