"""Tempering: the joint chain of all rungs keeps the product of their laws, by its exact transition matrix.

The matrix is made of the kernel's own parts: graphs of the rungs, transitions of the inner kernel on each,
U of every state and the chance of a swap as compiled code has them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.packed import take
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.local import log_odds, log_potential
from gibbsite.graphs.tiny import tiny_models
from gibbsite.inference.exact import enumerate_states
from gibbsite.inference.exact.transition import sweep_matrix
from gibbsite.kernels.base import alone, units_of
from gibbsite.kernels.tempered import exchange
from gibbsite.kernels.tempered.exchange import swap_chance
from gibbsite.kernels.tempered.ladder import Ladder
from gibbsite.kernels.tempered.side_by_side import SideParameters, lanes_for
from gibbsite.models.tempered import blend
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import start_chain, sweep_chain
from gibbsite.testing import law_p_value

pytestmark = pytest.mark.long

LADDERS = [(0.0, 1.0), (0.0, 0.3, 1.0), (0.2, 0.6, 1.0)]


@compiled
def _chance(gap: float, low: float, high: float) -> float:
    return swap_chance(gap, low, high)


@compiled
def _potential(arrays: Any, x: Any) -> float:
    return log_potential(arrays, x)


@compiled
def _odds(arrays: Any, x: Any, i: int) -> float:
    return log_odds(arrays, x, np.uintp(i))


@compiled
def _rung_potential(shelf: Any, k: int, like: Any, x: Any) -> float:
    return log_potential(take(shelf, k, like), x)


def models() -> dict[str, gs.FactorGraph]:
    """One of each kind, of at most 8 states, so that three rungs have at most 512 joint states."""
    rng = np.random.default_rng(5)
    sites = {"a": 2, "b": 2, "c": 2}
    tables = [((p, q), rng.random((2, 2)) + 0.1) for p, q in itertools.combinations(sites, 2)]
    zeros = [(("a", "b"), [[1.0, 0.0], [0.5, 2.0]]), (("b", "c"), [[0.3, 1.0], [1.0, 0.0]])]
    return {
        "lattice": gs.ising_grid((1, 3), coupling=0.8, field=0.3),
        "ising": gs.FactorGraph(sites, tables),
        "potts": gs.potts_grid((1, 2), states=2, coupling=1.1),
        "pairwise": gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), rng.random((2, 3)))]),
        "zeros": gs.FactorGraph(sites, [*zeros, ("a", [0.2, 1.0])]),
        "table": gs.FactorGraph(sites, [(("a", "b", "c"), rng.random((2, 2, 2))), ("b", [1.0, 3.0])]),
    }


def joint_chain(
    model: gs.FactorGraph, kernel: gs.Tempered, chance: Any = _chance
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the product law of all rungs, and the matrices of a sweep with even and with odd swaps."""
    graph = gs.graphs.compile_graph(model)
    graph = replace(graph, units=units_of(kernel, graph))
    kernel.check(graph)
    exact, parameters = enumerate_states(model), kernel.parameters(graph)
    ladder = kernel.start_ladder(graph)
    states = exact.states.astype(graph.state_dtype)
    beyond = np.array([_potential(parameters.beyond, x) for x in states]) + parameters.constant
    allowed = exact.probabilities > 0
    laws, sweeps = [], []
    for k, beta in enumerate(ladder.betas.tolist()):
        between = model if beta == 1.0 else blend(model, beta, 1.0 - beta, ladder.log_reference)
        own = enumerate_states(between)
        rung = replace(gs.graphs.compile_graph(between, graph.kind), units=graph.units)
        check_rung(parameters, graph, rung, k, beta, states)
        laws.append(own.probabilities)
        inner = kernel.kernel
        settled = inner.settle(graph) if hasattr(inner, "settle") else inner
        if beta == 0.0:  # fresh draws, whatever the kernel of the others
            sweeps.append(np.tile(own.probabilities, (len(states), 1)))
        else:
            sweeps.append(sweep_matrix(own, rung, settled, gs.Systematic()))
        if not isinstance(parameters, SideParameters):
            check_inner(take(parameters.inner, k, parameters.like), settled.parameters(rung))
    law = reduce(np.kron, laws)
    move = reduce(np.kron, sweeps)
    n, rungs = len(states), len(laws)
    number = np.arange(n**rungs).reshape((n,) * rungs)
    matrices = []
    for parity in (0, 1):
        swaps = np.eye(law.size)
        for k in range(parity, rungs - 1, 2):
            one = np.zeros_like(swaps)
            for at in itertools.product(range(n), repeat=rungs):
                other = list(at)
                other[k], other[k + 1] = at[k + 1], at[k]
                p = chance(ladder.betas[k + 1] - ladder.betas[k], beyond[at[k]], beyond[at[k + 1]])
                if k == rungs - 2 and not allowed[at[k]]:
                    p = 0.0  # the target excludes what would come
                one[number[at], number[tuple(other)]] += p
                one[number[at], number[at]] += 1.0 - p
            swaps = swaps @ one
        matrices.append(move @ swaps)
    return law, matrices


