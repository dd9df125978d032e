"""Clusters at a critical point: how fast the squared magnetisation forgets, against single sites by color."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.measure import Spread
from benchmarks.report import Section, Target
from benchmarks.strips import CRITICAL

_SQUARE = 2  # among the moments of the magnetisation
# One of this number of sweeps of single sites is recorded: recording all would cost more than the sweeps.
_THIN = 32


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, repetitions, sweeps, single = (32, 2, 2_000, 100_000) if quick else (128, 3, 8_000, 2_000_000)
    model = gs.ising_grid((side, side), coupling=CRITICAL, periodic=True)
    kernels: dict[str, tuple[gs.kernels.Kernel, int, int]] = {
        "SwendsenWang": (gs.SwendsenWang(), sweeps, 1),
        "Wolff": (gs.Wolff(), sweeps, 1),
        "Gibbs by color": (gs.Gibbs(), single, _THIN),
    }
    rates: dict[str, list[float]] = {name: [] for name in kernels}
    times: dict[str, list[float]] = {name: [] for name in kernels}
    means: dict[str, Any] = {}
    for repetition in range(repetitions):
        start = draw_start(model, repetition)
        for name, (kernel, length, thin) in kernels.items():
            rate, tau, means[name] = forget(model, kernel, length, thin, start, repetition)
            rates[name].append(rate)
            times[name].append(tau)
    head = [
        f"critical {side} x {side}, squared magnetisation",
        "effective draws a second",
        "range",
        "time to forget, sweeps",
        "mean",
    ]
    rows, data = [], {}
    for name in kernels:
        rate, tau = Spread.of(rates[name]), Spread.of(times[name])
        value, error = means[name]
        span = f"{rate.low:,.3g} .. {rate.high:,.3g}"
        rows.append([name, f"{rate.median:,.4g}", span, f"{tau.median:,.4g}", f"{value:.4f} +- {error:.4f}"])
        data[name] = {"rate": rate.to_dict(), "tau": tau.to_dict()}
    pairs = zip(rates["SwendsenWang"], rates["Gibbs by color"], strict=True)
    ratio = Spread.of([ours / theirs for ours, theirs in pairs])
    targets = [] if quick else [Target.of("critical lattice, Swendsen-Wang against single sites", ratio, 20.0)]
    return Section("clusters", targets, head, rows, data)


def draw_start(model: gs.FactorGraph, rng: int) -> Any:
    """Return a typical state, so that no contestant starts far from equilibrium."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.errors.ConvergenceWarning)
        found = gs.sample(
            model, gs.SwendsenWang(), sweeps=1, warmup=500, chains=1, rng=rng, record="draws", **_silent()
        )
    return found.draws[0, -1].astype(np.int64)


def forget(
    model: gs.FactorGraph, kernel: gs.kernels.Kernel, sweeps: int, thin: int, start: Any, rng: int
) -> tuple[float, float, tuple[float, float]]:
    """Return effective draws a second of processor time, sweeps between them, and what was measured."""
    how: dict[str, Any] = {
        "record": gs.recorders.Magnetisation(),
        "start": start,
        "chains": 1,
        "threads": 1,
        "rng": rng,
        **_silent(),
    }
    warmup = 100 if isinstance(kernel, gs.Wolff) else 0  # in which it learns how many clusters make a sweep
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.errors.ConvergenceWarning)
        gs.sample(model, kernel, sweeps=gs.Sweeps(2 * thin, thin=thin), warmup=0, **how)  # compiles
        began = time.process_time()
        result = gs.sample(model, kernel, sweeps=gs.Sweeps(sweeps, thin=thin), warmup=warmup, **how)
        seconds = time.process_time() - began
    seen = result.observables["magnetisation"]
    worth = float(seen.ess[_SQUARE])
    return worth / seconds, sweeps / worth, (float(seen.mean[_SQUARE]), float(seen.mcse[_SQUARE]))


def _silent() -> dict[str, Any]:
    return {"progress": False, "criteria": gs.Criteria(dispersed_starts=False)}
