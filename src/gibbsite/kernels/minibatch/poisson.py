"""Poisson-Gibbs: exact Gibbs updates from a random minibatch of factors (Zhang and De Sa, 2019, algorithm 2).

Every factor phi of site i, with 0 <= phi <= M, has a Poisson number s of mean ``tau M + phi(x)``, where tau = lambda /
L. The joint distribution of x and all s has the target as its marginal, and given s and the other sites,

    P(x_i = v) ~ exp(sum_phi s_phi log(1 + phi(x_i -> v) / (tau M))).

Factors with s = 0 are not needed, and those with s > 0 are found without visiting the others. Poisson numbers of means
tau M are obtained from a total of mean ``tau L_i`` that is distributed over the factors in proportion to M; those of
means phi(x) from a total of mean L_i that is distributed in the same way, where each draw is kept with probability
phi(x) / M. An update reads at most lambda + L factors on average, for any number of factors.

The target is exact for any lambda > 0; with a small lambda, chains mix more slowly. For lambda >= 2 L, the spectral gap
is at least exp(-4 L^2 / lambda) times that of plain Gibbs (theorem 1 of the paper), and usually close to it.

Local minibatch Gibbs, a simpler method, serves as a baseline: it takes a random subset of B of the N factors of a site
and draws from exp(N / B times their sum). It is biased, because the mean of an exponential is not the exponential of a
mean, and the distance of its stationary distribution from the target is not known.

References
----------
.. [1] Zhang, R. and De Sa, C. (2019). Poisson-minibatching for Gibbs sampling with convergence rate
   guarantees. NeurIPS 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Array, Bools, Codes, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import Words, below
from gibbsite._numba.random.poisson import poisson
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_weights
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.minibatch.factors import (
    COST_OF_DRAW,
    DRAWN,
    KEPT,
    LARGEST_BATCH,
    UPDATES,
    Batched,
    MinibatchKernel,
    add_factor,
    add_gain,
    batch_rate,
    draw_factor,
    draw_from_logs,
    drawn_rows,
    factor_at,
    gains,
    guarantee,
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

# Overhead of a minibatch of any size, in factors that plain Gibbs reads one after another; from timings with 10 states.
_COST_OF_BATCH = 60.0


class PoissonParameters(NamedTuple):
    """Rows of factors, tau, gains of a factor in the minibatch, and the sites that are updated with all factors."""

    rows: Any
    tau: float
    gain: Floats
    plain: Bools


@register(methods={"poisson": ("MAR", "MAP")}, proof=[{"minibatch": 3.0}], recommend={"PoissonGibbs": {}})
@dataclass(frozen=True)
class PoissonGibbs(MinibatchKernel):
    """Gibbs sampling from minibatches of factors: exact, at a cost that does not grow with the number of factors.

    It is meant for sites with hundreds of factors or more. Factors of several sites need bounds, so they must not have
    zeros.

    Parameters
    ----------
    minibatch : float or "auto"
        Lambda, the state-independent part of the mean number of drawn factors at the site with the largest sum of
        bounds L. ``"auto"`` takes the larger of L^2 and 2 L, and updates sites with all factors if that is cheaper.

    See Also
    --------
    kernels.MGPMH : Propose from a minibatch, accept by all factors.
    kernels.PoissonMH : Minibatches of data.

    References
    ----------
    Zhang and De Sa (2019), Poisson-minibatching for Gibbs sampling with convergence rate guarantees.

    Examples
    --------
    >>> import gibbsite as gs
    >>> couplings = np.full((300, 300), 0.01) - 0.01 * np.eye(300)
    >>> model = gs.potts(couplings, 4)
    >>> result = gs.sample(model, gs.PoissonGibbs(), sweeps=300, rng=1, progress=False)
    >>> result.report["factors"] < 30
    True
    """

    minibatch: float | str = "auto"

    def size(self, graph: Graph) -> float:
        """Return lambda for a graph."""
        largest = local_energies(graph).largest
        return read_batch("minibatch of PoissonGibbs", self.minibatch, max(largest**2, 2.0 * largest))

    def parameters(self, graph: Graph) -> PoissonParameters:
        """Return the factors, and the parameters of their draws."""
        rows = drawn_rows(graph)
        tau = batch_rate(self.size(graph), local_energies(graph).largest)
        plain = np.zeros(graph.n_sites, np.bool_)
        if self.minibatch == "auto":
            plain = _COST_OF_BATCH + COST_OF_DRAW * (1.0 + tau) * rows.rate >= rows.degree
        return PoissonParameters(rows, tau, gains(rows, tau, log=True), plain)

    def warnings(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Return what the theorem guarantees, and how many sites are updated with all factors."""
        largest, size = local_energies(graph).largest, self.size(graph)
        plain = int(self.parameters(graph).plain.sum())
        if plain == graph.n_sites:
            return (
                KernelWarning("Every site has so few factors that it is updated by plain Gibbs, which is cheaper."),
            )
        text = guarantee(size, largest)
        sites = f"{plain:,} of {graph.n_sites:,} sites"
        some = f" {sites} are updated with all of their factors, which is cheaper." if plain else ""
        return (KernelWarning(text + some),)


