"""Metropolis-Hastings sampling of a density: propose a place and accept it with probability min(1, ratio).

    log ratio = log p(y) - log p(x) + log q(x | y) - log q(y | x)

Proposals move all coordinates at once, y = x + s L z with z normal or uniform, or one coordinate at a time (Metropolis
within Gibbs), with any scan, or come from a user's function. Size and covariance of moves are adapted in the warmup
only, because an adapting chain is not a Markov chain.

References
----------
.. [1] Roberts, G. O., Gelman, A. and Gilks, W. R. (1997). Weak convergence and optimal scaling of random walk
   Metropolis algorithms. Annals of Applied Probability 7 (acceptance 0.234, or 0.44 in one dimension).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked_constructor, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.foreign import adopt, call_at, digest_of
from gibbsite._numba.jit import Integer, generic, implement, inlined
from gibbsite._numba.random.generators import Words, load, store, uniform
from gibbsite._numba.random.ziggurat import normal
from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.graphs.functions.densities import density_at, is_whole, part_of, period_of, wrapped
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import step
from gibbsite.kernels.density.moves import (
    ACCEPTED,
    DRAWN,
    MOVES,
    RATIO,
    TUNING,
    MoveMemory,
    WalkingKernel,
    accepts,
    arrive,
    checked,
    complain,
    decide,
    is_stuck,
    stand,
)
from gibbsite.kernels.density.tuning import read_shape, stretch, tune_size
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import Model


@checked_constructor
@dataclass(frozen=True)
class Proposal:
    """A proposal distribution, with its density or ratio of densities if it is asymmetric.

    Exactly one of ``log_density``, ``log_ratio`` and ``symmetric`` is needed: without the ratio of
    both directions, an asymmetric proposal would lead to another distribution.

    Parameters
    ----------
    draw : callable
        ``draw(x, rng) -> array``, a proposed place; ``rng`` is a NumPy generator, or its replacement in compiled
        functions. A draw that does not depend on x is an independence proposal.
    log_density : callable, optional
        ``log_density(to, from) -> number``, the logarithm of q(to | from) up to a constant.
    log_ratio : callable, optional
        ``log_ratio(to, from) -> number``, the logarithm of q(from | to) / q(to | from).
    symmetric : bool
        The proposal has the same density in both directions.

    Examples
    --------
    >>> import gibbsite as gs
    >>> independent = gs.kernels.Proposal(
    ...     lambda x, rng: rng.normal(size=x.size) * 2.0,
    ...     log_density=lambda to, at: -(to**2).sum() / 8.0,
    ... )
    >>> target = gs.LogDensity(lambda x: -0.5 * (x**2).sum(), dim=2)
    >>> result = gs.sample(target, gs.Metropolis(independent), sweeps=500, rng=1, progress=False)
    >>> 0.2 < result.report["acceptance"] < 0.9
    True
    """

    draw: Any
    log_density: Any = None
    log_ratio: Any = None
    symmetric: bool = False
    _kept: dict[str, Any] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        given = [self.log_density is not None, self.log_ratio is not None, bool(self.symmetric)]
        if sum(given) != 1:
            raise ArgumentError(
                "a proposal needs one of log_density=, log_ratio= and symmetric=True: without the ratio of "
                "both directions it would sample another distribution."
            )
        for function in (self.draw, self.log_density, self.log_ratio):
            if function is not None and not callable(function):
                raise ArgumentError(f"a proposal is made of functions, got {function!r}.")

    def __repr__(self) -> str:
        parts = [
            f"{name}={digest_of(function)}"
            for name, function in vars(self).items()
            if function is not None and callable(function)
        ]
        return f"Proposal({', '.join([*parts, f'symmetric={self.symmetric}'])})"

    def functions(self) -> tuple[Any, Any]:
        """Return the draw, and the density or ratio, for compiled code."""
        if not self._kept:
            self._kept["draw"] = adopt(self.draw, "draw")
            other = self.log_density if self.log_ratio is None else self.log_ratio
            self._kept["other"] = None if other is None else adopt(other, "value", arguments=2)
        return self._kept["draw"], self._kept["other"]


_TOGETHER, _ALONE = 0.234, 0.44
_ROOT_3 = math.sqrt(3.0)
LAWS = ("normal", "uniform")


class Exactly(NamedTuple):
    """Proposals are judged by the log-density itself."""

    unused: int = 0


class TogetherParameters(NamedTuple):
    """Moves of all coordinates: whether numbers are uniform, the target acceptance rate, and the judge."""

    even: bool
    wanted: float
    judge: Any


class AloneParameters(NamedTuple):
    """Moves of single coordinates: whether numbers are uniform, and the target acceptance rate."""

    even: bool
    wanted: float


class ProposedParameters(NamedTuple):
    """Moves of a user: addresses of draw and density (0: symmetric), whether the latter is a ratio, and the judge."""

    draw: int
    density: int
    is_ratio: bool
    judge: Any


@register(
    proof="tests/proofs/test_densities.py",
    default_for=["density", "data"],
    recommend={"Metropolis": {}, "Metropolis, one by one": {"one_by_one": True}},
)
@dataclass(frozen=True)
class Metropolis(WalkingKernel):
    """Metropolis-Hastings sampling of a density.

    Parameters
    ----------
    proposal : "normal", "uniform" or Proposal
        Distribution of the moves, or your own functions. Uniform moves reach sqrt(3) standard deviations to each side.
    scale : float or array (n,), optional
        Standard deviations of moves, which are only the first ones if ``adapt`` is set. By default 2.38 / sqrt(n), or
        2.4 for single coordinates.
    covariance : matrix (n, n), optional
        Shape of moves of all coordinates: their covariance is this matrix times ``scale`` squared. If given, it is not
        learned.
    one_by_one : bool
        Move one coordinate at a time, in the order of the scan: Metropolis within Gibbs.
    adapt : bool
        Learn scale and covariance in the warmup.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + (x[1] / 3) ** 2), dim=2)
    >>> result = gs.sample(target, gs.Metropolis(), sweeps=20_000, rng=1, progress=False)
    >>> 2.7 < result.marginals["1"]["sd"] < 3.3, 0.15 < result.report["acceptance"] < 0.4
    (True, True)
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"density", "data", "functions"})
    proposal: str | Proposal = "normal"
    scale: npt.ArrayLike | None = None
    covariance: npt.ArrayLike | None = None
    one_by_one: bool = False
    adapt: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.proposal, Proposal) and not (isinstance(self.proposal, str) and self.proposal in LAWS):
            raise ArgumentError(unknown("proposal", self.proposal, LAWS, ", or give a gs.kernels.Proposal"))
        if self.one_by_one and (isinstance(self.proposal, Proposal) or self.covariance is not None):
            raise ArgumentError("one_by_one=True takes neither a covariance nor your own proposal.")
        if isinstance(self.proposal, Proposal) and not (self.scale is None and self.covariance is None):
            raise ArgumentError("your own proposal has its own scale; leave out scale= and covariance=.")

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """Whether a step moves all coordinates."""
        return not self.one_by_one

    def learns(self) -> tuple[bool, bool]:
        """Return whether size and shape are learned in the warmup."""
        by_size = bool(self.adapt) and not isinstance(self.proposal, Proposal)
        return by_size, by_size and not self.one_by_one and self.covariance is None

    def first_size(self, graph: Graph) -> Floats:
        """Return the first size of moves: one number, or one for each coordinate."""
        n = graph.n_sites
        if self.one_by_one:
            return np.full(n, 2.4) if self.scale is None else read_scale(self.scale, n)
        return np.array([2.38 / math.sqrt(n) if self.scale is None else 1.0])

    def first_factor(self, graph: Graph) -> Floats:
        """Return the shape of the first moves; a given scale is part of it."""
        n = graph.n_sites
        scale = np.ones(n)
        if self.scale is not None and not self.one_by_one:
            scale = read_scale(self.scale, n)
        if self.covariance is None:
            return scale
        factor = read_shape(self.covariance, n, "the covariance")
        return factor * scale if factor.size == n else (scale[:, None] * factor.reshape(n, n)).ravel()

    def parameters(self, graph: Graph) -> NamedTuple:
        """Return the distribution of the moves."""
        self.first_size(graph), self.first_factor(graph)  # refuses invalid arguments
        if isinstance(self.proposal, Proposal):
            draw, other = self.proposal.functions()
            address = 0 if other is None else other.address
            is_ratio = self.proposal.log_ratio is not None
            return ProposedParameters(draw.address, address, is_ratio, self.judge(graph))
        even = self.proposal == "uniform"
        if self.one_by_one:
            return AloneParameters(even, _ALONE)
        return TogetherParameters(even, _TOGETHER, self.judge(graph))

    def judge(self, graph: Graph) -> NamedTuple:
        """Return the type that selects how the gain of a move is computed (:func:`weigh`)."""
        return Exactly()

    def report(self, memories: Any) -> dict[str, float]:
        """Return the acceptance rate and the scale; proposals of users have no scale."""
        found = super().report(memories)
        if isinstance(self.proposal, Proposal):
            found.pop("scale")
        return found

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise the error of a failed step, or the error that the user's proposal raised."""
        if isinstance(self.proposal, Proposal) and memory.trouble[0] in (DRAWN, RATIO):
            here, there = memory.trouble[2:], memory.there[: graph.n_sites]
            draw, other = self.proposal.functions()
            raised = draw.cause_at(here, there, memory.words)
            if raised is None and other is not None:
                raised = other.cause_at(there, here) or other.cause_at(here, there)
            if raised is not None:
                where = model.place_text(here)
                raise SamplingError(f"The proposal raised {raised!r} at {where}.") from raised
        super().inspect(model, graph, memory)


