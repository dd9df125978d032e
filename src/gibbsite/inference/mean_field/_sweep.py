"""One sweep of mean field: every site takes the distribution that is best given those of the others.

Given the others, the bound is largest at q_i(a) proportional to exp(expected log-weight of a). States that some
possible configuration of the others excludes have expected log-weight minus infinity and get probability zero, even
where steps are damped, because the bound is minus infinity until then. If all states of a site are excluded that way,
those excluded with the least probability share the site as if they were not excluded: this is the limit of zeros
replaced by exp(-M) for growing M. A sweep in place thus removes excluded configurations until none is left, or no
single site can improve.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, compiled_loop, generic, implement, inlined
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.local import from_logs, weights
from gibbsite.inference.mean_field._expected import ExpectationWorkspace, entropy, mean_log_potential, mean_log_weights

_TIE = 1.0 + 1e-12  # how far two sums of the same probabilities may be apart


@generic
def renew(arrays: Any, q: Floats, fresh: Floats, i: Integer, damping: float, workspace: ExpectationWorkspace) -> float:
    """Write the new distribution of site i to ``fresh``; return how far the undamped one is from the old."""
    raise NotImplementedError


@implement(renew, IsingGraph)
@implement(renew, LatticeGraph)
def _renew_binary(
    arrays: Any, q: Any, fresh: Floats, i: Integer, damping: float, workspace: ExpectationWorkspace
) -> float:
    weights(arrays, q, i, workspace.logs)  # their sum is one
    best: float = workspace.logs[1]
    old: float = q[i]
    fresh[i] = (1.0 - damping) * old + damping * best
    return abs(best - old)


@implement(renew)
def _renew_cells(
    arrays: Any, q: Floats, fresh: Floats, i: Integer, damping: float, workspace: ExpectationWorkspace
) -> float:
    size = mean_log_weights(arrays, q, i, workspace)
    cell = np.uintp(arrays.offset[i])
    best, barred = workspace.logs, workspace.barred
    least = _least_barred(barred, size)
    left = 0.0  # what the old law gives to states that stay possible
    for a in range(size):
        if barred[a] > least:
            best[a] = -np.inf
        else:
            left += q[cell + a]
    scale = 1.0 / from_logs(best, size)
    share = 1.0 / ((1.0 - damping) * left + damping)
    change = 0.0
    for a in range(size):
        p = best[a] * scale
        old = q[cell + a]
        kept = 0.0 if barred[a] > least else (1.0 - damping) * old
        fresh[cell + a] = (kept + damping * p) * share
        change = max(change, abs(p - old))
    return change


@inlined
def _least_barred(barred: Floats, size: Integer) -> float:
    least = np.inf
    for a in range(size):
        least = min(least, barred[a])
    return least * _TIE


@compiled_loop
def sweep(arrays: Any, n: int, q: Floats, fresh: Floats, damping: float, workspace: ExpectationWorkspace) -> float:
    """Update all sites from ``q`` to ``fresh``, in place if both are the same; return the largest change."""
    largest = 0.0
    for site in range(n):
        largest = max(largest, renew(arrays, q, fresh, np.uintp(site), damping, workspace))
    return largest


@compiled_loop
def bound(arrays: Any, q: Floats, workspace: ExpectationWorkspace) -> float:
    """Return mean log-potential plus entropy, a lower bound of the log-partition function for any q."""
    return mean_log_potential(arrays, q, workspace) + entropy(arrays, q)
