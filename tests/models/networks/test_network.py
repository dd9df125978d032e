"""Bayesian networks that are written node by node."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gibbsite as gs


def grass() -> gs.BayesianNetwork:
    net = gs.BayesianNetwork()
    net.add("rain", ["no", "yes"], table=[0.8, 0.2])
    net.add("sprinkler", ["off", "on"], given=["rain"], table={"no": [0.6, 0.4], "yes": {"on": 0.01, "off": 0.99}})
    net.add(
        "grass",
        ["dry", "wet"],
        given=["rain", "sprinkler"],
        table={
            ("no", "off"): [1, 0],
            ("no", "on"): [0.1, 0.9],
            ("yes", "off"): [0.2, 0.8],
            ("yes", "on"): [0.01, 0.99],
        },
    )
    return net


def test_the_model_is_that_of_the_same_tables_written_by_position() -> None:
    given = gs.FactorGraph(
        {"rain": ["no", "yes"], "sprinkler": ["off", "on"], "grass": ["dry", "wet"]},
        [
            ("rain", [0.8, 0.2]),
            (("rain", "sprinkler"), [[0.6, 0.4], [0.99, 0.01]]),
            (("rain", "sprinkler", "grass"), [[[1, 0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]]),
        ],
        directed=True,
    )
    assert grass().to_model().digest == given.digest
    answer = gs.solve_exact(grass().observe({"grass": "wet"}))
    assert answer.marginals["rain"]["yes"] == pytest.approx(0.16038 / 0.44838, abs=1e-12)  # by hand


def test_all_functions_take_a_network(tmp_path: object) -> None:
    net = grass()
    assert gs.infer(net).marginals["grass"]["wet"] == pytest.approx(0.44838, abs=1e-12)
    assert gs.infer(model=net, task="PR").log_z == pytest.approx(0.0, abs=1e-12)
    assert gs.exact.enumerate(net).marginals["grass"]["wet"] == pytest.approx(0.44838, abs=1e-12)
    run = gs.sample(net, sweeps=20, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False))
    assert set(run.marginals) == {"rain", "sprinkler", "grass"}
    assert gs.belief_propagation(net).marginals["rain"]["yes"] == pytest.approx(0.2, abs=1e-6)
    assert gs.graphs.compile_graph(net).kind == "table"
    assert gs.sample_weighted(net, draws=2000, rng=1).marginals["rain"]["yes"] == pytest.approx(0.2, abs=0.1)
    assert gs.formats.to_networkx(net).number_of_edges() == 3
    assert gs.models.Model  # networks are no models
    assert not isinstance(net, gs.Model)


def test_a_changed_network_has_another_model_and_old_models_stay() -> None:
    net = grass()
    before = net.to_model()
    assert net.to_model() is before
    net.set_table("rain", [0.5, 0.5])
    assert net.to_model() is not before
    assert gs.solve_exact(before).marginals["rain"]["yes"] == pytest.approx(0.2)
    assert gs.solve_exact(net).marginals["rain"]["yes"] == pytest.approx(0.5)
    net.set_table("grass", [[0.9, 0.1], [0.3, 0.7]], given=["sprinkler"])
    assert net.parents("grass") == ("sprinkler",)
    with pytest.raises(gs.errors.ModelError, match="has the children 'sprinkler'; remove them first"):
        net.remove("rain")
    net.remove("grass")
    assert net.nodes == ("rain", "sprinkler")
    assert "grass" not in net
    net.rename("rain", "shower")
    assert net.edges == (("shower", "sprinkler"),)
    assert net.table("sprinkler").given == ("shower",)


def test_networks_are_copied_compared_and_pickled() -> None:
    net = grass()
    other = pickle.loads(pickle.dumps(net))
    assert other == net
    assert other == net.copy()
    assert gs.BayesianNetwork.from_model(net.to_model()) == net
    other.set_table("rain", [0.7, 0.3])
    assert other != net
    assert len(net) == 3
    assert list(net) == ["rain", "sprinkler", "grass"]
    assert repr(net) == "BayesianNetwork(3 nodes, 3 edges)"
    assert "<td" in net._repr_html_()


@pytest.mark.parametrize("name", ["asia", "child", "alarm"])
def test_networks_of_files_come_back(name: str, tmp_path: object) -> None:
    model = gs.example(name)
    net = gs.BayesianNetwork.from_model(model)
    assert net.to_model() is model
    assert net.copy().to_model().sites == model.sites
    path = f"{tmp_path}/{name}.bif"
    net.write(path)
    again = gs.BayesianNetwork.read(path)
    assert again.nodes == net.nodes
    for node in net:
        assert np.allclose(again.table(node), net.table(node), rtol=1e-15)


def test_intervention_cuts_the_parents_off() -> None:
    net = grass()
    forced = net.intervene({"sprinkler": "on"})
    assert forced.parents("sprinkler") == ()
    assert net.parents("sprinkler") == ("rain",)
    law = gs.solve_exact(forced).marginals
    assert law["rain"]["yes"] == pytest.approx(0.2)  # seeing would change it
    assert law["grass"]["wet"] == pytest.approx(0.8 * 0.9 + 0.2 * 0.99)
    soft = gs.solve_exact(net.intervene({"sprinkler": [0.5, 0.5]})).marginals
    assert soft["sprinkler"]["on"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda net: net.add("rain", 2, table=[1, 0]), "'rain' is already in the network"),
        (lambda net: net.add("x", ["a", "a"], table=[1, 0]), "'x' has the state label 'a' twice"),
        (lambda net: net.add("x", 2, given=["ran"], table=[1, 0]), "parent 'ran' of 'x' .* did you mean 'rain'"),
        (lambda net: net.add("x", 2, given=["x"], table=[1, 0]), "given as its own parent"),
        (lambda net: net.add("x", 2, given=["rain", "rain"], table=[1, 0]), "has the parent 'rain' twice"),
        (lambda net: net.add("x", 2, table=[0.5, 0.6]), "the table of 'x' sums to 1.1; each row sums to one"),
        (lambda net: net.add("x", 2, table=[1.5, -0.5]), "has -0.5, which is no probability, at x=1"),
        (lambda net: net.add("x", 2, table=[np.nan, 1]), "misses a number at x=0"),
        (lambda net: net.add("x", 2, table="ab"), "must be real numbers"),
        (lambda net: net.add("x", 2, given="rain", table={"no": [1, 0]}), "'x' has no row at rain='yes'"),
        (
            lambda net: net.add("x", 2, given="rain", table={"no": [1, 0], "yes": [0.3, 0.3]}),
            "the table of 'x' sums to 0.6 at rain='yes'",
        ),
        (lambda net: net.add("x", 2, given="rain", table={"nein": [1, 0]}), "'rain' has no state 'nein'"),
        (lambda net: net.add("x", 2, given="rain", table={"no": [1, 0, 0]}), "has 3 numbers; it has 2 states"),
        (lambda net: net.add("x", 2, given="rain", table={"no": {0: 1}}), "has no probability of the state 1"),
        (lambda net: net.add("x", 2, given="rain", table=[[1, 0, 0], [0, 1, 0]]), "has shape .2, 3., expected .2, 2."),
        (lambda net: net.add("x", 3, given="rain", table=np.ones((3, 2)) / 3), "transpose it"),
        (lambda net: net.add("x", 2, given="rain", table=lambda rain: 0.5), "gives 0.5 at rain='no'"),
        (lambda net: net.add("x", 2, given="rain", table=lambda rain: 1 / 0), "fails at rain='no': ZeroDivisionError"),
        (lambda net: net.add("x", 2, given="rain", table=lambda rain: "wet"), "site 'x' has no state 'wet'"),
        (lambda net: net.set_table("rain", [[1, 0], [0, 1]], given="grass"), "'rain' -> .*'grass' -> |'grass' -> "),
        (lambda net: net.table("ran"), "node 'ran' is unknown; did you mean 'rain'"),
        (lambda net: net.d_separated("rain", "rain"), "'rain' is in two of the three sets"),
        (lambda net: net.intervene({"rain": "maybe"}), "no state 'maybe'"),
        (lambda net: net.add("x", 2, given=["rain"], table=gs.factors.NoisyOr({"grass": 1.0})), "its parents are"),
    ],
)
def test_wrong_nodes_are_refused_in_a_sentence(change: object, message: str) -> None:
    net = grass()
    with pytest.raises(gs.errors.ModelError, match=message):
        change(net)  # type: ignore[operator]
    assert net == grass()


def test_a_node_without_a_table_has_no_model_yet() -> None:
    net = gs.BayesianNetwork()
    net.add("rain", ["no", "yes"])
    assert not net.has_table("rain")
    with pytest.raises(gs.errors.ModelError, match="'rain' have no table yet"):
        gs.infer(net)
    net.set_table("rain", [0.5, 0.5])
    assert net.has_table("rain")


def test_models_that_are_no_networks_are_refused() -> None:
    with pytest.raises(gs.errors.IncompatibleError, match="not a Bayesian network"):
        gs.BayesianNetwork.from_model(gs.ising_grid((2, 2)))
    with pytest.raises(gs.errors.IncompatibleError, match="'smoke' is observed"):
        gs.BayesianNetwork.from_model(gs.example("asia").observe({"smoke": "yes"}))
