"""UAI models, evidence and results."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import FormatError, IncompatibleError, ModelError
from gibbsite.formats import (
    read_uai,
    read_uai_evidence,
    read_uai_map,
    read_uai_mar,
    read_uai_pr,
    write_uai,
    write_uai_evidence,
    write_uai_map,
    write_uai_mar,
    write_uai_pr,
)
from gibbsite.formats.evidence import parse_uai_evidence
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.uai import format_uai, parse_uai
from gibbsite.formats.uai_results import parse_uai_map, parse_uai_mar, parse_uai_pr
from gibbsite.models import FactorGraph, ising_grid, potts_grid
from tests.data import DATA, needs_data
from tests.formats.models import check_groups, energies, markov_models, networks

MODELS = sorted(DATA.glob("uai/*/*.uai.gz"))


def parse(text: str) -> FactorGraph:
    return parse_uai(Source("f", text.encode()))


def evidence(text: str, model: FactorGraph | None = None) -> dict[str, object]:
    return dict(parse_uai_evidence(Source("f", text.encode()), model))


# ---- models


def test_a_small_model() -> None:
    model = parse("MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n2 1 2\n\n2\n 0.4 0.6\n\n4\n 1 2 3 4\n6\n1 0 0 1e-3 .5 6.")
    assert model.sites == ("0", "1", "2")
    assert model.labels(2) == (0, 1, 2)
    assert math.isclose(model.log_potential([1, 0, 2]), -math.inf)
    assert math.isclose(math.exp(model.log_potential([1, 1, 0])), 0.6 * 4 * 1e-3)
    assert not any(group.directed for group in model.groups)
    check_groups(model)


def test_factors_of_equal_shape_share_a_group_in_order_of_appearance() -> None:
    model = parse("MARKOV 3  2 3 2  4  1 1  2 0 1  1 0  2 2 1  3 1 1 1  6 1 1 1 1 1 1  2 1 1  6 1 2 3 4 5 6")
    assert [group.scopes.tolist() for group in model.groups] == [[[1]], [[0, 1], [2, 1]], [[0]]]


def test_tables_of_a_bayes_file_are_directed_where_they_are_conditional() -> None:
    model = parse("BAYES 2  2 2  2  1 0  2 0 1  2 0.5 0.5  4 0 0 0.25 0.75")
    assert [group.directed for group in model.groups] == [True, False]
    assert [group.directed for group in parse("BAYES 1 2 2 1 0 1 0 2 0.25 0.75 2 3 4").groups] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2  2  1 0  1 0  2 0.3 0.7  2 0.3 0.7", "the site '0' has two conditional tables, over"),
        ("2 2 2  1  1 0  2 0.3 0.7", "the site '1' has no conditional table"),
        ("2 2 2  2  2 0 1  2 1 0  4 0.5 0.5 0.5 0.5  4 0.5 0.5 0.5 0.5", "form a cycle, '1' -> '0' -> '1'"),
    ],
)
def test_a_bayes_file_holds_a_bayesian_network(text: str, message: str) -> None:
    parse(f"MARKOV {text}")
    with pytest.raises(FormatError, match=rf"{message}.*; a product of any factors is of type MARKOV\.$"):
        parse(f"BAYES {text}")


@pytest.mark.parametrize(
    "text",
    [
        "markov 1 2 1 1 0 2 1 3",
        "\n\n MARKOV   \r\n1\r\n2\r\n1\r\n1 0\r\n\r\n2\r\n1 3",
        "# made by hand\nMARKOV // yes\n1 2 # cards\n1\n1 0\n2\n1.0 3e0\n",
        "\ufeffMARKOV\t1\t2\t1\t1\t0\t2\t+1\t3.",
    ],
)
def test_odd_spacing_and_comments(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.uai"
    path.write_bytes(text.encode())
    assert np.allclose(energies(read_uai(path)), np.log([1, 3]))


def test_models_without_factors_or_sites() -> None:
    assert parse("MARKOV 0 0").n_sites == 0
    assert parse("MARKOV 2 3 1 0").cards.tolist() == [3, 1]
    assert math.isclose(parse("MARKOV 1 1 3 0 0 1 0 1 2.5 1 4 1 0.5").log_offset, math.log(10))


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("MARKOW 1", 1, 1, "expected the word MARKOV or BAYES, found 'MARKOW'"),
        ("  42", 1, 3, "MARKOV or BAYES"),
        ("MARKOV", 1, 7, "the file ends here; expected the number of variables"),
        ("MARKOV\n1.5", 2, 1, "the number of variables, a whole number of at least 0, found 1.5"),
        ("MARKOV\n1000000000", 2, 1, "1,000,000,000 variables are declared"),
        ("MARKOV\n2\n2 0\n0", 3, 3, "number of states, a whole number of at least 1, found 0"),
        ("MARKOV 1 1e300 0", 1, 10, "number of states"),
        ("MARKOV 1 1000000000 0", 1, 10, "at most 32,767 states, found 1e+09; join states"),
        ("MARKOV 4" + " 32767" * 4 + " 0", 1, 10, "32767 states, but is in no factor"),
        ("MARKOV\n1\n2\n1000000000000", 4, 1, "1,000,000,000,000 factors are declared"),
        ("MARKOV 2 2 2\n1\n3 0 1 1 2 1 1", 3, 1, "number of variables of factor 0, a whole number from 0 to 2"),
        ("MARKOV 2 2 2\n1\n2 0 2\n4 1 1 1 1", 3, 5, "a variable from 0 to 1, found 2"),
        ("MARKOV 2 2 2\n1\n2 1 1\n4 1 1 1 1", 3, 3, "factor 0 names a variable twice"),
        ("MARKOV 2 2 2\n1\n2 0 1\n5 1 1 1 1", 4, 1, "factor 0 has 4 entries"),
        ("MARKOV 2 2 2\n1\n2 0 1\n4 1 1 1", 4, 8, "file ends here; expected the 4 entries of factor 0"),
        ("MARKOV 1 2\n1\n1 0\n2 1 1\n7", 5, 1, "expected the end of the file"),
        ("MARKOV 1 2\n1\n1 0\n2 1 -1", 4, 5, "not negative, found -1"),
        ("MARKOV 1 2\n1\n1 0\n2 1 1e400", 4, 5, "too large"),
        ("MARKOV 1 2\n1\n1 0\n2 1 nan", 4, 5, "expected a number, found 'nan'"),
        ("MARKOV 1 2\n1\n1 0\n2 1 one", 4, 5, "expected a number, found 'one'"),
        ("MARKOV 1 2\n1\n1 0\n2 0 0", 4, 3, "zero everywhere"),
        ("MARKOV 1 2\n1\n0\n1 0", 4, 3, "zero everywhere"),
        ("MARKOV 4 30000 30000 30000 30000 1 4 0 1 2 3 1 1", 1, 46, "factor 0 has 8.1e+17 entries"),
        ("MARKOV 4 30000 30000 30000 30000 1 4 0 1 2 3 8.100e17 1", 1, 56, "expected the 8.1e+17 entries"),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, column: int, message: str) -> None:
    tracemalloc.start()
    with pytest.raises(FormatError) as caught:
        parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("f", line, column)
    assert peak < 1 << 20


def test_many_sites_of_one_state_in_one_factor() -> None:
    def text(n: int) -> str:
        return f"MARKOV {n} {'1 ' * n} 1 {n} {' '.join(map(str, range(n)))} 1 2.5"

    assert math.isclose(parse(text(31)).log_potential(np.zeros(31, int)), math.log(2.5))
    with pytest.raises(FormatError, match="from 0 to 31, found 40"):
        parse(text(40))


@settings(deadline=None)
@given(markov_models())
def test_written_and_read_back(model: FactorGraph) -> None:
    again = parse(format_uai(model))
    assert again.sites == model.sites
    assert np.array_equal(again.cards, model.cards)
    assert np.allclose(energies(again), energies(model), rtol=1e-14, atol=1e-12)
    assert len(again.groups) == len(model.groups)
    for new, old in zip(again.groups, model.groups, strict=True):
        assert np.array_equal(new.scopes, old.scopes)
        assert np.array_equal(new.weights, old.weights)
    check_groups(again)


@settings(deadline=None)
@given(networks())
def test_bayesian_networks_stay_directed(model: FactorGraph) -> None:
    text = format_uai(model)
    assert text.startswith("BAYES")
    assert all(group.directed for group in parse(text).groups)
    assert np.array_equal(energies(parse(text)), energies(model))


@pytest.mark.parametrize("model", [ising_grid((3, 3), coupling=0.4, field=0.1), potts_grid((2, 3), 3, coupling=0.5)])
def test_models_of_other_kinds_are_written_as_tables(model: FactorGraph) -> None:
    assert np.allclose(energies(parse(format_uai(model))), energies(model), rtol=1e-13, atol=1e-13)


def test_extreme_potentials() -> None:
    model = FactorGraph(2, states=2, log_factors=[((0, 1), [800.0, 900.0, -np.inf, 1000.0]), ((), 5000.0)])
    assert np.allclose(energies(parse(format_uai(model))), energies(model), rtol=1e-13)
    with pytest.raises(IncompatibleError, match=r"factor over \(0\) has potentials"):
        format_uai(FactorGraph(1, states=2, log_factors=[(0, [0.0, 1000.0])]))


def test_observed_sites_are_gone(tmp_path: Path) -> None:
    model = FactorGraph(2, [((0, 1), [1, 2, 3, 4])], states=2).observe({"0": 1})
    write_uai(model, tmp_path / "a.uai.gz")
    assert np.allclose(energies(read_uai(tmp_path / "a.uai.gz")), np.log([3, 4]))


# ---- evidence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", {}),
        ("0\n", {}),
        ("1\n0\n", {}),
        ("2 5 1 7 0", {"5": 1, "7": 0}),
        ("2\n5 1\n7 0\n", {"5": 1, "7": 0}),
        ("1\n2 5 1 7 0", {"5": 1, "7": 0}),
        ("1 2 5 1 7 0", {"5": 1, "7": 0}),
        ("1\n1 35 1 ", {"35": 1}),
        ("1 35 1", {"35": 1}),
        ("1\n35\n1", {"35": 1}),
        ("1 0 0", {"0": 0}),
        ("2 3 1 3 1", {"3": 1}),
    ],
)
def test_both_layouts_of_evidence(text: str, expected: dict[str, int]) -> None:
    assert evidence(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("x", 1, 1, "expected a number"),
        ("-1", 1, 1, "number of observed variables"),
        ("2 5 1", 1, 6, "expected 4 numbers"),
        ("1 0", 1, 4, "expected 2 numbers"),
        ("2 5 1 7 0 9", 1, 11, "expected 4 numbers"),
        ("2\n1 3 0\n1 4 1", 1, 1, "expected one evidence set"),
        ("1 0.5 1", 1, 3, "found 0.5"),
        ("2 3 1 3 0", 1, 7, "observed twice, as 1 and as 0"),
        ("1 1e18 0", 1, 3, "found 1e+18"),
        ("1000000000000 1 1", 1, 18, "expected 2000000000000 numbers"),
    ],
)
def test_wrong_evidence(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        evidence(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_evidence_for_a_model(tmp_path: Path) -> None:
    model = FactorGraph({"rain": ["no", "yes"], "sky": 3})
    assert evidence("2 1 2 0 1", model) == {"sky": 2, "rain": "yes"}
    for text, message in [("1 2 0", "from 0 to 1, found 2"), ("1 0 2", "variable 0 has 2 states")]:
        with pytest.raises(FormatError, match=message):
            evidence(text, model)
    path = tmp_path / "a.evid"
    write_uai_evidence({"sky": 2, 0: "yes"}, path, model)
    assert path.read_text() == "2 0 1 1 2\n"
    assert read_uai_evidence(path, model) == {"rain": "yes", "sky": 2}
    with pytest.raises(ModelError, match="twice"):
        write_uai_evidence({"sky": 2, 1: 1}, path, model)


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 30), st.integers(0, 3)))
def test_evidence_written_and_read_back(codes: dict[int, int]) -> None:
    words = [len(codes), *(word for pair in codes.items() for word in pair)]
    text = " ".join(map(str, words))
    expected = {str(site): code for site, code in codes.items()}
    assert evidence(text) == expected
    assert evidence(f"1\n{text}") == expected


# ---- results

TINY = FactorGraph({"a": 2, "b": ["x", "y", "z"], "c": 1})


def test_marginals_of_all_variables_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.MAR"
    write_uai_mar({"c": {0: 1.0}, "a": {1: 1 / 3, 0: 2 / 3}}, path, TINY, {"b": "y"})
    assert path.read_text() == "MAR\n3 2 0.6666666666666666 0.3333333333333333 3 0 1 0 1 1\n"
    assert [row.tolist() for row in read_uai_mar(path)] == [[2 / 3, 1 / 3], [0, 1, 0], [1]]
    with pytest.raises(ModelError, match="no marginals of the site 'b'"):
        write_uai_mar({"a": {0: 1, 1: 0}}, path, TINY)


def test_best_state(tmp_path: Path) -> None:
    path = tmp_path / "a.MAP"
    write_uai_map({"a": 1, "c": 0}, path, TINY, {"b": "z"})
    assert path.read_text() == "MAP\n3 1 2 0\n"
    assert read_uai_map(path, TINY).tolist() == [1, 2, 0]
    with pytest.raises(ModelError, match="no state of the site 'b'"):
        write_uai_map({"a": 1, "c": 0}, path, TINY)


@settings(deadline=None)
@given(st.floats(-3000, 3000))
def test_partition_function_to_base_ten(log_z: float) -> None:
    text = f"PR\n{log_z / math.log(10):.17g}\n"
    assert math.isclose(parse_uai_pr(Source("f", text.encode())), log_z, rel_tol=1e-14, abs_tol=1e-300)


def test_partition_functions_far_below_the_smallest_number(tmp_path: Path) -> None:
    write_uai_pr(-974 * math.log(10), tmp_path / "a.PR")
    assert (tmp_path / "a.PR").read_text() == "PR\n-974\n"
    assert math.isclose(read_uai_pr(tmp_path / "a.PR"), -974 * math.log(10))


def test_older_results_say_how_many_there_are() -> None:
    assert [row.tolist() for row in parse_uai_mar(Source("f", b"MAR\n1\n2 2 0.5 0.5 1 1"))] == [[0.5, 0.5], [1]]
    assert [row.tolist() for row in parse_uai_mar(Source("f", b"MAR\n1 2 0.5 0.5"))] == [[0.5, 0.5]]
    assert parse_uai_map(Source("f", b"MAP\n1\n2 0 1")).tolist() == [0, 1]
    assert parse_uai_map(Source("f", b"MAP\n1 0")).tolist() == [0]
    assert parse_uai_pr(Source("f", b"PR\n1\n0")) == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAP 1 0", "1:1: expected the word MAR, found 'MAP'"),
        ("MAR", "1:4: the file ends here; expected the number of variables"),
        ("MAR 2 2 0.5 0.5", "1:16: the file ends here; expected the number of states of variable 1"),
        ("MAR 1 3 0.5 0.5", "1:16: the file ends here; expected 3 probabilities of variable 0"),
        ("MAR 1 2 0.5 1.5", "1:13: expected a probability, found 1.5"),
        ("MAR 1 1 1 3 3", "1:11: expected the end of the file"),
        ("MAR 99999999999", "1:5: 99,999,999,999 variables are declared"),
        ("MAR 1 0 0", "1:7: expected the number of states"),
    ],
)
def test_wrong_marginals(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_uai_mar(Source("f", text.encode()))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAP 2 0", "expected 2 states, one per variable, found 1"),
        ("MAP 3 0 3 0", "1:9: expected the number of a state of this variable, found 3"),
        ("MAP 2 0 0", "expected the states of 3 variables, found 2"),
        ("MAP 3 0 0.5 0", "1:9: expected the number of a state"),
    ],
)
def test_wrong_states(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_uai_map(Source("f", text.encode()), TINY)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["PR", "PR 1 2 3", "PR x", "PR 1e999", "MAR 1"])
def test_wrong_partition_functions(text: str) -> None:
    with pytest.raises(FormatError):
        parse_uai_pr(Source("f", text.encode()))


# ---- real files


@needs_data("uai/index.json")
@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}/{path.name[:-7]}")
def test_real_files(path: Path, tmp_path: Path) -> None:
    case = {each["path"]: each for each in json.loads((DATA / "uai" / "index.json").read_text())}
    facts = case[f"{path.parent.name}/{path.name[:-7]}"]
    model = read_uai(path)
    assert model.n_sites == facts["variables"]
    assert model.cards.max() == facts["max_card"]
    assert sum(group.size for group in model.groups) == facts["factors"]
    assert max(group.arity for group in model.groups) == facts["max_arity"]
    assert any(np.isneginf(group.weights).any() for group in model.groups) == facts["has_zero_entries"]
    assert any(group.directed for group in model.groups) == (facts["type"] == "BAYES")
    write_uai(model, tmp_path / "again.uai")
    assert read_uai(tmp_path / "again.uai").digest == model.digest

    found = read_uai_evidence(path.with_suffix(".evid"), model)
    assert len(found) == facts["evidence"]
    write_uai_evidence(found, tmp_path / "again.evid", model)
    assert read_uai_evidence(tmp_path / "again.evid", model) == dict(sorted(found.items(), key=lambda p: int(p[0])))
    for suffix in (".MAR", ".MAR.gz"):
        if (answer := path.with_suffix(suffix)).exists():
            marginals = read_uai_mar(answer)
            assert [len(row) for row in marginals] == model.cards.tolist()
            assert all(marginals[int(site)][label] == 1.0 for site, label in found.items())
    if (answer := path.with_suffix(".PR")).exists():
        assert math.isclose(read_uai_pr(answer) / math.log(10), facts["log10_Z"], rel_tol=1e-5, abs_tol=1e-9)
    if (answer := path.with_suffix(".MAP")).exists():
        codes = read_uai_map(answer, model)
        assert all(codes[int(site)] == label for site, label in found.items())
        score = model.log_potential(codes) / math.log(10)
        assert math.isclose(score, facts["map_log10_score"], rel_tol=1e-9)
