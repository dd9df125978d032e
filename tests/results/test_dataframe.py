"""Answers as pandas tables: every number in its place, errors where they are known."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import gibbsite as gs

pd = pytest.importorskip("pandas")

SITES = {"rain": ["no", "yes"], "level": [10, 20, 30], "seen": [0, 1]}
FACTORS = [(("rain", "level"), [[4, 1, 2], [1, 2, 3]]), (("level", "seen"), [[1, 2], [3, 1], [1, 1]])]
MODEL = gs.FactorGraph(SITES, FACTORS).observe({"seen": 1})


@pytest.fixture(scope="module")
def result() -> gs.Result:
    return gs.sample(MODEL, record=["marginals", "draws"], sweeps=1000, rng=1, progress=False)


def test_one_row_per_site_and_state(result: gs.Result):
    frame = result.to_dataframe()
    assert list(frame.columns) == ["site", "state", "probability", "mcse", "ess", "rhat", "observed"]
    assert len(frame) == 7
    for row in frame.itertuples():
        assert row.probability == result.marginals[row.site][row.state]
        for name in ("mcse", "ess", "rhat"):
            assert getattr(row, name) == getattr(result, name)[row.site][row.state]
        assert row.observed == (row.site == "seen")
    assert frame.isna().sum().sum() == 0


@pytest.mark.parametrize(
    ("solve", "columns"),
    [
        (gs.solve_exact, ["site", "state", "probability", "mcse", "observed"]),
        (gs.mean_field, ["site", "state", "probability", "mcse", "observed"]),
        (gs.infer, ["site", "state", "probability", "mcse", "observed"]),
    ],
)
def test_other_answers(solve: Any, columns: list[str]):
    answer = solve(MODEL)
    frame = answer.to_dataframe()
    assert list(frame.columns) == columns
    assert frame["probability"].sum() == pytest.approx(3.0)
    for row in frame.itertuples():
        assert row.probability == answer.marginals[row.site][row.state]


def test_lattices_of_two_states():
    frame = gs.sample(gs.ising_grid((30, 40), coupling=0.2), sweeps=50, rng=1, progress=False).to_dataframe()
    assert len(frame) == 2400
    assert frame["state"].tolist() == [-1, 1] * 1200
    assert frame.groupby("site")["probability"].sum().to_numpy() == pytest.approx(1.0)


def test_numbers_have_means_and_deviations():
    model = gs.Gaussian([1.0, 5.0], [[4.0, 0.0], [0.0, 9.0]], names=["u", "v"])
    run = gs.sample(model, sweeps=1000, rng=1, progress=False)
    frame = run.to_dataframe().set_index("site")
    assert list(frame.columns) == ["mean", "sd", "mcse", "sd_mcse", "ess", "rhat", "observed"]
    for site in ("u", "v"):
        row = frame.loc[site]
        assert (row["mean"], row["sd"]) == (run.marginals[site]["mean"], run.marginals[site]["sd"])
        assert (row["mcse"], row["sd_mcse"]) == (run.mcse[site]["mean"], run.mcse[site]["sd"])
        assert row["ess"] == min(run.ess[site].values())
        assert row["rhat"] == max(run.rhat[site].values())


def test_numbers_beside_states():
    model = gs.ContinuousModel(
        {"z": ["low", "high"], "a": gs.Interval(-5, 5), "k": 3},
        [(lambda x: -0.5 * x[0] ** 2, ("a",)), (lambda x: 0.3 * x[0], ("z",)), (lambda x: 0.1 * x[0], ("k",))],
    )
    run = gs.sample(model, sweeps=500, rng=1, record=["marginals", "draws"], progress=False)
    frame = run.to_dataframe()
    assert frame["site"].tolist() == ["z", "z", "a", "k", "k", "k"]
    number = frame.iloc[2]
    assert np.isnan(number["probability"])
    assert number["mean"] == run.marginals["a"]["mean"]
    assert frame.loc[frame["site"] == "k", "probability"].tolist() == list(run.marginals["k"].values())
    assert frame.loc[frame["site"] != "a", "mean"].isna().all()
    assert str(run.draws_dataframe()["a"].dtype) == "float64"


def test_draws(result: gs.Result):
    frame = result.draws_dataframe()
    assert frame.index.names == ["chain", "draw"]
    assert list(frame.columns) == ["rain", "level"]
    assert frame.loc[(2, 17), "level"] == [10, 20, 30][result.draws[2, 17, 1]]
    assert frame.loc[(3, 999), "rain"] == ["no", "yes"][result.draws[3, 999, 0]]
    with pytest.raises(gs.errors.ModelError, match="Draws were not recorded"):
        gs.sample(MODEL, sweeps=100, rng=1, progress=False).draws_dataframe()


def test_every_site_observed():
    known = MODEL.observe({"rain": "no", "level": 10})
    frame = gs.solve_exact(known).to_dataframe()
    assert len(frame) == 7
    assert frame["observed"].all()
    assert frame.loc[frame["site"] == "level", "state"].tolist() == [10, 20, 30]


def test_without_pandas_the_remedy_is_named(result: gs.Result, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for make in (result.to_dataframe, result.draws_dataframe):
        with pytest.raises(gs.GibbsiteError, match=r'pip install -e "\.\[dataframe\]"'):
            make()
