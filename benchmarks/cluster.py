"""Chains on local workers of Dask against threads: the same sweeps of the same model, by the clock."""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import Any

import gibbsite as gs
from benchmarks.measure import Spread
from benchmarks.report import Section, Target


def measure(*, quick: bool = False) -> list[Section]:
    """Race two workers against two threads; nothing without Dask."""
    if find_spec("distributed") is None:
        return []
    import distributed

    model = gs.ising_grid((200, 200), coupling=0.4)
    how: dict[str, Any] = {"scan": gs.Systematic(), "chains": 2, "rng": 1, "warmup": 0, "progress": False}
    how |= {"second_look": False, "threads": 2}
    seconds, repetitions = (6.0, 1) if quick else (60.0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sweeps = gs.sample(model, seconds=seconds, **how).draws
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            gs.sample(model, sweeps=2, on=client, **how)  # compiled
            times: dict[str, list[float]] = {"2 threads": [], "2 workers": []}
            for _ in range(repetitions):
                for name, on in (("2 threads", None), ("2 workers", client)):
                    began = time.perf_counter()
                    gs.sample(model, sweeps=sweeps, on=on, **how)
                    times[name].append(time.perf_counter() - began)
    ratios = [a / b for a, b in zip(*times.values(), strict=True)]
    spread = Spread.of(ratios)
    rows = [[name, f"{min(each):.2f} s"] for name, each in times.items()]
    target = Target.of("cluster: 2 workers against 2 threads", spread, 0.85)
    return [
        Section("cluster", [target], [f"{sweeps:,} sweeps of 40,000 sites, 2 chains", "time"], rows, times)
    ]
