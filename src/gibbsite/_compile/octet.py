"""Eight floating-point numbers as one value, for loops that are too short for the compiler to find them.

LLVM makes vector instructions of loops that are long, and whose arrays are known to be different. Eight
numbers at a time need neither; processors take them in one to four instructions. Without the compiler an
octet is an array of eight numbers, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import DISABLED, intrinsic_for

#: Numbers of an octet.
EIGHT = 8

Octet = Any


def take(array: NDArray[np.float64], at: Any) -> Octet:
    """Return eight numbers of an array, from an index on.

    Examples
    --------
    >>> take(np.arange(10.0), 1).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    return array[int(at) : int(at) + EIGHT].copy()


def put(array: NDArray[np.float64], at: Any, value: Octet) -> None:
    """Write eight numbers to an array, from an index on."""
    array[int(at) : int(at) + EIGHT] = value


def spread(number: float) -> Octet:
    """Return eight equal numbers."""
    return np.full(EIGHT, number)


def plus(a: Octet, b: Octet) -> Octet:
    """Return sums."""
    return a + b


def minus(a: Octet, b: Octet) -> Octet:
    """Return differences."""
    return a - b


def times(a: Octet, b: Octet) -> Octet:
    """Return products."""
    return a * b


def over(a: Octet, b: Octet) -> Octet:
    """Return quotients."""
    return a / b


def reached(a: Octet) -> Octet:
    """Return one for numbers that are not negative, and zero for others.

    Examples
    --------
    >>> reached(np.array([-1.0, 0.0, 1.0, 2.0, -3.0, 4.0, 5.0, 6.0])).tolist()
    [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    """
    return np.where(a >= 0.0, 1.0, 0.0)


def logarithm(a: Octet) -> Octet:
    """Return logarithms of positive numbers, to about one part in 10^15.

    Examples
    --------
    >>> logarithm(np.array([1.0, 2.0, 4.0, 0.5, 1.0, 1.0, 1.0, 1.0]))[:2].round(3).tolist()
    [0.0, 0.693]
    """
    return np.log(a)


if not DISABLED:
    from llvmlite import ir
    from numba import types
    from numba.extending import models, register_model

    from gibbsite._compile.intrinsic import intrinsic

    nb: Any = types
    _DOUBLE, _WORD = ir.DoubleType(), ir.IntType(32)
    _VECTOR = ir.VectorType(_DOUBLE, EIGHT)
    _SPREAD = ir.Constant(ir.VectorType(_WORD, EIGHT), [0] * EIGHT)

    class OctetType(nb.Type):  # type: ignore[misc]
        """The type of octets."""

        def __init__(self) -> None:
            super().__init__(name="Octet")

    octet = OctetType()

    @register_model(OctetType)
    class _OctetModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, _VECTOR)

    def _spot(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
        data = context.make_array(kind)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())

    @intrinsic
    def _take(typing: Any, array: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_spot(context, builder, signature.args[0], *arguments), align=8)

        return octet(array, nb.uintp), build

    @intrinsic
    def _put(typing: Any, array: Any, at: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            spot = _spot(context, builder, signature.args[0], arguments[0], arguments[1])
            builder.store(arguments[2], spot, align=8)
            return context.get_dummy_value()

        return nb.none(array, nb.uintp, octet), build

    def _splat(builder: Any, number: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(_WORD, 0))
        return builder.shuffle_vector(one, one, _SPREAD)

    @intrinsic
    def _spread(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _splat(builder, arguments[0])

        return octet(nb.float64), build

    @intrinsic
    def _reached(typing: Any, a: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            zero, one = (_splat(builder, ir.Constant(_DOUBLE, number)) for number in (0.0, 1.0))
            return builder.select(builder.fcmp_ordered(">=", arguments[0], zero), one, zero)

        return octet(octet), build

    # log x = k log 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2); with s = f / (2 + f) the latter is
    # 2 s + s R(s^2), R of degree seven (the coefficients are those of FreeBSD's log)
    _LONG = ir.IntType(64)
    _BITS = ir.VectorType(_LONG, EIGHT)
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
                return ir.Constant(_VECTOR, [value] * EIGHT)

            def whole(value: int) -> Any:
                return ir.Constant(_BITS, [value] * EIGHT)

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

        return octet(octet), build

    intrinsic_for(logarithm)(lambda a: lambda a: _logarithm(a))

    def _operation(name: str) -> Callable[..., Any]:
        @intrinsic
        def operate(typing: Any, a: Any, b: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                return getattr(builder, name)(*arguments)

            return octet(octet, octet), build

        return operate

    _plus, _minus, _times, _over = map(_operation, ("fadd", "fsub", "fmul", "fdiv"))

    intrinsic_for(take)(lambda array, at: lambda array, at: _take(array, np.uintp(at)))
    intrinsic_for(put)(lambda array, at, value: lambda array, at, value: _put(array, np.uintp(at), value))
    intrinsic_for(spread)(lambda number: lambda number: _spread(np.float64(number)))
    intrinsic_for(reached)(lambda a: lambda a: _reached(a))
    intrinsic_for(plus)(lambda a, b: lambda a, b: _plus(a, b))
    intrinsic_for(minus)(lambda a, b: lambda a, b: _minus(a, b))
    intrinsic_for(times)(lambda a, b: lambda a, b: _times(a, b))
    intrinsic_for(over)(lambda a, b: lambda a, b: _over(a, b))
