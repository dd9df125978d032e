"""Vector instructions for 32 chains at a time that compilers do not generate by themselves.

:mod:`gibbsite.kernels.batched.replicated` is the same computation in Python, which processors without these
instructions run. Tables of sixteen bytes, or of sixteen words in two halves, fit into registers, where all chains look
up their values at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba.extending
from llvmlite import ir
from numba.core import cgutils

from gibbsite._numba.intrinsic import WIDTH
from gibbsite._numba.parts import try_part
from numba import types

intrinsic = cast("Callable[[Callable[..., Any]], Any]", numba.extending.intrinsic)
_WORD = ir.IntType(32)


def _bytes(count: int) -> Any:
    return ir.VectorType(ir.IntType(8), count)


def _words(count: int) -> Any:
    return ir.VectorType(_WORD, count)


class _Code:
    """A builder of vector instructions over the arguments of an intrinsic."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.types, self.arguments = (context, builder, signature.args, arguments)

    def spot(self, array: int, index: Any, offset: int, kind: Any) -> Any:
        """Return the address of a vector in the array that is argument number ``array``."""
        view = self.context.make_array(self.types[array])(self.context, self.builder, self.arguments[array])
        at = self.builder.add(index, ir.Constant(index.type, offset))
        return self.builder.bitcast(self.builder.gep(view.data, [at]), kind.as_pointer())

    def load(self, array: int, index: Any, kind: Any, offset: int = 0) -> Any:
        return self.builder.load(self.spot(array, index, offset, kind), align=1)

    def store(self, value: Any, array: int, index: Any, offset: int = 0) -> None:
        self.builder.store(value, self.spot(array, index, offset, value.type), align=1)

    def spread(self, value: Any, kind: Any) -> Any:
        """Return a vector of equal numbers."""
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_WORD, 0))
        return self.builder.shuffle_vector(one, one, ir.Constant(_words(kind.count), [0] * kind.count))

    def call(self, name: str, *vectors: Any) -> Any:
        kind = ir.FunctionType(vectors[0].type, [v.type for v in vectors])
        insert: Any = cgutils.get_or_insert_function
        return self.builder.call(insert(self.builder.module, kind, name), vectors)


@intrinsic
def draw_vector(
    typing: Any,
    x: Any,
    here: Any,
    near: Any,
    upper: Any,
    table: Any,
    words: Any,
    at: Any,
    shift: Any,
    place: Any,
    k: Any,
) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        _, here, near, _, table, _, at, shift, _, k = arguments
        bits = []
        for q in range(4):
            there = code.load(0, builder.extract_value(near, q), _bytes(WIDTH))
            bits.append(builder.shl(there, ir.Constant(_bytes(WIDTH), [q] * WIDTH)))
        mask = builder.trunc(builder.extract_value(near, 4), ir.IntType(8))
        select = builder.or_(builder.or_(bits[0], bits[1]), builder.or_(bits[2], bits[3]))
        select = builder.and_(select, code.spread(mask, _bytes(WIDTH)))
        code.store(select, 8, k)
        row = code.load(3, table, _bytes(16))
        twice = ir.Constant(_words(WIDTH), [i % 16 for i in range(WIDTH)])
        limit = code.call("llvm.x86.avx2.pshuf.b", builder.shuffle_vector(row, row, twice), select)
        word = builder.lshr(code.load(5, at, _words(WIDTH)), code.spread(shift, _words(WIDTH)))
        byte = builder.trunc(word, _bytes(WIDTH))
        code.store(builder.zext(builder.icmp_unsigned("<", byte, limit), _bytes(WIDTH)), 0, here)
        return builder.bitcast(builder.icmp_unsigned("==", byte, limit), _WORD)

    kinds = (x, types.uintp, near, upper, types.uintp, words, types.uintp, types.uint32, place, types.uintp)
    return types.uint32(*kinds), build


@intrinsic
def add_vector(typing: Any, sums: Any, here: Any, threshold: Any, table: Any, place: Any, k: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        _, here, _, table, _, k = arguments
        reals, eight = ir.VectorType(ir.FloatType(), 8), ir.Constant(_words(8), [8] * 8)
        scale = ir.Constant(reals, [2.0**-32] * 8)
        rows = (code.load(2, table, _words(8), offset) for offset in (0, 8))
        low, high = (builder.fmul(builder.uitofp(row, reals), scale) for row in rows)
        for g in range(0, WIDTH, 8):
            select = builder.zext(code.load(4, k, _bytes(8), g), _words(8))
            first, second = (code.call("llvm.x86.avx2.permps", half, select) for half in (low, high))
            chance = builder.select(builder.icmp_unsigned("<", select, eight), first, second)
            code.store(builder.fadd(code.load(0, here, reals, g), chance), 0, here, g)
        return context.get_dummy_value()

    kinds = (sums, types.uintp, threshold, types.uintp, place, types.uintp)
    return types.none(*kinds), build


def has_shuffles() -> bool:
    """Tell whether compiled code may use AVX2."""
    found: list[bool] = []

    def look() -> None:
        from numba.core.registry import cpu_target

        target: Any = cpu_target.target_context
        found.append("+avx2" in target.codegen().magic_tuple()[2])

    return try_part("vectors", look) and found[0]
