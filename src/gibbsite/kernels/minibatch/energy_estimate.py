"""An unbiased estimate of the weight of a whole state, from a few factors (De Sa, Chen and Wong, 2018).

Factors get Poisson numbers s of means tau M, tau = lambda / Psi, whatever the state. Of

    eps = sum s log(1 + phi(x) / (tau M))

the mean of exp(eps) is exp(sum phi(x)) exactly. A chain on states and estimates with the law ``mu_x(eps)
exp(eps)`` therefore has the target as its marginal. Given x, that law is the one of an estimate whose
numbers have means ``tau M + phi(x)``: so begins a chain whose state was set from outside.

Factors of single sites are no part of estimates: they are cheap, and taken in full.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words64
from gibbsite._numba.jit import called
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.minibatch.counting import DRAWN, KEPT, stays_in
from gibbsite.kernels.minibatch.factors import batch_rate, draw_factor, drawn_rows, is_counted, local_energies, share_of


class EstimateParameters(NamedTuple):
    """Rows of factors, an alias table of the sites, tau, and draws per unit of tau: Psi or more."""

    rows: Any
    sites: Words64
    tau: float
    total: float


def estimate_parameters(graph: Graph, size: float) -> EstimateParameters:
    """Return how energies are estimated from ``size`` factors on average."""
    rows = drawn_rows(graph)
    sites = build_alias_rows(np.array([0, graph.n_sites]), rows.rate)
    return EstimateParameters(rows, sites, batch_rate(size, local_energies(graph).total), rows.rate.sum() / 2.0)


@called
def estimate_energy(
    energy: EstimateParameters, x: Codes, tilted: bool, counts: Ints, rng: Words
) -> tuple[Words, float]:
    """Draw an estimate at state x; ``tilted``: from its law under the stationary one of the chain."""
    rows, tau = energy.rows, energy.tau
    full = math.log1p(1.0 / tau)
    rng, always = poisson(rng, tau * energy.total)
    rng, more = poisson(rng, energy.total if tilted else 0.0)
    found = 0.0
    for draw in range(always + more):
        # by site and then by factor: a factor counts from two of its sites, M / Psi in all
        rng, site = draw_column(energy.sites, 0, rows.local.size, rng)
        rng, k, view = draw_factor(rows, site, x, rng)
        if view < 0 or not is_counted(rows, k):
            continue
        share = share_of(rows, k, site, x[site], view)
        stays = draw < always
        if not stays:
            rng, stays = stays_in(rng, share)
        if stays:
            counts[KEPT] += 1
            if share > 0.0:
                found += full if share >= 1.0 else math.log1p(share / tau)
    counts[DRAWN] += always + more
    return rng, found


@called
def know_energy(energy: EstimateParameters, x: Codes, known: Floats, counts: Ints, rng: Words) -> Words:
    """Make sure that a chain has an estimate for its state: ``known`` holds it, and whether there is one."""
    if known[1] == 0.0:
        rng, known[0] = estimate_energy(energy, x, True, counts, rng)
        known[1] = 1.0
    return rng
