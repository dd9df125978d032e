"""Estimates of the energy of whole states, which the chains of MIN-Gibbs and DoubleMIN-Gibbs carry.

Factors get Poisson numbers s of means tau M, where tau = lambda / Psi. For

    eps = sum s log(1 + phi(x) / (tau M))

the mean of exp(eps) is exactly exp(sum phi(x)). Therefore a chain on states and estimates with the distribution
``mu_x(eps) exp(eps)`` has the target as its marginal. Given x, the distribution of the estimate is that for
numbers s with means ``tau M + phi(x)``; a chain whose state was set from outside begins with such an estimate.
Factors of single sites are cheap, and always evaluated.

*Drawn estimates* follow this definition. *Tracked estimates* are possible if every factor is either 0 or its bound M,
as agreements are. Then all factors with phi(x) = M add the same number to the estimate for each time they are drawn,
and others add nothing, so

    eps = log(1 + 1 / tau) N,    N ~ Poisson(tau U(x)),    U(x) = sum phi(x),

because a sum of independent Poisson numbers is a Poisson number; in the stationary distribution given x, the mean of N
is (tau + 1) U(x). A chain that keeps U(x) up to date draws one number for an estimate, and reads the factors of one
site. It is the same chain in law, whatever lambda is. To remove rounding errors, U(x) is computed again after a fixed
number of changes, which the memory of the chain counts.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, called, generic, implement, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.minibatch.factors import (
    COST_OF_DRAW,
    DRAWN,
    KEPT,
    MinibatchKernel,
    add_factor,
    batch_rate,
    bound_of,
    draw_factor,
    drawn_rows,
    factor_at,
    is_counted,
    local_energies,
    read_batch,
    share_of,
    stays_in,
)

# Positions in what a chain knows: its estimate, whether it exists, U(x), and changes before U(x) is computed again.
ESTIMATE, EXISTS, ENERGY, LEFT = range(4)
# Changes per site after which U(x) is computed again, which takes a hundredth of the time.
_CHANGES_PER_SITE = 64


class Estimated(NamedTuple):
    """Memory of a chain that carries an estimate: scratch arrays, counts, and what the chain knows of its energy."""

    work: Floats
    spare: Floats
    counts: Ints
    heights: Floats
    known: Floats


class DrawnEstimate(NamedTuple):
    """Rows of factors, an alias table of the sites, tau, and draws per unit of tau: Psi or more."""

    rows: Any
    sites: Words64
    tau: float
    total: float


class TrackedEstimate(NamedTuple):
    """Rows of factors, tau, and what a drawn factor adds to an estimate."""

    rows: Any
    tau: float
    step: float


class EstimatingKernel(MinibatchKernel):
    """A minibatch kernel whose chains carry an estimate of their energy."""

    #: Whether chains keep their energy up to date where that is possible and cheaper than drawing factors.
    tracks: ClassVar[bool] = True

    def memory(self, graph: Graph, stream: Words64) -> Estimated:
        """Allocate scratch arrays, counts, and an estimate, which is drawn later."""
        scratch = self.workspace(graph)
        return Estimated(*scratch, np.zeros(scratch.work.size), np.zeros(4))

    def forget(self, memory: Any) -> None:
        """Drop the estimate, which belongs to another state."""
        memory.known[EXISTS] = 0.0

    def estimate(self, graph: Graph, size: float) -> DrawnEstimate | TrackedEstimate:
        """Return the parameters of estimates from ``size`` factors on average."""
        rows = drawn_rows(graph)
        tau = batch_rate(size, local_energies(graph).total)
        if self.tracks and is_tracked(rows, size):
            return TrackedEstimate(rows, tau, math.log1p(1.0 / tau))
        sites = build_alias_rows(np.array([0, graph.n_sites]), rows.rate)
        return DrawnEstimate(rows, sites, tau, rows.rate.sum() / 2.0)

    def estimate_warning(self, graph: Graph, size: float, power: int, other: str) -> KernelWarning:
        """Return a warning about the spectral gap, and how estimates are obtained."""
        spread = local_energies(graph).total / math.sqrt(size)
        text = (
            f"Estimates of the energy have a standard deviation of up to Psi / sqrt(lambda) = {spread:.3g}. "
            f"If all were within d of the energy, the spectral gap would be at least exp(-{power} d) times that of "
            f"{other}; estimates from Poisson minibatches have no such bound d, so no gap is guaranteed."
        )
        if isinstance(self.estimate(graph, size), TrackedEstimate):
            text += (
                " Every factor is 0 or its bound, so chains keep their energy up to date and draw an estimate as "
                "one Poisson number instead of drawing its factors; its distribution is the same."
            )
        return KernelWarning(text)


def is_tracked(rows: Any, size: float) -> bool:
    """Return whether all factors are 0 or their bound, and reading those of a site is cheaper than an estimate."""
    share = getattr(rows, "share", None)
    possible = share is None or bool(((share == 0.0) | (share == 1.0)).all())
    return possible and float(np.mean(rows.degree)) <= COST_OF_DRAW * size if rows.degree.size else possible


def estimate_size(name: str, given: Any, graph: Graph) -> float:
    """Return the mean number of factors of an estimate, by default Psi^2."""
    return read_batch(name, given, max(local_energies(graph).total ** 2, 1.0))


@generic
def know_energy(energy: Any, memory: Estimated, x: Codes, rng: Words) -> Words:
    """Make sure that a chain has an estimate for its state."""
    raise NotImplementedError


@generic
def look_around(energy: Any, memory: Estimated, x: Codes, i: Integer) -> None:
    """Prepare estimates for other values of site i."""
    raise NotImplementedError


@generic
def estimate_at(
    energy: Any, memory: Estimated, x: Codes, i: Integer, old: Integer, a: Integer, rng: Words
) -> tuple[Words, float]:
    """Draw an estimate for value a of site i, which has the value ``old`` in the state that the chain knows."""
    raise NotImplementedError


@generic
def move_energy(energy: Any, memory: Estimated, x: Codes, old: Integer, new: Integer) -> None:
    """Take note that the site that :func:`look_around` was called for has changed its value."""
    raise NotImplementedError


@called
def draw_estimate(energy: DrawnEstimate, x: Codes, tilted: bool, counts: Ints, rng: Words) -> tuple[Words, float]:
    """Draw an estimate at state x; with ``tilted``, from its stationary distribution in the chain."""
    rows, tau = energy.rows, energy.tau
    full = math.log1p(1.0 / tau)
    rng, always = poisson(rng, tau * energy.total)
    rng, more = poisson(rng, energy.total if tilted else 0.0)
    found = 0.0
    for draw in range(always + more):
        # draw a site and then a factor: a factor counts from two of its sites, with total probability M / Psi
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


@implement(know_energy, DrawnEstimate)
def _know_by_draws(energy: DrawnEstimate, memory: Estimated, x: Codes, rng: Words) -> Words:
    if memory.known[EXISTS] == 0.0:
        rng, memory.known[ESTIMATE] = draw_estimate(energy, x, True, memory.counts, rng)
        memory.known[EXISTS] = 1.0
    return rng


@implement(look_around, DrawnEstimate)
def _look_nowhere(energy: DrawnEstimate, memory: Estimated, x: Codes, i: Integer) -> None:
    pass


@implement(estimate_at, DrawnEstimate)
def _estimate_by_draws(
    energy: DrawnEstimate, memory: Estimated, x: Codes, i: Integer, old: Integer, a: Integer, rng: Words
) -> tuple[Words, float]:
    now = x[i]
    x[i] = a
    rng, found = draw_estimate(energy, x, False, memory.counts, rng)
    x[i] = now
    return rng, found


@implement(move_energy, DrawnEstimate)
def _move_nothing(energy: DrawnEstimate, memory: Estimated, x: Codes, old: Integer, new: Integer) -> None:
    pass


@called
def sum_energy(rows: Any, x: Codes, counts: Ints) -> float:
    """Return U(x), the sum of all factors; each counts half from two of its sites."""
    total = 0.0
    for site in range(rows.degree.size):
        i = np.uintp(site)
        for number in range(np.int64(rows.degree[i])):
            k, view = factor_at(rows, i, x, number)
            if is_counted(rows, k):
                total += 0.5 * bound_of(rows, k, i) * share_of(rows, k, i, x[i], view)
        counts[DRAWN] += rows.degree[i]
    return total


@inlined
def _sum_again(energy: TrackedEstimate, memory: Estimated, x: Codes) -> None:
    memory.known[ENERGY] = sum_energy(energy.rows, x, memory.counts)
    memory.known[LEFT] = float(_CHANGES_PER_SITE * x.size)


@implement(know_energy, TrackedEstimate)
def _know_by_sum(energy: TrackedEstimate, memory: Estimated, x: Codes, rng: Words) -> Words:
    if memory.known[EXISTS] == 0.0:
        _sum_again(energy, memory, x)
        rng, number = poisson(rng, (energy.tau + 1.0) * memory.known[ENERGY])
        memory.known[ESTIMATE] = energy.step * number
        memory.known[EXISTS] = 1.0
    return rng


@implement(look_around, TrackedEstimate)
def _look_at_factors(energy: TrackedEstimate, memory: Estimated, x: Codes, i: Integer) -> None:
    """Write the energy of the factors of site i, up to a constant, for all of its values."""
    rows, heights = energy.rows, memory.heights
    for a in range(heights.size):
        heights[a] = 0.0
    for number in range(np.int64(rows.degree[i])):
        k, view = factor_at(rows, i, x, number)
        add_factor(rows, k, i, view, 1.0, heights)
    memory.counts[DRAWN] += rows.degree[i]


@implement(estimate_at, TrackedEstimate)
def _estimate_by_number(
    energy: TrackedEstimate, memory: Estimated, x: Codes, i: Integer, old: Integer, a: Integer, rng: Words
) -> tuple[Words, float]:
    there = memory.known[ENERGY]
    if a != old:
        there += memory.heights[a] - memory.heights[old]
    rng, number = poisson(rng, energy.tau * max(there, 0.0))
    return rng, energy.step * number


@implement(move_energy, TrackedEstimate)
def _move_sum(energy: TrackedEstimate, memory: Estimated, x: Codes, old: Integer, new: Integer) -> None:
    memory.known[ENERGY] += memory.heights[new] - memory.heights[old]
    memory.known[LEFT] -= 1.0
    if memory.known[LEFT] <= 0.0:
        _sum_again(energy, memory, x)
