"""Kernels in densities: what they refuse, what they say when something goes wrong, what runs do for them."""

from __future__ import annotations

import math
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs

pytestmark = pytest.mark.long

Floats = NDArray[np.float64]
NORMAL = gs.LogDensity(
    lambda x: -0.5 * (x[0] ** 2 + (x[1] / 3.0) ** 2), lambda x: np.array([-x[0], -x[1] / 9.0]), dim=2
)
KERNELS: dict[str, gs.kernels.Kernel] = {
    "Metropolis": gs.Metropolis(),
    "one by one": gs.Metropolis(one_by_one=True),
    "MALA": gs.MALA(),
    "Slice": gs.Slice(),
}


def quick(model: gs.Model, kernel: gs.kernels.Kernel, **options: Any) -> gs.Result:
    return gs.sample(model, kernel, **{"sweeps": 400, "rng": 1, "progress": False, **options})


# -- what a run does for every model ---------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_runs_are_repeated_on_any_number_of_threads(name: str) -> None:
    one, two = (quick(NORMAL, KERNELS[name], record="draws", threads=threads) for threads in (1, 2))
    assert one.draws.tobytes() == two.draws.tobytes()


@pytest.mark.parametrize("name", KERNELS)
def test_a_resumed_run_is_the_uninterrupted_one(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"warmup": 150, "record": "draws"}
    whole = quick(NORMAL, KERNELS[name], **options)
    quick(NORMAL, KERNELS[name], **options | {"sweeps": 130}, checkpoint=tmp_path / "run")
    rest = quick(NORMAL, KERNELS[name], **options, checkpoint=gs.Checkpoint(tmp_path / "run", resume=True))
    assert whole.draws.tobytes() == rest.draws.tobytes()
    assert whole.report == rest.report


def test_minibatches_are_resumed_with_falling_steps(tmp_path: Path) -> None:
    data = np.random.default_rng(1).normal(size=50)
    model = gs.DataDensity(
        None,
        lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
        data,
        likelihood_grad=lambda theta, row: np.array([row[0] - theta[0]]),
        dim=1,
    )
    kernel = gs.kernels.SGLD(1e-2, 7, replace=False, decay=(100.0, 0.6))
    whole = quick(model, kernel, record="draws")
    quick(model, kernel, record="draws", sweeps=100, warmup=40, checkpoint=tmp_path / "run")
    rest = quick(model, kernel, record="draws", warmup=40, checkpoint=gs.Checkpoint(tmp_path / "run", resume=True))
    assert whole.draws.tobytes() == rest.draws.tobytes()
    assert rest.report["step"] == pytest.approx(1e-2 * (1.0 + 440 / 100.0) ** -0.6, rel=1e-12)


def test_a_checkpoint_of_another_density_is_refused(tmp_path: Path) -> None:
    quick(NORMAL, gs.Metropolis(), checkpoint=tmp_path / "run")
    other = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + (x[1] / 4.0) ** 2), dim=2)
    with pytest.raises(gs.errors.CheckpointError, match="another run: model"):
        quick(other, gs.Metropolis(), checkpoint=gs.Checkpoint(tmp_path / "run", resume=True))


def test_results_are_saved_and_loaded(tmp_path: Path) -> None:
    result = quick(NORMAL, gs.MALA(), record=["marginals", "draws", "energy"])
    result.save(tmp_path / "result")
    again = gs.load(tmp_path / "result")
    assert again.marginals["1"] == result.marginals["1"]
    assert again.report == result.report
    assert again.draws.tobytes() == result.draws.tobytes()


def test_results_are_given_to_arviz() -> None:
    arviz = pytest.importorskip("arviz")
    result = quick(NORMAL, gs.Metropolis(), record=["marginals", "draws"])
    tree = result.to_datatree()
    np.testing.assert_array_equal(tree["posterior"]["x"].values, result.draws)
    assert arviz.ess(tree["posterior"].to_dataset())["x"].shape == (2,)


def test_energies_are_minus_log_densities() -> None:
    result = quick(NORMAL, gs.Metropolis(), record=["draws", "energy"])
    found = [NORMAL.log_potential(x) for x in result.draws[0]]
    np.testing.assert_allclose(-result.energy[0], found, rtol=1e-12)


def test_density_runs_without_a_kernel_named() -> None:
    assert quick(NORMAL, None).plan.kernel["name"] == "Metropolis"  # type: ignore[arg-type]


# -- learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [(gs.Metropolis(), 0.234), (gs.Metropolis(one_by_one=True), 0.44), (gs.MALA(), 0.574)],
    ids=["together", "one by one", "MALA"],
)
def test_acceptance_is_what_was_wanted(kernel: gs.kernels.Kernel, wanted: float) -> None:
    result = quick(NORMAL, kernel, sweeps=20_000, warmup=5000)
    assert abs(result.report["acceptance"] - wanted) < 0.06  # the scale is frozen at a random moment


