"""Networks of pgmpy: with stand-ins that have its attributes, and with pgmpy where installed."""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats import from_pgmpy, to_pgmpy
from gibbsite.models import FactorGraph


@dataclass
class Table:
    """What pgmpy's TabularCPD and DiscreteFactor have in common."""

    variables: list[Any]
    values: Any
    state_names: dict[Any, list[Any]]


@dataclass
class Bayes:
    """A directed network."""

    names: list[Any]
    cpds: list[Table] = field(default_factory=list)

    def nodes(self) -> list[Any]:
        """Return the nodes."""
        return self.names

    def get_cpds(self) -> list[Table]:
        """Return the tables."""
        return self.cpds


@dataclass
class Markov:
    """An undirected network."""

    names: list[Any]
    factors: list[Table] = field(default_factory=list)

    def nodes(self) -> list[Any]:
        """Return the nodes."""
        return self.names

    def get_factors(self) -> list[Table]:
        """Return the tables."""
        return self.factors


RAIN, SKY = ["no", "yes"], ["clear", "grey", "dark"]
P_SKY = np.array([0.5, 0.3, 0.2])
P_RAIN = np.array([[1.0, 0.6, 0.1], [0.0, 0.4, 0.9]])


def weather() -> Bayes:
    """Return sky -> rain, the second table listing the sky in another order."""
    turned = [2, 0, 1]
    return Bayes(
        ["rain", "sky"],
        [
            Table(["rain", "sky"], P_RAIN[:, turned], {"rain": RAIN, "sky": [SKY[k] for k in turned]}),
            Table(["sky"], P_SKY, {"sky": SKY}),
        ],
    )


def check_weather(model: FactorGraph) -> None:
    for (r, rain), (s, sky) in itertools.product(enumerate(RAIN), enumerate(SKY)):
        p = P_SKY[s] * P_RAIN[r, s]
        expected = math.log(p) if p else -math.inf
        assert model.log_potential({"rain": rain, "sky": sky}) == pytest.approx(expected)


def test_bayesian_networks_keep_names_states_and_direction() -> None:
    model = from_pgmpy(weather())
    assert model.sites == ("rain", "sky")
    assert model.labels("sky") == ("clear", "grey", "dark")
    assert all(group.directed for group in model.groups)
    pair = next(group for group in model.groups if group.arity == 2)
    assert pair.scopes.tolist() == [[1, 0]], "the child comes last"
    check_weather(model)


def test_markov_networks_have_no_direction() -> None:
    tables = [Table(t.variables, 5.0 * t.values, t.state_names) for t in weather().cpds]
    model = from_pgmpy(Markov(["rain", "sky"], tables))
    assert not any(group.directed for group in model.groups)
    assert model.labels("sky") == ("dark", "clear", "grey"), "the first table decides"
    value = model.log_potential({"rain": "yes", "sky": "dark"})
    assert value == pytest.approx(math.log(25 * 0.2 * 0.9))


def test_names_and_states_of_other_types_become_text() -> None:
    table = Table([("x", 1)], [0.25, 0.75], {("x", 1): [0.5, np.int64(3)]})
    model = from_pgmpy(Bayes([("x", 1)], [table]))
    assert model.sites == ("('x', 1)",)
    assert repr(model.labels(0)) == "('0.5', 3)"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Bayes(["rain", "sky", "wind"], weather().cpds), r"the node 'wind' has no table; add one"),
        (Bayes(["rain", "sky"], weather().cpds[:1]), r"the node 'sky' has no table"),
        (Markov(["rain", "wind"], []), r"the node 'rain' has no table"),
        (
            Bayes(["rain", "sky"], [weather().cpds[0], Table(["sky"], P_SKY, {"sky": ["clear", "grey", "black"]})]),
            r"two tables disagree about the states of the node 'sky': \['dark', 'clear', 'grey'\]",
        ),
        (
            Bayes([1, "1"], [Table([v], [0.5, 0.5], {v: RAIN}) for v in (1, "1")]),
            r"two nodes have the same name as text",
        ),
        (Bayes(["rain"], [Table(["rain"], [0.5, 0.2], {"rain": RAIN})]), r"sums to 0\.7 over"),
        (
            Bayes(["rain"], [Table(["rain"], [0.5, 0.5], {"rain": RAIN})] * 2),
            r"the site 'rain' has two conditional tables",
        ),
    ],
)
def test_bad_networks(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_pgmpy(model)


def test_something_else() -> None:
    with pytest.raises(IncompatibleError, match=r"dict has neither get_cpds\(\) nor get_factors"):
        from_pgmpy({})


def test_the_real_library() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models: Any = pytest.importorskip("pgmpy.models")
        TabularCPD: Any = pytest.importorskip("pgmpy.factors.discrete").TabularCPD
        network = getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork
        real = network([("sky", "rain")])
        turned = weather().cpds[0]
        real.add_cpds(
            TabularCPD("sky", 3, P_SKY[:, None], state_names={"sky": SKY}),
            TabularCPD("rain", 2, turned.values, ["sky"], [3], state_names=turned.state_names),
        )
        plain = network([("sky", "rain")])
        plain.add_cpds(
            TabularCPD("sky", 3, P_SKY[:, None], state_names={"sky": SKY}),
            TabularCPD("rain", 2, P_RAIN, ["sky"], [3], state_names={"rain": RAIN, "sky": SKY}),
        )
        markov = plain.to_markov_model()
    check_weather(from_pgmpy(real))
    check_weather(from_pgmpy(plain))
    check_weather(from_pgmpy(markov))
    assert all(group.directed for group in from_pgmpy(real).groups)
    check_weather(from_pgmpy(to_pgmpy(from_pgmpy(real))))


def test_what_is_made_for_pgmpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in, which keeps what it is given as pgmpy does."""

    class Network(Bayes):
        def __init__(self) -> None:
            super().__init__([])
            self.edges: list[Any] = []
            self.add_nodes_from, self.add_edges_from = self.names.extend, self.edges.extend
            self.add_cpds = self.cpds.append

    def table(child: str, card: int, values: Any, evidence: Any, evidence_card: Any, state_names: Any) -> Table:
        variables = [child, *(evidence or [])]
        return Table(variables, np.reshape(values, [card, *(evidence_card or [])]), state_names)

    monkeypatch.setitem(sys.modules, "pgmpy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pgmpy.models", SimpleNamespace(BayesianNetwork=Network))
    monkeypatch.setitem(sys.modules, "pgmpy.factors", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pgmpy.factors.discrete", SimpleNamespace(TabularCPD=table))
    made = to_pgmpy(from_pgmpy(weather()))
    assert made.edges == [("sky", "rain")]
    check_weather(from_pgmpy(made))
    with pytest.raises(IncompatibleError, match="pgmpy holds Bayesian networks"):
        to_pgmpy(FactorGraph({"a": 2}, [("a", [1, 2])]))
