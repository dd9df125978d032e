"""Best states: what a search finds in a given time, against known optima and other programs.

    python -m benchmarks.best --out best.jsonl                    # every case; again: only what is missing
    python -m benchmarks.best --out best.jsonl --only map_promedas --only gset
    python -m benchmarks.best --out best.jsonl --race             # other programs at equal time
    python -m benchmarks.best --out best.jsonl --page docs/best_results.md

Models come from the folder of data (``GIBBSITE_DATA``). Time is processor time of one thread, so that a busy
machine disturbs little. A case is given a tenth of the time first, and all of it, from the beginning, if
the best known value was not reached. Each case is a line of the file, written when it is done.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from benchmarks.data import DATA
from gibbsite.inference.best_states import searcher
from gibbsite.inference.best_states.search import search_best

GLASSES = tuple(f"{size}x{size}" for size in (4, 6, 8, 10, 16))
CUTS = ("biqmac_ising", "biqmac_rudy", "gset")
FAMILIES = ("map_imagealignment", "map_promedas", "map_segmentation", "map_wcsp")
# Cases of races, and how many seeds each.
RACED = ("G1", "G11", "G12", "ising2.5-200_5555", "t2g20_5555", "pm1d_80.0", "pw05_100.0")


class Case(NamedTuple):
    """A model, the best log-potential known, how far that is rounded; pairs and couplings of spins."""

    family: str
    name: str
    model: gs.FactorGraph
    known: float
    rounding: float
    pairs: Any = None
    couplings: Any = None


def list_cases(only: list[str]) -> Iterator[Case]:
    """Yield all cases of the families asked for."""
    for size in GLASSES:
        if _wanted(f"glass{size}", only):
            yield from _glasses(size)
    for family in CUTS:
        if _wanted(family, only):
            yield from _cuts(family)
    for family in FAMILIES:
        if _wanted(family, only):
            yield from _uai(family)


def _wanted(family: str, only: list[str]) -> bool:
    return not only or family in only


def _glasses(size: str) -> Iterator[Case]:
    with gzip.open(DATA / f"physics/spinglass_torus/{size}.json.gz") as file:
        told = json.load(file)
    for one in told["instances"]:
        pairs = np.array([[i, j] for i, j, _ in one["edges"]])
        weights = np.array([w for _, _, w in one["edges"]])
        n = int(told["L"]) ** 2
        known = -n * one["ground_state_energy_per_spin_published"]
        model = gs.FactorGraph(n, groups=[gs.factors.SpinFactors(pairs, -weights)], states=[-1, 1])
        yield Case(f"glass{size}", f"glass{size}-{one['id']}", model, known, 3e-6 * n, pairs, -weights)


def _cuts(family: str) -> Iterator[Case]:
    told = json.loads((DATA / f"physics/{family}/reference.json").read_text())
    for path in sorted((DATA / f"physics/{family}").glob("*.gz")):
        name = path.name.removesuffix(".gz").removesuffix(".txt")
        cut = told["max_cut"][name] if "max_cut" in told else told[name]["best_known_cut"]
        with gzip.open(path, "rt") as file:
            words = file.read().split()
        n, m = int(words[0]), int(words[1])
        rows = np.array(words[2 : 2 + 3 * m], float).reshape(-1, 3)
        pairs, weights = rows[:, :2].astype(int) - 1, rows[:, 2]
        model = gs.FactorGraph(n, groups=[gs.factors.SpinFactors(pairs, -weights / 2)], states=[-1, 1])
        yield Case(family, name, model, cut - weights.sum() / 2, 1e-6, pairs, -weights / 2)


def _uai(family: str) -> Iterator[Case]:
    for told in json.loads((DATA / "uai/index.json").read_text()):
        if told["family"] == family:
            path = DATA / "uai" / (told["path"] + ".uai.gz")
            model = gs.read_model(path)
            words = [int(w) for w in path.with_suffix(".evid").read_text().split()]
            seen = {str(i): model.labels(i)[x] for i, x in zip(words[1::2], words[2::2], strict=False)}
            known = told["map_log10_score"] * math.log(10)
            yield Case(family, told["name"], model.observe(seen) if seen else model, known, 1e-6)


def search(case: Case, seconds: float, seed: int) -> tuple[float, float]:
    """Return the log-potential that a search reaches, and the processor time it took."""
    searcher._CLOCK[0] = time.process_time
    begun = time.process_time()
    found = search_best(case.model, seconds=seconds, rng=seed, progress=False, threads=1)
    return found.log_potential, time.process_time() - begun


def measure(case: Case, seconds: float) -> dict[str, Any]:
    """Return what a search finds: in a tenth of the time, or else in all of it."""
    value, used = search(case, seconds / 10, 1)
    limit = seconds / 10
    if value < case.known - case.rounding:
        value, used = search(case, seconds, 1)
        limit = seconds
    return {"reached": value, "limit": limit, "cpu": used}


def contestants() -> dict[str, Callable[[Any, int], float]]:
    """Return one call of each other program that is installed: problem and seed to the energy it finds."""
    found: dict[str, Callable[[Any, int], float]] = {}
    try:
        from dwave.samplers import SimulatedAnnealingSampler, SteepestDescentSampler, TabuSampler

        found["dwave tabu"] = lambda bqm, s: TabuSampler().sample(bqm, timeout=200, seed=s).first.energy
        found["dwave steepest descent"] = lambda bqm, s: (
            SteepestDescentSampler().sample(bqm, num_reads=100, seed=s).first.energy
        )
        found["dwave annealing"] = lambda bqm, s: (
            SimulatedAnnealingSampler().sample(bqm, num_reads=4, num_sweeps=1000, seed=s).first.energy
        )
    except ImportError:
        pass
    try:
        import openjij

        found["openjij annealing"] = lambda bqm, s: (
            openjij.SASampler().sample(bqm, num_reads=2, num_sweeps=1000, seed=s).first.energy
        )
        found["openjij quantum annealing"] = lambda bqm, s: (
            openjij.SQASampler().sample(bqm, num_reads=1, num_sweeps=500, seed=s).first.energy
        )
    except ImportError:
        pass
    return found


def race(case: Case, seconds: float, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the median over seeds of what each program finds in equal processor time, over and over."""
    import dimod

    links = {(int(i), int(j)): -float(w) for (i, j), w in zip(case.pairs, case.couplings, strict=True)}
    bqm = dimod.BinaryQuadraticModel.from_ising({}, links)
    search(case, 0.1, 1)
    ours = [search(case, seconds, seed)[0] for seed in range(1, seeds + 1)]
    yield {"program": "gibbsite", "median": statistics.median(ours), "least": min(ours)}
    for name, call in contestants().items():
        reached = []
        for seed in range(1, seeds + 1):
            best, begun, turn = -math.inf, time.process_time(), 0
            while time.process_time() - begun < seconds:
                best = max(best, -call(bqm, 1000 * seed + turn))
                turn += 1
            reached.append(best)
        yield {"program": name, "median": statistics.median(reached), "least": min(reached)}


