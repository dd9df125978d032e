"""Segmentation by patches: words, the field and its coupling, all methods, and what is wrong with input."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.methods import PATCHES
from gibbsite.applications.segmentation import (
    LabelledImages,
    Segmenter,
    aimed_scan,
    field_model,
    label_field,
    make_pictures,
    read_labelled,
)
from gibbsite.applications.segmentation.features import describe, labelled_shares, spread
from gibbsite.applications.segmentation.labelled import HammingScore, confuse
from gibbsite.applications.segmentation.patch_field import (
    central_region,
    gather,
    guaranteed_coupling,
    learn_coupling,
    pseudo_likelihood,
)
from gibbsite.applications.segmentation.segmenter import COUPLINGS

SHAPE = (20, 31)


# ---- the field


def test_the_scan_of_the_paper_appears_from_the_model_of_the_application() -> None:
    scan = aimed_scan(SHAPE, central_region(SHAPE))
    assert len(scan.order) == 110
    assert scan.targets.size == 96
    # of a model with fields, and as many labels as the paper has
    model = field_model(np.random.default_rng(1).normal(size=(*SHAPE, 9)))
    influence = gs.influence.bound_influence(model, method="bound")
    sweep = gs.certify(
        model, scan=gs.Systematic(), sweeps=1, target=scan.targets.tolist(), influence=influence
    ).variation
    assert round(sweep, 3) == 85.467
    short = gs.certify(model, scan=scan, steps=110, target=scan.targets.tolist(), influence=influence).variation
    assert short <= sweep
    assert short == pytest.approx(scan.variation)
    assert aimed_scan(SHAPE, central_region(SHAPE)) is scan  # computed once


@pytest.mark.parametrize("neighbours", [4, 8])
def test_the_field_is_the_posterior_of_the_paper(neighbours: int) -> None:
    rng = np.random.default_rng(2)
    fields, labels = rng.normal(size=(4, 5, 3)), rng.integers(0, 3, (4, 5))
    model = field_model(fields, 0.48, neighbours)
    expected = 0.0
    for y in range(4):
        for x in range(5):
            expected += fields[y, x, labels[y, x]] - fields[y, x].max()
            for dy, dx in [(0, 1), (1, 0)] + ([(1, 1), (1, -1)] if neighbours == 8 else []):
                if y + dy < 4 and 0 <= x + dx < 5:
                    expected += 0.48 * (labels[y, x] == labels[y + dy, x + dx])
    assert model.log_potential(labels.ravel().tolist()) == pytest.approx(expected)


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("method", [name for name in PATCHES if name not in ("plsa", "dogs", "mean-field")])
def test_methods_sample_the_posterior(method: str, states: int) -> None:
    """Against exact marginals; random methods within 6 standard errors of 3000 rounds, were they independent.

    Rounds are correlated at this coupling by less than a factor of 2, and conditional probabilities vary less
    than states: bounds of 6 * sqrt(2) / 2 / sqrt(3000) are false alarms of less than 1e-8.
    """
    fields = np.random.default_rng(states).normal(size=(3, 4, states))
    exact = gs.solve_exact(field_model(fields, 0.4)).marginals
    truth = np.array([list(exact[str(k)].values()) for k in range(12)])
    for label in ("marginal", "majority"):
        found = label_field(fields, method, coupling=0.4, rounds=3000, label=label, rng=1)
        assert np.abs(found.probabilities.reshape(12, -1) - truth).max() < 6 * np.sqrt(2) / 2 / np.sqrt(3000)
        assert found.labels.shape == (3, 4)
        np.testing.assert_allclose(found.probabilities.sum(axis=2), 1.0, atol=1e-9)


def test_without_coupling_all_methods_are_the_aspect_model() -> None:
    fields = 3 * np.random.default_rng(3).normal(size=(6, 7, 4))
    alone = label_field(fields, "plsa")
    for method in ("systematic", "chromatic", "herded", "blocks", "mean-field"):
        found = label_field(fields, method, coupling=0.0, rounds=5)
        np.testing.assert_allclose(found.probabilities, alone.probabilities, atol=1e-6)


def test_an_aimed_scan_leaves_the_rest_alone() -> None:
    fields = np.random.default_rng(4).normal(size=(12, 16, 3))
    region = (2, 3, 6, 7)
    found, alone = label_field(fields, "dogs", region=region), label_field(fields, "plsa")
    scan = aimed_scan((12, 16), region)
    visited = np.unique(scan.order)
    assert set(scan.targets.tolist()) <= {y * 16 + x for y in range(3, 7) for x in range(2, 6)}
    unseen = np.setdiff1d(np.arange(192), visited)
    assert unseen.size
    assert (found.labels.ravel()[unseen] == alone.labels.ravel()[unseen]).all()
    long = label_field(fields, "systematic", rounds=4000)
    aimed = label_field(fields, "dogs", region=region, rounds=4000)
    inside = (slice(3, 7), slice(2, 6))
    # the surroundings stay where they started, which moves marginals in the region by little
    assert np.abs(long.probabilities[inside] - aimed.probabilities[inside]).mean() < 0.05


@pytest.mark.parametrize("neighbours", [4, 8])
def test_the_scan_of_too_strong_a_coupling_is_that_of_a_weaker_one(neighbours: int) -> None:
    weaker = guaranteed_coupling(neighbours)
    influence = gs.influence.bound_influence(field_model(np.zeros((8, 8, 3)), weaker, neighbours), "bound")
    assert influence.norms.row_sum == pytest.approx(4 * np.tanh(0.24))
    scan, wanted = (aimed_scan((8, 8), (2, 2, 6, 6), coupling, neighbours) for coupling in (3.0, weaker))
    assert scan.order.tolist() == wanted.order.tolist()
    assert aimed_scan((8, 8), (2, 2, 6, 6), 0.1, neighbours).variation < scan.variation < 16


# ---- the coupling


@pytest.mark.parametrize("neighbours", [4, 8])
def test_derivatives_of_the_pseudo_likelihood_are_finite_differences(neighbours: int) -> None:
    rng = np.random.default_rng(5)
    labels = rng.integers(-1, 4, (9, 8))
    data = gather(rng.normal(size=(9, 8, 4)), labels, neighbours)
    for coupling in (-0.5, 0.0, 0.48, 2.0):
        step = 1e-5
        high, low = (pseudo_likelihood(coupling + s, data) for s in (step, -step))
        _, slope, bend = pseudo_likelihood(coupling, data)
        assert slope == pytest.approx((high[0] - low[0]) / (2 * step), rel=1e-7, abs=1e-6)
        assert bend == pytest.approx((high[1] - low[1]) / (2 * step), rel=1e-7, abs=1e-6)


def test_the_pseudo_likelihood_is_that_of_the_conditionals_of_the_model() -> None:
    rng = np.random.default_rng(6)
    fields, labels = rng.normal(size=(3, 3, 3)), rng.integers(0, 3, (3, 3))
    model, total = field_model(fields, 0.7), 0.0
    for k in range(9):
        values = []
        for state in range(3):
            other = labels.ravel().copy()
            other[k] = state
            values.append(model.log_potential(other.tolist()))
        total += values[labels.ravel()[k]] - np.log(np.exp(values).sum())
    assert pseudo_likelihood(0.7, gather(fields, labels))[0] == pytest.approx(total)


def test_a_coupling_is_learnt_again_from_samples() -> None:
    """From 40 x 40 labels drawn with 0.6; the bound is 6 standard errors and half as much again."""
    fields = np.random.default_rng(7).normal(size=(40, 40, 3))
    model = field_model(fields, 0.6)
    chain = gs.PersistentChains(model, chains=1, rng=1)
    chain.run(300)
    labels = np.asarray(chain.states).reshape(40, 40)
    data = gather(fields, labels.astype(np.int64))
    found = learn_coupling([data], ridge=0.0)
    assert pseudo_likelihood(found, data)[1] == pytest.approx(0.0, abs=1e-6)
    assert abs(found - 0.6) < 6 / np.sqrt(-pseudo_likelihood(found, data)[2]) * 1.5


def test_a_coupling_needs_neighbours() -> None:
    with pytest.raises(gs.errors.ModelError, match="no two neighbouring patches"):
        learn_coupling([gather(np.zeros((1, 3, 2)), np.array([[0, -1, 1]]))])


# ---- from pictures to labels


@cache
def pictures() -> LabelledImages:
    return make_pictures(26, rng=3)


@cache
def learnt() -> Segmenter:
    half = LabelledImages(pictures().examples[:20], pictures().classes, pictures().colours)
    return Segmenter(texture=60, colour=20).fit(half)


def held_out() -> LabelledImages:
    return LabelledImages(pictures().examples[20:], pictures().classes)


def test_classes_are_learnt_from_whole_images_and_the_field_helps() -> None:
    pytest.importorskip("skimage")
    alone = learnt().score(held_out(), "plsa").hamming
    coupled = learnt().score(held_out(), "systematic").hamming
    assert alone < 0.1  # a quarter would be right by chance
    assert coupled < 0.9 * alone


def test_a_model_is_the_same_after_saving(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    learnt().save(tmp_path / "a.seg")
    again, image = Segmenter.load(tmp_path / "a.seg"), held_out().examples[0].image
    for method in ("plsa", "dogs"):
        one, two = (each.segment(image, method) for each in (learnt(), again))
        np.testing.assert_array_equal(one.labels, two.labels)
        np.testing.assert_allclose(one.certainty, two.certainty, atol=1e-12)
    assert again.classes == pictures().classes
    data = (tmp_path / "a.seg").read_bytes()
    (tmp_path / "b.seg").write_bytes(data[:-9] + b"x" + data[-8:])
    with pytest.raises(gs.errors.FormatError, match="damaged"):
        Segmenter.load(tmp_path / "b.seg")
    (tmp_path / "c.seg").write_bytes(b"nothing")
    with pytest.raises(gs.errors.FormatError, match="not a model of gibbsite segment"):
        Segmenter.load(tmp_path / "c.seg")


@pytest.mark.parametrize("kind", ["large", "small", "grey", "16 bits", "floats", "alpha", "upright"])
def test_images_of_other_sizes_and_depths_are_labelled(kind: str) -> None:
    pytest.importorskip("skimage")
    image = held_out().examples[0].image
    made = {
        "large": np.kron(image, np.ones((3, 3, 1), np.uint8)),
        "small": image[::4, ::4],
        "grey": image[..., 0],
        "16 bits": image.astype(np.uint16) * 257,
        "floats": image / 255.0,
        "alpha": np.dstack([image, np.full(image.shape[:2], 9, np.uint8)]),
        "upright": image.transpose(1, 0, 2),
    }[kind]
    found = learnt().segment(made, "dogs")
    assert found.labels.shape == found.certainty.shape == made.shape[:2]
    assert found.certainty.min() > 0
    assert found.certainty.max() <= 1 + 1e-9
    assert sum(found.shares().values()) == pytest.approx(1.0)


def test_a_coupling_can_be_learnt_with_the_classes() -> None:
    pytest.importorskip("skimage")
    made = Segmenter(texture=40, colour=15, coupling="learn").fit(make_pictures(8, rng=5))
    assert isinstance(made.coupling, float)
    assert 0.0 < made.coupling < 10.0


def test_a_coupling_can_be_chosen_on_images_held_back() -> None:
    pytest.importorskip("skimage")
    images = make_pictures(9, rng=5)
    made = Segmenter(texture=40, colour=15, coupling="held-back").fit(images)
    assert made.coupling in COUPLINGS
    assert made.coupling > 0.0  # errors are scattered, so coupling helps
    again = Segmenter(texture=40, colour=15, coupling="held-back").fit(images)
    assert again.coupling == made.coupling
    one = images.examples[0]
    alone = LabelledImages([type(one)("x", one.image, np.zeros_like(one.labels))], ("a",))
    with pytest.raises(gs.errors.ModelError, match="only one image"):
        Segmenter(texture=5, colour=5, coupling="held-back").fit(alone)


def test_patches_without_a_class_are_left_out_or_kept() -> None:
    """Half of every picture is a colour of its own without a label; kept, it is learnt as a class of the picture."""
    pytest.importorskip("skimage")
    images = make_pictures(16, rng=6)
    for one in images.examples:
        one.labels[:, :160] = -1
        one.image[:, :160] = 255, 0, 255
    words, many = {}, {}
    for unlabelled in ("drop", "keep"):
        made = Segmenter(texture=40, colour=15, unlabelled=unlabelled).fit(images)
        many[unlabelled] = len(made.aspects.mixtures_)
        magenta = made.words.read(describe(images.examples[0].image)).reshape(20, 31, 3)[0, 0, 1]
        words[unlabelled] = made.aspects.words_[1][:, magenta].max()
    assert many == {"drop": 16, "keep": 16}
    assert words["drop"] < 0.05  # of patches that are half labelled
    assert words["keep"] > 0.2
    with pytest.raises(gs.errors.ArgumentError, match="unlabelled"):
        Segmenter(unlabelled="lose")


def test_the_share_of_labelled_pixels_of_patches() -> None:
    labels = np.full((30, 40), -1)
    labels[:10, :10] = 2
    labels[10:, 20:] = 0
    assert labelled_shares(labels).tolist() == [0.25, 0.25, 0.5, 0.0, 0.5, 1.0]


def test_regions_are_checked() -> None:
    pytest.importorskip("skimage")
    image = held_out().examples[0].image
    for wrong, said in (((0, 0, 400, 100), "is not in the picture"), ((0, 0, 4, 4), "the centre of no patch")):
        with pytest.raises(gs.errors.ArgumentError, match=said):
            learnt().segment(image, "dogs", region=wrong)
    with pytest.raises(gs.errors.ArgumentError, match="region is for method dogs"):
        learnt().segment(image, "systematic", region=(0, 0, 100, 100))
    with pytest.raises(gs.errors.ArgumentError, match="method"):
        learnt().segment(image, "nonsense")
    with pytest.raises(gs.errors.ModelError, match="at least 20 x 20"):
        Segmenter(texture=2, colour=2).fit(
            LabelledImages([type(held_out().examples[0])("x", image[:10, :10], np.zeros((10, 10), np.int16))], ("a",))
        )
    with pytest.raises(gs.errors.ModelError, match="has learnt nothing yet"):
        Segmenter().segment(image)


def test_pixels_take_the_label_of_the_nearest_patch() -> None:
    patches = np.arange(620).reshape(SHAPE)
    shown = spread(patches, 213, 320)
    centres = np.stack(np.meshgrid(10 * np.arange(20) + 9.5, 10 * np.arange(31) + 9.5, indexing="ij"), -1)
    for y, x in [(0, 0), (3, 318), (212, 5), (100, 151), (87, 33), (212, 319)]:
        far = np.abs(centres - (y, x)).sum(axis=2)
        assert far.ravel()[shown[y, x]] == far.min()
    score = HammingScore(("a", "b"), confuse(np.array([0, 0, 1, -1]), np.array([0, 1, 1, 0]), 2))
    assert score.hamming == pytest.approx(1 / 3)
    assert score.by_class() == {"a": 0.5, "b": 0.0}


# ---- folders


def write_folder(folder: Path, count: int = 2, names: bool = True) -> Path:
    pillow = pytest.importorskip("PIL.Image")
    folder.mkdir(parents=True, exist_ok=True)
    for k, one in enumerate(make_pictures(count, rng=9).examples):
        pillow.fromarray(one.image).save(folder / f"p{k}.png")
        pillow.fromarray((one.labels + 1).astype(np.uint8)).save(folder / f"p{k}_GT.png")
    if names:
        listed = [{"index": k + 1, "name": name} for k, name in enumerate(pictures().classes)]
        (folder / "classes.json").write_text(json.dumps({"classes": [{"index": 0, "name": "void"}, *listed]}))
    return folder


def test_folders_are_read(tmp_path: Path) -> None:
    made = make_pictures(2, rng=9)
    read = read_labelled(write_folder(tmp_path / "a"))
    for one, two in zip(read.examples, made.examples, strict=True):
        np.testing.assert_array_equal(one.image, two.image)
        names = [(*read.classes, "")[k] for k in np.unique(one.labels)]
        assert names == [(*made.classes, "")[k] for k in np.unique(two.labels)]
    assert read_labelled(write_folder(tmp_path / "b", names=False)).classes[0].isdigit()
    chosen = read_labelled(tmp_path / "a", [read.classes[0]])
    assert set(np.unique(np.concatenate([one.labels.ravel() for one in chosen.examples]))) <= {-1, 0}


def test_errors_name_what_is_wrong_with_folders(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    with pytest.raises(gs.errors.FormatError, match="no such folder"):
        read_labelled(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(gs.errors.FormatError, match="has no photograph"):
        read_labelled(tmp_path / "empty")
    folder = write_folder(tmp_path / "a")
    with pytest.raises(gs.errors.ArgumentError, match="class"):
        read_labelled(folder, ["nonsense"])
    pillow.fromarray(np.zeros((5, 5), np.uint8)).save(folder / "p0_GT.png")
    with pytest.raises(gs.errors.FormatError, match="label map has 5 x 5 pixels, its photograph 320 x 213"):
        read_labelled(folder)
    (folder / "p0_GT.png").unlink()
    with pytest.raises(gs.errors.FormatError, match=r"has no label map; expected p0_GT\.png"):
        read_labelled(folder)
    (folder / "p0_GT.png").write_bytes(b"nothing")
    with pytest.raises(gs.errors.FormatError, match="not an image"):
        read_labelled(folder)
    write_folder(folder)
    (folder / "classes.json").write_text("{}")
    with pytest.raises(gs.errors.FormatError, match="is not a list of classes"):
        read_labelled(folder)
    blank = write_folder(tmp_path / "blank", 1)
    pillow.fromarray(np.zeros((213, 320), np.uint8)).save(blank / "p0_GT.png")
    with pytest.raises(gs.errors.ModelError, match="no label map shows any class"):
        read_labelled(blank)


def test_a_class_without_examples_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", 1)
    shown = set(read_labelled(folder).classes)
    absent = next(name for name in pictures().classes if name not in shown)
    with pytest.raises(gs.errors.ArgumentError, match="no label map shows"):
        read_labelled(folder, [absent])
