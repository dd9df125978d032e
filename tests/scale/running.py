"""Short runs, and whether two of them are the same to the last byte."""

from __future__ import annotations

from typing import Any

import gibbsite as gs


def sample(model: Any, **how: Any) -> gs.Result:
    """Sample with the settings of these tests."""
    kernel = how.pop("kernel", None)
    options = {"sweeps": 200, "rng": 3, "progress": False, "second_look": False, **how}
    return gs.sample(model, kernel, **options)


def same(one: gs.Result, other: gs.Result) -> bool:
    """Tell whether marginals, their errors and the verdict are the same, byte by byte."""
    return bool(
        one.marginals.cells.tobytes() == other.marginals.cells.tobytes()
        and one.mcse.cells.tobytes() == other.mcse.cells.tobytes()
        and one.diagnostics.line() == other.diagnostics.line()
    )