@inlined
def gather(parameters: PoissonParameters, memory: Batched, x: Codes, i: Integer, rng: Words) -> tuple[Words, Integer]:
    """Draw the minibatch of site i, write the log-weights given it, and return the number of states."""
    rows, w, gain = parameters.rows, memory.work, parameters.gain
    size = start_logs(rows, i, w)
    energy = rows.rate[i]
    kept = 0
    rng, always = poisson(rng, parameters.tau * energy)  # means tau M
    for _ in range(always):
        rng, k, view = draw_factor(rows, i, x, rng)
        if view >= 0:
            add_gain(rows, gain, k, i, view, w)
            kept += 1
    rng, more = poisson(rng, energy)  # means phi(x), thinned from M
    for _ in range(more):
        rng, k, view = draw_factor(rows, i, x, rng)
        share = share_of(rows, k, i, x[i], view) if view >= 0 else 0.0
        rng, stays = stays_in(rng, share)
        if stays:
            add_gain(rows, gain, k, i, view, w)
            kept += 1
    memory.counts[DRAWN] += always + more
    memory.counts[KEPT] += kept
    return rng, size


@implement(step, PoissonParameters)
def _step(
    params: PoissonParameters, arrays: Any, memory: Batched, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    memory.counts[UPDATES] += 1
    if params.plain[i]:
        size = np.int64(log_weights(arrays, x, i, memory.work))
        memory.counts[DRAWN] += params.rows.degree[i]
        memory.counts[KEPT] += params.rows.degree[i]
    else:
        rng, size = gather(params, memory, x, i, rng)
    return draw_from_logs(arrays, x, i, memory.work, size, rng, cond, keep)


class LocalParameters(NamedTuple):
    """Rows of factors, and the size of the subset."""

    rows: Any
    size: int


class Subset(NamedTuple):
    """Memory of a chain: scratch arrays, counts, and the last update in which each factor of a site was taken."""

    work: Floats
    spare: Floats
    counts: Ints
    taken: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file; ``taken`` has past updates."""
        return {"counts": (0, 1 << 62), "taken": (-1, int(self.counts[0]))}


@register(proof=[{"minibatch": 1}])
@dataclass(frozen=True)
class LocalMinibatchGibbs(MinibatchKernel):
    """Gibbs sampling from a random subset of the factors of a site; biased, for comparison only.

    Parameters
    ----------
    minibatch : int
        Size of the subset; sites with fewer factors are updated with all of them.

    References
    ----------
    De Sa, Chen and Wong (2018), Minibatch Gibbs sampling on large graphical models.

    Examples
    --------
    >>> import gibbsite as gs
    >>> import warnings
    >>> model = gs.potts(np.full((50, 50), 0.05) - 0.05 * np.eye(50), 3)
    >>> with warnings.catch_warnings(record=True):
    ...     result = gs.sample(model, gs.kernels.LocalMinibatchGibbs(8), sweeps=500, rng=1, progress=False)
    >>> result.report["factors"]
    8.0
    """

    exact: ClassVar[bool] = False
    minibatch: int = 16

    def parameters(self, graph: Graph) -> LocalParameters:
        """Return the factors and the size of subsets."""
        size = check_integer("minibatch of LocalMinibatchGibbs", self.minibatch, 1, LARGEST_BATCH)
        return LocalParameters(drawn_rows(graph), size)

    def memory(self, graph: Graph, stream: Words64) -> Subset:
        """Allocate scratch, counts, and a mark for each factor of a site."""
        widest = int(drawn_rows(graph).degree.max(initial=0))
        return Subset(*self.workspace(graph), np.zeros(widest, np.int64))

    def warnings(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Warn that draws are biased."""
        if (drawn_rows(graph).degree <= self.minibatch).all():
            return ()
        return (
            KernelWarning(
                "Local minibatch Gibbs is biased: even long runs do not converge to the probabilities of the "
                "model, and standard errors do not show the bias; gs.PoissonGibbs() is exact.",
                grave=True,
            ),
        )


@implement(step, LocalParameters)
def _step_local(
    parameters: LocalParameters, arrays: Any, memory: Subset, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw a site from a random subset of its factors."""
    memory.counts[UPDATES] += 1
    w, rows = memory.work, parameters.rows
    many, size = np.int64(rows.degree[i]), np.int64(parameters.size)
    if many <= size:
        states = np.int64(log_weights(arrays, x, i, w))
        size = many
    else:
        states = start_logs(rows, i, w)
        now = memory.counts[UPDATES]
        for last in range(many - size, many):  # Floyd's algorithm for a random subset
            rng, number = below(rng, last + 1)
            if memory.taken[number] == now:
                number = np.int64(last)
            memory.taken[number] = now
            k, view = factor_at(rows, i, x, number)
            add_factor(rows, k, i, view, many / size, w)
    memory.counts[DRAWN] += size
    memory.counts[KEPT] += size
    return draw_from_logs(arrays, x, i, w, states, rng, cond, keep)
