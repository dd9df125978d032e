"""Angles: where they wrap around, and their estimates against formulas and against draws."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

import gibbsite as gs
from gibbsite.graphs.functions.densities import wrapped
from gibbsite.results.measure.moments import Directions

# 5.5 standard errors: 4e-8 for each comparison
SIGMAS = 5.5
FIELD, COUPLING, TOWARDS = 2.0, 1.0, 6.2


def field(x: NDArray[Any], p: NDArray[Any]) -> Any:
    return p[0] * np.cos(x[0] - p[1])


def couple(x: NDArray[Any], p: NDArray[Any]) -> Any:
    return p[0] * np.cos(x[0] - x[1])


@cache
def chain(n: int = 3, angle: gs.Angle | None = None) -> gs.ContinuousModel:
    """Rotors in a row, the first of them in a field that points just below a full turn."""
    factors = [
        gs.factors.FunctionFactors(couple, [[i, i + 1] for i in range(n - 1)], [[COUPLING]] * (n - 1)),
        gs.factors.FunctionFactors(field, [[0]], [[FIELD, TOWARDS]]),
    ]
    return gs.ContinuousModel(n, factors, states=angle or gs.Angle())


def resultant(k: float) -> float:
    """Of a von Mises law of concentration k; those of neighbours in a chain multiply."""
    return float(special.iv(1, k) / special.iv(0, k))


def gap(a: float, b: float, period: float = 2 * math.pi) -> float:
    return abs((a - b + period / 2) % period - period / 2)


KERNELS = {
    "gibbs": gs.kernels.ContinuousGibbs(),
    "slice": gs.Slice(),
    "one by one": gs.Metropolis(one_by_one=True),
    "together": gs.Metropolis(),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_chain_of_rotors(name: str) -> None:
    result = gs.sample(chain(), KERNELS[name], sweeps=8000, rng=1, progress=False)
    for i, site in enumerate("012"):
        told, error = result.marginals[site], result.mcse[site]
        assert list(told) == ["mean", "resultant"]
        assert 0.0 <= told["mean"] < 2 * math.pi
        assert gap(told["mean"], TOWARDS) < SIGMAS * error["mean"]
        length = resultant(FIELD) * resultant(COUPLING) ** i
        assert abs(told["resultant"] - length) < SIGMAS * error["resultant"]
    assert result.diagnostics.rhat_max < 1.05


def test_any_period_and_any_first_value() -> None:
    """In degrees, from -180 on: the same law."""

    def degrees(x: NDArray[Any]) -> Any:
        return FIELD * np.cos((x[0] - 179.0) * np.pi / 180.0)

    model = gs.ContinuousModel({"heading": gs.Angle(360.0, low=-180.0)}, [(degrees, ("heading",))])
    result = gs.sample(model, sweeps=8000, rng=2, record=["marginals", "draws"], progress=False)
    told, error = result.marginals["heading"], result.mcse["heading"]
    assert -180.0 <= told["mean"] < 180.0
    assert gap(told["mean"], 179.0, 360.0) < SIGMAS * error["mean"]
    assert abs(told["resultant"] - resultant(FIELD)) < SIGMAS * error["resultant"]
    assert result.draws.min() >= -180.0
    assert result.draws.max() < 180.0
    # on the line, the mean of such draws is far from the direction they point to
    assert abs(result.draws.mean()) < 60.0
    vector = np.exp(1j * np.pi / 180.0 * result.draws).mean()
    assert told["resultant"] == pytest.approx(abs(vector), rel=1e-9)
    assert gap(told["mean"], float(np.angle(vector)) * 180.0 / np.pi, 360.0) < 1e-6


def test_standard_errors_are_those_of_independent_draws() -> None:
    """Means of 400 directions of normals wrapped around: each 2000 draws, errors within a tenth."""
    rng = np.random.default_rng(3)
    angles = rng.normal(6.0, 0.8, (400, 2000))
    cells = np.stack([np.cos(angles).mean(axis=1), np.sin(angles).mean(axis=1)], axis=1)
    pooled = cells.mean(axis=0)
    turn = Directions(pooled, np.array([0]), np.ones(1), np.zeros(1))
    parts = turn.unrolled(cells.copy())
    variances = turn.variance(turn.pooled(pooled))
    assert parts.mean(axis=0) == pytest.approx([6.0, math.exp(-0.32)], abs=0.01)
    for k in range(2):
        assert parts[:, k].std() == pytest.approx(math.sqrt(variances[k][0] / 2000), rel=0.2)


def test_draws_alone_are_judged_by_directions() -> None:
    result = gs.sample(chain(), sweeps=4000, rng=1, record="draws", progress=False)
    assert result.diagnostics.converged
    assert result.diagnostics.ess_min > 400


def test_chains_that_point_elsewhere_are_seen() -> None:
    two = gs.ContinuousModel({"a": gs.Angle()}, [(lambda x: 200.0 * np.cos(2.0 * x[0]), ("a",))])
    kernel = gs.Metropolis(scale=0.05, adapt=False)
    with pytest.warns(gs.ConvergenceWarning):
        result = gs.sample(two, kernel, sweeps=500, rng=4, start=[[0.0], [3.14]], chains=2, progress=False)
    assert not result.diagnostics.converged
    assert result.diagnostics.rhat_max > 1.5


def test_conditionals_of_angles_go_round(tmp_path: Path) -> None:
    """Drawn anywhere on the line; a site without a function is sliced."""
    model = gs.Conditionals(
        {"a": lambda x, rng: rng.vonmises(6.2, 2.0) + 40.0 * np.pi, "b": None},
        {"a": gs.Angle(), "b": gs.Angle()},
        log_density=lambda x: 2.0 * np.cos(x[0] - 6.2) + 1.5 * np.cos(x[1] - 1.0),
    )
    result = gs.sample(model, sweeps=3000, rng=1, progress=False)
    for site, towards, k in (("a", 6.2, 2.0), ("b", 1.0, 1.5)):
        assert gap(result.marginals[site]["mean"], towards) < SIGMAS * result.mcse[site]["mean"]
        assert abs(result.marginals[site]["resultant"] - resultant(k)) < SIGMAS * result.mcse[site]["resultant"]
    assert gs.inference.check_conditionals(model)
    result.save(tmp_path / "angles.npz")
    assert gs.load(tmp_path / "angles.npz").marginals["a"] == result.marginals["a"]


def test_an_observed_angle_is_what_it_is_a_turn_later() -> None:
    given = chain().observe({"0": 0.5 - 2 * math.pi})
    assert given.evidence["0"] == pytest.approx(0.5)
    result = gs.sample(given, sweeps=8000, rng=1, progress=False)
    assert result.marginals["0"] == {"mean": pytest.approx(0.5), "resultant": 1.0}
    assert gap(result.marginals["1"]["mean"], 0.5) < SIGMAS * result.mcse["1"]["mean"]
    length = resultant(COUPLING)
    assert abs(result.marginals["1"]["resultant"] - length) < SIGMAS * result.mcse["1"]["resultant"]


@pytest.mark.parametrize("v", [-1e-17, 2 * math.pi, 7.0, -100.0, 1e6, 0.0])
def test_wrapped_values_are_in_their_turn(v: float) -> None:
    found = wrapped(0.0, 2 * math.pi, v)
    assert 0.0 <= found < 2 * math.pi
    assert gap(found, v) < 1e-9
    assert wrapped(0.0, 0.0, v) == v


@pytest.mark.parametrize(
    "wrong", [{"period": 0.0}, {"period": -1.0}, {"period": math.inf}, {"low": math.nan}, {"period": "x"}]
)
def test_angles_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(gs.errors.ModelError, match="of an angle must be"):
        gs.Angle(**wrong)


@pytest.fixture(scope="module")
def near_a_turn() -> gs.Result:
    """An angle that points just below a full turn, beside a number."""
    model = gs.ContinuousModel(
        {"t": gs.Angle(), "y": gs.Interval(-3.0, 3.0)},
        [(lambda x: 5.0 * math.cos(x[0] - 6.2), ("t",)), (lambda y: -0.5 * y[0] * y[0], ("y",))],
    )
    return gs.sample(model, sweeps=4000, rng=1, record=["marginals", "draws"], progress=False)


def test_intervals_and_quantiles_go_round(near_a_turn: gs.Result) -> None:
    """Against those of the same draws turned by half a turn, which are in one piece."""
    turned = np.mod(near_a_turn.draws[:, :, 0] + math.pi, 2 * math.pi).ravel() - math.pi
    low, high = near_a_turn.hdi("t", 0.9)["t"]
    assert 0.0 <= low < 2 * math.pi
    assert 0.0 < high - low < 1.8  # on the line it would be nearly a turn
    ordered = np.sort(np.where(turned < 3.0, turned + 2 * math.pi, turned))
    within = int(0.9 * ordered.size)
    assert high - low == pytest.approx((ordered[within:] - ordered[: ordered.size - within]).min())
    found = near_a_turn.quantiles("t", [0.05, 0.5, 0.95])["t"]
    assert list(found.values()) == sorted(found.values())
    assert gap(found[0.5], 6.2) < SIGMAS * near_a_turn.quantiles_mcse("t", 0.5)["t"][0.5]
    assert found[0.95] - found[0.05] < 1.8
    assert near_a_turn.quantiles_mcse("t", 0.5)["t"][0.5] < 0.05
    assert near_a_turn.hdi("y")["y"][0] < 0.0 < near_a_turn.hdi("y")["y"][1]  # numbers as ever


def test_tables_name_what_they_hold(near_a_turn: gs.Result) -> None:
    frame = near_a_turn.to_dataframe().set_index("site")
    told = near_a_turn.marginals
    assert frame.loc["t", "resultant"] == told["t"]["resultant"]
    assert frame.loc["t", "resultant_mcse"] == near_a_turn.mcse["t"]["resultant"]
    assert np.isnan(frame.loc["t", "sd"])
    assert np.isnan(frame.loc["y", "resultant"])
    assert frame.loc["y", "sd"] == told["y"]["sd"]
    alone = gs.sample(chain(), sweeps=500, rng=1, progress=False).to_dataframe()
    assert "sd" not in alone
    assert "resultant" in alone


def test_trees_mark_angles(near_a_turn: gs.Result) -> None:
    posterior = near_a_turn.to_datatree()["posterior"]
    assert posterior["t"].attrs["circular"] == 1
    assert posterior["t"].attrs["period"] == pytest.approx(2 * math.pi)
    assert "circular" not in posterior["y"].attrs
    rows = gs.sample(chain(), sweeps=500, rng=1, record=["marginals", "draws"], progress=False)
    assert rows.to_datatree()["posterior/x"].attrs["circular"] == 1
    batches = gs.sample(chain(), sweeps=500, rng=1, progress=False).to_datatree()["batch_means"]
    assert batches["cell"].values.tolist()[:2] == ["0: cosine", "0: sine"]


def test_plots_of_angles(near_a_turn: gs.Result, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    panel = gs.plot_marginals(near_a_turn, path=tmp_path / "panels.png")[0]
    title = panel.get_title() + panel.get_title(loc="left")
    assert "resultant 0.89" in title
    low, high = panel.get_xlim()
    assert high - low < 2 * math.pi + 0.7
    assert panel.xaxis.get_major_formatter()(6.5 + 2 * math.pi) == "0.217"
    plain = gs.sample(chain(), sweeps=2000, rng=1, progress=False)
    for plot in (gs.plot_marginals, gs.plot_trace, gs.plot_convergence):
        assert plot(plain).size
        assert plot(near_a_turn).size
    means = plain._batch_means(0)
    assert gap(float(means.mean()), plain.marginals["0"]["mean"]) < 1e-6
    assert plain._batch_means(1).mean() == pytest.approx(plain.marginals["0"]["resultant"], rel=1e-6)
