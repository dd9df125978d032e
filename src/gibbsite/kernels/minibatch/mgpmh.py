"""MGPMH: propose from a minibatch, accept by all factors of the site (De Sa, Chen and Wong, 2018).

A baseline for :mod:`.poisson`. Factors get Poisson numbers s of means tau M, tau = lambda / L, whatever the
state. A value v is proposed in proportion to exp(E[v]), ``E[v] = sum s phi(x_i -> v) / (tau M)``, and
accepted by the Metropolis rule, which takes every factor of the site: exact, but its cost grows with their
number. The spectral gap is at least exp(-L^2 / lambda) times that of plain Gibbs.

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
    """How values are proposed."""

    proposal: ProposalParameters


def proposal_size(name: str, given: Any, graph: Graph) -> float:
    """Return lambda of proposals: by default L^2."""
    return read_batch(name, given, max(local_energies(graph).largest ** 2, 1.0))


def proposal_parameters(graph: Graph, size: float) -> ProposalParameters:
    """Return how values are proposed from minibatches of mean size ``size``, at most."""
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
        """Return how values are proposed."""
        return MgpmhParameters(proposal_parameters(graph, self.size(graph)))

    def size(self, graph: Graph) -> float:
        """Return lambda for a graph."""
        return proposal_size("minibatch of MGPMH", self.minibatch, graph)

    def warnings(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Return what is guaranteed."""
        largest, size = local_energies(graph).largest, self.size(graph)
        return (
            KernelWarning(
                f"With lambda = {size:.4g} and L = {largest:.4g} the spectral gap of random scans is at "
                f"least exp(-L^2 / lambda) = {math.exp(-(largest**2) / size):.3g} times that of plain Gibbs."
            ),
        )


@inlined
def propose(proposal: ProposalParameters, arrays: Any, memory: Any, x: Codes, i: Integer, rng: Words) -> Words:
    """Give site i a proposed value; leave the energies it was drawn by in ``memory.spare``."""
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
def _step(
    params: MgpmhParameters, arrays: Any, memory: Batched, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
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
