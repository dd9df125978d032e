"""Bayesian networks and influence diagrams in the NET language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_bif, read_net, write_net
from gibbsite.formats.files import find_lost_names
from gibbsite.formats.net import format_net, parse_net
from gibbsite.formats.parsing.text import Source
from gibbsite.models import FactorGraph, ising_grid
from tests.data import network_files
from tests.formats.models import check_groups, energies, networks


def parse(text: str) -> FactorGraph:
    return parse_net(Source("f", text.encode()))


A = 'node A { states = ("t" "f"); }'
B = 'node B { states = ("t" "f"); }'
P_A = "potential (A) { data = (0.25 0.75); }"
P_B = "potential (B | A) { data = ((0.1 0.9) (0.2 0.8)); }"
NETWORK = f"net {{ }}\n{A}\n{B}\n{P_A}\n{P_B}"


def test_the_child_is_fastest() -> None:
    model = parse(NETWORK)
    assert model.sites == ("A", "B")
    assert np.allclose(np.exp(energies(model)), [0.025, 0.225, 0.15, 0.6])
    assert all(group.directed for group in model.groups)


def test_comments_texts_and_attributes() -> None:
    text = """% a comment { ;
net { node_size = (80 40); label = "odd; one % not a comment }"; }
discrete node A { states = (<5 "5 to 9" ">=10" ); % states
  position = (110 301); label = "\\"years\\""; HR_Desc = "a; b"; }
potential ( A | ) { data = ( .2 % low
  0.3 0.5 ); experience = (10); }"""
    model = parse(text)
    assert model.labels(0) == ("<5", "5 to 9", ">=10")
    assert np.allclose(np.exp(energies(model)), [0.2, 0.3, 0.5])


def test_no_data_means_equal_probabilities() -> None:
    assert np.allclose(np.exp(energies(parse(f"{A} potential (A) {{ }}"))), [0.5, 0.5])


def test_influence_diagrams() -> None:
    text = (
        f'{A} decision D {{ states = ("go" "stay"); }} utility U {{ }} {P_A}\n'
        "potential (U | A D) { data = ((1 -2) (3 4)); }"
    )
    with pytest.warns(UserWarning, match="the nodes D, U have no probabilities and are left out"):
        assert parse(text).sites == ("A",)
    text += f"{B} potential (B | D) {{ data = ((1 0) (0.5 0.5)); }}"
    with pytest.warns(UserWarning) as caught:
        model = parse(text)
    assert "the nodes D are decisions and get equal probabilities; observe them" in str(caught[1].message)
    given = model.observe({"D": "stay"})
    assert np.isclose(given.log_potential({"A": "t", "B": "f"}), np.log(0.25 * 0.5 * 0.5))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("net {}", (0, 0), "the file has no chance nodes"),
        ("nonsense", (1, 1), "expected 'net', 'node' or 'potential', found 'nonsense'"),
        ("net { x = 1 }", (1, 9), "expected ';' after the value of this attribute"),
        ("continuous node A { }", (1, 1), "this node is continuous"),
        ("node A { }\npotential (A) { data = (1); }", (2, 1), "the node 'A' has no states"),
        (f"{A}\n{A}", (2, 1), "declared twice"),
        (A, (1, 1), "the node 'A' has no probabilities"),
        (f"{A}\n{P_A}\n{P_A}", (3, 1), "two potentials"),
        (f"{A}\n{P_B}", (2, 12), "there is no node 'B'"),
        (f"{A} {B}\npotential (A B) {{ }}", (2, 14), r"expected '|' or ')' after one node"),
        (f"{A}\n{P_A.replace('0.75', 'x')}", (2, 30), "expected numbers in parentheses and ';', found 'x'"),
        (f"{A}\n{P_A.replace('0.75', '')}", (2, 1), "expected 2 numbers, found 1"),
        (f"{A}\n{P_A.replace('0.75', '1.2.3')}", (2, 30), "expected a probability, found '1.2.3'"),
        (f"{A}\n{P_A.replace('0.25', '-1')}", (2, 25), "expected a probability, found '-1'"),
        (f"{A}\n{P_A.replace('0.25', '0.5')}", (2, 1), "row 0 of the table sums to 1.25"),
        (f"{A}\n{P_A.replace(');', '));')}", (2, 23), "the parentheses of these numbers do not match"),
        (f"{A}\npotential (A) {{ model_data = Normal (1); }}", (2, 17), "given by an expression"),
        (f"{A} {B}\n{P_B}\npotential (A | B) {{ data = (1 0 1 0); }}", (3, 1), "is its own ancestor"),
    ],
)
def test_what_is_wrong_and_where(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.line or 0, caught.value.column or 0) == place


@settings(deadline=None)
@given(networks())
def test_written_and_read_back(model: FactorGraph) -> None:
    again = parse(format_net(model))
    check_groups(again)
    if not find_lost_names(model, "a.net"):
        assert again.sites == model.sites
        assert [again.labels(k) for k in range(again.n_sites)] == [model.labels(k) for k in range(model.n_sites)]
    assert np.array_equal(energies(again), energies(model))


@pytest.mark.parametrize("path", network_files().values(), ids=network_files())
def test_real_networks(path: Path, tmp_path: Path) -> None:
    model = read_bif(path)
    write_net(model, tmp_path / "a.net.gz")
    again = read_net(tmp_path / "a.net.gz")
    assert (again.sites == model.sites) == (not find_lost_names(model, "a.net"))
    assert [again.labels(k) for k in range(again.n_sites)] == [model.labels(k) for k in range(model.n_sites)]
    x = np.zeros(model.n_sites, np.int32)
    assert again.log_potential(x) == pytest.approx(model.log_potential(x))
    assert sum(group.size for group in again.groups) == model.n_sites


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="NET holds Bayesian networks"):
        format_net(ising_grid((3, 3)))
