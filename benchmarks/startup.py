"""Seconds until something happens: import, model building, first sample; each in fresh processes.

The figure is the smallest time of several repetitions: what the machine does besides can only add to it. The
processor time stands beside it; where it is much smaller, the machine was busy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import Section, Target

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("numba", "xarray", "matplotlib", "scipy", "numpy", "networkx", "pandas", "arviz", "rich", "click")
FORBIDDEN = ("numba", "xarray", "matplotlib")

_HEAD = """
import time
clock = time.perf_counter
began, cpu = clock(), time.process_time()
marks = {}
import gibbsite as gs
marks["import"] = clock() - began
"""
_TAIL = f"""
import json, sys
marks["all"], marks["cpu"] = clock() - began, time.process_time() - cpu
loaded = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps({{**marks, "loaded": loaded, "compiled": bool(globals().get("compiled"))}}))
"""
_IMPORT = _HEAD + _TAIL
_MODEL_LAYER = _HEAD + "gs.FactorGraph, gs.ising_grid, gs.Gibbs, gs.Systematic\n" + _TAIL
_LATTICE = (
    _HEAD
    + """
import numpy as np
coupling = np.random.default_rng(1).random((2, 1000, 1000))
gs.graphs.compile_graph(gs.ising_grid((2, 2)))  # load what is loaded once
now = clock()
model = gs.ising_grid((1000, 1000), coupling=coupling, field=0.1)
marks["build"] = clock() - now
now = clock()
gs.graphs.compile_graph(model)
marks["compile"] = clock() - now
"""
    + _TAIL
)
_SPARSE = (
    _HEAD
    + """
import numpy as np, scipy.sparse
n = 1_000_000
i = np.arange(n)
j = np.concatenate([(i + 1) % n, (i + 1000) % n])
w = np.random.default_rng(1).random(2 * n)
matrix = scipy.sparse.coo_array((w, (np.concatenate([i, i]), j)), shape=(n, n)).tocsr()
matrix = matrix + matrix.T
gs.graphs.compile_graph(gs.ising(matrix[:5, :5]))  # load what is loaded once
now = clock()
model = gs.ising(matrix, np.zeros(n))
marks["build"] = clock() - now
now = clock()
gs.graphs.compile_graph(model)
marks["compile"] = clock() - now
"""
    + _TAIL
)
_SAMPLE = """
import warnings
from gibbsite._numba.jit import on_compile
compiled = []
with warnings.catch_warnings(), on_compile(lambda: compiled.append(1)):
    warnings.simplefilter("ignore")  # ten sweeps are too few, and the run says so
    gs.sample(model, sweeps=10, rng=1, progress=False)
"""
_FIRST_LATTICE = _HEAD + "model = gs.ising_grid((100, 100), coupling=0.2)\n" + _SAMPLE + _TAIL
_FIRST_PAIRS = (
    _HEAD
    + """
import numpy as np
i = np.arange(10_000)
j = np.concatenate([(i + 1) % i.size, (i + 100) % i.size])
model = gs.ising((np.concatenate([i, i]), j, np.random.default_rng(1).random(j.size) - 0.5))
"""
    + _SAMPLE
    + _TAIL
)


def run_fresh(code: str, **environment: str) -> dict[str, Any]:
    """Run code in a fresh process; return the dictionary it prints."""
    # as at a user's, modules are compiled to bytecode once
    around = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**around, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"a fresh process failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def best(code: str, repetitions: int, warm: bool = True) -> dict[str, Any]:
    """Return the smallest of each mark over repetitions, after one that fills caches."""
    run_fresh(code)
    seen = [run_fresh(code) for _ in range(repetitions)]
    # another process may have emptied the cache, or the sources have changed: that is not warm
    seen = [marks for marks in seen if not (warm and marks["compiled"])] or seen
    times = [key for key, value in seen[0].items() if isinstance(value, float)]
    return {**seen[0], **{key: min(marks[key] for marks in seen) for key in times}}


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    several = 3 if quick else 9
    targets, rows, data = [], [], {}

    def keep(name: str, marks: dict[str, Any]) -> dict[str, Any]:
        parts = [f"{key} {marks[key]:.3f}" for key in ("import", "build", "compile") if key in marks]
        loaded = " ".join(marks["loaded"])
        rows.append([name, f"{marks['all']:.3f}", f"{marks['cpu']:.3f}", ", ".join(parts), loaded])
        data[name] = marks
        return marks

    seen = keep("import gibbsite", best(_IMPORT, several))
    targets.append(Target("import gibbsite", round(seen["import"], 4), 0.15, False, "s"))
    bad = [name for name in FORBIDDEN if name in seen["loaded"]]
    targets.append(Target("heavy modules loaded by import gibbsite", len(bad), 0, False, "modules", " ".join(bad)))
    keep("import and the names of a model and a kernel", best(_MODEL_LAYER, several))
    for name, code in (
        ("first sample, lattice of 10^4 sites, warm cache", _FIRST_LATTICE),
        ("first sample, 10^4 sites in pairs, warm cache", _FIRST_PAIRS),
    ):
        seen = keep(name, best(code, several))
        targets.append(Target(name, seen["all"], 0.7, False, "s", f"cpu {seen['cpu']:.2f}"))
    if not quick:
        with tempfile.TemporaryDirectory() as folder:
            seen = run_fresh(_FIRST_LATTICE, GIBBSITE_CACHE_DIR=folder)
        keep("first sample, lattice of 10^4 sites, cold cache", seen)
    seen = keep("lattice of 1000 x 1000 sites", best(_LATTICE, 3, warm=False))
    both = seen["build"] + seen["compile"]
    targets.append(Target("build and compile a 1000 x 1000 lattice", both, 2.0, False, "s"))
    if not quick:
        keep("10^6 sites from a sparse matrix", best(_SPARSE, 3, warm=False))
    return Section("startup", targets, ["seconds", "all", "cpu", "of it", "loaded"], rows, data)
