"""Metropolis-Hastings with minibatches: moves of all sites, accepted by a few of the factors; exact for all settings.

Factors phi are drawn from all factors of the model with given weights, and their bounds are checked.

*Poisson minibatches* (Zhang and De Sa, 2019, section 4). Every factor phi, 0 <= phi <= M, has a Poisson number s of
mean ``tau M + phi(x)``, where tau = lambda / Psi and Psi is the sum of all M. Given s, a proposal y is accepted with
probability

    min(1, prod_phi ((1 + phi(y) / (tau M)) / (1 + phi(x) / (tau M)))^s  q(x | y) / q(y | x)).

As in :mod:`.poisson`, factors with s = 0 are not needed, and the mean number of draws is at most lambda + Psi. The
paper prints the ratio of the proposals inverted. The target is exact for any lambda > 0; by a corrected version of
theorem 2, the spectral gap is at least exp(-Psi^2 / (lambda + Psi)) / 2 times that of Metropolis-Hastings.

*TunaMH* (Zhang, Cooper and De Sa, 2020) has minibatches whose size depends on the length of the move. Factors need no
bounds, only slopes of at most c: |phi(x) - phi(y)| <= c d, where d = |x - y|. With C the sum of all c, the algorithm
draws Poisson(chi C^2 d^2 + C d) factors in proportion to c, keeps each with probability

    (chi c C d^2 + (c d - (phi(y) - phi(x))) / 2) / (chi c C d^2 + c d),

and accepts y with probability

    min(1, exp(2 sum_kept artanh((phi(y) - phi(x)) / (c d (1 + 2 chi C d)))) q(x | y) / q(y | x)).

The numbers of kept factors have Poisson distributions. The ratio of their probabilities for the move and its reverse
cancels the exponential up to the ratio of the target, so the target is exact for every chi > 0. If a move is so long
that more factors would be drawn than exist, all factors are evaluated.

For a move and its reverse, let a and b be the means of the number of times that a factor is kept. As in the proof of
theorem 2, the probability of a move is at least exp(-sum (sqrt(a) - sqrt(b))^2) / 2 times that of Metropolis-Hastings.
A summand is at most c d / (1 + 4 chi C d), so the spectral gap is at least exp(-1 / (4 chi)) / 2 times that of
Metropolis-Hastings, for moves of any length.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints32, Words64
from gibbsite._numba.foreign import stack_room
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, uniform
from gibbsite._numba.random.poisson import poisson
from gibbsite.errors import IncompatibleError, SamplingError
from gibbsite.graphs.functions.bounds import Bounds, all_bounds, factors_of, known_bounds
from gibbsite.graphs.functions.densities import inside
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph, factor_value
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.continuous.energy import OUTSIDE, VALUES, raise_fault
from gibbsite.kernels.density.metropolis import Exactly, Metropolis, weigh
from gibbsite.kernels.density.moves import CALLS, DRAWS, MOVES, MoveMemory, complain, positive
from gibbsite.kernels.minibatch.factors import read_batch
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import Model

#: With fewer factors, minibatches may have more draws than there are factors.
FEW = 32
# Further kinds of failures: a factor outside its bounds, or steeper than declared.
BOUND, STEEP = 101, 102


class Drawn(NamedTuple):
    """All factors of a model: those that are drawn, with an alias table of their weights, and all others."""

    factor: Ints32
    table: Words64
    total: float
    sure: Ints32
    bounds: Bounds


def draw_by(graph: Graph, weights: Floats, bounds: Bounds) -> Drawn:
    """Return all factors, to be drawn in proportion to ``weights``; factors of weight zero are never drawn."""
    arrays: ContinuousGraph = graph.arrays
    always = np.zeros(arrays.group.size, bool)
    for row in range(arrays.sure.size):
        always[arrays.factor[arrays.start[row] : arrays.sure[row]]] = True
    drawn = np.flatnonzero(~always & (weights > 0.0)).astype(np.int32)
    chosen = np.ascontiguousarray(weights[drawn])
    table = build_alias_rows(np.array([0, drawn.size]), chosen)
    return Drawn(drawn, table, float(chosen.sum()), np.flatnonzero(always).astype(np.int32), bounds)


@inlined
def draw_one(drawn: Drawn, rng: Words) -> tuple[Words, Integer]:
    """Draw a factor."""
    rng, column = draw_column(drawn.table, 0, drawn.factor.size, rng)
    return rng, np.int64(drawn.factor[column])


@inlined
def height_at(arrays: ContinuousGraph, bounds: Bounds, memory: MoveMemory, f: Integer, place: Floats) -> Any:
    """Return the height of a factor above its floor; record a failure if it is not between 0 and its bound."""
    memory.counts[CALLS] += 1
    height = factor_value(arrays, f, place, -1, 0.0, stack_room()) - bounds.floor[f]
    known = bounds.bound[f] < math.inf
    if not (0.0 <= height <= bounds.bound[f] if known else abs(height) < math.inf):
        complain(memory, BOUND, f, place)
    return height


@inlined
def sure_gain(drawn: Drawn, arrays: ContinuousGraph, memory: MoveMemory, x: Floats) -> Any:
    """Return the gain of the factors that are always evaluated."""
    gain = 0.0
    for k in range(drawn.sure.size):
        f = np.int64(drawn.sure[k])
        gain += height_at(arrays, drawn.bounds, memory, f, memory.there)
        gain -= height_at(arrays, drawn.bounds, memory, f, x)
    return gain


@dataclass(frozen=True)
class MinibatchMetropolis(Metropolis):
    """Metropolis-Hastings kernels that accept moves by a minibatch of factors."""

    kinds: ClassVar[frozenset[str]] = frozenset({"functions"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.one_by_one:
            raise IncompatibleError(
                f"{type(self).__name__} moves all sites at once; to move one at a time, use "
                "gs.kernels.ContinuousGibbs(minibatch=...)."
            )

    def check(self, graph: Graph) -> None:
        """Refuse a graph of another kind, or one without the bounds that the kernel needs."""
        super().check(graph)
        self.bounds(graph)

    @abstractmethod
    def bounds(self, graph: Graph) -> Bounds:
        """Return the bounds between which factors must stay."""

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return acceptance rate, scale, and drawn factors and evaluations of factors per move."""
        found = super().report(memories)
        counts = np.sum([memory.counts for memory in memories], axis=0)
        moves = max(int(counts[MOVES]), 1)
        return {**found, "minibatch": counts[DRAWS] / moves, "evaluations": counts[CALLS] / moves}

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise the error of a failed step; name a factor outside its bounds."""
        if memory.trouble[0] == BOUND:
            arrays: ContinuousGraph = graph.arrays
            f, place = int(memory.trouble[1]), memory.trouble[2:].copy()
            values, _ = arrays.call_of(f, place)
            fault = np.concatenate([np.zeros(VALUES), values])
            fault[:VALUES] = OUTSIDE, f, factor_value(arrays, f, place, -1, 0.0, stack_room())
            raise_fault(model, graph, self.bounds(graph), fault)
        super().inspect(model, graph, memory)


class ByPoisson(NamedTuple):
    """The judge of PoissonMH: factors, and tau."""

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
        Lambda, the state-independent part of the mean number of drawn factors. "auto": Psi^2, or a tenth of the
        number of factors if that is less, but at least Psi; if minibatches would draw more factors than there are, all
        factors are evaluated.

    References
    ----------
    Zhang and De Sa (2019), Poisson-minibatching for Gibbs sampling with convergence rate guarantees.

    Zhang, Cooper and De Sa (2020), Asymptotically optimal exact minibatch Metropolis-Hastings.

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
        """Return lambda for a graph whose bounds sum to ``total``."""
        automatic = min(total**2, max(total, 0.1 * graph.arrays.group.size))
        return read_batch("minibatch of PoissonMH", self.minibatch, max(automatic, 1e-9))

    def bounds(self, graph: Graph) -> Bounds:
        """Return the bounds of all factors."""
        return all_bounds(graph, "PoissonMH")

    def _drawn(self, graph: Graph) -> Drawn:
        bounds = self.bounds(graph)
        return draw_by(graph, bounds.bound, bounds)

    def in_full(self, drawn: Drawn, size: float) -> bool:
        """Return whether all factors are evaluated, because minibatches would have more draws."""
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
                    f"Minibatches would draw {size + total:,.0f} factors for a move, but there are only "
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
def _weigh_by_poisson(
    judge: ByPoisson, arrays: ContinuousGraph, memory: MoveMemory, x: Floats, rng: Words
) -> tuple[Words, Any, Any]:
    """Return the gain of a proposed place from a Poisson minibatch."""
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


_ROUNDING = 1.0 + 1e-9


class ByLength(NamedTuple):
    """The judge of TunaMH: factors drawn in proportion to their slopes, the slopes, and chi."""

    drawn: Drawn
    slope: Floats
    chi: float


@register(proof="tests/proofs/test_minibatch_mh.py")
@dataclass(frozen=True)
class TunaMH(MinibatchMetropolis):
    """Metropolis-Hastings with minibatches whose size depends on the length of a move, exact for every setting.

    The factors of the model must declare their slopes (``slopes`` of :class:`gibbsite.factors.FunctionFactors`).

    Parameters
    ----------
    proposal, scale, covariance, adapt
        As for :class:`gibbsite.Metropolis`; any proposal will do.
    chi : float
        Determines the number of factors that are drawn beyond the minimum: chi C^2 d^2 for moves of length d, where C
        is the sum of all slopes. More factors take more time and raise the acceptance rate.

    References
    ----------
    Zhang, Cooper and De Sa (2020), Asymptotically optimal exact minibatch Metropolis-Hastings.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.models.continuous_spins([[0.0, 2.0], [2.0, 0.0]])
    >>> result = gs.sample(model, gs.kernels.TunaMH(chi=0.1), sweeps=4000, rng=1, progress=False)
    >>> 0.5 < result.marginals["0"]["mean"] < 0.8
    True
    """

    chi: float = 1e-3

    def check(self, graph: Graph) -> None:
        """Refuse factors without slopes."""
        super().check(graph)
        self._slopes(graph)

    def _slopes(self, graph: Graph) -> Floats:
        found = []
        factors = factors_of(graph)
        for group in factors.groups:
            slopes = np.zeros(group.size) if group.always else group.steepest(*factors.box)
            if slopes is None:
                raise IncompatibleError(
                    f"the factors {group.name!r} have no slopes, which TunaMH needs; give "
                    "slopes=, or use gs.kernels.PoissonMH, which needs bounds only."
                )
            found.append(slopes)
        return np.concatenate([np.zeros(0), *found])

    def bounds(self, graph: Graph) -> Bounds:
        """Return the bounds that were given; none are needed."""
        return known_bounds(graph)

    def judge(self, graph: Graph) -> ByLength:
        """Return the factors, drawn in proportion to their slopes."""
        slopes = self._slopes(graph)
        return ByLength(draw_by(graph, slopes, self.bounds(graph)), slopes, positive("chi", self.chi))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Return what is guaranteed for the spectral gap."""
        chi = positive("chi", self.chi)
        return (
            KernelWarning(
                f"With chi = {chi:.4g} the spectral gap is at least exp(-1 / (4 chi)) / 2 = "
                f"{0.5 * math.exp(-0.25 / chi):.3g} times that of Metropolis-Hastings with the same proposal."
            ),
        )

    def inspect(self, model: Any, graph: Graph, memory: Any) -> None:
        """Raise the error of a failed step; name a factor that is steeper than declared."""
        if memory.trouble[0] == STEEP:
            f = int(memory.trouble[1])
            g = int(graph.arrays.group[f])
            rank = f - int(graph.arrays.groups.first[g])
            raise SamplingError(
                f"factor {rank} of {model.groups[g].name!r} is steeper than declared, on the way to "
                f"{model.place_text(memory.trouble[2:])}; give larger slopes=."
            )
        super().inspect(model, graph, memory)


