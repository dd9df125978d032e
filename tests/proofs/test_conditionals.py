"""Conditionals of users: compiled or not, blocks, states beside numbers; the wrong ones are noticed."""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs
import numba
from gibbsite.inference import compatibility, examination
from gibbsite.inference.panels import find_panels
from gibbsite.models import random
from tests.proofs.density_laws import FALSE_ALARM, Floats, Normal, move_each, p_value

pytestmark = pytest.mark.long

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


@cache
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
    "Python": cache(lambda: gs.Conditionals({name: single(k) for k, name in enumerate("abc")})),
    "compiled": cache(lambda: gs.Conditionals({name: compiled(k) for k, name in enumerate("abc")})),
    "a block": cache(lambda: gs.Conditionals({("a", "b"): block, "c": single(2)})),
    "a slice": cache(lambda: gs.Conditionals({"a": compiled(0), "b": None, "c": compiled(2)}, log_density=density)),
}


@pytest.mark.parametrize("scan", [gs.Systematic(), gs.RandomScan()], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_law_is_kept(name: str, scan: gs.scans.Scan) -> None:
    law = Normal(np.zeros(3), COVARIANCE)
    starts = law.draw(4000, np.random.default_rng(8))
    ends = move_each(MODELS[name](), gs.kernels.ConditionalGibbs(), starts, 3, scan)
    assert (ends != starts).any(axis=1).mean() > 0.9
    assert p_value(law.law, ends) > FALSE_ALARM


def test_the_update_of_all_sites_from_the_old_state_is_wrong() -> None:
    """As printed in lecture notes: every site given the others before the sweep."""

    def jacobi(x: Floats, rng: np.random.Generator) -> Floats:
        return np.array([single(k)(x, rng) for k in range(3)])

    law = Normal(np.zeros(3), COVARIANCE)
    starts = law.draw(4000, np.random.default_rng(8))
    ends = move_each(gs.Conditionals({("a", "b", "c"): jacobi}), gs.kernels.ConditionalGibbs(), starts, 3)
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
    assert gs.inference.check_conditionals(model).compatible


def test_resumed_runs_are_the_same(tmp_path: Any) -> None:
    model = MODELS["compiled"]()
    once = gs.sample(model, sweeps=400, rng=1, record="draws", progress=False)
    path = tmp_path / "run.npz"
    common: dict[str, Any] = {"rng": 1, "record": "draws", "progress": False, "warmup": 40}
    gs.sample(model, sweeps=150, checkpoint=path, **common)
    again = gs.sample(model, sweeps=400, checkpoint=gs.Checkpoint(path, resume=True), **common)
    assert np.array_equal(once.draws, again.draws)
    again.save(tmp_path / "result.npz")
    assert np.array_equal(gs.load(tmp_path / "result.npz").draws, again.draws)
    assert again.to_datatree()["posterior/a"].dtype == float


def test_compatibility() -> None:
    for name in ("Python", "a block"):
        good = MODELS[name]()
        model = gs.Conditionals(
            dict(zip([("a", "b"), "c"] if name == "a block" else "abc", good.draws, strict=True)), log_density=density
        )
        assert gs.inference.check_conditionals(model).compatible
    wrong = gs.Conditionals(
        {"a": single(0), "b": lambda x, rng: 1.3 * single(1)(x, rng), "c": single(2)}, log_density=density
    )
    found = gs.inference.check_conditionals(wrong)
    assert not found
    assert found.worst == "b"
    with pytest.raises(gs.errors.ModelError, match="log_density"):
        gs.inference.check_conditionals(MODELS["Python"]())


def pair(slope: float = 0.4, sd: float = 0.68**0.5) -> gs.Conditionals:
    """Of a normal law; right is what is left out."""
    return gs.Conditionals(
        {"a": lambda x, rng: rng.normal(slope * x[1], sd), "b": lambda x, rng: rng.normal(0.8 * x[0], 1.36**0.5)},
        log_density=lambda x: -0.5 * (2 * x[0] ** 2 - 1.6 * x[0] * x[1] + x[1] ** 2) / 1.36,
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sd": 0.68}, "standard deviation of 'a' is 0.82"),
        ({"sd": 1.0}, "standard deviation of 'a' is 1.2"),
        ({"sd": 0.9 * 0.68**0.5}, "standard deviation of 'a' is 0.(89|90)"),
        ({"slope": 0.5}, "mean of 'a' is off by"),
    ],
)
def test_what_the_check_promises_to_notice_is_noticed(wrong: dict[str, float], said: str) -> None:
    """Missed with probability 0.001 at most, by the check's own account; seeds are fixed."""
    found = gs.inference.check_conditionals(pair(**wrong))
    assert found.verdict == "incompatible"
    assert not found
    assert said.split(" is ")[0] in found.evidence
    assert re.search(said, str(found))
    assert found.p_values["b"] > 1e-6


