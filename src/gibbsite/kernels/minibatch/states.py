"""Metropolis-Hastings for states with Poisson minibatches (Zhang and De Sa, 2019, section 4).

A proposal y is accepted by the factors that Poisson numbers s of means ``tau M + phi(x)`` select, with probability

    min(1, prod_phi ((tau M + phi(y)) / (tau M + phi(x)))^s  q(x | y) / q(y | x)).

The joint distribution of x and all s has the target as its marginal, so the target is exact for any tau > 0. Factors of
single sites are cheap, and always evaluated. The paper prints the ratio of the proposals inverted.

*Single sites* propose another of their states, all with equal probability. Factors of other sites cancel, so only
those of the site are drawn, with tau = lambda / L. *Proposals of users* may change any number of sites. Then all
factors of the model are drawn, with tau = lambda / Psi.

Theorem 2 of the paper bounds the spectral gap from below by exp(-E^2 / (lambda + E)) / 2 times that of
Metropolis-Hastings with the same proposal, where E is the sum of the bounds of all factors from which a move draws: L
for single sites, Psi for proposals of users. (The paper writes L in both cases.) For a pair of states, with A and B the
products of both directions, E min(A, B) >= (E sqrt(A B))^2 / (E A + E B), and a factor of bound M contributes at least
exp(-M / (tau + 1)) to (E sqrt(A B))^2 / (E A E B).

References
----------
.. [1] Zhang, R. and De Sa, C. (2019). Poisson-minibatching for Gibbs sampling with convergence rate
   guarantees. NeurIPS 32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Codes, Floats, Ints, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.foreign import call_at
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.alias import build_alias_rows, draw_column
from gibbsite._numba.random.generators import Words, below, load, store, uniform
from gibbsite._numba.random.poisson import poisson
from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.density.metropolis import Proposal
from gibbsite.kernels.minibatch.factors import (
    ACCEPTED,
    DRAWN,
    KEPT,
    UPDATES,
    MinibatchKernel,
    batch_rate,
    draw_factor,
    drawn_rows,
    is_counted,
    local_energies,
    read_batch,
    share_of,
    stays_in,
)
from gibbsite.kernels.registry import register

_ONE = np.uintp(1)
# Kinds of failures: not a state of a site, and not a ratio of densities.
STATE, RATIO = 1, 2


class SingleMoves(NamedTuple):
    """Moves of single sites: rows of factors, and tau."""

    rows: Any
    tau: float


class ProposedMoves(NamedTuple):
    """Moves of a user: rows of factors with an alias table of the sites, and addresses of draw and density."""

    rows: Any
    sites: Words64
    tau: float
    total: float
    draw: int
    density: int
    is_ratio: bool


class StateMoves(NamedTuple):
    """Memory of a chain: scratch arrays, counts, the states of a move as numbers and codes, and the last failure."""

    work: Floats
    spare: Floats
    counts: Ints
    here: Floats
    there: Floats
    goal: Any
    words: Words64
    trouble: Floats  # kind of failure (0: none), site, and number

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may contain NaN."""
        return ("there", "trouble")


