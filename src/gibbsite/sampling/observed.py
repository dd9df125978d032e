"""Open recorders in compiled code: after every draw, functions are called by their addresses.

Each gets the state as numbers, in the model's order of sites, and a block of numbers of its own. So no compiled loop
depends on the recorders of users. One such function is here, :func:`bin_step`: it evaluates a function of the state
and averages its values.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.book import array_in
from gibbsite._numba.foreign import Foreign, adopt_step, call_at
from gibbsite._numba.jit import inlined


class ObservedCode(NamedTuple):
    """Addresses, and how a state becomes numbers; made anew where a run is resumed.

    Attributes
    ----------
    step : int64 (r,)
        Addresses of the functions of the recorders.
    words : uint64 (r, 4)
        What each of them gets besides, as another address.
    label : float64
        What the states of sites are as numbers: one row for all sites, or one after another; empty where
        sites are numbers.
    label_at : int64 (n,) or empty
        Where the states of each site are in ``label``; empty if there is one row for all.
    site_at : int32 (n,) or empty
        Where each site is in the state; empty where it is in the model's order.
    x : float64 (n,)
        The state as numbers.
    """

    step: Ints
    words: Words64
    label: Floats
    label_at: Ints
    site_at: Ints32
    x: Floats

    @property
    def rebuildable(self) -> bool:
        """Checkpoints leave it out."""
        return True


class Observed(NamedTuple):
    """The open recorders of one chain: what is called, and the blocks ``place[r]`` to ``place[r + 1]``."""

    code: ObservedCode
    place: Ints
    block: Floats

    @property
    def growing(self) -> tuple[str, ...]:
        """Arrays that become longer."""
        return ("block",)

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may hold NaN."""
        return ("block",)


_NO_INTS, _NO_FLOATS = np.zeros(0, np.int64), np.zeros(0)
#: The open recorders of a chain that has none.
NOTHING_OBSERVED = Observed(
    ObservedCode(_NO_INTS, np.zeros((0, 4), np.uint64), _NO_FLOATS, _NO_INTS, np.zeros(0, np.int32), _NO_FLOATS),
    np.zeros(1, np.int64),
    _NO_FLOATS,
)


def observed_arrays(seen: Observed) -> list[tuple[Array, np.dtype[Any]]]:
    """Return the arrays that :func:`observe` finds in a book one after another, with their types."""
    code = seen.code
    whole, real = np.dtype(np.int64), np.dtype(np.float64)
    return [
        (code.step, whole),
        (code.words, np.dtype(np.uint64)),
        (code.label, real),
        (code.label_at, whole),
        (code.site_at, np.dtype(np.int32)),
        (code.x, real),
        (seen.place, whole),
        (seen.block, real),
    ]


@inlined
def observe(book: Ints, first: int, x: Array) -> None:
    """Call all open recorders with a state; array number ``first`` of the book is their first one."""
    step, words = array_in(book, first, np.int64), array_in(book, first + 1, np.uint64)
    label, label_at = array_in(book, first + 2, np.float64), array_in(book, first + 3, np.int64)
    site_at, numbers = array_in(book, first + 4, np.int32), array_in(book, first + 5, np.float64)
    place, block = array_in(book, first + 6, np.int64), array_in(book, first + 7, np.float64)
    for i in range(numbers.size):
        at = i if site_at.size == 0 else np.int64(site_at[i])
        if label.size == 0:
            numbers[i] = x[at]
        else:
            begin = 0 if label_at.size == 0 else label_at[i]
            numbers[i] = label[begin + np.int64(x[at])]
    for r in range(step.size):
        room = place[r + 1] - place[r]
        call_at(step[r], numbers, 0, numbers.size, block, place[r], room, words[4 * r : 4 * r + 4])


# ---- averages of a function

#: Bins of a trace: enough for autocorrelation times of a tenth of the run.
BINS = 2048

# Positions in the head of a block: number of values, of numbers of the function's own, of bins; draws in the
# open bin; closed bins; draws of a bin; draws in all, and up to the first one that was no number; rows of the
# series.
VALUES, OWN, ROWS, FILL, FILLED, LENGTH, DRAWS, FAULT, SERIES = range(9)
HEAD = 9