def check_rung(
    parameters: Any, graph: gs.graphs.Graph, rung: gs.graphs.Graph, k: int, beta: float, states: np.ndarray
) -> None:
    """Check that compiled code moves a rung by the conditionals of this graph."""
    if not isinstance(parameters, SideParameters):
        shelved = [_rung_potential(parameters.graphs, k, graph.arrays, x) for x in states]
        assert shelved == [_potential(rung.arrays, x) for x in states]
        return
    for x, i in itertools.product(states, range(graph.n_sites)):
        pull = parameters.pull[i]
        odds = pull + beta * (_odds(parameters.rows, x, i) - pull)
        assert odds == pytest.approx(_odds(rung.arrays, x, i), abs=1e-12)


def check_inner(shelved: Any, own: Any) -> None:
    """Check that compiled code moves a rung with what the kernel makes of its graph."""
    for one, other in zip(shelved, own, strict=True):
        if isinstance(one, tuple):
            check_inner(one, other)
        else:
            assert np.array_equal(one, other)


def drift(model: gs.FactorGraph, kernel: gs.Tempered, chance: Any = _chance) -> float:
    law, matrices = joint_chain(model, kernel, chance)
    for matrix in matrices:
        assert np.abs(matrix.sum(axis=1) - 1.0).max() < 1e-12
    return max(float(np.abs(law @ matrix - law).max()) for matrix in matrices)


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("ladder", LADDERS, ids=str)
def test_the_product_law_is_stationary(name: str, ladder: tuple[float, ...]) -> None:
    assert drift(models()[name], gs.Tempered(ladder=ladder)) < 1e-12


INNER = [gs.BlockGibbs(entries=4, covers=1), gs.Gibbs("suwa-todo"), gs.Gibbs("metropolised")]


@pytest.mark.parametrize("inner", INNER, ids=str)
def test_around_other_kernels(inner: gs.kernels.Kernel) -> None:
    for name in ("lattice", "ising", "zeros"):
        assert drift(models()[name], gs.Tempered(inner, ladder=(0.0, 0.4, 1.0))) < 1e-12


def agreeing() -> dict[str, gs.FactorGraph]:
    """Models whose pairs ask for agreement, with fields; the last one after relabelling states."""
    pairs = (np.array([0, 1]), np.array([1, 2]), np.array([0.9, -0.6]))
    return {
        "lattice": models()["lattice"],
        "potts": gs.potts_grid((1, 2), states=3, coupling=0.9, field=[0.0, 0.3, -0.4]),
        "gauge": gs.ising(pairs, np.array([0.2, -0.5, 0.1])),
        "no fields": gs.potts_grid((1, 2), states=2, coupling=1.1),
    }


@pytest.mark.parametrize("inner", [gs.SwendsenWang(), gs.Wolff(clusters=2)], ids=str)
@pytest.mark.parametrize("name", agreeing())
def test_around_cluster_moves(inner: gs.kernels.Kernel, name: str) -> None:
    for ladder in ((0.0, 1.0), (0.2, 1.0), (0.0, 0.4, 1.0)):
        assert drift(agreeing()[name], gs.Tempered(inner, ladder=ladder)) < 1e-12


@dataclass(frozen=True)
class ColdBonds(gs.SwendsenWang):
    """Swendsen-Wang with the bonds of a given model, whatever the temperature of the rung."""

    bonds: Any = None

    def parameters(self, graph: Any) -> Any:
        own = super().parameters(graph)
        return own if self.bonds is None else own._replace(chance=self.bonds)


