"""Compiled functions as values, which loops call by address.

A loop that calls a function by its address is compiled and kept on disk once for all functions with the same types, and
a call costs a few nanoseconds. Numba supports functions as values, too, but they make each call of the loop ten
microseconds slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gibbsite._numba.jit import DISABLED, Entry
from gibbsite._numba.options import LEAN, LOOP

P = ParamSpec("P")
R = TypeVar("R")

# The Python functions by their "addresses", for runs without the compiler.
_PLAIN: dict[int, Callable[..., Any]] = {}


def pointed(function: Callable[P, R]) -> Entry[P, R]:
    """Mark a function of four arguments and no result that compiled loops call by its address.

    It must not allocate. Python cannot call the compiled function, because the wrapper for that would double its
    compile time.
    """
    return Entry(function, {**LEAN, **LOOP, "no_cpython_wrapper": True})


def point_at(entry: Entry[..., Any], *arguments: Any) -> int:
    """Return the address of a pointed function, compiled or loaded for arguments like these.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsite._numba.jit import compiled
    >>> @pointed
    ... def put(x: object, i: int, a: float, b: float) -> None:
    ...     x[i] = a + b
    >>> @compiled
    ... def apply(address: int, x: object) -> None:
    ...     call_pointer(address, x, 1, 4.0, 2.0)
    >>> x = np.zeros(2)
    >>> apply(point_at(put, x, 0, 0.0, 0.0), x)
    >>> x.tolist()
    [0.0, 6.0]
    """
    if DISABLED:
        address = id(entry)
    else:
        found = entry.compile_for(arguments)
        address = int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))
    _PLAIN[address] = entry.plain
    return address


def call_pointer(address: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """Call a function at an address; the arguments must be of the types it was compiled for."""
    _PLAIN[int(address)](a, b, c, d)


if not DISABLED:
    import numba.extending
    from llvmlite import ir
    from numba.core import types as numba_types

    nb: Any = numba_types
    type_callable: Any = numba.extending.type_callable
    lower_builtin: Any = numba.extending.lower_builtin

    @type_callable(call_pointer)  # type: ignore[untyped-decorator]
    def _type_call(context: Any) -> Any:
        def find(address: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
            kinds = [nb.unliteral(kind) for kind in (a, b, c, d)]
            if any(isinstance(kind, nb.Array) and kind.layout != "C" for kind in kinds):
                return None  # the function was compiled for contiguous arrays
            return nb.none(nb.int64, *kinds)

        return find

    @lower_builtin(call_pointer, nb.int64, nb.Any, nb.Any, nb.Any, nb.Any)  # type: ignore[untyped-decorator]
    def _build_call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Numba's wrapper for calls from C takes values, and returns None as a pointer
        kinds = [context.get_value_type(kind) for kind in signature.args[1:]]
        called = ir.FunctionType(context.get_value_type(nb.none), kinds)
        function = builder.inttoptr(arguments[0], called.as_pointer())
        builder.call(function, arguments[1:])
        return context.get_dummy_value()
