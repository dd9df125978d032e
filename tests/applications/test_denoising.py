"""Denoising: the model is the stated posterior, and the methods reach their stated quality."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications import Denoised, denoise, read_image
from gibbsite.applications.methods import DENOISING as METHODS
from gibbsite.applications.noise import check_two_levels, estimate_two_levels
from gibbsite.errors import GibbsiteError, ModelError
from tests.applications.pictures import add_noise, discs, letter, strokes
from tests.data import DATA, needs_data

SILHOUETTES = "images/mpeg7"


def run(image: Any, **options: Any) -> Denoised:
    return denoise(image, progress=False, **options)


def neighbours(shape: tuple[int, int], i: int) -> list[int]:
    height, width = shape
    y, x = divmod(i, width)
    around = ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
    return [b * width + a for b, a in around if 0 <= b < height and 0 <= a < width]


@pytest.mark.parametrize("noise", [{"sigma": 1.7}, {"flip": 0.2}])
def test_two_level_log_odds_by_enumeration(noise: dict[str, float]) -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(2, 3)) if "sigma" in noise else rng.choice([-1.0, 1.0], (2, 3))
    model = run(y, means=(-1, 1) if "sigma" in noise else None, coupling=0.6, **noise).model
    own = 2 * y.ravel() / 1.7**2 if "sigma" in noise else y.ravel() * np.log(0.8 / 0.2)
    for x in itertools.product([0, 1], repeat=6):
        for i in range(6):
            odds = 2 * 0.6 * sum(2 * x[j] - 1 for j in neighbours((2, 3), i)) + own[i]
            up, down = [*x[:i], 1, *x[i + 1 :]], [*x[:i], 0, *x[i + 1 :]]
            assert model.log_potential(up) - model.log_potential(down) == pytest.approx(odds, abs=1e-12)


@pytest.mark.parametrize(("prior", "reach"), [("potts", 1), ("truncated-linear", 2)])
def test_grey_log_odds_by_enumeration(prior: str, reach: int) -> None:
    y = np.random.default_rng(2).uniform(0, 1, (2, 2))
    model = run(y, levels=4, sigma=0.3, coupling=0.7, prior=prior).model
    levels = np.linspace(0, 1, 4)
    for x in itertools.product(range(4), repeat=4):
        for i, a in itertools.product(range(4), range(4)):
            odds = -((y.ravel()[i] - levels[a]) ** 2 - (y.ravel()[i] - levels[0]) ** 2) / (2 * 0.3**2)
            for j in neighbours((2, 2), i):
                cost = [min(abs(x[j] - b), reach) / reach for b in (a, 0)]
                odds -= 2 * 0.7 * (cost[0] - cost[1])
            change = [model.log_potential([*x[:i], b, *x[i + 1 :]]) for b in (a, 0)]
            assert change[0] - change[1] == pytest.approx(odds, abs=1e-9)


def test_many_sweeps_give_the_posterior() -> None:
    y = np.random.default_rng(3).normal(size=(3, 3))
    long = run(y, means=(-1, 1), sigma=2.0, coupling=0.3, sweeps=20_000)
    exact = gs.solve_exact(long.model).marginals.to_array()[:, 1]
    # herding on a sparse graph has a small floor
    assert np.abs(long.probability.ravel() - exact).max() < 0.01


@pytest.mark.parametrize("method", METHODS)
def test_every_method_cleans(method: str) -> None:
    clean = discs(100)
    flipped = clean ^ (np.random.default_rng(4).random(clean.shape) < 0.15)
    done = run(flipped, method=method, rng=1, reference=clean)
    assert done.error is not None
    assert done.error["wrong"] < 0.35 * done.error["wrong_before"]
    assert done.error["mean_squared_before"] == done.error["wrong_before"]
    grey = 0.2 + 0.6 * clean + np.random.default_rng(4).normal(0, 0.15, clean.shape)
    done = run(grey, method=method, levels=6, rng=1, reference=0.2 + 0.6 * clean)
    assert done.error is not None
    assert done.error["mean_squared"] < 0.35 * done.error["mean_squared_before"]


@pytest.mark.parametrize(
    "picture", [strokes, *(pytest.param(other, marks=pytest.mark.campaign) for other in (letter, discs))]
)
def test_shared_beats_herded_beats_gibbs_in_much_noise(picture: Any) -> None:
    # paired differences of 40 noisy images: each by at least 5 standard errors
    clean = picture(128)
    for sigma in (4.0, 8.0):
        errors = []
        for seed in range(40):
            y = add_noise(clean, sigma, seed)
            row = []
            for method in ("herded-shared", "herded", "gibbs"):
                done = run(y, means=(-1, 1), sigma=sigma, method=method, rng=seed, reference=clean)
                assert done.error is not None
                row.append(done.error["mean_squared"])
            errors.append(row)
        steps = np.diff(errors, axis=1)
        margin = steps.mean(axis=0) / (steps.std(axis=0, ddof=1) / np.sqrt(len(steps)))
        assert (margin > 5).all(), (sigma, margin)


@needs_data(SILHOUETTES)
@pytest.mark.parametrize("name", ["butterfly-1", "bat-1", "Heart-1", "beetle-1", "bell-1"])
def test_real_silhouettes_with_estimated_noise(name: str) -> None:
    clean = read_image(DATA / SILHOUETTES / f"{name}.png") > 0
    rng = np.random.default_rng(5)
    flipped = run(clean ^ (rng.random(clean.shape) < 0.3), reference=clean)
    assert flipped.flip == pytest.approx(0.3, abs=0.02)
    grey = np.clip(128 + 43 * add_noise(clean, 2.0, 6), 0, 255).astype(np.uint8)
    noisy = run(grey, reference=clean)
    for done in (flipped, noisy):
        assert done.error is not None
        assert done.error["wrong"] < 0.2 * done.error["wrong_before"]


def test_kinds_of_images_come_back() -> None:
    clean = discs(80)
    flips = np.random.default_rng(7).random(clean.shape) < 0.1
    whole = run(clean ^ flips)
    assert whole.image.dtype == bool
    assert whole.sigma is None
    for kind, low, high in ((np.uint8, 0, 255), (np.uint8, 3, 4), (np.int64, -1, 1), (np.float32, 0.25, 0.5)):
        done = run(np.where(clean ^ flips, high, low).astype(kind))
        assert done.image.dtype == kind
        assert np.array_equal(done.image == high, whole.image)
        assert done.means == (low, high)
        assert np.array_equal(done.probability, whole.probability)
    noisy = np.clip(add_noise(clean, 1.0, 1) * 40 + 128, 0, 255).astype(np.uint8)
    done = run(noisy)
    assert set(np.unique(done.image)) == {0, 255}
    assert done.flip is None
    assert done.sigma == pytest.approx(40, rel=0.05)
    assert set(np.unique(run(noisy.astype(np.uint16) * 257).image)) == {0, 65535}
    grey = run(noisy, levels=4)
    assert set(np.unique(grey.image)) <= {0, 85, 170, 255}


@pytest.mark.parametrize(("low", "high"), [(0.0, 255.0), (-1.0, 1.0), (1000.0, 1004.0), (0.0, 1.0)])
@pytest.mark.parametrize("sigma", [0.3, 1.0])  # of half the difference of the levels
def test_floats_around_other_levels_than_0_and_1(low: float, high: float, sigma: float) -> None:
    clean, half = discs(80), 0.5 * (high - low)
    y = 0.5 * (low + high) + half * add_noise(clean, sigma, 3)
    done = run(y, reference=clean)
    assert done.means == pytest.approx((low, high), abs=0.1 * half)
    assert done.sigma == pytest.approx(half * sigma, rel=0.1)
    assert done.error is not None
    assert done.error["wrong"] < 0.01
    assert set(np.unique(done.image)) == set(done.means)
    # the same image in units of 0 and 1, which needs no estimate of the levels
    plain = run((y - low) / (high - low), means=(0, 1), reference=clean)
    assert np.mean((done.image == done.means[1]) != plain.image) < 0.005


def test_whole_numbers_of_any_type_are_8_or_16_bits() -> None:
    noisy = np.clip(add_noise(discs(80), 1.0, 1) * 40 + 128, 0, 255).astype(np.uint8)
    for factor, small in ((1, noisy), (257, noisy.astype(np.uint16) * 257)):
        for kind in (np.float64, np.int64, np.float32):
            for how in ({}, {"levels": 4}):
                one, other = run(small, **how), run((factor * noisy.astype(kind)), **how)
                assert other.image.dtype == kind
                assert np.array_equal(one.image, other.image)
                assert one.means == other.means
    assert run(np.where(discs(80), 3, 4).astype(np.int64) ^ 7).means == (3, 4)


@pytest.mark.parametrize("scale", [255.0, 4095.0])
def test_grey_floats_on_another_scale_are_refused(scale: float) -> None:
    slope = scale * np.linspace(0.0, 1.0, 60)[:, None] * np.ones(60)
    y = slope + np.random.default_rng(1).normal(0, 0.1 * scale, slope.shape)
    with pytest.raises(gs.errors.ModelError, match="expected between 0 and 1; give means, the values of black and"):
        run(y, levels=5)
    assert run(y, levels=5, means=(0, scale)).means == (0, scale)
    assert run(y / scale, levels=5).means == (0, 1)


def test_scale_and_sign_do_not_matter() -> None:
    y = add_noise(discs(60), 2.0, 3)
    one = run(y, means=(-1, 1), sigma=2.0)
    other = run(20 + 8 * y, means=(12, 28), sigma=16.0)
    assert np.allclose(one.probability, other.probability, atol=1e-6)
    assert one.sigma == 2.0
    assert np.allclose(run(y, means=(-1, 1), sigma=2.0, levels=2).probability, one.probability)


def test_runs_repeat_and_starts_count() -> None:
    clean = discs(60)
    y = add_noise(clean, 2.0, 4)
    given = {"means": (-1, 1), "sigma": 2.0, "reference": clean}
    for method in METHODS:
        a, b = (run(y, method=method, rng=5, **given).probability for _ in range(2))
        assert np.array_equal(a, b), method
    done = run(y, start=clean * 2.0 - 1, **given)
    assert done.error is not None
    near = run(y, **given).error
    far = run(y, start="random", rng=1, **given).error
    assert near is not None
    assert far is not None
    assert done.error["wrong"] < near["wrong"] < far["wrong"]
    states = run(y, average_states=True, **given)
    assert set(np.unique(np.rint(states.probability * 30))) <= set(range(31))
    assert np.allclose(states.probability * 30, np.rint(states.probability * 30))
    assert states.result.n_draws == 30
    assert run(y, method=gs.HerdedGibbs(keys="binned"), **given).method == "HerdedGibbs"


def test_annealing_gives_one_image_better_than_the_next_maximum() -> None:
    y = add_noise(discs(60), 2.0, 4)
    for more in ({}, {"levels": 3}):
        given = {"means": (-1, 1), "sigma": 2.0, "coupling": 0.5, **more}
        near = run(y, method="icm", **given)
        done = run(y, method="annealed", rng=1, **given)
        levels = np.array([0.0, 1.0]) if not more else np.array([-1.0, 0.0, 1.0])
        codes = [np.searchsorted(levels, found.probability.ravel()) for found in (near, done)]
        assert np.isin(done.probability, levels).all()
        assert done.model.log_potential(codes[1]) == pytest.approx(done.result.log_potential)
        assert done.model.log_potential(codes[1]) > near.model.log_potential(codes[0])
    kernel = gs.AnnealedGibbs(sweeps=30, start=1.0)
    assert np.array_equal(run(y, method=kernel, rng=1, **given).image, done.image)
    assert done.result.n_draws == 30


def test_tiny_images() -> None:
    assert run(np.ones((1, 1), bool), flip=0.1).image.tolist() == [[True]]
    assert run(np.zeros((1, 4), np.uint8), flip=0.1).image.tolist() == [[0, 0, 0, 0]]
    assert run(np.full((3, 3), 7), flip=0.1).image.tolist() == [[7] * 3] * 3


BAD: list[tuple[Any, dict[str, Any], str]] = [
    (discs(20), {"sigma": 0.0}, "sigma"),
    (discs(20), {"sigma": -1}, "sigma"),
    (discs(20), {"sigma": float("nan")}, "sigma"),
    (discs(20), {"flip": 0.0}, "flip"),
    (discs(20), {"flip": 0.5}, "flip"),
    (discs(20), {"flip": 0.1, "sigma": 1.0}, "not both"),
    (add_noise(discs(20), 1.0, 1), {"flip": 0.1}, "two values"),
    (discs(20), {"flip": 0.1, "levels": 4}, "two values"),
    (discs(20), {"method": "magic"}, "herded-shared"),
    (discs(20), {"prior": "magic"}, "truncated-linear"),
    (discs(20), {"levels": 1}, "levels"),
    (discs(20), {"sweeps": 0}, "sweeps"),
    (discs(20), {"coupling": -1.0}, "coupling"),
    (discs(20), {"damping": 0.0, "method": "mean-field"}, "damping"),
    (discs(20), {"start": "magic"}, "start"),
    (discs(20), {"start": "random", "method": "icm"}, "icm"),
    (discs(20), {"means": (1, 0)}, "means"),
    (discs(20), {"means": 3}, "means"),
    (discs(20), {"reference": discs(21)}, "21 x 21"),
    (np.zeros((3, 4, 3)), {}, "grey"),
    (np.zeros((0, 4)), {}, "height"),
    (np.zeros(4), {}, "height"),
    (np.array([["a", "b"]]), {}, "floats"),
    (np.array([[0.0, np.nan]]), {}, "finite"),
    (np.full((9, 9), 0.5), {"sigma": None, "means": (0, 1)}, "means"),
]


@pytest.mark.parametrize(("image", "options", "said"), BAD)
def test_bad_input_is_one_clear_line(image: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said) as error:
        run(image, **options)
    assert isinstance(error.value, GibbsiteError)
    assert len(str(error.value).splitlines()) == 1


def gradient(noise: float, shape: tuple[int, int] = (100, 100)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    return np.tile(np.linspace(0.0, 255.0, shape[1]), (shape[0], 1)) + rng.normal(0, noise, shape)


@pytest.mark.parametrize("noise", [1.0, 5.0, 20.0])
def test_what_does_not_lie_around_two_levels_is_refused(noise: float) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="do not lie around two levels") as refused:
        run(gradient(noise))
    assert set(refused.value.arguments) >= {"levels", "means", "sigma"}
    run(gradient(noise), means=(0, 255), levels=8, sweeps=2)
    run(gradient(noise), means=(0, 255), sigma=60, sweeps=2)  # who insists gets it


@pytest.mark.parametrize("contrast", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("picture", [discs, letter, strokes])
def test_pictures_of_two_levels_are_not_refused(picture: Any, contrast: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        clean = np.where(picture(128) > 0, 200.0, 50.0)
        run(clean + rng.normal(0, 75.0 / contrast, clean.shape), sweeps=1)


@pytest.mark.parametrize(
    "image", [np.linspace(0, 1, 100).reshape(10, 10), np.random.default_rng(1).normal(0.3, 1e-9, (10, 10))]
)
def test_levels_that_were_not_given_are_not_called_given(image: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError) as refused:
        run(image)
    assert "given" not in str(refused.value)
    assert "0 and 1" in str(refused.value)
    with pytest.raises(gs.errors.ArgumentError, match="around the given means"):
        run(image, means=(-3, 3))


def test_a_scan_in_dark_and_bright_is_taken() -> None:
    """Ink that differs from place to place on uneven paper: little noise, and no two levels of their own."""
    rows, columns = np.indices((120, 160))
    ink = (rows // 3 % 8 == 0) & (columns // 3 % 5 > 1)
    shade = np.sin(rows / 17.0) * np.cos(columns / 23.0)
    page = np.where(ink, 60.0 + 30.0 * shade, 150.0 + 25.0 * shade)
    page += np.random.default_rng(1).normal(0.0, 2.0, ink.shape)
    image = np.clip(np.rint(page), 0, 255).astype(np.uint8)
    with pytest.raises(gs.errors.ArgumentError, match="do not lie around two levels"):
        check_two_levels(page, *estimate_two_levels(page)[:2])
    done = gs.applications.denoise(image, reference=~ink, progress=False)
    assert done.error is not None
    assert done.error["wrong_before"] < 0.01
    assert done.error["wrong"] <= done.error["wrong_before"]


@needs_data("images/dibco")
def test_the_scan_of_the_page_on_denoising() -> None:
    """What docs/denoise.md says of a printed page."""
    folder = DATA / "images" / "dibco"
    noisy, truth = (gs.applications.read_image(str(folder / f"PR7{end}.png")) for end in ("", "_GT"))
    done = gs.applications.denoise(noisy, reference=truth, progress=False)
    assert done.error is not None
    assert round(100 * done.error["wrong_before"], 2) == 0.71
    assert 100 * done.error["wrong"] == pytest.approx(0.42, abs=0.02)