def test_compatible_means_that_deviations_are_excluded() -> None:
    found = gs.inference.check_conditionals(pair())
    assert found.verdict == "compatible"
    assert max(found.detects) <= found.tolerance == 0.1
    assert "off by" in str(found)
    few = gs.inference.check_conditionals(pair(), draws=50)
    assert few.verdict == "undecided"
    assert not few
    assert few.detects.sd > 0.2
    assert few.needed == found.n_draws
    assert f"take {few.needed:,} draws" in str(few)
    for wrong in ({"tolerance": 0.0}, {"power": 1.0}, {"places": 0}, {"draws": 0.5}, {"start": [1.0]}):
        with pytest.raises(gs.errors.ModelError):
            gs.inference.check_conditionals(pair(), **wrong)


def test_the_power_that_is_reported_is_that_of_the_tests() -> None:
    """Scores of normal conditionals whose errors are of the size stated to be detected, 400 times.

    With a power of 0.999, 12 or more of them are missed with probability below 1e-12; those of conditionals
    that are right are called wrong with probability 5e-6 each, four times with probability below 1e-12.
    """
    places, draws, level = 10, 60, 1e-6
    able = compatibility._detectable(places, draws, level, 0.999)
    rng = np.random.default_rng(5)

    def share(shift: float, scale: float) -> float:
        rejected = 0
        for _ in range(400):
            z = rng.normal(size=(places, draws)) * scale + shift * rng.choice([-1.0, 1.0], (places, 1))
            found = compatibility._judge(compatibility.Scores(z, [""] * places, False, ""))
            rejected += min(p for p, _ in found) < level
        return rejected / 400

    assert share(able.mean, 1.0) > 0.97
    assert share(0.0, 1.0 + able.sd) > 0.97
    assert share(0.0, 1.0 - able.sd) > 0.97
    assert share(0.0, 1.0) < 0.01


def test_the_check_is_of_states_and_of_laws_that_are_not_normal() -> None:
    chances = np.array([0.2, 0.3, 0.5])

    def states(p: Any) -> gs.Conditionals:
        return gs.Conditionals(
            {"z": lambda x, rng: float(rng.choice(3, p=p))}, {"z": 3}, log_density=lambda x: np.log(chances[int(x[0])])
        )

    assert gs.inference.check_conditionals(states(chances))
    assert "'z'" in gs.inference.check_conditionals(states(chances[[1, 0, 2]])).evidence

    def gamma(shape: float) -> gs.Conditionals:
        return gs.Conditionals(
            {"g": lambda x, rng: rng.gamma(shape)},
            {"g": gs.Interval(0.0)},
            log_density=lambda x: -0.5 * np.log(x[0]) - x[0],
        )

    assert gs.inference.check_conditionals(gamma(0.5))
    assert not gs.inference.check_conditionals(gamma(0.6))
    late = gs.Conditionals(
        {"g": lambda x, rng: rng.exponential()}, log_density=lambda x: -x[0] if x[0] > 0.1 else -np.inf
    )
    assert "density is zero where 'g' was drawn" in gs.inference.check_conditionals(late).evidence


