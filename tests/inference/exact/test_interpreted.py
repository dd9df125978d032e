"""Exact inference without the compiler gives the same numbers, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba import jit
from gibbsite.testing import tiny_models


@pytest.mark.skipif(jit.DISABLED, reason="compilation is switched off")
@pytest.mark.parametrize("name", sorted(tiny_models()))
def test_interpreted_equals_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for patience in (1e9, -1.0):
        monkeypatch.setattr(jit._Patience, "steps", patience)
        monkeypatch.setattr(jit.Entry, "_at_hand", lambda entry: False)
        model = tiny_models()[name]  # a new one: orders are kept with the structure
        marginals, best = gs.solve_exact(model), gs.solve_exact(model, task="MAP")
        draws = best.draw(5, np.random.default_rng(1))
        cells = [p for states in marginals.marginals.values() for p in states.values()]
        found.append((marginals.log_z, cells, best.assignment_codes.tolist(), draws.tolist()))
    assert found[0] == found[1]
