"""The experiments of the DoGS paper in quick mode: bounds are in order, and known figures are found again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gibbsite.lab.dogs_guarantees import SHOWN
from tests.lab.quick_runs import findings


def claims(name: str, subject: str = "") -> dict[str, str]:
    return {row[0]: row[2] for row in findings(name).table(f"Paper against ours{subject}").rows}


# the smallest and largest of five draws, measured by others: uniform, systematic, DoGS, iterated DoGS
KNOWN = {
    500: ((4.3, 5.8), (0.063, 0.23), (0.033, 0.086), (0.017, 0.052)),
    1000: ((0.21, 0.44), (3.7e-5, 5.8e-4), (7e-6, 7.4e-5), (1.7e-6, 2e-5)),
    2000: ((5.9e-4, 3.1e-3), (6.7e-12, 2.8e-9), (2.3e-13, 4.9e-11), (1.4e-14, 2.9e-12)),
    3000: ((1.8e-6, 2.5e-5), (5.9e-19, 1e-14), (5.5e-21, 3.1e-17), (1.4e-22, 3.9e-19)),
}


def test_guarantees_are_in_order_and_like_those_of_other_draws() -> None:
    arrays = findings("dogs-guarantees").arrays
    names = ("uniform", "systematic", "DoGS", "iterated DoGS")
    for worse, better in pairwise(names):
        assert (arrays[better] <= arrays[worse]).all()
    for steps in SHOWN:
        at = np.flatnonzero(arrays["steps"] == steps)[0]
        for name, (low, high) in zip(names, KNOWN[steps], strict=True):
            here = arrays[name][:, at]
            assert here.min() <= high  # two samples of the same law: their ranges meet
            assert here.max() >= low
    gain = arrays["systematic"] / arrays["DoGS"]
    assert (gain[:, arrays["steps"] == 500] < 10).all()  # not two orders of magnitude at every length
    assert (gain[:, arrays["steps"] == 3000] > 50).all()
    said = claims("dogs-guarantees")
    assert said["systematic is better than uniform for all T"] == "yes"
    assert said["DoGS gains two orders of magnitude"] == "in part"


@pytest.mark.parametrize("grid", ["open", "torus"])
def test_a_scan_for_one_site_zooms_in_and_has_less_bias_than_a_systematic_one(grid) -> None:
    found = findings("dogs-marginal")
    arrays, chains = found.arrays, found.settings["chains"]
    names = ("systematic", "DoGS", "iterated DoGS")
    for worse, better in pairwise(names):
        assert (arrays[f"{grid}: bound of {better}"] <= arrays[f"{grid}: bound of {worse}"]).all()
    # a total variation is half a mean of signs: bounds hold, with six standard errors
    here = np.isin(arrays["steps"], arrays["steps of the bias"])
    for name in names[:2]:
        bias = arrays[f"{grid}: bias of {name}"]
        assert (bias / 2 <= arrays[f"{grid}: bound of {name}"][here] + 3 * np.sqrt(bias / chains)).all()
    # measured by others from 4000 chains, standard error 0.016
    known = {"open": (0.28, 0.16), "torus": (0.59, 0.40)}[grid]
    late = arrays["steps of the bias"] >= 1600
    systematic, dogs = (arrays[f"{grid}: bias of {name}"][late] for name in names[:2])
    assert (np.abs(systematic - known) < 5 * np.sqrt(0.25 / chains + 0.016**2)).all()
    assert (dogs < systematic / 5).all()
    assert arrays[f"{grid}: visits by distance"].sum() == arrays[f"{grid}: stages"].sum() == 3200
    spread = [(stage.ravel() > 0).sum() for stage in arrays[f"{grid}: stages"]]
    assert (np.diff(spread) < 0).all()  # later parts of the scan cover ever less
    assert set(claims("dogs-marginal", f": {grid}").values()) == {"yes"}


def test_loose_bounds_cost_guarantee_and_hardly_any_accuracy() -> None:
    found = findings("dogs-loose-bounds")
    arrays, chains = found.arrays, found.settings["chains"]
    np.testing.assert_allclose(arrays["row sum"], 4 * np.tanh(0.165) * arrays["factor"], rtol=1e-12)
    assert (np.diff(arrays["bound of DoGS"], axis=0) >= 0).all()  # looser influence, looser bounds
    tight = arrays["bound of DoGS from tight influence"]
    assert (tight <= arrays["bound of DoGS"] * (1 + 1e-12)).all()
    bias = arrays["bias of DoGS"]
    assert (bias / 2 <= tight[:, : bias.shape[1]] + 3 * np.sqrt(bias / chains)).all()
    # scans chosen with up to 1.5 times the influence: so few chains see no difference, six standard errors
    assert (np.abs(bias - bias[0]) <= 6 * np.sqrt(2 * np.maximum(bias, 1 / chains) / chains)).all()
    assert set(claims("dogs-loose-bounds").values()) == {"yes"}
