"""Expectations equal those of enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError

RNG = np.random.default_rng(1)
MODEL = gs.FactorGraph(
    {"a": [1, 2], "b": [0, 5, 7], "c": ["x", "y"]}, [(("a", "b"), RNG.random((2, 3))), (("b", "c"), RNG.random((3, 2)))]
)
LAW = gs.exact.enumerate(MODEL).law
A, B = np.array([1.0, 2.0])[:, None, None], np.array([0.0, 5.0, 7.0])[None, :, None]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a", A + 0 * B),
        ("2 * a + b ** 2 - 1", 2 * A + B**2 - 1),
        ("abs(b - 5) / a", abs(B - 5) / A),
        ("max(a, b) - min(a, 1) + sqrt(exp(log(a)))", np.maximum(A, B) - np.minimum(A, 1) + np.sqrt(A)),
    ],
)
def test_expressions(text: str, values: np.ndarray) -> None:
    found = gs.questions.compute_expectation(MODEL, text)
    mean = float((LAW * values).sum())
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert found.sd == pytest.approx(float(np.sqrt((LAW * (values - mean) ** 2).sum())), abs=1e-9)


def test_sums_of_numbers_of_labels() -> None:
    found = gs.questions.compute_expectation(MODEL, {"c": {"x": 1.0, "y": -2.0}, "a": {1: 3.0, 2: 0.5}})
    values = np.array([1.0, -2.0])[None, None, :] + np.array([3.0, 0.5])[:, None, None]
    mean = float((LAW * values).sum())
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert found.sd == pytest.approx(float(np.sqrt((LAW * (values - mean) ** 2).sum())), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a +", "cannot be read"),
        ("3", "names no site"),
        ("c", "are not numbers"),
        ("a.b", "has the part"),
        ("__import__('os')", "a"),
        ("log(b)", "no value for some states"),
        ("max(a)", "has the part"),
    ],
)
def test_wrong_expressions_are_refused(text: str, said: str) -> None:
    with pytest.raises(gs.GibbsiteError, match=said):
        gs.questions.compute_expectation(MODEL, text)
    with pytest.raises(ArgumentError, match="leave out 'y'"):
        gs.questions.compute_expectation(MODEL, {"c": {"x": 1.0}})
