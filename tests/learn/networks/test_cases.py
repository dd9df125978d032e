"""Cases are read from data frames, columns and files, and bad ones are refused with row and column."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gibbsite.errors import ArgumentError, FormatError
from gibbsite.learn import read_cases


def test_files_frames_and_columns_give_the_same_cases(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    text = 'size,kind\n10,"a, b"\n2,c\n,c\n2,?\n'
    (tmp_path / "cases.csv").write_text(text)
    (tmp_path / "cases.csv.gz").write_bytes(gzip.compress(text.replace(",", ";").replace("a; b", "a, b").encode()))
    columns = {"size": [10, 2, None, 2], "kind": ["a, b", "c", "c", "?"]}
    wanted = [[1, 0, -1, 0], [0, 1, 1, -1]]
    for data in (tmp_path / "cases.csv", str(tmp_path / "cases.csv.gz"), columns, pandas.DataFrame(columns)):
        cases = read_cases(data)
        assert cases.names == ("size", "kind")
        assert [[str(label) for label in labels] for labels in cases.states] == [["2", "10"], ["a, b", "c"]]
        assert cases.codes.tolist() == wanted


def test_truth_values_and_categories_of_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ill": [True, False, True]})
    frame["grade"] = pandas.Categorical(["low", None, "high"], ["low", "middle", "high"])
    cases = read_cases(frame, states={"ill": ["TRUE", "FALSE"]})
    assert cases.states == (("TRUE", "FALSE"), ("low", "middle", "high"))
    assert cases.codes.tolist() == [[0, 1, 0], [0, -1, 2]]


def test_a_given_state_may_be_called_as_a_missing_cell() -> None:
    cases = read_cases({"a": ["NA", "x", ""]}, states={"a": ["x", "NA"]})
    assert cases.codes.tolist() == [[1, 0, -1]]


def test_hidden_sites_and_weights() -> None:
    cases = read_cases({"a": [0, 1], "n": [3, 4]}, states={"h": 2}, weights="n")
    assert cases.names == ("a", "h")
    assert cases.codes.tolist() == [[0, 1], [-1, -1]]
    assert cases.total == 7.0


def test_equal_cases_are_joined() -> None:
    rng = np.random.default_rng(1)
    cases = read_cases({"a": rng.integers(2, size=500), "b": rng.integers(3, size=500)})
    joined = cases.joined()
    assert joined.n_cases == 6
    assert joined.total == 500
    for row in range(6):
        same = (cases.codes == joined.codes[:, [row]]).all(axis=0)
        assert joined.weights[row] == same.sum()


def test_cases_that_were_read_take_other_states() -> None:
    cases = read_cases(read_cases({"a": ["x", "y", None]}), states={"a": ["z", "y", "x"]})
    assert cases.codes.tolist() == [[2, 1, -1]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n1\n", "row 2 after the names has 1 cells"),
        ("a,a\n1,2\n", "two columns of the name 'a'"),
        (",a\n1,2\n", "column 1 of data has no name"),
        ("a,b\n", "no cases"),
        ("", "no cases"),
        ("a\n?\n\n?\n", "all cells of the column 'a' are missing"),
        ('a\n"x\n', "not readable"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "cases.csv"
    path.write_text(text)
    with pytest.raises((FormatError, ArgumentError), match=words):
        read_cases(path)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_bytes(b"a,b\n\xff\xfe,2\n")
    with pytest.raises(FormatError, match="UTF-8"):
        read_cases(path)
    packed = tmp_path / "cases.csv.gz"
    packed.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(FormatError, match="gzip"):
        read_cases(packed)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read_cases(tmp_path / "nosuch.csv")
    with pytest.raises(FormatError, match="cannot be read"):
        read_cases(tmp_path)


def test_unknown_states_name_row_and_column() -> None:
    with pytest.raises(ArgumentError, match=r"row 3 of the column 'wet' has the state 'yess'.*did you mean 'yes'"):
        read_cases({"wet": ["no", "yes", "yess"]}, states={"wet": ["no", "yes"]})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"data": {"a": [1, 2], "b": [1]}}, "different lengths"),
        ({"data": 3}, "data frame"),
        ({"data": {"a": "text"}}, "must be a list"),
        ({"data": {"a": np.linspace(0, 1, 99)}}, "99 different numbers"),
        ({"data": {"a": [1, 2]}, "weights": "n"}, "no column 'n'"),
        ({"data": {"a": [1, 2]}, "weights": [1, -1]}, "weight of row 2 is -1"),
        ({"data": {"a": [1, 2]}, "weights": [0, 0]}, "all zero"),
        ({"data": {"a": [1, 2]}, "states": {"a": ["1", 1]}}, "different labels"),
    ],
)
def test_bad_data(given: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        read_cases(**given)  # type: ignore[arg-type]
