"""TunaMH (Zhang, Cooper and De Sa, 2020): minibatches whose size follows the length of the move.

Factors need no bounds on the whole box, only to be no steeper than c: |phi(x) - phi(y)| <= c d, d = |x - y|. With C the
sum of all c, draw Poisson(chi C^2 d^2 + C d) factors in proportion to c, and keep each with probability

    (chi c C d^2 + (c d - (phi(y) - phi(x))) / 2) / (chi c C d^2 + c d),

and accept y with probability

    min(1, exp(2 sum_kept artanh((phi(y) - phi(x)) / (c d (1 + 2 chi C d)))) q(x | y) / q(y | x)).

The numbers of times that factors are kept are Poisson; the ratio of their probabilities forward and backward is
that of the exponential over the ratio of the target, so the target is exact for every chi > 0. Moves so long
that more factors would be drawn than exist are judged by all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import implement
from gibbsite._numba.random.generators import Words, uniform
from gibbsite._numba.random.poisson import poisson
from gibbsite.errors import IncompatibleError, SamplingError
from gibbsite.graphs.functions.bounds import Bounds, factors_of, known_bounds
from gibbsite.graphs.functions.densities import inside
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.kernels.density.metropolis import weigh
from gibbsite.kernels.density.moves import DRAWS, MoveMemory, complain, positive
from gibbsite.kernels.minibatch.metropolis import (
    FEW,
    STEEP,
    Drawn,
    MinibatchMetropolis,
    draw_by,
    draw_one,
    height_at,
    sure_gain,
)
from gibbsite.kernels.registry import register

_ROUNDING = 1.0 + 1e-9


class ByLength(NamedTuple):
    """Factors drawn in proportion to their slopes, the slopes, and chi."""

    drawn: Drawn
    slope: Floats
    chi: float


@register(proof="tests/proofs/test_minibatch_mh.py")
@dataclass(frozen=True)
class TunaMH(MinibatchMetropolis):
    """Metropolis-Hastings with minibatches that follow the length of a move, exact for every setting.

    The factors of the model must declare their slopes (``slopes`` of :class:`gibbsite.factors.FunctionFactors`).

    Parameters
    ----------
    proposal, scale, covariance, adapt
        As for :class:`gibbsite.Metropolis`; any proposal will do.
    chi : float
        How many more factors are drawn than the least: chi C^2 d^2 for moves of length d, if C is the sum of
        all slopes. More of them cost time and make acceptance more likely.

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
def _weigh(
    judge: ByLength, arrays: ContinuousGraph, memory: MoveMemory, x: Floats, rng: Words
) -> tuple[Words, Any, Any]:
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
        # all factors are fewer; the length of a move is the same both ways, so this is exact as well
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
