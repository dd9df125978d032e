"""MIN-Gibbs: Gibbs sampling with estimated energies (De Sa, Chen and Wong, 2018, algorithm 2).

A baseline for :mod:`.poisson`. The chain carries an estimate of the energy of its whole state. An update
draws one for every other value of the site (:mod:`.energy_estimate`), picks a value in proportion to
exp(estimate), and keeps the estimate that goes with it. Exact; but estimates are of the whole energy Psi,
because they are carried from site to site, so they take about Psi^2 factors each to be of use.

References
----------
.. [1] De Sa, C., Chen, V. and Wong, W. (2018). Minibatch Gibbs sampling on large graphical models. ICML 35.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.minibatch.counting import UPDATES, MinibatchKernel, draw_from_logs, start_logs
from gibbsite.kernels.minibatch.energy_estimate import (
    EstimateParameters,
    estimate_energy,
    estimate_parameters,
    know_energy,
)
from gibbsite.kernels.minibatch.factors import local_energies, read_batch
from gibbsite.kernels.registry import register


class Estimated(NamedTuple):
    """Memory of a chain that carries an estimate: scratch, counts; the estimate, and whether there is one."""

    work: Floats
    spare: Floats
    counts: Ints
    known: Floats


class EstimatingKernel(MinibatchKernel):
    """A minibatch kernel whose chains carry an estimate of their energy."""

    def memory(self, graph: Graph, stream: Words64) -> Estimated:
        """Allocate scratch, counts and an estimate yet to be drawn."""
        return Estimated(*self.workspace(graph), np.zeros(2))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return super().memory_bytes(graph) + 16

    def forget(self, memory: Any) -> None:
        """Drop the estimate, which is of another state."""
        memory.known[1] = 0.0


def estimate_remark(graph: Graph, size: float, power: int, other: str) -> KernelWarning:
    """Say what is known of the spectral gap of a kernel that goes by estimates of the energy."""
    spread = local_energies(graph).total / math.sqrt(size)
    return KernelWarning(
        f"Estimates of the energy have a standard deviation of up to Psi / sqrt(lambda) = {spread:.3g}. "
        f"Where all are within d of the energy, the spectral gap is at least exp(-{power} d) times that of "
        f"{other}; Poisson minibatches keep to no such d, so nothing is guaranteed."
    )


def estimate_size(name: str, given: Any, graph: Graph) -> float:
    """Return the mean number of factors of an estimate: by default Psi^2."""
    return read_batch(name, given, max(local_energies(graph).total ** 2, 1.0))


class MinGibbsParameters(NamedTuple):
    """How energies are estimated."""

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
        """Return how energies are estimated."""
        size = estimate_size("minibatch of MinGibbs", self.minibatch, graph)
        return MinGibbsParameters(estimate_parameters(graph, size))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Say what is guaranteed, and what is not."""
        size = estimate_size("minibatch of MinGibbs", self.minibatch, graph)
        return (estimate_remark(graph, size, 6, "plain Gibbs"),)


@implement(step, MinGibbsParameters)
def _step(
    parameters: MinGibbsParameters,
    arrays: Any,
    memory: Estimated,
    x: Codes,
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    memory.counts[UPDATES] += 1
    energy, w = parameters.energy, memory.work
    rng = know_energy(energy, x, memory.known, memory.counts, rng)
    now = np.uintp(x[i])
    size = start_logs(energy.rows, i, w)
    for a in range(np.uintp(size)):
        if a == now:
            memory.spare[a] = memory.known[0]  # never drawn anew: that would change the law
        elif w[a] > -math.inf:
            x[i] = a
            rng, memory.spare[a] = estimate_energy(energy, x, False, memory.counts, rng)
        w[a] += memory.spare[a]
    x[i] = now
    rng = draw_from_logs(arrays, x, i, w, size, rng, cond, keep)
    memory.known[0] = memory.spare[np.uintp(x[i])]
    return rng