@implement(weigh, ByLength)
def _weigh_by_length(
    judge: ByLength, arrays: ContinuousGraph, memory: MoveMemory, x: Floats, rng: Words
) -> tuple[Words, Any, Any]:
    """Return the gain of a proposed place from a minibatch of TunaMH."""
    there, drawn = memory.there, judge.drawn
    if not inside(arrays, there):
        return rng, 0.0, -math.inf
    gain = sure_gain(drawn, arrays, memory, x)
    square = 0.0
    for k in range(x.size):
        square += (there[k] - x[k]) * (there[k] - x[k])
    length = math.sqrt(square)
    reach = drawn.total * length
    extra = judge.chi * reach
    if drawn.factor.size >= FEW and reach * (1.0 + extra) > drawn.factor.size:
        # evaluating all factors is cheaper, and exact because the length of a move is the same in both directions
        memory.counts[DRAWS] += drawn.factor.size
        for k in range(drawn.factor.size):
            f = np.int64(drawn.factor[k])
            gain += height_at(arrays, drawn.bounds, memory, f, there)
            gain -= height_at(arrays, drawn.bounds, memory, f, x)
        return rng, 0.0, gain
    rng, many = poisson(rng, reach * (1.0 + extra))
    memory.counts[DRAWS] += many
    for _ in range(many):
        rng, f = draw_one(drawn, rng)
        most = judge.slope[f] * length
        rise = height_at(arrays, drawn.bounds, memory, f, there) - height_at(arrays, drawn.bounds, memory, f, x)
        if abs(rise) > most * _ROUNDING:
            complain(memory, STEEP, f, there)
        rise = min(max(rise, -most), most)
        rng, u = uniform(rng)
        if u * (extra + 1.0) * most < extra * most + 0.5 * (most - rise):
            gain += 2.0 * math.atanh(rise / (most * (1.0 + 2.0 * extra)))
    return rng, 0.0, gain