def read_commit() -> str:
    """Return the commit that is measured, with a plus sign if files were changed since."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"


def write_page(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the tables."""
    lines = ["# Best states: results", "", "Made by `python -m benchmarks.best --out FILE --page PAGE`.", ""]
    lines += [
        "| family | cases | best known reached | within 0.1 % | not reached (difference) | commit |",
        "|---|---|---|---|---|---|",
    ]
    searched = [row for row in rows if "reached" in row]
    for family in dict.fromkeys(row["family"] for row in searched):
        own = [row for row in searched if row["family"] == family]
        short = [row for row in own if row["reached"] < row["known"] - row["rounding"]]
        near = [row for row in own if row["reached"] >= row["known"] - 1e-3 * abs(row["known"])]
        missed = ", ".join(f"{row['name']} ({row['reached'] - row['known']:.6g})" for row in short)
        commits = ", ".join(dict.fromkeys(row["commit"] for row in own))
        lines.append(f"| {family} | {len(own)} | {len(own) - len(short)} | {len(near)} | {missed} | {commits} |")
    above = [r for r in searched if r["reached"] > r["known"] + max(r["rounding"], 1e-3)]
    lines += [
        "",
        "Better than the best known: "
        + (", ".join(f"{r['name']} (by {r['reached'] - r['known']:.6g})" for r in above) or "none")
        + ".",
    ]
    raced = [row for row in rows if "program" in row]
    if raced:
        programs = list(dict.fromkeys(row["program"] for row in raced))
        lines += [
            "",
            f"Median log-potential over seeds at equal processor time "
            f"({raced[0]['seconds']:g} s, {raced[0]['seeds']} seeds):",
            "",
        ]
        lines += ["| case | " + " | ".join(programs) + " |", "|---|" + "---|" * len(programs)]
        for name in dict.fromkeys(row["name"] for row in raced):
            own = {row["program"]: row["median"] for row in raced if row["name"] == name}
            lines.append(f"| {name} | " + " | ".join(f"{own[p]:.10g}" if p in own else "" for p in programs) + " |")
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure what is missing in the file, and write the page."""
    parser = argparse.ArgumentParser(description="What a search for best states finds.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--race", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore", gs.errors.ConvergenceWarning)
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(row["name"], "program" in row) for row in rows}
    commit = read_commit()
    for case in [] if given.page else list_cases(given.only):
        about = {"family": case.family, "name": case.name, "known": case.known, "rounding": case.rounding}
        about["commit"] = commit
        if (case.name, given.race) in done or (given.race and case.name not in RACED):
            continue
        if given.race:
            new = [
                {**about, "seconds": given.seconds, "seeds": given.seeds, **row}
                for row in race(case, given.seconds, given.seeds)
            ]
        else:
            new = [{**about, "seconds": given.seconds, **measure(case, given.seconds)}]
        with given.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
        for row in new:
            reached = row.get("reached", row.get("median"))
            print(row.get("program", ""), case.name, reached - case.known, round(row.get("cpu", 0), 1), flush=True)
    if given.page:
        write_page(rows, given.page)


if __name__ == "__main__":
    main()
