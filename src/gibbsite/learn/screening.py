"""Selection of coupled pairs: pseudo-likelihood with an l1 penalty.

Each site is regressed on all others, as in Ravikumar, Wainwright and Lafferty (2010), but with one coupling
theta_ij for both directions: minimise over symmetric theta

    sum_i mean log(1 + exp(-2 s_i (theta_i + sum_j theta_ij s_j))) + penalty * sum_{i<j} abs(theta_ij)

by accelerated proximal gradients (Beck and Teboulle 2009). The method needs neither sampling nor log Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number, check_share, checked
from gibbsite._common.arrays import Floats, Floats32, Ints32
from gibbsite.learn.arguments import read_codes

_STILL = 1e-6  # change of couplings that ends the minimisation, the resolution of 32-bit sums


@checked
def screen_pairs(
    data: Any, *, risk: float = 0.05, penalty: float | None = None, fields: bool = True, steps: int = 300
) -> tuple[Ints32, Floats]:
    """Find the pairs of binary sites that are likely to be coupled directly.

    Parameters
    ----------
    data : array (draws, sites)
        Independent draws of -1 and 1, or 0 and 1.
    risk : float
        If no pair is coupled, the probability that any pair is found is at most this; it determines the penalty,
        ``sqrt(8 log(2 pairs / risk) / draws)``.
    penalty : float, optional
        The penalty, which replaces the risk.
    fields : bool
        Whether sites have fields, which are not penalised.
    steps : int
        Largest number of steps of the minimisation.

    Returns
    -------
    pairs : int array (found, 2)
        Pairs i < j whose coupling is not zero.
    couplings : float array (found,)
        Their couplings, shrunk by the penalty; refit them with :func:`fit_ising`.

    Notes
    -----
    Weak couplings, below about half the penalty, are not found. In strongly dependent models, pairs of sites at
    distance two may be found.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.solve_exact(gs.ising(([0, 1, 2], [1, 2, 3], 0.5)), task="PR")
    >>> pairs, couplings = gs.learn.screen_pairs(exact.draw(2000, np.random.default_rng(1)))
    >>> pairs.tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    spins = (2.0 * read_codes(data, 2, spins=True) - 1.0).astype(np.float32)
    draws, n = spins.shape
    steps = check_integer("steps", steps, 1)
    risk = check_share("risk", risk)
    if penalty is None:
        # the gradient of a pair at 0 is -2 mean s_i s_j; apply Hoeffding's inequality and the union bound
        penalty = float(np.sqrt(8.0 * np.log(max(n * (n - 1), 2) / risk) / draws))
    theta = _minimise(spins, check_number("penalty", penalty, zero=True), fields, steps)
    i, j = np.nonzero(np.triu(theta, 1))
    return np.stack([i, j], axis=1).astype(np.int32), theta[i, j].astype(np.float64)


def _minimise(spins: Floats32, penalty: float, fields: bool, steps: int) -> Floats:
    """Return the symmetric couplings; during the minimisation, fields are on the diagonal."""
    draws, n = spins.shape
    # second derivatives of the loss of a site are at most the covariance; a coupling is in two of them
    lipschitz = 2.0 * (float(np.linalg.eigvalsh(spins.T @ spins / draws)[-1]) + 1.0)
    theta = point = np.zeros((n, n))
    pace = 1.0
    for _ in range(steps):
        off = point - np.diag(np.diag(point))
        drive = spins @ off.astype(np.float32) + np.diag(point).astype(np.float32)
        # d/dz log(1 + exp(-2 s z)) = -2 s / (1 + exp(2 s z)) = tanh(z) - s
        residual = np.tanh(drive) - spins
        slope = (spins.T @ residual / draws).astype(np.float64)
        slope = slope + slope.T
        np.fill_diagonal(slope, residual.mean(axis=0, dtype=np.float64) if fields else 0.0)
        moved = point - slope / lipschitz
        new = np.sign(moved) * np.maximum(np.abs(moved) - penalty / lipschitz, 0.0)
        np.fill_diagonal(new, np.diag(moved))
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        point = new + (pace - 1.0) / faster * (new - theta)
        still = float(np.abs(new - theta).max()) <= _STILL
        theta, pace = new, faster
        if still:
            break
    np.fill_diagonal(theta, 0.0)
    return theta
