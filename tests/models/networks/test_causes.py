"""Noisy nodes as factors: the same numbers as their tables, and as closed forms where tables do not exist."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli.info import describe
from gibbsite.graphs.local import log_potential, weights
from gibbsite.models.networks import building, causes


@pytest.fixture
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let noisy nodes of any size stay without tables."""
    monkeypatch.setattr(building, "MOST_TABLE", 0)
    monkeypatch.setattr(causes, "MOST_TABLE", 0)


def small_network() -> gs.BayesianNetwork:
    rng = np.random.default_rng(1)
    net = gs.BayesianNetwork()
    net.add("a", 2, table=[0.6, 0.4])
    net.add("b", 3, table=[0.2, 0.3, 0.5])
    net.add("c", 2, given=["a"], table=rng.dirichlet([1, 1], 2))
    effects = {"a": {1: [0.2, 0.5, 0.3]}, "b": rng.dirichlet([1, 1, 1], 3), "c": {1: [0.5, 0.5, 0]}}
    net.add("m", 3, table=gs.factors.NoisyMax(effects, leak=[0.9, 0.05, 0.05]))
    net.add("d", ["no", "yes"], table=gs.factors.NoisyOr({"c": 1.0, "m": {1: 0.3, 2: 0.9}}))
    logistic = gs.factors.Logistic({"b": {1: 0.3, 2: -0.9}, "d": 2.0}, intercept=-0.5)
    net.add("l", ["no", "yes"], table=logistic)
    strongest_first = {"d": {"yes": [0.1, 0.2, 0.7]}, "l": {"no": [0.5, 0.3, 0.2]}}
    net.add("e", 3, table=gs.factors.NoisyMax(strongest_first, descending=True))
    return net


def as_tables(net: gs.BayesianNetwork) -> gs.FactorGraph:
    scopes = [((*net.parents(name), name), net.table(name).probabilities) for name in net]
    return gs.FactorGraph({name: net.states(name) for name in net}, scopes, directed=True)


def states(model: gs.FactorGraph) -> Any:
    return (np.array(x) for x in itertools.product(*map(range, model.cards)))


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize(
    "evidence",
    [{}, {"d": "yes"}, {"m": 0}, {"m": 2, "c": 1}, {"e": 0, "a": 1}, {"e": 2}, {"l": "yes", "b": 1}],
    ids=str,
)
def test_given_evidence_the_factors_are_those_of_the_tables(evidence: dict[str, Any]) -> None:
    net = small_network()
    whole, noisy = as_tables(net).observe(evidence), net.to_model().observe(evidence)
    assert any(isinstance(group, causes.CauseFactors) for group in noisy.groups)
    graph = gs.graphs.compile_graph(noisy)
    law, w = gs.exact.enumerate(whole).law, np.zeros(3)
    for x in states(whole):
        codes = x.astype(np.int16)
        assert noisy.log_potential(x) == pytest.approx(whole.log_potential(x), abs=1e-12)
        if graph.kind != "causes":
            continue
        assert log_potential(graph.arrays, codes) + graph.log_offset == pytest.approx(whole.log_potential(x), abs=1e-12)
        for i in range(x.size):
            size, total = weights(graph.arrays, codes, np.uintp(i), w)
            wanted = law[tuple(slice(None) if k == i else x[k] for k in range(x.size))]
            if wanted.sum() > 0:
                assert np.allclose(w[:size] / total, wanted / wanted.sum(), atol=1e-12)
    exact, known = gs.solve_exact(noisy), gs.solve_exact(whole)
    assert exact.log_z == pytest.approx(known.log_z, abs=1e-12)
    assert gs.compare(exact, known).max_abs < 1e-12
    assert gs.solve_exact(noisy, task="MAP").log_potential == pytest.approx(known.log_potential, abs=1e-12)
    assert np.allclose(exact.joint(*noisy.sites[:2]), known.joint(*noisy.sites[:2]), atol=1e-12)


@pytest.mark.usefixtures("no_tables")
def test_impossible_evidence_is_refused() -> None:
    net = gs.BayesianNetwork()
    net.add("a", ["no", "yes"], table=[1.0, 0.0])
    net.add("b", ["no", "yes"], table=gs.factors.NoisyOr({"a": 0.5}))
    with pytest.raises(gs.errors.ModelError, match="impossible"):
        net.observe({"a": "no", "b": "yes"})


