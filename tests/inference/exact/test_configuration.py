"""The site that stands for a configuration: its marginal is the joint, and the others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.exact.junction import add_configuration
from tests.inference.exact.naive import random_model

pytestmark = pytest.mark.usefixtures("plain")


@pytest.mark.parametrize("sites", [[2], [0, 3], [4, 1], [3, 0, 2]])
@pytest.mark.parametrize("seed", range(2))
def test_its_marginal_is_the_joint(seed: int, sites: list[int]) -> None:
    model = random_model(seed, 5, 0.2)
    before, after = gs.exact.enumerate(model), gs.exact.enumerate(add_configuration(model, sites))
    assert after.log_z == pytest.approx(before.log_z, rel=1e-12)
    cells = list(after.marginals["configuration"].values())
    assert cells == pytest.approx(before.joint(*sites).ravel(), abs=1e-14)
    for site in model.sites:
        assert after.marginals[site] == pytest.approx(before.marginals[site], abs=1e-14)
    assert gs.solve_exact(model).joint(*sites) == pytest.approx(before.joint(*sites), abs=1e-12)


def test_its_name_is_new() -> None:
    model = gs.FactorGraph({"configuration": 2, "configuration_": 3}, [("configuration", [1, 2])])
    wide = add_configuration(model, [0, 1])
    assert list(wide.sites) == ["configuration", "configuration_", "configuration__"]
    assert wide.cards.tolist() == [2, 3, 6]


def test_lattices_and_labels_are_kept() -> None:
    model = gs.ising_grid((2, 3), coupling=0.4, field=0.2)
    wide = add_configuration(model, [0, 5])
    assert [wide.labels(i) for i in range(6)] == [model.labels(i) for i in range(6)]
    joint = np.array(list(gs.exact.enumerate(wide).marginals[6].values())).reshape(2, 2)
    assert joint == pytest.approx(gs.exact.enumerate(model).joint(0, 5), abs=1e-14)
