"""One chain: its state, and the compiled loop that moves it.

This is the only loop over steps in the library. Kernel, graph and schedule are named tuples; the loop is
compiled once for each combination of their types.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import compiled_loop
from gibbsite._random import load, store
from gibbsite.graph.lower import Graph
from gibbsite.kernel.base import Kernel, step
from gibbsite.run.tape import DRAWS, Tape, record, write_indicators
from gibbsite.scan.base import Scan, period, refresh, site_at


class State(NamedTuple):
    """What the next step needs, and nothing else: saving it and the tape saves the chain.

    Attributes
    ----------
    x : int (n,)
        State codes.
    cond : float64 (cells,) or empty
        The latest conditional probabilities of each site, where they are recorded.
    rng : uint64 (4,)
        The generator.
    position : int64 (1,)
        Where in its period the schedule stands.
    order : int32
        The current order of a random schedule.
    memory : NamedTuple
        Whatever the kernel carries.
    """

    x: NDArray[Any]
    cond: NDArray[np.float64]
    rng: NDArray[np.uint64]
    position: NDArray[np.int64]
    order: NDArray[np.int32]
    memory: Any


def start_chain(
    graph: Graph,
    kernel: Kernel,
    scan: Scan,
    x0: NDArray[Any],
    stream: NDArray[np.uint64],
    conditional: bool,
) -> State:
    """Make the state of a chain that stands at ``x0`` with the given generator words."""
    words = np.array(stream, np.uint64)
    return State(
        x=np.array(x0, graph.state_dtype),
        cond=np.zeros(graph.n_cells if conditional else 0),
        rng=words,
        position=np.zeros(1, np.int64),
        order=scan.buffer(graph),
        memory=kernel.memory(graph, words),
    )


@compiled_loop
def advance(
    kernel: Any,
    graph: Any,
    schedule: Any,
    state: State,
    tape: Tape,
    rounds: int,
    length: int,
    keep: bool,
) -> None:
    """Make ``rounds`` times ``length`` steps; record a draw after each round where ``keep`` is set."""
    x, cond, order, memory = state.x, state.cond, state.order, state.memory
    rng = load(state.rng)
    where = np.uintp(state.position[0])
    cycle = np.uintp(period(schedule))
    write = keep and cond.size > 0
    if write and tape.counters[DRAWS] == 0:
        write_indicators(tape, x, cond)
    for _ in range(rounds):
        left = np.uintp(length)
        while left > 0:
            if where == 0:
                rng = refresh(schedule, order, rng)
            stop = min(where + left, cycle)
            for k in range(where, stop):
                i = np.uintp(site_at(schedule, order, k))
                rng = step(kernel, graph, memory, x, i, rng, cond, write)
            left -= stop - where
            where = stop if stop < cycle else np.uintp(0)
        if keep:
            record(tape, graph, x, cond)
    store(state.rng, rng)
    state.position[0] = where
