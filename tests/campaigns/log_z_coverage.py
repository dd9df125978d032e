"""Does log Z lie in its interval with probability 0.95? ``python -m tests.campaigns.log_z_coverage``.

Finds intervals of log Z of random models whose exact log Z is known, and counts how often they hold it. The
models and budgets are such that weights are heavy: few draws, proposals far from the model, evidence that is
most unlikely, short annealing. The table has a line for each method and each range of the shape k of the tail
of the weights (a Pareto k above 0.7 means that standard errors cannot be relied upon), with

*holds*     the share of runs whose interval of probability 0.95 holds log Z (also certain bounds: *certain*),
*width*     the median width of these intervals,
*2 errors*  for comparison, the share of runs whose estimate is within 1.96 standard errors of log Z; nothing
            is promised about it where weights are heavy.

Options
    --numbers A:B     numbers of the runs (default 0:2000), each of every method
    --methods M,N     methods (default all)
    --out FILE        a line of JSON for each run (default log_z_coverage.jsonl); runs that are in it are not
                      made again
    --report          only print the table of what is in the file
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite.inference.importance.estimate import pareto_k
from tests.inference.importance.networks import random_network

FORWARD = ("prior", "evidence", "adaptive", "auto")
#: Numbers of draws that take turns.
DRAWS = (256, 1024, 4096)
#: Steps of annealing that take turns.
STEPS = (2, 6, 20)
#: Ranges of the shape of the tail.
TAILS = (("k below 0.5", -math.inf, 0.5), ("0.5 to 0.7", 0.5, 0.7), ("above 0.7", 0.7, math.inf))


def random_pairs(number: int) -> gs.FactorGraph:
    """Return a grid of up to 36 sites with strong couplings of both signs and fields."""
    rng = np.random.default_rng([29, number])
    side = int(rng.integers(3, 7))
    scale = float(rng.choice([0.5, 1.0, 2.0]))
    grid = gs.ising_grid((side, side), periodic=True)
    pairs = np.concatenate([group.scopes for group in grid.groups if group.arity == 2])
    couplings = scale * rng.normal(size=len(pairs))
    return gs.ising((pairs[:, 0], pairs[:, 1], couplings), 0.3 * rng.normal(size=side * side))


def _weighted(model: gs.FactorGraph, proposal: Any, number: int) -> dict[str, Any]:
    found = gs.log_z.bound_log_z(
        model, proposal=proposal, draws=DRAWS[number % len(DRAWS)], rng=number, threads=1, progress=False
    )
    return {
        "interval": list(found.probable),
        "certain": [found.lower, found.upper],
        "log_z": found.log_z,
        "error": found.log_z_error,
        "k": found.diagnostics.pareto_k,
    }


def _forward(number: int) -> tuple[gs.FactorGraph, dict[str, Any]]:
    model = random_network(number, 30)
    return model, _weighted(model, gs.importance.Forward(FORWARD[number % len(FORWARD)]), number)


def _mini_bucket(number: int) -> tuple[gs.FactorGraph, dict[str, Any]]:
    model = random_pairs(number)
    return model, _weighted(model, gs.importance.MiniBucket(entries=(4, 16, 64)[number // 3 % 3]), number)


def _annealed(number: int) -> tuple[gs.FactorGraph, dict[str, Any]]:
    model = random_pairs(number)
    steps = STEPS[number % len(STEPS)]
    found = gs.log_z.annealed_importance(model, steps=steps, particles=32, sweeps=400, rng=number)
    weights = np.exp(found.forward - found.forward.max())
    return model, {
        "interval": [found.lower, found.upper],
        "certain": [-math.inf, math.inf],
        "log_z": found.log_z,
        "error": float(weights.std(ddof=1) / weights.mean() / math.sqrt(weights.size)),
        "k": pareto_k(found.forward, found.forward.size),
    }


METHODS = {"forward": _forward, "mini-bucket": _mini_bucket, "annealed": _annealed}


def try_once(method: str, number: int) -> dict[str, Any]:
    """Find one interval and compare with the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, found = METHODS[method](number)
    exact = gs.solve_exact(model, task="PR").log_z
    slack = 1e-9 * max(1.0, abs(exact))  # rounding
    holds = {name: bool(found[name][0] - slack <= exact <= found[name][1] + slack) for name in ("interval", "certain")}
    width = found["interval"][1] - found["interval"][0]
    near = abs(found["log_z"] - exact) <= 1.96 * found["error"] + slack
    return {
        "method": method,
        "number": number,
        "holds": holds["interval"],
        "certain": holds["certain"],
        "width": width if math.isfinite(width) else None,
        "near": bool(near),
        "k": found["k"],
        "off": found["log_z"] - exact,
    }


def report(done: list[dict[str, Any]]) -> str:
    """Return the table of coverage by method and by tail."""
    lines = [f"{'method':<12} {'tail':<12} {'runs':>6} {'holds':>7} {'certain':>8} {'width':>7} {'2 errors':>9}"]
    for method in METHODS:
        mine = [one for one in done if one["method"] == method]
        ranges = [*TAILS, ("all", -math.inf, math.inf)]
        for name, low, high in ranges:
            some = [one for one in mine if low < one["k"] <= high or (name == "all")]
            if name == "k below 0.5":
                some += [one for one in mine if one["k"] == -math.inf]
            if not some:
                continue
            widths = [math.inf if one["width"] is None else one["width"] for one in some]
            shares = [np.mean([one[what] for one in some]) for what in ("holds", "certain", "near")]
            lines.append(
                f"{method:<12} {name:<12} {len(some):>6} {shares[0]:>7.4f} {shares[1]:>8.4f} "
                f"{np.median(widths):>7.2f} {shares[2]:>9.4f}"
            )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--numbers", default="0:2000")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", default="log_z_coverage.jsonl")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args(arguments)
    path = Path(given.out)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {(one["method"], one["number"]): one for one in map(json.loads, lines)}
    first, last = map(int, given.numbers.split(":"))
    if not given.report:
        with path.open("a") as file:
            for number in range(first, last):
                for method in given.methods.split(","):
                    if (method, number) not in done:
                        done[method, number] = try_once(method, number)
                        file.write(json.dumps(done[method, number]) + "\n")
                        file.flush()
    print(report([one for (_, number), one in sorted(done.items()) if first <= number < last]))


if __name__ == "__main__":
    main(sys.argv[1:])
