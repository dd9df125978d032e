"""Estimates of log Z by particles that move from a product distribution to a model, or back.

Annealed importance sampling weights particles, forwards and backwards (Neal 2001; Grosse, Ancha and Roy 2016).
Sequential Monte Carlo weights them at every step, moves them by a sweep, and resamples them in proportion to their
weights when these have become uneven (Del Moral, Doucet and Jasra 2006). The product of the mean weights is an unbiased
estimate of Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_share, checked
from gibbsite._common.arrays import Array, Bools, Floats, Ints, Positions, Words64
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import stream
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.local import log_potential
from gibbsite.inference.sampling import sample
from gibbsite.kernels.base import Buffer, alone
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.tempered.rungs import even_reference
from gibbsite.kernels.tempered.tempered import Tempered
from gibbsite.models import FactorGraph
from gibbsite.models.tempered import blend
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.wording import in_words, with_sign
from gibbsite.sampling.pilot import tune_in
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import inner_runs
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import State, sweep_chain
from gibbsite.scans.systematic import Systematic


@dataclass
class AnnealingPath:
    """A path from a uniform product distribution (0) to a model (``steps``), with sweeps of particles at each point."""

    model: FactorGraph
    steps: int

    def __post_init__(self) -> None:
        if not isinstance(self.model, FactorGraph):
            raise IncompatibleError(
                f"Particles are for models of states, got {type(self.model).__name__}; see gs.FactorGraph."
            )
        graph = compile_graph(self.model)
        kernel: Any = tune_in(None, self.model, graph, Tempered())
        rungs = kernel.start_ladder(graph).betas
        # swaps between neighbouring rungs are equally likely, so steps divide each rung evenly
        places = np.linspace(0.0, rungs.size - 1.0, self.steps + 1)
        self.betas = np.interp(places, np.arange(rungs.size), rungs)
        self.graph, self.logs = graph, even_reference(graph)
        self.beyond = compile_graph(blend(self.model, 1.0, -1.0, self.logs), graph.kind)
        self.schedule = Systematic().schedule(graph)
        self.tape = lay_out(self.model, graph, Gibbs(), None).empty_tape(graph)

    def at(self, k: int) -> Graph:
        """Return the graph of a point of the path."""
        if k == self.steps:
            return self.graph
        beta = float(self.betas[k])
        return compile_graph(blend(self.model, beta, 1.0 - beta, self.logs), self.graph.kind)

    def draw_reference(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent draws from the product distribution (count, sites)."""
        cards, start = self.graph.cards.astype(np.int64), 0
        found = np.zeros((count, cards.size), self.graph.state_dtype)
        for i, card in enumerate(cards.tolist()):
            found[:, i] = rng.choice(card, size=count, p=np.exp(self.logs[start : start + card]))
            start += card
        return found

    def sweep(self, graph: Graph, states: Array, words: list[Words64]) -> None:
        """Move every particle by one sweep of Gibbs sampling."""
        parameters = Gibbs().parameters(graph)
        memory = Buffer(np.zeros(int(graph.cards.max(initial=1))))
        for x, rng in zip(states, words, strict=True):
            position, order = np.zeros(2, np.int64), np.zeros(0, np.int32)
            state = State(x, np.zeros(0), rng, position, order, memory)
            sweep_chain(parameters, graph.arrays, self.schedule, state, self.tape, 1, x.size, False, alone())

    def gains(self, states: Array) -> Floats:
        """Return the logarithm of the model's weight over the reference's probability, with softened zeros."""
        found = np.zeros(len(states))
        _potentials(self.beyond.arrays, states, found)
        return found + self.beyond.log_offset

    def possible(self, states: Array) -> Bools:
        """Return which states the model allows."""
        found = np.zeros(len(states))
        _potentials(self.graph.arrays, states, found)
        return np.isfinite(found)

    def step_weights(self, k: int, states: Array) -> Floats:
        """Return the log-weights of particles at point k for point k + 1."""
        logs = (self.betas[k + 1] - self.betas[k]) * self.gains(states)
        return np.where(self.possible(states), logs, -np.inf) if k + 1 == self.steps else logs


@compiled_loop
def _potentials(arrays: Any, states: Array, out: Floats) -> None:
    for k in range(out.size):
        out[k] = log_potential(arrays, states[k])


def streams(entropy: int, first: int, count: int) -> list[Words64]:
    """Return generators of particles."""
    return [stream(entropy, (1 << 42) + first + k) for k in range(count)]


