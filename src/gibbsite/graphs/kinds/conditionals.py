"""Conditionals as arrays: the blocks, and the addresses of the functions that draw them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.foreign import Foreign, adopt, call_at
from gibbsite._numba.jit import implement
from gibbsite.errors import ModelError
from gibbsite.graphs.graph import Graph, graph_of
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import row_starts
from gibbsite.models.conditionals import Conditionals


class ConditionalsGraph(NamedTuple):
    """Blocks of sites with functions that draw them.

    The sites are described as in :class:`ContinuousGraph`. Block b has the sites ``member[start[b] : start[b + 1]]``,
    and is drawn by the function at ``address[b]``, or by slice sampling if that is 0. ``density`` is the address of the
    joint log-density, or 0.
    """

    offset: Ints
    low: Floats
    high: Floats
    period: Floats
    card: Ints32
    start: Ints
    member: Ints32
    address: Ints
    density: int
    nothing: Words64


@register(name="conditionals", model="Conditionals")
def compile_conditionals(model: Conditionals) -> Graph:
    """Turn conditionals into arrays; compile their functions where Numba can."""
    domains = model.domains
    draws = [None if draw is None else _adopted(model, block) for block, draw in enumerate(model.draws)]
    density = None if model.log_density is None else adopt(model.log_density, "value")
    cards = np.asarray(domains.cards, np.int64)
    low, high = domains.bounds
    arrays = ConditionalsGraph(
        offset=domains.offset,
        low=low,
        high=high,
        period=domains.periods,
        card=np.where(domains.numbers, 0, cards).astype(np.int32),
        start=row_starts([len(block) for block in model.blocks]),
        member=np.array([site for block in model.blocks for site in block], np.int32),
        address=np.array([0 if draw is None else draw.address for draw in draws], np.int64),
        density=0 if density is None else density.address,
        nothing=np.zeros(4, np.uint64),
    )
    functions = [code for code in (*draws, density) if code is not None]
    return graph_of(model, "conditionals", arrays, functions, units=len(model.blocks))


def _adopted(model: Conditionals, block: int) -> Foreign:
    try:
        return adopt(model.draws[block], "draw")
    except ModelError as reason:
        names = model.domains.scope_text(model.blocks[block])
        raise ModelError(f"the conditional of {names}: {reason}") from None


@implement(log_potential, ConditionalsGraph)
def _log_potential_conditionals(arrays: ConditionalsGraph, x: Array) -> float:
    if arrays.density == 0:
        return 0.0
    return call_at(arrays.density, x, 0, x.size, x, 0, 0, arrays.nothing)
