"""Networks of pyAgrum: with stand-ins that have its methods, and with pyAgrum where installed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import IncompatibleError
from gibbsite.formats import from_pyagrum, to_pyagrum


class Table:
    """What is read of a table: its array, and rows by the states of the parents."""

    def __init__(self, names: tuple[str, ...], values: np.ndarray) -> None:
        self.names, self.values = names, values

    def toarray(self) -> np.ndarray:
        """Return all numbers."""
        return self.values

    def __getitem__(self, codes: dict[str, int]) -> np.ndarray:
        return self.values[tuple(codes[name] for name in self.names[:0:-1])]


class Network:
    """What is read of a BayesNet: the names of a table are the child and its parents, the axes the other way round."""

    labels = ("no", "yes"), ("a", "b", "c")
    tables = (("A",), np.array([0.25, 0.75])), (("B", "A"), np.array([[0.1, 0.3, 0.6], [0.2, 0.3, 0.5]]))

    def nodes(self) -> list[int]:
        """Return the numbers of the variables."""
        return [0, 1]

    def variable(self, node: int) -> Any:
        """Return a variable."""
        return SimpleNamespace(name=lambda: "AB"[node], labels=lambda: self.labels[node])

    def cpt(self, node: int) -> Any:
        """Return a table."""
        names, table = self.tables[node]
        return Table(names, table)


def test_names_states_and_direction_are_kept() -> None:
    model = from_pyagrum(Network())
    assert model.sites == ("A", "B") and model.labels("B") == ("a", "b", "c")
    assert all(group.directed for group in model.groups)
    assert np.isclose(np.exp(model.log_potential({"A": "yes", "B": "c"})), 0.75 * 0.5)


def test_something_else() -> None:
    with pytest.raises(IncompatibleError, match="takes a BayesNet of pyAgrum, got dict"):
        from_pyagrum({})
    with pytest.raises(IncompatibleError, match="pyAgrum holds Bayesian networks"):
        to_pyagrum(gs.ising_grid((2, 2)))


@pytest.mark.parametrize("name", ["asia", "alarm", "child"])
def test_there_and_back(name: str) -> None:
    pytest.importorskip("pyagrum")
    model = gs.example(name)
    again = from_pyagrum(to_pyagrum(model))
    assert again.sites == model.sites
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.integers(model.cards)
        assert again.log_potential(x) == pytest.approx(model.log_potential(x))
    assert again.labels(3) == model.labels(3)


def test_noisy_nodes_are_read() -> None:
    pyagrum = pytest.importorskip("pyagrum")
    given = pyagrum.fastBN("a{no|yes}; b{no|yes}")
    node = given.addNoisyORNet(pyagrum.LabelizedVariable("y", "y", ["no", "yes"]), 0.1)
    given.addWeightedArc(0, node, 0.8)
    given.addWeightedArc(1, node, 0.3)
    net = gs.BayesianNetwork.from_model(from_pyagrum(given))
    wanted = gs.BayesianNetwork()
    for name in ("a", "b"):
        wanted.add(name, ["no", "yes"], table=net.table(name))
    wanted.add("y", ["no", "yes"], table=gs.factors.NoisyOr({"a": 0.8, "b": 0.3}, leak=0.1))
    for labels, row in wanted.table("y").rows():
        key = dict(zip(("a", "b"), labels, strict=True))
        found = net.table("y")[tuple(key[parent] for parent in net.parents("y"))]
        assert list(found.values()) == pytest.approx(row.tolist(), abs=1e-6)