def test_the_covariance_is_learned() -> None:
    """Moves of a target whose sides differ by 1e4: without learning, its long side would take 1e8 moves."""
    model = gs.LogDensity(lambda x: -0.5 * ((x[0] + x[1]) ** 2 * 1e4 + (x[0] - x[1]) ** 2 * 1e-4), dim=2)
    result = quick(model, gs.Metropolis(), sweeps=20_000, warmup=20_000)
    assert result.report["acceptance"] > 0.15
    assert 40.0 < result.marginals["0"]["sd"] < 60.0  # 50


def test_given_sizes_are_kept() -> None:
    assert quick(NORMAL, gs.MALA(step=0.3)).report["step"] == pytest.approx(0.3, rel=1e-12)
    kept = quick(NORMAL, gs.Metropolis(scale=0.3, one_by_one=True, adapt=False))
    assert kept.report["scale"] == pytest.approx(0.3, rel=1e-12)


# -- bad input -------------------------------------------------------------------------------------------


def log_banana(x: Floats) -> Any:
    return -(x[0] ** 2) / 10 - x[1] ** 4 / 10 - 2 * (x[1] - x[0] ** 2) ** 2


def test_the_printed_gradient_of_the_banana_is_refused() -> None:
    def printed(x: Floats) -> Any:
        return np.array([-2 * x[0] / 5 + 4 * x[0] * (x[1] - x[0] ** 2), -2 * x[1] ** 3 / 5 - 4 * (x[1] - x[0] ** 2)])

    model = gs.LogDensity(log_banana, printed, dim=2, names=["x", "y"])
    for _ in range(2):  # not only the first time
        with pytest.raises(gs.errors.ModelError, match=r"at x=.*, y=.* its entry for 'x' is -?\d.* give -?\d"):
            quick(model, gs.MALA())


def test_gradients_of_rows_are_checked() -> None:
    model = gs.DataDensity(
        None,
        lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
        np.arange(5.0),
        likelihood_grad=lambda theta, row: np.array([theta[0] - row[0]]),
        dim=1,
    )
    with pytest.raises(gs.errors.ModelError, match="gradient of the log-likelihood '<lambda>' of row"):
        gs.graphs.compile_graph(model)


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        (lambda x: np.zeros(3), r"must have shape \(2,\), got \(3,\)"),
        (lambda x: np.full(2, np.nan), "is not finite"),
        (lambda x: x.__class__.nothing, "nothing"),
    ],
    ids=["shape", "nan", "exception"],
)
def test_what_is_no_gradient_is_refused(gradient: Any, said: str) -> None:
    with pytest.raises((gs.errors.ModelError, AttributeError), match=said):
        gs.graphs.compile_graph(gs.LogDensity(lambda x: -(x[0] ** 2) - x[1] ** 2, gradient, dim=2))


def test_without_gradient_there_is_no_langevin() -> None:
    model = gs.LogDensity(log_banana, dim=2)
    for kernel in (gs.MALA(), gs.kernels.ULA(0.1)):
        with pytest.raises(gs.errors.IncompatibleError, match="Finite differences are not used"):
            quick(model, kernel)


def test_functions_must_leave_their_argument_alone() -> None:
    def careless(x: Floats) -> Any:
        x *= 2.0
        return -(x[0] ** 2)

    with pytest.raises(gs.errors.ModelError, match="changes its argument"):
        gs.graphs.compile_graph(gs.LogDensity(careless, dim=1))


@pytest.mark.parametrize(("value", "said"), [(math.nan, "is NaN at"), (math.inf, "is infinite at")], ids=["nan", "inf"])
@pytest.mark.parametrize("name", ["Metropolis", "one by one", "Slice"])
def test_what_is_no_density_stops_a_run_that_keeps_what_it_has(name: str, value: float, said: str) -> None:
    model = gs.LogDensity(lambda x: -0.5 * x[0] ** 2 if x[0] < 3.5 else value, dim=1)
    with pytest.raises(gs.errors.SamplingError, match=said) as wrong:
        quick(model, KERNELS[name], sweeps=2_000_000, start=[0.0])
    if wrong.value.result is not None:
        assert wrong.value.result.n_draws > 0
    place = float(str(wrong.value).split("0=")[1].split(";")[0])
    assert place >= 3.5


