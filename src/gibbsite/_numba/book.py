"""Tables of pointers: the addresses and sizes of many arrays in one array of integers.

A function of twenty arrays passes 140 numbers at every call, as do the wrappers by which Python and other compiled code
call it. For a short function, most of the compile time goes into these. A pointer table (a book) is a single array,
however many arrays it refers to. Its creator must keep the arrays alive.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite._numba.jit import DISABLED, Integer


def array_in(book: Ints, k: Integer, kind: Any) -> Array:
    """Return array number ``k`` of a pointer table as a one-dimensional array of type ``kind``."""
    dtype, size = np.dtype(kind), int(book[2 * k + 1])
    if size == 0:
        return np.zeros(0, dtype)
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(int(book[2 * k]))
    return np.frombuffer(memory, dtype)


def address_of(array: Array) -> int:
    """Return the address of the first entry of a contiguous array."""
    return int(array.ctypes.data)


if not DISABLED:
    import numba.extending
    from llvmlite import ir
    from numba.core import types as numba_types

    nb: Any = numba_types
    type_callable: Any = numba.extending.type_callable
    lower_builtin: Any = numba.extending.lower_builtin

    @type_callable(array_in)  # type: ignore[untyped-decorator]
    def _type_array(context: Any) -> Any:
        def find(book: Any, k: Any, kind: Any) -> Any:
            dtype = kind.dtype if isinstance(kind, nb.DType) else kind.instance_type
            return nb.Array(dtype, 1, "C")(book, nb.intp, kind)

        return find

    @lower_builtin(array_in, nb.Array, nb.intp, nb.Any)  # type: ignore[untyped-decorator]
    def _build_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, kind = ir.IntType(64), signature.return_type
        book = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(book.data, [builder.shl(arguments[1], word(1))])
        size = builder.load(builder.gep(place, [word(1)]))
        array = context.make_array(kind)(context, builder)
        width = word(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        context.populate_array(
            array,
            data=builder.inttoptr(builder.load(place), array.data.type),
            shape=[size],
            strides=[width],
            itemsize=width,
            meminfo=None,
        )
        return array._getvalue()

    @type_callable(address_of)  # type: ignore[untyped-decorator]
    def _type_address(context: Any) -> Any:
        def find(array: Any) -> Any:
            return nb.int64(array) if isinstance(array, nb.Array) and array.layout == "C" else None

        return find

    @lower_builtin(address_of, nb.Array)  # type: ignore[untyped-decorator]
    def _build_address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))
