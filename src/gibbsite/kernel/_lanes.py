"""One site of 32 chains in one go: thresholds chosen by the neighbours, compared with random bytes.

Compilers do not find this on their own, so it is written down in vector instructions: sixteen thresholds of a
byte each fit into a register, where all chains look theirs up at once. Processors that lack the instructions
(AVX2's shuffles) go through the chains one by one, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import DISABLED, Integer, inlined, intrinsic_for
from gibbsite.graph.colored import SCALE

_U, _U8, _U32 = np.uintp, np.uint8, np.uint32
_TO_UNIT = np.float32(1.0 / SCALE)
WIDTH = 32


class Near(NamedTuple):
    """Where the states of a site's four neighbours begin; a missing one's bit is not in the mask."""

    first: Integer
    second: Integer
    third: Integer
    fourth: Integer
    mask: Integer


def settle_lanes(
    x: NDArray[np.int8],
    here: Any,
    near: Any,
    upper: NDArray[np.uint8],
    table: Any,
    words: NDArray[np.uint32],
    at: Any,
    shift: Any,
    place: NDArray[np.uint8],
    k: Any,
) -> Any:
    """Update a site of 32 chains, whose states begin at ``x[here]``; return where nothing is decided yet.

    The neighbours' bits select one of sixteen bytes from ``upper[table]`` on; which one is written to
    ``place`` from k on. A chain takes state 1 if the byte of its word (from ``words[at]`` on) that begins
    at bit ``shift`` is smaller. Where both are equal, its bit of the result is set.
    """
    ties = _U32(0)
    for r in range(_U(WIDTH)):
        low = _U8(x[near.first + r]) | _U8(_U8(x[near.second + r]) << _U8(1))
        high = _U8(_U8(x[near.third + r]) << _U8(2)) | _U8(_U8(x[near.fourth + r]) << _U8(3))
        code = _U8((low | high) & _U8(near.mask))
        byte, limit = _U8((words[at + r] >> _U32(shift)) & _U32(255)), upper[table + code]
        place[k + r] = code
        x[here + r] = byte < limit
        ties |= _U32(byte == limit) << _U32(r)
    return ties


def add_lanes(
    sums: NDArray[np.float32],
    here: Any,
    threshold: NDArray[np.uint32],
    table: Any,
    place: NDArray[np.uint8],
    k: Any,
) -> None:
    """Add to 32 sums the probabilities that ``place`` selects from sixteen thresholds."""
    for r in range(_U(WIDTH)):
        sums[here + r] += np.float32(threshold[table + place[k + r]]) * _TO_UNIT


if not DISABLED:
    import numba.extending
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    intrinsic = cast("Callable[[Callable[..., Any]], Any]", numba.extending.intrinsic)
    _WORD = ir.IntType(32)

    def _bytes(count: int) -> Any:
        return ir.VectorType(ir.IntType(8), count)

    def _words(count: int) -> Any:
        return ir.VectorType(_WORD, count)

    class _Code:
        """Vector instructions, over the arguments of an intrinsic."""

        def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            self.context, self.builder, self.types, self.arguments = (
                context,
                builder,
                signature.args,
                arguments,
            )

        def spot(self, array: int, index: Any, offset: int, kind: Any) -> Any:
            """Return the address of a vector in the array that is argument number ``array``."""
            view = self.context.make_array(self.types[array])(
                self.context, self.builder, self.arguments[array]
            )
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
    def _settle(
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

        kinds = (
            x,
            types.uintp,
            near,
            upper,
            types.uintp,
            words,
            types.uintp,
            types.uint32,
            place,
            types.uintp,
        )
        return types.uint32(*kinds), build

    @intrinsic
    def _add(typing: Any, sums: Any, here: Any, threshold: Any, table: Any, place: Any, k: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            code = _Code(context, builder, signature, arguments)
            _, here, _, table, _, k = arguments
            reals, eight = ir.VectorType(ir.FloatType(), 8), ir.Constant(_words(8), [8] * 8)
            scale = ir.Constant(reals, [float(_TO_UNIT)] * 8)
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

    def _shuffles() -> bool:
        """Tell whether compiled code may use AVX2; the same words tell compile caches apart."""
        from numba.core.registry import cpu_target

        target: Any = cpu_target.target_context
        return "+avx2" in target.codegen().magic_tuple()[2]

    _settle_one_by_one, _add_one_by_one = inlined(settle_lanes), inlined(add_lanes)

    @intrinsic_for(settle_lanes)
    def _choose_settle(x, here, near, upper, table, words, at, shift, place, k):  # type: ignore[no-untyped-def]
        if _shuffles():
            return lambda x, here, near, upper, table, words, at, shift, place, k: _settle(
                x, _U(here), near, upper, _U(table), words, _U(at), _U32(shift), place, _U(k)
            )
        return lambda x, here, near, upper, table, words, at, shift, place, k: _settle_one_by_one(
            x, here, near, upper, table, words, at, shift, place, k
        )

    @intrinsic_for(add_lanes)
    def _choose_add(sums, here, threshold, table, place, k):  # type: ignore[no-untyped-def]
        if _shuffles():
            return lambda sums, here, threshold, table, place, k: _add(
                sums, _U(here), threshold, _U(table), place, _U(k)
            )
        return lambda sums, here, threshold, table, place, k: _add_one_by_one(
            sums, here, threshold, table, place, k
        )
