"""The base of kernels that move in a density: their memory, their adaptation, and their errors.

A step that fails (because a density is NaN, a gradient is not finite, or the chain diverges) stores the place, and
later steps do nothing. The run checks this after every block, restores the chains to their states before the block,
and raises the error of :meth:`WalkingKernel.inspect`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.generators import Words
from gibbsite._numba.random.ziggurat import exponential
from gibbsite.errors import ArgumentError, IncompatibleError, SamplingError
from gibbsite.graphs.functions.densities import density_at, gradient_at, gradient_once
from gibbsite.graphs.functions.failure import cause_at, cause_text
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.density.tuning import MOST_DENSE, learn_shape, make_moments, tune_size

if TYPE_CHECKING:
    from gibbsite.models import Model


# Positions in the counts of a chain: moves and accepted moves since the warmup, whether it still learns, and, for
# minibatches, factors that were drawn and evaluated.
MOVES, ACCEPTED, TUNING, DRAWS, CALLS = range(5)
# Kinds of failures.
NAN, INFINITE, SLOPE, RAN_AWAY, DRAWN, RATIO = range(1, 7)
_FAR = 1e100  # beyond this a chain has diverged
_MANY = 10**6  # rows; with more, no smaller step is suggested


class MoveMemory(NamedTuple):
    """Memory of a chain that samples a density."""

    # here, there: (2 n,): the current place and the proposed one, each followed by its gradient
    here: Floats
    there: Floats
    noise: Floats  # (n,): random numbers of a move
    now: Floats  # (2,): log-density of the current place, and whether it (and the gradient) is known
    size: Floats  # (1,) or (n,): size of moves, for all coordinates or for each
    visits: Ints  # of the shape of ``size``: number of moves from which it was learned
    factor: Floats  # (n,) or (n * n,): shape of moves, diagonal or lower triangular
    moments: Floats  # moments of the places of this window (see :func:`learn_shape`); empty if the shape is given
    counts: Ints  # (5,): moves, accepted ones, whether to learn; factors of minibatches
    words: Words64  # (4,): the generator, for functions of the user
    home: Floats  # (n,): the place at the first step
    trouble: Floats  # (2 + n,): the failure (0: none), the number that caused it, and the place

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may contain NaN."""
        return ("there", "now", "trouble")


@inlined
def complain(memory: MoveMemory, what: Integer, value: float, place: Floats) -> None:
    """Record a failure and its place."""
    memory.trouble[0] = what
    memory.trouble[1] = value
    for k in range(memory.noise.size):
        memory.trouble[2 + k] = place[k]


@inlined
def is_stuck(memory: MoveMemory) -> bool:
    """Whether a step has failed before."""
    return bool(memory.trouble[0] != 0.0)


@inlined
def checked(memory: MoveMemory, value: float, place: Floats) -> float:
    """Return a log-density; record NaN and plus infinity as failures and return minus infinity for them."""
    if value < math.inf:
        return value
    complain(memory, NAN if math.isnan(value) else INFINITE, value, place)
    return -math.inf


@inlined
def slope_at(arrays: Any, memory: MoveMemory, workspace: Floats) -> bool:
    """Write the gradient of a workspace after its place; record a failure if it is not finite."""
    n = memory.noise.size
    total = gradient_at(arrays, workspace)
    for k in range(n):
        total += workspace[n + k] - workspace[n + k]  # NaN unless all are finite
    if total == 0.0:
        return True
    complain(memory, SLOPE, total, workspace)
    return False


@inlined
def ran_away(memory: MoveMemory, workspace: Floats) -> bool:
    """Return whether a place has diverged, and record that as a failure."""
    for k in range(memory.noise.size):
        if not abs(workspace[k]) < _FAR:
            complain(memory, RAN_AWAY, workspace[k], workspace)
            return True
    return False


@inlined
def stand(memory: MoveMemory, x: Floats) -> bool:
    """Store the current place unless it is known; return whether it was new."""
    if memory.now[1] != 0.0:
        return False
    for k in range(x.size):
        memory.here[k] = x[k]
        memory.home[k] = x[k]
    memory.now[1] = 1.0
    return True