def read_scale(given: Any, n: int) -> Floats:
    """Return a scale that a user has given as n positive numbers."""
    try:
        scale = np.broadcast_to(np.asarray(given, float), (n,)).copy()
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{argument('scale')} must be a number or {n} of them, got {describe(given)}.") from None
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise ArgumentError(f"{argument('scale')} must be positive, got {given!r}.")
    return scale


@inlined
def draw_unit(even: bool, rng: Words) -> tuple[Words, float]:
    """Return a number of mean zero and variance one, uniform or normal."""
    if even:
        rng, u = uniform(rng)
        return rng, _ROOT_3 * (2.0 * u - 1.0)
    return normal(rng)


@generic
def begin(judge: Any, arrays: Any, memory: MoveMemory, x: Floats) -> bool:
    """Evaluate what a judge needs at the current place; return whether that succeeded."""
    raise NotImplementedError


@generic
def weigh(judge: Any, arrays: Any, memory: MoveMemory, x: Floats, rng: Words) -> tuple[Words, Any, Any]:
    """Return the log-density of the proposed place, if known, and the gain that decides whether to accept it."""
    raise NotImplementedError


@implement(begin)
def _know_place(judge: Any, arrays: Any, memory: MoveMemory, x: Floats) -> bool:
    stand(memory, x)
    return True


