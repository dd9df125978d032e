"""The length of a run: sweeps, steps, seconds, or an error that is small enough."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite._numba.jit import clock, compiled
from gibbsite.sampling import driver, executor
from gibbsite.sampling.checkpoint import load_checkpoint
from gibbsite.sampling.setup import Budget, read_length

MODEL = gs.ising(np.array([[0, 0.5], [0.5, 0]]), [0.1, -0.2])


def read(n_sites: int = 10, **kwargs: Any) -> Budget:
    return read_length(**kwargs).budget(n_sites)


def test_the_default_is_a_thousand_sweeps() -> None:
    assert read() == Budget(warmup=100, draws=1000, length=10, rest=0, seconds=math.inf, counted=False)


@given(n=st.integers(1, 50), steps=st.integers(1, 5000), thin=st.integers(1, 9), warmup=st.none() | st.integers(0, 30))
def test_steps_are_used_up_exactly(n: int, steps: int, thin: int, warmup: int | None) -> None:
    budget = read(n, sweeps=gs.Steps(steps, thin=thin), warmup=warmup)
    assert budget.draws is not None
    assert budget.draws * budget.length + budget.rest == steps
    assert 0 <= budget.rest < budget.length == n * thin
    assert budget.warmup == (steps // n // 10 if warmup is None else warmup)


@given(sweeps=st.integers(1, 5000), thin=st.integers(1, 9), n=st.integers(0, 50))
def test_sweeps_are_thinned(sweeps: int, thin: int, n: int) -> None:
    if thin > sweeps:
        with pytest.raises(gs.errors.ModelError, match=f"thin={thin} leaves no draw of {sweeps} sweeps"):
            read(n, sweeps=gs.Sweeps(sweeps, thin=thin))
        return
    budget = read(n, sweeps=gs.Sweeps(sweeps, thin=thin))
    assert (budget.draws, budget.length, budget.rest) == (sweeps // thin, n * thin, 0)


def test_seconds_limit_or_replace_the_sweeps() -> None:
    timed = {"length": 10, "rest": 0, "warms_by_time": True}
    assert read(seconds=2) == Budget(warmup=None, draws=None, seconds=2.0, counted=False, **timed)
    assert read(seconds=2, warmup=7).warmup == 7
    assert not read(seconds=2, warmup=7).warms_by_time
    assert read(seconds=0.5, sweeps=20) == Budget(warmup=2, draws=20, seconds=0.5, **timed)


def test_a_model_without_sites_has_one_draw_of_steps() -> None:
    assert read(0, sweeps=gs.Steps(5)) == Budget(warmup=0, draws=1, length=0, rest=0, seconds=math.inf)


# ---- until the error is small enough


def run(**kwargs: Any) -> gs.Result:
    return gs.sample(MODEL, **{"sweeps": 100_000, "warmup": 10, "rng": 1, "progress": False, **kwargs})


@pytest.mark.parametrize("error", [0.01, 0.003])
def test_a_run_stops_when_the_error_is_small_enough(error: float) -> None:
    result = run(criteria=gs.Criteria(accuracy=4 * error))
    assert result.n_draws < 100_000
    assert result.n_draws.bit_count() == 1, "asked at powers of two"
    assert result.diagnostics.converged
    assert result.diagnostics.mcse_max <= error
    # 20 sweeps a visit, nine visits to a state whose probability is the accuracy, four chains
    least = max(256, 9 * 20 / (4 * error) / 4)
    half = run(sweeps=result.n_draws // 2)
    assert half.n_draws < least or half.diagnostics.mcse_max > error or not half.diagnostics.converged


def test_an_error_too_small_uses_the_whole_budget(tmp_path: Path) -> None:
    run(sweeps=700, criteria=gs.Criteria(accuracy=4e-09)).save(tmp_path / "asked.npz")
    run(sweeps=700).save(tmp_path / "plain.npz")
    assert (tmp_path / "asked.npz").read_bytes() == (tmp_path / "plain.npz").read_bytes()


@pytest.mark.parametrize("block", [0.0, 10.0])
def test_stopping_does_not_depend_on_the_blocks(block: float, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(criteria=gs.Criteria(accuracy=0.04)).n_draws
    monkeypatch.setattr(executor.Threads, "block_seconds", block)
    assert run(criteria=gs.Criteria(accuracy=0.04)).n_draws == expected


def test_a_killed_run_stops_where_the_whole_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # killed after the save at the very draw at which the whole run stops, before the question was asked
    whole = run(criteria=gs.Criteria(accuracy=0.04))
    place = tmp_path / "run.ckpt"

    def die(recording: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(driver, "_FIRST_CHECK", whole.n_draws)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("gibbsite.results.verdict.judge.Judge.is_enough", lambda judge, recording: die(recording))
        run(criteria=gs.Criteria(accuracy=0.04), checkpoint=gs.Checkpoint(place, every=0.0))
    assert load_checkpoint(place)[0]["progress"]["draws"] == whole.n_draws
    resumed = run(criteria=gs.Criteria(accuracy=0.04), checkpoint=gs.Checkpoint(place, resume=True))
    assert resumed.n_draws == whole.n_draws
    np.testing.assert_array_equal(resumed.totals, whole.totals)


def test_a_finished_run_stays_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "run.ckpt"
    first = run(criteria=gs.Criteria(accuracy=0.04), checkpoint=place)
    assert (
        run(criteria=gs.Criteria(accuracy=0.04), checkpoint=gs.Checkpoint(place, resume=True)).n_draws == first.n_draws
    )
    assert (
        run(criteria=gs.Criteria(accuracy=0.008), checkpoint=gs.Checkpoint(place, resume=True)).n_draws > first.n_draws
    )


def test_the_warmup_follows_whichever_limit_binds() -> None:
    """A tenth of 10^8 sweeps would take all of the time."""
    result = gs.sample(
        MODEL, sweeps=10**8, seconds=0.5, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)
    )
    assert 0 < result.warmup < 10**7
    assert result.n_draws > 1000


def test_a_timed_run_is_repeated_by_its_plan() -> None:
    first = gs.sample(MODEL, seconds=0.2, rng=4, progress=False, criteria=gs.Criteria(dispersed_starts=False))
    again = gs.sample(
        MODEL,
        sweeps=first.n_draws,
        warmup=first.plan.warmup,
        rng=4,
        progress=False,
        criteria=gs.Criteria(dispersed_starts=False),
    )
    np.testing.assert_array_equal(again.totals, first.totals)
    assert again.plan == first.plan


def test_compiling_takes_no_time_of_a_budget() -> None:
    """The clock of budgets stands still while Numba works, also inside the calls of others."""

    @compiled
    def first(x: float) -> float:
        return x + 1.0

    @compiled
    def fresh(x: float) -> float:
        total = 0.0
        for k in range(10):
            total += np.sin(x + k) * np.cos(x - k)
        return total

    first(1.0)  # so that all modules of Numba are there
    here, there = clock(), time.monotonic()
    fresh(1.0)
    spent, passed = clock() - here, time.monotonic() - there
    assert fresh.signatures  # it was compiled, or loaded
    assert spent < 0.5 * passed


def test_a_share_of_the_time_is_kept_for_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, driver.Driver] = {}
    run = driver.Driver.run

    def watched(self: driver.Driver) -> Any:
        seen[len(seen)] = self
        return run(self)

    monkeypatch.setattr(driver.Driver, "run", watched)
    gs.sample(MODEL, seconds=0.1, rng=1, progress=False)
    gs.sample(MODEL, seconds=0.1, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False))
    assert [0.1 - each.reserve for each in seen.values()] == pytest.approx([0.08, 0.1])
