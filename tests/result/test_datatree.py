"""Results as DataTree: groups and names, and what ArviZ makes of them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version
    import arviz as az

SITES = {"rain": ["no", "yes"], "level": [10, 20, 30], "seen": [0, 1]}
FACTORS = [(("rain", "level"), [[4, 1, 2], [1, 2, 3]]), (("level", "seen"), [[1, 2], [3, 1], [1, 1]])]


def run(**more: Any) -> gs.Result:
    model = gs.FactorGraph(SITES, FACTORS).observe({"seen": 1})
    return gs.sample(model, sweeps=1000, rng=1, progress=False, **more)


@pytest.fixture(scope="module")
def full() -> gs.Result:
    return run(record=["marginals", "draws", "energy"])


@pytest.fixture(scope="module")
def plain() -> gs.Result:
    return run()


def read_arviz(tree: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return az.from_datatree(tree)


def test_groups(full: gs.Result, plain: gs.Result):
    assert set(full.to_datatree().children) == {
        "posterior",
        "sample_stats",
        "marginals",
        "observed_data",
    }
    assert set(plain.to_datatree().children) == {"posterior", "marginals", "observed_data"}


def test_no_variable_is_named_like_a_dimension(full: gs.Result, plain: gs.Result):
    for result in (full, plain):
        for node in result.to_datatree().subtree:
            data = node.to_dataset(inherit=False)
            assert not set(data.data_vars) & set(data.dims)


def test_draws_and_energies(full: gs.Result):
    tree = full.to_datatree()
    x = tree["posterior/x"]
    assert x.dims == ("chain", "draw", "site")
    assert x.coords["site"].values.tolist() == ["rain", "level"]
    assert np.array_equal(x.values, full.values)
    assert tree["sample_stats/lp"].dims == ("chain", "draw")
    assert np.array_equal(tree["sample_stats/lp"].values, full.energy)
    labels = json.loads(tree["posterior"].attrs["labels"])
    assert [labels[k] for k in x.coords["label_set"].values] == [["no", "yes"], [10, 20, 30]]


def test_marginals_are_padded(full: gs.Result):
    group = full.to_datatree()["marginals"]
    assert group["probability"].dims == ("site", "state")
    assert group["probability"].sel(site="level", state=2).item() == full.marginals["level"][30]
    assert group["probability"].sel(site="rain", state=2).item() == 0.0
    for name in ("mcse", "ess", "rhat"):
        assert group[name].sel(site="rain", state=1).item() == getattr(full, name)["rain"]["yes"]
        assert np.isnan(group[name].sel(site="rain", state=2).item())
        assert np.isfinite(group[name].sel(site="level")).all()
    labels = json.loads(group.attrs["labels"])
    assert labels[group["label_set"].sel(site="level").item()] == [10, 20, 30]


def test_observed_data(full: gs.Result):
    group = full.to_datatree()["observed_data"]
    assert group["x"].sel(site="seen").item() == 1
    assert json.loads(group.attrs["labels"]) == [[0, 1]]


def test_attributes(full: gs.Result):
    attrs = full.to_datatree().attrs
    assert attrs["inference_library"] == "gibbsite"
    assert attrs["inference_library_version"] == full.plan.gibbsite
    assert json.loads(attrs["plan"])["entropy"] == 1
    assert json.loads(attrs["evidence"]) == {"seen": 1}
    assert attrs["converged"] == 1
    assert "created_at" not in attrs


def test_equal_results_give_equal_trees():
    assert run().to_datatree().identical(run().to_datatree())


def test_arviz_summary_of_draws(full: gs.Result):
    data = read_arviz(full.to_datatree())
    summary = az.summary(data, kind="all")
    assert list(summary.index) == ["x[rain]", "x[level]"]
    assert summary.loc["x[rain]", "mean"] == pytest.approx(full.marginals["rain"]["yes"], abs=0.03)
    assert (summary["r_hat"] < 1.02).all()
    assert data.posterior.attrs["inference_library"] == "gibbsite"
    assert "lp" in data.sample_stats


def test_arviz_summary_of_batches(plain: gs.Result):
    data = read_arviz(plain.to_datatree())
    summary = az.summary(data, round_to="none")
    assert list(summary.index) == [
        "p[rain=no]",
        "p[rain=yes]",
        "p[level=10]",
        "p[level=20]",
        "p[level=30]",
    ]
    ours = plain.marginals["level"][20]
    assert summary.loc["p[level=20]", "mean"] == pytest.approx(ours, abs=1e-5)
    assert summary.loc["p[level=20]", "mcse_mean"] == pytest.approx(plain.mcse["level"][20], rel=0.05)


def test_two_state_models_have_one_cell_per_site():
    result = gs.sample(gs.ising_grid((2, 3), coupling=0.2), sweeps=1000, rng=1, progress=False)
    tree = result.to_datatree()
    assert tree["posterior/p"].coords["cell"].values.tolist() == [f"{k}=1" for k in range(6)]
    assert tree["marginals/probability"].shape == (6, 2)
    assert tree["posterior"].attrs["batch_length"] == result.length
    assert "observed_data" not in tree.children


def test_some_sites_drawn():
    result = run(record=["marginals", gs.Draws(["level"])])
    x = result.to_datatree()["posterior/x"]
    assert x.coords["site"].values.tolist() == ["level"]


def test_only_energy():
    with pytest.warns(gs.ConvergenceWarning, match="no probabilities were recorded"):
        tree = run(record=["energy"]).to_datatree()
    assert set(tree.children) == {"sample_stats", "observed_data"}


def test_every_site_observed():
    model = gs.FactorGraph(SITES, FACTORS).observe({"seen": 1, "rain": "no", "level": 10})
    tree = gs.sample(model, sweeps=500, rng=1, progress=False).to_datatree()
    assert set(tree.children) == {"observed_data"}


def test_tree_can_be_stored(full: gs.Result, tmp_path: Path):
    pytest.importorskip("h5netcdf")
    import xarray

    tree = full.to_datatree()
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xarray.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as again:
        assert np.array_equal(again["posterior/x"], tree["posterior/x"])
        assert again.attrs["plan"] == tree.attrs["plan"]


def test_html_is_small_and_escaped():
    model = gs.FactorGraph({"<b>&": ["<i>", "'\""], "c": 12}, [(("<b>&",), [1, 2])])
    result = gs.sample(model, sweeps=1000, rng=1, progress=False)
    html = result._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
    assert "4 rarer states" in html
    assert "converged" in html
    assert html.count("<div") == html.count("</div>")


def test_html_of_a_large_or_bad_run():
    result = gs.sample(gs.ising_grid((400, 400), coupling=0.5), sweeps=4, rng=1, progress=False)
    html = result._repr_html_()
    assert len(html) < 20_000
    assert "not converged" in html
    assert "159,990 more sites" in html


def test_html_names_observed_sites(full: gs.Result):
    assert "seen (observed)" in full._repr_html_()
