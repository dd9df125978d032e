"""Bayesian networks in XMLBIF."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_bif, read_xmlbif, write_xmlbif
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.xmlbif import format_xmlbif, parse_xmlbif
from gibbsite.models import FactorGraph, ising_grid
from tests.data import network_files
from tests.formats.models import NAME, check_groups, energies, networks


def parse(text: str) -> FactorGraph:
    return parse_xmlbif(Source("f", text.encode()))


def network(*parts: str) -> str:
    return "<BIF VERSION='0.3'>\n<NETWORK>\n<NAME>x</NAME>\n" + "\n".join(parts) + "\n</NETWORK>\n</BIF>"


A = "<VARIABLE TYPE='nature'><NAME>A</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>"
B = (
    "<VARIABLE><NAME> B &amp; b </NAME><PROPERTY>p</PROPERTY>"
    "<OUTCOME>&lt;5</OUTCOME><OUTCOME>&#62;=5</OUTCOME></VARIABLE>"
)
P_A = "<DEFINITION><FOR>A</FOR><TABLE>0.25 0.75</TABLE></DEFINITION>"
P_B = "<DEFINITION><FOR>B &amp; b</FOR><GIVEN>A</GIVEN><TABLE> 0.1 0.9\n <!-- no --> .2 8e-1</TABLE></DEFINITION>"


def test_the_child_is_fastest() -> None:
    model = parse(network(A, B, P_B, P_A))
    assert model.sites == ("A", "B & b")
    assert model.labels(1) == ("<5", ">=5")
    assert np.allclose(np.exp(energies(model)), [0.025, 0.225, 0.15, 0.6])
    assert all(group.directed for group in model.groups)


DECLARATIONS = """<?xml version="1.0"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
  <!ELEMENT NAME (#PCDATA)>
  <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
"""


def test_the_standard_declarations_are_fine() -> None:
    model = parse(network(A, P_A))
    assert parse(DECLARATIONS + network(A, P_A)).digest == model.digest
    assert parse('<!DOCTYPE BIF SYSTEM "bif.dtd">' + network(A, P_A)).digest == model.digest


@pytest.mark.parametrize(
    "declaration",
    [
        "<!DOCTYPE BIF [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>",
        "<!DOCTYPE BIF [<!ENTITY a SYSTEM 'file:///etc/hostname'>]>",
        "<!DOCTYPE BIF [<!ENTITY % a SYSTEM 'file:///etc/hostname'> %a;]>",
        "<!DOCTYPE BIF [<!ENTITY a SYSTEM 'x' NDATA y>]>",
    ],
)
def test_entities_are_refused(declaration: str) -> None:
    with pytest.raises(FormatError, match=r"f:1:\d+: expected no entities"):
        parse(declaration + network(A, P_A))


def test_entities_from_elsewhere_are_refused() -> None:
    with pytest.raises(FormatError, match="expected no entities"):
        parse('<!DOCTYPE BIF SYSTEM "bif.dtd">' + network(A, P_A.replace("0.25", "&half;")))


@pytest.mark.parametrize(
    "text",
    [
        f"<!DOCTYPE BIF [<!ATTLIST OUTCOME x CDATA '{'y' * 100_000}'>]><BIF>{'<OUTCOME/>' * 10_000}</BIF>",
        "<!DOCTYPE BIF ["
        + "".join(f"<!ATTLIST a x{k} CDATA 'y'>" for k in range(5000))
        + f"]><BIF>{'<a/>' * 10_000}</BIF>",
        "<a>" * 100_000,
    ],
)
def test_nothing_grows_out_of_proportion(text: str) -> None:
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"f:1:\d+: "):
        parse(text)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("nonsense", 1, "not well-formed XML: syntax error"),
        ("<BIF>\n<NETWORK>", 2, "not well-formed XML"),
        ("<HTML></HTML>", 1, "expected the element BIF, found HTML"),
        ("<BIF></BIF>", 1, "expected one element NETWORK, found 0"),
        (network(), 2, "no variables"),
        (network("<VARIABLE></VARIABLE>"), 4, "expected one element NAME in this VARIABLE, found 0"),
        (network("<VARIABLE><NAME>A</NAME></VARIABLE>"), 4, "has no states"),
        (network(A.replace("nature", "utility")), 4, "of type 'utility'; expected 'nature'"),
        (network(A, A), 5, "declared twice"),
        (network(A.replace("<OUTCOME>y", "<OUTCOME>x")), 4, "two states of the same name"),
        (network(A), 4, "has no definition"),
        (network(A, P_A, P_A), 6, "two definitions"),
        (network(A, P_A.replace("<TABLE>0.25 0.75</TABLE>", "")), 5, "expected one element TABLE"),
        (network(A, P_A.replace(">A<", ">Z<")), 5, "there is no variable 'Z'"),
        (network(A, P_A.replace("<TABLE>", "<GIVEN>A</GIVEN><TABLE>")), 5, "names a variable twice"),
        (network(A, P_A.replace("0.75", "")), 5, "expected 2 numbers, found 1"),
        (network(A, P_A.replace(" 0.75", "\nx")), 6, "expected a number, found 'x'"),
        (network(A, P_A.replace("0.25", "-1")), 5, "expected probabilities, found -1"),
        (network(A, P_A.replace("0.25", "1e400")), 5, "expected probabilities, found inf"),
        (network(A, P_A.replace("0.25", "0.5")), 5, "row 0 of the table sums to 1.25"),
        (network(A, P_A.replace("0.25", "0").replace("0.75", "0")), 5, "all probabilities of this table are zero"),
        (
            network(A, B, P_A.replace("<TABLE>0.25 0.75", "<GIVEN>B &amp; b</GIVEN><TABLE>1 0 1 0"), P_B),
            6,
            "is its own ancestor",
        ),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line) == ("f", line)


@pytest.mark.parametrize("encoding", ["utf-7", "rot13", "idna", "nonsense"])
def test_odd_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(FormatError):
        parse(f"<?xml version='1.0' encoding='{encoding}'?>" + network(A, P_A))


def test_latin_letters_as_declared() -> None:
    text = "<?xml version='1.0' encoding='iso-8859-1'?>" + network(A, P_A).replace("x</OUT", "\xe9</OUT")
    assert parse_xmlbif(Source("f", text.encode("latin-1"))).labels("A") == ("é", "y")


@settings(deadline=None)
@given(networks(NAME.map(str.strip)))
def test_written_and_read_back(model: FactorGraph) -> None:
    again = parse(format_xmlbif(model))
    assert again.digest == model.digest
    assert np.array_equal(energies(again), energies(model))
    check_groups(again)


@pytest.mark.parametrize("name", [" a", "a\x01", "a\rb", "\ud800"])
def test_names_that_cannot_stand_in_xml(name: str) -> None:
    with pytest.raises(IncompatibleError, match="cannot stand in an XML file"):
        format_xmlbif(FactorGraph({name: 2}, [(name, [0.5, 0.5])], directed=True))


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="XMLBIF holds Bayesian networks"):
        format_xmlbif(ising_grid((3, 3)))


@pytest.mark.parametrize("path", network_files().values(), ids=network_files())
def test_real_networks(path: Path, tmp_path: Path) -> None:
    model = read_bif(path)
    write_xmlbif(model, tmp_path / "a.xmlbif")
    assert read_xmlbif(tmp_path / "a.xmlbif").digest == model.digest
