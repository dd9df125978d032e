"""The table of methods: resumed where it ended, and the page counts what it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from benchmarks import methods
from benchmarks.networks import largest_error


def row(case: str, method: str, error: float, **more: Any) -> dict[str, Any]:
    told = {"chosen": method, "kind": "estimate", "converged": False, "seconds": 1.0, "reasons": []}
    return {"case": case, "method": method, "limit": 5.0, "commit": "abc", "error": error, **told, **more}


@pytest.mark.long
def test_runs_are_made_once_and_longer_limits_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asia = gs.example("asia")
    known = {site: list(law.values()) for site, law in gs.solve_exact(asia).marginals.items()}
    monkeypatch.setattr(methods, "networks", lambda folder: iter([("bif/asia-prior", lambda: (asia, known))]))
    out, page = tmp_path / "out.jsonl", tmp_path / "page.md"
    words = ["--out", str(out), "--methods", "forward", "--methods", "bp", "--seconds"]
    methods.main([*words, "0.5"])
    first = out.read_text()
    methods.main([*words, "0.25", "--page", str(page)])
    assert out.read_text() == first  # longer runs are there
    rows = [json.loads(line) for line in first.splitlines()]
    assert [one["method"] for one in rows] == ["forward", "bp"]
    assert rows[0]["error"] < 0.01 and rows[0]["converged"]
    assert "| bif " in page.read_text() and "1 of 1 (100 %)" in page.read_text()
    methods.main([*words, "0.6"])
    assert len(out.read_text().splitlines()) == 4


def test_the_page_counts_what_is_right_and_what_is_silently_wrong() -> None:
    wrong = row("grids/b", "gibbs", 0.3, converged=True)
    rows = [
        row("grids/a", "gibbs", 0.005, converged=True),
        wrong,
        row("grids/a", "mini-bucket", 0.009),
        row("grids/b", "mini-bucket", 0.2),
        row("grids/b", "mini-bucket", 0.008, limit=20.0),
        row("grids/b", "bp", 0.3, kind="approximation", converged=True),
        {"case": "grids/a", "method": "forward", "limit": 5.0, "commit": "abc", "refused": "no", "seconds": 0},
    ]
    assert [methods.is_silently_wrong(one) for one in rows] == [False, True, *[False] * 5]
    text = methods.page(rows)
    assert "Within by the best single method of each family: 2 of 2 (100 %)" in text
    assert "Called converged, but wrong: 1." in text
    summary = next(line for line in text.splitlines() if line.startswith("| grids "))
    assert [cell.strip() for cell in summary.split("|")[2:5]] == ["2", "mini-bucket", "2 of 2 (100 %)"]
    assert "0.3000 settled 1.0 s" in text
    assert "Made again" not in text
    assert "gibbs on grids/b (0.3000, 0.0020)." in methods.page([*rows, row("grids/b", "gibbs", 0.002)])


def test_a_marginal_that_is_not_a_number_is_an_error_of_one() -> None:
    table = gs.solve_exact(gs.example("asia")).marginals
    known = {site: list(law.values()) for site, law in table.items()}
    assert largest_error(table, known) == 0.0
    known["asia"][0] = float("nan")
    assert largest_error(table, known) == 1.0
