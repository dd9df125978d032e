"""Is the comparison with exact conditional marginals right? ``python -m tests.campaigns.conditional_marginals``.

Runs on models that are too large to be compared with their exact marginals are compared with exact marginals given
the states of some sites (:mod:`gibbsite.results.verdict.conditional_marginals`). The campaign uses connected models
that the check cannot solve in full, but exact inference can, and models with published answers.

A run is *wrong* if it has an accuracy and a marginal is off by more than that, or if it has none and a marginal is off
by more than 0.01 and by more than four of its standard errors. A verdict is *false* if a wrong run is called converged.
A *false alarm* is a right run that passes all other checks and is refused by this comparison.

Suites
    right    strips of lattices, random graphs, noisy-OR networks with evidence, grids without a field, and the
             models of a data folder: single-site moves suffice for most of them
    gates    alarms that are raised by 8 to 12 causes together, tied to a grid; all chains start at zero

Options
    --suite NAME      right (default) or gates
    --runs A:B        numbers of the runs (default 0:400); five runs in a row are of the same model
    --out FILE        a line of JSON for each run (default conditional_marginals.jsonl); runs that are in it are not
                      made again, so a campaign can be interrupted, continued and cut into parts
    --jobs N          processes (default 1)
    --report          print the table of what is in the file, and do nothing else
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.networks import networks
from gibbsite.results.verdict import conditional_marginals
from tests.campaigns.journal import make_runs, read_rows
from tests.data import DATA

ACCURACY = 0.01
SEEDS = 5  # runs of the same model
#: Models of the data folder that are connected, have no zeros and are too large to be solved by the check.
PUBLISHED = ("grids/", "promedus/", "segmentation/", "objectdetection/")

Known = dict[str, list[float]]


def exact(model: gs.FactorGraph) -> Known:
    return {site: list(law.values()) for site, law in gs.solve_exact(model).marginals.items()}


def pairwise(edges: Any, n: int, states: int, deviation: float, rng: np.random.Generator) -> gs.FactorGraph:
    """Return a model with random tables on edges and on all sites."""
    names = [f"v{i}" for i in range(n)]
    factors: list[Any] = [((names[a], names[b]), np.exp(rng.normal(0, deviation, (states, states)))) for a, b in edges]
    factors += [(name, np.exp(rng.normal(0, 0.5, states))) for name in names]
    return gs.FactorGraph(dict.fromkeys(names, states), factors)


def make_strip(rng: np.random.Generator) -> tuple[gs.FactorGraph, Known]:
    """Return a lattice that is narrow and long: two states, 10 to 13 wide, or three states, 7 wide."""
    states = int(rng.integers(2, 4))
    wide, long = (int(rng.integers(10, 14)), int(rng.integers(60, 101))) if states == 2 else (7, 80)
    if states == 2 and rng.random() < 0.5:
        grid = gs.ising_grid((wide, long), coupling=float(rng.uniform(0.05, 0.35)), field=float(rng.uniform(0, 0.3)))
        return grid, exact(grid)
    edges = [(i * wide + j, i * wide + j + 1) for i in range(long) for j in range(wide - 1)]
    edges += [(i * wide + j, (i + 1) * wide + j) for i in range(long - 1) for j in range(wide)]
    model = pairwise(edges, wide * long, states, float(rng.uniform(0.1, 0.5)), rng)
    return model, exact(model)


def make_graph(rng: np.random.Generator) -> tuple[gs.FactorGraph, Known]:
    """Return a random graph of average degree three."""
    n = int(rng.integers(125, 150))
    ring = rng.permutation(n)  # makes it connected
    edges = {(min(a, b), max(a, b)) for a, b in zip(ring.tolist(), np.roll(ring, 1).tolist(), strict=True)}
    while len(edges) < 1.5 * n:
        a, b = sorted(rng.choice(n, 2, replace=False).tolist())
        edges.add((a, b))
    model = pairwise(sorted(edges), n, 2, float(rng.uniform(0.1, 0.6)), rng)
    return model, exact(model)


def make_medical(rng: np.random.Generator) -> tuple[gs.FactorGraph, Known]:
    """Return diseases and findings joined by noisy-OR tables; some of the findings were seen."""
    diseases, findings = int(rng.integers(50, 90)), int(rng.integers(60, 110))
    sick, seen = [f"d{i}" for i in range(diseases)], [f"f{i}" for i in range(findings)]
    factors: list[Any] = [(name, [1.0 - p, p]) for name, p in zip(sick, rng.uniform(0.03, 0.4, diseases), strict=True)]
    for name in seen:
        parents = [sick[k] for k in rng.choice(diseases, int(rng.integers(2, 5)), replace=False)]
        leak, strength = rng.uniform(0.01, 0.1), rng.uniform(0.2, 0.9, len(parents))
        table = np.zeros((2,) * (len(parents) + 1))
        for at in np.ndindex(*(2,) * len(parents)):
            off = (1.0 - leak) * np.prod(np.where(at, 1.0 - strength, 1.0))
            table[at] = [off, 1.0 - off]
        factors.append(([*parents, name], table))
    model = gs.FactorGraph(dict.fromkeys([*sick, *seen], 2), factors, directed=True)
    evidence = {str(name): int(rng.random() < 0.4) for name in rng.choice(seen, findings // 2, replace=False)}
    observed = model.observe(evidence)
    return observed, exact(observed)


def make_symmetric(rng: np.random.Generator) -> tuple[gs.FactorGraph, Known]:
    """Return a grid without a field: all marginals are one half."""
    side = int(rng.integers(20, 33))
    model = gs.ising_grid((side, side), coupling=float(rng.uniform(0.05, 0.36)))
    return model, {site: [0.5, 0.5] for site in model.sites}


def make_gate(rng: np.random.Generator) -> tuple[gs.FactorGraph, Known]:
    """Return an alarm that causes raise together, or by mistake, each of them tied to a site of a grid.

    Every cause by itself is common; the region in which all of them are present is rare and lasts long.
    """
    causes, probability = int(rng.integers(8, 13)), float(rng.uniform(0.2, 0.35))
    wide, long = 16, int(rng.integers(16, 25))
    region = float(rng.uniform(0.01, 0.1))
    grid = {(i, j): f"grid{i}_{j}" for i in range(wide) for j in range(long)}
    names = [f"cause{k}" for k in range(causes)]
    alarm = np.full((2,) * causes, probability**causes * (1.0 - region) / region)
    alarm[(1,) * causes] = 1.0

    def agree(strength: float) -> np.ndarray:
        return np.exp(strength * np.array([[1.0, -1.0], [-1.0, 1.0]]))

    coupling, tie = float(rng.uniform(0.1, 0.3)), float(rng.uniform(0.1, 0.4))
    pairs = [(grid[i, j], grid[at]) for i, j in grid for at in ((i + 1, j), (i, j + 1)) if at in grid]
    places = [grid[i, j] for i, j in rng.permutation([(i, j) for i in range(10) for j in range(10)]).tolist()]
    factors: list[Any] = [(pair, agree(coupling)) for pair in pairs]
    factors += [(name, [1.0 - probability, probability]) for name in names]
    factors += [((name, places[k]), agree(tie)) for k, name in enumerate(names)]
    model = gs.FactorGraph(dict.fromkeys([*names, *grid.values()], 2), [*factors, (tuple(names), alarm)])
    return model, exact(model)


def make_published(rng: np.random.Generator) -> tuple[gs.FactorGraph, Known]:
    """Return a model of the data folder with its published answer."""
    cases = [load for name, load in networks(Path(DATA)) if name.startswith(PUBLISHED)]
    return cases[int(rng.integers(len(cases)))]()


SUITES = {
    "right": {
        "strips": make_strip,
        "graphs": make_graph,
        "medical": make_medical,
        "symmetric": make_symmetric,
        "published": make_published,
    },
    "gates": {"gates": make_gate},
}


@functools.lru_cache(1)
def make_model(suite: str, number: int) -> tuple[str, gs.FactorGraph, Known]:
    """Return the kind of a model, the model, and its exact marginals."""
    kinds = list(SUITES[suite])
    kind = kinds[number % len(kinds)]
    return (kind, *SUITES[suite][kind](np.random.default_rng([19, number])))


reached: list[float] = []  # seconds of the comparisons of this process


def watch() -> None:
    """Note how long each comparison takes, in this process."""
    compare = conditional_marginals.compare_given

    def compare_and_note(*given: Any) -> Any:
        begun = time.perf_counter()
        look = compare(*given)
        reached.append(time.perf_counter() - begun)
        return look

    conditional_marginals.compare_given = compare_and_note


def try_once(suite: str, number: int) -> dict[str, Any]:
    """Sample one model once and compare the answer with the exact one."""
    kind, model, known = make_model(suite, number // SEEDS)
    rng = np.random.default_rng([23, number])
    sweeps = 4000 if suite == "gates" else int(2 ** rng.uniform(12, 15))
    accurate = suite == "right" and bool(number % 2)
    given: dict[str, Any] = {"sweeps": sweeps, "rng": number, "progress": False, "threads": 1}
    if suite == "gates":
        given["start"] = np.zeros(model.n_sites, np.int64)
    row: dict[str, Any] = {"number": number, "kind": kind, "sites": model.n_sites, "sweeps": sweeps}
    reached.clear()
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer: Any = (
                gs.infer(model, method="gibbs", criteria=gs.Criteria(accuracy=ACCURACY), **given)
                if accurate
                else gs.sample(model, **given)
            )
        except gs.GibbsiteError as error:
            return {**row, "failed": str(error)[:200]}
    taken = time.monotonic() - begun
    verdict, found, errors = answer.diagnostics, answer.marginals, answer.mcse
    gaps = np.array(
        [
            (abs(p - q), e)
            for site, law in known.items()
            if site not in model.evidence
            for p, q, e in zip(found[site].values(), law, errors[site].values(), strict=True)
        ]
    )
    beyond = gaps[:, 0] if accurate else np.where(gaps[:, 0] > 4.0 * gaps[:, 1], gaps[:, 0], 0.0)
    return {
        **row,
        "accurate": accurate,
        "seconds": round(taken, 2),
        "compared": bool(reached),
        "compare_seconds": round(sum(reached), 3),
        "converged": verdict.converged,
        "error": float(beyond.max()),
        "gap": float(gaps[:, 0].max()),
        "errors_apart": float((gaps[:, 0] / np.maximum(gaps[:, 1], 1e-9)).max()),
        "refused": any("given states of other sites" in reason for reason in verdict.reasons),
        "reasons": list(verdict.reasons),
    }


def report(rows: list[dict[str, Any]]) -> str:
    """Return the table of a campaign."""
    families = defaultdict(list)
    for row in rows:
        families[row["kind"]].append(row)
    lines = [
        "| models | runs | failed | compared | right | false alarms | wrong | refused by it | false | largest error of "
        "converged |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for family, all_of in [*sorted(families.items()), ("all", rows)]:
        compared = [row for row in all_of if row.get("compared")]
        wrong = [row for row in compared if row["error"] > ACCURACY]
        right = [row for row in compared if row["error"] <= ACCURACY]
        converged = [row for row in all_of if row.get("converged")]
        failed = sum("failed" in row for row in all_of)
        lines.append(
            f"| {family} | {len(all_of)} | {failed} | {len(compared)} | {len(right)} | "
            f"{sum(row['refused'] for row in right)} | "
            f"{len(wrong)} | {sum(row['refused'] for row in wrong)} | "
            f"{sum(row['error'] > ACCURACY for row in converged)} | {max((r['gap'] for r in converged), default=0):.4f} |"
        )
    return "\n".join(lines)


def _work(task: tuple[str, int]) -> dict[str, Any]:
    return try_once(*task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, default="right")
    parser.add_argument("--runs", default="0:400")
    parser.add_argument("--out", default="conditional_marginals.jsonl")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    out = Path(given.out)
    rows = read_rows(out)
    if not given.report:
        done = {row["number"] for row in rows}
        tasks = [(given.suite, n) for n in range(*(int(end) for end in given.runs.split(":"))) if n not in done]
        rows += make_runs(_work, tasks, out, given.jobs, ACCURACY, watch)
    print(report(rows))


if __name__ == "__main__":
    main()
