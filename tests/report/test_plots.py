"""Plots: they draw what they say, on small and large models, and need matplotlib only when called."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import gibbsite as gs  # noqa: E402
from gibbsite.report import plot_convergence, plot_marginals, plot_trace  # noqa: E402

PLOTS = [plot_trace, plot_marginals, plot_convergence]


@pytest.fixture(scope="module")
def model() -> gs.FactorGraph:
    return gs.FactorGraph(
        {"rain $x$": ["no", "yes"], "level": [10, 20, 30], "c": 12, "seen": 2},
        [(("rain $x$", "level"), [[4, 1, 2], [1, 2, 3]]), (("c", "seen"), np.ones((12, 2)))],
    ).observe({"seen": 1})


@pytest.fixture(scope="module")
def full(model: gs.FactorGraph) -> gs.Result:
    record = ["marginals", "draws", "energy"]
    return gs.sample(model, sweeps=1000, rng=1, record=record, progress=False)


@pytest.fixture(scope="module")
def grid() -> gs.Result:
    return gs.sample(gs.ising_grid((50, 60), coupling=0.2), sweeps=100, rng=1, progress=False)


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("which", ["full", "grid"])
def test_pictures_are_written(plot: Any, which: str, tmp_path: Path, request: pytest.FixtureRequest):
    path = tmp_path / "p.png"
    figure = plot(request.getfixturevalue(which), path=path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_no_global_state(full: gs.Result):
    import matplotlib.pyplot as plt

    for plot in PLOTS:
        plot(full)
    assert plt.get_fignums() == []


def titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_trace_shows_energy_then_draws(full: gs.Result):
    figure = plot_trace(full)
    assert titles(figure) == [
        "energy, one line per chain",
        r"rain \$x\$",
        "level",
        "c",
    ]
    image = figure.axes[2].images[0].get_array()
    assert image.shape == (4, 1000, 3)
    shown = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert shown == ["10", "20", "30"]


def test_colours_stand_for_states(full: gs.Result):
    figure = plot_trace(full, ["level"])
    image = np.asarray(figure.axes[1].images[0].get_array())
    codes = full.values[:, :, 1]
    for code in range(3):
        assert len(np.unique(image[codes == code], axis=0)) == 1


def test_long_traces_are_condensed(full: gs.Result):
    long = replace(
        full,
        draws=5000,
        values=np.tile(full.values, (1, 5, 1)),
        energy=np.tile(full.energy, (1, 5)),
    )
    figure = plot_trace(long, ["level"])
    assert figure.axes[1].images[0].get_array().shape == (4, 1000, 3)
    assert "means of 5" in titles(figure)[0]


def test_trace_without_draws_shows_batches(grid: gs.Result):
    figure = plot_trace(grid)
    assert len(figure.axes) == 6
    lines = figure.axes[0].lines
    assert len(lines) == grid.chains + 1
    site = int(titles(figure)[0].split()[0].removeprefix("P("))
    assert np.array_equal(lines[0].get_ydata(), grid.trace[0, :, site])
    assert titles(plot_trace(grid, sites=[7, "9"])) == ["P(7 = 1)", "P(9 = 1)"]


def test_trace_of_nothing(model: gs.FactorGraph):
    best = gs.sample(model, sweeps=10, rng=1, record="best", progress=False)
    with pytest.raises(gs.ModelError, match="Nothing with a trace"):
        plot_trace(best)
    with pytest.raises(gs.ModelError, match="'level' has no trace"):
        plot_trace(best, ["level"])
    with pytest.raises(gs.ModelError, match="Marginals were not recorded"):
        plot_convergence(best)


def test_marginals_are_the_numbers_of_the_table(full: gs.Result, model: gs.FactorGraph):
    exact = gs.solve_exact(model)
    figure = plot_marginals(full, ["level"], exact)
    (axes,) = figure.axes
    assert [patch.get_width() for patch in axes.patches] == list(full.marginals["level"].values())
    reference = next(line for line in axes.lines if line.get_label() == "reference")
    assert list(reference.get_xdata()) == list(exact.marginals["level"].values())
    assert [text.get_text() for text in axes.get_yticklabels()] == ["10", "20", "30"]


def test_any_answer_has_marginals_to_show(model: gs.FactorGraph):
    exact = gs.solve_exact(model)
    plot_marginals(exact)
    figure = plot_marginals(exact.marginals)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["estimate"]


def test_many_sites_are_surveyed(grid: gs.Result):
    assert len(plot_marginals(grid).axes) == 2
    figure = plot_marginals(grid, shape=(50, 60))
    image = figure.axes[0].images[0].get_array()
    assert np.array_equal(image.ravel(), grid.marginals.to_array()[:, 1])
    assert len(plot_marginals(grid, reference=grid).axes) == 2


def test_survey_of_many_states():
    potts = gs.potts_grid((12, 12), states=["red", "green", "blue"], coupling=0.3)
    result = gs.sample(potts, sweeps=100, rng=1, progress=False)
    figure = plot_marginals(result, shape=(12, 12))
    assert figure.axes[0].images[0].get_array().shape == (12, 12, 3)
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert shown == ["red", "green", "blue"]


def test_reference_in_another_order():
    sites = {f"s{k}": ["no", "yes"] for k in range(40)}
    factors = [((name,), [1.0, 1.0 + k]) for k, name in enumerate(sites)]
    one = gs.sample(gs.FactorGraph(sites, factors), sweeps=1000, rng=1, progress=False)
    turned = gs.FactorGraph(dict(reversed(sites.items())), factors)
    two = gs.sample(turned, sweeps=1000, rng=1, progress=False)
    points = plot_marginals(one, reference=two).axes[1].lines[0]
    assert np.allclose(points.get_xdata(), points.get_ydata())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": ["nowhere"]}, "no site 'nowhere'"),
        ({"sites": []}, "no site to show"),
        ({"shape": (2, 2)}, r"\(2, 2\) does not hold 3,000 sites"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str, grid: gs.Result):
    with pytest.raises(gs.ModelError, match=message):
        plot_marginals(grid, **options)


def test_reference_of_another_model(grid: gs.Result, full: gs.Result):
    with pytest.raises(gs.ModelError, match="is in the first answer only"):
        plot_marginals(grid, reference=full)


def test_all_sites_observed(model: gs.FactorGraph):
    known = model.observe({"rain $x$": "no", "level": 10, "c": 0})
    with pytest.raises(gs.ModelError, match="All sites are observed"):
        plot_marginals(gs.solve_exact(known))


def test_convergence_says_the_verdict(full: gs.Result):
    good = plot_convergence(full)
    assert good.get_suptitle().startswith("converged")
    assert len(good.axes) == 5  # three sites and two distributions
    apart = np.zeros_like(full.trace)
    apart[:2, :, :2], apart[2:, :, :2] = (0.0, 1.0), (1.0, 0.0)
    stuck = replace(full, trace=apart, totals=apart.sum(axis=1, dtype=float) * full.length)
    bad = plot_convergence(stuck)
    assert bad.get_suptitle().startswith("NOT CONVERGED")
    assert any("2 infinite" in text.get_text() for text in bad.axes[-2].texts)


def test_convergence_when_no_state_is_in_doubt(full: gs.Result):
    sure = np.zeros_like(full.trace)
    sure[:, :, [0, 2, 5]] = 1.0
    result = replace(full, trace=sure, totals=sure.sum(axis=1, dtype=float) * full.length)
    assert len(plot_convergence(result).axes) == 2


def test_unwritable_path(full: gs.Result, tmp_path: Path):
    with pytest.raises(gs.GibbsiteError, match="Cannot write"):
        plot_trace(full, path=tmp_path / "missing" / "p.png")
    with pytest.raises(gs.GibbsiteError, match=r"use \.png"):
        plot_trace(full, path=tmp_path / "p.doc")


@pytest.mark.parametrize("plot", PLOTS)
def test_without_matplotlib_the_remedy_is_named(plot: Any, full: gs.Result, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(gs.GibbsiteError, match=r"pip install gibbsite\[report\]"):
        plot(full)


def test_importing_the_room_does_not_import_matplotlib():
    code = "import gibbsite.report, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