@pytest.mark.parametrize(
    ("law", "error"),
    [
        (stats.norm(3.0, 2.0), 1e-5),
        (stats.cauchy(), 1e-5),
        (stats.laplace(), 1e-5),
        (stats.gamma(0.5), 1e-4),  # infinite at zero
        (stats.beta(0.7, 3.0), 1e-3),
        (stats.uniform(), 1e-12),
    ],
)
@pytest.mark.parametrize("draws", [200, 1074])
def test_places_in_the_law_are_those_of_its_distribution_function(law: Any, error: float, draws: int) -> None:
    def density(x: Any) -> float:
        return float(law.logpdf(x[0]))

    model = gs.Conditionals({"a": lambda x, rng: rng.normal()}, {"a": gs.Interval(*law.support())}, log_density=density)
    values = law.rvs(draws, random_state=1)
    examination = compatibility.Examination(model, 1, np.array([law.median()]))
    found, impossible = examination._distribution_of_draws(np.array([0], np.int32), values[:, None], 0)
    assert impossible is None
    assert np.abs(found - law.cdf(values)).max() < error


def test_a_place_that_no_draw_comes_to_has_its_mass() -> None:
    """A narrow second mode between draws that leave it out shifts all of them."""
    law, narrow = stats.norm(0.0, 1.0), stats.norm(0.0, 0.02)

    def density(x: Any) -> float:
        return float(np.logaddexp(law.logpdf(x[0]), narrow.logpdf(x[0] - 2.5)))

    model = gs.Conditionals({"a": lambda x, rng: rng.normal()}, log_density=density)
    found = gs.inference.check_conditionals(model, places=2, draws=300)
    assert found.verdict == "incompatible"


@pytest.mark.parametrize(
    "law", [stats.norm(), stats.gamma(3.0), stats.laplace(), stats.t(4.0)], ids=lambda law: law.dist.name
)
def test_the_check_asks_for_the_density_less_often_than_it_draws(law: Any) -> None:
    """Calls of Python functions are nearly all of the time that the check takes."""
    calls = []

    def density(x: Any) -> float:
        calls.append(1)
        return float(law.logpdf(x[0]))

    sites = {"a": gs.Interval(*law.support())}
    model = gs.Conditionals({"a": lambda x, rng: law.rvs(random_state=rng)}, sites, log_density=density)
    found = gs.inference.check_conditionals(model, places=2, draws=1000, start=[1.0], tolerance=0.5)
    assert found.verdict == "compatible"
    assert found.n_draws == 2000
    assert len(calls) < 0.6 * found.n_draws


@pytest.mark.parametrize("width", [0.05, 0.2, 1.0])
def test_a_gap_in_the_density_where_values_are_drawn_is_noticed(width: float) -> None:
    def density(x: Any) -> float:
        return -math.inf if 0.3 < x[0] < 0.3 + width else -0.5 * float(x[0]) ** 2

    model = gs.Conditionals({"a": lambda x, rng: rng.normal()}, log_density=density)
    found = gs.inference.check_conditionals(model, places=2, draws=1000, start=[0.0])
    assert "density is zero where 'a' was drawn" in found.evidence


def test_a_density_that_is_rough_everywhere_is_asked_for_a_limited_number_of_times() -> None:
    calls, rng = 0, np.random.default_rng(1)

    def noise(x: Floats) -> Floats:
        nonlocal calls
        calls += x.size
        return rng.normal(size=x.size)

    panels = find_panels(noise, np.linspace(0.0, 1.0, 17))
    assert panels is not None
    assert calls < 20_000
    assert abs(panels.below(np.array([0.5]))[0][0] / panels.mass.sum() - 0.5) < 0.05


