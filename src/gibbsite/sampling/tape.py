"""What compiled code writes during a run: sums, batch means, and short traces.

One named tuple holds everything that can be recorded; what was not asked for is an empty array. Loops over
steps see a table of pointers to these arrays, the *book* (:mod:`gibbsite._numba.book`), and call the recording
function by its address (:func:`gibbsite.sampling.sweep.find_writer`). One function records marginals for every kind of
graph; a second one, compiled when it is first needed, records everything else.

A *cell* is one probability: of a state of a site, or of a configuration of a small set of sites. For all
cells the tape keeps the total and a bounded trace of batch means. When the trace is full, neighbouring
batches are merged and the batch length doubles, so the memory does not depend on the length of the run and
no length need be known beforehand. As long as nothing has been merged the trace *is* the trace of draws.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.pointer import call_pointer, pointed
from gibbsite.sampling.observed import Observed, observe

# 1/11!, 1/10!, ..., 1/0!
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(11, -1, -1))

# Number of draws that are summed in 32-bit floats: the rounding error of their mean is below 1e-6.
SPELL = 64

# Length of a batch that is never closed, for runs that keep no batch means.
NEVER = 1 << 62

# positions in ``counters``
DRAWS, FILL, BATCHES, LENGTH = range(4)

# How a draw contributes to marginals: its state is counted, the conditionals of the chain are added now, or the update
# has already added them.
COUNT, CONDITIONAL, ADDED = range(3)

# Batches from one value of ``pulse`` to the next: computing one log-potential in eight batches costs almost no time.
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
        Sums over the latest draws of the open batch, not yet in ``open_batch``, where updates add conditionals
        up themselves. Every visit reads and writes these sums, so they are 32-bit floats, and they are added to
        ``open_batch`` before rounding errors matter.
    trace : float32, with numbers float64 (batches, cells)
        Means of the closed batches.
    angular : float64 (n,) or empty
        What the two cells of a site that is a number hold. 0: the value and its square; another number: cosine and
        sine of the value times this number. NaN for sites that have states; empty if no site is a number.
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

    counters: Ints
    offset: Ints
    stride: int
    n_marginal: int
    set_start: Ints
    set_member: Ints32
    set_stride: Ints
    set_cell: Ints
    open_batch: Floats
    recent: Array
    total: Floats
    trace: Array
    angular: Floats
    sites: Ints32
    values: Array
    energy: Floats
    best: Floats
    best_x: Array
    pulse: Floats
    observed: Observed

    @property
    def constant(self) -> tuple[str, ...]:
        """Arrays that never change."""
        return ("offset", "set_start", "set_member", "set_stride", "set_cell", "angular", "sites")

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may hold NaN."""
        return ("angular",)

    @property
    def growing(self) -> tuple[str, ...]:
        """Arrays that become longer."""
        return ("values", "energy")

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the limits between which the entries of a tape that was read from a file must lie."""
        most, rows = int(cards.max(initial=1)) - 1, len(self.trace)
        draws, fill, _, length = self.counters.tolist()
        low, high = np.array([0, 0, 0, 1]), np.array([NEVER, max(length - 1, 0), max(rows - 1, 0), NEVER])
        found: dict[str, tuple[Any, Any]] = {"counters": (low, high)}
        if not self.angular.size:  # otherwise there are numbers, of which sums and means may be anything
            slack = 1e-3 * (1.0 + draws)  # sums of probabilities, rounded
            found |= {"total": (-slack, draws + slack), "open_batch": (-slack, fill + slack)}
            found |= {"recent": (-slack, draws + slack), "trace": (-1e-3, 1.001), "values": (0, most)}
            found["best_x"] = (0, most)
        return found


@inlined
def pulse_due(counters: Ints) -> bool:
    """Tell whether the next draw ends a batch at the end of which the log-potential is kept."""
    return bool(counters[FILL] + 1 == counters[LENGTH] and counters[BATCHES] % PULSE == 0)


@inlined
def probability(odds: float) -> float:
    """Return 1 / (1 + exp(-odds)) to an absolute 1e-14, without a call, so that loops over it vectorise.

    exp is a Taylor polynomial on a 64th of the argument, squared six times. Beyond 40 the answer differs from
    0 or 1 by less than rounding.
    """
    bounded = -40.0 if odds < -40.0 else 40.0 if odds > 40.0 else odds
    y = bounded * -0.015625
    e = 1.0 / 479001600.0
    for inverse in _FACTORIALS:
        e = e * y + inverse
    for _ in range(6):
        e = e * e
    return 1.0 / (1.0 + e)


# The book of a tape. Whole numbers: the address of the function that records what is not recorded here, or 0;
# distance between the cells of a site; marginal cells; whether draws are counted here; rows of the trace.
_REST, _STRIDE, _N_MARGINAL, _COUNTED, _ROWS = range(5)
# Arrays behind them: of every tape, and of those with a rest.
_COUNTERS, _OFFSET, _OPEN_BATCH, _RECENT, _TOTAL, _TRACE, _PULSE, _COND = range(3, 11)
_ANGULAR, _SET_START, _SET_MEMBER, _SET_STRIDE, _SET_CELL = range(11, 16)
_SITES, _VALUES, _ENERGY, _BEST, _BEST_X, _OBSERVED = range(16, 22)


@pointed
def record_states(book: Ints, x: Array, now: float, what: int) -> None:
    """Record one draw of sites that have states.

    ``now`` is the log-potential of the state ``x``, where it is needed; ``what`` tells where marginals come
    from. A visit that could have added them up, but made no full period, leaves the state to be counted.
    """
    _record(book, array_in(book, _TRACE, np.float32), x, now, what)


@pointed
def record_numbers(book: Ints, x: Array, now: float, what: int) -> None:
    """Record one draw of sites some of which are numbers."""
    _record(book, array_in(book, _TRACE, np.float64), x, now, what)


@inlined
def _record(book: Ints, trace: Array, x: Array, now: float, what: int) -> None:
    if book[_REST] != 0:
        call_pointer(book[_REST], book, x, now, what)
    batch = array_in(book, _OPEN_BATCH, np.float64)
    offset = array_in(book, _OFFSET, np.int64)
    if what == CONDITIONAL:
        cond = array_in(book, _COND, np.float64)
        if offset.size == 0:
            for c in range(np.uintp(book[_N_MARGINAL])):
                batch[c] += probability(cond[c])
        else:
            for c in range(np.uintp(book[_N_MARGINAL])):
                batch[c] += cond[c]
    elif what == COUNT and book[_COUNTED] != 0:
        if offset.size == 0:
            for c in range(np.uintp(book[_N_MARGINAL])):
                batch[c] += x[c]
        else:
            for i in range(np.uintp(x.size)):
                batch[np.uintp(offset[i] + book[_STRIDE] * np.int64(x[i]))] += 1.0
    counters = array_in(book, _COUNTERS, np.int64)
    counters[DRAWS] += 1
    counters[FILL] += 1
    whole = counters[FILL] == counters[LENGTH]
    if whole or counters[FILL] % SPELL == 0:
        recent = array_in(book, _RECENT, np.float32)
        for c in range(np.uintp(recent.size)):
            batch[c] += recent[c]
            recent[c] = np.float32(0.0)
    if whole:
        pulse = array_in(book, _PULSE, np.float64)
        if pulse.size > 0 and counters[BATCHES] % PULSE == 0:
            pulse[counters[BATCHES] // PULSE] = now
        _close_batch(counters, batch, array_in(book, _TOTAL, np.float64), trace, pulse, book[_ROWS])


@inlined
def _close_batch(counters: Ints, batch: Floats, total: Floats, trace: Array, pulse: Floats, rows: Integer) -> None:
    """Move the open batch into total and trace; halve the trace when it is full."""
    cells = np.uintp(batch.size)
    first = np.uintp(counters[BATCHES]) * cells
    scale = 1.0 / counters[FILL]
    for c in range(cells):
        trace[first + c] = batch[c] * scale
        total[c] += batch[c]
        batch[c] = 0.0
    counters[FILL] = 0
    counters[BATCHES] += 1
    if counters[BATCHES] == rows:
        half = np.uintp(rows // 2)
        for b in range(half):
            to, at = b * cells, np.uintp(2) * b * cells
            for c in range(cells):
                trace[to + c] = np.float32(0.5) * (trace[at + c] + trace[at + cells + c])
        for k in range(np.uintp(pulse.size + 1) // np.uintp(2)):
            pulse[k] = pulse[np.uintp(2) * k]
        counters[BATCHES] = half
        counters[LENGTH] *= 2


@pointed
def rest_of_states(book: Ints, x: Array, now: float, what: int) -> None:
    """Record everything but marginals, of sites that have states."""
    _record_rest(book, array_in(book, _VALUES, np.int16), x, now)


@pointed
def rest_of_numbers(book: Ints, x: Array, now: float, what: int) -> None:
    """Record everything, where some sites are numbers."""
    offset, angular = array_in(book, _OFFSET, np.int64), array_in(book, _ANGULAR, np.float64)
    batch = array_in(book, _OPEN_BATCH, np.float64)
    if what == COUNT and book[_N_MARGINAL] > 0:
        for i in range(x.size):
            if np.isnan(angular[i]):
                batch[offset[i] + book[_STRIDE] * np.int64(x[i])] += 1.0
            else:
                v, rate = np.float64(x[i]), angular[i]
                batch[offset[i]] += v if rate == 0.0 else math.cos(rate * v)
                batch[offset[i] + 1] += v * v if rate == 0.0 else math.sin(rate * v)
    _record_rest(book, array_in(book, _VALUES, np.float64), x, now)


@inlined
def _record_rest(book: Ints, values: Array, x: Array, now: float) -> None:
    batch, counters = array_in(book, _OPEN_BATCH, np.float64), array_in(book, _COUNTERS, np.int64)
    draw = counters[DRAWS]
    start, member = array_in(book, _SET_START, np.int64), array_in(book, _SET_MEMBER, np.int32)
    stride, first = array_in(book, _SET_STRIDE, np.int64), array_in(book, _SET_CELL, np.int64)
    for s in range(first.size):
        cell = first[s]
        for m in range(start[s], start[s + 1]):
            cell += stride[m] * np.int64(x[member[m]])
        batch[cell] += 1.0
    sites = array_in(book, _SITES, np.int32)
    for k in range(sites.size):
        values[draw * sites.size + k] = x[sites[k]]
    energy, best = array_in(book, _ENERGY, np.float64), array_in(book, _BEST, np.float64)
    if energy.size > 0:
        energy[draw] = 0.0 - now  # no negative zeros
    if best.size > 0 and now > best[0]:
        best[0] = now
        best_x = array_in(book, _BEST_X, x.dtype)
        for i in range(x.size):
            best_x[i] = x[i]
    observe(book, _OBSERVED, x)
