"""Runs of a campaign and the file that keeps them, so that a campaign can be interrupted and continued."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gibbsite.results.verdict import conditional_marginals, known_marginals

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """Return the runs that a file holds, a line of JSON each; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def judge_by_chains() -> None:
    """Leave comparisons with exact marginals out of verdicts, in this process."""
    known_marginals.MOST_SITES = 0
    conditional_marginals.MOST_SITES = 0


def make_runs(
    work: Callable[[Any], Row],
    tasks: Sequence[Any],
    path: Path,
    jobs: int,
    accuracy: float,
    begin: Callable[[], None] = judge_by_chains,
) -> list[Row]:
    """Make runs in some processes, append each to the file, and print those with a false verdict.

    Each process calls ``begin`` first. By default runs are not compared with exact marginals: with these no verdict on
    a small model could be false, and the checks by chains, which are all that larger models have, would not be tested.
    """
    rows = []
    with path.open("a") as file, multiprocessing.get_context("spawn").Pool(jobs, begin) as pool:
        for number, row in enumerate(pool.imap_unordered(work, tasks), 1):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            if row.get("converged") and row["error"] > accuracy:
                print(f"FALSE: {row}", flush=True)
            if number % 100 == 0:
                print(f"{number} of {len(tasks)}", file=sys.stderr, flush=True)
    return rows
