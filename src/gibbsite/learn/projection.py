"""The nearest weights whose sum around every site is bounded: where Gibbs sampling mixes fast.

Minimise sum_e (t_e - y_e)^2 / 2 over 0 <= t_e <= box with a sum of t_e around each site of at most c (Liu and
Domke 2014 project onto such sets). With multipliers mu_i >= 0 the solution is t_e = clip(y_e - mu_i - mu_j,
0, box) for the pair e = (i, j); one multiplier at a time is solved for exactly, which climbs the dual.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats, Integers
from gibbsite.graphs.rows import build_rows

_ROUNDS, _CLOSE = 200, 1e-10


def project_rows(weights: Floats, pairs: Integers, n_sites: int, bound: float, box: float = np.inf) -> Floats:
    """Return the nearest weights of pairs, from 0 to ``box``, that add up to at most ``bound`` at every site.

    ``weights`` (pairs,): weights, not negative; ``pairs`` (pairs, 2): the sites of each; ``n_sites``: number of
    sites; ``bound``, ``box``: largest sum at a site; largest single weight.
    """
    rows = build_rows(pairs, n_sites)
    around = [rows.source[a:b].astype(np.int64) for a, b in zip(rows.start, rows.start[1:], strict=False)]
    others = [rows.neighbour[a:b].astype(np.int64) for a, b in zip(rows.start, rows.start[1:], strict=False)]
    price = np.zeros(n_sites)

    def solution() -> Floats:
        found: Floats = np.clip(weights - price[pairs].sum(axis=1), 0.0, box)
        return found

    def sums(t: Floats) -> Floats:
        return np.bincount(pairs.ravel(), np.repeat(t, 2), n_sites).astype(np.float64)

    for _ in range(_ROUNDS):
        excess = sums(solution()) - bound
        wrong = (excess > _CLOSE) | ((excess < -_CLOSE) & (price > 0.0))
        if not wrong.any():
            break
        for i in np.flatnonzero(wrong):
            price[i] = _price(weights[around[i]] - price[others[i]], bound, box)
    t = solution()
    # what rounding, or a lack of patience, has left above the bound is scaled away
    scale = np.minimum(1.0, bound / np.maximum(sums(t), bound))
    kept: Floats = t * scale[pairs].min(axis=1, initial=1.0)
    return kept


def _price(a: Floats, bound: float, box: float) -> float:
    """Return the smallest mu >= 0 with sum clip(a - mu, 0, box) <= bound: linear between corners."""
    corners = np.concatenate([[0.0], a, a - box])
    corners = np.unique(corners[np.isfinite(corners) & (corners >= 0.0)])
    values = np.clip(a - corners[:, None], 0.0, box).sum(axis=1)
    if values[0] <= bound:
        return 0.0
    return float(np.interp(-bound, -values, corners))