def log_mean(logs: Floats) -> float:
    """Return the logarithm of the mean of exponentials."""
    top = float(logs.max())
    return top if np.isneginf(top) else top + float(np.log(np.exp(logs - top).mean()))


def bound_log_mean(logs: Floats, fails: float) -> float:
    """Return a lower bound of the logarithm of an expectation that fails with probability at most ``fails``.

    ``logs`` are the logarithms of independent positive numbers, which are divided into groups. By Markov's inequality
    the mean of a group exceeds exp(t) times the expectation with probability at most exp(-t), so the means of all of G
    groups do with probability at most exp(-t G). The least of them, divided by exp(t), is thus a lower bound for any
    distribution. Every power of two is tried as the number of groups, with an equal part of the probability.
    """
    choices = [1 << k for k in range(logs.size.bit_length()) if 1 << k <= logs.size]
    found = -np.inf
    for groups in choices:
        least = min(log_mean(part) for part in np.array_split(logs, groups))
        found = max(found, least - np.log(len(choices) / fails) / groups)
    return float(found)


@dataclass(frozen=True, eq=False, repr=False)
class AnnealedEstimate(Answer):
    """An interval for a log-partition function from annealed importance sampling.

    Attributes
    ----------
    lower, upper : float
        An interval that holds log Z with a probability of at least ``confidence``; each bound fails with at most half
        of the remaining probability. ``lower`` comes from particles that moved to the model and needs no assumption.
        ``upper`` comes from draws of the model that moved back, and is valid if these draws are independent, which is
        nearly true if the tempered run has converged.
    log_z : float
        Estimate: the logarithm of the mean weight of the particles that moved to the model.
    confidence : float
        That probability.
    forward, backward : float arrays
        Log-weights of the particles; their exponentials have the means Z and 1 / Z.
    diagnostics : Diagnostics
        Converged if the tempered run that supplies the draws of the model has converged.
    betas : float array
        Inverse temperatures of the path.

    Notes
    -----
    The bounds are Markov's inequality for means of groups of particles, see :func:`bound_log_mean`. If they cross, one
    of them has failed, and both are given in ascending order.
    """

    model: FactorGraph
    lower: float
    upper: float
    log_z: float = field()
    confidence: float
    forward: Floats
    backward: Floats
    diagnostics: Diagnostics = field()
    betas: Floats

    @property
    def gap(self) -> float:
        """Width of the interval."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        return f"AnnealedEstimate({self.line()})"


@checked
def annealed_importance(
    model: FactorGraph,
    *,
    steps: int = 200,
    particles: int = 64,
    sweeps: int = 2000,
    confidence: float = 0.95,
    rng: Any = None,
) -> AnnealedEstimate:
    """Find an interval of the log-partition function by annealed importance sampling, forwards and backwards.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    steps : int
        Temperatures from a product distribution to the model, with a sweep at each.
    particles : int
        Number of states that move to the model, and of those that move back.
    sweeps : int
        Sweeps of the tempered run whose draws move back.
    confidence : float
        Probability with which the interval holds log Z.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    AnnealedEstimate

    References
    ----------
    Neal (2001), Annealed importance sampling.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.6)
    >>> found = gs.log_z.annealed_importance(model, steps=50, rng=1)
    >>> found.lower < gs.solve_exact(model).log_z < found.upper, found.gap < 2.0
    (True, True)
    """
    steps, particles = check_integer("steps", steps, 1), check_integer("particles", particles, 2)
    confidence = check_share("confidence", confidence)
    entropy = read_entropy(rng)
    path = AnnealingPath(model, steps)
    states = path.draw_reference(particles, np.random.default_rng([entropy, 1]))
    words = streams(entropy, 0, particles)
    forward = np.zeros(particles)
    for k in range(steps):
        forward += path.step_weights(k, states)
        if k + 1 < steps:
            path.sweep(path.at(k + 1), states, words)
    states, converged = _draw_model(path, particles, check_integer("sweeps", sweeps, particles), entropy)
    words = streams(entropy, 1 << 20, particles)
    backward = np.zeros(particles)
    for k in range(steps - 1, -1, -1):
        backward -= path.step_weights(k, states)
        if k:
            path.sweep(path.at(k), states, words)
    fails = 0.5 * (1.0 - confidence)
    lower, upper = sorted((bound_log_mean(forward, fails), -bound_log_mean(backward, fails)))
    log_z, reasons = log_mean(forward), tuple[str, ...]()
    text = f"log Z about {log_z:.6g}, with probability {confidence:g} between {lower:.6g} and {upper:.6g}"
    if not converged:
        reasons = ("the tempered run for the upper bound has not converged; allow more sweeps.",)
        text += "; the tempered run for the upper bound has not converged"
    figures = {"lower": lower, "upper": upper, "confidence": confidence, "particles": particles}
    verdict = Diagnostics("estimate", converged, reasons, figures, text)
    return AnnealedEstimate(model, lower, upper, log_z, confidence, forward, backward, verdict, path.betas)


def _draw_model(path: AnnealingPath, count: int, sweeps: int, entropy: int) -> tuple[Array, bool]:
    """Return draws of the model, evenly spread over a tempered run, and whether that run has converged."""
    with inner_runs():
        run = sample(path.model, Tempered(), sweeps=sweeps, rng=entropy, record="draws", progress=False)
    draws = run.draws.reshape(-1, path.graph.n_sites)
    pick = np.linspace(0, len(draws) - 1, count).astype(np.intp)
    return np.ascontiguousarray(draws[pick], path.graph.state_dtype), bool(run.converged)


_EVEN_ENOUGH = 0.5  # particles are resampled if their effective share is smaller


@dataclass(frozen=True, eq=False, repr=False)
class ParticleEstimate(Answer):
    """An estimate of a log-partition function by particles.

    Attributes
    ----------
    log_z, log_z_error : float
        Logarithm of the mean of several independent estimates of Z, and its standard error, from their spread.
    estimates : float array
        Logarithms of the single estimates.
    resampled : int array
        Number of resamplings in each estimate.
    betas : float array
        Inverse temperatures of the path.
    """

    model: FactorGraph
    log_z: float = field()
    log_z_error: float = field()
    estimates: Floats
    resampled: Ints
    betas: Floats

    @property
    def diagnostics(self) -> Diagnostics:
        """The number of estimates and how often particles were resampled; few estimates cannot be judged."""
        figures = {"repeats": self.estimates.size, "resampled": self.resampled.tolist()}
        text = f"log Z {in_words(self.log_z, '.6g')}{with_sign(self.log_z_error)} from {self.estimates.size} estimates"
        return Diagnostics("estimate", None, (), figures, text)

    def __repr__(self) -> str:
        return f"ParticleEstimate({self.line()})"


def particle_log_z(
    model: FactorGraph, *, steps: int = 200, particles: int = 128, repeats: int = 4, rng: Any = None
) -> ParticleEstimate:
    """Estimate the log-partition function of a model by sequential Monte Carlo.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    steps : int
        Temperatures from a product distribution to the model, with a sweep at each.
    particles : int
        Particles of each repeat.
    repeats : int
        Independent estimates.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    ParticleEstimate

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.6)
    >>> found = gs.log_z.particle_log_z(model, steps=50, particles=64, rng=1)
    >>> abs(found.log_z - gs.solve_exact(model).log_z) < 1.0
    True
    """
    steps, particles = check_integer("steps", steps, 1), check_integer("particles", particles, 2)
    repeats, entropy = check_integer("repeats", repeats, 2), read_entropy(rng)
    path = AnnealingPath(model, steps)
    graphs = [path.at(k) for k in range(1, steps)]
    estimates, resampled = np.zeros(repeats), np.zeros(repeats, np.int64)
    for repeat in range(repeats):
        draws = np.random.default_rng([entropy, 2, repeat])
        states, words = path.draw_reference(particles, draws), streams(entropy, (2 + repeat) << 20, particles)
        logs = np.zeros(particles)
        for k in range(steps):
            logs += path.step_weights(k, states)
            if k + 1 == steps or np.isneginf(logs).all():
                break
            weights = np.exp(logs - logs.max())
            if weights.sum() ** 2 < _EVEN_ENOUGH * particles * np.square(weights).sum():
                estimates[repeat] += log_mean(logs)
                resampled[repeat] += 1
                states, logs = states[choose_evenly(weights, draws)].copy(), np.zeros(particles)
            path.sweep(graphs[k], states, words)
        estimates[repeat] += log_mean(logs)
    shares = np.exp(estimates - estimates.max()) if np.isfinite(estimates).any() else np.full(repeats, np.nan)
    error = float(shares.std(ddof=1) / shares.mean() / math.sqrt(repeats))
    return ParticleEstimate(model, log_mean(estimates), error, estimates, resampled, path.betas)


def choose_evenly(weights: Floats, rng: np.random.Generator) -> Positions:
    """Resample systematically: each particle is chosen as often as its share of the weight, rounded up or down."""
    levels = np.cumsum(weights) / weights.sum()
    levels[-1] = 1.0
    points = (np.arange(weights.size) + rng.random()) / weights.size
    return np.searchsorted(levels, points, side="right")