@dataclass(frozen=True)
class NoFields(gs.SwendsenWang):
    """Swendsen-Wang that forgets the fields."""

    def parameters(self, graph: Any) -> Any:
        own = super().parameters(graph)
        return own._replace(field=np.zeros_like(own.field))


def test_wrong_cluster_moves_are_caught() -> None:
    """Bonds as likely at all temperatures as at the target; fields that are forgotten."""
    model = agreeing()["lattice"]
    cold = gs.SwendsenWang().parameters(gs.graphs.compile_graph(model)).chance
    for inner in (ColdBonds(cold), NoFields()):
        assert drift(model, gs.Tempered(inner, ladder=(0.0, 0.4, 1.0))) > 1e-3


@pytest.mark.parametrize(
    "inner", [gs.Gibbs("metropolised"), pytest.param(gs.Wolff(clusters=1), marks=pytest.mark.campaign)], ids=str
)
def test_the_first_rung_forgets_its_state_whatever_the_kernel(inner: gs.kernels.Kernel) -> None:
    """The compiled loop, from one state: these kernels alone would flip it, or move one of its sites."""
    model, states = gs.ising_grid((1, 3), coupling=0.5), np.zeros((2000, 3), np.int8)
    kernel = gs.Tempered(inner, ladder=(0.0, 1.0))
    graph = gs.graphs.compile_graph(model)
    graph = replace(graph, units=units_of(kernel, graph))
    schedule, layout = gs.Systematic().schedule(graph), lay_out(model, graph, kernel, None)
    parameters = kernel.parameters(graph)
    for c, x in enumerate(states):
        state = start_chain(graph, kernel, gs.Systematic(), np.zeros(3), stream(1, c), False)
        state.memory.counts[exchange.SWEEPS] = 1  # no swap of the only pair
        tape = layout.empty_tape(graph)
        sweep_chain(parameters, graph.arrays, schedule, state, tape, 1, graph.n_units, False, alone())
        x[:] = state.memory.states
    even = enumerate_states(gs.ising_grid((1, 3), coupling=0.0))
    assert law_p_value(even, states)[0] > 1e-6


@pytest.mark.parametrize("name", ["lattice", "zeros"])
def test_with_a_fitted_reference(name: str) -> None:
    model = models()[name]
    law = np.array([p for site in model.sites for p in (0.3 + 0.1 * model.index(site), 0)], float)
    law[1::2] = 1.0 - law[::2]
    betas = np.array([0.0, 0.35, 1.0])
    kernel = replace(gs.Tempered(ladder=betas), found=Ladder(betas, np.log(law), np.zeros(2)))
    assert drift(model, kernel) < 1e-12


def test_wrong_swaps_are_caught() -> None:
    """Of the wrong sign, without the difference of temperatures, and always."""
    model, kernel = models()["ising"], gs.Tempered(ladder=(0.0, 0.3, 1.0))
    wrong = (
        lambda gap, low, high: _chance(gap, high, low),
        lambda gap, low, high: _chance(1.0, low, high),
        lambda gap, low, high: 1.0,
    )
    for chance in wrong:
        assert drift(model, kernel, chance) > 1e-3


def test_a_state_that_the_target_excludes_never_gets_there() -> None:
    model = models()["zeros"]
    kernel = gs.Tempered(ladder=(0.0, 0.2, 1.0))
    result = gs.sample(
        model, kernel, record="draws", sweeps=4000, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
    )
    codes = result.draws.reshape(-1, 3)
    assert all(np.isfinite(model.log_potential(x)) for x in np.unique(codes, axis=0))
    exact = enumerate_states(model)
    seen = np.bincount(exact.number(codes), minlength=exact.law.size) / len(codes)
    assert np.abs(seen - exact.probabilities).max() < 0.02


@pytest.mark.parametrize("name", tiny_models())
def test_the_first_rung_is_a_fresh_draw_of_the_reference(name: str) -> None:
    """Whatever the state was: the matrix of a sweep has equal rows."""
    model = tiny_models()[name]
    graph, kernel = gs.graphs.compile_graph(model), gs.Tempered(ladder=(0.0, 1.0))
    logs = kernel.start_ladder(graph).log_reference
    reference = blend(model, 0.0, 1.0, logs)
    own = enumerate_states(reference)
    rows = sweep_matrix(own, gs.graphs.compile_graph(reference, graph.kind), gs.Gibbs(), gs.Systematic())
    possible = own.probabilities > 0
    assert np.abs(rows[possible] - own.probabilities).max() < 1e-12


