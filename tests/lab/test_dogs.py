"""The experiments of the DoGS paper in quick mode: bounds are in order, and known figures are found again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gibbsite.lab.dogs_guarantees import SHOWN
from tests.lab.quick_runs import findings


def claims(name: str) -> dict[str, str]:
    return {row[0]: row[2] for row in findings(name).table("Paper against ours").rows}


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
