"""Four floating-point numbers as one value, for loops that the compiler cannot vectorise.

LLVM vectorises only long loops over arrays that are known not to overlap. Operations on four numbers at a time need
neither; processors do them in one or two instructions. Without the compiler, a quad is an array of four numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import DISABLED, intrinsic_for

#: Numbers in a quad.
FOUR = 4

Quad = Any


def take(array: Floats, at: Any) -> Quad:
    """Return four numbers of an array, beginning at an index."""
    return array[int(at) : int(at) + FOUR].copy()


def put(array: Floats, at: Any, value: Quad) -> None:
    """Write four numbers to an array, beginning at an index."""
    array[int(at) : int(at) + FOUR] = value


def spread(number: float) -> Quad:
    """Return four equal numbers."""
    return np.full(FOUR, number)


def plus(a: Quad, b: Quad) -> Quad:
    """Return the elementwise sum."""
    return a + b


def minus(a: Quad, b: Quad) -> Quad:
    """Return the elementwise difference."""
    return a - b


def times(a: Quad, b: Quad) -> Quad:
    """Return the elementwise product."""
    return a * b


def over(a: Quad, b: Quad) -> Quad:
    """Return the elementwise quotient."""
    return a / b


def reached(a: Quad) -> Quad:
    """Return one for each non-negative number, and zero for the others.

    Examples
    --------
    >>> reached(np.array([-1.0, 0.0, 1.0, -3.0])).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    return np.where(a >= 0.0, 1.0, 0.0)


def logarithm(a: Quad) -> Quad:
    """Return the logarithms of positive numbers, with a relative error of about 1e-15."""
    return np.log(a)


if not DISABLED:
    from llvmlite import ir
    from numba.extending import models, register_model

    from gibbsite._numba.intrinsic import intrinsic
    from numba import types

    nb: Any = types
    nb_models: Any = models
    _DOUBLE, _WORD = ir.DoubleType(), ir.IntType(32)
    _VECTOR = ir.VectorType(_DOUBLE, FOUR)
    _SPREAD = ir.Constant(ir.VectorType(_WORD, FOUR), [0] * FOUR)

    class QuadType(nb.Type):  # type: ignore[misc]
        """The Numba type of quads."""

        def __init__(self) -> None:
            super().__init__(name="Quad")

    quad = QuadType()

    @register_model(QuadType)
    class _QuadModel(nb_models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, _VECTOR)

    def _spot(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
        data = context.make_array(kind)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())

    @intrinsic
    def _take(typing: Any, array: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_spot(context, builder, signature.args[0], *arguments), align=8)

        return quad(array, nb.uintp), build

    @intrinsic
    def _put(typing: Any, array: Any, at: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            spot = _spot(context, builder, signature.args[0], arguments[0], arguments[1])
            builder.store(arguments[2], spot, align=8)
            return context.get_dummy_value()

        return nb.none(array, nb.uintp, quad), build

    def _splat(builder: Any, number: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(_WORD, 0))
        return builder.shuffle_vector(one, one, _SPREAD)

    @intrinsic
    def _spread(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _splat(builder, arguments[0])

        return quad(nb.float64), build

    @intrinsic
    def _reached(typing: Any, a: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            zero, one = (_splat(builder, ir.Constant(_DOUBLE, number)) for number in (0.0, 1.0))
            return builder.select(builder.fcmp_ordered(">=", arguments[0], zero), one, zero)

        return quad(quad), build

    # log x = k log 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2); with s = f / (2 + f) the latter is
    # 2 s + s R(s^2), R of degree seven (the coefficients are those of FreeBSD's log)
    _LONG = ir.IntType(64)
    _BITS = ir.VectorType(_LONG, FOUR)
    _ROOT_HALF = 0x3FE6A09E667F3BCD
    _LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    _SERIES = (
        1.479819860511658591e-01,
        1.531383769920937332e-01,
        1.818357216161805012e-01,
        2.222219843214978396e-01,
        2.857142874366239149e-01,
        3.999999999940941908e-01,
        6.666666666666735130e-01,
    )

    @intrinsic
    def _logarithm(typing: Any, a: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def number(value: float) -> Any:
                return ir.Constant(_VECTOR, [value] * FOUR)

            def whole(value: int) -> Any:
                return ir.Constant(_BITS, [value] * FOUR)

            add, sub, mul = builder.fadd, builder.fsub, builder.fmul
            word = builder.bitcast(arguments[0], _BITS)
            power = builder.ashr(builder.sub(word, whole(_ROOT_HALF)), whole(52))
            rest = builder.bitcast(builder.sub(word, builder.shl(power, whole(52))), _VECTOR)
            f = sub(rest, number(1.0))
            s = builder.fdiv(f, add(f, number(2.0)))
            square = mul(s, s)
            series = number(_SERIES[0])
            for coefficient in _SERIES[1:]:
                series = add(mul(series, square), number(coefficient))
            half = mul(number(0.5), mul(f, f))
            k = builder.sitofp(power, _VECTOR)
            small = add(mul(s, add(half, mul(series, square))), mul(k, number(_LOG_2_LOW)))
            return sub(mul(k, number(_LOG_2_HIGH)), sub(sub(half, small), f))

        return quad(quad), build

    intrinsic_for(logarithm)(lambda a: lambda a: _logarithm(a))

    def _operation(name: str) -> Callable[..., Any]:
        @intrinsic
        def operate(typing: Any, a: Any, b: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                return getattr(builder, name)(*arguments)

            return quad(quad, quad), build

        found: Callable[..., Any] = operate
        return found

    _plus, _minus, _times, _over = map(_operation, ("fadd", "fsub", "fmul", "fdiv"))

    intrinsic_for(take)(lambda array, at: lambda array, at: _take(array, np.uintp(at)))
    intrinsic_for(put)(lambda array, at, value: lambda array, at, value: _put(array, np.uintp(at), value))
    intrinsic_for(spread)(lambda number: lambda number: _spread(np.float64(number)))
    intrinsic_for(reached)(lambda a: lambda a: _reached(a))
    intrinsic_for(plus)(lambda a, b: lambda a, b: _plus(a, b))
    intrinsic_for(minus)(lambda a, b: lambda a, b: _minus(a, b))
    intrinsic_for(times)(lambda a, b: lambda a, b: _times(a, b))
    intrinsic_for(over)(lambda a, b: lambda a, b: _over(a, b))
