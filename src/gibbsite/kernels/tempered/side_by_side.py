"""Replicas of a two-state model side by side: a site is updated in all replicas at once, in vector registers.

The log-odds of a site are beta times those of the model plus (1 - beta) times those of the reference, and
all replicas have the same neighbours. So replicas are contiguous in memory, each in its own lane, the
model is read once for all of them, and loops over lanes compile to vector instructions. Sites are visited in
the order of the scan. Swaps exchange the betas of two lanes, and no states are copied.

The contribution of a site to U is a part of its log-odds, so U is updated with every change; it is computed again from
time to time, because rounding errors accumulate. Log-odds are 64-bit floats; the probability of state 1 is computed as
in :mod:`gibbsite.kernels.batched.heatbath`, with a relative error of about 1e-6. Random numbers are keyed by lane,
sweep and position.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints8, Words32, Words64
from gibbsite._numba.jit import Integer, called, implement, inlined
from gibbsite._numba.lane_sums import LANES, sum_lanes
from gibbsite._numba.random.generators import WORDS, Words
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Kernel, Span, visit
from gibbsite.kernels.batched.heatbath import MOST, exponential, unit
from gibbsite.kernels.batched.replicated import draw_words
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.tempered.exchange import BEGUN, SUMMED, TemperedMemory, exchange
from gibbsite.kernels.tempered.ladder import Ladder
from gibbsite.models.tempered import blend
from gibbsite.scans.base import period, site_at

F = np.float32
_U = np.uintp

# Number of sweeps after which U is computed again.
_FRESH = 64


class SideParameters(NamedTuple):
    """The model and its reference, for compiled code.

    ``rows`` is the model as a graph of two-state sites in rows, ``pull`` has the log-odds of the reference, and
    ``beyond`` is the graph whose log-potential, plus ``constant``, is U.
    """

    rows: IsingGraph
    pull: Floats
    beyond: IsingGraph
    constant: float
    betas: Floats
    gap: Floats
    cut: Floats
    cell: Ints


class SideWork(NamedTuple):
    """Keys of the lanes, first halves before second ones, and buffers with one or four entries for each lane.

    The buffers are for random words, log-odds of the model, beta, U, new states, and the state of one replica.
    """

    key: Words32
    words: Words32
    odds: Floats
    beta: Floats
    gain: Floats
    fresh: Ints8
    state: Ints8

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        return {"fresh": (0, 1), "state": (0, 1)}


def fits_side_by_side(graph: Graph, inner: Kernel) -> bool:
    """Return whether replicas can be side by side, which needs two states and the heat bath."""
    return graph.binary and isinstance(inner, Gibbs) and inner.rule == "heat-bath"


def side_parameters(graph: Graph, ladder: Ladder) -> SideParameters:
    """Return the parameters for compiled code."""
    model = graph.model
    assert model is not None
    rows = compile_graph(model, "ising")
    beyond = compile_graph(blend(model, 1.0, -1.0, ladder.log_reference), "ising")
    pairs = ladder.log_reference.reshape(-1, 2)
    return SideParameters(
        rows.arrays,
        pairs[:, 1] - pairs[:, 0],
        beyond.arrays,
        beyond.log_offset,
        ladder.betas.copy(),
        np.diff(ladder.betas),
        ladder.cut.copy(),
        2 * np.arange(graph.n_sites),
    )


def side_work(rungs: int, n_sites: int, stream: Words64) -> SideWork:
    """Allocate keys and buffers for all lanes."""
    lanes = lanes_for(rungs)
    seeds = np.random.SeedSequence([int(word) for word in stream]).generate_state(2 * lanes, np.uint32)
    return SideWork(
        key=seeds.astype(np.uint32),
        words=np.zeros(4 * lanes, np.uint32),
        odds=np.zeros(lanes),
        beta=np.zeros(lanes),
        gain=np.zeros(lanes),
        fresh=np.zeros(lanes, np.int8),
        state=np.zeros(n_sites, np.int8),
    )


def lanes_for(rungs: int) -> int:
    """Return the number of lanes for some rungs, a multiple of LANES."""
    return -(-rungs // LANES) * LANES


@implement(visit, SideParameters)
def _visit(
    params: Any, arrays: Any, schedule: Any, memory: Any, x: Ints8, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Move all lanes by a span of visits, and make swaps at the end of a sweep."""
    work, rungs = memory.work, memory.gain.size
    lanes = _U(work.beta.size)
    _begin(params, memory, x)
    target = memory.place[rungs - 1]
    move_lanes(params, schedule, work, memory.states, span, target, cond, keep)
    if span.stop == _U(period(schedule)):
        for k in range(rungs):
            memory.gain[k] = work.gain[memory.place[k]]
            for j in range(x.size if memory.sums.size > 0 else 0):
                seen = np.int64(memory.states[j * np.int64(lanes) + memory.place[k]])
                memory.sums[k, params.cell[j] + seen] += 1.0
        rng = exchange(params.gap, params.cut, memory, x, True, True, rng)
    lane = _U(memory.place[rungs - 1])
    for j in range(_U(x.size)):
        x[j] = memory.states[j * lanes + lane]
    return rng


