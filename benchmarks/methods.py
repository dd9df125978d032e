"""Every method on every model with known marginals: error, verdict and time, without exact solving.

    python -m benchmarks.methods --out methods.jsonl --seconds 20            # again: only what is missing
    python -m benchmarks.methods --out methods.jsonl --only promedus --methods mini-bucket --methods auto
    python -m benchmarks.methods --out methods.jsonl --on local-dask         # a run for each core at a time
    python -m benchmarks.methods --out methods.jsonl --none --page docs/method_results.md

Models come from the folder of data (``GIBBSITE_DATA``). Each run is a line of the file, written when it is
done, so that a table can be interrupted and continued; runs of the same model and method with other time
limits stand beside each other, and the page shows the one with the longest. Runs use one thread. Time is
by the clock, without compilation, so that a busy machine makes errors larger.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gibbsite as gs
from benchmarks.data import DATA, ROOT
from benchmarks.networks import Known, largest_error, networks
from benchmarks.report import format_table
from gibbsite._numba.jit import clock
from gibbsite.sampling.executors.choosing import find_executor
from gibbsite.sampling.executors.tasks import map_tasks

METHODS = ("auto", "gibbs", "blocks", "cutset", "tempered", "forward", "mini-bucket", "bp")
ACCURACY = 0.01
Row = dict[str, Any]
Run = tuple[str, Callable[[], tuple[gs.FactorGraph, Known]], str]


def measure(
    name: str, read: Callable[[], tuple[gs.FactorGraph, Known]], method: str, seconds: float, commit: str
) -> Row:
    """Answer the marginals of one model by one method, and compare with the truth."""
    model, known = read()
    row: Row = {"case": name, "method": method, "limit": seconds, "commit": commit}
    begun, used = clock(), time.process_time()
    how: dict[str, Any] = {"exact": False} if method == "auto" else {}
    if method != "bp":
        how |= {"rng": 1, "threads": 1}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = gs.infer(
                model, method=method, seconds=seconds, criteria=gs.Criteria(accuracy=ACCURACY), progress=False, **how
            )
    except gs.GibbsiteError as error:
        return {**row, "refused": str(error)[:300], "seconds": round(clock() - begun, 2)}
    if answer.interrupted:
        raise KeyboardInterrupt  # partial results are no answer of a run of this length
    return {
        **row,
        "chosen": answer.method,
        "kind": answer.kind,
        "converged": answer.converged,
        "error": largest_error(answer.marginals, known),
        "reasons": [str(reason)[:200] for reason in answer.reasons],
        "seconds": round(clock() - begun, 2),
        "processor_seconds": round(time.process_time() - used, 2),
    }


def is_right(row: Row | None) -> bool:
    """Whether every marginal is within the accuracy asked for."""
    return row is not None and row.get("error", 1.0) <= ACCURACY


def is_silently_wrong(row: Row) -> bool:
    """Whether an estimate is called converged and is not; approximations promise nothing about errors."""
    return bool(row.get("converged")) and row["kind"] != "approximation" and not is_right(row)


HEAD = f"""# Methods without exact solving: results

Made by `python -m benchmarks.methods --out FILE --page PAGE`; do not edit. Every UAI and BIF model with known
marginals is answered by every method, on one thread, and by `auto` with `exact=False`. *Within* means that no
marginal is off by more than {ACCURACY:g}."""
ALL_RUNS = """## All runs

