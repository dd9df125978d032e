"""What a kernel says about its results is in every view of them."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.kernels.base import KernelWarning

MODEL = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 2], [2, 13]])])
ASKED: list[tuple[Any, Any, Any]] = []


@dataclass(frozen=True)
class Talking(gs.Gibbs):
    """Has something to say."""

    grave: bool = False

    def warnings(self, model: Any, graph: Any, scan: Any) -> tuple[KernelWarning, ...]:
        ASKED.append((model, graph, scan))
        return KernelWarning("Mind the <gap>."), KernelWarning("All is lost.", grave=self.grave)


def sample(kernel: gs.kernels.Kernel, **more: Any) -> gs.Result:
    return gs.sample(MODEL, kernel, sweeps=1000, rng=1, progress=False, **more)


def test_most_kernels_say_nothing() -> None:
    for kernel in (gs.Gibbs(), gs.kernels.QuasiGibbs(m=10), gs.AnnealedGibbs()):
        result = gs.sample(MODEL, kernel, rng=1, progress=False)
        assert result.remarks == ()
        assert "note:" not in result.summary()
    assert gs.infer(MODEL).remarks == ()
    assert gs.infer(MODEL, method="mean-field").to_dict()["remarks"] == []


def test_a_kernel_is_asked_once_however_often_a_run_is_looked_at() -> None:
    ASKED.clear()
    sample(Talking(), criteria=gs.Criteria(accuracy=0.004))
    [(model, graph, scan)] = ASKED
    assert model is MODEL
    assert graph.n_sites == 2
    assert isinstance(scan, gs.Systematic)


def test_every_view_shows_them(tmp_path: Path) -> None:
    result = sample(Talking())
    assert result.remarks == ("Mind the <gap>.", "All is lost.")
    assert "\n  note: Mind the <gap>.\n  note: All is lost.\n" in result.summary()
    assert "<li>note: Mind the &lt;gap&gt;.</li>" in result._repr_html_()
    result.save(tmp_path / "r.npz")
    again = gs.load(tmp_path / "r.npz")
    assert again.remarks == result.remarks
    assert again.summary() == result.summary()
    answer = gs.infer(MODEL, method=Talking(), sweeps=1000, rng=1, progress=False)
    assert answer.remarks == result.remarks
    assert json.loads(json.dumps(answer.to_dict()))["remarks"] == list(result.remarks)


def test_grave_ones_warn_and_others_do_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(Talking())
    with pytest.warns(gs.ConvergenceWarning, match="^All is lost.$") as given:
        sample(Talking(grave=True))
    assert len(given) == 1
