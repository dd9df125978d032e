"""Gibbs sampling: a site is drawn from its conditional given the rest, by one of three rules (:mod:`.rules`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints8, Ints16, Words64
from gibbsite._common.wording import unknown
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.local import weights
from gibbsite.kernels.base import Buffer, Kernel, step, transition
from gibbsite.kernels.gibbs.conditional_cache import (
    Remembered,
    find_row,
    pick_by_row,
    remember_conditional,
    remember_levels,
    remembered_memory,
    remembering_pays,
)
from gibbsite.kernels.gibbs.running_weights import Running, note_change, running_memory, running_pays, running_weights
from gibbsite.kernels.registry import register
from gibbsite.kernels.rules import HEAT_BATH, RULES, HeatBath, OtherRule, apply_rule, is_up, kept_odds, pick, put_cells


class GibbsParameters(NamedTuple):
    """Parameters of the Gibbs step: the rule."""

    rule: HeatBath | OtherRule


@register(
    methods={"gibbs": ("MAR", "MAP")},
    proof=[{"rule": rule} for rule in RULES],
    default_for=["discrete"],
    recommend={"Gibbs": {}, "Gibbs, metropolised": {"rule": "metropolised"}},
)
@dataclass(frozen=True)
class Gibbs(Kernel):
    """Plain Gibbs sampling.

    Parameters
    ----------
    rule : {"heat-bath", "metropolised", "suwa-todo"}
        How the new value is drawn from the conditional.

    See Also
    --------
    BlockGibbs : Draw many sites jointly.
    HerdedGibbs : The deterministic counterpart.
    Tempered : Several temperatures, for several modes.

    References
    ----------
    Geman and Geman (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images.

    Liu (1996), Peskun's theorem and a modified discrete-state Gibbs sampler.

    Suwa and Todo (2010), Markov chain Monte Carlo method without detailed balance.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.3)
    >>> result = gs.sample(model, gs.Gibbs(rule="metropolised"), sweeps=100, rng=1, progress=False)
    >>> 0.3 < result.marginals["5"][1] < 0.7
    True
    """

    rule: str = "heat-bath"

    @property
    def reversible(self) -> bool:  # type: ignore[override]
        """True for every rule except that of Suwa and Todo."""
        return self.rule != "suwa-todo"

    def parameters(self, graph: Graph) -> GibbsParameters:
        """Return the rule."""
        if self.rule not in RULES:
            raise ArgumentError(unknown("Gibbs rule", self.rule, RULES))
        number = RULES.index(self.rule)
        return GibbsParameters(HeatBath(number) if number == HEAT_BATH else OtherRule(number))

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate a cache of conditionals or running log-weights if that is faster, otherwise a scratch array."""
        if remembering_pays(graph):
            return remembered_memory(graph, own=self.rule != "heat-bath")
        return running_memory(graph) if running_pays(graph) else super().memory(graph, stream)

    def rung_memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate a cache of conditionals if that is faster, but no running log-weights."""
        return super().memory(graph, stream) if running_pays(graph) else self.memory(graph, stream)

    def forget(self, memory: Any) -> None:
        """Make the next step sum log-weights again; cached conditionals stay valid, because states are their keys."""
        if isinstance(memory, Running):
            memory.left[0] = 0


@implement(step, GibbsParameters, IsingGraph)
@implement(step, GibbsParameters, LatticeGraph)
def _step_binary(
    params: GibbsParameters, arrays: Any, memory: Buffer, x: Ints8, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    rng, u = uniform(rng)
    odds = kept_odds(arrays, x, i, cond, keep)
    if params.rule.number == HEAT_BATH:
        x[i] = is_up(odds, u)
    else:
        gain = odds if x[i] == 0 else -odds
        if gain >= 0.0 or u < math.exp(gain):
            x[i] = 1 - x[i]
    return rng


@implement(step, GibbsParameters)
def _step_categorical(
    params: GibbsParameters, arrays: Any, memory: Buffer, x: Ints16, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    size, total = weights(arrays, x, i, memory.work)
    return _draw(params, arrays, memory.work, size, total, x, i, rng, cond, keep)


@implement(step, GibbsParameters, PottsGraph, Running)
def _step_running(
    params: GibbsParameters, arrays: Any, memory: Running, x: Ints16, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw a site by its running log-weights."""
    size, total = running_weights(arrays, memory, x, i)
    old = x[i]
    rng = _draw(params, arrays, memory.work, size, total, x, i, rng, cond, keep)
    if x[i] != old:
        note_change(arrays, memory, i, old, x[i])
    return rng


@implement(step, GibbsParameters, TableGraph, Remembered)
def _step_remembered(
    params: Any, arrays: Any, memory: Remembered, x: Ints16, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw a site by its cached conditional; compute and cache the conditional if it is new."""
    row = np.uintp(0)
    if memory.place[i] > 0:
        row = find_row(memory, x, i)
        if memory.table[row] > 0.0:
            states = np.uintp(arrays.card[i])
            rng, u = uniform(rng)
            x[i] = pick_by_row(memory, i, row, states, u)
            if keep:
                cell = np.uintp(arrays.offset[i])
                for a in range(states):
                    cond[cell + a] = memory.table[row + states + a]
            return rng
    size, total = weights(arrays, x, i, memory.work)
    if row > 0:
        remember_conditional(memory, row, size, total)
    rng = _draw(params, arrays, memory.work, size, total, x, i, rng, cond, keep)
    if row > 0:
        remember_levels(params.rule.number, memory, i, row, size, total)
    return rng


@inlined
def _draw(
    parameters: GibbsParameters,
    arrays: Any,
    w: Floats,
    size: Integer,
    total: float,
    x: Ints16,
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    """Draw the value of a site from its weights by the rule of the kernel."""
    rng, u = uniform(rng)
    if total > 0.0:
        if keep:
            put_cells(arrays, w, size, total, i, cond)
        x[i] = pick(w, size, u * apply_rule(parameters.rule, w, size, total, np.int64(x[i])))
    return rng


@implement(transition, GibbsParameters)
def _transition(parameters: GibbsParameters, arrays: Any, memory: Buffer, x: Array, i: Integer, row: Floats) -> Integer:
    size, total = weights(arrays, x, i, row)
    scale = apply_rule(parameters.rule, row, size, total, np.int64(x[i]))
    for a in range(size):
        row[a] /= scale
    return size