Largest error of a marginal and seconds taken, bold where the run was called converged. An answer of bp is an
approximation: *settled* says that its messages did, and nothing about its error. "-": the method refuses the
model; an empty cell was not run."""
SUMMARY = (
    "family",
    "models",
    "best single method",
    "within by it",
    "within by auto",
    "auto converged",
    "converged, wrong",
)


def page(rows: list[Row]) -> str:
    """Return the page: a summary for each family, and the table of all runs."""
    table = _longest(rows)
    runs = [row for by_method in table.values() for row in by_method.values()]
    families: dict[str, list[str]] = defaultdict(list)
    for case in sorted(table):
        families[case.split("/")[0]].append(case)
    best = {family: _best_single(table, cases) for family, cases in families.items()}
    limits: dict[str, set[float]] = defaultdict(set)
    for row in runs:
        limits[row["method"]].add(row["limit"])
    allowed = [f"{m} {', '.join(f'{s:g}' for s in sorted(limits[m]))}" for m in METHODS if m in limits]
    commits = ", ".join(sorted({row["commit"] for row in runs}))
    good = _share(sum(count for _, count in best.values()), len(table))
    wrong = sum(map(is_silently_wrong, runs))
    return (
        "\n\n".join(
            [
                HEAD,
                f"Seconds allowed: {'; '.join(allowed)}. Commits: {commits}.",
                f"{len(table)} models, {len(runs)} runs of {len(METHODS) * len(table)}. Within by the best "
                f"single method of each family: {good}. Called converged, but wrong: {wrong}.",
                *_repeated(rows),
                format_table(SUMMARY, [_summarise(f, table, cases, *best[f]) for f, cases in families.items()]),
                ALL_RUNS,
                format_table(
                    ["model", *METHODS],
                    [[case, *(_cell(table[case].get(m)) for m in METHODS)] for case in sorted(table)],
                ),
            ]
        )
        + "\n"
    )


def _repeated(rows: list[Row]) -> list[str]:
    """Return the sentence on runs that were made again with the same time limit, with all their errors."""
    runs: dict[tuple[str, str, float], list[str]] = defaultdict(list)
    for row in rows:
        error = f"{row['error']:.4f}" if "error" in row else "refused"
        runs[row["case"], row["method"], row["limit"]].append(error)
    again = [f"{m} on {case} ({', '.join(seen)})" for (case, m, _), seen in runs.items() if len(seen) > 1]
    if not again:
        return []
    return [
        "Made again after changes of the program, with the errors in order, the last of them in the tables: "
        f"{'; '.join(again)}."
    ]


def _best_single(table: dict[str, dict[str, Row]], cases: list[str]) -> tuple[str, int]:
    """Return the method that answers most models of a family within the accuracy, and how many."""
    right = {m: sum(is_right(table[case].get(m)) for case in cases) for m in METHODS if m != "auto"}
    best = max(right, key=lambda m: right[m])
    return (best if right[best] else "none"), right[best]


def _summarise(family: str, table: dict[str, dict[str, Row]], cases: list[str], best: str, good: int) -> list[str]:
    """Return the row of a family in the summary."""
    runs = [row for case in cases for row in table[case].values()]
    auto = [row for row in runs if row["method"] == "auto"]
    return [
        family,
        str(len(cases)),
        best,
        _share(good, len(cases)),
        _share(sum(map(is_right, auto)), len(auto)),
        str(sum(bool(row.get("converged")) for row in auto)),
        str(sum(map(is_silently_wrong, runs))),
    ]


def _longest(rows: list[Row]) -> dict[str, dict[str, Row]]:
    """Return the run with the longest time limit of each model and method."""
    table: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: float(row["limit"])):
        table[row["case"]][row["method"]] = row
    return table


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "not run"


def _cell(row: Row | None) -> str:
    """Return error, verdict and time of a run in a few characters."""
    if row is None:
        return ""
    if "refused" in row:
        return "-"
    error = f"{row['error']:.4f}"
    if row["kind"] == "approximation":
        error += " settled" if row["converged"] else ""
    elif row["converged"]:
        error = f"**{error}**"
    by = f" {row['chosen']}" if row["method"] == "auto" else ""
    return f"{error}{by} {row['seconds']:.1f} s"


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or "unknown"


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.methods", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="file of results, continued if it exists")
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of a run (default 20)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="models with it in the name")
    parser.add_argument("--methods", action="append", default=[], choices=METHODS, help="(default: all)")
    parser.add_argument("--on", help="make runs on the workers of a cluster: local-dask, tcp://..., ray")
    parser.add_argument("--none", action="store_true", help="run nothing, write the page alone")
    parser.add_argument("--page", type=Path, help="write a page in Markdown there")
    given = parser.parse_args(arguments)
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if not given.none:
        done = {(row["case"], row["method"]) for row in rows if row["limit"] >= given.seconds}
        cases = [one for one in networks(DATA) if not given.only or any(text in one[0] for text in given.only)]
        commit = _commit()
        runs = [(*case, m) for m in given.methods or METHODS for case in cases if (case[0], m) not in done]
        with given.out.open("a") as file, find_executor(given.on) as executor:

            def take(run: Run, row: Row) -> None:
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
                wrong = "WRONG " if is_silently_wrong(row) else ""
                print(f"{wrong}{run[0]} {run[2]}: {_cell(row)}", flush=True)

            map_tasks(executor, lambda run: measure(*run, given.seconds, commit), runs, take=take, say=print)
    if given.page is not None:
        given.page.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