def test_exceptions_of_functions_that_are_called_back_are_shown() -> None:
    begin: list[float] = []

    def careful(x: Floats) -> Any:
        begin.append(time.monotonic())
        if begin[-1] - begin[0] > 1.0:  # some blocks of a run later
            raise KeyError("out of luck")
        return -0.5 * float(x[0]) ** 2

    model = gs.LogDensity(careful, dim=1)
    with pytest.raises(gs.errors.SamplingError, match="out of luck") as wrong:
        quick(model, gs.Metropolis(), sweeps=10**7, warmup=10, chains=1, record=["draws", "energy"])
    assert isinstance(wrong.value.__cause__, KeyError)
    kept = wrong.value.result  # of the blocks before
    assert 1 <= kept.n_draws < len(begin)
    np.testing.assert_allclose(kept.energy[0], 0.5 * kept.draws[0, :, 0] ** 2, rtol=1e-12)


def test_exceptions_of_compiled_functions_are_shown() -> None:
    def careful(x: Floats) -> Any:
        if x[0] > 3.0:
            raise ValueError("boom")
        return -0.05 * x[0] ** 2

    def never(x: Floats) -> Any:
        if x[0] > -100.0:
            raise ValueError("boom")
        return 0.0

    def sloped(x: Floats) -> Any:
        if x[0] > 3.0:
            raise ValueError("no slope")
        return np.array([-0.1 * x[0]])

    with pytest.raises(gs.errors.SamplingError, match=r"NaN at 0=[3-9].*raised ValueError\('boom'\)") as wrong:
        quick(gs.LogDensity(careful, dim=1), gs.Metropolis(), sweeps=5000)
    assert isinstance(wrong.value.__cause__, ValueError)
    with pytest.raises(gs.errors.ModelError, match=r"NaN at 0=4.*raised ValueError\('boom'\)"):
        quick(gs.LogDensity(careful, dim=1), gs.Metropolis(), start=[4.0])
    with pytest.raises(gs.errors.ModelError, match=r"nan at 0=.*raised ValueError\('boom'\)"):
        quick(gs.LogDensity(never, dim=1), gs.Metropolis())
    smooth = gs.LogDensity(lambda x: -0.05 * x[0] ** 2, sloped, dim=1)
    with pytest.raises(gs.errors.SamplingError, match=r"gradient is not finite.*raised ValueError\('no slope'\)"):
        quick(smooth, gs.MALA(), sweeps=5000)


def test_a_row_that_fails_is_shown() -> None:
    def likelihood(theta: Floats, row: Floats) -> Any:
        if theta[0] > 2.0 and row[0] == 7.0:
            raise ValueError("lucky number")
        return -0.001 * (row[0] - theta[0]) ** 2

    model = gs.DataDensity(None, likelihood, np.arange(10.0), dim=1)
    with pytest.raises(gs.errors.SamplingError, match=r"ValueError\('lucky number'\)"):
        quick(model, gs.Metropolis(), sweeps=5000, start=[0.0])


def test_a_step_that_is_too_large_is_reported_with_a_better_one() -> None:
    model = gs.LogDensity(lambda x: -50.0 * x[0] ** 2 - 0.5 * x[1] ** 2, lambda x: np.array([-100.0, -1.0]) * x, dim=2)
    with pytest.raises(gs.errors.SamplingError, match=r"diverged.*0\.02 or more are unstable; try 0\.01"):
        quick(model, gs.kernels.ULA(0.021), sweeps=20_000)
    quick(model, gs.kernels.ULA(0.01), sweeps=20_000)


def test_a_gradient_that_fails_on_the_way_is_reported() -> None:
    model = gs.LogDensity(lambda x: -0.5 * x[0] ** 2, lambda x: np.array([-x[0] if x[0] < 3.0 else np.nan]), dim=1)
    with pytest.raises(gs.errors.SamplingError, match="gradient is not finite"):
        quick(model, gs.MALA(), sweeps=200_000)


RISING = gs.LogDensity(lambda x: 2.0 * x[0], lambda x: np.array([2.0]), dim=1, bounds=(-1.0, 0.5))


@pytest.mark.parametrize("name", KERNELS)
def test_bounds_are_kept(name: str) -> None:
    values = quick(RISING, KERNELS[name], record="draws", sweeps=4000).draws
    assert values.min() >= -1.0 and values.max() <= 0.5 and values.std() > 0.2