@register(proof=[{"minibatch": 3.0}])
@dataclass(frozen=True)
class DiscretePoissonMH(MinibatchKernel):
    """Metropolis-Hastings for states, accepted by Poisson minibatches of factors; exact for every setting.

    Parameters
    ----------
    proposal : "uniform" or Proposal
        ``"uniform"`` proposes another state of a single site, all with equal probability. A :class:`Proposal` of your
        own changes any number of sites: its functions get arrays of state codes as floats, and ``draw`` returns one.
    minibatch : float or "auto"
        Lambda, the state-independent part of the mean number of drawn factors: at the site with the largest sum
        of bounds L for single sites, of the whole model for your own proposal. "auto" is L^2 or Psi^2.

    See Also
    --------
    PoissonGibbs : Draw from conditionals given a minibatch.
    kernels.PoissonMH : The same for numbers.

    References
    ----------
    Zhang and De Sa (2019), Poisson-minibatching for Gibbs sampling with convergence rate guarantees.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.potts(np.full((50, 50), 0.05) - 0.05 * np.eye(50), 3)
    >>> result = gs.sample(model, gs.kernels.DiscretePoissonMH(), sweeps=500, rng=1, progress=False)
    >>> 0.3 < result.report["acceptance"] < 1.0
    True

    A proposal that exchanges the states of two sites:

    >>> def exchange(x, rng):
    ...     y = x.copy()
    ...     i, j = int(rng.random() * x.size), int(rng.random() * x.size)
    ...     y[i], y[j] = x[j], x[i]
    ...     return y
    >>> kernel = gs.kernels.DiscretePoissonMH(gs.kernels.Proposal(exchange, symmetric=True), minibatch=50.0)
    >>> kernel.joint
    True
    """

    conditional: ClassVar[bool] = False
    rejects: ClassVar[bool] = True
    fallible: ClassVar[bool] = True
    proposal: str | Proposal = "uniform"
    minibatch: float | str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.proposal, Proposal) and not (
            isinstance(self.proposal, str) and self.proposal == "uniform"
        ):
            raise ArgumentError(
                f"{argument('proposal')} must be 'uniform' or a gs.kernels.Proposal, got {describe(self.proposal)}."
            )

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """Whether a step may move all sites."""
        return isinstance(self.proposal, Proposal)

    def energy(self, graph: Graph) -> float:
        """Return the sum of the bounds of the factors from which a move draws: L, or Psi."""
        energies = local_energies(graph)
        return energies.total if self.joint else energies.largest

    def size(self, graph: Graph) -> float:
        """Return lambda for a graph."""
        return read_batch("minibatch of DiscretePoissonMH", self.minibatch, max(self.energy(graph) ** 2, 1.0))

    def parameters(self, graph: Graph) -> SingleMoves | ProposedMoves:
        """Return the factors, and the parameters of moves."""
        rows = drawn_rows(graph)
        tau = batch_rate(self.size(graph), self.energy(graph))
        if not isinstance(self.proposal, Proposal):
            return SingleMoves(rows, tau)
        draw, other = self.proposal.functions()
        return ProposedMoves(
            rows=rows,
            sites=build_alias_rows(np.array([0, graph.n_sites]), rows.rate),
            tau=tau,
            total=float(rows.rate.sum()) / 2.0,
            draw=draw.address,
            density=0 if other is None else other.address,
            is_ratio=self.proposal.log_ratio is not None,
        )

    def memory(self, graph: Graph, stream: Words64) -> StateMoves:
        """Allocate scratch arrays, counts and the states of a move."""
        n = graph.n_sites if self.joint else 0
        goal = np.zeros(n, graph.state_dtype)
        return StateMoves(*self.workspace(graph), np.zeros(n), np.zeros(n), goal, np.zeros(4, np.uint64), np.zeros(3))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Return what theorem 2 guarantees."""
        energy, size = self.energy(graph), self.size(graph)
        name = "Psi" if self.joint else "L"
        factor = 0.5 * math.exp(-(energy**2) / (size + energy)) if energy > 0.0 else 1.0
        scans = "" if self.joint else " of random scans"
        return (
            KernelWarning(
                f"With lambda = {size:.4g} and {name} = {energy:.4g} the spectral gap{scans} is at least "
                f"exp(-{name}^2 / (lambda + {name})) / 2 = {factor:.3g} times that of Metropolis-Hastings with the "
                "same proposal."
            ),
        )

    def inspect(self, model: Any, graph: Graph, memory: StateMoves) -> None:
        """Raise the error of a proposal that failed."""
        what, site, value = int(memory.trouble[0]), int(memory.trouble[1]), float(memory.trouble[2])
        if what == 0 or not isinstance(self.proposal, Proposal):
            return
        draw, other = self.proposal.functions()
        raised = draw.cause_at(memory.here, memory.there, memory.words)
        if raised is None and other is not None and what == RATIO:
            raised = other.cause_at(memory.there, memory.here) or other.cause_at(memory.here, memory.there)
        if raised is not None:
            raise SamplingError(f"The proposal raised {raised!r}.") from raised
        if what == RATIO:
            raise SamplingError(f"The log-density of the proposal is {value:g}; it must be a number or -inf.")
        raise SamplingError(
            f"The proposal returned {value:g} for site {site}, whose states have the codes 0 to "
            f"{int(graph.cards[site]) - 1}; it must return one of them for every site."
        )


@inlined
def _own_gain(rows: Any, i: Integer, old: Integer, new: Integer) -> float:
    """Return the gain of the factors of site i alone."""
    cell = np.uintp(rows.offset[i])
    return float(rows.log_unary[cell + np.uintp(new)] - rows.log_unary[cell + np.uintp(old)])


@inlined
def _decide(memory: StateMoves, gain: float, rng: Words) -> tuple[Words, bool]:
    """Return whether a move is accepted; count it."""
    rng, u = uniform(rng)
    accepted = u < math.exp(min(gain, 0.0))
    if accepted:
        memory.counts[ACCEPTED] += 1
    return rng, accepted


@implement(step, SingleMoves)
def _move_site(
    params: SingleMoves, arrays: Any, memory: StateMoves, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose another state of site i, and accept it by a minibatch of the factors of the site."""
    memory.counts[UPDATES] += 1
    rows, tau = params.rows, params.tau
    states = np.int64(rows.offset[i + _ONE]) - np.int64(rows.offset[i])
    if states < 2:
        return rng
    old = np.int64(x[i])
    rng, drawn = below(rng, np.uintp(states - 1))
    new = np.int64(drawn) + np.int64(np.int64(drawn) >= old)
    gain = _own_gain(rows, i, old, new)
    if gain > -math.inf:
        rng, always = poisson(rng, tau * rows.rate[i])  # means tau M
        rng, more = poisson(rng, rows.rate[i])  # means phi(x), thinned from M
        for number in range(always + more):
            rng, k, view = draw_factor(rows, i, x, rng)
            if view < 0:
                continue
            here = share_of(rows, k, i, old, view)
            stays = number < always
            if not stays:
                rng, stays = stays_in(rng, here)
            if stays:
                memory.counts[KEPT] += 1
                there = share_of(rows, k, i, new, view)
                if there != here:
                    gain += math.log((tau + there) / (tau + here))
        memory.counts[DRAWN] += always + more
    rng, accepted = _decide(memory, gain, rng)
    if accepted:
        x[i] = new
    return rng


