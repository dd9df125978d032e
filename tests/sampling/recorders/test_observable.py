"""Observables: averages of functions of the state, against draws of the same run and exact values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.foreign import adopt
from gibbsite.sampling.observed import BINS
from gibbsite.sampling.recorders.base import OpenRecorder, Prepared

MODEL = gs.ising_grid((3, 4), coupling=0.3, field=0.1)


def uneven(x: Any) -> Any:
    """Depend on every site in another way, so that a wrong order of sites shows."""
    total = 0.0
    for i in range(x.size):
        total += (i + 1) * x[i]
    return total


def both(x: Any) -> Any:
    out = np.empty(2)
    out[0], out[1] = x[0], x[x.size - 1] * x[1]
    return out


def run(model: gs.FactorGraph, *record: Any, **given: Any) -> gs.Result:
    given = {"sweeps": 300, "rng": 1, "chains": 2, "progress": False, **given}
    return gs.sample(model, record=["marginals", "draws", *record], **given)


def spins(result: gs.Result) -> Any:
    return 2.0 * result.draws - 1.0


@pytest.mark.parametrize("scan", [gs.Systematic(), gs.Chromatic()], ids=lambda scan: type(scan).__name__)
@pytest.mark.parametrize("shape", [(3, 4), (16, 16)], ids=str)
def test_values_are_those_of_the_draws(scan: gs.scans.Scan, shape: tuple[int, int]) -> None:
    """Also where sites are laid out in another order (large lattices by color)."""
    model = gs.ising_grid(shape, coupling=0.3, field=0.1)
    result = run(model, gs.Observable("u", uneven, series=True), gs.Observable("two", both, 2), scan=scan)
    x = spins(result)
    expected = x @ np.arange(1.0, x.shape[2] + 1)
    assert np.array_equal(result.observables["u"].series, expected)
    assert result.observables["u"].mean == pytest.approx(expected.mean(), abs=1e-12)
    pair = result.observables["two"]
    assert pair.mean == pytest.approx([x[:, :, 0].mean(), (x[:, :, -1] * x[:, :, 1]).mean()], abs=1e-12)
    assert result.observables["u"].sd == pytest.approx(expected.std(), rel=1e-9)


def test_labels_that_are_words_are_codes_and_numbers_are_numbers() -> None:
    model = gs.FactorGraph({"a": ["no", "yes"], "b": [10, 20, 40]}, [(("a", "b"), [[4, 1, 1], [1, 2, 3]])])
    result = run(model, gs.Observable("sum", lambda x: x[0] + x[1], series=True))
    expected = result.draws[:, :, 0] + np.array([10, 20, 40])[result.draws[:, :, 1]]
    assert np.array_equal(result.observables["sum"].series, expected)


def test_functions_that_do_not_compile_are_called_back() -> None:
    seen: dict[str, float] = {"calls": 0}

    def in_python(x: Any) -> float:
        seen["calls"] += 1
        return float(sorted(x.tolist())[0])

    result = run(MODEL, gs.Observable("least", in_python), threads=1)
    assert seen["calls"] == 2 * 300
    assert result.observables["least"].mean == spins(result).min(axis=2).mean()


def test_ready_observables_agree_with_exact_values() -> None:
    """Five standard errors: a false alarm rate of 6e-7 for each of nine numbers."""
    exact = gs.exact.enumerate(MODEL)
    x = 2.0 * exact.states - 1.0
    up = gs.recorders.Agreement(np.ones(12, int))
    result = gs.sample(MODEL, record=["marginals", "magnetisation", "energy", up], sweeps=20_000, rng=3, progress=False)
    m = x.mean(axis=1)
    law = exact.probabilities
    found = result.observables["magnetisation"]
    wanted = [law @ v for v in (m, abs(m), m**2, m**4)]
    assert (abs(found.mean - wanted) < 5 * found.mcse).all()
    share = result.observables["agreement"]
    assert abs(share.mean - law @ (x == 1).mean(axis=1)) < 5 * share.mcse
    energy = result.observables["energy"]
    each = -np.array([MODEL.log_potential(state) for state in exact.states])
    assert abs(energy.mean - law @ each) < 5 * energy.mcse
    assert 1.0 <= energy.tau < 10.0 and energy.rhat < 1.01


def test_magnetisation_is_an_order_parameter_of_every_kind_of_model() -> None:
    """Each draw gives the value that its state has by definition."""
    given: dict[str, Any] = {
        "sweeps": 50,
        "chains": 2,
        "rng": 1,
        "progress": False,
        "criteria": gs.Criteria(dispersed_starts=False),
    }
    record = ["draws", gs.recorders.Magnetisation(series=True)]

    def share(codes: Any, states: int) -> Any:
        most = np.stack([(codes == k).mean(axis=2) for k in range(states)]).max(axis=0)
        return (states * most - 1) / (states - 1)

    for model, states in (
        (gs.potts_grid((4, 4), states=5, coupling=1.0), 5),
        (gs.potts_grid((4, 4), states=2, coupling=0.5), 2),
        (gs.FactorGraph({"a": ["x", "y"], "b": ["x", "y"]}, [(("a", "b"), [[3, 1], [1, 3]])]), 2),
    ):
        result = gs.sample(model, record=record, **given)
        expected = share(result.draws, states)
        found = result.observables["magnetisation"].series
        np.testing.assert_allclose(found[:, :, 0], expected, atol=1e-12)
        np.testing.assert_allclose(found[:, :, 3], expected**4, atol=1e-12)

    spins_with_evidence = gs.ising_grid((3, 4), coupling=0.3).observe({"0": 1, "5": 1, "7": -1})
    result = gs.sample(spins_with_evidence, record=record, **given)
    expected = (2.0 * result.draws - 1.0).sum(axis=2) + 1.0
    np.testing.assert_allclose(result.observables["magnetisation"].series[:, :, 0], expected / 12, atol=1e-12)

    potts = gs.potts_grid((3, 3), states=3, coupling=0.5).observe({"0": 2, "1": 2})
    result = gs.sample(potts, record=record, **given)
    whole = np.concatenate([result.draws, np.full((2, 50, 2), 2)], axis=2)
    np.testing.assert_allclose(result.observables["magnetisation"].series[:, :, 0], share(whole, 3), atol=1e-12)


def test_magnetisation_of_angles_is_the_length_of_the_mean_vector() -> None:
    """The function itself, without a run: models of angles take long to compile."""
    model = gs.ContinuousModel(dict.fromkeys(["a", "b", "c"], gs.Angle(360)))
    for each, seen in ((model, []), (model.observe({"c": 90.0}), [90.0])):
        x = np.array([10.0, 350.0, 200.0])[: each.n_sites]
        record = gs.recorders.Magnetisation()
        memory = np.concatenate([np.zeros(4), record.start(each)])
        record.function(x, memory)
        length = abs(np.exp(2j * np.pi * np.concatenate([x, seen]) / 360).mean())
        np.testing.assert_allclose(memory[:4], [length, length, length**2, length**4], atol=1e-12)


def test_order_parameters_that_mean_nothing_are_refused() -> None:
    given: dict[str, Any] = {"sweeps": 5, "rng": 1, "progress": False}
    several = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), np.ones((2, 3)))])
    with pytest.raises(gs.errors.ArgumentError, match="all of one kind, with the same states"):
        gs.sample(several, record=["marginals", "magnetisation"], **given)
    with pytest.raises(gs.errors.ArgumentError, match="all of one kind, with the same states"):
        gs.sample(several.observe({"b": 1}), record=["marginals", "magnetisation"], **given)
    normal = gs.Gaussian(np.zeros(3), np.eye(3))
    with pytest.raises(gs.errors.ArgumentError, match="Overlap compares states"):
        gs.sample(normal, record=["marginals", "overlap"], **given)


def test_two_point_functions_of_potts_models_do_not_depend_on_labels() -> None:
    model = gs.potts_grid((2, 3), states=3, coupling=0.7)
    record = ["draws", gs.recorders.TwoPoint(1, series=True)]
    result = gs.sample(
        model, record=record, sweeps=50, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
    )
    x = result.draws.reshape(*result.draws.shape[:2], 2, 3)
    along = [x[:, :, 0] == x[:, :, 1], x[:, :, :, 1:] == x[:, :, :, :-1]]
    agree = np.concatenate([part.reshape(*x.shape[:2], -1) for part in along], axis=2).mean(axis=2)
    found = result.observables["two-point"].series
    np.testing.assert_allclose(found[:, :, 1], (3 * agree - 1) / 2, atol=1e-12)
    np.testing.assert_allclose(found[:, :, 0], 1.0, atol=1e-12)


def test_standard_errors_are_those_of_repeated_runs() -> None:
    """The spread of 200 means against their errors: a ratio of variances within 1 +- 0.5 (5 deviations)."""
    runs = [
        gs.sample(
            MODEL,
            record=["marginals", "magnetisation"],
            sweeps=400,
            rng=seed,
            progress=False,
            criteria=gs.Criteria(dispersed_starts=False),
        )
        for seed in range(200)
    ]
    means = np.array([r.observables["magnetisation"].mean[2] for r in runs])
    errors = np.array([r.observables["magnetisation"].mcse[2] for r in runs])
    assert 0.5 < means.var() / (errors**2).mean() < 1.5


def test_bins_are_merged_when_they_are_many() -> None:
    observable = gs.Observable("u", uneven, series=True)
    result = gs.sample(MODEL, record=["marginals", observable], sweeps=3 * BINS, chains=1, rng=2, progress=False)
    found = result.observables["u"]
    assert found.length == 4 and found.bins.shape == (1, 3 * BINS // 4, 1)
    assert found.bins[0, :, 0] == pytest.approx(found.series[0].reshape(-1, 4).mean(axis=1), abs=1e-9)


def test_derived_quantities_have_jackknife_errors() -> None:
    result = run(MODEL, gs.recorders.Magnetisation(), sweeps=4000)
    value, error = result.observables.derive(lambda m: m, "magnetisation")
    found = result.observables["magnetisation"]
    assert value == pytest.approx(found.mean, abs=1e-3)
    assert error == pytest.approx(found.mcse, rel=0.5)
    with pytest.raises(gs.GibbsiteError, match="nonsense"):
        result.observables.derive(lambda m: m, "nonsense")


def test_threads_checkpoints_and_files_change_nothing(tmp_path: Path) -> None:
    record = ["marginals", gs.Observable("u", uneven, series=True), gs.recorders.TwoPoint(2)]
    given: dict[str, Any] = {"record": record, "rng": 5, "progress": False}
    whole = gs.sample(MODEL, sweeps=400, warmup=40, threads=2, **given)
    path = tmp_path / "run.npz"
    gs.sample(MODEL, sweeps=150, warmup=40, threads=1, checkpoint=path, **given)
    resumed = gs.sample(MODEL, sweeps=400, warmup=40, threads=1, checkpoint=gs.Checkpoint(path, resume=True), **given)
    for a, b in zip(whole._blocks, resumed._blocks, strict=True):
        pair = [gs.recorders.observable.read_bins(rows[0]) for rows in (a, b)]
        assert all(np.array_equal(p, q) for p, q in zip(pair[0][:-1], pair[1][:-1], strict=True))
    assert np.array_equal(whole.observables["u"].series, resumed.observables["u"].series)
    whole.save(tmp_path / "saved.npz")
    again = gs.load(tmp_path / "saved.npz")
    assert again.observables["two-point"].names == ("0", "1", "2")
    assert np.array_equal(again.observables["two-point"].mean, whole.observables["two-point"].mean)
    assert np.array_equal(again.observables["u"].series, whole.observables["u"].series)
    tree = whole.to_datatree()["observables"]
    assert tree["u"].shape == (4, 400) and tree["two-point"].shape == (4, 400, 3)


def test_observables_are_shown_wherever_results_are() -> None:
    record = ["marginals", gs.Observable("u", uneven, series=True), gs.recorders.Magnetisation(), "energy"]
    result = gs.sample(
        MODEL, sweeps=400, rng=5, record=record, progress=False, criteria=gs.Criteria(dispersed_starts=False)
    )
    u = result.observables["u"]
    assert u.quantiles([0.25, 0.5]) == {p: np.quantile(u.series, p) for p in (0.25, 0.5)}
    assert 0.0 < u.quantiles_mcse(0.5)[0.5] < u.sd
    with pytest.raises(gs.errors.ArgumentError, match="record it with series=True"):
        result.observables["magnetisation"].quantiles(0.5)
    for text in (result.summary(), repr(result.observables), repr(u)):
        assert f"u  {u.mean:.2f}"[:5] in text and "autocorrelation time" in text and "tau" not in text
        assert " object at 0x" not in text
    assert "magnetisation m2" in result.summary()
    pandas = pytest.importorskip("pandas")
    frame = result.to_dataframe()
    seen = frame[frame.observable]
    assert seen.site.tolist() == ["energy", "u", *["magnetisation"] * 4]
    assert seen.state.tolist() == [None, None, "m", "abs", "m2", "m4"]
    assert seen["mean"].tolist()[1] == u.mean and seen.mcse.tolist()[1] == u.mcse
    assert isinstance(frame, pandas.DataFrame)
    assert frame[~frame.observable].probability.notna().all()
    pytest.importorskip("xarray")
    tree = result.to_datatree()
    assert list(tree["posterior"].data_vars) == ["u"]  # a magnetisation without series is not among draws
    assert np.array_equal(tree["posterior/u"], u.series)
    assert np.array_equal(tree["sample_stats/energy"], -tree["sample_stats/lp"])


def test_overlaps_of_pairs_of_chains(tmp_path: Path) -> None:
    """Also resumed, and with a meeting only now and then."""
    model = gs.FactorGraph({"a": 2, "b": 3, "c": 2}, [(("a", "b"), [[4, 1, 1], [1, 2, 3]])])
    given: dict[str, Any] = {"chains": 5, "rng": 2, "warmup": 10, "progress": False}
    record = ["marginals", "draws", gs.recorders.Overlap(every=3)]
    result = gs.sample(model, sweeps=100, record=record, **given)
    x = result.draws[:, 2::3]
    same = x[[0, 2]] == x[[1, 3]]
    expected = ((np.array([2, 3, 2]) * same - 1) / np.array([1, 2, 1])).mean(axis=2)
    found = result.observables["overlap"]
    assert found.series[:, :, 0] == pytest.approx(expected, abs=1e-12) and found.names == ("q", "abs", "q2", "q4")
    path = tmp_path / "run.npz"
    gs.sample(model, sweeps=40, record=record, checkpoint=path, **given)
    resumed = gs.sample(model, sweeps=100, record=record, checkpoint=gs.Checkpoint(path, resume=True), **given)
    assert np.array_equal(resumed.observables["overlap"].series, found.series)
    result.save(tmp_path / "saved.npz")
    assert np.array_equal(gs.load(tmp_path / "saved.npz").observables["overlap"].mean, found.mean)


def test_another_function_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    given: dict[str, Any] = {"sweeps": 50, "rng": 5, "progress": False}
    gs.sample(MODEL, record=["marginals", gs.Observable("u", uneven)], checkpoint=path, **given)
    with pytest.raises(gs.errors.CheckpointError, match="record"):
        other, resumed = gs.Observable("u", lambda x: x[0]), gs.Checkpoint(path, resume=True)
        gs.sample(MODEL, record=["marginals", other], checkpoint=resumed, **given)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.log(x[0] - 5.0), ["'bad'", "finite"]),
        (lambda x: x[99], ["'bad'", "IndexError"]),
        (lambda x: "no", ["'bad'", "'no'"]),
        (lambda x: 1 / int(x[0] - x[0]), ["'bad'", "ZeroDivisionError"]),
    ],
)
def test_functions_that_fail_are_named(function: Any, words: list[str]) -> None:
    with pytest.raises(gs.errors.SamplingError) as failed:
        run(MODEL, gs.Observable("bad", function))
    assert all(word in str(failed.value) for word in words)


def test_arrays_of_the_wrong_size_are_named() -> None:
    with pytest.raises(gs.errors.SamplingError, match=r"shape \(3,\) is needed, got \(2,\)"):
        run(MODEL, gs.Observable("bad", lambda x: np.array([1.0, 2.0]), size=3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Observable("", uneven), ["name"]),
        (lambda: gs.Observable("a", uneven, 0), ["'a'", "whole number"]),
        (lambda: gs.Observable("a", uneven, 2, names=("b",)), ["2 names"]),
        (lambda: run(MODEL, gs.Observable("a")), ["'a'", "function"]),
        (lambda: run(MODEL, gs.Observable("a", uneven), gs.Observable("a", both, 2)), ["'a'", "different"]),
        (lambda: run(MODEL, "magnetization"), ["magnetisation"]),
        (lambda: run(MODEL, gs.recorders.TwoPoint(40)), ["40", "(3, 4)"]),
        (lambda: run(gs.FactorGraph({"a": 2}), gs.recorders.TwoPoint(1)), ["lattice"]),
        (lambda: run(MODEL, gs.recorders.Agreement([1, 2])), ["12 state codes"]),
        (lambda: run(MODEL, gs.recorders.Agreement({"0": 1})), ["'1'"]),
        (lambda: run(MODEL, "overlap", chains=1), ["chains=2"]),
        (lambda: gs.recorders.Overlap(every=0), ["every"]),
        (lambda: run(gs.FactorGraph({"a": 2}).observe({"a": 1}), "magnetisation"), ["no free sites"]),
        (lambda: run(MODEL).observables["m"], ["'m'", "none"]),
        (lambda: run(MODEL, "magnetisation").observables["magnetisation"].series, ["series=True"]),
        (
            lambda: gs.sample(MODEL, gs.AnnealedGibbs(sweeps=5), record="magnetisation", progress=False),
            ["AnnealedGibbs", "Magnetisation"],
        ),
    ],
)
def test_bad_input(make: Any, words: list[str]) -> None:
    with pytest.raises(gs.GibbsiteError) as failed:
        make()
    assert all(word in str(failed.value) for word in words), str(failed.value)


def _longest_run(x: Any, memory: Any) -> None:
    """How long the first site has stayed as it is, and the longest that was."""
    memory[1] = memory[1] + 1 if x[0] == memory[0] else 1
    memory[0] = x[0]
    memory[2] = max(memory[2], memory[1])


@dataclass(frozen=True)
class LongestStay(OpenRecorder):
    """A recorder with a memory of its own."""

    key = "longest stay"

    def prepare(self, model: Any) -> Prepared:
        return Prepared(adopt(_longest_run, "update"), np.zeros(3))

    def conclude(self, blocks: Any, draws: int) -> Any:
        return blocks[:, 2].astype(int)


def test_a_recorder_of_the_user_is_a_class(tmp_path: Path) -> None:
    result = run(MODEL, LongestStay())
    expected = []
    for chain in result.draws[:, :, 0]:
        ends = np.flatnonzero(np.diff(chain)) + 1
        expected.append(np.diff(np.concatenate([[0], ends, [chain.size]])).max())
    assert result.recorded["longest stay"].tolist() == expected
    result.save(tmp_path / "r.npz")
    assert gs.load(tmp_path / "r.npz").recorded["longest stay"].tolist() == expected
