"""Plots: they draw what they say, on small and large models, and need matplotlib only when called."""

from __future__ import annotations

import itertools
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


def figure_of(plot: Any) -> Any:
    """Return a plot that returns its figure."""
    return lambda *given, **how: np.ravel(plot(*given, **how))[0].figure.figure


plot_convergence, plot_marginals, plot_trace = map(figure_of, (gs.plot_convergence, gs.plot_marginals, gs.plot_trace))


@pytest.fixture(autouse=True)
def no_figures_are_left() -> Any:
    """Close what pyplot knows."""
    yield
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close("all")


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
    assert figure.axes


def test_a_plot_is_the_current_figure_of_pyplot(full: gs.Result, tmp_path: Path):
    import matplotlib.pyplot as plt

    for plot in PLOTS:
        figure = plot(full)
        assert plt.gcf() is figure and figure.axes
        plt.savefig(tmp_path / "current.png")
        assert (tmp_path / "current.png").stat().st_size > 10_000, "the picture is not blank"
        plt.close(figure)
        plot(full, path=tmp_path / "saved.png")
        assert plt.get_fignums() == [], "what is saved need not be closed"


def titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_trace_shows_energy_then_draws(full: gs.Result):
    figure = plot_trace(full)
    assert titles(figure) == ["energy, one line per chain", r"rain \$x\$", "level", "c"]
    image = figure.axes[2].images[0].get_array()
    assert image.shape == (4, 1000, 3)
    shown = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert shown == ["10", "20", "30"]


def test_colours_stand_for_states(full: gs.Result):
    figure = plot_trace(full, ["level"])
    image = np.asarray(figure.axes[1].images[0].get_array())
    codes = full.draws[:, :, 1]
    for code in range(3):
        assert len(np.unique(image[codes == code], axis=0)) == 1


def test_long_traces_are_condensed(full: gs.Result):
    long = replace(full, n_draws=5000, draws=np.tile(full.draws, (1, 5, 1)), energy=np.tile(full.energy, (1, 5)))
    figure = plot_trace(long, ["level"])
    assert figure.axes[1].images[0].get_array().shape == (4, 1000, 3)
    assert "means of 5" in titles(figure)[0]


def test_trace_without_draws_shows_batches(grid: gs.Result):
    figure = plot_trace(grid)
    assert len(figure.axes) == 6
    lines = figure.axes[0].lines
    assert len(lines) == grid.chains + 1
    site = int(titles(figure)[0].split()[0].removeprefix("P("))
    assert np.array_equal(lines[0].get_ydata(), grid._trace[0, :, site])
    assert titles(plot_trace(grid, sites=[7, "9"])) == ["P(7 = 1)", "P(9 = 1)"]


def test_trace_of_nothing(model: gs.FactorGraph):
    best = gs.sample(model, sweeps=10, rng=1, record="best", progress=False)
    with pytest.raises(gs.errors.ModelError, match="Nothing with a trace"):
        plot_trace(best)
    with pytest.raises(gs.errors.ModelError, match="'level' has no trace"):
        plot_trace(best, ["level"])
    with pytest.raises(gs.errors.ModelError, match="Marginals were not recorded"):
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
    figure = plot_marginals(grid)
    assert len(figure.axes) == 3
    p = grid.marginals.to_array()[:, 1]
    named = [int(text.get_text()) for text in figure.axes[2].get_yticklabels()]
    assert set(named) == set(np.argsort(np.abs(p - 0.5), kind="stable")[:24].tolist())
    assert "2,976 sites are not shown by name" in all_text(figure)
    figure = plot_marginals(grid, shape=(50, 60))
    image = figure.axes[0].images[0].get_array()
    assert np.array_equal(image.ravel(), p)
    assert len(plot_marginals(grid, reference=grid).axes) == 3


def all_text(figure: Any) -> str:
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def wide_model(n: int, states: Any) -> gs.FactorGraph:
    sites = {f"name_{k}": states for k in range(n)}
    size = states if isinstance(states, int) else len(states)
    return gs.FactorGraph(sites, [((name,), 1.0 + (np.arange(size) + k) % size) for k, name in enumerate(sites)])


MORE = [pytest.param(*one, marks=pytest.mark.campaign) for one in ((36, 2), (36, 4), (100, 2))]


@pytest.mark.parametrize(("n", "states"), [(40, 2), (36, 10), (120, 3), (1, 500), *MORE])
def test_up_to_120_sites_are_named_without_overlap(n: int, states: int, tmp_path: Path):
    exact = gs.solve_exact(wide_model(n, states))
    figure = plot_marginals(exact, path=tmp_path / "p.png")  # texts have their places once it is drawn
    shown = all_text(figure)
    for name in exact.marginals:
        assert name in shown
    for axes in figure.axes:
        labels = [label for label in axes.get_yticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in labels]
        assert all(upper.y0 >= lower.y1 - 1.0 for upper, lower in itertools.pairwise(boxes))
        assert len(boxes) <= 45
    if n * states <= 160:
        bars = [patch.get_width() for axes in figure.axes for patch in axes.patches]
        assert np.allclose(bars, exact.marginals.cells)
    if states == 500:
        assert "488 rarer states are not shown" in shown


