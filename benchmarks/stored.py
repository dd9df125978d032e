"""Models in files: building and sampling random graphs that grow, each size in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.report import Section, Target

_PIECE = 1 << 22
_DEGREE = 20  # edges are ten times as many as sites


def random_edges(edges: int, sites: int, equal: bool) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the edges of a random graph in pieces; couplings are of either sign, or all equal."""
    rng = np.random.default_rng(1)
    for begin in range(0, edges, _PIECE):
        size = min(_PIECE, edges - begin)
        a = rng.integers(0, sites, size, dtype=np.uint32)
        b = (a + rng.integers(1, sites, size, dtype=np.uint32)) % np.uint32(sites)
        yield a, b, 0.02 if equal else np.where(rng.random(size, np.float32) < 0.5, 0.02, -0.02)


def _peak() -> float:
    """Return the megabytes of memory of this process that are no pages of files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.split("RssAnon:")[1].split()[0]) / 1024.0


def grow(edges: int, folder: str, equal: bool = False) -> dict[str, Any]:
    """Build a model of a number of edges and sample it; return seconds and megabytes.

    The first run, of one sweep, is timed by the clock. A sweep is what runs of several take longer than runs
    of one, in processor time, the least of seven of each; files have been read before.
    """
    sites = max(2, 2 * edges // _DEGREE)
    small = gs.formats.store_edges(random_edges(1000, 100, equal), Path(folder, "small"), sites=100)
    _sample(small, 1)  # compiled
    began = time.perf_counter()
    model = gs.formats.store_edges(random_edges(edges, sites, equal), Path(folder, "model"), sites=sites)
    built, peak = time.perf_counter(), _peak()
    first = _sample(model, 1)[0]
    more, times = max(2, 4 * 10**8 // edges), 1 if edges > 2 * 10**8 else 7
    once, several = (min(_sample(model, k)[1] for _ in range(times)) for k in (1, 1 + more))
    size = sum(file.stat().st_size for file in model.path.iterdir())
    return {
        "edges": edges,
        "equal": equal,
        "build": built - began,
        "first": first,
        "sweep": (several - once) / more,
        "megabytes": max(peak, _peak()),
        "gigabytes on disk": size / 2**30,
    }


def _sample(model: gs.models.StoredPairs, sweeps: int) -> tuple[float, float]:
    """Run one chain on one thread, recording marginals; return seconds of the clock and of the processor."""
    began, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(action="ignore"):  # a chain of a few sweeps does not converge
        result = gs.sample(
            model,
            sweeps=sweeps,
            chains=1,
            warmup=0,
            rng=1,
            threads=1,
            progress=False,
            criteria=gs.Criteria(dispersed_starts=False),
            record=gs.Marginals(batches=False, rao_blackwell=False),
        )
    assert result.n_draws == sweeps
    return time.perf_counter() - began, time.process_time() - busy


def _in_process(edges: int, equal: bool) -> dict[str, Any]:
    words = ["-m", "benchmarks.stored", str(edges)]
    with tempfile.TemporaryDirectory() as folder:
        words += [folder, *["equal"] * equal]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(*, quick: bool = False) -> Section:
    """Measure all sizes."""
    sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7, 10**8)
    seen = [_in_process(edges, equal) for equal in (False, True) for edges in sizes]
    rows = [
        [
            f"{one['edges']:,} edges{', equal couplings' * one['equal']}",
            f"{one['build']:.2f} s",
            f"{1e9 * one['build'] / one['edges']:.0f} ns",
            f"{one['first']:.2f} s",
            f"{one['sweep']:.4f} s",
            f"{1e9 * one['sweep'] / one['edges']:.1f} ns",
            f"{one['megabytes']:,.0f} MB",
            f"{one['gigabytes on disk']:.2f} GB",
        ]
        for one in seen
    ]
    pace = {(one["edges"], one["equal"]): one["sweep"] / one["edges"] for one in seen}
    largest = sizes[-1]
    targets = [
        Target(
            f"stored: time per edge, {largest:,} edges{', equal couplings' * equal}",
            pace[largest, equal] / pace[10**6, equal],
            2.0,
            False,
            "times 10^6 edges",
        )
        for equal in (False, True)
    ]
    memory = max(one["megabytes"] for one in seen)
    targets.append(Target("stored: memory of building", memory / 1024.0, 4.0, False, "GB"))
    head = ["random graph", "built", "per edge", "first run", "sweep", "per edge", "memory", "on disk"]
    return Section("stored", targets, head, rows, {"sizes": seen})


if __name__ == "__main__":
    print(json.dumps(grow(int(sys.argv[1]), sys.argv[2], "equal" in sys.argv[3:])))
