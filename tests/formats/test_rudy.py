"""Max-cut problems: the log-potential is twice the cut, of published problems too."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import from_ising, read_model, read_rudy, write_model
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.rudy import format_rudy, parse_rudy
from gibbsite.models import FactorGraph, ising, potts
from tests.data import DATA, needs_data

PHYSICS = DATA / "physics"


def parse(text: str) -> FactorGraph:
    return parse_rudy(Source("f", text.encode()))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, dict[tuple[int, int], float]]:
    n = draw(st.integers(0, 6))
    pairs = [pair for pair in itertools.combinations(range(1, n + 1), 2) if draw(st.booleans())]
    weight = st.sampled_from([-2.0, -0.1, 0.0, 1.0, 1e-9, 12345678.5])
    return n, {(pair if draw(st.booleans()) else pair[::-1]): draw(weight) for pair in draw(st.permutations(pairs))}


@settings(deadline=None, max_examples=60)
@given(graphs(), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_log_potential_is_twice_the_cut(graph: tuple[int, dict[tuple[int, int], float]], beta: float) -> None:
    n, edges = graph
    text = f"{n} {len(edges)}\n" + "".join(f"{i} {j} {w!r}\n" for (i, j), w in edges.items())
    model = parse_rudy(Source("f", text.encode()), beta=beta)
    assert model.sites == tuple(str(k) for k in range(1, n + 1))
    for spins in itertools.product((-1, 1), repeat=n):
        cut = sum(w for (i, j), w in edges.items() if spins[i - 1] != spins[j - 1])
        state = dict(zip(model.sites, spins, strict=True))
        assert model.log_potential(state) == pytest.approx(2 * beta * cut, abs=1e-6)
    again = parse_rudy(Source("f", format_rudy(model, beta=beta).encode()), beta=beta)
    np.testing.assert_allclose(again.group("couplings").weights, model.group("couplings").weights, rtol=1e-15)
    assert again.group("couplings").scopes.tolist() == model.group("couplings").scopes.tolist()


def test_weights_may_be_left_out_and_comments_are_read_over() -> None:
    assert parse("# a triangle\n3 3\n1 2\n2 3 // last\n\n3 1").digest == parse("3 3\n1 2 1\n2 3 1\n3 1 1").digest


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("3\n1 2 1", 1, 1, "expected the numbers of vertices and edges on this line, and nothing else"),
        ("3 1 1\n1 2 1", 1, 1, "expected the numbers of vertices and edges"),
        ("3 x\n1 2 1", 1, 3, "expected a number, found 'x'"),
        ("3 -1\n1 2 1", 1, 3, "expected the number of edges"),
        ("2.5 1\n1 2 1", 1, 1, "expected the number of vertices, a whole number"),
        ("1000000000 1\n1 2 1", 1, 1, "the number of vertices, a whole number from 0 to 100002"),
        ("3 2\n1 2 1", 2, 6, "2 edges are declared, but 1 are listed"),
        ("3 1\n1 2 1\n2 3 1", 3, 1, "1 edges are declared, but 2 are listed"),
        ("3 2\n1 2 1\n2 3", 3, 1, "expected three numbers on this line: two vertices and a weight"),
        ("3 2\n1 2 1 4\n2 3 1", 2, 1, "expected three numbers"),
        ("3 1\n0 2 1", 2, 1, "expected a vertex from 1 to 3, or a finite weight, found 0"),
        ("3 1\n1 4 1", 2, 3, "expected a vertex from 1 to 3"),
        ("3 1\n1 1.5 1", 2, 3, "expected a vertex from 1 to 3"),
        ("3 1\n1 2 1e400", 2, 5, "a finite weight, found inf"),
        ("3 1\n2 2 1", 2, 1, "joins a vertex with itself"),
        ("3 3\n1 2 1\n2 3 1\n2 1 1", 4, 1, "this edge is listed before; list each edge once"),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("f", line, column)


def test_weights_that_add_up_to_infinity_are_refused() -> None:
    with pytest.raises(FormatError, match="the sum of these weights is too large"):
        parse("3 2\n1 2 1e308\n2 3 1e308")


def test_what_a_file_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "a.rudy"
    with pytest.raises(IncompatibleError, match=r"the site 'b' has a field of -0\.5; .* write \.coo or \.bqm"):
        write_model(from_ising({"a": 0.0, "b": 0.5}, {("a", "b"): 1.0}), path)
    with pytest.raises(IncompatibleError, match="has 3 states"):
        write_model(potts(([0], [1], 1.0), 3), path)
    write_model(potts(([0, 1], [1, 2], [1.0, -4.0]), 2), path)
    assert path.read_text() == "3 2\n1 2 -0.5\n2 3 2\n"
    write_model(ising(([0], [1], 1.0), sites=["a", "b"]), "-", format="edges")
    assert read_rudy(path).n_sites == 3


@needs_data("physics/gset")
def test_published_cuts() -> None:
    known = json.loads((PHYSICS / "gset" / "reference.json").read_text())
    for name, facts in known.items():
        model = read_model(PHYSICS / "gset" / f"{name}.txt.gz")  # recognised by its content
        assert (model.n_sites, model.group("couplings").size) == (facts["n"], facts["edges"])
    # G48 is a torus with an even number of rows and columns: all edges can be cut.
    model = read_model(PHYSICS / "gset" / "G48.txt.gz")
    side = np.zeros(model.n_sites, np.int32)
    order, scopes = [0], model.group("couplings").scopes
    near: dict[int, list[int]] = {}
    for i, j in scopes.tolist():
        near.setdefault(i, []).append(j)
        near.setdefault(j, []).append(i)
    seen = {0}
    for i in order:
        for j in near[i]:
            if j not in seen:
                seen.add(j)
                side[j] = 1 - side[i]
                order.append(j)
    assert model.log_potential(side) / 2 == known["G48"]["best_known_cut"]
