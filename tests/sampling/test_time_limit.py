"""A time limit holds for everything until the result is there, by clocks of the tests."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference import sampling
from gibbsite.results import measured as records
from gibbsite.results.verdict import judge
from gibbsite.sampling import driver, executor, setup
from gibbsite.sampling.layout import PlainLayout

MODEL = gs.ising_grid((6, 6), coupling=0.1)


class Clock:
    """Stands still but for the work that is charged to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sweep: float, row: float, setting_up: float) -> None:
        self.now, self.sweep = 100.0, sweep
        for place in (executor, driver, sampling, judge):
            monkeypatch.setattr(place, "clock", lambda: self.now)
        advance, release, lay_out = executor.sweep_chain, PlainLayout.release, setup.lay_out

        def advancing(*given: Any) -> None:
            self.now += sweep * given[5] * given[6] / MODEL.n_sites  # rounds times their length
            advance(*given)

        def releasing(form: Any, state: Any, tape: Any, chains: int) -> Any:
            self.now += row * (2 + int(tape.counters[driver.BATCHES]))
            return release(form, state, tape, chains)

        def laying_out(*given: Any) -> Any:
            self.now += setting_up
            return lay_out(*given)

        monkeypatch.setattr(executor, "sweep_chain", advancing)
        monkeypatch.setattr(PlainLayout, "release", releasing)
        monkeypatch.setattr(setup, "lay_out", laying_out)

    def run(self, **more: Any) -> tuple[gs.Result, float]:
        begun = self.now
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.ConvergenceWarning)
            result = gs.sample(MODEL, **{"rng": 1, "progress": False, "threads": 1, **more})
        return result, self.now - begun


@pytest.mark.parametrize("row", [0.0, 0.001, 0.01, 0.05])
@pytest.mark.parametrize("setting_up", [0.0, 2.0])
def test_what_comes_after_a_run_is_foreseen(monkeypatch: pytest.MonkeyPatch, row: float, setting_up: float) -> None:
    """It may take several times as long as the run itself; a fifth more than the limit, and a sweep."""
    clock = Clock(monkeypatch, 0.01, row, setting_up)
    result, took = clock.run(seconds=10.0)
    assert took <= 1.2 * 10.0 + 4 * clock.sweep
    assert took > 5.0
    assert result.seconds == pytest.approx(took)
    assert result.n_draws > 4


def test_the_work_of_a_verdict_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells of a very large model are measured once for the verdict, and some of them before."""
    model = gs.ising_grid((20, 20), coupling=0.1)
    monkeypatch.setattr(records, "MOST_JUDGED", 256)
    measured: list[int] = []
    measure = records.measure_cells

    def counting(totals: Any, *given: Any) -> Any:
        measured.append(totals.shape[1])
        return measure(totals, *given)

    monkeypatch.setattr(records, "measure_cells", counting)
    result = gs.sample(model, sweeps=600, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False))
    assert result.diagnostics.judged == 256
    assert measured == [256]


def test_draws_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded besides them says the same, and costs next to nothing."""

    def count(*_: Any) -> Any:
        raise AssertionError("draws are counted")

    monkeypatch.setattr(records, "count_states", count)
    result = gs.sample(MODEL, sweeps=1000, rng=1, record="draws", progress=False)
    assert result.diagnostics.converged
    shares = (result.draws == 1).mean(axis=(0, 1))
    np.testing.assert_allclose(result.marginals.to_array()[:, 1], shares, rtol=1e-12)
