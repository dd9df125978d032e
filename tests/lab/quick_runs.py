"""What experiments find in quick mode, each run once."""

from __future__ import annotations

from functools import cache

import gibbsite as gs


@cache
def findings(name: str) -> gs.lab.Findings:
    return gs.lab.run(name, quick=True, rng=1, progress=False)