@inlined
def _complain(memory: StateMoves, what: Integer, site: Integer, value: float) -> None:
    memory.trouble[0] = what
    memory.trouble[1] = site
    memory.trouble[2] = value


@implement(step, ProposedMoves)
def _move_as_proposed(
    params: ProposedMoves, arrays: Any, memory: StateMoves, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Propose states of all sites by functions of a user, and accept them by a minibatch of all factors."""
    if memory.trouble[0] != 0.0:
        return rng
    memory.counts[UPDATES] += 1
    rows, tau, n = params.rows, params.tau, x.size
    here, there, goal, words = memory.here, memory.there, memory.goal, memory.words
    for k in range(n):
        here[k] = x[k]
    store(words, rng)
    failed = math.isnan(call_at(params.draw, here, 0, n, there, 0, n, words))
    if failed:
        store(words, rng)  # restore the generator, to repeat the failing call later
    rng = load(words)
    gain = 0.0
    for site in range(n):
        j = np.uintp(site)
        states = np.int64(rows.offset[j + _ONE]) - np.int64(rows.offset[j])
        if failed or not (0.0 <= there[j] < states) or there[j] != math.floor(there[j]):
            _complain(memory, STATE, site, there[j])
            return rng
        goal[j] = np.int64(there[j])
        if goal[j] != x[j]:
            gain += _own_gain(rows, j, x[j], goal[j])
    if params.density != 0 and gain > -math.inf:
        ratio = call_at(params.density, there, 0, n, here, 0, n, words)
        if not params.is_ratio:  # evaluate the density in both directions
            ratio = call_at(params.density, here, 0, n, there, 0, n, words) - ratio
        if math.isnan(ratio):
            _complain(memory, RATIO, 0, ratio)
            return rng
        gain += ratio
    if gain > -math.inf:
        rng, always = poisson(rng, tau * params.total)  # means tau M
        rng, more = poisson(rng, params.total)  # means phi(x), thinned from M
        for number in range(always + more):
            # draw a site and then a factor: a factor counts from two of its sites, with total probability M / Psi
            rng, chosen = draw_column(params.sites, 0, rows.local.size, rng)
            _, _, view_there = draw_factor(rows, chosen, goal, rng)  # with equal random numbers, the same factor
            rng, slot, view = draw_factor(rows, chosen, x, rng)
            if view < 0 or not is_counted(rows, slot):
                continue
            share = share_of(rows, slot, chosen, x[chosen], view)
            stays = number < always
            if not stays:
                rng, stays = stays_in(rng, share)
            if stays:
                memory.counts[KEPT] += 1
                gain += math.log((tau + share_of(rows, slot, chosen, goal[chosen], view_there)) / (tau + share))
        memory.counts[DRAWN] += always + more
    rng, accepted = _decide(memory, gain, rng)
    if accepted:
        for k in range(n):
            x[k] = goal[k]
    return rng
