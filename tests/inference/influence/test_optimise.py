"""DoGS: the compiled descent is the plain one, never worse than its input, and its guarantee holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.inference.influence.descent import descend, descend_drawn, evaluate, make_workspace
from gibbsite.inference.influence.matrix import read_influence
from tests.inference.influence.random_models import random_model


def plain_dogs(
    dense: NDArray[np.float64], weights: NDArray[np.float64], scan: NDArray[np.int32]
) -> tuple[list[int], float]:
    """Algorithm 2 as it stands, with whole vectors; every bound is computed from the first step on."""
    n = len(dense)
    bounds = [np.ones(n)]
    for i in scan:
        b = bounds[-1].copy()
        b[i] = dense[i] @ b
        bounds.append(b)
    d, new = weights.astype(float), list(scan)
    for t in range(len(scan) - 1, -1, -1):
        gain = d * (bounds[t] - dense @ bounds[t])
        best = int(np.argmax(gain))
        if gain[best] > gain[scan[t]]:
            new[t] = best
        moved = d[new[t]]
        d[new[t]] = 0.0
        d += moved * dense[new[t]]
    return new, float(d.sum())


@pytest.mark.parametrize("seed", range(200))
def test_the_descent_is_the_plain_one(seed: int) -> None:
    # quarters and few steps: all sums are exact, so that ties are ties and nothing hangs on rounding
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    dense = rng.integers(0, 4, (n, n)) / 4 * (rng.random((n, n)) < 0.5)
    np.fill_diagonal(dense, 0.0)
    weights = rng.integers(0, 3, n) / 1.0
    scan = rng.integers(0, n, int(rng.integers(1, 13))).astype(np.int32)
    influence = read_influence(dense, n)
    new, gain = descend(influence, make_workspace(influence, weights), scan)
    plain, variation = plain_dogs(dense, weights, scan)
    assert new.tolist() == plain
    assert gain.after == gain.tracked == variation


def case(seed: int) -> tuple[gs.influence.Influence, NDArray[np.float64], NDArray[np.int32]]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    dense = rng.random((n, n)) * (rng.random((n, n)) < 0.4) * float(rng.choice([0.1, 0.4, 1.0]))
    np.fill_diagonal(dense, 0.0)
    weights = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
    weights[int(rng.integers(n))] = 1.0
    steps = int(rng.integers(1, 12 * n))
    scan = np.resize(np.arange(n), steps) if rng.random() < 0.5 else rng.integers(0, n, steps)
    return read_influence(dense, n), weights, scan.astype(np.int32)


@pytest.mark.parametrize("seed", range(60))
def test_the_books_are_right(seed: int) -> None:
    influence, weights, scan = case(seed)
    dense, workspace = influence.to_dense(), make_workspace(influence, weights)
    fresh = [part.copy() for part in workspace]
    new, gain = descend(influence, workspace, scan)
    assert gain.tracked == pytest.approx(gain.after, rel=1e-10)
    assert gain.before == pytest.approx(plain_value(dense, weights, scan), rel=1e-12)
    assert gain.after == pytest.approx(plain_value(dense, weights, new), rel=1e-12)
    assert gain.after <= gain.before * (1 + 1e-12)
    assert all((a == b).all() for a, b in zip(fresh, workspace, strict=True))  # the workspace is as new
    again, repeated = descend(influence, workspace, scan)
    assert (again == new).all()
    assert repeated == gain


def plain_value(dense: NDArray[np.float64], weights: NDArray[np.float64], scan: NDArray[np.int32]) -> float:
    b = np.ones(len(dense))
    for i in scan:
        b[i] = dense[i] @ b
    return float(weights @ b)


def test_the_workspace_is_cleared_after_short_scans_too() -> None:
    influence = gs.influence.bound_influence(gs.ising_grid((20, 20), coupling=0.2))
    weights = np.zeros(400)
    weights[[0, 210]] = 1.0
    workspace = make_workspace(influence, weights)
    fresh = [part.copy() for part in workspace]
    new, gain = descend(influence, workspace, np.arange(30, dtype=np.int32))
    assert all((a == b).all() for a, b in zip(fresh, workspace, strict=True))
    dense = influence.to_dense()
    assert gain.after == pytest.approx(plain_dogs(dense, weights, np.arange(30, dtype=np.int32))[1], rel=1e-12)
    assert evaluate(influence, workspace, new) == gain.after


@pytest.mark.parametrize("seed", range(20))
def test_early_stopping_keeps_the_first_steps(seed: int) -> None:
    influence, weights, scan = case(seed)
    workspace = make_workspace(influence, weights)
    full, gain = descend(influence, workspace, scan)
    goal = 0.5 * (gain.before + gain.after)
    new, stopped = descend(influence, workspace, scan, goal)
    assert (new[: stopped.kept] == scan[: stopped.kept]).all()
    assert (new[stopped.kept :] == full[stopped.kept :]).all()
    assert stopped.tracked == pytest.approx(stopped.after, rel=1e-10)
    assert stopped.after <= goal * (1 + 1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_random_scans_become_fixed_ones_that_are_no_worse(seed: int) -> None:
    influence, weights, scan = case(seed)
    n, steps = influence.n_sites, len(scan)
    chances = np.full(n, 1 / n) if seed % 2 else np.random.default_rng(seed).dirichlet(np.ones(n))
    new, gain = descend_drawn(influence, weights, chances, steps)
    dense, b = influence.to_dense(), np.ones(n)
    for _ in range(steps):
        b = b - chances * (b - dense @ b)
    assert gain.before == pytest.approx(float(weights @ b), rel=1e-11)
    assert gain.tracked == pytest.approx(gain.after, rel=1e-10)
    assert gain.after == pytest.approx(plain_value(dense, weights, new), rel=1e-12)
    assert gain.after <= gain.before * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["lattice", "ising", "potts", "pairwise", "tables", "zeros"])
@pytest.mark.parametrize("seed", range(5))
def test_dogs_is_never_worse_than_its_input(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(kind, rng)
    n = model.n_sites
    for initial in (None, gs.Chromatic(), gs.scans.Palindromic(), gs.RandomScan(), rng.integers(0, n, 3 * n)):
        scan = gs.dogs(model, steps=4 * n, initial=initial, iterations=int(rng.integers(1, 4)))
        given = gs.certify(model, scan=initial, steps=4 * n).variation
        assert scan.input_variation == pytest.approx(given, rel=1e-9)
        assert scan.variation <= given * (1 + 1e-12)
        assert len(scan.order) == 4 * n
        assert scan.certify(model).variation == pytest.approx(scan.variation, rel=1e-12)


def test_iterating_helps_and_never_hurts() -> None:
    rng = np.random.default_rng(4)
    model = gs.ising_grid((10, 10), coupling=rng.uniform(0, 0.25, (2, 10, 10)), field=rng.integers(0, 2, (10, 10)))
    values = [gs.dogs(model, steps=1000, iterations=k).variation for k in (1, 2, 5, 20)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.5 * values[0]


def test_the_figures_of_the_paper_for_full_variation() -> None:
    # 10 x 10, fields 0 or 1, couplings U(0, 0.25): DoGS gains 5 to 11 fold at 1000 steps, 29 to 119 at 2000
    gains: dict[int, list[float]] = {1000: [], 2000: []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = gs.ising_grid((10, 10), coupling=rng.uniform(0, 0.25, (2, 10, 10)), field=rng.integers(0, 2, (10, 10)))
        influence = gs.influence.bound_influence(model, "bound")
        for steps, found in gains.items():
            scan = gs.dogs(model, steps=steps, influence=influence)
            found.append(scan.input_variation / scan.variation)
    assert 5 < np.median(gains[1000]) < 11
    assert 29 < np.median(gains[2000]) < 119


def test_sixteen_steps_for_the_corner_of_a_large_grid() -> None:
    # the order of the paper starts at the second site, and its lengths are only doubled
    lengths, naive = [], []
    n = 60
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = gs.ising_grid((n, n), coupling=rng.uniform(0, 0.25, (2, n, n)), field=rng.integers(0, 2, (n, n)))
        influence = gs.influence.bound_influence(model, "bound")
        given = gs.Systematic(np.roll(np.arange(n * n), -1))
        goal = gs.certify(model, scan=given, steps=2 * n * n, target=0, influence=influence).variation
        scan = gs.dogs(model, target=0, accuracy=goal, initial=given, search="doubling", influence=influence)
        lengths.append(len(scan.order))
        goal = gs.certify(model, steps=2 * n * n, target=0, influence=influence).variation
        naive.append(len(gs.dogs(model, target=0, accuracy=goal, influence=influence).order))
    assert np.mean(np.array(lengths) == 16) >= 0.8
    assert set(lengths) <= {8, 16, 32}
    assert set(naive) == {4}


def test_a_hundred_and_ten_steps_for_the_segmentation_graph() -> None:
    model = gs.potts_grid((20, 31), states=9, coupling=0.48)
    centre = [31 * row + column for row in range(6, 14) for column in range(10, 22)]
    influence = gs.influence.bound_influence(model, "bound")
    goal = gs.certify(model, sweeps=1, target=centre, influence=influence).variation
    assert goal == pytest.approx(85.467, abs=5e-4)
    scan = gs.dogs(model, target=centre, accuracy=goal, influence=influence)
    assert len(scan.order) == 110
    assert len(gs.dogs(model, target=centre, accuracy=goal, influence=influence, search="doubling").order) == 128


@pytest.mark.parametrize(
    ("side", "coupling", "uniform", "from_uniform"), [(4, 0.2, 319, 135), (3, 0.2, 135, 55), (4, 0.1, 169, 60)]
)
def test_lengths_for_maximum_likelihood(side: int, coupling: float, uniform: int, from_uniform: int) -> None:
    model = gs.ising_grid((side, side), coupling=coupling)
    influence = gs.influence.bound_influence(model, "bound")
    assert gs.certify(model, scan=gs.RandomScan(), accuracy=0.01, influence=influence).steps == uniform
    scan = gs.dogs(model, accuracy=0.01, initial=gs.RandomScan(), influence=influence)
    assert len(scan.order) == from_uniform


def test_scans_zoom_in_on_the_target() -> None:
    model = gs.ising_grid((40, 40), coupling=1 / 3.915)
    scan = gs.dogs(model, target=0, steps=16_000, influence=gs.influence.bound_influence(model, "bound"))
    assert 200 < np.unique(scan.order).size < 400
    distance = scan.order // 40 + scan.order % 40
    assert distance[-16:].max() <= 4
    assert scan.order[-1] == 0
    assert scan.variation < scan.input_variation


def test_scans_are_saved_loaded_and_sampled_with(tmp_path: Path) -> None:
    model = gs.ising_grid((5, 5), coupling=0.2, field=0.1)
    scan = gs.dogs(model, target=["12"], accuracy=0.05)
    scan.save(tmp_path / "scan.npz")
    again = gs.load(tmp_path / "scan.npz")
    for name, value in vars(scan).items():
        assert np.array_equal(getattr(again, name), value), name
    assert "bias at most" in repr(again)
    results = [gs.sample(model, scan=each, sweeps=200, rng=3, progress=False) for each in (scan, again)]
    assert results[0].plan == results[1].plan
    assert results[0].marginals["12"] == results[1].marginals["12"]
    for kernel in (gs.Gibbs(rule="metropolised"), gs.HerdedGibbs(), gs.AnnealedGibbs(sweeps=50)):
        gs.sample(model, kernel, scan=scan, sweeps=50, rng=1, progress=False)
    full = gs.dogs(model, steps=100)
    exact = gs.solve_exact(model).marginals["12"][1]
    run = gs.sample(model, scan=full, sweeps=4000, rng=1, progress=False)
    assert abs(run.marginals["12"][1] - exact) < 5 * run.mcse["12"][1]


def test_scans_are_reused_on_models_of_the_same_structure() -> None:
    model = gs.ising_grid((6, 6), coupling=0.2)
    scan = gs.dogs(model, target=14, accuracy=0.1)
    weaker = model.reweight(couplings=0.1)
    assert scan.certify(weaker).variation < scan.variation
    with pytest.raises(gs.errors.ModelError, match="36 sites"):
        scan.certify(gs.ising_grid((5, 5)))
    with pytest.raises(gs.errors.ModelError, match="36 sites"):
        gs.sample(gs.ising_grid((5, 5)), scan=scan, sweeps=5, progress=False)


def test_files_that_are_no_scans_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("not a scan")
    np.savez(tmp_path / "other.npz", order=np.arange(3))
    (tmp_path / "empty.npz").touch()
    for name in ("text.npz", "other.npz", "empty.npz", "nowhere.npz"):
        with pytest.raises(gs.errors.FormatError, match=name):
            gs.load(tmp_path / name)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"accuracy": 1e-9, "steps": 50}, "best reached is"),
        ({"accuracy": -1.0}, "accuracy"),
        ({"steps": 0}, "steps"),
        ({"iterations": 0}, "iterations"),
        ({"search": "magic"}, "search"),
        ({"initial": gs.scans.Shuffled()}, "Shuffled"),
        ({"target": "nose"}, "nose"),
        ({"weights": {0: -1.0}}, "not negative"),
        ({"influence": np.zeros((3, 3))}, "shape"),
    ],
)
def test_bad_requests_end_in_one_line(given: dict[str, object], said: str) -> None:
    with pytest.raises(gs.GibbsiteError, match=said) as caught:
        gs.dogs(gs.ising_grid((4, 4), coupling=0.2), **given)
    assert "\n" not in str(caught.value)


def test_vacuous_models_say_why() -> None:
    with pytest.raises(gs.errors.ModelError, match=r"(best reached|no scan lowers the bound).*>= 1"):
        gs.dogs(gs.ising_grid((4, 4), coupling=1.0), target=0, accuracy=0.01, steps=2000)
