"""Bounds in Wasserstein distance hold against exact means and distances, and are exact where they say so."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

import gibbsite as gs
from gibbsite.inference.influence.numbers import in_units

Floats = NDArray[np.float64]


def random_normal(rng: np.random.Generator, n: int, attractive: bool = False) -> gs.Gaussian:
    """Return a normal distribution with a diagonally dominant precision matrix."""
    upper = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6), 1)
    off = upper + upper.T
    off = -np.abs(off) if attractive else off
    scale = np.exp(rng.normal(size=n))
    precision = off + np.diag(np.abs(off).sum(axis=1) / rng.uniform(0.5, 0.95) + 0.2)
    return gs.Gaussian(rng.normal(size=n), precision=scale[:, None] * precision * scale)


def exact_moments(model: gs.Gaussian, order: list[int], start: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of a Gibbs sampler after steps on the given sites."""
    precision, mean = model.precision, start.copy()
    covariance = np.zeros((start.size, start.size))
    for i in order:
        move = np.eye(start.size)
        move[i] = -precision[i] / precision[i, i]
        move[i, i] = 0.0
        mean = model.mean + move @ (mean - model.mean)
        covariance = move @ covariance @ move.T
        covariance[i, i] += 1.0 / precision[i, i]
    return mean, covariance


def wasserstein(mean: float, variance: float, of_mean: float, of_variance: float) -> float:
    """Return the distance of two normal distributions of numbers, the mean of abs(shift + width z)."""
    shift, width = mean - of_mean, abs(np.sqrt(variance) - np.sqrt(of_variance))
    if width == 0.0:
        return abs(shift)
    z = shift / width
    return float(width * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + shift * erf(z / np.sqrt(2)))