def stationary(matrix: np.ndarray) -> np.ndarray:
    """Return the law that a matrix keeps."""
    n = len(matrix)
    system = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]


def test_a_ladder_that_follows_the_states_is_caught() -> None:
    """The middle rung goes near the target while that has a rare state, and far away otherwise.

    Either ladder on its own keeps the law of the target, the mixture does not: hence the ladder is frozen.
    """
    model = models()["lattice"]
    pi = enumerate_states(model).probabilities
    n = pi.size
    chains = [joint_chain(model, gs.Tempered(ladder=(0.0, middle, 1.0)))[1] for middle in (0.3, 0.9)]
    far, near = (even @ odd for even, odd in chains)
    for one in (far, near):
        assert np.abs(stationary(one).reshape(-1, n).sum(axis=0) - pi).max() < 1e-10
    rare = np.tile(pi < np.median(pi), n * n)  # of the target, the last of three
    adapted = np.where(rare[:, None], near, far)
    assert np.abs(stationary(adapted).reshape(-1, n).sum(axis=0) - pi).max() > 1e-3


@pytest.mark.parametrize("rule", ["heat-bath", "metropolised"])
def test_exact_draws_stay_in_the_joint_law(rule: str) -> None:
    """The compiled loop, from draws of all rungs, which stand side by side or one after another."""
    model = gs.ising_grid((1, 3), coupling=1.5)
    graph, schedule = gs.graphs.compile_graph(model), gs.Systematic().schedule(gs.graphs.compile_graph(model))
    kernel, lanes = gs.Tempered(gs.Gibbs(rule), ladder=(0.0, 0.3, 1.0)), lanes_for(3)
    layout, ladder = lay_out(model, graph, kernel, None), kernel.start_ladder(graph)
    laws = [enumerate_states(blend(model, b, 1 - b, ladder.log_reference)) for b in ladder.betas]
    parameters = kernel.parameters(graph)
    rng, ends = np.random.default_rng(3), np.zeros((3, 2000, 3), np.int8)
    for c in range(ends.shape[1]):
        start = laws[-1].draw(1, rng)[0]
        state = start_chain(graph, kernel, gs.Systematic(), start, stream(1, c), False)
        memory, tape = state.memory, layout.empty_tape(graph)
        many = memory.states.reshape(3, lanes).T if rule == "heat-bath" else memory.states.reshape(2, 3)
        many[:2] = [law.draw(1, rng)[0] for law in laws[:-1]]
        memory.counts[exchange.BEGUN] = 1
        sweep_chain(parameters, graph.arrays, schedule, state, tape, 4, 3, False, alone())
        ends[:, c] = *many[memory.place[:2]], state.x
    for law, states in zip(laws, ends, strict=True):
        assert law_p_value(law, states)[0] > 1e-6


def test_side_by_side_keeps_u_up_to_date() -> None:
    """From change to change, summed up anew every 64 sweeps: never off by more than rounding."""
    rng = np.random.default_rng(2)
    model = gs.ising(np.triu(rng.normal(size=(12, 12)), 1), rng.normal(size=12))
    graph, kernel = gs.graphs.compile_graph(model), gs.Tempered(ladder=np.linspace(0.0, 1.0, 11))
    layout, scan = lay_out(model, graph, kernel, None), gs.scans.Shuffled()
    state = start_chain(graph, kernel, scan, np.zeros(12), stream(1, 0), True)
    parameters, memory, tape = kernel.parameters(graph), state.memory, layout.empty_tape(graph)
    for sweeps in (1, 5, 60, 200):
        sweep_chain(parameters, graph.arrays, scan.schedule(graph), state, tape, sweeps, 12, True, alone())
        states = memory.states.reshape(12, -1).T[memory.place]
        assert (states[-1] == state.x).all()
        u = [model.log_potential(x) + 12 * np.log(2.0) for x in states]
        assert memory.gain == pytest.approx(u, abs=1e-9)
