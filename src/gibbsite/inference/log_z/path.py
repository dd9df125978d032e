"""Particles on the path from a product distribution to a model: its distributions, moves along it, and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Words64
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import stream
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import Buffer, alone
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.tempered.rungs import even_reference
from gibbsite.kernels.tempered.tempered import Tempered
from gibbsite.models import FactorGraph
from gibbsite.models.tempered import blend
from gibbsite.sampling.pilot import tune_in
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import State, sweep_chain
from gibbsite.scans.systematic import Systematic


@dataclass
class AnnealingPath:
    """Models from a uniform product distribution (0) to a model (``steps``), and sweeps of particles at each."""

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
        # swaps between neighbouring rungs are equally likely: equal parts of a rung are equal steps
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
        """Tell which states the model allows."""
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

    ``logs`` are the logarithms of independent positive numbers, which are divided into groups of equal size. By
    Markov's inequality the mean of a group is more than exp(t) times the expectation with a probability of at most
    exp(-t), and the means of all of G groups are with probability at most exp(-t G). The least of them, divided by
    exp(t), is thus a lower bound whatever the distribution of the numbers. Many small groups are best where numbers
    are alike, one group where they are not; every power of two is tried as the number of groups, with an equal part of
    the probability.
    """
    choices = [1 << k for k in range(logs.size.bit_length()) if 1 << k <= logs.size]
    found = -np.inf
    for groups in choices:
        least = min(log_mean(part) for part in np.array_split(logs, groups))
        found = max(found, least - np.log(len(choices) / fails) / groups)
    return float(found)
