"""Packed tuples: many named tuples of one type in one array, from which compiled code takes one by its number.

A loop over graphs, or over the memories of several chains, would otherwise be compiled anew for every number of
them, because the type of a Python tuple includes its length. The array holds the values one after another in the
memory layout of compiled code, and keeps the arrays in them alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsite._common.arrays import Words64
from gibbsite._numba.jit import DISABLED, Integer, compiled

# The values packed into each array, by its address; they are kept alive as long as the array.
_KEPT: dict[int, tuple[Any, ...]] = {}


def take(packed: Words64, k: Integer, like: Any) -> Any:
    """Return packed value number ``k``; ``like`` is any value of the packed type.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Pair(NamedTuple):
    ...     x: Floats
    ...     scale: float
    >>> @compiled
    ... def add(packed: Words64, like: Pair, n: int) -> float:
    ...     total = 0.0
    ...     for k in range(n):
    ...         total += take(packed, k, like).scale * take(packed, k, like).x[0]
    ...     return total
    >>> pairs = [Pair(np.full(2, 1.0), 2.0), Pair(np.full(3, 10.0), 3.0)]
    >>> add(pack_values(pairs), pairs[0], 2)
    32.0
    """
    return _KEPT[packed.__array_interface__["data"][0]][int(k)]


def pack_values(values: Sequence[Any]) -> Words64:
    """Pack values, which must all have the same Numba type, including which arrays are writeable."""
    if DISABLED:
        packed = np.zeros(1, np.uint64)
    else:
        kinds = {str(type_of(value)) for value in values}
        if len(kinds) != 1:
            raise TypeError(f"packed values must be of one type, not {', '.join(sorted(kinds))}.")
        width = int(_width(values[0]))
        packed = np.zeros(len(values) * width, np.uint64)
        for k, value in enumerate(values):
            _put(packed, k, value)
    address = packed.__array_interface__["data"][0]
    _KEPT[address] = tuple(values)
    weakref.finalize(packed, _KEPT.pop, address, None)
    return packed


if not DISABLED:
    import numba.extending
    from llvmlite import ir
    from numba.core import types as numba_types

    nb: Any = numba_types
    type_of: Any = numba.typeof
    type_callable: Any = numba.extending.type_callable
    lower_builtin: Any = numba.extending.lower_builtin
    intrinsic: Any = numba.extending.intrinsic

    def _words(context: Any, kind: Any) -> int:
        """Return the number of words that a value of a type takes."""
        return -(-int(context.get_abi_sizeof(context.get_data_type(kind))) // 8)

    def _place(context: Any, builder: Any, kind: Any, array_kind: Any, packed: Any, k: Any) -> Any:
        """Return the address of value number ``k``."""
        data = context.make_array(array_kind)(context, builder, packed).data
        spot = builder.gep(data, [builder.mul(k, ir.IntType(64)(_words(context, kind)))])
        return builder.bitcast(spot, context.get_data_type(kind).as_pointer())

    def _disowned(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        """Return a value without reference counts of its arrays, which Python keeps alive."""
        if isinstance(kind, nb.Array):
            array = context.make_array(kind)(context, builder, value)
            array.meminfo = array.meminfo.type(None)
            array.parent = array.parent.type(None)
            return array._getvalue()
        if isinstance(kind, nb.BaseTuple):
            for k, part in enumerate(kind.types):
                inner = _disowned(context, builder, part, builder.extract_value(value, k))
                value = builder.insert_value(value, inner, k)
        return value

    @type_callable(take)  # type: ignore[untyped-decorator]
    def _type_take(context: Any) -> Any:
        def find(packed: Any, k: Any, like: Any) -> Any:
            return like(packed, nb.intp, like)

        return find

    @lower_builtin(take, nb.Array, nb.intp, nb.Any)  # type: ignore[untyped-decorator]
    def _build_take(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        spot = _place(context, builder, kind, signature.args[0], arguments[0], arguments[1])
        model = context.data_model_manager[kind]
        return model.from_data(builder, builder.load(spot, align=8))

    @intrinsic  # type: ignore[untyped-decorator]
    def _store_value(typing: Any, packed: Any, k: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, _, kind = signature.args
            spot = _place(context, builder, kind, array, arguments[0], arguments[1])
            model = context.data_model_manager[kind]
            value = _disowned(context, builder, kind, arguments[2])
            builder.store(model.as_data(builder, value), spot, align=8)
            return context.get_dummy_value()

        return nb.none(packed, nb.intp, value), build

    @intrinsic  # type: ignore[untyped-decorator]
    def _words_of(typing: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return ir.IntType(64)(_words(context, signature.args[0]))

        return nb.int64(value), build

    @compiled
    def _put(packed: Words64, k: int, value: Any) -> None:
        _store_value(packed, k, value)

    @compiled
    def _width(value: Any) -> int:
        return _words_of(value)  # type: ignore[no-any-return]
