"""The innermost loop of matrix products, with its sums in vector registers.

:func:`gibbsite.kernels.batched.layers.add_product` is the same computation in Python. Compilers keep the sums of such a
loop in memory; here they are separate variables. The code runs on any processor: vectors longer than its registers are
split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba.extending
from llvmlite import ir
from numba.core import cgutils

from gibbsite._numba.intrinsic import VECTOR
from numba import types

intrinsic = cast("Callable[[Callable[..., Any]], Any]", numba.extending.intrinsic)
alloca_once: Any = cgutils.alloca_once
for_range: Any = cgutils.for_range

_KIND = ir.VectorType(ir.FloatType(), VECTOR)
_PLACES = ir.VectorType(ir.IntType(32), VECTOR)


def make_tile(sites: int, vectors: int, tile: int) -> Any:
    """Return an intrinsic that sums the log-odds of ``sites`` sites of a tile in ``vectors`` vectors of chains."""

    @intrinsic
    def add_tile(
        typing: Any, weight: Any, first: Any, x: Any, at: Any, chains: Any, count: Any, out: Any, to: Any
    ) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, first, _, at, chains, count, _, to = arguments
            weights, states, sums = (
                context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2, 6)
            )

            def spot(data: Any, index: Any) -> Any:
                return builder.bitcast(builder.gep(data, [index]), _KIND.as_pointer())

            def behind(index: Any, offset: int) -> Any:
                return builder.add(index, ir.Constant(index.type, offset))

            total = [[alloca_once(builder, _KIND) for _ in range(vectors)] for _ in range(sites)]
            for room in (room for row in total for room in row):
                builder.store(ir.Constant(_KIND, [0.0] * VECTOR), room)
            with for_range(builder, count) as loop:
                row = builder.add(at, builder.mul(loop.index, chains))
                inputs = [builder.load(spot(states, behind(row, v * VECTOR)), align=4) for v in range(vectors)]
                own = builder.add(first, builder.mul(loop.index, ir.Constant(first.type, tile)))
                for u in range(sites):
                    number = builder.load(builder.gep(weights, [behind(own, u)]))
                    one = builder.insert_element(ir.Constant(_KIND, ir.Undefined), number, ir.IntType(32)(0))
                    spread = builder.shuffle_vector(one, one, ir.Constant(_PLACES, [0] * VECTOR))
                    for v in range(vectors):
                        # states are 0 and 1, so the product is exact and may be fused with the addition
                        product = builder.fmul(spread, inputs[v], flags=("contract",))
                        grown = builder.fadd(builder.load(total[u][v]), product, flags=("contract",))
                        builder.store(grown, total[u][v])
            for u in range(sites):
                row = builder.add(to, builder.mul(chains, ir.Constant(chains.type, u)))
                for v in range(vectors):
                    place = spot(sums, behind(row, v * VECTOR))
                    builder.store(builder.fadd(builder.load(place, align=4), builder.load(total[u][v])), place, align=4)
            return context.get_dummy_value()

        index = types.uintp
        return types.none(weight, index, x, index, index, index, out, index), build

    return add_tile
