"""Blocks of normal unknowns that keep sums make the same draws as those that visit factors one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gibbsite.applications.bugs import blocks, read_bugs
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.compiled import units

RNG = np.random.default_rng(8)
N = 24
Y, X, G = RNG.normal(5.0, 2.0, N), RNG.normal(3.0, 1.0, N), np.arange(N) % 3 + 1
HOLES = np.where(np.arange(N) == 7, np.nan, Y)
GROUPS = "for (j in 1:3) { a[j] ~ dnorm(mu, 2) }  mu ~ dnorm(1, 0.1)  b ~ dnorm(0, 1)  "
LEVEL = "for (i in 1:24) { y[i] ~ dnorm(3 + a[g[i]] + b * (x[i] - 2), %s) }"
# program, data, and whether sums are kept of the data
PROGRAMS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "one precision": (GROUPS + LEVEL % "t" + "t ~ dgamma(1, 1)", {"y": Y}, True),
    "a computed precision": (GROUPS + LEVEL % "pow(s, -2) / 2" + "s ~ dunif(0, 9)", {"y": Y}, True),
    "precisions of groups": (GROUPS + LEVEL % "t[g[i]]" + "for (j in 1:3) { t[j] ~ dgamma(2, 1) }", {"y": Y}, True),
    "missing data": (GROUPS + LEVEL % "t" + "t ~ dgamma(1, 1)  z ~ dnorm(y[7], 1)", {"y": HOLES, "z": 4.0}, True),
    "precisions that all differ": (GROUPS + LEVEL % "t * x[i] * x[i]" + "t ~ dgamma(1, 1)", {"y": Y}, False),
    "a mean with another unknown": (
        GROUPS + "for (i in 1:24) { y[i] ~ dnorm(a[g[i]] + b * x[i] + c, t) }  c ~ dunif(0, 2)  t ~ dgamma(1, 1)",
        {"y": Y},
        False,
    ),
}


def draws(text: str, data: dict[str, Any]) -> tuple[Bench, np.ndarray, np.ndarray]:
    """Return a model after some sweeps, the factor of the precision of its block in each, and the last values."""
    model = read_bugs(f"model {{ {text} }}", {"x": X, "g": G} | data)
    bench = Bench(model, 3)
    bench.load(model.draw_start(np.random.default_rng(4)))
    kinds = bench.rows[: bench.n, units.UPDATE].tolist()
    assert kinds.count(units.NORMAL_BLOCK) == 1
    found = []
    for _ in range(5):
        for unit in range(bench.n):
            assert bench.update(unit)
            if kinds[unit] == units.NORMAL_BLOCK:
                found.append(bench.chain.work[: model.derived.blocks[0].entries].copy())
    return bench, np.array(found), bench.values[model.network.unknown].copy()


@pytest.mark.parametrize("name", PROGRAMS)
def test_draws_are_those_of_factors_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, data, kept = PROGRAMS[name]
    bench, factors, ends = draws(text, data)
    rule = bench.model.network.owner[bench.model.assembly.offset["y"]]
    sizes = [group.size for group in bench.model.derived.blocks[0].groups if group.rule == rule]
    assert (0 in sizes) == kept
    monkeypatch.setattr(blocks, "precision_of", lambda *_: None)
    other, plain, same = draws(text, data)
    assert all(group.size for group in other.model.derived.blocks[0].groups)
    assert factors == pytest.approx(plain, rel=1e-9, abs=1e-9)
    assert ends == pytest.approx(same, rel=1e-8, abs=1e-8)


def test_a_wrong_sum_of_data_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text, data, _ = PROGRAMS["one precision"]
    _, _, ends = draws(text, data)
    honest = blocks._summed
    monkeypatch.setattr(blocks, "_summed", lambda *given: honest(*given[:2], given[2] + 1e-3, *given[3:]))
    _, _, others = draws(text, data)
    assert np.abs(ends - others).max() > 1e-5
