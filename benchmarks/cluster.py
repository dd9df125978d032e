"""Local workers of Dask against threads: the same sweeps of the same model, by the clock.

Chains of their own, and one chain of a large lattice that workers share in partitions.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import Any

import gibbsite as gs
from benchmarks.measure import Spread
from benchmarks.report import Section, Target

_COMMON: dict[str, Any] = {"rng": 1, "progress": False, "criteria": gs.Criteria(dispersed_starts=False), "threads": 2}


def measure(*, quick: bool = False) -> list[Section]:
    """Race two workers against two threads; nothing without Dask."""
    if find_spec("distributed") is None:
        return []
    import distributed

    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")
        return [_race_chains(client, quick), _race_partitions(client, quick)]


def _seconds(model: Any, **how: Any) -> float:
    began = time.perf_counter()
    gs.sample(model, **_COMMON, **how)
    return time.perf_counter() - began


def _race_chains(client: Any, quick: bool) -> Section:
    model = gs.ising_grid((200, 200), coupling=0.4)
    how: dict[str, Any] = {"scan": gs.Systematic(), "chains": 2, "warmup": 0}
    seconds, repetitions = (6.0, 1) if quick else (60.0, 2)
    sweeps = gs.sample(model, seconds=seconds, **how, **_COMMON).n_draws
    _seconds(model, sweeps=2, on=client, **how)  # compiled
    times: dict[str, list[float]] = {"2 threads": [], "2 workers": []}
    for _ in range(repetitions):
        for name, on in (("2 threads", None), ("2 workers", client)):
            times[name].append(_seconds(model, sweeps=sweeps, on=on, **how))
    ratios = [a / b for a, b in zip(*times.values(), strict=True)]
    rows = [[name, f"{min(each):.2f} s"] for name, each in times.items()]
    target = Target.of("cluster: 2 workers against 2 threads", Spread.of(ratios), 0.85)
    return Section("cluster", [target], [f"{sweeps:,} sweeps of 40,000 sites, 2 chains", "time"], rows, times)


def _race_partitions(client: Any, quick: bool) -> Section:
    """Race one chain in two partitions: with marginals of every sweep, and with those of the last one."""
    side, sweeps, repetitions = (1000, 60, 1) if quick else (4000, 150, 3)
    model = gs.ising_grid((side, side), coupling=0.3)
    places: dict[str, dict[str, Any]] = {"2 threads": {}, "2 workers": {"on": gs.Cluster(client, partitions=2)}}
    runs: dict[str, dict[str, Any]] = {
        "recorded": {"warmup": 0, "sweeps": sweeps},
        "unrecorded": {"warmup": sweeps, "sweeps": 1},
        "unrecorded, twice as long": {"warmup": 2 * sweeps, "sweeps": 1},
    }
    for where in places.values():
        _seconds(model, chains=1, warmup=0, sweeps=2, **where)  # compiled
    times: dict[str, dict[str, list[float]]] = {run: {place: [] for place in places} for run in runs}
    for _ in range(repetitions):
        for run, how in runs.items():
            for place, where in places.items():
                times[run][place].append(_seconds(model, chains=1, **how, **where))
    targets = []
    for run in ("recorded", "unrecorded"):
        threads, workers = times[run].values()
        ratios = Spread.of([a / b for a, b in zip(threads, workers, strict=True)])
        targets.append(Target.of(f"cluster: 2 partitions against 2 threads, {run}", ratios, 0.6))
    # what the second half of the longer run takes, without what is done once: two supersteps in a sweep
    halves = {
        place: [long - short for long, short in zip(times["unrecorded, twice as long"][place], each, strict=True)]
        for place, each in times["unrecorded"].items()
    }
    extra = [500.0 * (b - a) / sweeps for a, b in zip(*halves.values(), strict=True)]
    targets.append(Target.of("cluster: overhead of a superstep", Spread.of(extra), 30.0, "ms", least=False))
    rows = [[run, *(f"{min(each):.2f} s" for each in found.values())] for run, found in times.items()]
    return Section("cluster", targets, [f"{sweeps} sweeps of {side:,} x {side:,} sites", *places], rows, times)