@implement(begin, Exactly)
def _know_density(judge: Exactly, arrays: Any, memory: MoveMemory, x: Floats) -> bool:
    return arrive(arrays, memory, x)


@implement(weigh, Exactly)
def _weigh_exactly(judge: Exactly, arrays: Any, memory: MoveMemory, x: Floats, rng: Words) -> tuple[Words, Any, Any]:
    value = checked(memory, density_at(arrays, memory.there), memory.there)
    return rng, value, value - memory.now[0]


@inlined
def _wrap_angles(arrays: Any, place: Floats, n: Integer) -> None:
    """Wrap the angles of a proposed place into their intervals."""
    for k in range(n):
        place[k] = wrapped(arrays.low[k], period_of(arrays, k), place[k])


@implement(step, TogetherParameters)
def _move_together(
    params: Any, arrays: Any, memory: MoveMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose a move of all coordinates, and accept or reject it."""
    if is_stuck(memory) or not begin(params.judge, arrays, memory, x):
        return rng
    for k in range(x.size):
        rng, memory.noise[k] = draw_unit(params.even, rng)
    stretch(memory.factor, memory.noise, memory.size[0], x, memory.there)
    _wrap_angles(arrays, memory.there, x.size)
    rng, value, gain = weigh(params.judge, arrays, memory, x, rng)
    return decide(memory, x, value, gain, params.wanted, rng)


@implement(step, AloneParameters)
def _move_alone(
    params: Any, arrays: Any, memory: MoveMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose a move of coordinate i, and accept or reject it."""
    whole = is_whole(arrays)
    if is_stuck(memory) or (whole and not arrive(arrays, memory, x)):
        return rng
    now = memory.now[0] if whole else checked(memory, part_of(arrays, x, i), x)
    before = x[i]
    rng, z = draw_unit(params.even, rng)
    after = wrapped(arrays.low[i], period_of(arrays, i), before + memory.size[i] * z)
    value = -math.inf
    if arrays.low[i] <= after <= arrays.high[i]:
        x[i] = after
        value = checked(memory, part_of(arrays, x, i), x)
        x[i] = before
    gain = value - now
    rng, accepted = accepts(rng, gain)
    memory.counts[MOVES] += 1
    if accepted:
        memory.counts[ACCEPTED] += 1
        x[i] = after
        memory.now[0] = value
    if memory.counts[TUNING] != 0:
        tune_size(memory.size, memory.visits, i, math.exp(min(gain, 0.0)), params.wanted)
    return rng


@implement(step, ProposedParameters)
def _move_as_proposed(
    params: Any, arrays: Any, memory: MoveMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose a move by functions of a user, and accept or reject it."""
    n = x.size
    here, there, words = memory.here, memory.there, memory.words
    if is_stuck(memory) or not begin(params.judge, arrays, memory, x):
        return rng
    store(words, rng)
    total = call_at(params.draw, here, 0, n, there, 0, n, words)
    if math.isnan(total):
        store(words, rng)  # restore the generator, to repeat the failing call later
    rng = load(words)
    for k in range(n):
        total += there[k] - there[k]
    if total != 0.0:  # or NaN
        complain(memory, DRAWN, total, x)
        return rng
    _wrap_angles(arrays, there, n)
    rng, value, gain = weigh(params.judge, arrays, memory, x, rng)
    if params.density != 0 and gain > -math.inf:
        ratio = call_at(params.density, there, 0, n, here, 0, n, words)
        if not params.is_ratio:  # evaluate the density in both directions
            ratio = call_at(params.density, here, 0, n, there, 0, n, words) - ratio
        if math.isnan(ratio):
            complain(memory, RATIO, ratio, x)
            return rng
        gain += ratio
    return decide(memory, x, value, gain, 0.0, rng)
