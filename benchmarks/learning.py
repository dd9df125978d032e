"""Networks learned from cases: seconds, score and distance from the true structure, beside pyAgrum and pgmpy.

Cases are drawn from networks of the data folder. Others run in processes of their own, of the interpreter that the
environment variable ``GIBBSITE_PEERS_PYTHON`` names, by default the present one; those that are not installed are left
out.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.data import DATA
from benchmarks.report import Section, Target

NETWORKS = ("sachs", "child", "insurance", "alarm")
PEERS = ("pyagrum", "pgmpy")
_PATIENCE = 900.0  # seconds for a peer


def write_cases(model: gs.FactorGraph, rows: int, path: Path) -> None:
    """Draw cases and write them as text; states are numbered, as in no library they need their names."""
    codes = gs.solve_exact(model, task="PR").draw(rows, np.random.default_rng(1))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(model.sites)
        writer.writerows([[f"s{code}" for code in row] for row in codes.tolist()])


def _timed(function: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return the result and the least processor time of several calls, the first of which compiles."""
    found = function()
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        found = function()
        seconds.append(time.process_time() - begun)
    return found, min(seconds)


def learn_here(path: Path, restarts: int, repeats: int) -> dict[str, Any]:
    """Do what the others do: read, search by BIC, count the tables."""
    cases, read = _timed(lambda: gs.learn.read_cases(path), repeats)
    fit, searched = _timed(
        lambda: gs.learn.learn_structure(cases, method="hill", restarts=restarts, progress=False), repeats
    )
    _, tables = _timed(lambda: gs.learn.fit_tables(cases, fit, prior="k2", progress=False), repeats)
    return {"edges": fit.edges, "read": read, "search": searched, "tables": tables}


def learn_there(name: str, path: Path) -> dict[str, Any] | None:
    """Let another library learn; None if it is not installed or takes too long."""
    python = os.environ.get("GIBBSITE_PEERS_PYTHON", sys.executable)
    script = Path(__file__).with_name("learning_peers.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            [python, str(script), name, str(path)],
            capture_output=True,
            text=True,
            check=True,
            timeout=_PATIENCE,
            env=environment,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(*, quick: bool = False) -> Iterator[Section]:
    """Race the learning of structures and tables; nothing without the data."""
    folder, rows = DATA / "bif", 2000 if quick else 10_000
    if not folder.is_dir():
        return
    targets, table, data = [], [], {}
    with tempfile.TemporaryDirectory() as place:
        for name in NETWORKS:
            model, path = gs.read_model(folder / f"{name}.bif.gz"), Path(place) / f"{name}.csv"
            write_cases(model, rows, path)
            cases = gs.learn.read_cases(path)
            repeats = 2 if quick else 5
            found = {
                "gibbsite, one climb": learn_here(path, 0, repeats),
                "gibbsite, 10 restarts": learn_here(path, 10, repeats),
            }
            found |= {peer: one for peer in PEERS if (one := learn_there(peer, path)) is not None}
            for who, one in found.items():
                one["bic"] = gs.learn.score_structure(cases, one["edges"])
                one["distance"] = gs.learn.structural_distance(one["edges"], model)
                numbers = [f"{one[key] * 1e3:.1f}" for key in ("read", "search", "tables")]
                table.append([f"{name}, {who}", *numbers, f"{one['bic']:.1f}", str(one["distance"])])
            ours, best = found["gibbsite, one climb"], found["gibbsite, 10 restarts"]
            for peer in PEERS:
                if (theirs := found.get(peer)) is None:
                    continue
                targets.append(Target(f"{name}, search", theirs["search"] / ours["search"], 5.0, True, peer))
                targets.append(Target(f"{name}, tables", theirs["tables"] / ours["tables"], 5.0, True, peer))
                targets.append(Target(f"{name}, BIC above, one climb", ours["bic"] - theirs["bic"], -1e-6, True, peer))
                more = theirs["distance"] - best["distance"]
                targets.append(Target(f"{name}, nearer to the truth, 10 restarts", more, 0.0, True, peer))
            data[name] = {who: {key: one[key] for key in one if key != "edges"} for who, one in found.items()}
    head = ["network", "reading ms", "search ms", "tables ms", "BIC", "distance"]
    yield Section("learning", targets, head, table, data)