def test_random_networks_of_twelve_causes_are_solved_as_enumerated() -> None:
    rng = np.random.default_rng(3)
    for trial in range(4):
        net = gs.BayesianNetwork()
        for k in range(12):
            net.add(f"c{k}", 2, table=rng.dirichlet([1, 1]))
        for name in ("x", "y"):
            chances = {cause: rng.random() for cause in net.nodes[:12]}
            net.add(name, 2, table=gs.factors.NoisyOr(chances, leak=0.1 * trial))
        assert any(isinstance(group, causes.CauseFactors) for group in net.to_model().groups)
        model = net.observe({"x": 1})
        exact, known = gs.solve_exact(model), gs.exact.enumerate(model)
        assert exact.log_z == pytest.approx(known.log_z, abs=1e-12)
        assert gs.compare(exact, known).max_abs < 1e-12


def forty() -> tuple[gs.BayesianNetwork, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    p, q = rng.uniform(0.02, 0.3, 40), rng.uniform(0.05, 0.6, 40)
    net = gs.BayesianNetwork()
    for k in range(40):
        net.add(f"c{k}", ["no", "yes"], table=[1 - p[k], p[k]])
    net.add("effect", ["no", "yes"], table=gs.factors.NoisyOr({f"c{k}": q[k] for k in range(40)}, leak=0.01))
    return net, p, q


def test_forty_causes_have_the_closed_form() -> None:
    net, p, q = forty()
    absent = 0.99 * np.prod(1 - p * q)
    assert gs.solve_exact(net).marginals["effect"]["no"] == pytest.approx(absent, abs=1e-12)
    for k in (0, 7, 39):
        both = {"no": p[k] * absent / (1 - p[k] * q[k]) * (1 - q[k])}  # cause k and this state of the effect
        both["yes"] = p[k] - both["no"]
        for seen, chance in (("no", absent), ("yes", 1 - absent)):
            answer = gs.solve_exact(net.observe({"effect": seen}))
            assert answer.log_z == pytest.approx(np.log(chance), abs=1e-12)
            assert answer.marginals[f"c{k}"]["yes"] == pytest.approx(both[seen] / chance, abs=1e-12)


def test_forty_causes_can_be_sampled_and_refuse_tables_in_a_sentence() -> None:
    net, _, _ = forty()
    model = net.observe({"effect": "yes"})
    exact = gs.solve_exact(model)
    run = gs.sample(model, sweeps=1500, rng=1, progress=False)
    assert run.diagnostics.converged
    errors = np.array([run.mcse[name]["yes"] for name in model.sites])
    found = np.array([run.marginals[name]["yes"] - exact.marginals[name]["yes"] for name in model.sites])
    assert (np.abs(found) < 6.5 * errors + 1e-5).all()  # 40 normal deviates: below 1e-8
    beliefs = gs.belief_propagation(model)
    assert beliefs.exact
    assert gs.compare(beliefs, exact).max_abs < 1e-6
    drawn = gs.sample_weighted(model, draws=20_000, rng=1, progress=False)
    assert gs.compare(drawn, exact).max_abs < 0.02
    best = gs.infer(model, "MAP", seconds=0.5, rng=1, progress=False)
    assert best.assignment["effect"] == "yes"
    assert best.log_potential >= gs.FactorGraph.log_potential(model, dict.fromkeys(model.sites, "no") | {"c0": "yes"})
    with pytest.raises(gs.errors.TooLargeError, match=r"40 parents has a table of 1.1e\+12 entries"):
        gs.mean_field(model)
    with pytest.raises(gs.errors.TooLargeError, match="entries"):
        net.table("effect")


def test_networks_with_wide_nodes_go_through_their_model_and_pickles() -> None:
    net, _, _ = forty()
    assert gs.BayesianNetwork.from_model(net.to_model()) == net
    again = gs.BayesianNetwork.from_model(pickle.loads(pickle.dumps(net.to_model())))  # without what a cache keeps
    given, found = net.noisy("effect"), again.noisy("effect")
    assert isinstance(given, gs.factors.NoisyOr)
    assert isinstance(found, gs.factors.NoisyOr)
    assert found.leak == pytest.approx(given.leak, abs=1e-15)
    for name in given.causes:
        assert found.causes[name]["yes"] == pytest.approx(given.causes[name]["yes"], abs=1e-15)


def test_facts_about_a_model_with_a_wide_node_are_collected() -> None:
    net, _, _ = forty()
    found = describe(net.to_model())
    assert found["graph_kind"] == "causes"
    assert found["exact"]["largest_clique"] == 8
    assert found["degree"]["largest"] == 40
