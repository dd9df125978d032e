"""Answers for many cases equal those of one case after another, and bad rows do not stop the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError, GibbsiteError

ALARM = gs.example("alarm")


def draw_cases(n: int, share: float, seed: int = 1) -> dict[str, list[Any]]:
    """Return draws of the network with a share of the cells left out."""
    rng = np.random.default_rng(seed)
    codes = gs.solve_exact(ALARM).draw(n, rng)
    gone = rng.random(codes.shape) < share
    labels = [ALARM.labels(site) for site in ALARM.sites]
    return {
        site: ["" if hidden else labels[k][code] for code, hidden in zip(codes[:, k], gone[:, k], strict=True)]
        for k, site in enumerate(ALARM.sites)
    }


CASES = draw_cases(25, 0.6)


def evidence(row: int) -> dict[str, Any]:
    return {site: column[row] for site, column in CASES.items() if column[row] != ""}


def test_probabilities_are_those_of_each_case_alone() -> None:
    found = gs.applications.solve_cases(ALARM, CASES, ["HYPOVOLEMIA", "CO"])
    for row in range(25):
        exact = gs.solve_exact(ALARM.observe(evidence(row)))
        assert found.log_evidence[row] == pytest.approx(exact.log_z, abs=1e-9)
        for target in ("HYPOVOLEMIA", "CO"):
            wanted = exact.marginals[target]
            if target in evidence(row):
                wanted = {label: float(label == evidence(row)[target]) for label in ALARM.labels(target)}
            np.testing.assert_allclose(found.probabilities(target)[row], list(wanted.values()), atol=1e-9)


def test_states_are_the_most_probable_ones() -> None:
    found = gs.applications.solve_cases(ALARM, CASES, ALARM.sites, task="MAP")
    assert found.states is not None
    for row in range(25):
        assert found.log_evidence[row] == pytest.approx(gs.solve_exact(ALARM.observe(evidence(row))).log_potential)
        assert ALARM.log_potential(found.states[row]) == pytest.approx(found.log_evidence[row])


def test_sampled_cases_are_within_their_errors() -> None:
    model = gs.ising_grid((4, 4), coupling=0.3, field=0.1)
    cases = {"0": ["1", "-1"], "15": ["1", ""]}
    exact = gs.applications.solve_cases(model, cases, ["5"])
    drawn = gs.applications.solve_cases(model, cases, ["5"], method="gibbs", sweeps=4000, rng=1, progress=False)
    assert drawn.errors is not None
    # six standard errors: false alarm below 1e-8
    assert (np.abs(drawn.cells - exact.cells) < 6 * drawn.errors).all()


def test_bad_rows_are_named_and_the_others_answered(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("smoke,xray,id,tub,either\nyes,maybe,7,,\nno,yes,8,,\n?,NA,9,yes,no\n", encoding="utf-8")
    found = gs.applications.solve_cases(gs.example("asia"), path, ["lung"])
    assert found.problems == {
        0: "row 1, column 'xray': there is no state 'maybe'; the states are yes, no",
        2: "row 3: the observations are impossible together",
    }
    assert np.isnan(found.cells[[0, 2]]).all() and not np.isnan(found.cells[1]).any()
    assert found.best("lung")[0] is None and found.best("lung")[1] is not None


def test_evidence_of_the_model_holds_for_all_cases() -> None:
    asia = gs.example("asia").observe({"smoke": "yes"})
    found = gs.applications.solve_cases(asia, {"smoke": ["yes", "no", ""], "xray": ["yes", "yes", "yes"]}, ["lung"])
    assert list(found.problems) == [1] and "observed as 'yes' for all cases" in found.problems[1]
    wanted = gs.solve_exact(asia.observe({"xray": "yes"})).marginals["lung"]["yes"]
    assert found.probabilities("lung")[[0, 2], 0] == pytest.approx(wanted)


def test_data_frames_and_tables() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"smoke": pandas.Categorical(["yes", None]), "tub": ["no", "yes"]})
    found = gs.applications.solve_cases(gs.example("asia"), frame, ["lung"])
    table = found.to_dataframe()
    assert list(table) == ["row", "lung=yes", "lung=no", "log_evidence", "problem"]
    np.testing.assert_allclose(table["lung=yes"], found.probabilities("lung")[:, 0])


def test_numeric_labels_match_numbers() -> None:
    model = gs.FactorGraph({"a": [0, 1], "b": [5, 10]}, [(("a", "b"), [[1, 2], [3, 4]])])
    for column in ([1.0, float("nan")], ["1", None], [np.int64(1), ""], ["1.0", "nan"]):
        found = gs.applications.solve_cases(model, {"a": column}, ["b"])
        assert found.problems == {}
        np.testing.assert_allclose(found.cells, [[3 / 7, 4 / 7], [4 / 10, 6 / 10]])


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ({}, "no rows"),
        ({"smok": ["yes"]}, "did you mean 'smoke'"),
        ({"smoke": []}, "no rows"),
        (3, "must be a data frame"),
    ],
)
def test_wrong_data_is_refused(cases: Any, said: str) -> None:
    with pytest.raises(GibbsiteError, match=said):
        gs.applications.solve_cases(gs.example("asia"), cases)
    with pytest.raises(ArgumentError, match="task"):
        gs.applications.solve_cases(gs.example("asia"), {"smoke": ["yes"]}, task="X")
