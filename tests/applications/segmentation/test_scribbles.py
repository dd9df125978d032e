"""Segmentation from scribbles: the field is the formula, evidence is kept, answers agree with enumeration."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import gibbsite as gs
from gibbsite.applications import segment_scribbles
from gibbsite.applications.images import as_photograph, read_photograph, read_strokes
from gibbsite.applications.segmentation.coarsening import (
    border_band,
    enlarge,
    halve_image,
    halve_scribbles,
    region_neighbourhood,
)
from gibbsite.applications.segmentation.field import grid_neighbourhood, pair_weights, potts_field
from gibbsite.applications.segmentation.rendering import check_outputs, make_legend, write_segmentation
from gibbsite.applications.segmentation.strokes import read_scribbles
from gibbsite.applications.segmentation.unary import OUTLIERS, VOLUME, ColourModels, log_proximity, to_lab


def disc_picture(
    size: int = 48, noise: float = 6.0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a red disc on green with noise, whether pixels are in it, and scribbles 1 (disc) and 2."""
    rows, columns = np.indices((size, size)) - size / 2
    disc = np.hypot(rows, columns) < 0.3 * size
    plain = np.where(disc[..., None], (180, 60, 50), (70, 140, 80))
    image = np.clip(plain + np.random.default_rng(3).normal(0, noise, plain.shape), 0, 255).astype(np.uint8)
    scribbles = np.zeros((size, size), int)
    scribbles[size // 2, size // 2 - 5 : size // 2 + 5] = 1
    scribbles[2, 2:-2] = scribbles[-3, 2:-2] = 2
    return image, disc, scribbles


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("labels", [2, 3])
def test_the_field_is_the_formula(neighbours: int, labels: int) -> None:
    rng = np.random.default_rng(neighbours + labels)
    shape = (2, 3)
    colours = rng.normal(0, 20, (6, 3)).astype(np.float32)
    known = np.array([-1, -1, 1, -1, 0, -1])
    unary = rng.normal(0, 2, (4, labels))
    around = grid_neighbourhood((known < 0).reshape(shape), neighbours)
    assert around.nodes.tolist() == list(range(6))
    model = potts_field(around.pairs, 1.3 * pair_weights(around, colours, 50.0), unary, known)
    free = np.flatnonzero(known < 0)
    for codes in itertools.product(range(labels), repeat=4):
        x = known.copy()
        x[free] = codes
        wanted = sum(unary[k, code] for k, code in enumerate(codes))
        for i, j in itertools.combinations(range(6), 2):
            (a, b), (c, d) = divmod(i, 3), divmod(j, 3)
            far = np.hypot(a - c, b - d)
            if far < (1.2 if neighbours == 4 else 1.5) and x[i] == x[j] and (i in free or j in free):
                step = colours[i].astype(float) - colours[j]
                wanted += 1.3 * np.exp(-(step @ step) / 100.0) / far
        assert model.log_potential(list(codes)) == pytest.approx(wanted, abs=1e-5)  # couplings are 32-bit


def test_evidence_is_what_observing_the_whole_field_gives() -> None:
    rng = np.random.default_rng(1)
    around = grid_neighbourhood(np.ones((3, 3), bool), 8)
    coupling, unary = rng.random(len(around.pairs)), rng.normal(size=(9, 3))
    whole = potts_field(around.pairs, coupling, unary, np.full(9, -1))
    known = np.array([2, -1, -1, -1, 0, -1, -1, -1, 1])
    part = potts_field(around.pairs, coupling, unary[known < 0], known)
    given = whole.observe({str(k): int(label) for k, label in enumerate(known) if label >= 0})
    wanted, found = gs.solve_exact(given).marginals, gs.solve_exact(part).marginals
    for name, other in zip(given.sites, part.sites, strict=True):
        assert np.allclose(list(wanted[name]), list(found[other]), atol=1e-12)


def test_marginals_of_a_tiny_image_agree_with_enumeration() -> None:
    image, _, _ = disc_picture(4)
    scribbles = np.zeros((4, 4), int)
    scribbles[0, 0], scribbles[3, 3] = 1, 2
    sweeps = 20_000
    found = segment_scribbles(image, scribbles, coupling=0.3, colour=0.05, proximity=1.0, sweeps=sweeps, rng=5)
    exact = gs.exact.enumerate(found.models[0])
    chance = np.array([exact.marginals[str(k)][1] for k in range(14)])
    assert found.certainty is not None
    free = scribbles.ravel() == 0
    label = found.labels.ravel()[free]
    sure = np.where(label == 1, chance, 1 - chance)
    # Averages of conditionals vary less than states, whose variance is at most 1/4; with an autocorrelation
    # time of 4 sweeps (it is about 2) 6 standard errors are 6 sqrt(1 / sweeps): false alarms below 14 * 2e-9.
    assert np.abs(found.certainty.ravel()[free] - sure).max() < 6 * np.sqrt(1 / sweeps)
    assert (found.certainty.ravel()[~free] == 1).all()
    assert not found.interrupted


@pytest.mark.parametrize("method", ["gibbs", "herded", "blocks", "mean-field", "annealed", "icm"])
def test_every_method_finds_the_disc_and_keeps_the_scribbles(method: str) -> None:
    image, disc, scribbles = disc_picture()
    found = segment_scribbles(image, scribbles, method=method, sweeps=20, rng=1, progress=False)
    assert ((found.labels == 0) == disc).mean() > 0.99
    assert (found.labels[scribbles == 1] == 0).all()
    assert (found.labels[scribbles == 2] == 1).all()
    assert (found.certainty is None) == (method in ("annealed", "icm"))
    if found.certainty is not None:
        assert found.certainty.min() >= 0.5 - 1e-6
        assert found.certainty.max() <= 1.0
    assert found.legend.names == ("1", "2")


@pytest.mark.parametrize("options", [{"neighbours": 4}, {"contrast": False}, {"average_states": True}])
def test_options_of_the_field(options: dict[str, Any]) -> None:
    image, disc, scribbles = disc_picture()
    found = segment_scribbles(image, scribbles, rng=1, progress=False, **options)
    assert ((found.labels == 0) == disc).mean() > 0.99


def test_three_labels_and_equal_seeds() -> None:
    image, disc, scribbles = disc_picture()
    image[:, 24:][~disc[:, 24:]] = (60, 70, 190)
    scribbles[:, 24:][scribbles[:, 24:] == 2] = 7
    one, other = (segment_scribbles(image, scribbles, rng=4, progress=False) for _ in range(2))
    truth = np.where(disc, 0, np.where(np.indices(disc.shape)[1] < 24, 1, 2))
    assert (one.labels == truth).mean() > 0.98
    assert one.legend.names == ("1", "2", "7")
    assert (one.labels == other.labels).all()
    assert one.certainty is not None
    assert (one.certainty == other.certainty).all()


def test_coarse_to_fine_agrees_with_all_at_once_and_draws_only_borders_again() -> None:
    image, disc, scribbles = disc_picture(121)
    coarse = segment_scribbles(image, scribbles, largest=1000, rng=1, progress=False)
    fine = segment_scribbles(image, scribbles, rng=1, progress=False)
    assert len(fine.models) == 1
    assert len(coarse.models) == 3
    assert coarse.models[-1].n_sites < 0.2 * image[..., 0].size
    assert (coarse.labels == fine.labels).mean() > 0.99
    assert ((coarse.labels == 0) == disc).mean() > 0.99


def test_scribbles_too_small_for_coarse_levels_keep_their_labels() -> None:
    image, _, scribbles = disc_picture(121)
    scribbles[40, 40], scribbles[41, 41], scribbles[40, 41] = 3, 1, 4
    found = segment_scribbles(image, scribbles, largest=1000, rng=1, progress=False)
    for value in (1, 2, 3, 4):
        assert (found.labels[scribbles == value] == value - 1).all()


def test_levels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    half = halve_image(image)
    assert half.shape == (3, 4, 3)
    assert np.abs(half[0, 0] - image[:2, :2].astype(float).mean(axis=(0, 1))).max() <= 0.5
    assert (half[2, 3] == image[4, 6]).all()
    assert enlarge(half, (5, 7)).shape == (5, 7, 3)
    assert halve_scribbles(np.array([[-1, 2], [0, -1]])).tolist() == [[2]]
    assert not border_band(np.zeros((4, 4))).any()


def test_colour_densities_sum_to_one() -> None:
    rng = np.random.default_rng(2)
    seeds = (rng.normal(0, 10, (40, 3)) + np.array([50, 0, 0])).astype(np.float32)
    models = ColourModels([seeds], [np.zeros((40, 2), np.float32)], 8.0)
    step = 4.0
    axis = np.arange(-90, 91, step)
    grid = np.stack(np.meshgrid(axis + 50, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    density = np.exp(models.log_densities(grid.astype(np.float32)).astype(float)) - OUTLIERS / VOLUME
    # sums of Gaussians of width 8 on a grid of 4 are exact to 1e-30; logarithms are 32-bit floats
    assert density.sum() * step**3 == pytest.approx(1 - OUTLIERS, abs=1e-4)


def test_densities_in_space_are_the_formula() -> None:
    rng = np.random.default_rng(3)
    seeds = rng.normal(0, 10, (5, 3)).astype(np.float32)
    places = rng.random((5, 2)).astype(np.float32)
    at, colour = rng.random((7, 2)).astype(np.float32), rng.normal(0, 10, (7, 3)).astype(np.float32)
    found = ColourModels([seeds], [places], 8.0).log_densities(colour, at)[:, 0]
    for k in range(7):
        apart = np.hypot(*(places - at[k]).T.astype(float))
        reach = max(2.0 * apart.min(), 0.02)
        tint = np.linalg.norm(seeds.astype(float) - colour[k], axis=1)
        kernels = np.exp(-(tint**2) / 128 - apart**2 / (2 * reach**2))
        scale = (2 * np.pi * 64) ** 1.5 * 2 * np.pi * reach**2
        wanted = (1 - OUTLIERS) * kernels.mean() / scale + OUTLIERS / VOLUME
        assert found[k] == pytest.approx(np.log(wanted), abs=1e-3)


def test_a_single_scribbled_pixel_is_enough() -> None:
    image, _, _ = disc_picture()
    scribbles = np.zeros(image.shape[:2], int)
    scribbles[24, 24], scribbles[2, 2] = 1, 2
    found = segment_scribbles(image, scribbles, rng=1, progress=False)
    assert 0.1 < found.shares["1"] < 0.6


def test_distances_go_around_edges() -> None:
    colours = np.zeros((3, 5, 3), np.float32)
    colours[:2, 2] = 50.0  # a wall with a gap in the last row
    around = grid_neighbourhood(np.ones((3, 5), bool), 4)
    marks = np.full((3, 5), -1)
    marks[0, 1] = 0
    found = log_proximity(around, colours.reshape(-1, 3), marks.ravel(), 2).reshape(3, 5, 2)
    assert found[0, 3, 0] == pytest.approx(-np.log(6 + 3), abs=1e-6)
    assert (found[..., 1] == found[0, 0, 1]).all()


def test_lab_of_known_colours() -> None:
    known = {(0, 0, 0): (0, 0, 0), (0, 255, 0): (87.735, -86.183, 83.180), (0, 0, 255): (32.299, 79.191, -107.865)}
    for colour, wanted in known.items():
        assert np.allclose(to_lab(np.array(colour, np.uint8)), wanted, atol=0.02)


def test_regions_touch_along_borders() -> None:
    found = region_neighbourhood(np.array([[0, 0, 1], [0, 0, 1], [2, 2, 2]]), 4)
    assert found.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert np.allclose(found.closeness, np.array([2, 2, 1]) / (5 / 3))


def test_superpixels() -> None:
    pytest.importorskip("skimage")
    image, disc, scribbles = disc_picture()
    found = segment_scribbles(image, scribbles, superpixels=150, rng=1, progress=False)
    assert ((found.labels == 0) == disc).mean() > 0.97
    assert found.models[0].n_sites < 300


def test_superpixels_without_scikit_image(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    image, _, scribbles = disc_picture()
    with pytest.raises(gs.errors.IncompatibleError, match=r'pip install -e "\.\[segmentation\]"'):
        segment_scribbles(image, scribbles, superpixels=50)


def test_what_is_background(tmp_path: Path) -> None:
    image, _, scribbles = disc_picture()
    red, blue = (255, 0, 0), (0, 0, 255)
    painted = image.copy()
    painted[scribbles == 1], painted[scribbles == 2] = red, blue
    clear = np.zeros((*scribbles.shape, 4), np.uint8)
    clear[scribbles == 1], clear[scribbles == 2] = (*red, 255), (0, 0, 0, 255)
    black, white = (np.full_like(image, value) for value in (0, 255))
    for drawing in (black, white):
        drawing[scribbles == 1], drawing[scribbles == 2] = red, blue
    wanted = np.where(scribbles == 0, -1, np.where(scribbles == 1, 1, 0))
    for drawing in (painted, black, white, clear):
        strokes = read_scribbles(drawing, image)
        assert (strokes.labels == wanted).all()
        assert strokes.legend.names[1] == "#ff0000"
    assert read_scribbles(clear, image).legend.names[0] == "#000000"
    grey = np.full_like(image, 128)
    grey[scribbles == 1], grey[scribbles == 2] = red, blue
    assert (read_scribbles(grey, image, background="#808080").labels == wanted).all()
    palette = Image.fromarray(scribbles.astype(np.uint8)).convert("L")
    palette.putpalette([9, 9, 9, 255, 0, 0, 0, 0, 255] + [0] * 700)
    palette.save(tmp_path / "p.png")
    drawing, first = read_strokes(tmp_path / "p.png")
    assert first == (9, 9, 9)
    assert (read_scribbles(drawing, image, first=first).labels == wanted).all()


def test_soft_brushes_are_noticed() -> None:
    image, _, scribbles = disc_picture()
    drawing = np.zeros_like(image)
    drawing[scribbles == 1], drawing[scribbles == 2] = (255, 0, 0), (0, 0, 255)
    for k in range(20):
        drawing[10, k] = (100 + k, 0, 0)
    with pytest.warns(UserWarning, match="22 colours; 20 of them"):
        strokes = read_scribbles(drawing, image)
    assert strokes.legend.names == ("#0000ff", "#ff0000")
    assert (strokes.labels[10, :20] == -1).all()


@pytest.mark.parametrize(
    ("scribbles", "options", "said"),
    [
        (np.zeros((48, 48), int), {}, "there are no scribbles; mark at least two labels"),
        (np.eye(48, dtype=int), {}, "scribbles of one label only"),
        (np.zeros((48, 47), int), {}, "the scribbles have 47 x 48 pixels and the image 48 x 48"),
        (np.zeros((48, 48)), {}, "must be whole numbers"),
        (np.arange(48 * 48).reshape(48, 48), {}, "2,303 labels; there may be 255"),
        (None, {"coupling": -1.0}, "coupling must be a number of at least 0"),
        (None, {"neighbours": 6}, "neighbours must be 4 or 8"),
        (None, {"method": "gibs"}, "did you mean 'gibbs'"),
        (None, {"sweeps": 0}, "sweeps"),
        (None, {"background": "#ffffff"}, "background is for scribbles in colours"),
    ],
)
def test_what_makes_no_sense(scribbles: Any, options: dict[str, Any], said: str) -> None:
    image, _, good = disc_picture()
    with pytest.raises(gs.errors.ModelError, match=said):
        segment_scribbles(image, good if scribbles is None else scribbles, **options)


def test_pixels_of_all_kinds_become_photographs(tmp_path: Path) -> None:
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert as_photograph(grey).shape == (3, 4, 3)
    assert as_photograph(np.dstack([grey, grey])).shape == (3, 4, 3)
    assert as_photograph(np.dstack([grey] * 4)).shape == (3, 4, 3)
    assert as_photograph(grey > 5).max() == 255
    assert as_photograph(grey.astype(np.uint16) * 1000).max() == 255
    assert as_photograph(grey.astype(int)).max() == 11
    for wrong in (np.zeros((2, 2, 5)), np.zeros(3), np.full((2, 2), np.nan), np.array([["a"]])):
        with pytest.raises(gs.errors.ModelError, match="the image"):
            as_photograph(wrong)
    for mode in ("1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I;16", "F"):
        pillow = Image.fromarray(grey * 20)
        picture = Image.fromarray(grey.astype(np.uint16) * 900) if mode == "I;16" else pillow.convert(mode)
        name = tmp_path / ("a.tif" if mode in ("CMYK", "F") else "a.png")
        picture.save(name)
        assert read_photograph(name).shape == (3, 4, 3)
        assert read_photograph(name).dtype == np.uint8
    turned = Image.Exif()
    turned[0x0112] = 6
    pillow.save(tmp_path / "a.jpg", exif=turned)
    assert read_photograph(tmp_path / "a.jpg").shape == (4, 3, 3)


def test_files_of_a_segmentation(tmp_path: Path) -> None:
    labels = np.array([[0, 1], [-1, 1]])
    path = tmp_path / "a.png"
    legend = make_legend(["sky", "sea"])
    files = write_segmentation(
        path, labels, legend, certainty=np.array([[1, 0.5], [0, 1]]), image=np.zeros((2, 2, 3), np.uint8)
    )
    with Image.open(path) as picture:
        assert picture.mode == "P"
        assert np.asarray(picture).tolist() == [[0, 1], [255, 1]]
        assert np.asarray(picture.convert("RGB"))[0, 1].tolist() == legend.colours[1].tolist()
        facts = json.loads(picture.text["legend"])
    assert facts == json.loads(Path(files.legend).read_text(encoding="utf-8"))
    assert [one["name"] for one in facts["labels"]] == ["sky", "sea"]
    assert [one["share"] for one in facts["labels"]] == [0.25, 0.5]
    assert facts["no_label_share"] == 0.25
    with Image.open(files.certainty) as picture:
        assert np.asarray(picture).tolist() == [[255, 128], [0, 255]]
    with Image.open(files.overlay) as picture:
        assert picture.width == 2
        assert picture.height > 2
    assert len({tuple(colour) for colour in make_legend([str(k) for k in range(255)]).colours.tolist()}) > 200


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(gs.errors.FormatError, match=r"end its name in \.png"):
        check_outputs(tmp_path / "a.jpg")
    with pytest.raises(gs.errors.FormatError, match="there is no such folder"):
        check_outputs(tmp_path / "nowhere" / "a.png")
    (tmp_path / "a-overlay.jpg").mkdir()
    with pytest.raises(gs.errors.FormatError, match="a-overlay"):
        check_outputs(tmp_path / "a.png")
    with pytest.raises(gs.errors.ModelError, match="label 3 has no name"):
        write_segmentation(tmp_path / "b.png", np.full((2, 2), 3), make_legend(["sky"]))
    with pytest.raises(gs.errors.ModelError, match="holds at most 255"):
        make_legend(["x"] * 256)
