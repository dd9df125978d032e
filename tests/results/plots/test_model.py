"""Pictures of models show their sites, factors, arrows, colors and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

import gibbsite as gs  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def names(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_network_has_a_box_for_each_site_and_an_arrow_for_each_parent() -> None:
    model = gs.example("asia")
    axes = gs.plot_model(model)
    assert names(axes) == list(model.sites)
    heads = [patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"]
    assert len(heads) == sum(group.size * (group.arity - 1) for group in model.groups)


def test_pairs_are_lines_and_larger_factors_squares() -> None:
    factors = [(("a", "b"), [[2, 1], [1, 2]]), (("b", "c"), [[1, 2], [2, 1]]), (("a", "c", "d"), np.ones((2, 2, 2)))]
    axes = gs.plot_model(gs.FactorGraph(["a", "b", "c", "d"], factors, states=2))
    lines, spokes = axes.collections[:2]
    assert len(lines.get_segments()) == 2
    assert len(spokes.get_segments()) == 3
    assert not np.array_equal(lines.get_colors()[0], lines.get_colors()[1]), "agreement and disagreement differ"
    circles, squares = axes.collections[2:]
    assert len(circles.get_offsets()) == 4
    assert len(squares.get_offsets()) == 1


def test_a_lattice_lies_as_it_is() -> None:
    axes = gs.plot_model(gs.ising_grid((3, 4), coupling=0.2), color="scan")
    where = axes.collections[2].get_offsets()
    assert len(np.unique(where[:, 0].round(9))) == 4
    assert len(np.unique(where[:, 1].round(9))) == 3
    faces = axes.collections[2].get_facecolors()
    assert np.array_equal(faces[0], faces[2])
    assert not np.array_equal(faces[0], faces[1])
    assert len(axes.get_legend().get_texts()) == 2


def test_a_large_lattice_is_an_image_of_its_fields() -> None:
    field = np.random.default_rng(2).normal(size=(40, 50))
    axes = gs.plot_model(gs.ising_grid((40, 50), coupling=0.2, field=field))
    (image,) = axes.images
    assert np.allclose(image.get_array(), 2 * field)
    coupling = np.random.default_rng(2).normal(size=(2, 40, 50))
    (image,) = gs.plot_model(gs.ising_grid((40, 50), coupling=coupling)).images
    assert np.ptp(image.get_array()) > 1.0, "the sums of the couplings differ"


def test_couplings_of_a_lattice_are_colored_by_their_sign() -> None:
    signs = np.where(np.arange(24).reshape(2, 3, 4) % 2 == 0, 1.0, -1.0)
    lines = gs.plot_model(gs.ising_grid((3, 4), coupling=signs)).collections[0]
    assert len(np.unique(lines.get_colors(), axis=0)) == 2


def test_values_of_an_answer_color_the_sites() -> None:
    model = gs.FactorGraph(["a", "b"], [("a", [0.9, 0.1]), ("b", [0.2, 0.8])], states=["no", "yes"])
    axes = gs.plot_model(model, color=gs.solve_exact(model))
    bar = axes.figure.axes[-1]
    assert bar.get_ylabel() == "probability of state yes"
    faces = axes.collections[2].get_facecolors()
    assert faces[0].sum() > faces[1].sum(), "more probable is darker"


def test_blocks_and_mappings_are_groups() -> None:
    model = gs.ising(np.diag(np.ones(5), 1))
    axes = gs.plot_model(model, blocks=[[0, 1, 2], [2, 3, 4]])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "block 1",
        "block 1, 2",
        "block 2",
        "no group",
    ]
    axes = gs.plot_model(model, color={"0": "left", "5": "right"})
    assert len(axes.get_legend().get_texts()) == 3
    axes = gs.plot_model(model, color={"0": 1.5, "5": -2.0})
    assert axes.figure.axes[-1].get_ylabel() == "value"


def test_a_part_of_a_model_and_axes_of_the_user(tmp_path: Path) -> None:
    figure, panels = plt.subplots(1, 2)
    axes = gs.plot_model(gs.example("alarm"), sites=["HR", "CO", "BP", "HRBP"], ax=panels[1], path=tmp_path / "a.png")
    assert axes is panels[1]
    assert names(axes) == ["HR", "CO", "BP", "HRBP"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert plt.get_fignums() == [figure.number]


def test_precision_matrices_are_lines() -> None:
    model = gs.Gaussian(precision=np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]))
    assert len(gs.plot_model(model).collections[0].get_segments()) == 2


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(gs.errors.ArgumentError, match="too many for one picture"):
        gs.plot_model(gs.ising(np.diag(np.ones(999), 1)))
    with pytest.raises(gs.errors.ArgumentError, match="no factors to draw"):
        gs.plot_model(gs.LogDensity(lambda x: -0.5 * float(x @ x), dim=2))
    with pytest.raises(gs.errors.ArgumentError, match="'scan', an answer"):
        gs.plot_model(gs.example("asia"), color="blue")
    with pytest.raises(gs.errors.ArgumentError, match="an answer with marginals"):
        gs.plot_model(gs.example("asia"), color=3)
    with pytest.raises(gs.errors.ArgumentError, match="not both"):
        gs.plot_model(gs.example("asia"), color="scan", blocks=[["asia"]])
    everything = gs.example("asia").observe(dict.fromkeys(gs.example("asia").sites, "no"))
    with pytest.raises(gs.errors.ArgumentError, match="no site to draw"):
        gs.plot_model(everything)
