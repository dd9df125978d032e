"""Are runs that are called converged right? ``python -m tests.campaigns.verdicts``.

Samples models whose marginals are known, and counts verdicts. *False* is a run called converged although a
marginal is off by more than the accuracy asked for; *missed by look* is a run that is right, and against
which only the dispersed-start check speaks.

Suites
    networks    the UAI and BIF models of a data folder that come with exact marginals
    tiny        random factor graphs of 2 to 6 sites, a third of them with zeros

Options
    --suite NAME      networks (default) or tiny
    --data FOLDER     where the models are (default: GIBBSITE_DATA, or shared/data beside the repository)
    --only TEXT       models whose name contains the text; may be repeated
    --seeds A:B       seeds (default 0:20); for the tiny suite the numbers of the models
    --seconds S       time limit of each run of a network (default 3)
    --sweeps N        length of each run of a tiny model (default 4000)
    --method NAME     (default gibbs)
    --out FILE        a line of JSON for each run (default verdicts.jsonl); runs that are in it already are
                      not made again: a campaign may be interrupted, or cut into parts by --only and --seeds
    --jobs N          processes (default 1)
    --report          only print the table of what is in the file
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.networks import networks
from tests.campaigns.journal import make_runs, read_rows
from tests.data import DATA

ACCURACY = 0.01


def tiny(number: int) -> tuple[gs.FactorGraph, dict[str, list[float]]]:
    """Make a random factor graph of 2 to 6 sites, every third with zeros, and solve it."""
    rng = np.random.default_rng(number)
    cards = rng.integers(2, 4, rng.integers(2, 7))
    names = [f"v{i}" for i in range(cards.size)]
    deviation, zeros = rng.uniform(0.3, 3.0), number % 3 == 0
    factors = []
    for _ in range(int(rng.integers(1, 2 * cards.size))):
        scope = rng.choice(cards.size, rng.integers(1, min(3, cards.size) + 1), replace=False)
        table = np.exp(deviation * rng.normal(size=cards[scope]))
        if zeros:
            table[rng.random(table.shape) < 0.25] = 0.0
        if not table.any():
            table.flat[0] = 1.0
        factors.append(([names[i] for i in scope], table))
    model = gs.FactorGraph({name: int(k) for name, k in zip(names, cards, strict=True)}, factors)
    try:
        table = gs.solve_exact(model).marginals
    except gs.GibbsiteError:
        return tiny(number + 10_000_000)  # contradictory zeros
    return model, {name: list(table[name].values()) for name in names}


def try_once(suite: str, name: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Sample one model once and compare with the truth."""
    if suite == "tiny":
        model, known = tiny(seed)
        budget: dict[str, Any] = {"sweeps": given.sweeps or 4000}
    else:
        model, known = dict(networks(Path(given.data)))[name]()
        budget = {"seconds": given.seconds}
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = gs.infer(
                model,
                method=given.method,
                rng=seed,
                criteria=gs.Criteria(accuracy=ACCURACY),
                progress=False,
                threads=1,
                **budget,
            )
        except gs.GibbsiteError as error:
            return {"name": name, "seed": seed, "failed": str(error)[:200]}
    taken = time.monotonic() - begun
    table, errors = answer.marginals, answer.mcse
    gaps = [
        (abs(p - q), float(e))
        for site, probabilities in known.items()
        for p, q, e in zip(table[site].values(), probabilities, errors[site].values(), strict=True)
    ]
    numbers = answer.diagnostics.figures
    return {
        "name": name,
        "seed": seed,
        "seconds": round(taken, 2),
        "draws": numbers["n_draws"],
        "converged": answer.converged,
        "error": max(gap for gap, _ in gaps),
        "cells": len(gaps),
        "outside": sum(gap > 4 * e + 2e-6 for gap, e in gaps) if answer.converged else None,
        "look": numbers.get("dispersed_starts"),
        "dispersed_sweeps": numbers.get("dispersed_sweeps"),
        "mcse": numbers.get("mcse_max"),
        "reasons": list(answer.reasons),
    }


def report(rows: list[dict[str, Any]]) -> str:
    """Return the table of a campaign."""
    families = defaultdict(list)
    for row in rows:
        families[row["name"].split("/")[0] if "/" in row["name"] else row["name"]].append(row)
    lines = [
        "| family | runs | failed | right | converged | false | worst | missed by look | longest s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for family, all_of in [*sorted(families.items()), ("all", rows)]:
        some = [row for row in all_of if "failed" not in row]
        right = [row for row in some if row["error"] <= ACCURACY]
        called = [row for row in some if row["converged"]]
        false = [row for row in called if row["error"] > ACCURACY]
        missed = [row for row in right if not row["converged"] and len(row["reasons"]) == 1]
        missed = [row for row in missed if "dispersed-start" in row["reasons"][0]]
        lines.append(
            f"| {family} | {len(all_of)} | {len(all_of) - len(some)} | {len(right)} | {len(called)} | "
            f"{len(false)} | {max((row['error'] for row in called), default=0):.4f} | {len(missed)} | "
            f"{max((row['seconds'] for row in some), default=0)} |"
        )
    return "\n".join(lines)


def _work(task: tuple[str, str, int, argparse.Namespace]) -> dict[str, Any]:
    return try_once(*task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suite", choices=("networks", "tiny"), default="networks")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--sweeps", type=int)
    parser.add_argument("--method", default="gibbs")
    parser.add_argument("--out", default="verdicts.jsonl")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    out = Path(given.out)
    rows = read_rows(out)
    if not given.report:
        done = {(row["name"], row["seed"]) for row in rows}
        seeds = range(*(int(end) for end in given.seeds.split(":")))
        names = ["tiny"] if given.suite == "tiny" else [name for name, _ in networks(Path(given.data))]
        names = [name for name in names if not given.only or any(text in name for text in given.only)]
        tasks = [(given.suite, name, seed, given) for seed in seeds for name in names]
        tasks = [task for task in tasks if (task[1], task[2]) not in done]
        rows += make_runs(_work, tasks, out, given.jobs, ACCURACY)
    print(report(rows))


if __name__ == "__main__":
    main()
