"""Gibbs sampling of models of functions: constants, reports, faults, arguments, checkpoints."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.functions.bounds import known_bounds
from gibbsite.kernels import default_kernel
from gibbsite.kernels.minibatch.factors import local_energies


def grid_couplings(side: int, gamma: float) -> Any:
    place = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    squares = ((place[:, None] - place) ** 2).sum(axis=-1)
    return np.exp(-gamma * squares) * (squares > 0)


SPINS = gs.models.continuous_spins(grid_couplings(20, 0.4))


def sample(model: Any, kernel: Any = None, **how: Any) -> gs.Result:
    how = {"sweeps": 40, "warmup": 0, "chains": 1, "threads": 1, "rng": 1, "progress": False, **how}
    with pytest.warns(gs.ConvergenceWarning):  # short runs
        return gs.sample(model, kernel, **how)


def test_constants_of_the_continuous_spins() -> None:
    seen = local_energies(gs.graphs.compile_graph(SPINS))
    assert seen.largest == pytest.approx(6.854, abs=5e-4)
    assert seen.degree == 399
    couplings = grid_couplings(20, 0.4)
    assert seen.total == pytest.approx(couplings.sum() / 2)
    pairs = np.argwhere(np.triu(couplings, 1) > 0)
    raised = gs.factors.FunctionFactors(
        lambda x, p: p[0] * (x[0] * x[1] + 1.0),
        pairs,
        couplings[tuple(pairs.T)],
        bounds=lambda p, low, high: (np.zeros(len(p)), 2.0 * p[:, 0]),  # the supremum, not the range
    )
    unshifted = gs.ContinuousModel(400, [raised], states=gs.Interval(0, 1))
    assert local_energies(gs.graphs.compile_graph(unshifted)).largest == pytest.approx(13.708, abs=5e-4)


def test_factors_that_are_always_evaluated_are_not_drawn() -> None:
    model = gs.ContinuousModel(
        2,
        [
            gs.factors.mixture_factors([0, 1], np.linspace(-1, 1, 50), 1.0),
            gs.factors.normal_factors([0, 1], 0.0, 1.0, always=True),
        ],
        states=gs.Interval(-1, 1),
    )
    graph = gs.graphs.compile_graph(model)
    seen = local_energies(graph)
    drawn = known_bounds(graph).bound[:50].sum()
    assert seen.degree == 50
    assert seen.total == pytest.approx(drawn)
    assert seen.local == pytest.approx([drawn, drawn])


def test_double_approximation_on_the_spins() -> None:
    result = sample(SPINS, gs.kernels.ContinuousGibbs("double", minibatch=46.98, degree=3, fine=10))
    report = result.report
    assert report["acceptance"] > 0.999
    assert report["minibatch"] < 60
    assert report["factors"] < 25
    assert report["evaluations"] < 10 * report["factors"]
    (remark,) = result.remarks
    assert "L = 6.854" in remark
    assert f"{math.exp(-4 * 6.854**2 / 46.98):.2g}"[:4] in remark


def test_low_degrees_are_clipped_and_corrected() -> None:
    result = sample(SPINS, gs.kernels.ContinuousGibbs("its", minibatch=46.98, degree=3))
    assert 0.7 < result.report["acceptance"] < 0.97  # 0.88 was found elsewhere


def test_the_default_is_exact_where_that_is_possible() -> None:
    assert isinstance(default_kernel(gs.graphs.compile_graph(SPINS)), gs.kernels.ContinuousGibbs)
    result = sample(SPINS, record=gs.Draws(["210"]), sweeps=400)
    assert result.report == {"factors": 399.0, "evaluations": 798.0}
    assert result.plan.kernel["name"] == "ContinuousGibbs"


def test_sites_are_updated_in_full_where_that_is_cheaper() -> None:
    few = gs.models.continuous_spins([[0, 1], [1, 0]])
    result = sample(few, gs.kernels.ContinuousGibbs(minibatch="auto"))
    assert "evaluating all of them is cheaper" in result.remarks[0]
    assert result.report["factors"] == 1.0


def bump(x: Any, p: Any) -> Any:
    return -p[0] * (x[0] - x[1]) ** 2


def data_model(bounds: Any = None, function: Any = None) -> gs.ContinuousModel:
    factors = gs.factors.FunctionFactors(function or bump, [[0, 1], [1, 2]], [[1.0], [2.0]], bounds=bounds, name="bump")
    return gs.ContinuousModel({"a": gs.Interval(-1, 1), "b": gs.Interval(-1, 1), "c": ["u", "v"]}, [factors])


@pytest.mark.parametrize("kernel", [gs.kernels.ContinuousGibbs(), gs.kernels.ContinuousGibbs("slice", minibatch=2.0)])
def test_a_bound_that_is_violated_is_named(kernel: Any) -> None:
    model = data_model(bounds=([-4.0, -3.0], [0.0, 0.0]))  # the second one reaches -8
    with pytest.raises(gs.errors.SamplingError, match=r"factor 1 of 'bump' is -[\d.]+ at b=-?[\d.]+, c='[uv]'") as told:
        gs.sample(model, kernel, sweeps=2000, rng=1, progress=False)
    assert "outside its bounds from -3 to 0" in str(told.value)
    assert "bounds=" in str(told.value)


def test_what_was_recorded_before_a_fault_is_kept() -> None:
    model = data_model(bounds=(-7.999, 0.0))  # violated near the corner alone
    with pytest.raises(gs.errors.SamplingError) as told:
        gs.sample(
            model,
            gs.kernels.ContinuousGibbs("slice"),
            sweeps=10**6,
            warmup=0,
            rng=2,
            start=[0.0, 0.0, 0.0],
            progress=False,
        )
    assert told.value.result is not None
    assert told.value.result.n_draws > 0


def test_a_value_that_is_no_number() -> None:
    def hole(x: Any, p: Any) -> Any:
        return p[0] * math.sqrt(x[0] + 0.5)

    model = data_model(bounds=(0.0, 3.0), function=hole)
    with pytest.raises(
        gs.errors.SamplingError, match=r"factor [01] of 'bump' is nan at .*must be a number .*ValueError"
    ):
        gs.sample(model, sweeps=500, rng=1, progress=False, start=[0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("kernel", "error", "text"),
    [
        (gs.kernels.ContinuousGibbs("magic"), gs.errors.ModelError, "method 'magic' is unknown"),
        (gs.kernels.ContinuousGibbs(minibatch=0.0), gs.errors.ModelError, "positive number or 'auto'"),
        (gs.kernels.ContinuousGibbs(minibatch=-2), gs.errors.ModelError, "positive number or 'auto'"),
        (gs.kernels.ContinuousGibbs(minibatch="all"), gs.errors.ModelError, "positive number or 'auto'"),
        (gs.kernels.ContinuousGibbs(degree=0), gs.errors.ModelError, "degree must be a whole number"),
        (gs.kernels.ContinuousGibbs(fine=2.5), gs.errors.ModelError, "fine must be a whole number"),  # type: ignore[arg-type]
        (gs.kernels.ContinuousGibbs(tolerance=0.0), gs.errors.ModelError, "tolerance must be a positive number"),
        (gs.kernels.ContinuousGibbs("exact-inverse"), gs.errors.IncompatibleError, "site 'a'.*factors 'bump'"),
        (gs.kernels.ContinuousGibbs("exact-inverse", minibatch=3.0), gs.errors.IncompatibleError, "given a minibatch"),
        (gs.Gibbs(), gs.errors.IncompatibleError, r"Use gs.kernels.ContinuousGibbs\(\)"),
    ],
)
def test_bad_arguments_are_refused_before_a_run(kernel: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        gs.sample(data_model(), kernel, rng=1, progress=False)


def test_functions_need_their_kernel_and_states_theirs() -> None:
    with pytest.raises(gs.errors.IncompatibleError, match=r"Use gs.Gibbs\(\)"):
        gs.sample(gs.ising_grid((3, 3)), gs.kernels.ContinuousGibbs(), rng=1, progress=False)


def test_rejection_gives_up_where_it_is_hopeless() -> None:
    model = gs.ContinuousModel(1, [gs.factors.normal_factors([0], 0.5, 1e-9)], states=gs.Interval(0, 1))
    with pytest.raises(gs.errors.SamplingError, match="site '0' were rejected"):
        gs.sample(model, gs.kernels.ContinuousGibbs("rejection"), sweeps=5, warmup=0, rng=1, progress=False)


@pytest.mark.parametrize("method", ["double", "slice"])
def test_resumed_runs_are_identical(tmp_path: Path, method: str) -> None:
    kernel = gs.kernels.ContinuousGibbs(method, minibatch=2.0)
    how = {"chains": 2, "record": [gs.Marginals(), gs.Draws()], "warmup": 5}
    whole = sample(data_model(), kernel, sweeps=60, **how)
    path = tmp_path / "run.npz"
    sample(data_model(), kernel, sweeps=25, checkpoint=path, **how)
    rest = sample(data_model(), kernel, sweeps=60, checkpoint=gs.Checkpoint(path, resume=True), **how)
    assert np.array_equal(whole.draws, rest.draws)
    assert whole.report == rest.report


def switch(x: Any) -> Any:
    return -0.5 * (x[0] - (2.0 if x[1] > 0.5 else -1.0)) ** 2


SWITCH = gs.ContinuousModel({"a": gs.Interval(-9, 9), "z": ["left", "right"]}, [(switch, ("a", "z"))])


@pytest.mark.parametrize(
    "kernel", [gs.kernels.ContinuousGibbs(), gs.kernels.ContinuousGibbs("double")], ids=["slice", "double"]
)
def test_full_updates_need_no_bounds(kernel: Any) -> None:
    """A normal about -1 or 2, each with probability 1/2; a Laplace law; 5.5 standard errors: 4e-8."""
    result = gs.sample(SWITCH, kernel, sweeps=4000, rng=1, progress=False)
    assert abs(result.marginals["z"]["left"] - 0.5) < 5.5 * result.mcse["z"]["left"]
    assert abs(result.marginals["a"]["mean"] - 0.5) < 5.5 * result.mcse["a"]["mean"]
    assert abs(result.marginals["a"]["sd"] - math.sqrt(1 + 1.5**2)) < 5.5 * result.mcse["a"]["sd"]
    kink = gs.ContinuousModel({"a": gs.Interval(-40, 40)}, [(lambda x: -abs(x[0]), ("a",))])
    result = gs.sample(kink, kernel, sweeps=4000, rng=1, progress=False)
    assert abs(result.marginals["a"]["sd"] - math.sqrt(2)) < 5.5 * result.mcse["a"]["sd"]


def test_densities_that_are_zero_somewhere() -> None:
    """Two numbers in order: means 1/3 and 2/3; interpolants say what to use instead."""
    ordered = gs.ContinuousModel(2, [(lambda x: 0.0 if x[0] < x[1] else -np.inf, (0, 1))], states=gs.Interval(0, 1))
    result = gs.sample(ordered, sweeps=4000, rng=1, progress=False)
    assert abs(result.marginals["0"]["mean"] - 1 / 3) < 5.5 * result.mcse["0"]["mean"]
    assert abs(result.marginals["1"]["mean"] - 2 / 3) < 5.5 * result.mcse["1"]["mean"]
    with pytest.raises(gs.errors.SamplingError, match=r"density is zero in a part .* use method='slice'"):
        gs.sample(ordered, gs.kernels.ContinuousGibbs("double"), sweeps=100, rng=1, progress=False)


def test_kernels_that_move_numbers_name_one_that_moves_states() -> None:
    with pytest.raises(gs.errors.IncompatibleError, match=r"use gs.kernels.ContinuousGibbs\(\)"):
        gs.sample(SWITCH, gs.Slice(), sweeps=10, rng=1, progress=False)


def test_observed_sites_are_folded_in() -> None:
    """Given a = 0.5 both sides are as likely; given the side, a is normal about 2."""
    number = gs.sample(SWITCH.observe({"z": "right"}), sweeps=4000, rng=1, progress=False)
    assert number.marginals["z"] == {"left": 0.0, "right": 1.0}
    assert abs(number.marginals["a"]["mean"] - 2.0) < 5.5 * number.mcse["a"]["mean"]
    assert abs(number.marginals["a"]["sd"] - 1.0) < 5.5 * number.mcse["a"]["sd"]
    state = gs.sample(SWITCH.observe({"a": 1.0}), sweeps=4000, rng=1, progress=False)
    assert state.marginals["a"] == {"mean": 1.0, "sd": 0.0}
    assert state.mcse["a"] == {"mean": 0.0, "sd": 0.0}
    right = 1 / (1 + math.exp(-1.5))  # exp(-1/2) against exp(-2)
    assert abs(state.marginals["z"]["right"] - right) < 5.5 * state.mcse["z"]["right"]


def test_evidence_in_minibatches_is_that_of_the_smaller_model() -> None:
    """Bounds and draws of factors see the observed value, not the interval."""
    data = np.linspace(-1, 1, 40)
    whole = gs.ContinuousModel(
        {"a": gs.Interval(-3, 3), "b": gs.Interval(-3, 3)}, [gs.factors.mixture_factors(["a", "b"], data, 1.0)]
    )
    given = gs.graphs.compile_graph(whole.observe({"b": 0.0}))
    alone = gs.ContinuousModel({"a": gs.Interval(-3, 3)}, [gs.factors.normal_factors([0] * 40, data, 1.0)])
    assert known_bounds(given).bound == pytest.approx(known_bounds(gs.graphs.compile_graph(alone)).bound)
    result = gs.sample(
        whole.observe({"b": 0.0}),
        gs.kernels.ContinuousGibbs("slice", minibatch=100.0),
        sweeps=4000,
        rng=1,
        progress=False,
    )
    assert abs(result.marginals["a"]["mean"]) < 5.5 * result.mcse["a"]["mean"]
    assert abs(result.marginals["a"]["sd"] - 40**-0.5) < 5.5 * result.mcse["a"]["sd"]


def fails(x: Any, p: Any) -> Any:
    if x[0] > 0.9:
        raise ValueError("boom")
    return -p[0] * x[0] ** 2


def test_the_exception_of_a_compiled_factor_is_shown() -> None:
    model = data_model(function=fails)
    with pytest.raises(
        gs.errors.SamplingError, match=r"factor [01] of 'bump' is nan at .*ValueError\('boom'\)"
    ) as told:
        gs.sample(model, sweeps=5000, rng=1, progress=False, start=[0.0, 0.0, 0.0])
    assert isinstance(told.value.__cause__, ValueError)
