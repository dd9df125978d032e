"""Standard errors of fitted parameters."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite.learn.ascent import Problem
from gibbsite.learn.family import SpinFamily

_MOST_PARAMETERS = 2000  # of which a matrix is inverted
_AT_A_BOUND = 1e-9
_SINGULAR = 1e-10  # of the largest eigenvalue


def standard_errors(problem: Problem, codes: Array | None, theta: Floats) -> Floats:
    """Return the standard errors of the parameters at the maximum of the penalised likelihood; NaN where unknown.

    With independent draws x_1, ..., x_N, the maximum is asymptotically normal with covariance A C A / N, where C is the
    covariance of the statistics and A the inverse of C + ridge (the delta method for estimating equations). C is
    estimated by the covariance in the data, which is that of the model if the draws are of such a model. Parameters
    at a bound are fixed.
    """
    unknown = np.full(theta.size, np.nan)
    if codes is None or len(codes) < 2 or not 0 < theta.size <= _MOST_PARAMETERS:
        return unknown
    family = problem.family
    if problem.ridge == 0.0 and not isinstance(family, SpinFamily):
        return unknown  # tables of pairs and of sites overlap
    pairs = np.arange(theta.size) < family.n_pair_parameters
    free = np.ones(theta.size, np.bool_)
    if problem.box is not None:
        free &= ~pairs | (np.abs(theta) < problem.box - _AT_A_BOUND)
    if problem.mixing is not None:
        beyond = np.where(pairs, theta + np.sign(theta) * 1e-6, theta)
        if not np.allclose(problem.project(beyond), beyond, rtol=0.0, atol=1e-8):
            return unknown  # some site has the largest total influence, which ties its couplings to each other
    covariance = np.zeros((theta.size, theta.size))
    mean = family.mean(codes)
    most = max(1, (1 << 22) // theta.size)
    for first in range(0, len(codes), most):
        part = family.statistics(codes[first : first + most]) - mean
        covariance += part.T @ part
    covariance = (covariance / len(codes))[np.ix_(free, free)]
    curvature = covariance + problem.ridge * np.eye(len(covariance))
    values = np.linalg.eigvalsh(curvature) if len(covariance) else np.ones(1)
    if values[0] <= _SINGULAR * values[-1]:
        return unknown
    inverse = np.linalg.inv(curvature)
    found = np.sqrt(np.diag(inverse @ covariance @ inverse) / len(codes))
    unknown[free] = np.where(np.diag(covariance) > 0.0, found, np.nan)
    return unknown
