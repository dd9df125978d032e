"""Runs without progress and warnings, messages of refused runs, and statistics of chains."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Floats


def sample_quietly(model: gs.Model, kernel: gs.kernels.Kernel, **how: Any) -> gs.Result:
    """Sample as :func:`gibbsite.sample` does, without progress and warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, kernel, progress=False, **how)


def refusal(call: Callable[[], Any]) -> str | None:
    """Return the error message of a call, None if it succeeds."""
    try:
        call()
    except gs.GibbsiteError as error:
        return str(error)
    return None


def autocorrelations(values: Floats, lags: int) -> Floats:
    """Return the autocorrelations of zero-mean chains at lags 1, 2, ..., a row per chain."""
    n = values.shape[1]
    power = np.square(values).mean(axis=1)
    found = [(values[:, k:] * values[:, : n - k]).mean(axis=1) / power for k in range(1, lags + 1)]
    return np.stack(found, axis=1)


def mean_and_error(of_chains: Floats) -> tuple[Floats, Floats]:
    """Return the mean over chains (the first axis) and its standard error."""
    error = of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
    return of_chains.mean(axis=0), error
