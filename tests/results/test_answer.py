"""All answers have the same names, are shown and saved alike, and judge themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.best_states.search import search_best

MODEL = gs.FactorGraph(
    {"a": ["no", "yes"], "b": 3, "c": 2}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]]), (("b", "c"), [[1, 2], [3, 1], [1, 1]])]
).observe({"c": 1})
QUIET: dict[str, Any] = {"rng": 1, "progress": False}
ANSWERS: dict[str, Callable[[], Any]] = {
    "exact": lambda: gs.solve_exact(MODEL),
    "sampled": lambda: gs.sample(MODEL, sweeps=500, record=["marginals", "best"], **QUIET),
    "best only": lambda: gs.sample(MODEL, sweeps=50, record="best", **QUIET),
    "weighted": lambda: gs.sample_weighted(MODEL, gs.importance.MiniBucket(), draws=1024, **QUIET),
    "mean field": lambda: gs.mean_field(MODEL),
    "beliefs": lambda: gs.belief_propagation(MODEL),
    "maxima": lambda: gs.belief_propagation(MODEL, kind="max"),
    "search": lambda: search_best(MODEL, sweeps=50, **QUIET),
    "log Z": lambda: gs.log_z.bound_log_z(MODEL, draws=1024, **QUIET),
    "infer MAR": lambda: gs.infer(MODEL),
    "infer MAP": lambda: gs.infer(MODEL, "MAP", method="annealed", sweeps=50, **QUIET),
    "infer PR": lambda: gs.infer(MODEL, "PR"),
}


@pytest.fixture(scope="module", params=ANSWERS)
def answer(request: pytest.FixtureRequest) -> Any:
    return ANSWERS[request.param]()


def test_every_answer_has_the_shared_names(answer: Any) -> None:
    assert isinstance(answer, gs.results.Answer)
    for table in (answer.marginals, answer.mcse):
        assert table is None or list(table["a"]) == ["no", "yes"]
    assert (answer.marginals is None) == (answer.mcse is None)
    for number in (answer.log_z, answer.log_z_error, answer.log_potential):
        assert number is None or isinstance(number, float)
    assert (answer.assignment is None) == (answer.log_potential is None)
    if answer.log_z_bounds is not None:
        low, high = answer.log_z_bounds
        assert low <= gs.solve_exact(MODEL).log_z + 1e-9
        assert high >= gs.solve_exact(MODEL).log_z - 1e-9
    if answer.assignment is not None:
        assert answer.assignment["c"] == 1
        assert answer.log_potential == pytest.approx(MODEL.log_potential({k: answer.assignment[k] for k in "ab"}))


def test_every_answer_judges_itself(answer: Any) -> None:
    verdict = answer.diagnostics
    assert type(verdict) is gs.results.Diagnostics
    assert verdict.kind in ("exact", "estimate", "approximation", "lower bound", "upper bound", "best found")
    assert verdict.converged == answer.converged
    assert (verdict.converged is False) == bool(verdict.reasons) or verdict.figures.get("errors") == "none"
    for name, figure in verdict.figures.items():
        assert getattr(verdict, name) is verdict[name] is figure
    json.dumps(verdict.to_dict(), default=str)
    with pytest.raises(AttributeError, match="no figure 'nonsense'"):
        _ = verdict.nonsense


def test_every_answer_is_shown(answer: Any) -> None:
    assert answer.summary().startswith(answer.line())
    assert str(answer) == answer.summary()
    page = answer._repr_html_()
    assert page.startswith("<div") and page.endswith("</div>")
    assert len(answer.to_dataframe()) > 0
    assert answer.to_datatree().attrs["inference_library"] == "gibbsite"


def test_every_answer_is_saved_and_loaded(answer: Any, tmp_path: Path) -> None:
    gs.save(answer, tmp_path / "a")
    answer.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = gs.load(tmp_path / "a")
    for name in ("log_z", "log_z_error", "log_potential", "log_z_bounds", "interrupted", "remarks", "converged"):
        assert getattr(again, name) == getattr(answer, name) or np.isnan(getattr(answer, name)), name
    assert again.diagnostics.reasons == answer.diagnostics.reasons
    assert again.diagnostics.line() == answer.diagnostics.line()
    assert (again.assignment is None) == (answer.assignment is None)
    assert answer.assignment is None or dict(again.assignment) == dict(answer.assignment)
    for name in ("marginals", "mcse"):
        one, other = getattr(answer, name), getattr(again, name)
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one.cells, other.cells, equal_nan=True)


def test_only_answers_and_scans_are_saved(tmp_path: Path) -> None:
    for wrong in (MODEL, gs.Result, None, 3):
        with pytest.raises(gs.errors.ArgumentError, match="Only answers and optimised scans"):
            gs.save(wrong, tmp_path / "x")
