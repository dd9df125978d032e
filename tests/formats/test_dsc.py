"""Bayesian networks in DSC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_bif, read_dsc, write_dsc
from gibbsite.formats.dsc import format_dsc, parse_dsc
from gibbsite.formats.files import find_lost_names
from gibbsite.formats.parsing.text import Source
from gibbsite.models import FactorGraph, ising_grid
from tests.data import network_files
from tests.formats.models import check_groups, energies, networks


def parse(text: str) -> FactorGraph:
    return parse_dsc(Source("f", text.encode()))


A = 'node A { type : discrete[2] = { "t", "f" }; }'
B = 'node B\n{ name: "b: B"; type: discrete [ 2 ] =\n { "t", "f" };\n position: (207, 95);\n}'
P_A = "probability ( A ) { 0.25, 0.75; }"
P_B = "probability(B | A)\n{\n (0): 0.1, 0.9;\n (1) : 0.2, 0.8; }"
NETWORK = f'belief network "x"\n{A}\n{B}\n{P_A}\n{P_B}'


def test_rows_are_numbered_by_parent_states() -> None:
    model = parse(NETWORK)
    assert model.sites == ("A", "B")
    assert np.allclose(np.exp(energies(model)), [0.025, 0.225, 0.15, 0.6])
    assert all(group.directed for group in model.groups)
    turned = NETWORK.replace("(0): 0.1, 0.9;\n (1) : 0.2, 0.8;", "(1): 0.2, 0.8; // last\n default: 0.1, 0.9;")
    assert parse(turned).digest == model.digest


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("belief network", (1, 15), "the file has no nodes"),
        ("belief x", (1, 8), "expected 'network' after 'belief', found 'x'"),
        ("nonsense", (1, 1), "expected 'belief network', 'node' or 'probability', found 'nonsense'"),
        ("node A { type: continuous; }", (1, 16), "must be 'discrete'"),
        ("node A { }", (1, 1), "has no states"),
        (A.replace("[2]", "[3]"), (1, 26), "3 states are declared, but 2 are listed"),
        (A.replace('"f"', '"t"'), (1, 26), "two states of the same name"),
        (f"{A}\n{A}", (2, 1), "declared twice"),
        (A, (1, 1), "the node 'A' has no probability block"),
        (f"{A}\n{P_A}\n{P_A}", (3, 1), "two probability blocks"),
        (f"{A}\n{P_A}\n{P_B}", (3, 13), "there is no variable 'B'"),
        (f"{A}\n{P_A.replace('0.75', '')}", (2, 21), "expected 2 numbers, found 1"),
        (f"{A}\n{P_A.replace('0.75', 'x')}", (2, 27), "expected a number or ';', found 'x'"),
        (f"{A}\n{P_A.replace('0.25', '-1')}", (2, 21), "expected a probability, found '-1'"),
        (f"{A}\n{P_A.replace('0.25', '0.5')}", (2, 21), "sum to 1.25; expected 1"),
        (f"{A}\n{P_A[:20]}", (2, 21), "expected a row of probabilities or '}', found the end of the file"),
        (NETWORK.replace("(1)", "(2)"), (12, 2), "expected the number of a state, found '2'"),
        (NETWORK.replace("(1)", "(t)"), (12, 2), "expected the number of a state, found 't'"),
        (NETWORK.replace("(1)", "(0)"), (12, 2), "these parent states have a row already"),
        (NETWORK.replace("(1)", "(1, 0)"), (12, 2), "expected 1 states, found 2"),
        (NETWORK.replace("(1) : 0.2, 0.8;", ""), (9, 1), "expected a row for (f), or a default"),
    ],
)
def test_what_is_wrong_and_where(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == place


@settings(deadline=None)
@given(networks())
def test_written_and_read_back(model: FactorGraph) -> None:
    again = parse(format_dsc(model))
    check_groups(again)
    if not find_lost_names(model, "a.dsc"):
        assert again.digest == model.digest
    assert np.array_equal(energies(again), energies(model))


@pytest.mark.parametrize("path", network_files().values(), ids=network_files())
def test_real_networks(path: Path, tmp_path: Path) -> None:
    model = read_bif(path)
    write_dsc(model, tmp_path / "a.dsc")
    again = read_dsc(tmp_path / "a.dsc")
    assert (again.digest == model.digest) == (not find_lost_names(model, "a.dsc"))
    assert [again.labels(k) for k in range(again.n_sites)] == [model.labels(k) for k in range(model.n_sites)]


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="DSC holds Bayesian networks"):
        format_dsc(ising_grid((3, 3)))
