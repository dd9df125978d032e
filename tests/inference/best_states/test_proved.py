"""Proofs by toulbar2: right where it is installed, and one sentence where it is not."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.best_states.proved import prove_best
from tests.inference.best_states.test_moves import random_model

needs_toulbar = pytest.mark.skipif(importlib.util.find_spec("pytoulbar2") is None, reason="pytoulbar2 is not installed")


def test_without_toulbar2_it_says_how_to_install_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(gs.GibbsiteError, match=r'pip install -e "\.\[proved\]"'):
        gs.infer(random_model(1), "MAP", method="proved", progress=False)


def test_it_answers_map_alone() -> None:
    with pytest.raises(gs.errors.ArgumentError, match="does not answer MAR"):
        gs.infer(random_model(1), "MAR", method="proved")


@needs_toulbar
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_proof_is_right(seed: int, zeros: bool) -> None:
    model = random_model(seed, zeros=zeros)
    levels = gs.exact.enumerate(model)
    best = float(model.log_potential(levels.assignment_codes))
    if best == -np.inf:
        pytest.skip("nothing is possible")
    for start in (None, levels.assignment_codes):
        proof = prove_best(model, start, seconds=20)
        assert proof.proved
        assert proof.log_potential == pytest.approx(best, abs=proof.tolerance)
        assert proof.bound == pytest.approx(best, abs=proof.tolerance)
        assert proof.improved == (start is None)
    answer = gs.infer(model, "MAP", method="proved", rng=1, seconds=60, progress=False)
    assert answer.kind == "exact"
    assert answer.to_dict()["proved"]
    assert answer.log_potential == pytest.approx(best, abs=1e-6)
