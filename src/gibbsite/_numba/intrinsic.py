"""Intrinsics that Numba lacks: bits as floats, numbers of bits, atomic addition, and barriers for threads.

Each intrinsic is also a Python function with the same result, so that everything runs without the compiler, too.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite._numba.jit import DISABLED, Integer, called, intrinsic_for

#: Bytes that a vector instruction processes at once (:mod:`gibbsite._numba.vector`).
WIDTH = 32
#: Floats that a vector operation processes at once (:mod:`gibbsite._numba.tiles`).
VECTOR = 8


def float_from_bits(word: Any) -> Any:
    """Return the 32-bit float whose bits are those of an integer.

    Examples
    --------
    >>> float(float_from_bits(np.int32(0x3F800000)))
    1.0
    """
    return np.float32(struct.unpack("<f", struct.pack("<i", int(word)))[0])


def double_from_bits(word: Any) -> Any:
    """Return the 64-bit float whose bits are those of an unsigned integer.

    Examples
    --------
    >>> float(double_from_bits(np.uint64(0x3FF0000000000000)))
    1.0
    """
    return np.uint64(word).view(np.float64)


def bits_of_double(number: Any) -> Any:
    """Return the bits of a 64-bit float as an unsigned integer.

    Examples
    --------
    >>> hex(bits_of_double(1.0))
    '0x3ff0000000000000'
    """
    return np.float64(number).view(np.uint64)


def count_bits(word: Any) -> Any:
    """Return the number of bits of an unsigned 64-bit integer that are one.

    Examples
    --------
    >>> count_bits(np.uint64(13))
    3
    """
    return int(word).bit_count()


def add_atomically(counter: Ints, amount: Any) -> Any:
    """Add to the first entry of an array atomically; return its previous value.

    Examples
    --------
    >>> counter = np.array([41])
    >>> int(add_atomically(counter, 1)), counter.tolist()
    (41, [42])
    """
    before = counter[0]
    counter[0] += amount
    return before


def fetch(array: Array, index: Any) -> None:
    """Prefetch an entry of an array into the processor's cache; the entry need not exist."""


def give_way() -> Any:
    """Yield the processor to other threads."""
    return 0


if not DISABLED:
    import numba.extending
    from llvmlite import ir
    from numba.core import cgutils

    from numba import types

    intrinsic = cast("Callable[[Callable[..., Any]], Any]", numba.extending.intrinsic)
    insert_function: Any = cgutils.get_or_insert_function

    @intrinsic
    def _reinterpret(typing: Any, word: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.FloatType())

        return types.float32(types.int32), build

    @intrinsic
    def _double(typing: Any, word: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.DoubleType())

        return types.float64(types.uint64), build

    @intrinsic
    def _word(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.IntType(64))

        return types.uint64(types.float64), build

    @intrinsic
    def _population(typing: Any, word: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), build

    @intrinsic
    def _fetch_and_add(typing: Any, counter: Any, amount: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            return builder.atomic_rmw("add", array.data, arguments[1], "seq_cst")

        return types.int64(counter, types.int64), build

    @intrinsic
    def _prefetch(typing: Any, array: Any, index: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            spot = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [spot.type, word, word, word])
            call = insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(call, [spot, word(0), word(3), word(1)])  # for reading, with high locality, data cache
            return context.get_dummy_value()

        return types.none(array, types.uintp), build

    @intrinsic
    def _yield(typing: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if sys.platform == "win32":
                return ir.IntType(32)(0)
            kind = ir.FunctionType(ir.IntType(32), [])
            return builder.call(insert_function(builder.module, kind, "sched_yield"), [])

        return types.int32(), build

    intrinsic_for(float_from_bits)(lambda word: lambda word: _reinterpret(word))
    intrinsic_for(double_from_bits)(lambda word: lambda word: _double(word))
    intrinsic_for(bits_of_double)(lambda number: lambda number: _word(number))
    intrinsic_for(count_bits)(lambda word: lambda word: _population(word))
    intrinsic_for(add_atomically)(lambda counter, amount: lambda counter, amount: _fetch_and_add(counter, amount))
    intrinsic_for(fetch)(lambda array, index: lambda array, index: _prefetch(array, np.uintp(index)))
    intrinsic_for(give_way)(lambda: lambda: _yield())


_PATIENCE = 4000  # checks of the counter, of a few nanoseconds each, before the thread yields


@called
def wait_for_all(gate: Ints, members: Integer) -> None:
    """Wait until all members of a team have called this as often as the caller.

    ``gate`` is an array that the team shares and that holds one zero at first. Threads spin while they wait, because
    sleeping and waking takes longer than a sweep of a small model.
    """
    arrived = add_atomically(gate, 1)
    target = (arrived // members + 1) * members
    looks = 0
    while add_atomically(gate, 0) < target:
        looks += 1
        if looks > _PATIENCE:
            give_way()
