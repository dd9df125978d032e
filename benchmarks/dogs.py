"""DoGS: bounds on influence, bounds of scans and optimised scans on large grids, in time and memory."""

from __future__ import annotations

import gc
import math
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from gibbsite.inference.influence.descent import descend, make_workspace
from gibbsite.inference.influence.variation import OrderDecay
from gibbsite.lab.dogs.dobrushin import paper_order, random_grid


def paper_grid(side: int) -> gs.FactorGraph:
    """Return the model of the paper: fields 0 or 1, couplings uniform between 0 and 0.25."""
    return random_grid(side, np.random.default_rng(1))


def choose(model: gs.FactorGraph, scan: gs.scans.Scan) -> gs.influence.DogsScan:
    """Do the whole job: influence, the bound of two sweeps, the shortest scan as good for one corner."""
    influence = gs.influence.bound_influence(model)
    goal = gs.certify(model, scan=scan, sweeps=2, target=0, influence=influence).variation
    return gs.dogs(model, target=0, accuracy=goal, initial=scan, influence=influence)


def bytes_per_site(side: int) -> float:
    """Return the peak memory of the whole job beyond the model, in a process that has loaded everything."""
    choose(paper_grid(10), paper_order(100))
    model = paper_grid(side)
    scan = paper_order(model.n_sites)
    gc.collect()
    tracemalloc.start()
    choose(model, scan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / model.n_sites


def seconds(job: Callable[[], Any], repetitions: int) -> Spread:
    """Time a job, warm."""
    job()
    times = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        job()
        times.append(time.perf_counter() - begun)
    return Spread.of(times)


def per_step(side: int, repetitions: int, sweeps: int = 1) -> Spread:
    """Return nanoseconds per step of optimising sweeps for all sites."""
    influence = gs.influence.bound_influence(paper_grid(side))
    n = influence.n_sites
    workspace, scan = make_workspace(influence, np.ones(n)), np.resize(np.arange(n, dtype=np.int32), sweeps * n)
    job = Contestant("descend", lambda k: [descend(influence, workspace, scan) for _ in range(k)], scan.size, least=1)
    times = race([job], repetitions=repetitions, seconds=0.2)["descend"]
    return Spread.of([1e9 * t for t in times.cpu])


def walk_rate(side: int, repetitions: int) -> Spread:
    """Return million steps per second of evaluating a systematic scan."""
    influence = gs.influence.bound_influence(paper_grid(side))
    n = influence.n_sites
    decay = OrderDecay(influence, np.ones(n), np.arange(n, dtype=np.int32))
    job = Contestant("walk", lambda k: decay.values(np.array([k * n])), n, least=2)
    rate = race([job], repetitions=repetitions, seconds=0.2)["walk"].rate
    return Spread(*(each / 1e6 for each in (rate.median, rate.low, rate.high)))


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, repetitions = (200, 3) if quick else (1000, 5)
    targets: list[Target] = []
    rows: list[list[str]] = []
    data: dict[str, Any] = {}

    def keep(name: str, seen: Spread, unit: str, bound: float | None = None, least: bool = False) -> None:
        spread = f"{seen.low:.3g} .. {seen.high:.3g}"
        rows.append([name, f"{seen.median:.3g} {unit}", spread])
        data[name] = seen.to_dict()
        if bound is not None:
            targets.append(Target(name, seen.median, bound, least, unit, spread))

    model = paper_grid(side)
    scan, grid = paper_order(model.n_sites), f"{side} x {side}"
    keep(f"{grid}: influence", seconds(lambda: gs.influence.bound_influence(model), repetitions), "s")
    keep(
        f"{grid}: influence, two sweeps bounded, scan for a corner",
        seconds(lambda: choose(model, scan), repetitions),
        "s",
        1.0,
    )
    found = run_fresh(f"from benchmarks.dogs import bytes_per_site; print(bytes_per_site({side}))")
    keep(f"{grid}: peak memory of it per site", Spread.of([float(found)]), "B", 200.0)
    influence = gs.influence.bound_influence(model)
    whole = seconds(lambda: gs.dogs(model, steps=model.n_sites, influence=influence), repetitions)
    keep(f"{grid}: a sweep optimised for all sites", whole, "s", 20.0)
    keep(f"{grid}: steps of a systematic scan bounded", walk_rate(side, repetitions), "million/s", 20.0, least=True)
    sides = (32, 100, 200) if quick else (100, 316, 1000)
    costs = {each: per_step(each, repetitions) for each in sides}
    for each, cost in costs.items():
        keep(f"{each} x {each}: one step of a sweep optimised for all sites", cost, "ns")
        keep(f"{each} x {each}: one step of three sweeps", per_step(each, repetitions, 3), "ns")
    first, last = costs[sides[0]], costs[sides[-1]]
    allowed = math.log(sides[-1]) / math.log(sides[0])
    name = f"one step, {sides[-1]} x {sides[-1]} against {sides[0]} x {sides[0]} (logarithms: {allowed:.2f})"
    targets.append(Target(name, last.median / first.median, allowed, False, "times"))
    return Section("dogs", targets, ["DoGS", "seen", "range"], rows, data)
