"""Bayesian networks and influence diagrams in XDSL."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import gibbsite as gs
from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_bif, read_xdsl, write_xdsl
from gibbsite.formats.files import find_lost_names
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.xdsl import format_xdsl, parse_xdsl
from gibbsite.models import FactorGraph, ising_grid
from tests.data import network_files
from tests.formats.models import check_groups, energies, networks


def parse(*nodes: str) -> FactorGraph:
    return parse_xdsl(Source("f", ("<smile>\n<nodes>\n" + "\n".join(nodes) + "\n</nodes>\n</smile>").encode()))


def states(*names: str) -> str:
    return "".join(f'<state id="{name}"/>' for name in names)


def cpt(name: str, numbers: str, parents: str = "", kind: str = "cpt") -> str:
    given = f"<parents>{parents}</parents>" if parents else ""
    return f'<{kind} id="{name}">{states("t", "f")}{given}<probabilities>{numbers}</probabilities></{kind}>'


A, B = cpt("A", "0.25 0.75"), cpt("B", "0.1 0.9 0.2 0.8", "A")


def table(model: FactorGraph, name: str) -> np.ndarray:
    """Return the conditional table of a site."""
    for group in model.groups:
        for k, scope in enumerate(group.scopes):
            if model.sites[scope[-1]] == name:
                return np.exp(group.log_tables(model.cards)[k])
    raise AssertionError(name)


def test_the_child_is_fastest() -> None:
    model = parse(A, B)
    assert model.sites == ("A", "B")
    assert np.allclose(np.exp(energies(model)), [0.025, 0.225, 0.15, 0.6])
    assert all(group.directed for group in model.groups)


def test_nodes_may_come_before_their_parents() -> None:
    assert np.allclose(np.exp(energies(parse(B, A))), [0.025, 0.15, 0.225, 0.6])


def test_a_noisy_maximum_is_the_strongest_of_independent_effects() -> None:
    """The table equals the sum over all effects, with the maximum of each combination of them."""
    rng = np.random.default_rng(1)
    cards, width = (2, 3), 3
    effects = [rng.dirichlet(np.ones(width), card) for card in cards]
    for each in effects:
        each[-1] = [0, 0, 1]
    leak = rng.dirichlet(np.ones(width))
    numbers = " ".join(repr(float(x)) for each in (*effects, leak) for x in np.ravel(each))
    parents = [
        f'<cpt id="P{k}">{states(*"abc"[:card])}<probabilities>{" ".join(["1"] + ["0"] * (card - 1))}</probabilities></cpt>'
        for k, card in enumerate(cards)
    ]
    child = (
        f'<noisymax id="C">{states("high", "low", "none")}<parents>P0 P1</parents>'
        f"<strengths>0 1 0 1 2</strengths><parameters>{numbers}</parameters></noisymax>"
    )
    expected = np.zeros((*cards, width))
    for a, b in itertools.product(*map(range, cards)):
        for x, y, z in itertools.product(range(width), repeat=3):
            expected[a, b, min(x, y, z)] += effects[0][a, x] * effects[1][b, y] * leak[z]
    assert np.allclose(table(parse(*parents, child), "C"), expected, atol=1e-14)


def test_strengths_say_which_state_has_no_effect() -> None:
    parents = (cpt("P", "0.5 0.5"),)

    def child(strengths: str, parameters: str) -> str:
        return (
            f'<noisymax id="C">{states("t", "f")}<parents>P</parents><strengths>{strengths}</strengths>'
            f"<parameters>{parameters} 0 1</parameters></noisymax>"
        )

    for parameters in ("0.8 0.2 0 1", "0 1 0.8 0.2"):
        # the second state is the strongest, whatever the order of the columns
        assert np.allclose(table(parse(*parents, child("1 0", parameters)), "C"), [[0, 1], [0.8, 0.2]])
    assert np.allclose(table(parse(*parents, child("0 1", "0.8 0.2 0 1")), "C"), [[0.8, 0.2], [0, 1]])
    with pytest.raises(FormatError, match="leave open"):
        parse(*parents, child("1 0", "0.8 0.2 0.1 0.9"))


def test_deterministic_nodes() -> None:
    both = (
        f'<deterministic id="C">{states("t", "f")}<parents>A B</parents>'
        "<resultingstates>t f f f</resultingstates></deterministic>"
    )
    assert table(parse(A, B, both), "C").tolist() == [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]


DECISION = f'<decision id="D">{states("go", "stay")}</decision>'
UTILITY = '<utility id="U"><parents>A D</parents><utilities>1 2 3 4</utilities></utility>'


def test_what_has_no_probabilities_is_left_out() -> None:
    with pytest.warns(UserWarning, match="f: the nodes D, U have no probabilities and are left out"):
        model = parse(A, DECISION, UTILITY)
    assert model.sites == ("A",)


def test_decisions_that_chance_depends_on_are_to_be_observed() -> None:
    with pytest.warns(UserWarning) as caught:
        model = parse(A, DECISION, cpt("B", "1 0 0.5 0.5", "D"), UTILITY)
    assert [str(each.message) for each in caught] == [
        "f: the nodes U have no probabilities and are left out.",
        "f: the nodes D are decisions and get equal probabilities; observe them.",
    ]
    given = model.observe({"D": "stay"})
    assert np.isclose(given.log_potential({"A": "t", "B": "f"}), np.log(0.25 * 0.5 * 0.5))


MANY = "".join(cpt(f"P{k}", "0.5 0.5") + "\n" for k in range(23))
NOISY = (
    f'<noisymax id="C">{states("t", "f")}<parents>{" ".join(f"P{k}" for k in range(23))}</parents>'
    f"<parameters>{'0.5 0.5 0 1 ' * 23} 0 1</parameters></noisymax>"
)


@pytest.mark.parametrize(
    ("nodes", "line", "message"),
    [
        ([], 0, "the file has no chance nodes"),
        (['<equation id="A"/>'], 3, "the node 'A' is of type 'equation'; expected cpt"),
        (["<cpt/>"], 3, "expected a node with an attribute id"),
        (['<cpt id="A"><state/></cpt>'], 3, "expected a state with an attribute id"),
        (['<cpt id="A"><probabilities>1</probabilities></cpt>'], 3, "has no states"),
        ([A.replace('"f"', '"t"')], 3, "two states of the same name"),
        ([A, A], 4, "the node 'A' is declared twice"),
        ([A, B.replace(">A<", ">Z<")], 4, "the parent 'Z' of the node 'B' is not a node of this file"),
        ([A, B.replace(">A<", ">A A<")], 4, "has a parent twice, or itself"),
        ([A, DECISION, UTILITY, cpt("B", "1 0", "U")], 6, "the parent 'U' of the chance node 'B' is a utility"),
        ([A.replace("0.75", "")], 3, "expected 2 numbers, found 1"),
        ([A.replace(" 0.75", "\nx")], 4, "expected a number, found 'x'"),
        ([A.replace("0.25", "-1")], 3, "expected probabilities, found -1"),
        ([A.replace("0.25", "1e400")], 3, "expected probabilities, found inf"),
        ([A.replace("0.25", "0.5")], 3, "row 0 of the table sums to 1.25"),
        ([A.replace("0.25 0.75", "")], 3, "expected 2 numbers, found 0"),
        ([cpt("A", "1 0 1 0", "B"), cpt("B", "1 0 1 0", "A")], 3, "is its own ancestor"),
        ([A, NOISY.replace(" ".join(f"P{k}" for k in range(23)), "A")], 4, "expected 6 numbers, found 94"),
        (
            [f'<deterministic id="A">{states("t", "f")}<resultingstates>x</resultingstates></deterministic>'],
            3,
            "the node 'A' has no state 'x'",
        ),
        (
            [f'<deterministic id="A">{states("t", "f")}<resultingstates>t t</resultingstates></deterministic>'],
            3,
            "expected 1 states, found 2",
        ),
    ],
)
def test_what_is_wrong_and_where(nodes: list[str], line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(*nodes)
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line or 0) == ("f", line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<BIF></BIF>", "expected the element smile, found bif"),
        ("<smile></smile>", "expected one element NODES"),
        ("<smile><nodes/><dynamic numslices='5'/></smile>", "dynamic network"),
        ("<!DOCTYPE smile [<!ENTITY a 'b'>]><smile/>", "expected no entities"),
    ],
)
def test_what_is_no_static_network(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_xdsl(Source("f", text.encode()))


@settings(deadline=None)
@given(networks())
def test_written_and_read_back(model: FactorGraph) -> None:
    again = parse_xdsl(Source("f", format_xdsl(model).encode()))
    check_groups(again)
    # parents come first in the file, and odd names are numbered
    assert sorted(energies(again)) == pytest.approx(sorted(energies(model)))
    assert sorted(again.cards) == sorted(model.cards)


@pytest.mark.parametrize("path", network_files().values(), ids=network_files())
def test_real_networks(path: Path, tmp_path: Path) -> None:
    model = read_bif(path)
    write_xdsl(model, tmp_path / "a.xdsl")
    again = read_xdsl(tmp_path / "a.xdsl")
    if find_lost_names(model, "a.xdsl"):
        assert len(again.sites) == len(model.sites)
        return
    assert sorted(again.sites) == sorted(model.sites)
    for name in model.sites:
        assert again.labels(again.index(name)) == model.labels(model.index(name))
        assert np.array_equal(table(again, name), table(model, name))


def test_odd_names_are_numbered() -> None:
    model = FactorGraph({"a b": ["<5", ">=5"]}, [("a b", [0.25, 0.75])], directed=True)
    again = parse_xdsl(Source("f", format_xdsl(model).encode()))
    assert (again.sites, again.labels(0)) == (("Node0",), ("State0", "State1"))
    assert "hold no names: sites and states are numbered from 0" in find_lost_names(model, "a.xdsl")


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="XDSL holds Bayesian networks"):
        format_xdsl(ising_grid((3, 3)))


def test_a_noisy_node_of_many_parents_is_read_without_a_table() -> None:
    model = parse(MANY.strip(), NOISY)
    net = gs.BayesianNetwork.from_model(model)
    assert isinstance(net.noisy(net.nodes[-1]), gs.factors.NoisyOr | gs.factors.NoisyMax)
    assert gs.solve_exact(model, task="PR").log_z == pytest.approx(0.0, abs=1e-12)


def test_noisy_nodes_of_networks_are_kept(tmp_path: Path) -> None:
    net = gs.BayesianNetwork()
    for k in range(20):
        net.add(f"c{k}", ["no", "yes"], table=[0.9, 0.1])
    net.add("level", ["none", "some", "much"], table=[0.5, 0.3, 0.2])
    net.add("wide", ["no", "yes"], table=gs.factors.NoisyOr({f"c{k}": 0.02 * k for k in range(20)}, leak=0.1))
    effects = {"wide": {"yes": [0.1, 0.3, 0.6]}, "level": {"some": [0.5, 0.25, 0.25], "much": [0.0, 0.5, 0.5]}}
    net.add("worst", ["ok", "bad", "awful"], table=gs.factors.NoisyMax(effects, leak=[0.9, 0.1, 0.0]))
    net.add("first", ["high", "low"], table=gs.factors.NoisyOr({"worst": {"awful": 0.5}}, descending=True))
    net.add("scored", ["no", "yes"], table=gs.factors.Logistic({"worst": {"bad": 1.0, "awful": 2.0}}))  # a table
    net.write(tmp_path / "net.xdsl")
    assert (tmp_path / "net.xdsl").read_text().count("<noisymax") == 3
    again = gs.BayesianNetwork.read(tmp_path / "net.xdsl")
    assert {*again.nodes} == {*net.nodes}
    assert again.noisy("scored") is None
    assert again.states("worst") == ("awful", "bad", "ok")  # the strongest first
    for name in ("worst", "first", "scored", "level"):
        for labels, row in net.table(name).rows():
            key = dict(zip(net.parents(name), labels, strict=True))
            found = again.table(name)[tuple(key[parent] for parent in again.parents(name))]
            assert [found[state] for state in net.states(name)] == pytest.approx(row.tolist(), abs=1e-12)
    for evidence in ({"scored": "yes"}, {"first": "high", "c3": "yes"}):
        mine, others = gs.solve_exact(net.observe(evidence)), gs.solve_exact(again.observe(evidence))
        assert mine.log_z == pytest.approx(others.log_z, abs=1e-12)
        assert mine.marginals["wide"]["yes"] == pytest.approx(others.marginals["wide"]["yes"], abs=1e-12)
