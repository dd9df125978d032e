"""Are verdicts on some sites right? ``python -m tests.campaigns.queries``.

A run that is asked for the marginals of a few sites is judged by these. Other sites may mix too slowly for
the accuracy, as long as that cannot make the marginals asked for wrong. This campaign asks for one to three
sites of networks with known answers, and of the models with rare, sticky states of
:mod:`tests.campaigns.rare_states`. A verdict is *false* if a run is called converged although a marginal that
was asked for is off by more than the accuracy.

Options
    --runs A:B        numbers of the runs (default 0:1000); each is a model, sites, a method, a budget, a seed
    --method NAME     only this method (default: mostly gibbs, the others in turn)
    --whole           ask for all sites, and compare the same ones
    --out FILE        a line of JSON for each run (default queries.jsonl); runs that are in it are not made
                      again, so a campaign can be interrupted, continued and cut into parts
    --jobs N          processes (default 1)
    --report          print the table of what is in the file, and do nothing else
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from tests.campaigns import rare_states
from tests.campaigns.journal import make_runs, read_rows

ACCURACY = rare_states.ACCURACY
OTHERS = ("tempered", "blocks", "forward", "mini-bucket", "quasi", "cutset", "poisson")
NETWORKS = ("alarm", "child", "asia")
LEAST_EVIDENCE = -7.0  # log-probability of evidence that is taken


def make_model(number: int) -> tuple[str, gs.FactorGraph, Any]:
    """Return the kind of a model, the model, and its exact answer."""
    if number % 2:
        return rare_states.make_model(number // 2)
    kind = NETWORKS[(number // 2) % 3]
    whole = gs.example(kind)
    rng = np.random.default_rng([11, number])
    for _ in range(100):
        seen = rng.choice(whole.sites, int(rng.integers(0, 4)), replace=False)
        labels = {str(site): whole.domains.labels(whole.index(str(site))) for site in seen}
        evidence = {site: states[int(rng.integers(len(states)))] for site, states in labels.items()}
        try:
            model = whole.observe(evidence) if evidence else whole
            truth = gs.solve_exact(model)
        except gs.GibbsiteError:
            continue  # evidence of probability zero
        if truth.log_z > LEAST_EVIDENCE:
            return kind, model, truth
    raise AssertionError(f"no evidence for {number}")


def plan(number: int, kind: str, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return the method and the budget of a run: one second, or some sweeps."""
    rng = np.random.default_rng([13, number])
    method = "gibbs" if rng.random() < 0.7 else str(rng.choice(OTHERS))
    method = given.method or method
    if method == "forward" and kind == "clusters":
        method = "gibbs"  # clusters are no network
    if rng.random() < 0.4 or method in ("forward", "mini-bucket"):
        return method, {"seconds": 1.0}
    return method, {"sweeps": int(2 ** rng.integers(10, 17))}


def try_once(number: int, given: argparse.Namespace) -> dict[str, Any]:
    """Sample one model once and compare the marginals asked for with the exact ones."""
    kind, model, truth = make_model(number)
    method, budget = plan(number, kind, given)
    rng = np.random.default_rng([17, number])
    free = [site for site in model.sites if site not in model.evidence]
    query = [str(site) for site in rng.permutation(free)[: int(rng.integers(1, 4))]]
    row: dict[str, Any] = {"number": number, "kind": kind, "method": method, "query": query, **budget}
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = gs.infer(
                model,
                method=method,
                criteria=gs.Criteria(accuracy=ACCURACY, query=None if given.whole else query),
                rng=number,
                progress=False,
                threads=1,
                **budget,
            )
        except gs.GibbsiteError as error:
            return {**row, "failed": str(error)[:200]}
    taken = time.monotonic() - begun
    gaps = [abs(answer.marginals[site][state] - p) for site in query for state, p in truth.marginals[site].items()]
    return {
        **row,
        "seconds": round(taken, 2),
        "draws": answer.diagnostics.figures.get("draws"),
        "converged": answer.converged,
        "error": max(gaps),
        "reasons": list(answer.reasons),
    }


def _work(task: tuple[int, argparse.Namespace]) -> dict[str, Any]:
    return try_once(*task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", default="0:1000")
    parser.add_argument("--method", choices=("gibbs", *OTHERS))
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--out", default="queries.jsonl")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    out = Path(given.out)
    rows = read_rows(out)
    if not given.report:
        done = {row["number"] for row in rows}
        tasks = [(n, given) for n in range(*(int(end) for end in given.runs.split(":"))) if n not in done]
        rows += make_runs(_work, tasks, out, given.jobs, ACCURACY)
    print(rare_states.report(rows))


if __name__ == "__main__":
    main()