@inlined
def arrive(arrays: Any, memory: MoveMemory, x: Floats) -> bool:
    """Evaluate the log-density of the current place unless it is known; return whether that succeeded."""
    if stand(memory, x):
        memory.now[0] = checked(memory, density_at(arrays, x), x)
    return not is_stuck(memory)


@inlined
def arrive_sloped(arrays: Any, memory: MoveMemory, x: Floats) -> bool:
    """Evaluate log-density and gradient of the current place unless they are known; return whether that succeeded."""
    known = memory.now[1] != 0.0
    return arrive(arrays, memory, x) and (known or slope_at(arrays, memory, memory.here))


@inlined
def move_there(memory: MoveMemory, x: Floats, value: float) -> None:
    """Make the proposed place the current one."""
    n = x.size
    for k in range(n):
        x[k] = memory.there[k]
    for k in range(2 * n):
        memory.here[k] = memory.there[k]
    memory.now[0] = value


@inlined
def learn(memory: MoveMemory, x: Floats, chance: float, wanted: float) -> None:
    """Adapt size and shape of moves after a move whose acceptance probability was ``chance``."""
    if memory.counts[TUNING] != 0:
        tune_size(memory.size, memory.visits, 0, chance, wanted)
        if memory.moments.size > 0 and learn_shape(memory.moments, x, memory.factor):
            memory.visits[0] = 0


@inlined
def accepts(rng: Words, gain: float) -> tuple[Words, bool]:
    """Return True with probability min(1, exp(gain)); a certain outcome uses no random number."""
    if gain >= 0.0 or gain == -math.inf:
        return rng, gain >= 0.0
    rng, e = exponential(rng)
    return rng, e > -gain


@inlined
def decide(memory: MoveMemory, x: Floats, value: Any, gain: Any, wanted: float, rng: Words) -> Words:
    """Accept or reject the proposed place, whose log-density is ``value``; count the move and learn from it."""
    rng, accepted = accepts(rng, gain)
    memory.counts[MOVES] += 1
    if accepted:
        memory.counts[ACCEPTED] += 1
        move_there(memory, x, value)
    learn(memory, x, math.exp(min(gain, 0.0)), wanted)
    return rng


