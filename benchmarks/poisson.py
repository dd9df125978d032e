"""Poisson-Gibbs: what an update costs as the number of factors grows, against plain Gibbs and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.loop import mover
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from gibbsite.kernels.minibatch.factors import local_energies

GAMMA, BETA, STATES = 1.5, 4.6, 10


def grid(side: int) -> NDArray[np.float64]:
    """Return the positions of a square grid."""
    axis = np.arange(float(side))
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def dense_potts(side: int) -> gs.FactorGraph:
    """Return the Potts model of the paper on a grid of any size: all pairs coupled, L = 5.09."""
    return gs.models.distance_potts(grid(side), STATES, GAMMA, BETA)


def mixture(size: int) -> gs.ContinuousModel:
    """Return the truncated mixture of the paper, its likelihood worth a hundred numbers."""
    rng = np.random.default_rng(1)
    data = rng.normal(rng.integers(0, 2, size).astype(float), np.sqrt(2.0))
    likelihood = gs.factors.mixture_factors([0, 1], data, sd=np.sqrt(2.0), weight=100.0 / size)
    prior = gs.factors.normal_factors([0, 1], 0.0, np.sqrt([10.0, 1.0]), always=True)
    box = gs.Interval(-6.0, 6.0)
    return gs.ContinuousModel({"x1": box, "x2": box}, [likelihood, prior])


def numpy_mover(model: gs.FactorGraph, size: float) -> Callable[[int], None]:
    """Return Poisson-Gibbs as one would write it down in NumPy: Poisson numbers of all factors of a site."""
    group: Any = model.group("couplings")
    at = group.positions
    bounds = group.beta * np.exp(-group.gamma * ((at[:, None] - at) ** 2).sum(axis=-1))
    np.fill_diagonal(bounds, 0.0)
    tau = size / bounds.sum(axis=1).max()
    rng, gain = np.random.default_rng(1), np.log1p(1.0 / tau)
    x = rng.integers(0, STATES, len(at))

    def move(steps: int) -> None:
        for k in range(steps):
            i = k % len(x)
            drawn = rng.poisson(bounds[i] * (tau + (x == x[i])))
            logs = gain * np.bincount(x, drawn, STATES)
            weights = np.exp(logs - logs.max())
            x[i] = rng.choice(STATES, p=weights / weights.sum())

    return move


def megabytes(side: int) -> float:
    """Return the peak memory of a process that builds a model and samples it."""
    mover(dense_potts(side), gs.PoissonGibbs(), kind="distance")(side * side)
    # not getrusage, whose peak is inherited from the process that started this one
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.split("VmHWM:")[1].split()[0]) / 1024.0


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    sides, repetitions = ((20, 40, 63), 3) if quick else ((20, 63, 200), 7)
    models = {side: dense_potts(side) for side in sides}
    size = local_energies(gs.graphs.compile_graph(models[20])).largest ** 2
    kernel = gs.PoissonGibbs(size)
    jobs: dict[str, tuple[Callable[[int], None], int]] = {}
    for side, model in models.items():
        n = side * side
        jobs[f"{n:,} sites: Poisson-Gibbs"] = mover(model, kernel, kind="distance"), 10_000
        jobs[f"{n:,} sites: Gibbs, couplings computed"] = (
            mover(model, gs.Gibbs(), kind="distance"),
            max(4, 10**6 // n),
        )
    stored = gs.graphs.compile_graph(models[20], "potts")
    assert stored.kind == "potts"
    jobs["400 sites: Gibbs, couplings stored"] = mover(models[20], gs.Gibbs(), kind="potts"), 10_000
    jobs["400 sites: Poisson-Gibbs, couplings stored"] = mover(models[20], kernel, kind="potts"), 10_000
    jobs["400 sites: NumPy"] = numpy_mover(models[20], size), 50
    group: Any = models[63].group("couplings")
    pairs = gs.potts((*group.scopes.T, group.edge_weights()), STATES)
    jobs["3,969 sites: Gibbs, couplings stored"] = mover(pairs, gs.Gibbs(), kind="potts"), 4000
    jobs["3,969 sites: Poisson-Gibbs, couplings stored"] = mover(pairs, kernel, kind="potts"), 4000
    posterior = mixture(100_000 if quick else 1_000_000)
    double: dict[str, Any] = {"method": "double", "degree": 20, "fine": 25}
    jobs["mixture: Gibbs-DA"] = mover(posterior, gs.kernels.ContinuousGibbs(**double)), 1
    jobs["mixture: PGDA"] = mover(posterior, gs.kernels.ContinuousGibbs(minibatch=500.0, **double)), 20
    contestants = [
        Contestant(name, lambda k, move=move, steps=steps: move(k * steps), steps, least=1)  # type: ignore[misc]
        for name, (move, steps) in jobs.items()
    ]
    seen = race(contestants, repetitions=repetitions, seconds=0.05)
    times = {name: Spread.of([1e9 * t for t in seen[name].cpu]) for name in jobs}
    rows = [[name, f"{t.median:,.0f} ns", f"{t.low:,.0f} .. {t.high:,.0f}"] for name, t in times.items()]
    data: dict[str, Any] = {name: t.to_dict() for name, t in times.items()}
    targets: list[Target] = []

    def ratio(name: str, slow: str, fast: str, bound: float) -> None:
        targets.append(Target.of(name, seen[fast].against(seen[slow]), bound))

    first, last = f"{sides[0] ** 2:,} sites", f"{sides[-1] ** 2:,} sites"
    growth = seen[f"{first}: Poisson-Gibbs"].against(seen[f"{last}: Poisson-Gibbs"])
    targets.append(Target.of(f"an update, {last} against {first}", growth, 1.5, least=False))
    for n, bound in (("3,969 sites", 20.0), ("40,000 sites", 200.0)):
        if f"{n}: Poisson-Gibbs" in jobs:
            name = f"{n}, Gibbs with computed couplings against Poisson-Gibbs"
            ratio(name, f"{n}: Gibbs, couplings computed", f"{n}: Poisson-Gibbs", bound)
    name, stored = "3,969 sites, Gibbs with stored couplings against", "3,969 sites: Gibbs, couplings stored"
    ratio(f"{name} Poisson-Gibbs", stored, "3,969 sites: Poisson-Gibbs", 20.0)
    # couplings of this few sites are stored separately
    few = "400 sites: Poisson-Gibbs, couplings stored"
    ratio("400 sites, NumPy against Poisson-Gibbs", "400 sites: NumPy", few, 100.0)
    if not quick:
        ratio("mixture of 10^6 numbers, Gibbs-DA against PGDA", "mixture: Gibbs-DA", "mixture: PGDA", 50.0)
    side = sides[-1]
    peak = float(run_fresh(f"from benchmarks.poisson import megabytes; print(megabytes({side}))"))
    rows.append([f"{last}: peak memory", f"{peak:,.0f} MB", ""])
    targets.append(Target(f"{last}: peak memory of the process", peak, 1000.0, False, "MB"))
    return Section("poisson", targets, ["Poisson-Gibbs", "an update", "range"], rows, data)
