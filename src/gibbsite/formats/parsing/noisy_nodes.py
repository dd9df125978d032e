"""Noisy maxima as files list them: the states of each parent by strength, one without effect last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.models.networks.noisy import Causes


def can_be_written(causes: Causes) -> bool:
    """Return whether files can hold a noisy node: a maximum, in which each parent has a state without effect.

    Examples
    --------
    >>> can_be_written(Causes("max", (np.array([[1.0, 0.0], [0.2, 0.8]]),), np.array([1.0, 0.0])))
    True
    """
    none = -1 if causes.descending else 0
    return causes.kind == "max" and all(bool((rows[:, none] == 1.0).any()) for rows in causes.effects)


def write_causes(causes: Causes, turned: Sequence[bool]) -> tuple[Floats, list[int]]:
    """Return the rows of parameters, the leak last, and the strengths; the states of some parents are turned round.

    Rows are in the order of the states of each parent, the strongest state of the node first.
    """
    parts, strengths = [], []
    for rows, back in zip(causes.effects, turned, strict=True):
        part = rows[::-1] if back else rows
        weakest = int(np.flatnonzero(part[:, -1 if causes.descending else 0] == 1.0)[-1])
        strengths += [state for state in range(len(part)) if state != weakest] + [weakest]
        parts.append(part)
    table = np.concatenate([*parts, causes.leak[None]])
    return table if causes.descending else table[:, ::-1], strengths
