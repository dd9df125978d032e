"""Edge lists: words and couplings, as networkx and others write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import from_networkx, read_edges, read_model, write_edges, write_model
from gibbsite.formats.edges import format_edges, parse_edges
from gibbsite.formats.parsing.text import Source
from gibbsite.models import FactorGraph, ising


def parse(text: str) -> FactorGraph:
    return parse_edges(Source("f", text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "a b 0.5\nb c\n",
        "a,b,0.5\nb,c,1",
        "a;b;5e-1\r\nb;c\r\n",
        "# friends\n% more\n\n  a\tb   .5  # half\nb c 1.0 % one",
        "a\nb\nc\nb a +0.5\nc b",
    ],
)
def test_forms_of_the_same_list(text: str) -> None:
    model = parse(text)
    assert model.sites == ("a", "b", "c")
    assert model.digest == ising(([0, 1], [1, 2], [0.5, 1.0]), sites=["a", "b", "c"]).digest


def test_names_are_words() -> None:
    model = parse("http://x#y Žofie -2\n10% 1")
    assert model.sites == ("http://x#y", "Žofie", "10%", "1")


@settings(deadline=None)
@given(st.data())
def test_written_and_read_again(data: st.DataObject) -> None:
    word = st.text(st.characters(codec="utf-8", exclude_characters=" ,;\t\n\r\v\f\x1c\x1d\x1e\x1f"), min_size=1)
    names = data.draw(st.lists(word.filter(lambda w: w[0] not in "#%\ufeff"), unique=True, max_size=5))
    pairs = [(i, j) for j in range(len(names)) for i in range(j) if data.draw(st.booleans())]
    weights = [data.draw(st.floats(-1e9, 1e9)) for _ in pairs]
    model = ising(([i for i, _ in pairs], [j for _, j in pairs], weights), sites=names)
    again = parse_edges(Source("f", format_edges(model).encode()))
    assert again.sites == model.sites
    assert again.log_potential([1] * len(names)) == model.log_potential([1] * len(names))


def test_lists_of_networkx(tmp_path: Path) -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 0.5), ("a", "c", 1.0), ("b", "d", -2.0)])
    nx.write_weighted_edgelist(graph, tmp_path / "graph.edgelist")
    assert read_model(tmp_path / "graph.edgelist").digest == from_networkx(graph).digest
    write_model(from_networkx(graph), tmp_path / "ours.edges.gz")
    assert nx.utils.graphs_equal(nx.read_weighted_edgelist(tmp_path / "ours.edges.gz"), graph)
    write_edges(from_networkx(graph), tmp_path / "a")
    assert read_edges(tmp_path / "a").sites == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a b x", 1, 5, "expected a finite number, found 'x'"),
        ("a b\nc d nan", 2, 5, "expected a finite number, found 'nan'"),
        ("a b {}", 1, 5, "expected a finite number, found '{}'"),
        ("a b 1e999", 1, 5, "expected a finite number"),
        ("a b 1 2", 1, 7, "expected two sites and perhaps a coupling on this line"),
        ("a b\n  c c", 2, 5, "joins a site with itself"),
        ("é b\n# again\nb é 2", 3, 1, "this edge is listed before; list each edge once"),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("f", line, column)


def test_what_a_list_cannot_hold() -> None:
    with pytest.raises(IncompatibleError, match="has a field of 1"):
        format_edges(ising(([0], [1], 1.0), [0.0, 1.0]))
    for name in ("a b", "#a", "", "a,b", "%"):
        with pytest.raises(IncompatibleError, match="cannot be written in an edge list"):
            format_edges(ising(([0], [1], 1.0), sites=[name, "c"]))
