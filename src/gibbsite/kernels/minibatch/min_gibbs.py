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

How estimates are drawn is in :mod:`.estimates`.

References
----------
.. [1] De Sa, C., Chen, V. and Wong, W. (2018). Minibatch Gibbs sampling on large graphical models. ICML 35.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_weights
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.minibatch.estimates import (
    ESTIMATE,
    Estimated,
    EstimatingKernel,
    estimate_at,
    estimate_size,
    know_energy,
    look_around,
    move_energy,
)
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
    local_energies,
    read_batch,
    start_logs,
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


class MinGibbsParameters(NamedTuple):
    """Parameters of the estimates of energies."""

    energy: Any


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
        return MinGibbsParameters(self.estimate(graph, size))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Warn that no spectral gap is guaranteed."""
        size = estimate_size("minibatch of MinGibbs", self.minibatch, graph)
        return (self.estimate_warning(graph, size, 6, "plain Gibbs"),)


@implement(step, MinGibbsParameters)
def _step(
    params: Any, arrays: Any, memory: Estimated, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    memory.counts[UPDATES] += 1
    energy, w = params.energy, memory.work
    rng = know_energy(energy, memory, x, rng)
    look_around(energy, memory, x, i)
    old = np.uintp(x[i])
    size = start_logs(energy.rows, i, w)
    for a in range(np.uintp(size)):
        if a == old:
            memory.spare[a] = memory.known[ESTIMATE]  # not drawn again, because that would change the target
        elif w[a] > -math.inf:
            rng, memory.spare[a] = estimate_at(energy, memory, x, i, old, a, rng)
        w[a] += memory.spare[a]
    rng = draw_from_logs(arrays, x, i, w, size, rng, cond, keep)
    new = np.uintp(x[i])
    memory.known[ESTIMATE] = memory.spare[new]
    if new != old:
        move_energy(energy, memory, x, old, new)
    return rng


class DoubleMinParameters(NamedTuple):
    """Parameters of the proposal, and of the estimates of energies."""

    proposal: ProposalParameters
    energy: Any


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
        return DoubleMinParameters(proposal_parameters(graph, first), self.estimate(graph, second))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Warn that no spectral gap is guaranteed."""
        second = estimate_size("second of DoubleMinGibbs", self.second, graph)
        return (self.estimate_warning(graph, second, 4, "MGPMH"),)


@implement(step, DoubleMinParameters)
def _step_double(
    params: Any, arrays: Any, memory: Estimated, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose a value from a minibatch, and accept it by estimates of the energy."""
    memory.counts[UPDATES] += 1
    energy, known = params.energy, memory.known
    rng = know_energy(energy, memory, x, rng)
    old = np.uintp(x[i])
    rng = propose(params.proposal, arrays, memory, x, i, rng)
    new = np.uintp(x[i])
    # factors of the site alone are in the proposal and in the target, and cancel; a proposal of the old value
    # may still be accepted, with its new estimate
    if new != old:
        look_around(energy, memory, x, i)
    rng, there = estimate_at(energy, memory, x, i, old, new, rng)
    gain = there - known[ESTIMATE] + memory.spare[old] - memory.spare[new]
    rng, u = uniform(rng)
    if u < math.exp(min(gain, 0.0)):
        known[ESTIMATE] = there
        memory.counts[ACCEPTED] += 1
        if new != old:
            move_energy(energy, memory, x, old, new)
    else:
        x[i] = old
    return rng
