"""Sums over the neighbours of a site for eight copies of a model at once, in vector registers.

Compilers keep such sums in memory, because the output array might overlap the states. The code runs on any processor:
vectors longer than its registers are split.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints8, Words32
from gibbsite._numba.jit import DISABLED, Integer, intrinsic_for

#: Copies whose sums are computed at once.
LANES = 8


def sum_lanes(
    coupling: Floats,
    neighbour: Words32,
    first: Integer,
    last: Integer,
    states: Ints8,
    stride: Integer,
    low: Integer,
    field: Any,
    out: Floats,
) -> None:
    """Write ``field`` plus the sum of coupling times state, over edges from ``first`` to ``last``.

    The states of a neighbour are ``states[neighbour * stride + low]`` and the seven that follow, and the sums are
    written to ``out[low]`` and the seven that follow.

    Examples
    --------
    >>> states = np.repeat(np.array([0, 1], np.int8), 8)
    >>> out = np.zeros(8)
    >>> sum_lanes(np.array([2.0, 3.0]), np.array([0, 1], np.uint32), 0, 2, states, 8, 0, 0.5, out)
    >>> out.tolist()
    [3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5]
    """
    for q in range(LANES):
        total = field
        for e in range(first, last):
            total += coupling[e] * states[int(neighbour[e]) * stride + low + q]
        out[low + q] = total


if not DISABLED:
    import numba.extending
    from llvmlite import ir
    from numba.core import cgutils

    from numba import types

    intrinsic: Any = numba.extending.intrinsic
    alloca_once: Any = cgutils.alloca_once
    for_range_slice: Any = cgutils.for_range_slice

    @intrinsic  # type: ignore[untyped-decorator]
    def _sum(
        typing: Any,
        coupling: Any,
        neighbour: Any,
        first: Any,
        last: Any,
        states: Any,
        stride: Any,
        low: Any,
        field: Any,
        out: Any,
    ) -> Any:
        index, number = types.uintp, types.float64

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, _, first, last, _, stride, low, field, _ = arguments
            weights, near, cells, sums = (
                context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 1, 4, 8)
            )
            word, double = ir.IntType(64), ir.DoubleType()
            vector, small = ir.VectorType(double, LANES), ir.VectorType(ir.IntType(8), LANES)
            places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

            def spread(value: Any) -> Any:
                one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
                return builder.shuffle_vector(one, one, places)

            total = alloca_once(builder, vector)
            builder.store(spread(field), total)
            with for_range_slice(builder, first, last, word(1), inc=True) as (edge, _):
                site = builder.zext(builder.load(builder.gep(near, [edge])), word)
                at = builder.add(builder.mul(site, stride), low)
                spot = builder.bitcast(builder.gep(cells, [at]), small.as_pointer())
                values = builder.sitofp(builder.load(spot, align=1), vector)
                weight = spread(builder.load(builder.gep(weights, [edge])))
                # states are 0 and 1, so the product is exact and may be fused with the addition
                product = builder.fmul(weight, values, flags=("contract",))
                builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
            spot = builder.bitcast(builder.gep(sums, [low]), vector.as_pointer())
            builder.store(builder.load(total), spot, align=8)
            return context.get_dummy_value()

        kinds = coupling, neighbour, index, index, states, index, index, number, out
        return types.none(*kinds), build

    @intrinsic_for(sum_lanes)
    def _choose(coupling, neighbour, first, last, states, stride, low, field, out):  # type: ignore[no-untyped-def]
        return lambda coupling, neighbour, first, last, states, stride, low, field, out: _sum(
            coupling,
            neighbour,
            np.uintp(first),
            np.uintp(last),
            states,
            np.uintp(stride),
            np.uintp(low),
            np.float64(field),
            out,
        )
