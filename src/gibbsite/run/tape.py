"""What compiled code writes during a run: sums, batch means, and short traces.

One named tuple holds everything that can be recorded; what was not asked for is an empty array, so there is
one compiled recording function for each kind of graph, not one per combination. Loops over steps call it by
its address (:func:`recorder_for`): it is no part of them, and compiled where something is recorded.

A *cell* is one probability: of a state of a site, or of a configuration of a small set of sites. For all
cells the tape keeps the total and a bounded trace of batch means. When the trace is full, neighbouring
batches are merged and the batch length doubles, so the memory does not depend on the length of the run and
no length need be known beforehand. As long as nothing has been merged the trace *is* the trace of draws.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import called, inlined
from gibbsite._compile.pointer import point_at, pointed
from gibbsite.graph.local import log_potential
from gibbsite.kernel.base import sums_up
from gibbsite.run.observed import Observed, observe

# 1/11!, 1/10!, ..., 1/0!
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(11, -1, -1))

# Draws whose sum is taken in 32-bit floats: the rounding errors of their mean are below 1e-6.
SPELL = 64

# Length of a batch that is never closed, where no means of batches are kept.
NEVER = 1 << 62

# positions in ``counters``
DRAWS, FILL, BATCHES, LENGTH = range(4)

# What :func:`record` is to do: begin, count a draw, or count one whose marginals have been added up already.
BEGIN, COUNT, ADDED = range(3)

# Batches from one value of ``pulse`` to the next: their log-potentials cost next to nothing.
PULSE = 8


class Tape(NamedTuple):
    """Everything one chain records.

    Attributes
    ----------
    counters : int64 (4,)
        Draws recorded; draws in the open batch; closed batches; draws per batch.
    offset : int64 (n,) or longer, or empty
        First cell of each site; empty where a site is one cell (binary kinds).
    stride : int
        Distance between the cells of a site.
    n_marginal : int
        Number of leading cells that are marginals (0: marginals are not recorded).
    set_start, set_member, set_stride, set_cell
        Small sets of sites in compressed rows; configuration c of set s is cell ``set_cell[s] + c``.
    open_batch, total : float64 (cells,)
        Sums over the open batch, and over everything before it.
    recent : float32 (marginal cells,) or empty
        Sums over the latest draws of the open batch, not yet in ``open_batch``, where walks add conditionals
        up themselves: memory read and written at every visit, so it is short, and moved on in time.
    trace : float32, with numbers float64 (batches, cells)
        Means of the closed batches.
    angular : float64 (n,) or empty
        What the two cells of sites are that are numbers, if any: 0: the value and its square; otherwise
        cosine and sine of the value times this; NaN for sites that have states.
    sites, values
        Sites whose draws are kept, and the draws (draws, sites).
    energy : float64 (draws,)
        Minus the log-potential of each draw, without the offset of the graph; empty if not recorded.
    best, best_x
        Largest log-potential seen and its state; empty if not recorded.
    pulse : float64 (batches / 8,) or empty
        Log-potential at the end of every eighth batch: a short series over the whole run, by which chains are
        compared, and which shows how often a chain has gone from high to low energy and back.
    observed : Observed
        Open recorders: functions that are called after every draw.
    """

    counters: NDArray[np.int64]
    offset: NDArray[np.int64]
    stride: int
    n_marginal: int
    set_start: NDArray[np.int64]
    set_member: NDArray[np.int32]
    set_stride: NDArray[np.int64]
    set_cell: NDArray[np.int64]
    open_batch: NDArray[np.float64]
    recent: NDArray[Any]
    total: NDArray[np.float64]
    trace: NDArray[Any]
    angular: NDArray[np.float64]
    sites: NDArray[np.int32]
    values: NDArray[Any]
    energy: NDArray[np.float64]
    best: NDArray[np.float64]
    best_x: NDArray[Any]
    pulse: NDArray[np.float64]
    observed: Observed


@called
def _write_indicators(tape: Tape, x: NDArray[Any], cond: NDArray[np.float64]) -> None:
    """Set ``cond`` to the state itself: the estimate of a site that has not been visited yet."""
    if tape.offset.size == 0:
        for i in range(cond.size):
            cond[i] = np.inf if x[i] else -np.inf
    else:
        for c in range(cond.size):
            cond[c] = 0.0
        for i in range(x.size):
            cond[tape.offset[i] + tape.stride * np.int64(x[i])] = 1.0


@inlined
def probability(odds: float) -> float:
    """Return 1 / (1 + exp(-odds)) to an absolute 1e-14, without a call, so that loops over it vectorise.

    exp is a Taylor polynomial on a 64th of the argument, squared six times. Beyond 40 the answer differs from
    0 or 1 by less than rounding.
    """
    y = min(max(odds, -40.0), 40.0) * -0.015625
    e = 1.0 / 479001600.0
    for inverse in _FACTORIALS:
        e = e * y + inverse
    for _ in range(6):
        e = e * e
    return 1.0 / (1.0 + e)


@pointed
def record(tape: Tape, arrays: Any, x: NDArray[Any], cond: NDArray[np.float64], what: int) -> None:
    """Record one draw: the state ``x`` and, where the kernel gives them, the conditionals ``cond``.

    ADDED says that the sums of the marginals have been taken care of; a visit that could have done so, but
    made no full period, leaves the state to be counted. BEGIN comes before the first draw.
    """
    if what == BEGIN:
        _write_indicators(tape, x, cond)
        return
    added = what == ADDED
    counters, batch = tape.counters, tape.open_batch
    draw = counters[DRAWS]
    known = cond.size > 0 and not sums_up(arrays)
    if tape.n_marginal > 0 and not added:
        if known and tape.offset.size == 0:
            for c in range(np.uintp(tape.n_marginal)):
                batch[c] += probability(cond[c])
        elif known:
            for c in range(np.uintp(tape.n_marginal)):
                batch[c] += cond[c]
        elif tape.offset.size == 0:
            for c in range(np.uintp(tape.n_marginal)):
                batch[c] += x[c]
        else:
            for i in range(x.size):
                if tape.angular.size > 0 and not np.isnan(tape.angular[i]):
                    v, rate = np.float64(x[i]), tape.angular[i]
                    batch[tape.offset[i]] += v if rate == 0.0 else math.cos(rate * v)
                    batch[tape.offset[i] + 1] += v * v if rate == 0.0 else math.sin(rate * v)
                else:
                    batch[tape.offset[i] + tape.stride * np.int64(x[i])] += 1.0
    for s in range(tape.set_cell.size):
        cell = tape.set_cell[s]
        for m in range(tape.set_start[s], tape.set_start[s + 1]):
            cell += tape.set_stride[m] * np.int64(x[tape.set_member[m]])
        batch[cell] += 1.0
    for k in range(tape.sites.size):
        tape.values[draw, k] = x[tape.sites[k]]
    if tape.energy.size > 0 or tape.best.size > 0:
        now = log_potential(arrays, x)
        if tape.energy.size > 0:
            tape.energy[draw] = 0.0 - now  # no negative zeros
        if tape.best.size > 0 and now > tape.best[0]:
            tape.best[0] = now
            for i in range(x.size):
                tape.best_x[i] = x[i]
    if tape.observed.code.step.size > 0:
        observe(tape.observed, x)
    counters[DRAWS] = draw + 1
    counters[FILL] += 1
    if counters[FILL] == counters[LENGTH]:
        if tape.pulse.size > 0 and counters[BATCHES] % PULSE == 0:
            tape.pulse[counters[BATCHES] // PULSE] = log_potential(arrays, x)
        close_batch(tape)
    elif counters[FILL] % SPELL == 0:
        move_recent(tape)


_RECORDERS: dict[Any, Any] = {}
# The latest answer, with what it was given for: short loops ask again and again with the same arrays.
_latest: tuple[Any, Any, Any] = (None, None, None)


def recorder_for(tape: Tape, arrays: Any, x: NDArray[Any], cond: NDArray[Any], keep: bool) -> Any:
    """Return the address of :func:`record` for compiled loops; 0 where nothing is kept.

    It is looked up by what the types of its arguments depend on, which is cheaper than to ask for the types.
    """
    global _latest
    if not keep:
        return 0
    known, of, found = _latest
    if known is tape and of is arrays:
        return found
    given = [part for part in (*tape, *arrays, x, cond) if isinstance(part, np.ndarray)]
    key = (type(arrays), *[(part.dtype.char, part.flags.writeable) for part in given])
    found = _RECORDERS.get(key)
    if found is None:
        found = _RECORDERS[key] = point_at(record, tape, arrays, x, cond, COUNT)
    _latest = (tape, arrays, found)
    return found


@inlined
def move_recent(tape: Tape) -> None:
    """Add the latest sums to the open batch."""
    for c in range(tape.recent.size):
        tape.open_batch[c] += tape.recent[c]
        tape.recent[c] = np.float32(0.0)


@called
def close_batch(tape: Tape) -> None:
    """Move the open batch into total and trace; halve the trace when it is full."""
    counters = tape.counters
    row = counters[BATCHES]
    move_recent(tape)
    scale = 1.0 / counters[FILL]
    for c in range(tape.open_batch.size):
        tape.trace[row, c] = tape.open_batch[c] * scale
        tape.total[c] += tape.open_batch[c]
        tape.open_batch[c] = 0.0
    counters[FILL] = 0
    counters[BATCHES] = row + 1
    if row + 1 == tape.trace.shape[0]:
        half = tape.trace.shape[0] // 2
        for b in range(half):
            for c in range(tape.open_batch.size):
                tape.trace[b, c] = np.float32(0.5) * (tape.trace[2 * b, c] + tape.trace[2 * b + 1, c])
        for k in range((tape.pulse.size + 1) // 2):
            tape.pulse[k] = tape.pulse[2 * k]
        counters[BATCHES] = half
        counters[LENGTH] *= 2


def read_pulse(tape: Tape) -> NDArray[np.float64]:
    """Return the log-potentials a tape has kept of its run, oldest first."""
    return tape.pulse[: -(-int(tape.counters[BATCHES]) // PULSE)].copy()
