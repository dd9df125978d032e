"""Bayesian networks in BIF."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_bif, write_bif
from gibbsite.formats.bif import format_bif, parse_bif
from gibbsite.formats.parsing.text import Source
from gibbsite.models import FactorGraph, ising_grid
from tests.data import known_answers, network_files
from tests.formats.models import check_groups, energies, networks


def parse(text: str) -> FactorGraph:
    return parse_bif(Source("f", text.encode()))


def variable(name: str, states: str = "yes, no") -> str:
    return f"variable {name} {{ type discrete [ {states.count(',') + 1} ] {{ {states} }}; }}\n"


ODD = """
/* a comment; with { marks } and "quotes */
network "odd one" { property "author = a; b"; property url http://example.org/a; }
variable A { // the first
  property position = (1, 2);
  type   discrete[3]{<5,"5 to 9" , >=10};
  property x ; }
variable "B b"{type discrete [ 2 ] { Asy/Patch, "a \\"b\\"" } ; }
VARIABLE C-1.x { type discrete [2] { 0 1 }; }
probability(A){table 0.2 0.3,0.5;}
probability ( "B b" | A ) { property odd;
  default 0.25, 0.75;  (<5) 1e-1 , 9E-1; ("5 to 9")
     1, 0 ; }
probability ( C-1.x | A, "B b" ) {
  table 0.1, 0.2, 0.3, 0.4, 0.5, 0.6,
        0.9, 0.8, 0.7, 0.6, 0.5, 0.4; // the child is slowest
}"""


def test_every_oddity_at_once() -> None:
    model = parse(ODD)
    assert model.sites == ("A", "B b", "C-1.x")
    assert [model.labels(k) for k in range(3)] == [("<5", "5 to 9", ">=10"), ("Asy/Patch", 'a "b"'), ("0", "1")]
    tables = {len(group.scopes[0]): (group.scopes[0].tolist(), np.exp(group.weights[0])) for group in model.groups}
    assert tables[1][0] == [0] and np.allclose(tables[1][1], [0.2, 0.3, 0.5])
    assert tables[2][0] == [0, 1] and np.allclose(tables[2][1], [[0.1, 0.9], [1, 0], [0.25, 0.75]])
    assert tables[3][0] == [0, 1, 2]
    assert np.allclose(tables[3][1][..., 0], [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    assert all(group.directed for group in model.groups)
    assert parse(format_bif(model)).digest == model.digest


def test_blocks_in_any_order_give_the_same_model() -> None:
    blocks = [
        variable("A"),
        variable("B", "x, y, z"),
        "probability ( A | B ) { (y) 0.1, 0.9; (x) 0.2, 0.8; (z) 0.3, 0.7; }",
        "probability ( B ) { table 0.1, 0.2, 0.7; }",
    ]
    first = parse("\n".join(blocks))
    assert np.allclose(np.exp(first.groups[0].weights[0]), [[0.2, 0.8], [0.1, 0.9], [0.3, 0.7]])
    assert parse("\n".join([blocks[3], blocks[0], blocks[2], blocks[1]])).digest == first.digest
    assert parse("\n".join([blocks[2].replace("|", ""), *blocks[:2], blocks[3]])).digest == first.digest


def test_words_that_are_keywords_elsewhere() -> None:
    text = variable("table", "default, property") + variable("type", "table, network")
    text += "probability ( table ) { table 0.5, 0.5; }"
    text += "probability ( type | table ) { (default) 0.5, 0.5; (property) 0.25, 0.75; }"
    assert parse(text).labels("table") == ("default", "property")


def test_rows_of_zeros_are_no_conditional_tables() -> None:
    text = variable("A") + variable("B") + "probability ( A ) { table 1, 0; }"
    model = parse(text + "probability ( B | A ) { (yes) 0.5, 0.5; (no) 0, 0; }")
    assert sorted(group.directed for group in model.groups) == [False, True]
    assert parse(format_bif(model)).digest == model.digest


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("nonsense", 1, 1, "expected 'network', 'variable' or 'probability', found 'nonsense'"),
        ("network x { }", 1, 14, "no variables"),
        ("/* never closed", 1, 1, "comment is not closed"),
        ("network x { property never", 1, 13, "this property has no end"),
        ("variable", 1, 9, "expected the name of a variable, found the end of the file"),
        ('variable "A { }', 1, 10, "expected the name of a variable"),
        ("variable A\n  type", 2, 3, "expected '{' after the variable 'A', found 'type'"),
        ("variable A {\n type continuous;", 2, 7, "must be 'discrete', found 'continuous'"),
        ("variable A {\n type discrete [ 3 ] { a, b };", 2, 18, "3 states are declared, but 2 are listed"),
        ("variable A {\n type discrete [ 1000000000 ] { a, b };", 2, 18, "but 2 are listed"),
        ("variable A {\n type discrete [ 2 ] { a, a }; }", 2, 18, "two states of the same name"),
        ("variable A { }", 1, 1, "has no states"),
        (variable("A") + variable("A"), 2, 1, "declared twice"),
        (variable("A"), 1, 1, "has no probability block"),
        (variable("A") + "probability ( B ) { }", 2, 15, "there is no variable 'B'"),
        (variable("A") + "probability ( A | B ) { }", 2, 19, "there is no variable 'B'"),
        (variable("A") + "probability ( A, B | C ) { }", 2, 20, "a parent or ')', found '|'"),
        (variable("A") + "probability ( A | A ) { default 1, 0; }", 2, 1, "twice"),
        (variable("A") + "probability ( A ) { table 0.5; }", 2, 21, "expected 2 numbers, found 1"),
        (variable("A") + "probability ( A ) { table 0.5, x; }", 2, 32, "expected a number or ';', found 'x'"),
        (variable("A") + "probability ( A ) { table 0.5, 1e; }", 2, 32, "expected a probability, found '1e'"),
        (variable("A") + "probability ( A ) { table 1.5, -0.5; }", 2, 32, "probability, found '-0.5'"),
        (variable("A") + "probability ( A ) { table 0, 1e400; }", 2, 30, "probability, found '1e400'"),
        (variable("A") + "probability ( A ) { table 0, nan; }", 2, 30, "expected a number or ';', found 'nan'"),
        (variable("A") + "probability ( A ) { table 0.5, 0.6; }", 2, 1, "sum to 1.1; expected 1"),
        (variable("A") + "probability ( A ) { table 0, 0; }", 2, 1, "all probabilities of this block are zero"),
        (variable("A") + "probability ( A ) { }", 2, 1, "expected a row for (), or a default"),
        (variable("A") + "probability ( A ) { (yes) 1, 0; }", 2, 21, "expected 0 states, found 1"),
        (variable("A") + "probability ( A ) { tabel 1, 0; }", 2, 21, "'(' or '}', found 'tabel'"),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("f", line, column)


PAIR = variable("A") + variable("B") + "probability ( A ) { table 1, 0; }\nprobability ( B | A ) {\n"


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        (" (yes) 1, 0;\n }", 4, "expected a row for (no), or a default"),
        (" (yes) 1, 0;\n (maybe) 1, 0; }", 6, "there is no state 'maybe'; expected one of yes, no"),
        (" (yes) 1, 0;\n (yes) 1, 0; }", 6, "have a row already"),
        (" (yes) 1, 0;\n (no) 1; }", 6, "expected 2 numbers, found 1"),
        (" (yes) 1, 0;\n (no, no) 1, 0; }", 6, "expected 1 states, found 2"),
        (" (yes) 1, 0;\n (no) 0.7, 0.7; }", 6, "for (no) sum to 1.4"),
        (" (yes) 1, 0\n (no) 0.5, 0.5; }", 6, "expected a number or ';', found '('"),
        (" (yes) 1, 0;\n table 1, 1, 0, 0; }", 5, "no rows beside a table"),
        (" (yes) 1, 0;\n (no) 1, 0;", 6, "found the end of the file"),
    ],
)
def test_wrong_rows(rows: str, line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(PAIR + rows)
    assert message in str(caught.value)
    assert caught.value.line == line


def test_cycles_are_refused() -> None:
    text = variable("A") + variable("B") + "probability ( A | B ) { default 1, 0; }\n"
    with pytest.raises(FormatError, match=r"f:[34]:1: the variable '[AB]' is its own ancestor"):
        parse(text + "probability ( B | A ) { default 1, 0; }")


def test_default_rows_cannot_fill_the_memory() -> None:
    names = [f"V{k}" for k in range(29)]
    text = "".join(variable(name) for name in names)
    for k, name in enumerate(names):
        text += f"probability ( {name} {' '.join(names[:k])} ) {{ default 0.5 0.5; }}\n"
    tracemalloc.start()
    with pytest.raises(FormatError, match="entries, which is too large"):
        parse(text)
    assert tracemalloc.get_traced_memory()[1] < 150 << 20
    tracemalloc.stop()
    many = "".join(variable(f"V{k}") for k in range(40))
    with pytest.raises(FormatError, match="expected at most 30 parents"):
        parse(
            many
            + "".join(
                f"probability ( V{k} | {' '.join(f'V{j}' for j in range(40) if j != k)} ) {{ default 1 0; }}"
                for k in range(40)
            )
        )


@settings(deadline=None)
@given(networks())
def test_written_and_read_back(model: FactorGraph) -> None:
    again = parse(format_bif(model))
    assert again.sites == model.sites
    assert [again.labels(k) for k in range(again.n_sites)] == [model.labels(k) for k in range(model.n_sites)]
    assert np.array_equal(energies(again), energies(model))
    assert again.digest == model.digest
    check_groups(again)


def test_numbers_as_labels_become_text() -> None:
    model = FactorGraph({"A": 2}, [("A", [0.5, 0.5])], directed=True)
    assert parse(format_bif(model)).labels("A") == ("0", "1")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ising_grid((3, 3)), "is not a conditional table"),
        (FactorGraph({"A": 2, "B": 2}, [("A", [0.5, 0.5])]), "the site 'B' has no conditional table"),
        (FactorGraph({"A": 2}, [("A", [0.5, 0.5]), ("A", [1, 0])]), "two factors end in the site 'A'"),
        (FactorGraph({"A": 2}, [("A", [0.5, 0.5]), ((), 2.0)]), "has a constant factor"),
        (
            FactorGraph({"A": 2, "B": 2}, [(("A", "B"), [1, 0, 0, 1]), (("B", "A"), [1, 0, 0, 1])]),
            "is its own ancestor",
        ),
    ],
)
def test_what_is_no_network_is_refused(model: FactorGraph, reason: str) -> None:
    with pytest.raises(IncompatibleError, match=reason):
        format_bif(model)


@pytest.mark.parametrize("name", network_files())
def test_real_files(name: str, tmp_path: Path) -> None:
    model = read_bif(network_files()[name])
    known = known_answers(name)
    assert {site: list(model.labels(site)) for site in model.sites} == known["states"]
    assert sum(group.size for group in model.groups) == model.n_sites
    assert all(group.directed for group in model.groups)
    write_bif(model, tmp_path / "again.bif.gz")
    assert read_bif(tmp_path / "again.bif.gz").digest == model.digest


@pytest.mark.parametrize("path", network_files().values(), ids=network_files())
def test_other_programs_read_what_is_written(path: Path, tmp_path: Path) -> None:
    readers = pytest.importorskip("pgmpy.readwrite")
    model = read_bif(path)
    write_bif(model, tmp_path / "again.bif")
    network = readers.BIFReader(str(tmp_path / "again.bif")).get_model()
    assert set(network.nodes()) == set(model.sites)
