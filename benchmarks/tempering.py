"""A sweep of many replicas that exchange their states, against as many sweeps of a plain chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.loop import mover
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target

RUNGS = 16
# Times a plain sweep of each replica.
MOST = 1.15


def models(side: int) -> dict[str, gs.FactorGraph]:
    """Return lattices, a spin glass without a regular order, and couplings of all pairs."""
    rng = np.random.default_rng(1)
    n = 3 * side * side // 2
    pairs = np.unique(np.sort(rng.integers(0, n, (2 * n, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    return {
        "Ising lattice": gs.ising_grid((side, side), coupling=0.4),
        "spin glass": gs.ising((pairs[:, 0], pairs[:, 1], rng.normal(size=len(pairs)))),
        "all pairs coupled": gs.ising(np.triu(rng.normal(size=(4 * side, 4 * side)), 1) / side),
        "Potts lattice": gs.potts_grid((side, side), states=3, coupling=0.8),
    }


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, repetitions = (12, 3) if quick else (32, 7)
    ladder = np.linspace(0.0, 1.0, RUNGS)
    rows: list[list[str]] = []
    data: dict[str, Any] = {}
    targets = []
    for name, model in models(side).items():
        n = model.n_sites
        jobs = {"plain": gs.Gibbs(), "tempered": gs.Tempered(ladder=ladder)}
        seen = race(
            [
                Contestant(each, _sweeps(model, kernel), n * (RUNGS if each == "tempered" else 1), least=1)
                for each, kernel in jobs.items()
            ],
            repetitions=repetitions,
            seconds=0.2,
        )
        ratio = seen["plain"].against(seen["tempered"])  # how many times faster a plain update is
        found = {each: Spread.of([1e9 * t for t in seen[each].cpu]) for each in jobs}
        spread = f"{found['tempered'].low:.2f} to {found['tempered'].high:.2f}"
        rows.append([name, *(f"{found[each].median:.2f} ns" for each in jobs), spread])
        data[name] = {each: found[each].to_dict() for each in jobs}
        what = f"tempering, {name}, an update of a replica against a plain one"
        targets.append(Target.of(what, ratio, MOST, least=False))
    head = [f"{RUNGS} rungs", "a plain update", "an update of a replica", "range"]
    return Section("tempering", targets, head, rows, data)


def _sweeps(model: gs.FactorGraph, kernel: gs.kernels.Kernel) -> Callable[[int], Any]:
    move = mover(model, kernel)
    return lambda rounds: move(rounds * model.n_sites)
