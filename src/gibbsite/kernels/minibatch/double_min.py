"""DoubleMIN-Gibbs: proposals from one minibatch, accepted by another (De Sa, Chen and Wong, 2018).

A baseline for :mod:`.poisson`. Values are proposed as in :mod:`.mgpmh`; in place of all factors of the site, the
acceptance takes estimates of the energy of the whole state as in :mod:`.min_gibbs`, that of the present state being
carried along. Exact; with a second minibatch much smaller than Psi^2 chains hardly move.

References
----------
.. [1] De Sa, C., Chen, V. and Wong, W. (2018). Minibatch Gibbs sampling on large graphical models. ICML 35.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.minibatch.counting import ACCEPTED, UPDATES
from gibbsite.kernels.minibatch.mgpmh import ProposalParameters, proposal_parameters, proposal_size, propose
from gibbsite.kernels.minibatch.min_gibbs import (
    Estimated,
    EstimateParameters,
    EstimatingKernel,
    estimate_energy,
    estimate_parameters,
    estimate_size,
    estimate_warning,
    know_energy,
)
from gibbsite.kernels.registry import register


class DoubleMinParameters(NamedTuple):
    """How values are proposed, and how energies are estimated."""

    proposal: ProposalParameters
    energy: EstimateParameters


@register(proof=[{"minibatch": 3.0, "second": 20.0}])
@dataclass(frozen=True)
class DoubleMinGibbs(EstimatingKernel):
    """Proposals from one minibatch, accepted by estimates of the whole energy from another; exact.

    Parameters
    ----------
    minibatch : float or "auto"
        Lambda of proposals; L^2 by default.
    second : float or "auto"
        Mean number of factors of an estimate; Psi^2 by default.

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
        """Return how values are proposed and energies are estimated."""
        first = proposal_size("minibatch of DoubleMinGibbs", self.minibatch, graph)
        second = estimate_size("second of DoubleMinGibbs", self.second, graph)
        return DoubleMinParameters(proposal_parameters(graph, first), estimate_parameters(graph, second))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Return what is guaranteed, and what is not."""
        second = estimate_size("second of DoubleMinGibbs", self.second, graph)
        return (estimate_warning(graph, second, 4, "MGPMH"),)


@implement(step, DoubleMinParameters)
def _step(
    params: Any, arrays: Any, memory: Estimated, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    memory.counts[UPDATES] += 1
    rng = know_energy(params.energy, x, memory.known, memory.counts, rng)
    old = np.uintp(x[i])
    rng = propose(params.proposal, arrays, memory, x, i, rng)
    new = np.uintp(x[i])
    # factors of the site alone are in the proposal and in the target, and cancel; a proposal of the old value
    # is a chance of another estimate
    rng, there = estimate_energy(params.energy, x, False, memory.counts, rng)
    gain = there - memory.known[0] + memory.spare[old] - memory.spare[new]
    rng, u = uniform(rng)
    if u < math.exp(min(gain, 0.0)):
        memory.known[0] = there
        memory.counts[ACCEPTED] += 1
    else:
        x[i] = old
    return rng
