"""Cells become codes, and wrong cells are named by row and column."""

from __future__ import annotations

import pytest

import gibbsite as gs
from gibbsite.applications.cases.reading import read_case_table

ASIA = gs.example("asia")


@pytest.mark.parametrize("empty", ["", "NA", "?", None, float("nan"), "*", " "])
def test_empty_cells_are_not_observed(empty: object) -> None:
    found = read_case_table(ASIA, {"smoke": ["yes", empty]})
    assert found.codes[:, ASIA.index("smoke")].tolist() == [0, -1] and not found.problems


def test_a_wrong_cell_takes_its_whole_row() -> None:
    found = read_case_table(ASIA, {"smoke": ["yes", "no"], "tub": ["perhaps", "no"]})
    assert (found.codes[0] == -1).all() and len(found) == 2
    assert found.problems == {0: "row 1, column 'tub': there is no state 'perhaps'; the states are yes, no"}


def test_parquet_files_are_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "cases.parquet"
    pandas.DataFrame({"smoke": ["yes", None]}).to_parquet(path)
    assert read_case_table(ASIA, path).codes[:, ASIA.index("smoke")].tolist() == [0, -1]


def test_numbers_and_truths_may_be_written_in_other_ways() -> None:
    model = gs.FactorGraph({"n": ["0", "1", "2.5"], "t": ["TRUE", "FALSE"], "w": ["one", "1"]})
    found = read_case_table(
        model, {"n": [0.0, "1.00", 2.5, 3], "t": [True, False, "TRUE", None], "w": ["1", "one", "", ""]}
    )
    assert found.codes[:3].tolist() == [[0, 0, 1], [1, 1, 0], [2, 0, -1]]
    assert list(found.problems) == [3] and "no state '3'" in found.problems[3]
