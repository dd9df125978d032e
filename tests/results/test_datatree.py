"""Results as DataTree: groups and names, and what ArviZ makes of them."""

from __future__ import annotations

import json
import sys
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


def test_groups(full: gs.Result, plain: gs.Result):
    assert set(full.to_datatree().children) == {"posterior", "sample_stats", "marginals", "observed_data"}
    assert set(plain.to_datatree().children) == {"batch_means", "marginals", "observed_data"}


def test_no_variable_is_named_like_a_dimension(full: gs.Result, plain: gs.Result):
    for result in (full, plain):
        for node in result.to_datatree().subtree:
            data = node.to_dataset(inherit=False)
            assert not set(data.data_vars) & set(data.dims)


def test_draws_and_energies(full: gs.Result):
    tree = full.to_datatree()
    assert list(tree["posterior"].data_vars) == ["rain", "level"]
    rain, level = tree["posterior/rain"], tree["posterior/level"]
    assert rain.dims == level.dims == ("chain", "draw")
    assert np.array_equal(rain.values, full.draws[:, :, 0])  # words by their codes
    assert json.loads(rain.attrs["labels"]) == ["no", "yes"]
    assert np.array_equal(level.values, np.array([10, 20, 30])[full.draws[:, :, 1]])
    assert tree["sample_stats/lp"].dims == ("chain", "draw")
    assert np.array_equal(tree["sample_stats/lp"].values, -full.energy)


def test_numbered_sites_are_one_variable():
    model = gs.ising_grid((2, 3), coupling=0.2).observe({"2": 1})
    result = gs.sample(model, record=["marginals", "draws"], sweeps=1000, rng=1, progress=False)
    tree = result.to_datatree()
    x = tree["posterior/x"]
    assert list(tree["posterior"].data_vars) == ["x"]
    assert x.dims == ("chain", "draw", "site")
    assert x.coords["site"].values.tolist() == [0, 1, 3, 4, 5]
    assert np.array_equal(x.values, 2 * result.draws - 1)
    assert tree["observed_data/x"].sel(site=2).item() == 1
    assert "label_set" not in x.coords


def test_names_that_cannot_be_variables():
    sites = {"chain": 2, "a/b": 2, "a_b": 2, "x": 2, "0": ["p", "q"], "7": [1, 2, 3]}
    result = gs.sample(gs.FactorGraph(sites), record="draws", sweeps=1000, rng=1, progress=False)
    group = result.to_datatree()["posterior"]
    assert set(group.data_vars) == {"chain_", "a_b", "a_b_", "x_", "x"}
    named = {group[name].attrs.get("site", name) for name in group.data_vars}
    assert named == {"chain", "a/b", "a_b", "x"}
    labels = json.loads(group["x"].attrs["labels"])
    assert [labels[k] for k in group["label_set"].values] == [["p", "q"], [1, 2, 3]]
    assert np.array_equal(group["x"].sel(site=7).values, result.draws[:, :, 5] + 1)


def test_numbers_have_moments_and_no_probabilities():
    model = gs.Gaussian([1.0, 5.0], [[4.0, 0.0], [0.0, 9.0]], names=["u", "v"])
    result = gs.sample(model, sweeps=1000, rng=1, progress=False)
    tree = result.to_datatree()
    assert set(tree.children) == {"batch_means", "moments"}
    assert tree["moments/mean"].sel(site="v").item() == result.marginals["v"]["mean"]
    assert tree["moments/mcse_sd"].sel(site="u").item() == result.mcse["u"]["sd"]
    assert tree["batch_means"].coords["cell"].values.tolist() == ["u: value", "u: square", "v: value", "v: square"]
    drawn = gs.sample(model, record=["marginals", "draws"], sweeps=1000, rng=1, progress=False)
    posterior = drawn.to_datatree()["posterior"]
    assert np.array_equal(posterior["v"].values, drawn.draws[:, :, 1])


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
    assert group["seen"].item() == 1
    assert json.loads(group["seen"].attrs["labels"]) == [0, 1]


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


def test_arviz_reads_draws(full: gs.Result):
    import matplotlib.pyplot as plt

    data = full.to_arviz()
    summary = az.summary(data, round_to="none")
    assert list(summary.index) == ["rain", "level"]
    found = summary.astype(float).loc["rain"]
    assert found["mean"] == pytest.approx(full.draws[:, :, 0].mean(), abs=1e-9)
    assert found["r_hat"] < 1.02
    assert float(az.rhat(data)["level"]) < 1.02
    assert float(az.ess(data)["level"]) > 400
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of plotting libraries
        az.plot_trace(data)
    plt.close("all")
    assert data["posterior"].attrs["inference_library"] == "gibbsite"
    assert "lp" in data["sample_stats"]


