"""Values are read from Python and from files with one meaning, and what cannot be used is refused by name."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gibbsite.applications.bugs.language.data import read_inits, read_values
from gibbsite.errors import FormatError, GibbsiteError, ModelError

nan = float("nan")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, 3.0),
        (2.5, 2.5),
        (True, 1.0),
        (None, nan),
        (np.int8(4), 4.0),
        (np.float32(0.5), 0.5),
        (Fraction(1, 2), 0.5),
        (np.array(7), 7.0),
        (np.array(None), nan),
        ([1, None, 2.5], [1, nan, 2.5]),
        ((1, 2), [1, 2]),
        (range(3), [0, 1, 2]),
        ([], []),
        ([[1, 2, 3], (4, 5, None)], [[1, 2, 3], [4, 5, nan]]),
        ([np.array([1, 2]), np.array([3, 4])], [[1, 2], [3, 4]]),
        ([[[1], [2]], [[3], [4]]], [[[1], [2]], [[3], [4]]]),
        (np.array([1, 2], np.uint8), [1, 2]),
        (np.array([True, False]), [1, 0]),
        (np.array([1, None], object), [1, nan]),
        (np.asfortranarray([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.ma.masked_array([1, 2, 3], [0, 1, 0]), [1, nan, 3]),
        (float("inf"), float("inf")),
    ],
)
def test_values_of_python(value: Any, wanted: Any) -> None:
    found = read_values({"x": value})["x"]
    np.testing.assert_array_equal(found, np.array(wanted, float))
    assert found.dtype == np.float64 and found.shape == np.shape(wanted) and found.flags["C_CONTIGUOUS"]


def test_values_are_copies() -> None:
    mine = np.array([1.0, 2.0])
    read_values({"x": mine})["x"][0] = 5
    assert mine[0] == 1
    one, two = read_inits({"x": mine}, 2)
    one["x"][0] = 5
    assert two["x"][0] == 1


def test_columns_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {
            "a": [1, 2, 3],
            "b": [0.5, None, 1.5],
            "c": pd.array([1, None, 3], dtype="Int64"),
            "d": np.array([True, False, None], object),
            "e": pd.array([True, None, False], dtype="boolean"),
        },
        index=[5, 6, 7],
    )
    found = read_values(table)
    wanted = {"a": [1, 2, 3], "b": [0.5, nan, 1.5], "c": [1, nan, 3], "d": [1, 0, nan], "e": [1, nan, 0]}
    assert list(found) == list(wanted)
    for name, column in wanted.items():
        np.testing.assert_array_equal(found[name], column)
    both = read_values({"x": table[["a", "b"]], "y": table["c"], "z": [table["a"], table["b"]]})
    np.testing.assert_array_equal(both["x"], np.transpose([wanted["a"], wanted["b"]]))
    np.testing.assert_array_equal(both["y"], wanted["c"])
    np.testing.assert_array_equal(both["z"], [wanted["a"], wanted["b"]])
    for bad in (["u", "v"], pd.Categorical(["u", "v"]), pd.to_datetime(["2020-01-01", "2021-01-01"]), [1 + 2j, 3j]):
        with pytest.raises(ModelError, match=r"^when "):
            read_values(pd.DataFrame({"when": bad}))
    with pytest.raises(ModelError, match="two columns 'a'"):
        read_values(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ModelError, match="'Patient ID' cannot name a variable"):
        read_values(pd.DataFrame({"Patient ID": [1]}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("abc", "x is the text 'abc'"),
        (b"abc", "x is a bytes"),
        (1j, "x is a complex"),
        ({"a": 1}, "x is a dict"),
        ({1, 2}, "x is a set"),
        (object(), "x is an object"),
        ([1, "a"], "x holds the text 'a'"),
        ([1, 1j], "x holds a complex"),
        ([1, [2]], "x has an int where the others are rows"),
        ([[1, 2], [3]], "x has rows of different lengths, 1 and 2"),
        ([[1], None], "x has None where the others are rows"),
        ([{"a": 1}], "x holds a dict"),
        (np.array(["a"]), "x is an array of type <U1"),
        (np.array([1j]), "x is an array of type complex128"),
        (np.array(["2020-01-01"], "M8[D]"), "x is an array of type datetime64"),
        (10**400, "x holds a number that is too large"),
        ([10**400], "x holds a number that is too large"),
        (range(10**12), "x is a range of more than"),
        (Decimal(1), "x is a Decimal"),
    ],
)
def test_values_that_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_values({"x": value})
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("; expected a number or an array of numbers.")


def test_lists_that_contain_themselves_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ModelError, match="nested more than 32 levels"):
        read_values({"x": endless})


@pytest.mark.parametrize(
    "name", ["for", "in", "model", "data", "var", "1x", "a b", "", "a-b", "_a", ".a", "é", "a\n", 3, None]
)
def test_names_are_checked(name: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="name"):
        read_values({name: 1})
    if isinstance(name, str) and name:
        (tmp_path / "d.json").write_text(json.dumps({name: 1}))
        with pytest.raises(FormatError, match=r"d\.json: .*name"):
            read_values(tmp_path / "d.json")


@pytest.mark.parametrize("source", [3, None, [1], [("x", 1)], b"x", 1j])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(ModelError, match="values are a dictionary"):
        read_values(source)


def test_the_same_values_in_all_files(tmp_path: Path) -> None:
    files = {
        "d.json": '{"N": 2, "y": [[1, 2, null], [4, 5, 6]], "z": [true]}',
        "d.R": "N <- 2\ny <- structure(c(1, 4, 2, 5, NA, 6), .Dim = 2:3)\nz <- c(TRUE)",
        "d.txt": "list(N = 2, y = structure(.Data = c(1, 2, NA, 4, 5, 6), .Dim = c(2, 3)), z = c(1))",
    }
    for name, text in files.items():
        for data, suffix in ((text.encode(), ""), (b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), ".b")):
            path = tmp_path / (name + suffix)
            path.write_bytes(data)
            packed = tmp_path / (name + suffix + ".gz")
            packed.write_bytes(gzip.compress(data))
            for one in (path, str(path), packed):
                found = read_values(one)
                assert list(found) == ["N", "y", "z"]
                np.testing.assert_array_equal(found["y"], [[1, 2, nan], [4, 5, 6]])
                assert found["N"].shape == () and found["z"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.json", b'{"x": 1, "x": 2}', "x is given twice"),
        ("d.json", b'{"x": \n 1,, }', ":2:4: this is not JSON"),
        ("d.json", b'{"x": "a"}', "x is the text 'a'"),
        ("d.json", b'{"x": {"y": 1}}', "x is a dict"),
        ("d.json", b"[1, 2]", "expected an object with the values by name"),
        ("d.json", b'{"x": ' + b"[" * 10**5, "nested too deeply"),
        ("d.json", b'{"x": ' + b"[" * 40 + b"]" * 40 + b"}", "nested more than 32 levels deep"),
        ("d.R", b"x <- 'a'", "x is a text; expected numbers."),
        ("d.R", b"", "the file is empty."),
        ("d.R", b"x <- 1\0", "binary file"),
        ("d.R", b"x <- 1 # \xff", "not UTF-8 text"),
        ("d.R", b"for <- 1", "for is a word of the language"),
    ],
)
def test_files_that_are_refused(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_values(tmp_path / name)
    assert message in str(caught.value)


def test_missing_files_are_refused() -> None:
    with pytest.raises(FormatError, match="there is no such file"):
        read_values("nowhere.R")


def test_initial_values(tmp_path: Path) -> None:
    assert read_inits(None, 2) == [{}, {}]
    assert read_inits({"a": 1}, 2) == [{"a": 1.0}] * 2
    (tmp_path / "init.R").write_text("a <- 3")
    assert read_inits([{"a": 1}, tmp_path / "init.R", None], 3) == [{"a": 1.0}, {"a": 3.0}, {}]
    assert read_inits(str(tmp_path / "init.R"), 1) == [{"a": 3.0}]
    with pytest.raises(ModelError, match="there are 2 sets of initial values for 3 chains"):
        read_inits([{}, {}], 3)
    with pytest.raises(ModelError, match="values are a dictionary"):
        read_inits([3], 1)


def test_random_numbers_of_jags_are_ignored_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "init.R").write_text('".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- 1\na <- 2')
    with pytest.warns(UserWarning, match=r"\.RNG\.name, \.RNG\.seed are ignored"):
        assert read_inits([tmp_path / "init.R"], 1) == [{"a": 2.0}]
    with pytest.warns(UserWarning, match=r"\.RNG\.name, \.RNG\.seed are ignored"):
        assert read_inits({".RNG.name": "base::Wichmann-Hill", ".RNG.seed": 3, "a": 2}, 1) == [{"a": 2.0}]
    with pytest.raises(GibbsiteError, match=r"\.RNG\.name, \.RNG\.seed belong to initial values"):
        read_values(tmp_path / "init.R")
