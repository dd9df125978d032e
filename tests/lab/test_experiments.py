"""Every experiment in quick mode finds what is known about it, beyond its own uncertainty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.lab.chains import fit_slope
from gibbsite.lab.herded.denoising import METHODS, draw_strokes, find_silhouette, is_less
from gibbsite.lab.herded.discrepancy import VALUES, bound
from gibbsite.lab.herded.two_variables import EPSILONS
from tests.lab.quick_runs import FAMILIES, check_what_it_says_and_saves, family, findings

pytestmark = pytest.mark.long

# error times length as measured by others, from other start weights
CONSTANTS = {0.1: 4.5, 0.01: 16.4}


@pytest.mark.parametrize("name", family("herded"))
def test_experiments_say_what_they_are_and_save_what_they_found(name: str, tmp_path: Path) -> None:
    check_what_it_says_and_saves(name, tmp_path)


def test_every_experiment_is_of_a_family() -> None:
    """And every family has its file, with the test above."""
    assert sorted(name for each in FAMILIES for name in family(each)) == sorted(gs.lab.NAMES)


def test_the_seed_is_all_that_matters_and_progress_counts_parts() -> None:
    seen: list[Any] = []
    again = gs.lab.run("herded-discrepancy", quick=True, rng=1, progress=seen.append)
    for name, array in findings("herded-discrepancy").arrays.items():
        np.testing.assert_array_equal(array, again.arrays[name])
    assert [status.done for status in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].fraction == 1.0
    assert "part 1/" in seen[0].text()


def test_two_variables_herded_errors_fall_twice_as_fast_as_those_of_chance() -> None:
    arrays = findings("herded-two-variables").arrays
    sweeps = arrays["sweeps"]
    late = sweeps >= 100
    for epsilon in EPSILONS[:3]:  # the last needs longer runs than there are here
        herded, gibbs = arrays[f"joint herded {epsilon:g}"], arrays[f"joint Gibbs {epsilon:g}"]
        assert fit_slope(sweeps[late], herded[late]) < -0.85
        assert herded[-1] < gibbs[0, -1] / 2  # far below the quartiles of Gibbs
    # chance: error times the root of the length has no trend; the median of 20 errors is within 40 %, 5 sigma
    flat = arrays["joint Gibbs 0.1"][1] * np.sqrt(sweeps)
    assert 0.6 < flat[-20:].mean() / flat[late][:20].mean() < 1.7


@pytest.mark.parametrize("epsilon", sorted(CONSTANTS))
def test_two_variables_constants_are_those_others_have_measured(epsilon) -> None:
    constants = findings("herded-two-variables").arrays[f"constants herded {epsilon:g}"]
    assert 0.5 < np.median(constants) / CONSTANTS[epsilon] < 1.5


def test_incomplete_graph_has_a_floor_unless_keys_are_full() -> None:
    arrays = findings("herded-incomplete-graph").arrays
    sweeps, late = arrays["sweeps"], arrays["sweeps"] >= 100_000
    for blanket, full in zip(arrays["error blanket"], arrays["error full"], strict=True):
        assert blanket[late].max() > 1e-4 > full[late].max()
        assert fit_slope(sweeps, full) < -0.9
        assert (full * sweeps).max() < 50  # so below 1e-5 from 5e6 sweeps on
    assert np.abs(arrays["joint full"] - arrays["joint exact"]).sum() < 1e-4
    assert np.abs(arrays["joint blanket"] - arrays["joint exact"]).sum() < 0.02  # the floor is low


def test_discrepancies_obey_their_bounds_and_those_of_chance_do_not() -> None:
    found = findings("herded-discrepancy")
    slack = 2.0**-32 * found.settings["draws"]  # two states have probabilities of 32 bits
    bounds = np.array([bound(k) for k in VALUES])
    assert (found.arrays["tijdeman"] <= bounds + slack).all()
    assert found.arrays["argmax, random start"][0] <= 1.0 + slack
    assert (found.arrays["argmax"][1:4] > bounds[1:4]).all()  # the better rule is better
    assert (found.arrays["argmax, random start"] < 2.0).all()
    assert (found.arrays["Gibbs"] > 10.0).all()


def test_denoising_orders_methods_as_far_as_is_certain() -> None:
    found = findings("herded-denoising")
    errors = {m: found.arrays[f"strokes: errors of {m}"] for m in METHODS}
    sigmas = found.arrays["sigma"].tolist()
    for s, sigma in enumerate(sigmas):
        for better, worse in (("shared", "herded"), ("herded", "Gibbs")):
            if sigma >= 4:
                assert is_less(errors[worse][s], errors[better][s]) is not True
    low, high = sigmas.index(2.0), sigmas.index(8.0)
    for sampler in ("herded", "shared", "Gibbs"):  # little noise: mean field is best
        assert is_less(errors["MF 0.5"][low], errors[sampler][low])
    for other in ("Gibbs", "MF 0.5", "MF 1"):  # much noise: sharing weights is better
        assert is_less(errors["shared"][high], errors[other][high])
    claims = {row[0]: row[2] for row in found.table("Paper against ours: strokes").rows}
    assert claims["shared beats mean field (in place) at sigma 8"] != "holds"  # where the paper does not hold


def test_herded_runs_on_the_paragraph_find_what_viterbi_finds() -> None:
    found = findings("herded-example")
    assert (found.arrays["herded Gibbs, 400: below Viterbi"] < 1e-6).all()
    assert (found.arrays["annealed Gibbs, 100: below Viterbi"] > 1e-6).any()
    names = found.table("Entities of the paragraph").rows
    assert [row[0] for row in names if row[1] != row[2]] == ["McDonald's"]


def test_a_real_silhouette_is_taken_where_there_is_one(tmp_path, monkeypatch) -> None:
    image = pytest.importorskip("PIL.Image")
    assert find_silhouette(1) is None
    place = tmp_path / "images" / "mpeg7"
    place.mkdir(parents=True)
    truth = draw_strokes(80)
    image.fromarray(np.where(truth, 255, 0).astype(np.uint8)).save(place / "beetle-1.png")
    monkeypatch.setenv("GIBBSITE_DATA", str(tmp_path))
    name, found = find_silhouette(2) or ("", np.zeros(0))
    assert name == "beetle-1"
    np.testing.assert_array_equal(found, truth[::2, ::2])
    (place / "beetle-1.png").write_text("no image")
    assert find_silhouette(1) is None


@pytest.mark.parametrize("name", ["herded", "", None, 3])
def test_unknown_experiments_are_refused_with_the_names(name) -> None:
    said = "herded-two-variables, herded-incomplete-graph" if isinstance(name, str) else "name must be text"
    with pytest.raises(gs.errors.GibbsiteError, match=said):
        gs.lab.run(name)


@pytest.mark.parametrize("rng", [-1, 0.5, "a", True, None])
def test_bad_seeds_are_refused(rng) -> None:
    with pytest.raises(gs.errors.ModelError, match="rng"):
        gs.lab.run("herded-discrepancy", quick=True, rng=rng)


def test_without_matplotlib_the_numbers_are_saved(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    experiment = gs.lab.find("herded-discrepancy")
    with pytest.warns(UserWarning, match="pip install"):
        paths = experiment.save(findings("herded-discrepancy"), tmp_path)
    assert paths == [Path(tmp_path) / "herded-discrepancy.json"]


def test_the_documents_have_the_figures_of_a_full_run() -> None:
    kept = json.loads(
        (Path(__file__).parents[2] / "docs" / "lab" / "herded-discrepancy.json").read_text(encoding="utf-8")
    )
    again = gs.lab.run("herded-discrepancy", rng=1, progress=False).to_dict()
    assert kept["tables"] == json.loads(json.dumps(again["tables"]))
    assert kept["settings"] == json.loads(json.dumps(again["settings"]))
