"""What fits return."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs

pytest.importorskip("pandas")
EXACT = {"gradient": "exact", "ridge": 0.01, "progress": False}


def test_parameters_as_a_table() -> None:
    draws = np.where(np.random.default_rng(1).random((100, 3)) < 0.4, 1, -1)
    fit = gs.learn.fit_ising(draws, [(0, 2)], sites=["a", "b", "c"], **EXACT)
    table = fit.to_dataframe()
    assert table.columns.tolist() == ["site", "other", "value", "se"]
    assert table["site"].tolist() == ["a", "a", "b", "c"]
    assert table["other"].tolist() == ["c", None, None, None]
    assert table["value"].tolist() == fit.parameters.tolist()
    assert table["se"].tolist() == fit.standard_errors.tolist()
    alone = gs.learn.fit_ising(draws, [(0, 2)], fields=False, **EXACT).to_dataframe()
    assert len(alone) == 1


def test_entries_of_tables_are_rows() -> None:
    draws = np.random.default_rng(2).integers(0, 3, (100, 2))
    fit = gs.learn.fit_pairwise(draws, **EXACT)
    table = fit.to_dataframe()
    assert len(table) == 9 + 6 == fit.parameters.size
    row = table[(table["state"] == 2) & (table["other_state"] == 1)]
    assert row["value"].tolist() == [fit.couplings[0, 2, 1]]
    row = table[(table["site"] == "1") & (table["state"] == 2) & table["other"].isna()]
    assert row["value"].tolist() == [fit.fields[1, 2]]