@inlined
def move_lanes(
    parameters: SideParameters,
    schedule: Any,
    work: SideWork,
    states: Ints8,
    span: Span,
    target: Integer,
    cond: Floats,
    keep: bool,
) -> None:
    """Visit the sites of all lanes; write the log-odds of lane ``target`` to ``cond`` if ``keep`` is set."""
    lanes = _U(work.beta.size)
    for k in range(span.where, span.stop):
        if k == span.where or k % _U(4) == _U(0):
            draw_words(work.words, work.key, lanes, span.turn, k // _U(4), WORDS)
        i = _U(site_at(schedule, span.order, k))
        _draw_site(parameters, work, states, i, (k % _U(4)) * lanes)
        if keep:
            cond[i] = work.odds[_U(target)]


@called
def _begin(parameters: SideParameters, memory: TemperedMemory, x: Ints8) -> None:
    """Set the beta of each lane, copy the state of the target, and compute U if that is due."""
    work, counts, rungs = memory.work, memory.counts, memory.gain.size
    lanes, n = _U(work.beta.size), _U(x.size)
    target = _U(memory.place[rungs - 1])
    for k in range(rungs):
        work.beta[memory.place[k]] = parameters.betas[k]
    for j in range(n):
        if counts[BEGUN] == 0:
            for r in range(lanes):
                memory.states[j * lanes + r] = x[j]
        memory.states[j * lanes + target] = x[j]
    counts[BEGUN] = 1
    sum_up(parameters, work, memory.states, counts)


@called
def sum_up(parameters: SideParameters, work: SideWork, states: Ints8, counts: Ints) -> None:
    """Compute the U of all lanes again, if that is due."""
    lanes = _U(work.beta.size)
    if counts[SUMMED] <= 0:
        for r in range(lanes):
            for j in range(_U(work.state.size)):
                work.state[j] = states[j * lanes + r]
            work.gain[r] = log_potential(parameters.beyond, work.state) + parameters.constant
        counts[SUMMED] = _FRESH
    counts[SUMMED] -= 1


@inlined
def _draw_site(parameters: SideParameters, work: SideWork, states: Ints8, i: Integer, at: Integer) -> None:
    """Draw a site in all lanes, with the random words from ``at`` on."""
    rows, lanes = parameters.rows, _U(work.beta.size)
    first, last = _U(rows.start[i]), _U(rows.start[i + _U(1)])
    for low in range(_U(0), lanes, _U(LANES)):
        sum_lanes(rows.coupling, rows.neighbour, first, last, states, lanes, low, rows.field[i], work.odds)
    _compare(work.odds, work.beta, parameters.pull[i], work.words, at, work.fresh, lanes)
    _put(work.odds, parameters.pull[i], work.fresh, states, i * lanes, work.gain, lanes)


@called
def _compare(odds: Floats, beta: Floats, pull: Any, words: Words32, at: Integer, fresh: Ints8, lanes: Integer) -> None:
    """Write new states of all lanes to ``fresh``."""
    for r in range(lanes):
        y = F(pull + beta[r] * (odds[r] - pull))
        inverse = F(1.0) + exponential(min(abs(y), MOST))
        fresh[r] = (y > F(0.0)) != (unit(words[at + r]) * inverse < F(1.0))


@called
def _put(odds: Floats, pull: Any, fresh: Ints8, states: Ints8, here: Integer, gain: Floats, lanes: Integer) -> None:
    """Write the new states, and update U."""
    for r in range(lanes):
        gain[r] += np.float64(fresh[r] - states[here + r]) * (odds[r] - pull)
        states[here + r] = fresh[r]
