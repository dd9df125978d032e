"""Plots of observables, comparisons, fits and ladders show the numbers that they are given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

import gibbsite as gs  # noqa: E402

plot_autocorrelation, plot_comparison, plot_fit = (
    gs.plots.plot_autocorrelation,
    gs.plots.plot_comparison,
    gs.plots.plot_fit,
)
plot_observable, plot_round_trips = gs.plots.plot_observable, gs.plots.plot_round_trips


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def run() -> gs.Result:
    model = gs.ising_grid((6, 6), coupling=0.3, periodic=True)
    record = ["marginals", "energy", gs.recorders.Magnetisation()]
    return gs.sample(model, record=record, sweeps=1000, rng=1, progress=False)


def test_observables_have_bars_of_two_errors(run: gs.Result) -> None:
    energy = run.observables["energy"]
    heat = energy.variance()
    axes = plot_observable([1.0, 2.0, 3.0], [energy, heat, (5.0, 0.5)], reference=lambda x: x**2, label="all")
    line = axes.containers[0][0]
    assert line.get_ydata().tolist() == [energy.mean, heat.value, 5.0]
    bars = axes.containers[0][2][0].get_segments()
    assert bars[2][:, 1].tolist() == [4.0, 6.0]
    plot_observable([1.0], [2.0], label="more", ax=axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["all", "more"]
    assert axes.containers[0][0].get_color() != axes.containers[1][0].get_color()


def test_what_is_no_estimate_is_refused(run: gs.Result) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="Estimate 0 is not one value"):
        plot_observable([1.0], [run.observables["magnetisation"]])
    with pytest.raises(gs.errors.ArgumentError, match="one estimate for each of 2"):
        plot_observable([1.0, 2.0], [3.0])


def test_autocorrelations_are_those_of_the_series() -> None:
    rng = np.random.default_rng(3)
    series = np.zeros((4, 20_000))
    for t in range(1, series.shape[1]):
        series[:, t] = 0.8 * series[:, t - 1] + rng.normal(size=4)
    axes = plot_autocorrelation(series, lags=10)
    # the errors of these correlations are about 0.01; the limit is six of them
    assert np.allclose(axes.lines[0].get_ydata(), 0.8 ** np.arange(11), atol=0.06)
    plot_autocorrelation(series, ax=axes, label="again")
    assert axes.get_legend().get_texts()[0].get_text() == "again"
    assert len(axes.lines[2].get_xdata()) > 15, "by default until the correlation is small, and three times beyond"
    with pytest.raises(gs.errors.ArgumentError, match="three draws or more"):
        plot_autocorrelation([[1.0, 2.0]])


def test_a_comparison_has_a_point_for_each_state() -> None:
    model = gs.example("asia")
    exact, run = gs.solve_exact(model), gs.sample(model, rng=1, progress=False)
    axes = plot_comparison(exact, run, labels=("exact", "run"))
    points = axes.containers[0][0]
    assert points.get_xdata().tolist() == [p for name in model.sites for p in exact.marginals[name].values()]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("exact", "run")
    assert f"{gs.compare(exact, run).max_abs:.2g}" in axes.get_title(loc="left")


def test_fits_are_drawn_by_step_or_against_the_truth() -> None:
    model = gs.ising_grid((3, 3), coupling=0.3)
    draws = gs.solve_exact(model).draw(500, np.random.default_rng(1))
    fit = gs.learn.fit_ising(draws, model, gradient="exact")
    assert len(plot_fit(fit).lines) == len(fit.pairs)
    axes = plot_fit(fit, reference=np.full(len(fit.pairs), 0.3))
    assert np.array_equal(axes.lines[1].get_ydata(), fit.couplings)
    with pytest.raises(gs.errors.ArgumentError, match="needs 12 couplings"):
        plot_fit(fit, reference=[1.0])
    with pytest.raises(gs.errors.ArgumentError, match="fit_ising returns"):
        plot_fit(SimpleNamespace())


def test_ladders_show_swap_rates(run: gs.Result) -> None:
    result = gs.sample(gs.ising_grid((4, 4), coupling=0.7), gs.Tempered(), sweeps=300, rng=1, progress=False)
    axes = plot_round_trips(result)
    assert np.array_equal(axes.lines[0].get_ydata(), result.tempering.swap_rates)
    assert str(int(result.tempering.round_trips[0])) in axes.get_title(loc="left")
    with pytest.raises(gs.errors.ArgumentError, match="was not tempered"):
        plot_round_trips(run)
