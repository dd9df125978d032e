"""Gibbs sampling of tables and missing cells together (data augmentation).

A sweep draws the missing cells of every case given all other cells, with the tables integrated out, then the tables
given all cells, which have Dirichlet distributions. Data augmentation [1]_ draws cells given tables; integrated tables
[2]_ let a chain move faster where rows have few cases.

References
----------
.. [1] Tanner, M. A. and Wong, W. H. (1987). The calculation of posterior distributions by data augmentation. Journal of
   the American Statistical Association 82, 528-540.
.. [2] Liu, J. S. (1994). The collapsed Gibbs sampler in Bayesian computations with applications to a gene regulation
   problem. Journal of the American Statistical Association 89, 958-966.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints, Ints16
from gibbsite.learn.networks.layout import Layout, count_families, row_of_entries
from gibbsite.learn.networks.missing import Urn, find_groups, impute, make_scratch

_MOST_STATES = 512  # joint states of a group up to which its cells are drawn at once
_TINY = 1e-300  # probabilities are kept above it, so that logarithms are finite


class Length(NamedTuple):
    """How long chains are: sweeps before the first draw, draws, and sweeps from one to the next."""

    warmup: int
    draws: int
    thin: int


def draw_tables(layout: Layout, rows: Ints, parameters: Floats, rng: np.random.Generator) -> Floats:
    """Draw all rows of all tables from Dirichlet distributions.

    Small parameters, whose gamma variates can be too small for a floating-point number, are drawn as logarithms.

    Examples
    --------
    >>> from gibbsite.learn.networks.layout import make_layout
    >>> layout = make_layout(["a"], {"a": ()}, np.array([3]))
    >>> float(draw_tables(layout, row_of_entries(layout), np.full(3, 1e-4), np.random.default_rng(1)).sum())
    1.0
    """
    # gamma(a) = gamma(a + 1) * uniform^(1 / a)
    logs = np.log(rng.standard_gamma(parameters + 1.0)) - rng.standard_exponential(parameters.size) / parameters
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    logs -= np.maximum.reduceat(logs, first)[rows]
    found = np.exp(logs)
    return np.asarray(np.maximum(found / np.add.reduceat(found, first)[rows], _TINY))


def sample_tables(
    layout: Layout,
    codes: Ints16,
    pseudocounts: Floats,
    length: Length,
    streams: Sequence[np.random.SeedSequence],
    threads: int,
    reported: Callable[[int], None],
    stopped: Callable[[], bool],
) -> Floats:
    """Return draws of all tables (chains, draws, entries), one chain for each stream.

    ``reported`` is called with the number of sweeps that a chain has made, and ``stopped`` says when to end early.
    """
    groups, rows = find_groups(layout, codes), row_of_entries(layout)
    missing, ones = np.asarray(codes < 0), np.ones(codes.shape[1])

    def run(stream: np.random.SeedSequence) -> Floats:
        rng, scratch = np.random.default_rng(stream), make_scratch(layout, groups, _MOST_STATES)
        filled = _fill(layout, codes, missing, rng)
        entry = count_families(layout, filled, ones)
        total, extra = (np.asarray(np.bincount(rows, each), np.float64) for each in (entry, pseudocounts))
        urn = Urn(entry, total, pseudocounts, extra, rows)
        found = np.empty((length.draws, rows.size))
        sweeps = length.warmup + length.draws * length.thin
        for sweep in range(1, sweeps + 1):
            impute(layout, groups, _MOST_STATES, filled, urn, rng.random(groups.site.size), scratch)
            done = sweep - length.warmup
            if done > 0 and done % length.thin == 0:
                found[done // length.thin - 1] = draw_tables(layout, rows, urn.entry + pseudocounts, rng)
            reported(sweep)
            if stopped():
                return found[: max(done, 0) // length.thin]
        return found

    with ThreadPoolExecutor(max(1, min(threads, len(streams)))) as pool:
        chains = list(pool.map(run, streams))
    shortest = min(map(len, chains))
    if not shortest:
        raise KeyboardInterrupt
    return np.stack([chain[:shortest] for chain in chains])


def _fill(layout: Layout, codes: Ints16, missing: Bools, rng: np.random.Generator) -> Ints16:
    """Return the cells with random states where they are missing."""
    random = (rng.random(codes.shape) * layout.card[:, None]).astype(np.int16)
    return np.where(missing, random, codes)
