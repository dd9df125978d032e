"""Weighted draws are saved and loaded with all that belongs to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.importance.verdict import diagnose
from tests.inference.importance.models import random_model


def draw(
    model: gs.FactorGraph, proposal: gs.importance.ImportanceProposal, rng: int = 1
) -> gs.importance.WeightedResult:
    return gs.sample_weighted(model, proposal, draws=2048, rng=rng, criteria=gs.Criteria(accuracy=0.5), progress=False)


@pytest.mark.parametrize("query", [None, ["tub", "lung"]])
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, query: list[str] | None) -> None:
    model = gs.example("asia").observe({"xray": "yes"})
    found = gs.sample_weighted(
        model, draws=2048, rng=1, criteria=gs.Criteria(accuracy=0.5, query=query), progress=False
    )
    found.save(tmp_path / "draws.npz")
    again = gs.load(tmp_path / "draws.npz")
    for name in ("plan", "sources", "remarks", "interrupted", "diagnostics", "evidence", "evidence_labels"):
        assert getattr(again, name) == getattr(found, name), name
    assert np.array_equal(again.estimate.cells, found.estimate.cells, equal_nan=True)
    assert np.array_equal(again.estimate.errors, found.estimate.errors, equal_nan=True)
    assert (again.log_z, again.log_z_error, again.n_draws) == (found.log_z, found.log_z_error, found.n_draws)
    assert again.marginals["xray"] == {"yes": 1.0, "no": 0.0}
    assert again.joint("tub", "xray").tolist() == found.joint("tub", "xray").tolist()
    assert again.summary() == found.summary()


def test_equal_runs_give_equal_bytes_and_infinite_numbers_survive(tmp_path: Path) -> None:
    model = random_model(3)
    for place in ("a", "b"):
        draw(model, gs.importance.MiniBucket()).save(tmp_path / place)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = draw(model, gs.importance.MiniBucket())
    odd = replace(found, diagnostics=diagnose((), {**found.diagnostics.figures, "pareto_k": np.inf, "gap": -np.inf}))
    odd.save(tmp_path / "c")
    assert gs.load(tmp_path / "c").diagnostics == odd.diagnostics


def test_load_tells_kinds_of_files_apart(tmp_path: Path) -> None:
    model = gs.example("asia")
    draw(model, gs.importance.Forward()).save(tmp_path / "weighted.npz")
    gs.sample(model, sweeps=50, rng=1, progress=False, criteria=gs.Criteria(dispersed_starts=False)).save(
        tmp_path / "chains.npz"
    )
    assert isinstance(gs.load(tmp_path / "weighted.npz"), gs.importance.WeightedResult)
    assert isinstance(gs.load(tmp_path / "chains.npz"), gs.Result)
    with pytest.raises(gs.errors.FormatError, match="the file does not exist"):
        gs.load(tmp_path / "nowhere.npz")
    (tmp_path / "torn.npz").write_bytes((tmp_path / "weighted.npz").read_bytes()[:500])
    with pytest.raises(gs.errors.FormatError, match="this is not a file of gs"):
        gs.load(tmp_path / "torn.npz")
