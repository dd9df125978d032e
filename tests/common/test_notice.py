"""Warnings point to the line of the user's code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs

FRUSTRATED = gs.ising(np.triu(np.random.default_rng(1).normal(size=(12, 12)) * 3.0, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: gs.mean_field(FRUSTRATED, max_iterations=1, tolerance=1e-15),
        lambda: gs.sample(FRUSTRATED, sweeps=20, rng=1, progress=False),
        lambda: gs.infer(FRUSTRATED, method="gibbs", sweeps=20, rng=1, progress=False),
    ],
    ids=["mean field", "sample", "infer"],
)
def test_a_warning_names_the_line_of_the_call(call: Callable[[], Any]) -> None:
    with pytest.warns(gs.ConvergenceWarning) as found:
        call()
    assert {each.filename for each in found} == {__file__}


def test_no_module_counts_the_calls_above_it() -> None:
    modules = Path(gs.__file__).parent.rglob("*.py")
    assert [str(path) for path in modules if re.search(r"stacklevel=\d", path.read_text(encoding="utf-8"))] == []