@pytest.mark.parametrize(("pause", "lines"), [(0.0, 0), (3.0, 1)])
def test_the_check_writes_a_line_after_two_seconds(
    pause: float, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(np.arange(0.0, 1000.0) * pause / 3)
    monkeypatch.setattr(examination.time, "monotonic", lambda: float(next(clock)))
    functions = {name: (lambda x, rng: rng.normal(0.0, 1.0)) for name in "abc"}
    model = gs.Conditionals(functions, log_density=lambda x: -0.5 * (x**2).sum())
    gs.inference.check_conditionals(model, places=2, draws=50)
    assert capsys.readouterr().err.count("checking conditionals") == lines


def test_the_check_tells_what_fails() -> None:
    broken = gs.Conditionals({"a": fails}, log_density=lambda x: -(x[0] ** 2))
    with pytest.raises(gs.errors.ModelError, match=r"conditional of \(a\) raised RuntimeError\('no idea'\), given a="):
        gs.inference.check_conditionals(broken)


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
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.Conditionals(draws, sites)


def fails(x: Floats, rng: Any) -> float:
    raise RuntimeError("no idea")


@numba.njit
def compiled_failure(x: Any, rng: Any) -> Any:
    value = random.normal(rng)
    if value > 1.0:
        raise ValueError("too large")
    return value


@pytest.mark.parametrize(
    ("draw", "sites", "said"),
    [
        (lambda x, rng: rng.normal(), {"a": gs.Interval(0.0, 1.0)}, "'a' returned .* not between 0 and 1"),
        (lambda x, rng: 0.5, {"a": 3}, "'a' returned 0.5, which is no state code"),
        (lambda x, rng: None, None, r"conditional of \(a\) failed: it returned None, and a number is needed"),
        (lambda x, rng: [None], None, r"conditional of \(a\) failed: it returned \[None\]"),
        (lambda x, rng: float("nan"), None, "'a' returned nan, which is no finite number, given a="),
        (lambda x, rng: float("inf"), None, "'a' returned inf, which is no finite number, given a="),
        (lambda x, rng: 1 / 0, None, "'a' returned inf.*given a=.*ZeroDivisionError"),
        (fails, None, r"conditional of \(a\) raised RuntimeError\('no idea'\), given a="),
        (compiled_failure, None, r"conditional of \(a\) raised ValueError\('too large'\), given a="),
        (lambda x, rng: rng.normal(size=2), None, r"conditional of \(a\) failed: an array of shape"),
    ],
)
def test_draws_that_make_no_sense(draw: Any, sites: Any, said: str) -> None:
    with pytest.raises(gs.errors.SamplingError, match=said):
        gs.sample(gs.Conditionals({"a": draw}, sites), sweeps=2000, rng=1, progress=False)


def inexplicit(x: Any, rng: Any) -> Any:
    return np.random.normal(x[0])  # noqa: NPY002


@numba.njit
def hidden(x: Any, rng: Any) -> Any:
    return np.random.normal()  # noqa: NPY002


@pytest.mark.parametrize("draw", [hidden, inexplicit], ids=["compiled", "Python"])
def test_random_numbers_of_others_are_refused(draw: Any) -> None:
    """They would come from a state that the seed of a run does not reach."""
    with pytest.raises(gs.errors.ModelError, match=r"conditional of \(a\).*np.random.normal.*argument rng"):
        gs.sample(gs.Conditionals({"a": draw}), sweeps=10, rng=1, progress=False)


def test_the_check_says_how_far_it_is() -> None:
    seen: list[Any] = []
    functions = {name: (lambda x, rng: rng.normal(0.0, 1.0)) for name in "abc"}
    model = gs.Conditionals(functions, log_density=lambda x: -0.5 * (x**2).sum())
    gs.inference.check_conditionals(model, places=2, draws=50, progress=seen.append)
    assert [status.done for status in seen] == [0, 1, 2, 3, 4, 5]
    assert {(status.phase, status.total, status.unit) for status in seen} == {("checking conditionals", 6, "function")}


def test_a_check_of_many_python_functions_is_short_and_says_how_far_it_is() -> None:
    """Sixty-five functions that are not compiled need at most 400 densities a site and place, and are not silent."""
    n, places = 65, 2
    calls = 0
    said: list[tuple[int, int]] = []

    def log_density(x: Floats) -> float:
        nonlocal calls
        calls += 1
        return float(-0.5 * (x @ x))

    def standard(x: Floats, rng: np.random.Generator) -> float:
        return float(rng.normal())

    def progress(status: Any) -> None:
        assert status.total == n * places
        said.append((status.done, calls))

    model = gs.Conditionals({f"x{k}": standard for k in range(n)}, log_density=log_density)
    found = compatibility.check_conditionals(model, places=places, draws=200, progress=progress)
    assert found.verdict != "incompatible"
    assert calls < 400 * n * places
    assert [done for done, _ in said] == list(range(n * places))
    spoken = [*(number for _, number in said), calls]
    assert max(after - before for before, after in pairwise(spoken)) < 800