def test_the_most_probable_state_stands_for_a_site():
    model = wide_model(60, ["low", "middle", "high"])
    figure = plot_marginals(gs.solve_exact(model))
    assert "name_1 = middle" in all_text(figure)
    assert [patch.get_width() for axes in figure.axes for patch in axes.patches] == pytest.approx([0.5] * 60)


NUMBERS = gs.Gaussian([50.0, -3.0], [[4.0, 0.0], [0.0, 1.0]], names=["u", "v"])


@pytest.fixture(scope="module")
def numbers() -> gs.Result:
    record = ["marginals", "draws"]
    return gs.sample(NUMBERS, record=record, sweeps=1000, rng=1, progress=False)


@pytest.fixture(scope="module")
def moments() -> gs.Result:
    return gs.sample(NUMBERS, sweeps=1000, rng=1, progress=False)


def test_numbers_have_a_panel_each(numbers: gs.Result, moments: gs.Result):
    for result in (numbers, moments):
        figure = plot_marginals(result)
        u, v = figure.axes
        assert "probability" not in all_text(figure)
        assert titles(figure)[0].startswith("u\nmean ")
        assert u.get_xlim()[0] > 30
        assert v.get_xlim()[1] < 10
    assert "density of draws" in all_text(plot_marginals(numbers))
    assert "mean ± 2 sd" in all_text(plot_marginals(moments))
    ends = plot_marginals(moments).axes[0].lines[0].get_xdata()
    mean, sd = moments.marginals["u"].values()
    assert ends == pytest.approx([mean - 2 * sd, mean + 2 * sd])
    assert "reference dashed" in all_text(plot_marginals(numbers, reference=moments))


@pytest.mark.parametrize("n", [36, 40, 1000])
def test_many_numbers(n: int, tmp_path: Path):
    model = gs.Gaussian(np.arange(n), np.eye(n), names=[f"b{k}" for k in range(n)])
    result = gs.sample(model, sweeps=50, rng=1, progress=False)
    figure = plot_marginals(result, path=tmp_path / "p.png")
    shown = all_text(figure)
    assert "probability" not in shown
    named = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert len([name for name in named if name.startswith("b")]) == min(n, 30 if n > 120 else n)
    if n == 1000:
        assert "970 others are not shown by name" in shown
        assert len(plot_marginals(result, shape=(20, 50)).axes) == 5
        with pytest.raises(gs.errors.ModelError, match="does not hold 1,000 sites"):
            plot_marginals(result, shape=(20, 20))


def test_traces_of_numbers(numbers: gs.Result, moments: gs.Result):
    assert titles(plot_trace(numbers)) == ["u", "v"]
    line = plot_trace(numbers).axes[0].lines[0]
    assert np.array_equal(line.get_ydata(), numbers.draws[0, :, 0])
    assert [title.split(",")[0] for title in titles(plot_trace(moments))] == ["mean of u", "mean of v"]
    drawn = plot_trace(moments).axes[0].lines[0].get_ydata()
    assert np.array_equal(drawn, moments._trace[0, :, 0])


def test_convergence_of_numbers_shows_the_worst(numbers: gs.Result):
    assert any("R-hat of 4 moments" in title for title in titles(plot_convergence(numbers)))
    apart = numbers._trace.copy()
    # half of the chains are elsewhere, by 40
    apart[:2, :, 1] += 80.0 * apart[:2, :, 0] + 1600.0
    apart[:2, :, 0] += 40.0
    stuck = replace(numbers, _trace=apart, totals=apart.sum(axis=1) * numbers._length)
    shown = titles(plot_convergence(stuck))
    assert " of u " in shown[0]
    running = plot_convergence(stuck).axes[0]
    assert running.get_ylim()[1] > 1.0
    sd = plot_convergence(numbers)
    for axes, title in zip(sd.axes, titles(sd), strict=True):
        if title.startswith("sd of u"):
            assert float(axes.lines[0].get_ydata()[-1]) == pytest.approx(2.0, abs=0.5)


