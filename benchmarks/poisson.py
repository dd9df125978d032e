"""Poisson-Gibbs: what an update costs as the number of factors grows, against plain Gibbs and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from gibbsite._random import stream
from gibbsite.kernel.base import alone
from gibbsite.kernel.minibatch import local_energies
from gibbsite.run.chain import advance, start_chain
from gibbsite.run.record import lay_out

GAMMA, BETA, STATES = 1.5, 4.6, 10


def grid(side: int) -> NDArray[np.float64]:
    """Return the positions of a square grid."""
    axis = np.arange(float(side))
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def dense_potts(side: int) -> gs.FactorGraph:
    """Return the Potts model of the paper on a grid of any size: all pairs coupled, L = 5.09."""
    return gs.kernel_potts(grid(side), STATES, GAMMA, BETA)


def mover(model: gs.Model, kernel: gs.Kernel, kind: str) -> Callable[[int], None]:
    """Return a function that makes steps of the compiled loop, recording nothing."""
    graph, scan = gs.compile_graph(model, kind), gs.Systematic()
    layout = lay_out(model, graph, kernel, gs.Draws([]))
    rng = np.random.default_rng(1)
    x0 = rng.integers(0, STATES, model.n_sites) if graph.discrete else model.draw_start(rng)
    state = start_chain(graph, kernel, scan, x0, stream(1, 0), layout.conditional)
    tape, parameters = layout.empty_tape(graph), kernel.parameters(graph)
    schedule = scan.schedule(graph, model)

    def move(steps: int) -> None:
        advance(parameters, graph.arrays, schedule, state, tape, 1, steps, False, alone())

    return move


def mixture(size: int) -> gs.ContinuousModel:
    """Return the truncated mixture of the paper, its likelihood worth a hundred numbers."""
    rng = np.random.default_rng(1)
    data = rng.normal(rng.integers(0, 2, size).astype(float), np.sqrt(2.0))
    likelihood = gs.mixture_factors([0, 1], data, sd=np.sqrt(2.0), weight=100.0 / size)
    prior = gs.normal_factors([0, 1], 0.0, np.sqrt([10.0, 1.0]), always=True)
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
    mover(dense_potts(side), gs.PoissonGibbs(), "kernel")(side * side)
    # not getrusage, whose peak is inherited from the process that started this one
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.split("VmHWM:")[1].split()[0]) / 1024.0


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    sides, repetitions = ((20, 40, 63), 3) if quick else ((20, 63, 200), 7)
    models = {side: dense_potts(side) for side in sides}
    size = local_energies(gs.compile_graph(models[20])).largest ** 2
    kernel = gs.PoissonGibbs(size)
    jobs: dict[str, tuple[Callable[[int], None], int]] = {}
    for side, model in models.items():
        n = side * side
        jobs[f"{n:,} sites: Poisson-Gibbs"] = mover(model, kernel, "kernel"), 10_000
        jobs[f"{n:,} sites: Gibbs, couplings computed"] = (
            mover(model, gs.Gibbs(), "kernel"),
            max(4, 10**6 // n),
        )
    stored = gs.compile_graph(models[20], "potts")
    assert stored.kind == "potts"
    jobs["400 sites: Gibbs, couplings stored"] = mover(models[20], gs.Gibbs(), "potts"), 10_000
    jobs["400 sites: Poisson-Gibbs, couplings stored"] = mover(models[20], kernel, "potts"), 10_000
    jobs["400 sites: NumPy"] = numpy_mover(models[20], size), 50
    group: Any = models[63].group("couplings")
    pairs = gs.potts((*group.scopes.T, group.edge_weights()), STATES)
    jobs["3,969 sites: Gibbs, couplings stored"] = mover(pairs, gs.Gibbs(), "potts"), 4000
    jobs["3,969 sites: Poisson-Gibbs, couplings stored"] = mover(pairs, kernel, "potts"), 4000
    posterior = mixture(100_000 if quick else 1_000_000)
    double: dict[str, Any] = {"method": "double", "degree": 20, "fine": 25}
    jobs["mixture: Gibbs-DA"] = mover(posterior, gs.ContinuousGibbs(**double), "functions"), 1
    jobs["mixture: PGDA"] = mover(posterior, gs.ContinuousGibbs(minibatch=500.0, **double), "functions"), 20
    contestants = [
        Contestant(name, lambda k, move=move, steps=steps: move(k * steps), steps, least=1)  # type: ignore[misc]
        for name, (move, steps) in jobs.items()
    ]
    seen = race(contestants, repetitions=repetitions, seconds=0.05)
    times = {name: Spread.of([1e9 * t for t in seen[name].cpu]) for name in jobs}
    rows = [[name, f"{t.median:,.0f} ns", f"{t.low:,.0f} .. {t.high:,.0f}"] for name, t in times.items()]
    data: dict[str, Any] = {name: t.to_dict() for name, t in times.items()}
    targets: list[Target] = []

    def ratio(name: str, slow: str, fast: str, bound: float, least: bool = True) -> None:
        each = [a / b for a, b in zip(seen[slow].cpu, seen[fast].cpu, strict=True)]
        found = Spread.of(each)
        targets.append(
            Target(name, found.median, bound, least, "times", f"{found.low:.3g} .. {found.high:.3g}")
        )

    first, last = f"{sides[0] ** 2:,} sites", f"{sides[-1] ** 2:,} sites"
    ratio(
        f"an update, {last} against {first}",
        f"{last}: Poisson-Gibbs",
        f"{first}: Poisson-Gibbs",
        1.5,
        least=False,
    )
    for n, bound in (("3,969 sites", 20.0), ("40,000 sites", 200.0)):
        if f"{n}: Poisson-Gibbs" in jobs:
            ratio(
                f"{n}, Gibbs with computed couplings against Poisson-Gibbs",
                f"{n}: Gibbs, couplings computed",
                f"{n}: Poisson-Gibbs",
                bound,
            )
    ratio(
        "3,969 sites, Gibbs with stored couplings against Poisson-Gibbs",
        "3,969 sites: Gibbs, couplings stored",
        "3,969 sites: Poisson-Gibbs",
        20.0,
    )
    ratio("400 sites, NumPy against Poisson-Gibbs", "400 sites: NumPy", "400 sites: Poisson-Gibbs", 100.0)
    if not quick:
        ratio("mixture of 10^6 numbers, Gibbs-DA against PGDA", "mixture: Gibbs-DA", "mixture: PGDA", 50.0)
    side = sides[-1]
    peak = float(run_fresh(f"from benchmarks.poisson import megabytes; print(megabytes({side}))"))
    rows.append([f"{last}: peak memory", f"{peak:,.0f} MB", ""])
    targets.append(Target(f"{last}: peak memory of the process", peak, 1000.0, False, "MB"))
    return Section("poisson", targets, ["Poisson-Gibbs", "an update", "range"], rows, data)