def test_starts_outside_the_support_are_refused() -> None:
    model = gs.LogDensity(lambda x: math.log(x[0]) if x[0] > 0.0 else -math.inf, dim=1, bounds=(-1.0, 1.0))
    with pytest.raises(gs.errors.SupportError):
        quick(model, gs.Metropolis(), start=[-0.5])
    with pytest.raises(gs.errors.ModelError, match="from -1 to 1"):
        quick(model, gs.Metropolis(), start=[2.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: gs.LogDensity(3.0, dim=1),
        lambda: gs.LogDensity(log_banana, dim=0),
        lambda: gs.LogDensity(log_banana, dim=2, names=["a"]),
        lambda: gs.LogDensity(log_banana, dim=2, bounds=(1.0, [2.0, 0.0])),
        lambda: gs.DataDensity(None, lambda t, r: 0.0, [[1.0, np.nan]], dim=1),
        lambda: gs.DataDensity(None, None, [1.0], dim=1),
        lambda: gs.kernels.Proposal(lambda x, rng: x),
        lambda: gs.kernels.Proposal(lambda x, rng: x, symmetric=True, log_ratio=lambda a, b: 0.0),
        lambda: gs.Metropolis("cauchy"),
        lambda: gs.Metropolis(gs.kernels.Proposal(lambda x, rng: x, symmetric=True), one_by_one=True),
        lambda: gs.Metropolis(scale=-1.0).parameters(gs.graphs.compile_graph(NORMAL)),
        lambda: gs.Metropolis(covariance=[[1.0, 2.0], [2.0, 1.0]]).parameters(gs.graphs.compile_graph(NORMAL)),
        lambda: gs.MALA(step=0.0).parameters(gs.graphs.compile_graph(NORMAL)),
        lambda: gs.MALA(step=0.1, preconditioner="adapt").parameters(gs.graphs.compile_graph(NORMAL)),
        lambda: gs.MALA(preconditioner="learn").parameters(gs.graphs.compile_graph(NORMAL)),
        lambda: gs.Slice(width=[1.0, 2.0, 3.0]).parameters(gs.graphs.compile_graph(NORMAL)),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(gs.errors.ModelError):
        make()


def test_a_covariance_that_is_none_names_its_eigenvalue() -> None:
    with pytest.raises(gs.errors.ModelError, match="smallest eigenvalue is -1"):
        quick(NORMAL, gs.Metropolis(covariance=[[1.0, 2.0], [2.0, 1.0]]))


@cache
def five_rows() -> gs.graphs.Graph:
    model = gs.DataDensity(
        None,
        lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
        np.arange(5.0),
        likelihood_grad=lambda theta, row: np.array([row[0] - theta[0]]),
        dim=1,
    )
    return gs.graphs.compile_graph(model)


@pytest.mark.parametrize(
    "options",
    [
        {"step": -1.0, "batch": 2},
        {"step": 0.1, "batch": 0},
        {"step": 0.1, "batch": 9, "replace": False},
        {"step": 0.1, "batch": 2, "decay": (1.0, 0.3)},
        {"step": 0.1, "batch": 2, "control_variates": [1.0, 2.0]},
    ],
    ids=str,
)
def test_sgld_refuses_what_makes_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(gs.errors.ModelError):
        gs.kernels.SGLD(**options).parameters(five_rows())


def test_biased_kernels_say_so() -> None:
    (remark,) = gs.kernels.ULA(0.5).warnings(NORMAL, gs.graphs.compile_graph(NORMAL), gs.Systematic())
    assert remark.grave and "2 s^4 / (2 s^2 - g)" in remark.text
    assert not gs.kernels.ULA(0.5).exact and not gs.kernels.SGLD(0.5, 1).exact


# -- proposals of users ----------------------------------------------------------------------------------


def test_a_compiled_proposal_draws_from_the_generator_of_its_chain() -> None:
    import numba

    @numba.njit
    def draw(x: Any, rng: Any) -> Any:
        return x + 2.0 * gs.random.normal(rng)

    kernel = gs.Metropolis(gs.kernels.Proposal(draw, symmetric=True))
    model = gs.LogDensity(lambda x: -0.5 * x[0] ** 2, dim=1)
    one, two = (quick(model, kernel, record="draws", sweeps=2000, threads=t) for t in (1, 2))
    assert one.draws.tobytes() == two.draws.tobytes()
    assert kernel.proposal.functions()[0].compiled  # type: ignore[union-attr]
    assert 0.3 < one.report["acceptance"] < 0.7


def test_a_proposal_that_fails_is_reported() -> None:
    def draw(x: Floats, rng: Any) -> Any:
        raise RuntimeError("no idea")

    with pytest.raises(gs.errors.SamplingError, match="no idea"):
        quick(NORMAL, gs.Metropolis(gs.kernels.Proposal(draw, symmetric=True)))


# -- JAX -------------------------------------------------------------------------------------------------


def test_functions_of_jax_are_differentiated() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    model = gs.LogDensity(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), dim=2)
    assert model.has_gradient
    place = np.array([0.3, 1.0 + 1e-12])
    np.testing.assert_allclose(np.asarray(model.gradient(place)), 1.0 - place, rtol=1e-9)  # doubles
    jitted = gs.LogDensity(jax.jit(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2)), dim=2)
    assert jitted.digest != gs.LogDensity(jax.jit(lambda x: -0.25 * jnp.sum((x - 1.0) ** 2)), dim=2).digest
    result = quick(jitted, gs.MALA(), sweeps=300)
    assert abs(result.marginals["0"]["mean"] - 1.0) < 0.5