def make_bins(values: int, own: Floats) -> Floats:
    """Make the block of a function: space for its values, its own initial numbers, and empty averages.

    Behind the head there are the values of a draw, the function's own numbers, sums over the open bin, over
    all bins before, and of squares, and the trace of means of bins; last, the series of all draws, if there
    is one.
    """
    block = np.zeros(HEAD + values + own.size + (3 + BINS) * values)
    block[[VALUES, OWN, ROWS, LENGTH]] = values, own.size, BINS, 1
    block[HEAD + values : HEAD + values + own.size] = own
    return block


class Bins(NamedTuple):
    """What a block holds, as views."""

    values: Floats
    own: Floats
    open: Floats
    total: Floats
    square: Floats
    trace: Floats
    series: Floats


def read_bins(block: Floats) -> Bins:
    """Return the parts of a block."""
    k, m, rows, room = (int(block[at]) for at in (VALUES, OWN, ROWS, SERIES))
    sizes = (k, m, k, k, k, rows * k, room * k)
    ends = HEAD + np.cumsum((0, *sizes))
    values, own, opened, total, square, trace, series = (block[a:b] for a, b in pairwise(ends.tolist()))
    return Bins(values, own, opened, total, square, trace.reshape(rows, k), series.reshape(room, k))


#: How many of the first numbers of a block are those of a fresh one.
OPEN_FORM = 3


def is_binned(block: Floats, draws: int) -> bool:
    """Return whether a block, which may come from a file, has the form of one after ``draws`` draws.

    Examples
    --------
    >>> block = make_bins(2, np.zeros(1))
    >>> is_binned(block, 0), is_binned(block[:-1], 0), is_binned(block, 1)
    (True, False, False)
    """
    head = block[:HEAD]
    if head.size < HEAD or not (np.isfinite(head) & (head == np.floor(head)) & (head >= 0)).all():
        return False
    if head.max() > 1 << 53:
        return False
    values, own, rows, fill, filled, length, counted, fault, series = map(int, head)
    size = HEAD + values + own + (3 + rows + series) * values
    return (
        values >= 1
        and block.size == size
        and counted == draws
        and fill < length
        and filled < max(rows, 1)
        and fault <= draws
        and (series == 0 or draws <= series)
    )


def grow_series(block: Floats, draws: int) -> Floats:
    """Return a block with room for the series of ``draws`` draws."""
    k, room = int(block[VALUES]), int(block[SERIES])
    if room >= draws:
        return block
    new = max(draws, room + room // 2)
    larger = np.zeros(block.size + (new - room) * k)
    larger[: block.size] = block
    larger[SERIES] = new
    return larger


def _bin(x: Floats, block: Floats, words: Words64) -> float:
    """Evaluate the function whose address is the first of ``words``, and average its values."""
    k, m, rows = np.int64(block[VALUES]), np.int64(block[OWN]), np.int64(block[ROWS])
    failed = call_at(np.int64(words[0]), x, 0, x.size, block, HEAD, k + m, words)
    opened = HEAD + k + m
    total, square, trace = opened + k, opened + 2 * k, opened + 3 * k
    draw = np.int64(block[DRAWS])
    block[DRAWS] = draw + 1
    for c in range(k):
        found = block[HEAD + c]
        if not (np.isfinite(found) and np.isfinite(failed)) and block[FAULT] == 0:
            block[FAULT] = draw + 1
        block[opened + c] += found
        block[square + c] += found * found
        if block[SERIES] > 0:
            block[trace + rows * k + draw * k + c] = found
    block[FILL] += 1
    if block[FILL] < block[LENGTH]:
        return 0.0
    row = np.int64(block[FILLED])
    for c in range(k):
        block[trace + row * k + c] = block[opened + c] / block[FILL]
        block[total + c] += block[opened + c]
        block[opened + c] = 0.0
    block[FILL] = 0
    block[FILLED] = row + 1
    if row + 1 == rows:  # neighbouring bins are merged
        half = rows // 2
        for b in range(half):
            for c in range(k):
                pair = block[trace + 2 * b * k + c] + block[trace + (2 * b + 1) * k + c]
                block[trace + b * k + c] = 0.5 * pair
        block[FILLED] = half
        block[LENGTH] *= 2
    return 0.0


@cache
def bin_step() -> Foreign:
    """Return the function that averages another one, compiled at its first use."""
    return adopt_step(_bin)
