"""Statistics of numbers from recorded draws."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError
from gibbsite.results.measure.diagnostics import ess, rhat
from gibbsite.results.statistics import statistics_lines


def test_statistics_are_those_of_the_draws() -> None:
    normal = gs.Gaussian([1.0, -2.0], [[4.0, 1.0], [1.0, 1.0]], names=["x", "y"])
    result = gs.sample(normal, sweeps=2000, record=["marginals", "draws"], rng=1, progress=False)
    found = result.statistics(probabilities=[0.1, 0.025])
    assert list(found) == ["x", "y"]
    assert list(found["y"]) == ["mean", "sd", "mcse", "ess", "rhat", "q10", "q2.5"]
    y = result.draws[:, :, 1]
    assert found["y"]["mean"] == pytest.approx(y.mean())
    assert found["y"]["sd"] == pytest.approx(y.std())
    assert found["y"]["q10"] == pytest.approx(np.quantile(y, 0.1))
    assert found["y"]["ess"] == pytest.approx(float(ess(y)))
    assert found["y"]["rhat"] == pytest.approx(float(rhat(y)))
    assert found["y"]["mcse"] == pytest.approx(y.std() / np.sqrt(float(ess(y))), rel=0.01)
    assert list(result.statistics("x")) == ["x"]


def test_draws_must_have_been_recorded() -> None:
    result = gs.sample(gs.Gaussian([0.0], [[1.0]], names=["x"]), sweeps=50, rng=1, progress=False)
    with pytest.raises(ArgumentError, match="Draws of numbers were not recorded"):
        result.statistics()


def test_lines_are_aligned() -> None:
    lines = list(statistics_lines({"a": {"mean": 1.0, "rhat": 1.0}, "long": {"mean": -12345.678, "rhat": np.inf}}))
    assert lines == ["            mean   rhat", "a              1  1.000", "long  -1.235e+04    inf"]
    assert list(statistics_lines({})) == [""]
