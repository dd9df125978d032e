"""A sweep of all rungs in compiled code: every replica moves, then neighbours swap states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.intrinsic import wait_for_all
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite._numba.shelf import take
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Span, Team, visit
from gibbsite.kernels.rules import pick
from gibbsite.kernels.tempered.exchange import BEGUN, TemperedMemory, exchange
from gibbsite.scans.base import period


class TemperedParameters(NamedTuple):
    """What compiled code needs: graphs and parameters of the rungs, and the differences of their betas.

    ``reference`` has the probabilities of all states of all sites at the first rung, those of site i from
    ``cell[i]`` on, where that is the reference itself; otherwise it is empty.
    """

    graphs: Words64
    inner: Words64
    like: Any
    beyond: Any
    constant: float
    hard: bool
    gap: Floats
    cut: Floats
    cell: Ints
    reference: Floats


@implement(visit, TemperedParameters)
def _visit(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Array, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    rungs, team = memory.gain.size, span.team
    if memory.counts[BEGUN] == 0:
        if team.member == 0:
            for k in range(memory.states.size):
                memory.states[k] = x[k % x.size]
        if team.size > 1:
            wait_for_all(team.gate, team.size)
        if team.member == 0:
            memory.counts[BEGUN] = 1
    whole = span.stop == np.uintp(period(schedule))
    own = Span(span.order, span.where, span.stop, span.turn, Team(0, 1, team.gate))
    for k in range(team.member, rungs, team.size):
        move_rung(params, arrays, schedule, memory, x, own, cond, keep, k, whole)
    if whole:
        if team.size > 1:
            wait_for_all(team.gate, team.size)
        if team.member == 0:
            possible = is_possible(params, arrays, memory, x)
            rng = exchange(params.gap, params.cut, memory, x, possible, False, rng)
        if team.size > 1:
            wait_for_all(team.gate, team.size)
    return rng


@inlined
def move_rung(
    parameters: TemperedParameters,
    arrays: Any,
    schedule: Any,
    memory: TemperedMemory,
    x: Array,
    span: Span,
    cond: Floats,
    keep: bool,
    k: Integer,
    whole: bool,
) -> None:
    """Move the replica of rung k; note its U at the end of a sweep."""
    rungs = memory.gain.size
    graph, own = take(parameters.graphs, k, arrays), take(parameters.inner, k, parameters.like)
    work, first = take(memory.work.shelf, k, memory.work.like), memory.place[k] * x.size
    state = memory.states[first : first + x.size] if k < rungs - 1 else x
    words = memory.words
    r = words[k, 0], words[k, 1], words[k, 2], words[k, 3]
    put = keep and k == rungs - 1
    if k > 0 or parameters.reference.size == 0:
        r = visit(own, graph, schedule, work, state, span, r, cond, put)
    elif whole:
        r = _draw_reference(parameters, state, r)
    words[k, 0], words[k, 1], words[k, 2], words[k, 3] = r
    if whole:
        memory.gain[k] = log_potential(parameters.beyond, state) + parameters.constant
        for i in range(x.size if memory.sums.size > 0 else 0):
            memory.sums[k, parameters.cell[i] + np.int64(state[i])] += 1.0


@inlined
def is_possible(parameters: TemperedParameters, arrays: Any, memory: TemperedMemory, x: Array) -> bool:
    """Return whether the target allows the state of the rung before it."""
    if not parameters.hard:
        return True
    first = memory.place[memory.gain.size - 2] * x.size
    return bool(log_potential(arrays, memory.states[first : first + x.size]) > -np.inf)


@inlined
def _draw_reference(parameters: TemperedParameters, x: Array, rng: Words) -> Words:
    """Draw all sites of the first rung from the reference, whatever the kernel of the others."""
    for i in range(x.size):
        rng, u = uniform(rng)
        first, last = parameters.cell[i], parameters.cell[i + 1]
        x[i] = pick(parameters.reference[first:last], last - first, u)
    return rng
