"""A slice of a chain, moved and recorded by itself: what several processes need to share one chain.

The random number of a site depends on chain, sweep and position alone where many sites move at once, so it
makes no difference who moves which positions of a color, or in which order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.pointer import call_pointer
from gibbsite._numba.random.generators import load
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Span, Team, visit
from gibbsite.sampling.observed import NOTHING_OBSERVED
from gibbsite.sampling.sweep import Writer
from gibbsite.sampling.tape import Tape

# What tapes have besides marginals.
_OTHERS = ("set_start", "set_member", "set_stride", "set_cell", "sites", "values", "energy", "best", "best_x")


@compiled_loop
def move_stretches(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    memory: Any,
    x: Array,
    order: Ints32,
    words: Words64,
    turn: int,
    ranges: Ints,
    cond: Array,
    put: bool,
    team: Team,
) -> None:
    """Move ranges of positions of a color in sweep ``turn``; add conditionals to ``cond`` if ``put``."""
    for r in range(len(ranges)):
        span = Span(order, np.uintp(ranges[r, 0]), np.uintp(ranges[r, 1]), turn, team)
        visit(parameters, arrays, schedule, memory, x, span, load(words), cond, put)


@compiled_loop
def record_stretch(recording: Writer, x: Array, now: float, what: int) -> None:
    """Record one draw, see :func:`gibbsite.sampling.tape.record_states`."""
    call_pointer(recording.address, recording.book, x, now, what)


@compiled_loop
def state_potential(arrays: Any, x: Array) -> float:
    """Return the log-potential of a state of a laid-out model."""
    return float(log_potential(arrays, x))


def tape_of_cells(tape: Tape, size: int, recent: Array, counters: Ints, pulse: Floats) -> Tape:
    """Return an empty tape of ``size`` marginal cells, recorded as on a given one, and of nothing else.

    ``recent`` is where their conditionals are added up, and empty where they are not; a cell of binary sites,
    or of one state of others, counts how often it is one.
    """
    return tape._replace(
        counters=counters,
        offset=tape.offset[:0],
        stride=1,
        n_marginal=size,
        open_batch=np.zeros(size),
        recent=recent,
        total=np.zeros(size),
        trace=np.zeros((len(tape.trace), size), tape.trace.dtype),
        pulse=pulse,
        **{name: getattr(tape, name)[:0] for name in _OTHERS},
        observed=NOTHING_OBSERVED,
    )
