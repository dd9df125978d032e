"""Minibatches of pairs that ask whether their states agree, as in Potts and binary models.

A factor adds a constant to the log-weight of one state, so a whole minibatch is a histogram, and its cost
does not depend on the number of states. The view of a factor is the state of the neighbour.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words32, Words64
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.kinds.stored import StoredPottsGraph
from gibbsite.kernels.minibatch.factors import (
    add_factor,
    add_gain,
    builds_rows,
    draw_factor,
    factor_at,
    row_sums,
    share_of,
)

_ONE = np.uintp(1)


class AgreementRows(NamedTuple):
    """Pairs with a weight for equal states: positive ones reward them, negative ones all others.

    ``table`` are the alias tables of the rows, empty if all weights are equal. Where all weights have one
    sign, ``sign`` is that; otherwise it is 0 and it is the sign of ``weight[step * k]``. ``complete``: every row lists
    all other sites in order, so that the column gives the neighbour.
    """

    start: Words32
    neighbour: Words32
    table: Words64
    sign: float
    weight: Floats
    step: int
    complete: bool
    local: Floats
    rate: Floats
    degree: Ints
    total: float
    offset: Ints
    log_unary: Floats


@builds_rows("ising", "potts")
def agreement_rows(graph: Graph) -> AgreementRows:
    """Build the alias tables of a graph of agreements, or of two states."""
    arrays: Any = graph.arrays
    if isinstance(arrays, PottsGraph):
        weight, step = arrays.coupling, arrays.step
        log_unary, offset = arrays.log_unary, arrays.offset
    elif isinstance(arrays, StoredPottsGraph):
        weight, step = np.asarray(arrays.coupling, np.float64), 1
        log_unary = arrays.field if arrays.own else np.tile(arrays.field, graph.n_sites)
        offset = arrays.offset
    else:
        # w x y = (w / 2) ([x = y] + x + y - 1) for x, y in {0, 1}: half the bound of w x y itself
        weight, step = 0.5 * np.asarray(arrays.coupling), 1
        offset = 2 * np.arange(graph.n_sites + 1, dtype=np.int64)
        log_unary = np.zeros(2 * graph.n_sites)
        log_unary[1::2] = arrays.field + row_sums(arrays.start, weight, 1)
    bound = np.abs(weight)
    local = row_sums(arrays.start, bound, step)
    signs = np.sign(weight)
    low, high = float(signs.min(initial=1.0)), float(signs.max(initial=-1.0))
    return AgreementRows(
        start=arrays.start,
        neighbour=arrays.neighbour,
        table=build_alias_rows(arrays.start, bound) if step else np.zeros(0, np.uint64),
        sign=1.0 if low >= 0.0 else -1.0 if high <= 0.0 else 0.0,
        weight=weight,
        step=step,
        complete=_lists_all(arrays.start, arrays.neighbour),
        local=local,
        rate=local,
        degree=np.diff(arrays.start.astype(np.int64)),
        total=float(local.sum()) / 2.0,
        offset=offset,
        log_unary=log_unary,
    )


def _lists_all(start: Words32, neighbour: Words32) -> bool:
    """Return whether every row has all other sites in ascending order."""
    n = start.size - 1
    if neighbour.size != n * (n - 1) or not (np.diff(start.astype(np.int64)) == n - 1).all():
        return False
    others = np.arange(n - 1)
    return all(np.array_equal(neighbour[i * (n - 1) : (i + 1) * (n - 1)], others + (others >= i)) for i in range(n))


@implement(draw_factor, AgreementRows)
def _draw(rows: AgreementRows, i: Integer, x: Codes, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    many = np.uintp(rows.start[i + _ONE]) - first
    if rows.table.size > 0:
        rng, column = draw_column(rows.table, first, many, rng)
    else:
        rng, drawn = below(rng, many)
        column = np.uintp(drawn)
    k = first + column
    j = column + np.uintp(column >= i) if rows.complete else np.uintp(rows.neighbour[k])
    return rng, k, np.int64(x[j])


@implement(factor_at, AgreementRows)
def _at(rows: AgreementRows, i: Integer, x: Codes, number: Integer) -> tuple[Integer, Integer]:
    k = np.uintp(rows.start[i]) + np.uintp(number)
    return k, np.int64(x[np.uintp(rows.neighbour[k])])


@implement(share_of, AgreementRows)
def _share(rows: AgreementRows, k: Integer, i: Integer, a: Integer, view: Integer) -> float:
    sign = rows.sign
    if sign == 0.0:
        sign = rows.weight[np.uintp(rows.step) * k]
    return 1.0 if (a == view) == (sign > 0.0) else 0.0


@implement(add_gain, AgreementRows)
def _add_gain(rows: AgreementRows, gain: Floats, k: Integer, i: Integer, view: Integer, w: Floats) -> None:
    sign = rows.sign
    if sign == 0.0:
        sign = rows.weight[np.uintp(rows.step) * k]
    # a penalty rewards every other state: the same as a loss of this one
    w[np.uintp(view)] += gain[0] if sign > 0.0 else -gain[0]


@implement(add_factor, AgreementRows)
def _add_factor(rows: AgreementRows, k: Integer, i: Integer, view: Integer, scale: float, w: Floats) -> None:
    w[np.uintp(view)] += scale * rows.weight[np.uintp(rows.step) * k]
