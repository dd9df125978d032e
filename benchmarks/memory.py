"""Bytes per site of a compiled model of 10^6 sites and degree 4, each kind in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

from benchmarks.report import Section, Target

SIDE = 1000
#: Kind and model; the first two are what gibbsite chooses for binary pairwise models.
CASES = (
    ("lattice", "ising"),
    ("ising", "ising"),
    ("pairwise", "ising"),
    ("table", "ising"),
    ("potts", "uniform potts"),
)
BOUND = 60.0


def _resident() -> int | None:
    """Bytes of this process in memory, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def weigh(kind: str, model_name: str, side: int) -> dict[str, Any]:
    """Build and compile one model here; return what it takes."""
    import gibbsite as gs
    from benchmarks.workloads import grid
    from gibbsite._numba.jit import compile_always

    def build(length: int) -> gs.FactorGraph:
        if model_name == "ising":
            return grid("torus", length, periodic=True).model(kind)
        return gs.potts_grid((length, length), 3, 0.5, periodic=True)

    compile_always()
    gs.graphs.compile_graph(build(4), kind)  # what is loaded or compiled once is not the model's weight
    gc.collect()
    resident = _resident()
    tracemalloc.start()
    model = build(side)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    graph = gs.graphs.compile_graph(model, kind)
    gc.collect()
    both, peak = tracemalloc.get_traced_memory()
    del model
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    after = _resident()
    n = graph.n_sites
    return {
        "kind": kind,
        "model": model_name,
        "sites": n,
        "arrays": graph.nbytes / n,
        "kept": kept / n,
        "with_model": both / n,
        "peak": (peak - before) / n,
        "resident": None if resident is None or after is None else (after - resident) / n,
        "parts": {name: part.nbytes / n for name, part in graph.arrays._asdict().items() if hasattr(part, "nbytes")},
    }


def measure(*, quick: bool = False, side: int = SIDE) -> Section:
    """Weigh every kind."""
    results = []
    for kind, model in CASES[: 2 if quick else None]:
        call = [sys.executable, "-m", "benchmarks.memory", kind, model, str(side)]
        done = subprocess.run(
            call, cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=True
        )
        results.append(json.loads(done.stdout))
    targets, rows = [], []
    for seen in results:
        name = f"{seen['kind']} graph of {seen['model']}"
        if seen["kind"] in ("lattice", "ising"):
            for what, figure in (("arrays", seen["arrays"]), ("whole graph", seen["kept"])):
                text = f"{name}, {seen['sites']:,} sites: {what}"
                # rounded, for the row starts have one entry more than there are sites
                targets.append(Target(text, round(figure, 2), BOUND, False, "B/site"))
        resident = "" if seen["resident"] is None else f"{seen['resident']:.1f}"
        figures = [f"{seen[key]:.1f}" for key in ("arrays", "kept", "with_model", "peak")]
        rows.append([name, *figures, resident])
    head = ["bytes per site", "arrays", "whole graph", "with the model", "peak of compiling", "resident"]
    return Section("memory", targets, head, rows, results)


if __name__ == "__main__":
    print(json.dumps(weigh(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
