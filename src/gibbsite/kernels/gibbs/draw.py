"""Parts of a step that draws a site from its conditional, for every kernel that does so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints8
from gibbsite._numba.jit import Integer, inlined
from gibbsite.graphs.local import log_odds

_ONE = np.uintp(1)
_BINS = 1024
# logit(k / 1024) for k = 0 .. 1024, both ends infinite
_LOGITS = np.array([-np.inf, *(math.log(k / (_BINS - k)) for k in range(1, _BINS)), np.inf])


@inlined
def kept_odds(arrays: Any, x: Ints8, i: Integer, cond: Floats, keep: bool) -> float:
    """Return the log-odds of a two-state site, which are also written to ``cond`` if ``keep`` is set."""
    odds = log_odds(arrays, x, i)
    if keep:
        cond[i] = odds
    return odds


@inlined
def is_up(odds: float, u: float) -> bool:
    """Tell whether u < P(1) = 1 / (1 + exp(-odds)), that is odds > logit(u).

    A table of logits brackets logit(u) so closely that the logarithm itself is needed in one update of a
    thousand.
    """
    k = np.uintp(u * _BINS)
    up: bool = odds >= _LOGITS[k + _ONE]
    if up != (odds >= _LOGITS[k]):  # a branch that is almost never taken, unlike one on ``up``
        up = odds > math.log(u / (1.0 - u))
    return up


@inlined
def put_cells(arrays: Any, w: Floats, size: Integer, total: float, i: Integer, cond: Floats) -> None:
    """Write the conditional of a site to ``cond``."""
    cell = np.uintp(arrays.offset[i])
    scale = 1.0 / total
    for a in range(np.uintp(size)):
        cond[cell + a] = w[a] * scale
