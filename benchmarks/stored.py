"""Models in files: building and sampling random graphs that grow, each size in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.report import Section, Target

_PIECE = 1 << 22
_DEGREE = 20  # edges are ten times as many as sites
_SWEEPS = 3


def random_edges(edges: int, sites: int) -> Iterator[tuple[Any, Any, float]]:
    """Yield the edges of a random graph in pieces."""
    rng = np.random.default_rng(1)
    for begin in range(0, edges, _PIECE):
        size = min(_PIECE, edges - begin)
        a = rng.integers(0, sites, size, dtype=np.uint32)
        b = (a + rng.integers(1, sites, size, dtype=np.uint32)) % np.uint32(sites)
        yield a, b, 0.02


def _peak() -> float:
    """Return the megabytes of memory of this process that are no pages of files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.split("RssAnon:")[1].split()[0]) / 1024.0


def grow(edges: int, folder: str, sweeps: int = _SWEEPS) -> dict[str, float]:
    """Build a model of so many edges and sample it; return seconds and megabytes."""
    sites = max(2, 2 * edges // _DEGREE)
    first = gs.store_edges(random_edges(1000, 100), Path(folder, "small"), sites=100)  # compiled
    how: dict[str, Any] = {
        "chains": 1,
        "warmup": 0,
        "rng": 1,
        "threads": 1,
        "progress": False,
        "second_look": False,
        "record": gs.Marginals(batches=False, rao_blackwell=False),
    }
    gs.sample(first, sweeps=1, **how)
    began = time.perf_counter()
    model = gs.store_edges(random_edges(edges, sites), Path(folder, "model"), sites=sites)
    built, peak = time.perf_counter(), _peak()
    result = gs.sample(model, sweeps=sweeps, **how)
    seconds = time.perf_counter() - built
    size = sum(file.stat().st_size for file in model.path.iterdir())
    assert result.draws == sweeps
    return {
        "edges": edges,
        "build": built - began,
        "sweep": seconds / sweeps,
        "megabytes": max(peak, _peak()),
        "gigabytes on disk": size / 2**30,
    }


def _in_process(edges: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.stored", str(edges), folder],
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(*, quick: bool = False) -> Section:
    """Measure all sizes."""
    sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7, 10**8)
    seen = [_in_process(edges) for edges in sizes]
    rows = [
        [
            f"{one['edges']:,.0f} edges",
            f"{one['build']:.2f} s",
            f"{1e9 * one['build'] / one['edges']:.0f} ns",
            f"{one['sweep']:.3f} s",
            f"{1e9 * one['sweep'] / one['edges']:.0f} ns",
            f"{one['megabytes']:,.0f} MB",
            f"{one['gigabytes on disk']:.2f} GB",
        ]
        for one in seen
    ]
    small = next(one for one in seen if one["edges"] == 10**6)
    ratio = (seen[-1]["sweep"] / seen[-1]["edges"]) / (small["sweep"] / small["edges"])
    targets = [
        Target(f"stored: a sweep of {sizes[-1]:,} edges, per edge, of 10^6", ratio, 2.0, False, "10^6 edges"),
        Target("stored: memory of building", seen[-1]["megabytes"] / 1024.0, 4.0, False, "GB"),
    ]
    head = ["random graph", "built", "per edge", "sweep", "per edge", "memory", "on disk"]
    return Section("stored", targets, head, rows, {"sizes": seen})


if __name__ == "__main__":
    print(json.dumps(grow(int(sys.argv[1]), sys.argv[2])))
