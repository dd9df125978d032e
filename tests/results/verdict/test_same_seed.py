"""The same seeds give the same verdict: with a budget in sweeps nothing depends on measured time."""

from __future__ import annotations

import math
import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba import jit
from gibbsite.results.verdict.landscape import Landscape


def _two_wells(x: Any) -> Any:
    return math.log(math.exp(-0.5 * (x[0] ** 2).sum()) + 0.5 * math.exp(-0.5 * (x[0] - 12.0) ** 2)) - 0.5 * x[1] ** 2


def _grid() -> gs.Result:
    return gs.sample(gs.ising_grid((8, 8), 0.3), sweeps=2000, rng=1, progress=False)


def _rare() -> gs.Result:
    model = gs.FactorGraph({"a": 2, "b": 2}, [("a", [0.98, 0.02]), (("a", "b"), [[0.99, 0.01], [0.05, 0.95]])])
    return gs.sample(model, sweeps=500, rng=1, progress=False, record=["marginals", gs.sampling.record.Draws(["a"])])


def _tempered() -> gs.Result:
    return gs.sample(gs.ising_grid((4, 4), 0.5), gs.Tempered(), sweeps=400, rng=1, progress=False)


def _density() -> gs.Result:
    model = gs.LogDensity(_two_wells, dim=2)
    return gs.sample(model, gs.Slice(), sweeps=2000, rng=1, progress=False, start=[0.0, 0.0])


def _bugs() -> gs.Result:
    text = "model { y ~ dnorm(m, 100)  m <- mu * mu  mu ~ dnorm(0, 0.01) }"
    return gs.bugs(text, {"y": 25.0}).sample(inits={"mu": 5.0}, sweeps=1000, rng=1, progress=False)


def _early() -> Any:
    criteria = gs.Criteria(accuracy=0.02)
    model = gs.ising_grid((5, 5), 0.2)
    return gs.infer(model, method="gibbs", sweeps=20_000, criteria=criteria, rng=1, progress=False)


def _mislead_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every clock of the package run fast, with jumps."""
    noise = random.Random(1)
    now = time.monotonic()

    def clock() -> float:
        nonlocal now
        now += noise.choice([1e-9, 1e-3, 10.0])
        return now

    for name, module in list(sys.modules.items()):
        if name.startswith("gibbsite") and getattr(module, "clock", None) is jit.clock:
            monkeypatch.setattr(module, "clock", clock)


@pytest.mark.parametrize("run", [_grid, _rare, _tempered, _density, _bugs, _early])
def test_verdicts_do_not_depend_on_clocks(run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = run()
        _mislead_clocks(monkeypatch)
        two = run()
    assert one.diagnostics == two.diagnostics
    assert one.summary() == two.summary()
    for site in one.marginals:
        assert one.mcse[site] == two.mcse[site]


def test_the_speed_of_a_density_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal models get the same number, and with it the same search for modes."""
    places = np.random.default_rng(1).normal(size=(64, 1))
    paces = []
    for factor in (1.0, 1000.0):
        monkeypatch.setattr(time, "thread_time", lambda factor=factor: factor * time.perf_counter())
        model = gs.LogDensity(lambda x: -0.5 * x[0] ** 2, dim=1)
        land = Landscape(gs.graphs.compile_graph(model), places, np.ones(1), np.random.default_rng(1))
        paces.append(land.pace(land.from_model(places)))
    assert paces[0] == paces[1]
