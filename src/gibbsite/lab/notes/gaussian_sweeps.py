"""Sweeps of Gibbs sampling in a normal target are linear: x' = A x + noise, with A known.

A step at site i replaces row i of the identity: the new value is a x_i + (1 - a) m_i plus noise, where
m_i = -sum_j P_ij x_j / P_ii is the mean given the others, P the precision, and a = -relax. Steps keep the
covariance S, so that draws k sweeps apart have the covariance A^k S.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsite._common.arrays import Floats


def step_map(covariance: Floats, i: int, relax: float = 0.0) -> Floats:
    """Return the matrix of a step at site i."""
    precision = np.linalg.inv(covariance)
    found = np.eye(len(covariance))
    found[i] = -(1.0 + relax) * precision[i] / precision[i, i]
    found[i, i] = 0.0 - relax  # not -0
    return found


def sweep_map(covariance: Floats, order: Sequence[int], relax: float = 0.0) -> Floats:
    """Return the matrix of steps at some sites, one after the other."""
    found = np.eye(len(covariance))
    for i in order:
        found = step_map(covariance, i, relax) @ found
    return found


def random_map(covariance: Floats, steps: int) -> Floats:
    """Return the mean matrix of steps at random sites, as many as said."""
    n = len(covariance)
    mean = sum(step_map(covariance, i) for i in range(n)) / n
    return np.linalg.matrix_power(mean, steps)


def autocorrelation(covariance: Floats, sweep: Floats, lags: int, site: int = 0) -> Floats:
    """Return the autocorrelations of a site, 1, 2, ... sweeps apart."""
    powers = [np.linalg.matrix_power(sweep, k) for k in range(1, lags + 1)]
    return np.array([(power @ covariance)[site, site] / covariance[site, site] for power in powers])
