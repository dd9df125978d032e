"""Standard errors that slow sites carry over to sites that depend on them.

A site that is tied to a slow one moves with it, but only a little. Its own draws are mostly fast noise, in which the
slow part is hard to see, so that its own standard error leaves that part out. The slow site shows it: if the mean of
the slow site is off by e, that of the other one is off by b e, where b is the slope of the batch means of one on those
of the other. So the standard error of every cell is at least the one that its batch means without the slow part have,
and b times that of the slow cell, together; what b squared is by chance is taken away. Some slow cells, which hardly
depend on each other, are taken in turn, each for the cells that are faster and to which it carries enough to matter.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite.results.measure.measurement import MATERIAL, measure_errors

_BATCHES = 64  # of each chain, long enough for slow parts to be seen beside fast ones
_SLOW, _APART = 4, 0.5  # how many slow cells are taken, and the correlation of two of them, at most
_MATTERS = 0.2  # of the standard error of a cell: what is carried over to it, to be looked at


def carry_errors(trace: Array, mean: Floats, errors: Floats) -> Floats:
    """Return standard errors that are not smaller than what slow cells carry over.

    Parameters
    ----------
    trace : array (chains, batches, cells)
        Means of batches of probabilities.
    mean, errors : float arrays (cells,)
        Probabilities and their standard errors.

    Examples
    --------
    A fast cell has a tenth of a slow one in it, whose standard error is 0.1:

    >>> rng = np.random.default_rng(1)
    >>> slow, fast = np.repeat(rng.random((4, 16)), 4, axis=1), rng.random((4, 64))
    >>> trace = np.stack([slow, 0.9 * fast + 0.1 * slow], axis=2)
    >>> carry_errors(trace, np.full(2, 0.5), np.array([0.1, 0.001])).round(3).tolist()
    [0.1, 0.017]
    """
    coarse = _coarsen(trace)
    if not coarse.size:  # a run that keeps no batches
        return errors.copy()
    around = coarse - coarse.mean(axis=(0, 1))
    sizes = np.sqrt(np.square(around).sum(axis=(0, 1)))
    slowness = np.square(errors) / np.maximum(mean * (1.0 - mean), 1e-300)  # one by the number of effective draws
    moving = (sizes > 0.0) & (mean > MATERIAL) & (mean < 1.0 - MATERIAL)
    found = errors.copy()
    for cell in _slowest(around, sizes, np.where(moving, slowness, 0.0)):
        slope = _products(around, cell) / sizes[cell] ** 2
        by_chance = np.maximum(np.square(sizes / sizes[cell]) - np.square(slope), 0.0) / coarse[:, :, cell].size
        carried = np.sqrt(np.maximum(np.square(slope) - by_chance, 0.0)) * errors[cell]
        cells = np.flatnonzero((slowness < slowness[cell]) & (carried > _MATTERS * found))
        if cells.size:
            rest = measure_errors(around[:, :, cells] - around[:, :, cell, None] * slope[cells])
            found[cells] = np.maximum(found[cells], np.hypot(rest, carried[cells]))
    return found


def _products(around: Floats, cell: int) -> Floats:
    """Return the sums of products of a cell with all cells."""
    found: Floats = around[:, :, cell].ravel() @ around.reshape(-1, around.shape[2])
    return found


def _coarsen(trace: Array) -> Floats:
    """Return means over several batches."""
    chains, batches, cells = trace.shape
    each = max(1, batches // _BATCHES)
    kept = trace[:, : batches // each * each]
    return np.asarray(kept.reshape(chains, -1, each, cells).mean(axis=2, dtype=float))


def _slowest(around: Floats, sizes: Floats, slowness: Floats) -> list[int]:
    """Return some of the slowest cells, none of which follows an earlier one."""
    left = slowness.copy()
    chosen: list[int] = []
    while len(chosen) < _SLOW and left.max(initial=0.0) > 0.0:
        cell = int(np.argmax(left))
        chosen.append(cell)
        left[np.abs(_products(around, cell)) >= _APART * sizes * sizes[cell]] = 0.0
        left[cell] = 0.0
    return chosen
