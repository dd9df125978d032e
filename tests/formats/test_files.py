"""Models and evidence of any format."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_evidence, read_model, write_model
from gibbsite.formats.evidence import parse_evidence
from gibbsite.formats.files import example_path
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.registry import registered_formats
from gibbsite.models import FactorGraph, ising
from tests.formats.models import energies, networks

NETWORK = FactorGraph(
    {"A": ["no", "yes"], "B": ["no", "yes"]},
    [(("A",), [0.25, 0.75]), (("A", "B"), [0.5, 0.5, 0.125, 0.875])],
    directed=True,
)


# Lists of edges have no fields, and no constant that could be chosen.
EDGES = ising([[0, 0.5, 0], [0.5, 0, -2], [0, -2, 0]])


def example(format: str) -> FactorGraph:
    return EDGES if format in ("rudy", "edges") else NETWORK


WRITTEN = [name for name, one in registered_formats().items() if one.write is not None]


def same(model: FactorGraph, other: FactorGraph) -> bool:
    mine, theirs = energies(model), energies(other)
    shift = theirs[0] - mine[0] if other is EDGES else 0.0
    return np.allclose(mine + shift, theirs)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", WRITTEN)
def test_the_suffix_or_the_content_tells_the_format(format: str, packed: bool, tmp_path: Path) -> None:
    path, model = tmp_path / f"Model.{format.upper()}{'.gz' if packed else ''}", example(format)
    write_model(model, path)
    assert same(read_model(path), model)
    plain = tmp_path / "model"
    plain.write_bytes(path.read_bytes())
    assert same(read_model(str(plain)), model)
    assert same(read_model(plain, format=format), model)
    write_model(model, plain, format=format)
    assert plain.read_bytes() == (gzip.decompress(path.read_bytes()) if packed else path.read_bytes())


@pytest.mark.parametrize("format", WRITTEN)
def test_standard_input_and_output(
    format: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_model(example(format), "-", format=format)
    written = capfdbinary.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    assert same(read_model("-"), example(format))


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("// a comment\nnetwork x {}", "bif"),
        ("/* a\n comment */ variable", "bif"),
        ("# a comment\n MARKOV", "uai"),
        ("bayes", "uai"),
        ("\n<?xml version='1.0'?>", "xmlbif"),
        ("<BIF>", "xmlbif"),
        ('<?xml version="1.0"?>\n<!-- made by -->\n<smile>', "xdsl"),
        ("% Hugin\nnet\n{", "net"),
        ('belief network "x" node', "dsc"),
        ("x 1 2 1 9\n2\n1 0 9 1\n0 2", "wcsp"),
        ("c 1\np wcnf 2 1\n1 1 0", "wcnf"),
        ("h 1 2 0\n3 -1 0\n", "wcnf"),
        ("# by hand\n# vartype=SPIN\n0 0 1", "coo"),
        ("3 1 \r\n1 2 -1\r\n", "rudy"),
        ("\n 2 1\n\n 1 2 .5", "rudy"),
    ],
)
def test_openings(text: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(text)
    (tmp_path / f"model.{format}").write_text(text)
    outcomes = []
    for each in (path, tmp_path / f"model.{format}"):
        try:
            outcomes.append(read_model(each).digest)
        except FormatError as error:
            outcomes.append(str(error).removeprefix(str(each)))
    assert outcomes[0] == outcomes[1]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for content, message in [
        (b"hello", "the format is not known; say which it is with format=, one of bif, bqm"),
        (b"\x89PNG\0\0", "the format is not known"),
        (b"MARKOV\0", "binary file"),
        (b"", "empty"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FormatError, match=message):
            read_model(path)
    with pytest.raises(FormatError, match="format 'csv' is unknown; choose one of bif"):
        read_model(path, format="csv")
    with pytest.raises(FormatError, match="format 'csv' is unknown"):
        write_model(NETWORK, path, format="csv")
    for target in (path, "-"):
        with pytest.raises(FormatError, match=r"end the name in one of \.bif.*, or give it with format=\."):
            write_model(NETWORK, target)
    (tmp_path / "a.bif").write_text("MARKOV 0 0")
    with pytest.raises(FormatError, match=r"a\.bif:1:1: expected 'network'"):
        read_model(tmp_path / "a.bif")


@settings(deadline=None)
@given(networks())
def test_from_format_to_format(model: FactorGraph) -> None:
    from gibbsite.formats.bif import format_bif, parse_bif
    from gibbsite.formats.uai import format_uai, parse_uai

    through = parse_uai(Source("f", format_uai(parse_bif(Source("f", format_bif(model).encode()))).encode()))
    assert np.array_equal(energies(through), energies(model))


# ---- evidence

SITES = FactorGraph({"A": ["<5", ">=5", "a=b"], "B=x": [0, 1], "#C": ["yes", "no #1"], "7": 3})


def evidence(text: str, model: FactorGraph = SITES) -> dict[str, object]:
    return dict(parse_evidence(Source("f", text.encode()), model))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=<5", {"A": "<5"}),
        ("A=>=5\n\n  B=x = 1\n", {"A": ">=5", "B=x": 1}),
        ("# nothing\nA = a=b # odd", {"A": "a=b"}),
        ("\"A\" = '>=5'", {"A": ">=5"}),
        ("7=2\n 7 = 2".partition("\n")[0], {"7": 2}),
        (" A=<5\r\n", {"A": "<5"}),
        ('{"A": "<5", "B=x": 1, "7": "2"}', {"A": "<5", "B=x": 1, "7": 2}),
        ("{}", {}),
        ('{"B=x": {"0": 0.5, "1": 0.25}, "7": [1, 2, 3]}', {"B=x": {"0": 0.5, "1": 0.25}, "7": [1, 2, 3]}),
        ("2 0 1 3 2", {"A": ">=5", "7": 2}),
        ("1\n1 1 0", {"B=x": 0}),
        ("0", {}),
    ],
)
def test_evidence_in_three_forms(text: str, expected: dict[str, object]) -> None:
    found = evidence(text)
    assert found == expected
    SITES.observe(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=<5\nB", "f:2:1: expected NAME=STATE"),
        ("A=<5\nAA=1", "f:2:1: there is no site 'AA'; did you mean 'A'?"),
        ("A=6", "f:1:1: site 'A' has no state '6'; its states are '<5', '>=5', 'a=b'"),
        ("A=<5\nA=<5", "f:2:1: the site 'A' is observed twice"),
        ("=", "f:1:1: there is no site ''"),
        ("9" * 5000 + "=1", "f:1:1: expected NAME=STATE"),
        ('{"A": }', "f:1:7: this is not JSON"),
        ('{"A": "6"}', "f: site 'A' has no state '6'"),
        ('{"Z": "6"}', "f: the evidence names an unknown site 'Z'"),
        ('{"A": "<5", "A": "<5"}', "f: the JSON has a name twice"),
        ('{"7": [1, 2]}', "f: the soft evidence for '7' has shape (2,)"),
        ('{"7": [1, NaN, 2]}', "f: expected a number, found NaN"),
        ('{"7": [1, 1' + "0" * 400 + ", 2]}", "f: "),
        ('{"' + "9" * 5000 + '": 1}', "f: there is no site"),
        ('{"A":' * 100_000, "f: this JSON is nested too deeply"),
        ("1 9 0", "f:1:3: expected a variable from 0 to 3, found 9"),
        ("nonsense", "f:1:1: expected NAME=STATE on every line, JSON, or the numbers of UAI evidence, found"),
    ],
)
def test_wrong_evidence(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        evidence(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_evidence_that_is_known_already() -> None:
    with pytest.raises(FormatError, match="observed as 1 and no longer free"):
        evidence("7=2", SITES.observe({"7": 1}))


def test_evidence_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "evidence.gz"
    path.write_bytes(gzip.compress(b"A=yes"))
    assert read_evidence(path, NETWORK) == {"A": "yes"}


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(SITES.sites), st.integers(0, 1)))
def test_forms_agree(codes: dict[str, int]) -> None:
    import json

    labels = {name: SITES.labels(name)[code] for name, code in codes.items()}
    assert evidence(json.dumps(labels)) == labels
    assert evidence("".join(f'"{name}"={label}\n' for name, label in labels.items()) or "0") == labels
    numbers = [len(codes), *(word for name, code in codes.items() for word in (SITES.index(name), code))]
    assert evidence(" ".join(map(str, numbers))) == labels


def test_real_networks_go_through_every_format_that_holds_them(tmp_path: Path) -> None:
    model = read_model(example_path("alarm"))
    for name in ("a.bif", "a.xmlbif.gz", "a.xml"):
        write_model(model, tmp_path / name)
        assert read_model(tmp_path / name).digest == model.digest
    write_model(model, tmp_path / "a.uai")
    assert read_model(tmp_path / "a.uai").cards.tolist() == model.cards.tolist()
    with pytest.raises(IncompatibleError, match="this format needs two"):
        write_model(model, tmp_path / "a.bqm")
