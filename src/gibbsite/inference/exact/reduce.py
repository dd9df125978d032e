"""Reduction of a model to the possible states of undetermined sites, for exact inference.

States that can never occur (by generalised arc consistency) and sites with a single state left are removed before
anything is planned, because tables over the rest can be far smaller. No table is copied: a factor is its place in the
tables of the model, the strides of its remaining members and the codes of their states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._numba.jit import interpreted
from gibbsite.errors import SupportError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths, row_starts
from gibbsite.graphs.support.possible import alive_states

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


_STEPS_PER_ENTRY = 20.0  # steps of plain Python per entry of the tables


class Reduced(NamedTuple):
    """Sites with at least two possible states, renumbered, and the factors over them.

    Site i is site ``origin[i]`` of the model; its ``cards[i]`` states have the codes ``code[code_start[i]]``, ....
    Factor f has the members ``member_start[f]`` to ``member_start[f + 1]``; its log-potential at the model's codes x
    is ``value[table[f] + sum(stride * x)]``.
    """

    origin: Ints
    cards: Ints
    code_start: Ints
    code: Ints
    member_start: Ints
    member: Ints
    stride: Ints
    table: Ints
    value: Floats


class Reduction(NamedTuple):
    """A reduced problem, and the states that the reduction has determined.

    ``codes`` are the states of the determined sites (arbitrary elsewhere), ``alive`` marks the possible states of the
    model, and ``log_constant`` is the sum of the factors without open members and the offset of the model.
    """

    problem: Reduced
    codes: Ints
    alive: Bools
    log_constant: float


def reduce_model(model: FactorGraph) -> Reduction:
    """Remove impossible states and determined sites; raise :class:`SupportError` if a site has no state left."""
    graph = compile_graph(model, "table")
    arrays = cast(TableGraph, graph.arrays)
    with interpreted(_STEPS_PER_ENTRY * arrays.log_value.size):
        alive = alive_states(graph, model)
    card = arrays.card.astype(np.int64)
    living = np.add.reduceat(alive, arrays.offset[:-1], dtype=np.int64) if card.size else card
    first = np.flatnonzero(alive)  # codes of the living states, site by site
    code = first - np.repeat(arrays.offset[:-1], living)
    start = row_starts(living)
    codes = code[start[:-1]] if card.size else card
    # unary weights are factors, too, unless they are constant
    lively = np.maximum.reduceat(arrays.log_unary != 0.0, arrays.offset[:-1]) if card.size else alive
    weighed = np.flatnonzero(lively)
    member = np.concatenate([arrays.member.astype(np.int64), weighed])
    stride = np.concatenate([arrays.stride, np.ones(weighed.size, np.int64)])
    width = np.concatenate([row_lengths(arrays.member_start), np.ones(weighed.size, np.int64)])
    table = np.concatenate([arrays.table, arrays.log_value.size + arrays.offset[weighed]])
    value = np.concatenate([arrays.log_value, arrays.log_unary])
    constant = graph.log_offset
    free = living > 1
    if not free.all():
        factor = np.repeat(np.arange(width.size), width)
        fixed = ~free[member]
        table = table + np.bincount(factor[fixed], codes[member[fixed]] * stride[fixed], minlength=width.size).astype(
            np.int64
        )
        width = np.bincount(factor[~fixed], minlength=width.size)
        constant += float(value[table[width == 0]].sum())
        if constant == -np.inf:
            raise SupportError("No state has positive probability; check the zeros and the evidence.")
        member, stride = member[~fixed], stride[~fixed]
        table, width = table[width > 0], width[width > 0]
        member = (np.cumsum(free) - 1)[member]
        code = code[np.repeat(free, living)]
    problem = Reduced(
        origin=np.flatnonzero(free),
        cards=living[free],
        code_start=row_starts(living[free]),
        code=code,
        member_start=row_starts(width),
        member=member,
        stride=stride,
        table=table,
        value=value,
    )
    return Reduction(problem, codes, alive, constant)
