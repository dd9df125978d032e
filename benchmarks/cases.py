"""Many cases of evidence on the alarm network: the whole command, from the file of cases to that of the answers.

pyAgrum and pgmpy answer fewer cases of the same file, one after another, in processes of the interpreter that the
environment variable ``GIBBSITE_PEERS_PYTHON`` names, by default the present one; those not installed are left out.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.report import Section, Target

TARGETS = ("LVFAILURE", "HYPOVOLEMIA", "DISCONNECT")
PEERS = {"pyagrum": 300, "pgmpy": 30}  # and how many cases they answer
_PATIENCE = 600.0  # seconds for a peer


def write_cases(model: gs.FactorGraph, rows: int, path: Path) -> None:
    """Draw cases and write them with half of the cells empty; those of targets are all empty."""
    rng = np.random.default_rng(1)
    codes = gs.solve_exact(model, task="PR").draw(rows, rng)
    codes[rng.random(codes.shape) < 0.5] = -1
    codes[:, [model.index(target) for target in TARGETS]] = -1
    labels = [model.labels(site) for site in range(model.n_sites)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(model.sites)
        for row in codes.tolist():
            writer.writerow(["" if code < 0 else each[code] for code, each in zip(row, labels, strict=True)])


def _seconds_here(*words: str) -> float:
    """Run the command line in a process of its own; return its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "gibbsite", *words, "--quiet"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _answer_there(name: str, network: Path, path: Path) -> dict[str, Any] | None:
    """Let another library answer; None if it is not installed or takes too long."""
    python = os.environ.get("GIBBSITE_PEERS_PYTHON", sys.executable)
    script = Path(__file__).with_name("cases_peers.py")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [python, str(script), name, str(network), str(path), str(PEERS[name]), *TARGETS]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_PATIENCE, env=environment)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(*, quick: bool = False) -> Section:
    """Answer the cases, and time it."""
    model, rows = gs.example("alarm"), 10_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as place:
        cases, out, network = Path(place) / "cases.csv", Path(place) / "out.csv", Path(place) / "alarm.bif"
        write_cases(model, rows, cases)
        gs.write_model(model, network)
        words = ("infer", str(network), "--cases", str(cases), "--query", ",".join(TARGETS), "-o", str(out))
        seconds = min(_seconds_here(*words) for _ in range(1 if quick else 3))
        with out.open(encoding="utf-8", newline="") as file:
            ours = [row[1:-2] for row in list(csv.reader(file))[1:]]
        targets = [Target(f"{rows:,} cases of alarm, whole command", seconds, 20.0, False, "s")]
        table = [["gibbsite", f"{rows:,}", f"{seconds:.2f}", f"{rows / seconds:,.0f}", ""]]
        data: dict[str, Any] = {"gibbsite": {"cases": rows, "seconds": seconds}}
        for peer in PEERS:
            if (theirs := _answer_there(peer, network, cases)) is None:
                continue
            many = len(theirs["answers"])
            apart = float(np.abs(np.array(ours[:many], float) - np.array(theirs["answers"])).max())
            table.append(
                [peer, f"{many:,}", f"{theirs['seconds']:.2f}", f"{many / theirs['seconds']:,.0f}", f"{apart:.1e}"]
            )
            data[peer] = {"cases": many, "seconds": theirs["seconds"], "apart": apart}
    return Section("cases", targets, ["library", "cases", "s", "cases/s", "largest difference"], table, data)