def test_numbers_beside_states():
    model = gs.ContinuousModel(
        {"z": ["low", "high"], "a": gs.Interval(-5, 5)},
        [(lambda x: -0.5 * x[0] ** 2, ("a",)), (lambda x: 0.3 * x[0], ("z",))],
    )
    record = ["marginals", "draws"]
    result = gs.sample(model, gs.kernels.ContinuousGibbs("slice"), record=record, sweeps=500, rng=1, progress=False)
    figure = plot_marginals(result)
    assert [patch.get_width() for patch in figure.axes[0].patches] == list(result.marginals["z"].values())
    assert titles(figure)[1].startswith("a\nmean")
    assert titles(plot_trace(result)) == ["z", "a"]
    assert any("of 4 quantities" in title for title in titles(plot_convergence(result)))
    assert result.to_datatree()["posterior/z"].dtype == np.int16


def test_without_batches_there_is_nothing_to_run(model: gs.FactorGraph):
    record = gs.Marginals(batches=False)
    result = gs.sample(model, record=record, sweeps=200, rng=1, progress=False)
    assert len(plot_convergence(result).axes) == 2
    with pytest.raises(gs.errors.ModelError, match="Nothing with a trace"):
        plot_trace(result)


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
    for axes in plot_marginals(one, reference=two).axes:
        reference = next(line for line in axes.lines if line.get_label() == "reference")
        shown = [patch.get_width() for patch in axes.patches]
        assert np.allclose(reference.get_xdata(), shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": ["nowhere"]}, "no site 'nowhere'"),
        ({"sites": []}, "no site to show"),
        ({"shape": (2, 2)}, r"\(2, 2\) does not hold 3,000 sites"),
        ({"shape": {50, 60}}, "shape must be whole numbers of 1 to"),
        ({"shape": [[50, 60], [1]]}, "shape must be whole numbers of 1 to"),
        ({"shape": (50, 60, 1)}, "shape must be 2 whole numbers"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str, grid: gs.Result):
    with pytest.raises(gs.errors.ModelError, match=message):
        plot_marginals(grid, **options)


def test_reference_of_another_model(grid: gs.Result, full: gs.Result):
    with pytest.raises(gs.errors.ModelError, match="is in the first answer only"):
        plot_marginals(grid, reference=full)


def test_all_sites_observed(model: gs.FactorGraph):
    known = model.observe({"rain $x$": "no", "level": 10, "c": 0})
    with pytest.raises(gs.errors.ModelError, match="All sites are observed"):
        plot_marginals(gs.solve_exact(known))


def test_convergence_says_the_verdict(full: gs.Result):
    good = plot_convergence(full)
    assert good.get_suptitle().startswith("converged")
    assert len(good.axes) == 5  # three sites and two distributions
    apart = np.zeros_like(full._trace)
    apart[:2, :, :2], apart[2:, :, :2] = (0.0, 1.0), (1.0, 0.0)
    stuck = replace(full, _trace=apart, totals=apart.sum(axis=1, dtype=float) * full._length)
    bad = plot_convergence(stuck)
    assert bad.get_suptitle().startswith("NOT CONVERGED")
    assert any("2 infinite" in text.get_text() for text in bad.axes[-2].texts)


def test_convergence_when_no_state_is_in_doubt(full: gs.Result):
    sure = np.zeros_like(full._trace)
    sure[:, :, [0, 2, 5]] = 1.0
    result = replace(full, _trace=sure, totals=sure.sum(axis=1, dtype=float) * full._length)
    assert len(plot_convergence(result).axes) == 2


def test_unwritable_path(full: gs.Result, tmp_path: Path):
    with pytest.raises(gs.GibbsiteError, match="Cannot write"):
        plot_trace(full, path=tmp_path / "missing" / "p.png")
    with pytest.raises(gs.GibbsiteError, match=r"plots end in \.png"):
        plot_trace(full, path=tmp_path / "p.doc")


@pytest.mark.parametrize("plot", PLOTS)
def test_without_matplotlib_the_remedy_is_named(plot: Any, full: gs.Result, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(gs.GibbsiteError, match=r'pip install -e "\.\[report\]"'):
        plot(full)


def test_importing_the_package_does_not_import_matplotlib():
    code = "import gibbsite.results.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_plots_draw_on_the_axes_given(full: gs.Result, grid: gs.Result):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    (drawn,) = gs.plot_marginals(grid, shape=(50, 60), ax=left)
    assert drawn is left
    assert left.images[0].get_array().shape == (50, 60)
    (drawn,) = gs.plot_marginals(full, ["level"], ax=right)
    assert drawn is right
    assert [text.get_text() for text in right.get_yticklabels()] == ["10", "20", "30"]
    figure = plt.figure()
    halves = figure.subfigures(1, 2)
    panels = gs.plot_trace(full, figure=halves[0])
    assert set(panels) == set(halves[0].axes)
    panels = gs.plot_convergence(full, figure=halves[1])
    assert set(panels) == set(halves[1].axes)
    assert plt.get_fignums() == [1, 2]
