"""Data frames as data of fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError

pd: Any = pytest.importorskip("pandas")
EXACT = {"gradient": "exact", "ridge": 0.01, "progress": False}


def spins() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.where(rng.random((200, 3)) < [0.3, 0.5, 0.8], 1, -1)


def test_columns_are_sites_and_texts_are_states() -> None:
    draws = spins()
    frame = pd.DataFrame(
        {
            "rain": np.where(draws[:, 0] > 0, "yes", "no"),
            (0, 1): pd.Categorical(np.where(draws[:, 1] > 0, "high", "low"), categories=["low", "high"]),
            7: draws[:, 2],
        }
    )
    fit = gs.learn.fit_ising(frame, **EXACT)
    assert fit.model.sites == ("rain", "(0, 1)", "7")
    assert [fit.model.labels(k) for k in range(3)] == [("no", "yes"), ("low", "high"), (-1, 1)]
    assert np.array_equal(fit.parameters, gs.learn.fit_ising(draws, **EXACT).parameters)
    chosen = gs.learn.fit_ising(frame, [("rain", "7")], **EXACT)
    assert chosen.pairs.tolist() == [[0, 2]]


def test_states_of_pairwise_fits() -> None:
    draws = (spins() + 1) // 2
    draws[:3, 0] = 2
    frame = pd.DataFrame({"a": np.array(["x", "y", "z"])[draws[:, 0]], "b": draws[:, 1]})
    fit = gs.learn.fit_pairwise(frame, **EXACT)
    assert fit.model.labels("a") == ("x", "y", "z") and fit.model.labels("b") == (0, 1, 2)
    assert np.array_equal(fit.parameters, gs.learn.fit_pairwise(draws[:, :2], states=3, **EXACT).parameters)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x", "y", "z"]}, "the column 'a' has 3 states, and an Ising model two; use fit_pairwise"),
        ({"a": ["x", "x", "x"]}, "the column 'a' has 1 states"),
        ({"a": ["x", None, "y"]}, "the column 'a' has no value in row 1"),
        ({"a": [0.0, 1.0, np.nan]}, "the column 'a' has no value in row 2"),
        ({"a": [0, 1, 2]}, "must be -1 and 1, or 0 and 1"),
        ({1: [0, 1, 0], "1": [0, 1, 0]}, "two columns of the name '1'"),
        ({"a": []}, "must have a row per draw"),
    ],
)
def test_what_is_refused(columns: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gs.learn.fit_ising(pd.DataFrame(columns), **EXACT)


def test_names_and_states_are_those_of_the_frame() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"]})
    with pytest.raises(ArgumentError, match="sites are the columns of a data frame"):
        gs.learn.fit_ising(frame, sites=["c", "d"])
    with pytest.raises(ArgumentError, match="states are those of the columns"):
        gs.learn.fit_pairwise(frame, states=2)
    unequal = pd.DataFrame({"a": ["x", "y", "z"], "b": ["u", "v", "u"]})
    with pytest.raises(ArgumentError, match="the column 'b' has 2 states, and 'a' has 3"):
        gs.learn.fit_pairwise(unequal)
