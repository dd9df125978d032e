"""Conditionals of users: compiled or not, blocks, states beside numbers; the wrong ones are noticed."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import gibbsite as gs
from gibbsite import random
from tests.proofs.density_laws import FALSE_ALARM, Floats, Normal, move_each, p_value

COVARIANCE = np.array([[1.0, 0.8, 0.3], [0.8, 2.0, 0.1], [0.3, 0.1, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)
FACTOR = np.linalg.cholesky(np.linalg.inv(PRECISION[:2, :2]))
GAIN = np.linalg.solve(PRECISION[:2, :2], PRECISION[:2, 2])


def density(x: Floats) -> Any:
    total = 0.0
    for i in range(3):
        for j in range(3):
            total -= 0.5 * x[i] * PRECISION[i, j] * x[j]
    return total


def single(k: int) -> Any:
    row, sd = PRECISION[k] / PRECISION[k, k], PRECISION[k, k] ** -0.5

    def draw(x: Floats, rng: np.random.Generator) -> float:
        return float(rng.normal(x[k] - row @ x, sd))

    return draw


def compiled(k: int) -> Any:
    row, sd = PRECISION[k] / PRECISION[k, k], PRECISION[k, k] ** -0.5
    normal = random.normal

    @numba.njit
    def draw(x: Any, rng: Any) -> Any:
        mean = x[k]
        for j in range(3):
            mean -= row[j] * x[j]
        return normal(rng, mean, sd)

    return draw


def block(x: Floats, rng: np.random.Generator) -> Floats:
    return -GAIN * x[2] + FACTOR @ rng.normal(size=2)


MODELS = {
    "Python": lambda: gs.Conditionals({name: single(k) for k, name in enumerate("abc")}),
    "compiled": lambda: gs.Conditionals({name: compiled(k) for k, name in enumerate("abc")}),
    "a block": lambda: gs.Conditionals({("a", "b"): block, "c": single(2)}),
    "a slice": lambda: gs.Conditionals({"a": compiled(0), "b": None, "c": compiled(2)}, log_density=density),
}


@pytest.mark.parametrize("scan", [gs.Systematic(), gs.RandomScan()], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_law_is_kept(name: str, scan: gs.Scan) -> None:
    law = Normal(np.zeros(3), COVARIANCE)
    starts = law.draw(4000, np.random.default_rng(8))
    ends = move_each(MODELS[name](), gs.ConditionalGibbs(), starts, 3, scan)
    assert (ends != starts).any(axis=1).mean() > 0.9
    assert p_value(law.law, ends) > FALSE_ALARM


def test_the_update_of_all_sites_from_the_old_state_is_wrong() -> None:
    """As printed in lecture notes: every site given the others before the sweep."""

    def jacobi(x: Floats, rng: np.random.Generator) -> Floats:
        return np.array([single(k)(x, rng) for k in range(3)])

    law = Normal(np.zeros(3), COVARIANCE)
    starts = law.draw(4000, np.random.default_rng(8))
    ends = move_each(gs.Conditionals({("a", "b", "c"): jacobi}), gs.ConditionalGibbs(), starts, 3)
    assert p_value(law.law, ends) < FALSE_ALARM


def test_states_beside_numbers() -> None:
    """A mixture: z is 0 or 1 with weights 1 and 2, x given z normal about -1 or 1."""
    model = gs.Conditionals(
        {
            "z": lambda x, rng: float(rng.random() < 2 * np.exp(x[1]) / (2 * np.exp(x[1]) + np.exp(-x[1]))),
            "x": lambda x, rng: rng.normal(2 * x[0] - 1, 1.0),
        },
        {"z": ["left", "right"]},
        log_density=lambda x: np.log(1 + x[0]) - 0.5 * (x[1] - 2 * x[0] + 1) ** 2,
    )
    result = gs.sample(model, sweeps=1000, rng=1, progress=False)
    right, mean = result.marginals["z"]["right"], result.marginals["x"]["mean"]
    assert abs(right - 2 / 3) < 5.5 * result.mcse["z"]["right"]
    assert abs(mean - 1 / 3) < 5.5 * result.mcse["x"]["mean"]
    assert gs.check_conditionals(model).compatible


def test_resumed_runs_are_the_same(tmp_path: Any) -> None:
    model = MODELS["compiled"]()
    once = gs.sample(model, sweeps=400, rng=1, record="draws", progress=False)
    path = tmp_path / "run.npz"
    common: dict[str, Any] = {
        "rng": 1,
        "record": "draws",
        "progress": False,
        "checkpoint": path,
        "warmup": 40,
    }
    gs.sample(model, sweeps=150, **common)
    again = gs.sample(model, sweeps=400, resume=True, **common)
    assert np.array_equal(once.values, again.values)
    again.save(tmp_path / "result.npz")
    assert np.array_equal(gs.load_result(tmp_path / "result.npz").values, again.values)
    assert again.to_datatree()["posterior/x"].dtype == float


def test_compatibility() -> None:
    for name in ("Python", "a block"):
        good = MODELS[name]()
        model = gs.Conditionals(
            dict(zip([("a", "b"), "c"] if name == "a block" else "abc", good.draws, strict=True)),
            log_density=density,
        )
        assert gs.check_conditionals(model).compatible
    wrong = gs.Conditionals(
        {"a": single(0), "b": lambda x, rng: 1.3 * single(1)(x, rng), "c": single(2)}, log_density=density
    )
    found = gs.check_conditionals(wrong)
    assert not found
    assert found.worst == "b"
    with pytest.raises(gs.ModelError, match="log_density"):
        gs.check_conditionals(MODELS["Python"]())


@pytest.mark.parametrize(
    ("draws", "sites", "said"),
    [
        ({}, None, "mapping"),
        ({"a": 3}, None, "must be a function"),
        ({"a": None}, None, "log_density= is needed"),
        ({("a", "a"): block}, None, "twice"),
        ({"a": single(0)}, {"a": gs.Interval(), "b": gs.Interval()}, "'b' has no conditional"),
    ],
)
def test_models_that_make_no_sense(draws: Any, sites: Any, said: str) -> None:
    with pytest.raises(gs.ModelError, match=said):
        gs.Conditionals(draws, sites)


def fails(x: Floats, rng: Any) -> float:
    raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("draw", "sites", "said"),
    [
        (lambda x, rng: rng.normal(), {"a": gs.Interval(0.0, 1.0)}, "'a' returned .* not between 0 and 1"),
        (lambda x, rng: 0.5, {"a": 3}, "'a' returned 0.5, which is no state code"),
        (lambda x, rng: float("nan"), None, "'a' returned nan"),
        (fails, None, "no idea"),
    ],
)
def test_draws_that_make_no_sense(draw: Any, sites: Any, said: str) -> None:
    with pytest.raises(gs.SamplingError, match=said):
        gs.sample(gs.Conditionals({"a": draw}, sites), sweeps=2000, rng=1, progress=False)
