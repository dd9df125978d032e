"""Reports of all kinds of answers have their numbers, their verdict, and a size that can be mailed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.results.report.answers import make_answer
from tests.results.report.test_page import Parsed

ASIA = gs.example("asia")
SEEN = ASIA.observe({"dysp": "yes"})
GRID = gs.ising_grid((30, 30), coupling=0.2, field=0.05)
BUGS = "model { for (i in 1:4) { y[i] ~ dnorm(mu, tau) } mu ~ dnorm(0, 0.01)\n tau ~ dgamma(1, 1) }"
HOW: dict[str, Any] = {"rng": 1, "progress": False}
ANSWERS: dict[str, Any] = {
    "exact": lambda: gs.infer(SEEN),
    "sampled": lambda: gs.infer(SEEN, method="blocks", sweeps=300, **HOW),
    "not converged": lambda: gs.infer(SEEN, method="gibbs", sweeps=50, **HOW),
    "weighted": lambda: gs.infer(SEEN, method="forward", draws=3000, **HOW),
    "approximate": lambda: gs.infer(SEEN, method="bp"),
    "state": lambda: gs.infer(SEEN, "MAP"),
    "log Z": lambda: gs.infer(SEEN, "PR"),
    "lattice": lambda: gs.sample(GRID, sweeps=100, **HOW),
    "bugs": lambda: gs.bugs(BUGS, {"y": [1.0, 2.0, 3.0, 2.0]}).sample(sweeps=200, **HOW),
}


def numbers_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found.group(1)))


@pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_has_a_report(name: str, tmp_path: Path) -> None:
    answer = ANSWERS[name]()
    path = tmp_path / "report.html"
    answer.write_report(path)
    page = path.read_text(encoding="utf-8")
    assert len(page.encode()) < 1_500_000
    data = numbers_of(page)
    assert data["converged"] == answer.converged and data["reasons"] == list(answer.reasons)
    body = Parsed(re.sub(r"<figure>.*?</figure>", "", page, flags=re.DOTALL))
    assert body.open == []
    for reason in answer.reasons:
        assert reason.split(";")[0][:40] in body.text
    if answer.marginals is not None and "lung" in answer.marginals:
        assert data["marginals"]["lung"]["yes"] == answer.marginals["lung"]["yes"]
    if answer.converged is False:
        assert "Do not rely on these numbers yet" in body.text
    if name == "bugs":
        assert "q97.5" in body.text and "mu" in body.text
    if name in ("exact", "lattice"):
        assert "<figure>" in page


def test_changes_come_first() -> None:
    page = make_answer(gs.infer(SEEN), before=gs.infer(ASIA))
    cells = re.findall(r'<td class="number" data-value="([^"]*)">[+-]', page)
    changes = [float(cell) for cell in cells]
    assert len(changes) == 14 and changes[0] == pytest.approx(max(changes))


def test_the_command_line_writes_a_report(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from gibbsite.cli import group

    path = tmp_path / "asia.html"
    done = CliRunner().invoke(group, ["infer", "asia", "--observe", "dysp=yes", "--report", str(path)])
    assert done.exit_code == 0 and "lung" in done.output
    assert numbers_of(path.read_text(encoding="utf-8"))["evidence"] == {"dysp": "yes"}