def test_arviz_reads_lattices():
    record = ["draws", "energy"]
    result = gs.sample(gs.ising_grid((2, 3), coupling=0.2), record=record, sweeps=1000, rng=1, progress=False)
    assert list(az.summary(result.to_arviz()).index) == [f"x[{k}]" for k in range(6)]


def test_arviz_before_1_reads_the_tree_by_its_own_function(full: gs.Result):
    if not hasattr(az, "from_datatree"):
        pytest.skip("ArviZ 1 takes the tree as it is")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about groups it does not know
        data = az.from_datatree(full.to_datatree())
    assert list(az.summary(data).index) == ["rain", "level"]


def test_batch_means_are_not_taken_for_draws(plain: gs.Result):
    group = plain.to_datatree()["batch_means"]
    assert group["mean"].dims == ("chain", "batch", "cell")
    assert group.attrs["batch_length"] == plain._length
    ours = group["mean"].sel(cell="level=20").mean().item()
    assert ours == pytest.approx(plain.marginals["level"][20], abs=1e-5)
    with pytest.raises(gs.errors.ModelError, match="add 'draws' to record="):
        plain.to_arviz()


def test_without_arviz_the_remedy_is_named(full: gs.Result, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(gs.GibbsiteError, match=r'pip install -e "\.\[arviz\]"'):
        full.to_arviz()


def test_two_state_models_have_one_cell_per_site():
    result = gs.sample(gs.ising_grid((2, 3), coupling=0.2), sweeps=1000, rng=1, progress=False)
    tree = result.to_datatree()
    assert tree["batch_means/mean"].coords["cell"].values.tolist() == [f"{k}=1" for k in range(6)]
    assert tree["marginals/probability"].shape == (6, 2)
    assert "observed_data" not in tree.children


def test_some_sites_drawn():
    result = run(record=["marginals", gs.Draws(["level"])])
    assert list(result.to_datatree()["posterior"].data_vars) == ["level"]
    with pytest.raises(gs.errors.ModelError, match="each site once"):
        run(record=gs.Draws(["level", "level"]))


def test_only_energy():
    """Marginals are kept for the verdict."""
    tree = run(record=["energy"]).to_datatree()
    assert set(tree.children) == {"batch_means", "sample_stats", "marginals", "observed_data"}


def test_arviz_takes_the_tree_itself(full: gs.Result):
    tree = full.to_datatree()
    direct, converted = az.summary(tree), az.summary(full.to_arviz())
    assert direct.equals(converted)
    assert list(direct.index) == ["rain", "level"]
    assert float(az.ess(tree)["rain"]) == float(az.ess(full.to_arviz())["rain"])


def test_a_site_may_be_called_x():
    """Its name is taken only where there are numbered sites as well."""
    model = gs.FactorGraph({"x": 2, "y": 2}, [(("x", "y"), [[2, 1], [1, 2]])])
    tree = gs.sample(model, record="draws", sweeps=500, rng=1, progress=False).to_datatree()
    assert list(tree["posterior"].data_vars) == ["x", "y"]
    model = gs.FactorGraph({"x": 2, "0": 2}, [(("x", "0"), [[2, 1], [1, 2]])])
    tree = gs.sample(model, record="draws", sweeps=500, rng=1, progress=False).to_datatree()
    assert list(tree["posterior"].data_vars) == ["x", "x_"]
    assert tree["posterior/x_"].attrs["site"] == "x"


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
        assert np.array_equal(again["posterior/level"], tree["posterior/level"])
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


def test_html_shows_numbers_as_numbers():
    model = gs.Gaussian([1000.0], [[4.0]], names=["u"])
    html = gs.sample(model, sweeps=1000, rng=1, progress=False)._repr_html_()
    assert "probability" not in html
    assert "inline-block" not in html  # no bar
    assert "standard deviations" in html
    assert ">mean</td>" in html


def test_elements_of_arrays_are_one_variable_with_dimensions() -> None:
    text = "model { for (i in 1:2) { for (j in 1:3) { b[i,j] ~ dnorm(10 * i + j, 1) } }  m ~ dnorm(0, 1)  y ~ dnorm(m, 1) }"
    model = gs.bugs(text, {"y": 1.0}, ["m", "b[1,1]", "b[2,3]"])
    tree = model.sample(sweeps=400, rng=1, progress=False).to_datatree()
    assert set(tree["posterior"].data_vars) == {"m", "b"}
    assert tree["posterior/b"].dims == ("chain", "draw", "b_dim_0", "b_dim_1")
    assert tree["posterior/b"].b_dim_1.values.tolist() == [1, 3]
    means = tree["posterior/b"].mean(("chain", "draw"))
    assert abs(float(means.sel(b_dim_0=2, b_dim_1=3)) - 23.0) < 0.2
    assert np.isnan(float(means.sel(b_dim_0=1, b_dim_1=3)))
