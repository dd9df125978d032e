"""MGPMH, MIN-Gibbs and DoubleMIN-Gibbs (De Sa, Chen and Wong, 2018): exact baselines for :mod:`.poisson`.

MGPMH proposes from a minibatch and accepts by all factors of the site. Factors get Poisson numbers s of means tau M,
where tau = lambda / L; they do not depend on the state. A value v is proposed in proportion to exp(E[v]), with
``E[v] = sum s phi(x_i -> v) / (tau M)``, and accepted by the Metropolis rule, whose cost grows with the number of
factors. The spectral gap is at least exp(-L^2 / lambda) times that of plain Gibbs.

A chain of MIN-Gibbs (algorithm 2) carries an estimate of the energy of its whole state. An update draws an estimate for
every other value of the site, draws a value in proportion to exp(estimate), and keeps the estimate of that value.
Because the energy of the whole state is estimated, each estimate needs about Psi^2 factors. DoubleMIN-Gibbs proposes a
value in the same way as MGPMH and accepts it by such estimates; with a second minibatch much smaller than Psi^2, chains
hardly move.

For an estimate, factors get Poisson numbers s of means tau M, where tau = lambda / Psi. For

    eps = sum s log(1 + phi(x) / (tau M))

the mean of exp(eps) is exactly exp(sum phi(x)). Therefore a chain on states and estimates with the distribution
``mu_x(eps) exp(eps)`` has the target as its marginal. Given x, the distribution of the estimate is that for
numbers s with means ``tau M + phi(x)``; a chain whose state was set from outside begins with such an estimate.
Factors of single sites are cheap, and always evaluated.

References
----------
.. [1] De Sa, C., Chen, V. and Wong, W. (2018). Minibatch Gibbs sampling on large graphical models. ICML 35.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, called, implement, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, uniform
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_weights
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.minibatch.factors import (
    ACCEPTED,
    DRAWN,
    KEPT,
    UPDATES,
    Batched,
    MinibatchKernel,
    add_gain,
    batch_rate,
    draw_factor,
    draw_from_logs,
    drawn_rows,
    gains,
    is_counted,
    local_energies,
    read_batch,
    share_of,
    start_logs,
    stays_in,
)
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.scans.base import Scan


class ProposalParameters(NamedTuple):
    """Rows of factors, tau, and gains of a drawn factor."""

    rows: Any
    tau: float
    gain: Floats


class MgpmhParameters(NamedTuple):
    """Parameters of the proposal."""

    proposal: ProposalParameters


def proposal_size(name: str, given: Any, graph: Graph) -> float:
    """Return lambda of proposals, by default L^2."""
    return read_batch(name, given, max(local_energies(graph).largest ** 2, 1.0))


def proposal_parameters(graph: Graph, size: float) -> ProposalParameters:
    """Return the parameters of proposals from minibatches whose largest mean size is ``size``."""
    rows = drawn_rows(graph)
    tau = batch_rate(size, local_energies(graph).largest)
    return ProposalParameters(rows, tau, gains(rows, tau, log=False))


@register(proof=[{"minibatch": 3.0}])
@dataclass(frozen=True)
class MGPMH(MinibatchKernel):
    """Minibatch proposals with a Metropolis correction by all factors of a site; exact.

    Parameters
    ----------
    minibatch : float or "auto"
        Lambda, the mean size of the minibatch at the site with the largest energy L; L^2 by default.

    References
    ----------
    De Sa, Chen and Wong (2018), Minibatch Gibbs sampling on large graphical models.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.potts(np.full((50, 50), 0.05) - 0.05 * np.eye(50), 3)
    >>> result = gs.sample(model, gs.kernels.MGPMH(), sweeps=500, rng=1, progress=False)
    >>> 0.5 < result.report["acceptance"] < 1.0
    True
    """

    conditional: ClassVar[bool] = False
    rejects: ClassVar[bool] = True
    minibatch: float | str = "auto"

    def parameters(self, graph: Graph) -> MgpmhParameters:
        """Return the parameters of the proposal."""
        return MgpmhParameters(proposal_parameters(graph, self.size(graph)))

    def size(self, graph: Graph) -> float:
        """Return lambda for a graph."""
        return proposal_size("minibatch of MGPMH", self.minibatch, graph)

    def warnings(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Return the guaranteed spectral gap."""
        largest, size = local_energies(graph).largest, self.size(graph)
        return (
            KernelWarning(
                f"With lambda = {size:.4g} and L = {largest:.4g} the spectral gap of random scans is at "
                f"least exp(-L^2 / lambda) = {math.exp(-(largest**2) / size):.3g} times that of plain Gibbs."
            ),
        )


