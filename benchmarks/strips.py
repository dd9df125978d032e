"""Half of a lattice at a time: sweeps against single sites, two threads against one, effective draws."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.loop import mover
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target

# The critical point of the Ising model on a square lattice.
CRITICAL = 0.5 * float(np.log(1.0 + np.sqrt(2.0)))


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, repetitions, sweeps = (200, 3, 2000) if quick else (1000, 7, 50_000)
    model = gs.ising_grid((side, side), coupling=CRITICAL)
    n = model.n_sites

    def run(kernel: gs.kernels.Kernel, visits: int, threads: int = 1) -> Callable[[int], Any]:
        move = mover(model, kernel, threads=threads)
        return lambda rounds: move(rounds * visits)

    lines, auto = gs.BlockGibbs("trees"), gs.BlockGibbs("auto")
    jobs: dict[str, Callable[[int], Any]] = {
        "single sites": run(gs.Gibbs(), n),
        "lines": run(lines, 2),
        "lines, 2 threads": run(lines, 2, 2),
        "strips": run(auto, 2),
        "strips, 2 threads": run(auto, 2, 2),
    }
    seen = race([Contestant(name, job, n, least=1) for name, job in jobs.items()], repetitions=repetitions, seconds=0.2)
    rows, data = [], {}
    for name in jobs:
        found = Spread.of([1e9 * t for t in seen[name].cpu])
        rows.append([f"{name}, {side:,} x {side:,}", f"{found.median:,.1f} ns a site", _range(found)])
        data[name] = found.to_dict()
    targets = []
    for name in ("lines", "strips"):
        cost = seen["single sites"].against(seen[name])  # how many times faster single sites are
        targets.append(Target.of(f"lattice by {name}, time of a sweep", cost, 6.0, least=False))
        both = seen[f"{name}, 2 threads"].against(seen[name], clock="wall")
        targets.append(Target.of(f"lattice by {name}, 2 threads against 1", both, 1.6))

    small = gs.ising_grid((30, 30), coupling=CRITICAL)
    ratios: dict[str, list[float]] = {"lines": [], "strips": []}
    for repetition in range(repetitions):
        single = effective(small, gs.Gibbs(), sweeps, repetition)
        ratios["lines"].append(effective(small, lines, sweeps, repetition) / single)
        ratios["strips"].append(effective(small, auto, sweeps, repetition) / single)
    for name, ratio in ratios.items():
        found = Spread.of(ratio)
        rows.append([f"{name}, critical 30 x 30", f"{found.median:,.1f} times the effective draws", _range(found)])
        data[f"{name}, effective"] = found.to_dict()
    targets.append(Target.of("critical lattice, effective draws per second", Spread.of(ratios["strips"]), 3.0))
    return Section("strips", targets, ["half of a lattice at a time", "processor time", "range"], rows, data)


def effective(model: gs.FactorGraph, kernel: gs.kernels.Kernel, sweeps: int, rng: int) -> float:
    """Return effective draws of the worst marginal for a second of processor time."""
    how: dict[str, Any] = {"scan": gs.Systematic(), "chains": 4, "rng": rng, "threads": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.errors.ConvergenceWarning)
        gs.sample(model, kernel, sweeps=10, **how)  # compiles
        began = time.process_time()
        result = gs.sample(model, kernel, sweeps=sweeps, **how)
        seconds = time.process_time() - began
    return min(min(each.values()) for each in result.ess.values()) / seconds


def _range(found: Spread) -> str:
    return f"{found.low:,.1f} .. {found.high:,.1f}"
