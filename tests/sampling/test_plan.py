"""Plans: equal where two runs give equal numbers, different where they do not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.plan import Plan, as_data, package_version, read_entropy

MODEL = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.1, -0.2])


def plan(**kwargs: Any) -> Plan:
    arguments = {"sweeps": 10, "rng": 1, "progress": False, **kwargs}
    return gs.sample(arguments.pop("model", MODEL), arguments.pop("kernel", None), **arguments).plan


def test_a_plan_is_plain_data() -> None:
    found = plan(kernel=gs.Gibbs("suwa-todo"), scan=gs.RandomScan([1, 2]), record=["marginals", gs.Draws([0])])
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.gibbsite == package_version() == gs.__version__
    assert found.kernel == {"name": "Gibbs", "rule": "suwa-todo"}
    assert found.scan == {"name": "RandomScan", "weights": [1, 2]}
    assert found.record == [
        {"name": "Marginals", "rao_blackwell": None, "batches": True},
        {"name": "Draws", "sites": [0]},
    ]
    assert (found.chains, found.thin, found.warmup, found.entropy, found.start) == (4, 1, 1, 1, None)


def test_equal_settings_give_equal_plans() -> None:
    assert plan().to_json() == plan(rng=np.int64(1), scan=gs.Systematic(), threads=1).to_json()
    listed, array = gs.RandomScan([1.0, 2.0]), gs.RandomScan(np.array([1.0, 2.0]))
    assert plan(scan=listed).to_json() == plan(scan=array).to_json()


def test_differences_are_named() -> None:
    mine, other = plan(), plan(rng=2, sweeps=gs.Sweeps(10, thin=2), kernel=gs.Gibbs("metropolised"))
    assert mine.differences(other.to_dict()) == ["entropy", "kernel", "thin"]
    assert mine.differences(mine.to_dict()) == []
    assert mine.differences({}) == sorted(mine.to_dict())
    assert mine.differences({**mine.to_dict(), "new": 1}) == ["new"]


def test_plans_of_the_first_format_are_read() -> None:
    mine = plan()
    old = {**mine.to_dict(), "start": "None"}
    assert mine.differences(old) == []
    assert Plan.from_dict(old) == mine


def test_long_arrays_differ_by_their_digest() -> None:
    long = np.arange(1000)
    other = long.copy()
    other[500] += 1
    assert len(json.dumps(as_data(long))) < 200
    assert as_data(long) == as_data(long.copy())
    assert as_data(long) != as_data(other)
    assert as_data(long) != as_data(long.reshape(10, 100))
    assert as_data(long.tolist()) != as_data(other.tolist())
    assert as_data(np.arange(3)) == as_data([0, 1, 2]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        ({"b": (1, 2), 3: {"x": None}}, {"b": [1, 2], "3": {"x": None}}),
        (gs.Gibbs(), "Gibbs(rule='heat-bath')"),
    ],
    ids=str,
)
def test_values_become_json(value: Any, data: Any) -> None:
    assert as_data(value) == data
    json.dumps(as_data(value))


def test_models_differ_by_their_weights() -> None:
    same = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.1, -0.2])
    assert plan(model=same).model == plan().model
    for other in (MODEL.observe({"0": [0.5, 0.6]}), gs.ising(np.array([[0, 0.6], [0.6, 0]]), [0.1, -0.2])):
        assert plan(model=other).model != plan().model


def test_entropy_of_a_seed() -> None:
    assert read_entropy(np.random.SeedSequence(9)) == read_entropy(9) == 9
    parent = np.random.SeedSequence(9)
    kids = {read_entropy(child) for child in parent.spawn(3)}
    assert len(kids | {9}) == 4
    assert read_entropy(np.random.default_rng(4)) == read_entropy(np.random.default_rng(4))
    assert read_entropy(None) != read_entropy(None)
