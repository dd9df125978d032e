"""Compiled entry points: one diagnostic for each cell of a block.

All share one signature: ``values`` (cells, chains, draws); ``orders`` (cells, chains * draws),
which sort the values of each cell, and ``scores``, the table of :func:`normal_scores` (both read
only by those that rank); ``out`` (cells,), which is filled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import compiled, inlined
from gibbsite.result.measure.halves import (
    CONSTANT,
    MOVING,
    classify_cell,
    effective_size,
    locate_draws,
    split_chains,
    variance_ratio,
)
from gibbsite.result.measure.ranks import (
    Order,
    fold_values,
    interpolate_quantile,
    order_halves,
    score_ranks,
)

Array = NDArray[np.float64]


@inlined
def _size_unmoved(kind: int, chains: int, draws: int) -> float:
    return float(chains * draws) if kind == CONSTANT else float(chains)


@inlined
def _ratio_unmoved(kind: int) -> float:
    return 1.0 if kind == CONSTANT else np.inf


@inlined
def _error_unmoved(kind: int, trace: Array, means: Array) -> float:
    """Estimate the error of the mean from the chain means alone, each taken as one draw."""
    chains, draws = trace.shape
    if kind == CONSTANT:
        return 0.0
    if chains == 1:
        return np.inf
    center = 0.0
    for chain in range(chains):
        means[chain] = 0.0  # relative to the first value, so that equal chains have equal means
        for draw in range(draws):
            means[chain] += (trace[chain, draw] - trace[0, 0]) / draws
        center += means[chain] / chains
    squares = 0.0
    for chain in range(chains):
        squares += (means[chain] - center) ** 2
    return float(np.sqrt(squares / (chains - 1) / chains))


@compiled
def measure_ess_mean(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure the effective sample size of the mean."""
    cells, chains, draws = values.shape
    halves = np.empty((draws // 2, 2 * chains))
    means = np.empty(2 * chains)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _size_unmoved(kind, chains, draws)
            continue
        split_chains(values[cell], halves)
        out[cell] = effective_size(halves, means)


@compiled
def measure_ess_bulk(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure the effective sample size of the mean of the rank-normalised values."""
    cells, chains, draws = values.shape
    halves = np.empty((draws // 2, 2 * chains))
    ranked = np.empty((draws // 2, 2 * chains))
    positions = np.empty(chains * draws, np.intp)
    locate_draws(chains, draws, positions)
    order = np.empty(halves.size, np.intp)
    means = np.empty(2 * chains)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _size_unmoved(kind, chains, draws)
            continue
        split_chains(values[cell], halves)
        order_halves(orders[cell], positions, order)
        score_ranks(halves.reshape(halves.size), order, scores, ranked.reshape(halves.size))
        out[cell] = effective_size(ranked, means)


@compiled
def measure_ess_tail(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure the smaller effective size of the events below the 5 % and the 95 % quantile."""
    cells, chains, draws = values.shape
    event = np.empty((chains, draws))
    halves = np.empty((draws // 2, 2 * chains))
    means = np.empty(2 * chains)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _size_unmoved(kind, chains, draws)
            continue
        flat = values[cell].reshape(chains * draws)
        out[cell] = np.inf
        for probability in (0.05, 0.95):
            quantile = interpolate_quantile(flat, orders[cell], probability)
            for chain in range(chains):
                for draw in range(draws):
                    event[chain, draw] = 1.0 if values[cell, chain, draw] <= quantile else 0.0
            split_chains(event, halves)
            out[cell] = min(out[cell], effective_size(halves, means))


@compiled
def measure_rhat_split(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure R-hat of the split chains."""
    cells, chains, draws = values.shape
    halves = np.empty((draws // 2, 2 * chains))
    means = np.empty(2 * chains)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _ratio_unmoved(kind)
            continue
        split_chains(values[cell], halves)
        ratio = variance_ratio(halves, means)
        # Only the middle draw, which belongs to no half, differs from the others.
        out[cell] = 1.0 if np.isnan(ratio) else ratio


@compiled
def measure_rhat_rank(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure the larger R-hat of the ranks and of the ranks of the distances from the median."""
    cells, chains, draws = values.shape
    halves = np.empty((draws // 2, 2 * chains))
    ranked = np.empty((draws // 2, 2 * chains))
    positions = np.empty(chains * draws, np.intp)
    locate_draws(chains, draws, positions)
    order = np.empty(halves.size, np.intp)
    means = np.empty(2 * chains)
    folded = np.empty(halves.size)
    folded_order = np.empty(halves.size, np.intp)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _ratio_unmoved(kind)
            continue
        split_chains(values[cell], halves)
        flat = halves.reshape(halves.size)
        order_halves(orders[cell], positions, order)
        fold_values(flat, order, folded, folded_order)
        largest = -np.inf
        for fold in range(2):
            if fold == 0:
                score_ranks(flat, order, scores, ranked.reshape(halves.size))
            else:
                score_ranks(folded, folded_order, scores, ranked.reshape(halves.size))
            ratio = variance_ratio(ranked, means)
            # All distances of two equally frequent states agree: they say nothing.
            if ratio > largest:
                largest = ratio
        out[cell] = largest if largest > 0.0 else 1.0


@compiled
def measure_mcse_mean(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure the standard error of the mean."""
    cells, chains, draws = values.shape
    halves = np.empty((draws // 2, 2 * chains))
    means = np.empty(2 * chains)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _error_unmoved(kind, values[cell], means)
            continue
        split_chains(values[cell], halves)
        size = effective_size(halves, means)
        spread = np.var(values[cell]) * (chains * draws) / (chains * draws - 1)
        out[cell] = np.sqrt(spread / size)


@compiled
def measure_mcse_sd(values: Array, orders: Order, scores: Array, out: Array) -> None:
    """Measure the standard error of the standard deviation, from the error of the variance."""
    cells, chains, draws = values.shape
    squares = np.empty((chains, draws))
    halves = np.empty((draws // 2, 2 * chains))
    means = np.empty(2 * chains)
    for cell in range(cells):
        kind = classify_cell(values[cell])
        if kind != MOVING:
            out[cell] = _error_unmoved(kind, values[cell], means)
            continue
        center = np.mean(values[cell])
        for chain in range(chains):
            for draw in range(draws):
                squares[chain, draw] = (values[cell, chain, draw] - center) ** 2
        split_chains(squares, halves)
        size = effective_size(halves, means)
        # If v estimates the variance, sqrt(v) has the error of v divided by 2 sqrt(v).
        out[cell] = np.sqrt(np.var(squares) / size / np.mean(squares) / 4.0)