@pytest.mark.parametrize("seed", range(12))
def test_exact_means_stay_within_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    model, order = random_normal(rng, n), rng.integers(0, n, 25).tolist()
    start = model.mean + rng.normal(size=n) * 3
    for steps in (1, 3, 10, 25):
        mean, _ = exact_moments(model, order[:steps], start)
        for i in range(n):
            found = gs.certify(model, scan=order[:steps], target=i, distance=np.abs(start - model.mean))
            assert abs(mean[i] - model.mean[i]) <= found.variation * (1 + 1e-12) + 1e-14
            assert found.numbers


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_means_is_exact_if_all_sites_attract_each_other(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    model, order = random_normal(rng, 5, attractive=True), rng.integers(0, 5, 40).tolist()
    start = model.mean + rng.exponential(size=5)
    mean, _ = exact_moments(model, order, start)
    for i in range(5):
        found = gs.certify(model, scan=order, target=i, distance=start - model.mean).variation
        assert found == pytest.approx(mean[i] - model.mean[i], rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_exact_distances_stay_within_the_bound(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    model, order = random_normal(rng, 4), rng.integers(0, 4, 12).tolist()
    start = model.mean + rng.normal(size=4) * rng.choice([0.0, 1.0, 5.0])
    distance = gs.influence.start_distance(model, start)
    for steps in range(13):
        mean, covariance = exact_moments(model, order[:steps], start)
        for i in range(4):
            found = gs.certify(model, scan=order, steps=steps, target=i, distance=distance).variation
            apart = wasserstein(mean[i], covariance[i, i], model.mean[i], model.covariance[i, i])
            assert apart <= found * (1 + 1e-12) + 1e-14
            if steps == 0:  # a point from a distribution: there is only one pair of draws
                assert apart == pytest.approx(found, rel=1e-12)


def test_drawn_sites_are_bounded_in_expectation() -> None:
    rng = np.random.default_rng(3)
    model = random_normal(rng, 5, attractive=True)
    start = model.mean + rng.exponential(size=5)
    pull = -model.precision / np.diagonal(model.precision)[:, None]
    np.fill_diagonal(pull, 0.0)
    once = np.eye(5) - (np.eye(5) - pull) / 5  # the mean of a step on a site drawn uniformly
    for steps in (1, 10, 60):
        exact = np.linalg.matrix_power(once, steps) @ (start - model.mean)
        for i in range(5):
            found = gs.certify(model, scan=gs.RandomScan(), steps=steps, target=i, distance=start - model.mean)
            assert found.variation == pytest.approx(exact[i], rel=1e-9)


def test_sweeps_in_any_order_are_bounded_where_no_site_is_pulled_by_more_than_one() -> None:
    rng = np.random.default_rng(4)
    model = random_normal(rng, 4)
    apart = np.linalg.solve(np.eye(4) - gs.influence.bound_influence(model).to_dense(), np.ones(4))
    start = model.mean + apart
    found = gs.certify(model, scan=gs.scans.Shuffled(), sweeps=3, target=2, distance=apart)
    for _ in range(40):
        order = np.concatenate([rng.permutation(4) for _ in range(3)]).tolist()
        assert abs(exact_moments(model, order, start)[0][2] - model.mean[2]) <= found.variation * (1 + 1e-12)
    with pytest.raises(gs.errors.IncompatibleError, match="shuffled sweeps"):
        gs.certify(model, scan=gs.scans.Shuffled(), sweeps=3, distance=[1.0, 1e-3, 1.0, 1.0])


def test_a_scan_for_one_site_of_a_chain_is_short_and_holds() -> None:
    n = 60
    precision = csr_array(np.diag(np.full(n, 2.0)) - np.diag(np.full(n - 1, 0.9), 1) - np.diag(np.full(n - 1, 0.9), -1))
    model = gs.Gaussian(np.arange(n) / 10.0, precision=precision)
    scan = gs.dogs(model, target="30", accuracy=0.01)
    assert isinstance(scan, gs.influence.DogsScan)
    assert len(scan.order) < 0.6 * gs.certify(model, target="30", accuracy=0.01).steps
    assert scan.variation <= 0.01
    assert scan.certify(model).variation == pytest.approx(scan.variation)
    assert np.abs(scan.order - 30).max() < 30
    dense = gs.Gaussian(model.mean, precision=precision.toarray())
    start = model.mean + gs.influence.start_distance(model)
    exact = exact_moments(dense, scan.order.tolist(), start)[0][30] - model.mean[30]
    assert exact == pytest.approx(scan.variation, rel=1e-9)  # all sites attract each other
    assert scan.certify(model, distance=10.0).variation > scan.variation
    result = gs.sample(model, gs.kernels.GaussianGibbs(), scan=scan, sweeps=200, chains=4, rng=1, progress=False)
    assert abs(result.marginals["30"]["mean"] - 3.0) < 1.0


def test_sparse_and_dense_precisions_have_the_same_influence() -> None:
    model = random_normal(np.random.default_rng(5), 6)
    precision = model.precision
    wanted = np.abs(precision) / np.diagonal(precision)[:, None]
    np.fill_diagonal(wanted, 0.0)
    for given in (model, gs.Gaussian(model.mean, precision=csr_array(precision))):
        found = gs.influence.bound_influence(given)
        assert found.to_dense() == pytest.approx(wanted)
        assert found.exact.all()


def test_the_distance_of_starts_is_that_of_draws() -> None:
    model = gs.Gaussian([1.0, -2.0], [[1.0, 0.3], [0.3, 4.0]], names=["a", "b"])
    z = np.linspace(-12, 12, 400_001)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    for start in (None, 3.0, [0.0, 9.0], {"b": 5.0}):
        place = [1.0, -2.0] if start is None else [1.0, 5.0] if isinstance(start, dict) else np.broadcast_to(start, 2)
        wanted = [weight @ np.abs(place[k] - model.mean[k] - sd * z) for k, sd in enumerate((1.0, 2.0))]
        assert gs.influence.start_distance(model, start).tolist() == pytest.approx(wanted, rel=1e-6)


def test_units_change_neither_products_around_cycles_nor_the_radius() -> None:
    influence = gs.influence.bound_influence(random_normal(np.random.default_rng(6), 5))
    scaled = in_units(influence, np.array([1.0, 2.0, 0.5, 3.0, 1.0]))
    radius = [np.abs(np.linalg.eigvals(each.to_dense())).max() for each in (influence, scaled)]
    assert radius[0] == pytest.approx(radius[1])
    assert (
        influence.scaled(2.0).value.tolist() == np.maximum(influence.value, np.minimum(2 * influence.value, 1)).tolist()
    )


# ---- log-concave conditionals


def law(log_density: Floats, x: Floats) -> Floats:
    """Return the distribution function on a grid."""
    p = np.exp(log_density - log_density.max())
    p = 0.5 * (p[1:] + p[:-1]) * np.diff(x)
    found: Floats = np.concatenate([[0.0], np.cumsum(p) / p.sum()])
    return found


@pytest.mark.parametrize("box", [(-9.0, 9.0), (-0.7, 1.1)])
@pytest.mark.parametrize("form", ["normal", "quartic", "logistic", "wave"])
def test_conditionals_move_no_further_than_second_derivatives_allow(form: str, box: tuple[float, float]) -> None:
    """Distances of conditional distributions of x given t, integrals of differences of distribution functions."""
    x = np.linspace(*box, 20_001)
    curve = {"normal": 0 * x, "quartic": x**4, "logistic": np.logaddexp(0, 3 * x), "wave": 0.3 * np.cos(x)}[form]
    own = {"normal": 1.0, "quartic": 1.0, "logistic": 1.0, "wave": 0.7}[form]  # of x^2 / 2 + curve, at least
    for mixed, couple in ((0.8, lambda t: 0.8 * x * t), (0.25, lambda t: np.logaddexp(0, x + t))):
        allowed = gs.influence.bound_curvature([own, 1.0], [[0.0, mixed], [mixed, 0.0]]).to_dense()[0, 1]
        laws = {t: law(-0.5 * x * x - curve - couple(t), x) for t in (-4.0, -1.0, 0.0, 0.3, 2.5)}
        for t, one in laws.items():
            for s, other in laws.items():
                apart = float((np.abs(one - other)[1:] * np.diff(x)).sum())
                assert apart <= allowed * abs(t - s) * (1 + 1e-6)
                if form == "normal" and mixed == 0.8 and box[1] > 5:
                    assert apart == pytest.approx(allowed * abs(t - s), rel=1e-2)


def test_means_of_a_log_concave_model_stay_within_the_bound() -> None:
    """Gibbs sampling of exp(-(x^2 + y^2) / 2 - x^4 / 4 - y^4 / 4 + 0.9 x y) on a fine grid, step by step."""
    grid = np.linspace(-5, 5, 401)
    joint = np.exp(
        -0.5 * np.add.outer(grid**2, grid**2) - 0.25 * np.add.outer(grid**4, grid**4) + 0.9 * np.outer(grid, grid)
    )
    joint /= joint.sum()
    given = joint / joint.sum(axis=0)  # of x given y, and by symmetry of y given x
    own = joint.sum(axis=1)
    start = 3.0
    influence = gs.influence.bound_curvature([1.0, 1.0], [[0.0, 0.9], [0.9, 0.0]])
    apart = float(own @ np.abs(grid - start))
    model = gs.LogDensity(lambda v: -0.5 * (v @ v) - 0.25 * (v**4).sum() + 0.9 * v[0] * v[1], dim=2)
    x = (grid == grid[np.argmin(np.abs(grid - start))]).astype(float)
    laws = [x, x.copy()]
    for steps in range(1, 9):
        i = (steps - 1) % 2
        laws[i] = given @ laws[1 - i]  # the other site is what it was, and independent of the old value
        found = gs.certify(model, steps=steps, target=i, influence=influence, distance=apart)
        distance = float(np.abs(np.cumsum(laws[i] - own)).sum() * (grid[1] - grid[0]))
        assert distance <= found.variation * (1 + 1e-9)
    assert gs.dogs(model, steps=9, target=0, influence=influence, distance=apart).variation <= found.variation


# ---- what is refused


def test_what_is_not_bounded_is_refused() -> None:
    model = gs.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]])
    density = gs.LogDensity(lambda x: -(x @ x), dim=2)
    with pytest.raises(gs.errors.ModelError, match="bound_curvature"):
        gs.certify(density, steps=3, distance=1.0)
    with pytest.raises(gs.errors.ModelError, match="distance is needed"):
        gs.certify(density, steps=3, influence=[[0, 0.5], [0.5, 0]])
    with pytest.raises(gs.errors.ModelError, match="positive and finite"):
        gs.certify(model, steps=3, distance=0.0)
    with pytest.raises(gs.errors.ModelError, match="one for each of 2 sites"):
        gs.certify(model, steps=3, distance=[1.0, 1.0, 1.0])
    with pytest.raises(gs.errors.ModelError, match="models of numbers"):
        gs.certify(gs.ising_grid((2, 2), coupling=0.1), steps=3, distance=1.0)
    with pytest.raises(gs.errors.IncompatibleError, match="bounds of blocks only"):
        gs.certify(model, scan=gs.influence.BlockOrder([["0"], ["1"]]), steps=2)
    with pytest.raises(gs.errors.ModelError, match="not negative"):
        gs.certify(model, steps=3, influence=[[0, -0.5], [0.5, 0]])
    turning = gs.models.Conditionals({"a": lambda x, rng: rng.random()}, {"a": gs.Angle()})
    with pytest.raises(gs.errors.ModelError, match="or be numbers"):
        gs.certify(turning, steps=3, influence=[[0.0]], distance=1.0)
    with pytest.raises(gs.errors.ModelError, match="own must be positive"):
        gs.influence.bound_curvature([1.0, 0.0], np.zeros((2, 2)))
    with pytest.raises(gs.errors.ModelError, match="mixed must have the shape"):
        gs.influence.bound_curvature([1.0, 1.0], np.zeros((3, 3)))
    with pytest.raises(gs.errors.ModelError, match="at least 0"):
        gs.influence.bound_curvature([1.0, 1.0], [[0, -1], [1, 0]])
    with pytest.raises(gs.errors.ModelError, match="is needed, got LogDensity"):
        gs.influence.bound_influence(density)  # type: ignore[arg-type]
    with pytest.raises(gs.errors.ModelError, match="is needed, got LogDensity"):
        gs.influence.start_distance(density)
    with pytest.raises(gs.errors.ModelError, match="one for each of 2 sites"):
        gs.influence.start_distance(model, [1.0, 2.0, 3.0])
    with pytest.raises(gs.errors.IncompatibleError, match="short runs only"):
        gs.influence.short_runs(model, scan=[0, 1], runs=10)  # type: ignore[arg-type]
