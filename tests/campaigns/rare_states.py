"""Are runs on models with rare, sticky states right? ``python -m tests.campaigns.rare_states``.

A state that is seldom entered but lasts for tens of sweeps once it is entered can be missed by a run that
looks fine. This campaign makes random models of that kind, solves them exactly, samples them, and counts
verdicts.
A verdict is *false* if a run is called converged although a marginal is off by more than the accuracy.

Models, chosen by the number of the run
    causes      Bayesian networks whose roots have probabilities of 0.002 to 0.05, with noisy-OR effects,
                near copies of their parents, and consequences that need two causes; 4 to 40 variables; half
                of them with one to three observed leaves
    clusters    pairwise models in which groups of two to six sites agree strongly and are rarely in their
                second state; 4 to 40 variables

    levels      trees of variables with three or four levels, of which the higher ones are rare, that mostly
                copy their parents; 4 to 30 variables

Options
    --runs A:B        numbers of the runs (default 0:5000); each number is a model, a method, a budget, a seed
    --method NAME     only this method (default: gibbs, blocks, tempered, forward and mini-bucket in turn)
    --seconds S       only this budget (default: 1 to 10 seconds, by the number of the run)
    --out FILE        a line of JSON for each run (default rare_states.jsonl); runs that are in it are not
                      made again, so a campaign can be interrupted, continued and cut into parts
    --jobs N          processes (default 1)
    --report          print the table of what is in the file, and do nothing else
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
from tests.campaigns.journal import make_runs, read_rows

ACCURACY = 0.01
METHODS = ("gibbs", "blocks", "tempered", "forward", "mini-bucket")
BUDGETS = (1.0, 2.0, 4.0, 10.0)


def make_causes(rng: np.random.Generator) -> gs.FactorGraph:
    """Return a Bayesian network with rare causes and sticky consequences, perhaps with evidence."""
    size = int(rng.integers(4, 41))
    names = [f"v{i}" for i in range(size)]
    roots = max(1, int(rng.integers(1, max(2, size // 3))))
    factors: list[Any] = []
    for i in range(roots):
        rare = float(np.exp(rng.uniform(np.log(0.002), np.log(0.05))))
        factors.append((names[i], [1.0 - rare, rare]))
    children: dict[int, int] = dict.fromkeys(range(size), 0)
    for i in range(roots, size):
        near = int(rng.integers(0, i)) if rng.random() < 0.5 else int(rng.integers(max(0, i - 4), i))
        kind = rng.choice(["copy", "noisy", "both"])
        if kind == "copy" or i < 2:
            stay, leak = 1.0 - np.exp(rng.uniform(np.log(5e-4), np.log(0.3), 2))
            parents, table = [near], [[leak, 1.0 - leak], [1.0 - stay, stay]]
        else:
            others = [k for k in rng.permutation(i).tolist() if k != near]
            parents = [near, *others[: int(rng.integers(1, 4))]]
            leak = float(np.exp(rng.uniform(np.log(5e-4), np.log(0.03))))
            strength = rng.uniform(0.5, 0.999, len(parents))
            table = np.zeros((2,) * len(parents) + (2,))
            for at in np.ndindex(*(2,) * len(parents)):
                off = (1.0 - leak) * np.prod(np.where(at, 1.0 - strength, 1.0))
                if kind == "both":  # the first cause alone is not enough
                    off = 1.0 - leak if not (at[0] and any(at[1:])) else 1.0 - float(strength[0])
                table[at] = [off, 1.0 - off]
        for parent in parents:
            children[parent] += 1
        factors.append(([*(names[k] for k in parents), names[i]], table))
    model = gs.FactorGraph(dict.fromkeys(names, 2), factors, directed=True)
    if rng.random() < 0.5:
        leaves = [names[i] for i, many in children.items() if not many and i >= roots]
        seen = rng.permutation(leaves)[: int(rng.integers(1, 4))]
        evidence = {str(name): int(rng.random() < 0.3) for name in seen}
        if evidence and len(evidence) < size - 2:
            return model.observe(evidence)
    return model


def make_clusters(rng: np.random.Generator) -> gs.FactorGraph:
    """Return a pairwise model with groups of sites that agree and are rarely in their second state."""
    size = int(rng.integers(4, 41))
    names = [f"v{i}" for i in range(size)]
    order = rng.permutation(size)
    field = rng.normal(0.0, 0.5, size)
    factors: list[Any] = []
    at = 0
    while at < size:
        many = min(int(rng.integers(2, 7)), size - at)
        group = order[at : at + many]
        at += many
        if rng.random() < 0.6:
            rare = float(np.exp(rng.uniform(np.log(0.002), np.log(0.05))))
            field[group] = np.log(rare / (1.0 - rare)) / many
            strong = rng.uniform(1.0, 5.0)
            for a in range(many):
                for b in range(a + 1, many if many < 4 else min(a + 3, many)):
                    agree = [[strong, 0.0], [0.0, strong]]
                    factors.append(((names[group[a]], names[group[b]]), np.exp(agree)))
    for _ in range(size):
        a, b = rng.choice(size, 2, replace=False)
        factors.append(((names[a], names[b]), np.exp(rng.normal(0.0, 0.2, (2, 2)))))
    factors += [(names[i], np.exp([0.0, field[i]])) for i in range(size)]
    return gs.FactorGraph(dict.fromkeys(names, 2), factors)


def make_levels(rng: np.random.Generator) -> gs.FactorGraph:
    """Return a tree of variables with three or four levels that copy their parents; high levels are rare."""
    size = int(rng.integers(4, 31))
    names = [f"v{i}" for i in range(size)]
    levels = int(rng.integers(3, 5))
    rare = np.exp(rng.uniform(np.log(0.002), np.log(0.05), levels - 1))
    factors: list[Any] = [(names[0], [1.0 - rare.sum(), *rare])]
    for i in range(1, size):
        fail = float(np.exp(rng.uniform(np.log(2e-3), np.log(0.3))))
        table = (1.0 - fail) * np.eye(levels) + fail * rng.dirichlet(np.full(levels, 0.5), levels)
        factors.append(([names[int(rng.integers(0, i))], names[i]], table))
    return gs.FactorGraph(dict.fromkeys(names, levels), factors, directed=True)


MAKERS = {"causes": make_causes, "clusters": make_clusters, "levels": make_levels}


def make_model(number: int) -> tuple[str, gs.FactorGraph, Any]:
    """Return the kind of a model, the model, and its exact answer."""
    for attempt in range(100):
        rng = np.random.default_rng([number, attempt])
        kind = ("clusters", "causes", "levels", "causes")[number % 4]
        model = MAKERS[kind](rng)
        try:
            return kind, model, gs.solve_exact(model)
        except gs.GibbsiteError:
            continue  # evidence of probability zero
    raise AssertionError(f"no model for {number}")


def plan(number: int, given: argparse.Namespace) -> tuple[str, float]:
    """Return the method and the budget of a run."""
    rng = np.random.default_rng([7, number])
    method = given.method or METHODS[int(rng.choice(5, p=[0.4, 0.15, 0.15, 0.15, 0.15]))]
    if method == "forward" and number % 4 == 0:
        method = "gibbs"  # clusters are no network
    return method, given.seconds or BUDGETS[int(rng.choice(4, p=[0.4, 0.3, 0.2, 0.1]))]


def try_once(number: int, given: argparse.Namespace) -> dict[str, Any]:
    """Sample one model once and compare the answer with the exact one."""
    kind, model, truth = make_model(number)
    method, seconds = plan(number, given)
    row: dict[str, Any] = {"number": number, "kind": kind, "method": method, "budget": seconds}
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = gs.infer(
                model,
                method=method,
                rng=number,
                criteria=gs.Criteria(accuracy=ACCURACY),
                progress=False,
                threads=1,
                seconds=seconds,
            )
        except gs.GibbsiteError as error:
            return {**row, "failed": str(error)[:200]}
    taken = time.monotonic() - begun
    known, found = truth.marginals, answer.marginals
    gaps = [abs(p - q) for site in known for p, q in zip(found[site].values(), known[site].values(), strict=True)]
    numbers = answer.diagnostics.figures
    return {
        **row,
        "sites": model.n_sites,
        "seconds": round(taken, 2),
        "draws": numbers.get("draws"),
        "converged": answer.converged,
        "error": max(gaps),
        "mcse": numbers.get("mcse_max"),
        "reasons": list(answer.reasons),
    }


def report(rows: list[dict[str, Any]]) -> str:
    """Return the table of a campaign."""
    families = defaultdict(list)
    for row in rows:
        families[f"{row['kind']}, {row['method']}"].append(row)
    lines = [
        "| models, method | runs | failed | right | converged | false | right, refused | worst | longest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for family, all_of in [*sorted(families.items()), ("all", rows)]:
        some = [row for row in all_of if "failed" not in row]
        right = [row for row in some if row["error"] <= ACCURACY]
        called = [row for row in some if row["converged"]]
        false = [row for row in called if row["error"] > ACCURACY]
        refused = [row for row in right if not row["converged"]]
        lines.append(
            f"| {family} | {len(all_of)} | {len(all_of) - len(some)} | {len(right)} | {len(called)} | "
            f"{len(false)} | {len(refused)} | {max((row['error'] for row in called), default=0):.4f} | "
            f"{max((row['seconds'] for row in some), default=0)} s |"
        )
    return "\n".join(lines)


def _work(task: tuple[int, argparse.Namespace]) -> dict[str, Any]:
    return try_once(*task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", default="0:5000")
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--out", default="rare_states.jsonl")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    out = Path(given.out)
    rows = read_rows(out)
    if not given.report:
        done = {row["number"] for row in rows}
        tasks = [(n, given) for n in range(*(int(end) for end in given.runs.split(":"))) if n not in done]
        rows += make_runs(_work, tasks, out, given.jobs, ACCURACY)
    print(report(rows))


if __name__ == "__main__":
    main()
