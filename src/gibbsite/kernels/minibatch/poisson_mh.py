"""Poisson-minibatching Metropolis-Hastings (Zhang and De Sa, 2019, section 4): moves judged by few factors.

Give every factor phi, 0 <= phi <= M, a Poisson number s of mean ``tau M + phi(x)``, tau = lambda / Psi with
Psi the sum of all M. Given s, propose y and accept it with probability

    min(1, prod_phi ((1 + phi(y) / (tau M)) / (1 + phi(x) / (tau M)))^s  q(x | y) / q(y | x)).

As in :mod:`.poisson`, factors with s = 0 are never looked at, and an expected lambda + Psi are drawn. The
paper prints the ratio of the proposals upside down. The target is exact for any lambda > 0; by theorem 2,
corrected, the spectral gap is at least exp(-Psi^2 / (lambda + Psi)) / 2 times that of Metropolis-Hastings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import implement
from gibbsite._numba.random.generators import Words, uniform
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.functions.bounds import Bounds, all_bounds
from gibbsite.graphs.functions.densities import inside
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.density.metropolis import Exactly, weigh
from gibbsite.kernels.density.moves import DRAWS, MoveMemory
from gibbsite.kernels.minibatch.factors import read_batch
from gibbsite.kernels.minibatch.metropolis import (
    FEW,
    Drawn,
    MinibatchMetropolis,
    draw_by,
    draw_one,
    height_at,
    sure_gain,
)
from gibbsite.kernels.registry import register


class ByPoisson(NamedTuple):
    """Factors, and tau."""

    drawn: Drawn
    tau: float


@register(proof="tests/proofs/test_minibatch_mh.py")
@dataclass(frozen=True)
class PoissonMH(MinibatchMetropolis):
    """Metropolis-Hastings with Poisson minibatches, exact for every setting.

    Parameters
    ----------
    proposal, scale, covariance, adapt
        As for :class:`gibbsite.Metropolis`; any proposal will do.
    minibatch : float or "auto"
        Lambda, the mean number of factors drawn whatever the state; "auto": Psi^2, or a tenth of all factors if that is
        less, but no fewer than Psi; where that is more than there are factors, all of them are evaluated.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.models.continuous_spins([[0.0, 2.0], [2.0, 0.0]])
    >>> result = gs.sample(model, gs.kernels.PoissonMH(minibatch=10.0), sweeps=4000, rng=1, progress=False)
    >>> 0.5 < result.marginals["0"]["mean"] < 0.8
    True
    """

    minibatch: float | str = "auto"

    def size(self, graph: Graph, total: float) -> float:
        """Return lambda for a graph whose bounds sum up to ``total``."""
        automatic = min(total**2, max(total, 0.1 * graph.arrays.group.size))
        return read_batch("minibatch of PoissonMH", self.minibatch, max(automatic, 1e-9))

    def bounds(self, graph: Graph) -> Bounds:
        """Return the bounds of all factors."""
        return all_bounds(graph, "PoissonMH")

    def _drawn(self, graph: Graph) -> Drawn:
        bounds = self.bounds(graph)
        return draw_by(graph, bounds.bound, bounds)

    def in_full(self, drawn: Drawn, size: float) -> bool:
        """Return whether all factors are evaluated, because minibatches would be larger than that."""
        return self.minibatch == "auto" and drawn.factor.size >= FEW and size + drawn.total > drawn.factor.size

    def judge(self, graph: Graph) -> ByPoisson | Exactly:
        """Return the factors, drawn in proportion to their bounds."""
        drawn = self._drawn(graph)
        size = self.size(graph, drawn.total)
        if self.in_full(drawn, size):
            return Exactly()
        return ByPoisson(drawn, size / drawn.total if drawn.total > 0.0 else 1.0)

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Return what the theorem guarantees."""
        drawn = self._drawn(graph)
        total = drawn.total
        size = self.size(graph, total)
        if self.in_full(drawn, size):
            return (
                KernelWarning(
                    f"Minibatches would draw {size + total:,.0f} factors for a move, and there are only "
                    f"{drawn.factor.size:,}: all of them are evaluated instead, as gs.Metropolis() does."
                ),
            )
        factor = 0.5 * math.exp(-(total**2) / (size + total)) if total > 0.0 else 1.0
        return (
            KernelWarning(
                f"With lambda = {size:.4g} and Psi = {total:.4g} the spectral gap is at least "
                f"exp(-Psi^2 / (lambda + Psi)) / 2 = {factor:.3g} times that of Metropolis-Hastings with the "
                "same proposal."
            ),
        )


@implement(weigh, ByPoisson)
def _weigh(
    judge: ByPoisson, arrays: ContinuousGraph, memory: MoveMemory, x: Floats, rng: Words
) -> tuple[Words, Any, Any]:
    there, drawn, tau, bounds = memory.there, judge.drawn, judge.tau, judge.drawn.bounds
    if not inside(arrays, there):
        return rng, 0.0, -math.inf
    gain = sure_gain(drawn, arrays, memory, x)
    rng, always = poisson(rng, tau * drawn.total)  # means tau M
    rng, more = poisson(rng, drawn.total)  # means phi(x), thinned from M
    memory.counts[DRAWS] += always + more
    for k in range(always + more):
        rng, f = draw_one(drawn, rng)
        here = height_at(arrays, bounds, memory, f, x)
        if k >= always:
            rng, u = uniform(rng)
            if u * bounds.bound[f] >= here:
                continue
        base = tau * bounds.bound[f]
        gain += math.log((base + height_at(arrays, bounds, memory, f, there)) / (base + here))
    return rng, 0.0, gain