@inlined
def propose(proposal: ProposalParameters, arrays: Any, memory: Any, x: Codes, i: Integer, rng: Words) -> Words:
    """Set site i to a proposed value; write the energies from which it was drawn to ``memory.spare``."""
    rows, w = proposal.rows, memory.work
    size = start_logs(rows, i, w)
    for a in range(size):
        memory.spare[a] = 0.0
    rng, many = poisson(rng, proposal.tau * rows.rate[i])
    for _ in range(many):
        rng, k, view = draw_factor(rows, i, x, rng)
        if view >= 0:
            add_gain(rows, proposal.gain, k, i, view, memory.spare)
            memory.counts[KEPT] += 1
    memory.counts[DRAWN] += many
    for a in range(size):
        w[a] += memory.spare[a]
    return draw_from_logs(arrays, x, i, w, size, rng, w, False)


@implement(step, MgpmhParameters)
def _step_mgpmh(
    params: MgpmhParameters, arrays: Any, memory: Batched, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose a value from a minibatch, and accept it by all factors of the site."""
    memory.counts[UPDATES] += 1
    old = np.uintp(x[i])
    rng = propose(params.proposal, arrays, memory, x, i, rng)
    new = np.uintp(x[i])
    if new != old:
        # factors of the site alone are in the proposal and in the target, and cancel
        rows = params.proposal.rows
        cell, full = np.uintp(rows.offset[i]), memory.work
        log_weights(arrays, x, i, full)
        memory.counts[DRAWN] += rows.degree[i]
        gain = full[new] - full[old] + memory.spare[old] - memory.spare[new]
        gain -= rows.log_unary[cell + new] - rows.log_unary[cell + old]
        rng, u = uniform(rng)
        if u >= math.exp(min(gain, 0.0)):
            x[i] = old
            return rng
    memory.counts[ACCEPTED] += 1
    return rng


class EstimateParameters(NamedTuple):
    """Rows of factors, an alias table of the sites, tau, and draws per unit of tau: Psi or more."""

    rows: Any
    sites: Words64
    tau: float
    total: float


def estimate_parameters(graph: Graph, size: float) -> EstimateParameters:
    """Return the parameters of estimates from ``size`` factors on average."""
    rows = drawn_rows(graph)
    sites = build_alias_rows(np.array([0, graph.n_sites]), rows.rate)
    return EstimateParameters(rows, sites, batch_rate(size, local_energies(graph).total), rows.rate.sum() / 2.0)


@called
def estimate_energy(
    energy: EstimateParameters, x: Codes, tilted: bool, counts: Ints, rng: Words
) -> tuple[Words, float]:
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


@called
def know_energy(energy: EstimateParameters, x: Codes, known: Floats, counts: Ints, rng: Words) -> Words:
    """Make sure that a chain has an estimate for its state; ``known`` has the estimate, and whether it exists."""
    if known[1] == 0.0:
        rng, known[0] = estimate_energy(energy, x, True, counts, rng)
        known[1] = 1.0
    return rng


class Estimated(NamedTuple):
    """Memory of a chain that carries an estimate: scratch arrays, counts, the estimate, and whether it exists."""

    work: Floats
    spare: Floats
    counts: Ints
    known: Floats


class EstimatingKernel(MinibatchKernel):
    """A minibatch kernel whose chains carry an estimate of their energy."""

    def memory(self, graph: Graph, stream: Words64) -> Estimated:
        """Allocate scratch arrays, counts, and an estimate, which is drawn later."""
        return Estimated(*self.workspace(graph), np.zeros(2))

    def forget(self, memory: Any) -> None:
        """Drop the estimate, which belongs to another state."""
        memory.known[1] = 0.0


def estimate_warning(graph: Graph, size: float, power: int, other: str) -> KernelWarning:
    """Return a warning about the spectral gap of a kernel that uses estimates of the energy."""
    spread = local_energies(graph).total / math.sqrt(size)
    return KernelWarning(
        f"Estimates of the energy have a standard deviation of up to Psi / sqrt(lambda) = {spread:.3g}. "
        f"If all were within d of the energy, the spectral gap would be at least exp(-{power} d) times that of "
        f"{other}; estimates from Poisson minibatches have no such bound d, so no gap is guaranteed."
    )


def estimate_size(name: str, given: Any, graph: Graph) -> float:
    """Return the mean number of factors of an estimate, by default Psi^2."""
    return read_batch(name, given, max(local_energies(graph).total ** 2, 1.0))


class MinGibbsParameters(NamedTuple):
    """Parameters of the estimates of energies."""

    energy: EstimateParameters


@register(proof=[{"minibatch": 20.0}])
@dataclass(frozen=True)
class MinGibbs(EstimatingKernel):
    """Gibbs sampling from estimates of the energy of the whole state; exact, and slow on large models.

    Parameters
    ----------
    minibatch : float or "auto"
        Lambda, the mean number of factors of an estimate; Psi^2 by default, where Psi is the sum of the
        bounds of all factors.

    References
    ----------
    De Sa, Chen and Wong (2018), Minibatch Gibbs sampling on large graphical models.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.potts(np.full((5, 5), 0.1) - 0.1 * np.eye(5), 3)
    >>> result = gs.sample(model, gs.kernels.MinGibbs(), sweeps=500, rng=1, progress=False)
    >>> 0.2 < result.marginals["0"][0] < 0.5
    True
    """

    minibatch: float | str = "auto"

    def parameters(self, graph: Graph) -> MinGibbsParameters:
        """Return the parameters of the estimates of energies."""
        size = estimate_size("minibatch of MinGibbs", self.minibatch, graph)
        return MinGibbsParameters(estimate_parameters(graph, size))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Warn that no spectral gap is guaranteed."""
        size = estimate_size("minibatch of MinGibbs", self.minibatch, graph)
        return (estimate_warning(graph, size, 6, "plain Gibbs"),)


@implement(step, MinGibbsParameters)
def _step(
    params: Any, arrays: Any, memory: Estimated, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    memory.counts[UPDATES] += 1
    energy, w = params.energy, memory.work
    rng = know_energy(energy, x, memory.known, memory.counts, rng)
    now = np.uintp(x[i])
    size = start_logs(energy.rows, i, w)
    for a in range(np.uintp(size)):
        if a == now:
            memory.spare[a] = memory.known[0]  # not drawn again, because that would change the target
        elif w[a] > -math.inf:
            x[i] = a
            rng, memory.spare[a] = estimate_energy(energy, x, False, memory.counts, rng)
        w[a] += memory.spare[a]
    x[i] = now
    rng = draw_from_logs(arrays, x, i, w, size, rng, cond, keep)
    memory.known[0] = memory.spare[np.uintp(x[i])]
    return rng


class DoubleMinParameters(NamedTuple):
    """Parameters of the proposal, and of the estimates of energies."""

    proposal: ProposalParameters
    energy: EstimateParameters


@register(proof=[{"minibatch": 3.0, "second": 20.0}])
@dataclass(frozen=True)
class DoubleMinGibbs(EstimatingKernel):
    """Proposals from one minibatch, accepted by estimates of the whole energy from another minibatch; exact.

    Parameters
    ----------
    minibatch : float or "auto"
        Lambda of proposals; L^2 by default.
    second : float or "auto"
        Mean number of factors of an estimate; Psi^2 by default.

    References
    ----------
    De Sa, Chen and Wong (2018), Minibatch Gibbs sampling on large graphical models.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.potts(np.full((5, 5), 0.1) - 0.1 * np.eye(5), 3)
    >>> result = gs.sample(model, gs.kernels.DoubleMinGibbs(), sweeps=2000, rng=1, progress=False)
    >>> 0.0 < result.report["acceptance"] < 1.0
    True
    """

    conditional: ClassVar[bool] = False
    rejects: ClassVar[bool] = True
    minibatch: float | str = "auto"
    second: float | str = "auto"

    def parameters(self, graph: Graph) -> DoubleMinParameters:
        """Return the parameters of the proposal and of the estimates of energies."""
        first = proposal_size("minibatch of DoubleMinGibbs", self.minibatch, graph)
        second = estimate_size("second of DoubleMinGibbs", self.second, graph)
        return DoubleMinParameters(proposal_parameters(graph, first), estimate_parameters(graph, second))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Warn that no spectral gap is guaranteed."""
        second = estimate_size("second of DoubleMinGibbs", self.second, graph)
        return (estimate_warning(graph, second, 4, "MGPMH"),)


@implement(step, DoubleMinParameters)
def _step_double(
    params: Any, arrays: Any, memory: Estimated, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose a value from a minibatch, and accept it by estimates of the energy."""
    memory.counts[UPDATES] += 1
    rng = know_energy(params.energy, x, memory.known, memory.counts, rng)
    old = np.uintp(x[i])
    rng = propose(params.proposal, arrays, memory, x, i, rng)
    new = np.uintp(x[i])
    # factors of the site alone are in the proposal and in the target, and cancel; a proposal of the old value
    # may still be accepted, with its new estimate
    rng, there = estimate_energy(params.energy, x, False, memory.counts, rng)
    gain = there - memory.known[0] + memory.spare[old] - memory.spare[new]
    rng, u = uniform(rng)
    if u < math.exp(min(gain, 0.0)):
        memory.known[0] = there
        memory.counts[ACCEPTED] += 1
    else:
        x[i] = old
    return rng