@dataclass(frozen=True)
class WalkingKernel(Kernel):
    """A kernel that samples a density, by default by moves of all coordinates at once."""

    kinds: ClassVar[frozenset[str]] = frozenset({"density", "data"})
    conditional: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    fallible: ClassVar[bool] = True
    #: Whether a step needs the gradient.
    sloped: ClassVar[bool] = False
    #: Whether a step may reject its proposal.
    rejects: ClassVar[bool] = True
    #: Name of the size of moves in reports.
    size_name: ClassVar[str] = "scale"

    def check(self, graph: Graph) -> None:
        """Refuse a graph of another kind, or one without a gradient if the kernel needs it."""
        super().check(graph)
        name = type(self).__name__
        if self.sloped:
            arrays = graph.arrays
            if not arrays.gradient or (graph.kind == "data" and arrays.prior and not arrays.prior_gradient):
                raise IncompatibleError(
                    f"{name} needs the gradient of the log-density, and the model has none: give the model "
                    "grad=..., or write the function with JAX. Finite differences are not used in place of a "
                    "gradient."
                )
        if graph.kind == "functions" and graph.arrays.card.any():
            raise IncompatibleError(
                f"{name} moves numbers, and some sites of this model have states; use gs.kernels.ContinuousGibbs() "
                "or gs.kernels.ContinuousGibbs(method='slice')."
            )

    @abstractmethod
    def first_size(self, graph: Graph) -> Floats:
        """Return the first size of moves."""

    def first_factor(self, graph: Graph) -> Floats:
        """Return the shape of the first moves."""
        return np.ones(graph.n_sites)

    def learns(self) -> tuple[bool, bool]:
        """Return whether size and shape are learned in the warmup."""
        return False, False

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate places, and size and shape of moves."""
        return self.move_memory(graph)

    def move_memory(self, graph: Graph) -> MoveMemory:
        """Allocate places, and size and shape of moves."""
        n = graph.n_sites
        size, factor = self.first_size(graph), self.first_factor(graph)
        by_size, by_shape = self.learns()
        if by_shape and n <= MOST_DENSE and factor.size == n:
            factor = np.diag(factor).ravel().copy()
        return MoveMemory(
            here=np.zeros(2 * n),
            there=np.zeros(2 * n),
            noise=np.zeros(n),
            now=np.zeros(2),
            size=size.copy(),
            visits=np.zeros(size.size, np.int64),
            factor=factor,
            moments=make_moments(n) if by_shape else np.zeros(0),
            counts=np.array([0, 0, int(by_size), 0, 0], np.int64),
            words=np.zeros(4, np.uint64),
            home=np.zeros(n),
            trouble=np.zeros(2 + n),
        )

    def freeze(self, memory: Any) -> None:
        """End learning, and set all counts to zero."""
        memory.counts[:] = 0

    def forget(self, memory: Any) -> None:
        """Forget log-density and gradient of the current place."""
        memory.now[:] = 0.0

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the acceptance rate since the warmup, and the size of moves."""
        counts = np.sum([memory.counts for memory in memories], axis=0)
        found = {"acceptance": counts[ACCEPTED] / max(int(counts[MOVES]), 1)} if self.rejects else {}
        sizes = np.stack([memory.size for memory in memories])
        found[self.size_name] = np.exp(np.log(np.maximum(sizes, 1e-300)).mean())
        return {name: float(value) for name, value in found.items()}

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise the error of a failed step."""
        what, value, place = int(memory.trouble[0]), memory.trouble[1], memory.trouble[2:]
        if what == 0:
            return
        where = model.place_text(place)
        text = {
            NAN: f"The log-density is NaN at {where}; it must be a number or -inf.",
            INFINITE: f"The log-density is infinite at {where}; it must be a number or -inf.",
            SLOPE: f"The gradient is not finite, or of the wrong shape, at {where}.",
            RAN_AWAY: f"A chain diverged, to {where}: the step is too large.",
            DRAWN: f"The proposal returned {value:g} from {where}; it must return finite numbers.",
            RATIO: f"The log-density of the proposal is {value:g} for a move from {where}.",
        }[what]
        if self.sloped and what != RATIO:
            text += self._advice(graph, memory)
        raised = cause_at(graph, place) if what in (NAN, INFINITE, SLOPE) else graph.take_raised()
        raise SamplingError(text + cause_text(raised)) from raised

    def _advice(self, graph: Graph, memory: Any) -> str:
        """Suggest a step: half of the largest one that is stable at the first place of the chain.

        A step g along an eigenvector of the (negative) Hessian multiplies the distance by 1 - g * curvature.
        """
        if graph.kind == "data" and graph.arrays.rows > _MANY:
            return " Try a smaller step."
        curvature = largest_curvature(graph, memory.home, memory.factor)
        if not 0.0 < curvature < math.inf:
            return ""
        return (
            f" At the start of the chain, the curvature is {curvature:.4g}, so steps of {2 / curvature:.3g} or more "
            f"are unstable; try {1 / curvature:.2g} or less."
        )


def largest_curvature(graph: Graph, place: Floats, factor: Floats) -> float:
    """Return the largest absolute eigenvalue of L^T H L, for the Hessian H of the log-density at a place.

    The method is power iteration with differences of gradients.
    """
    n = place.size
    matrix = np.diag(factor) if factor.size == n else factor.reshape(n, n)
    rng = np.random.default_rng(0)
    v = rng.standard_normal(n)
    width = float(np.finfo(float).eps ** (1 / 3)) * max(1.0, float(np.abs(place).max()))
    size = 0.0
    for _ in range(30):
        v /= np.linalg.norm(v)
        ends = []
        for side in (-1.0, 1.0):
            workspace = np.concatenate([place + side * width * (matrix @ v), np.zeros(n)])
            if gradient_once(graph.arrays, workspace) != 0.0 or not np.isfinite(workspace).all():
                return math.nan
            ends.append(workspace[n:])
        v = matrix.T @ (ends[1] - ends[0]) / (2.0 * width)
        size = float(np.linalg.norm(v))
        if not 0.0 < size < math.inf:
            return math.nan
    return size


def positive(name: str, given: Any) -> float:
    """Return a positive number that a user has given."""
    if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 < given < math.inf:
        raise ArgumentError(f"{argument(name)} must be a positive number, got {given!r}.")
    return float(given)
