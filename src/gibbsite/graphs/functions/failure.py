"""Why a function of the user was no number at a place: the exception that compiled code turned into NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.foreign import Foreign, call_at
from gibbsite.graphs.graph import Graph

_WORDS = np.zeros(4, np.uint64)


def cause_at(graph: Graph, x: Floats) -> BaseException | None:
    """Return what the first function of a graph that fails at a place raises there, None if none does."""
    raised = graph.take_raised()
    if raised is not None:
        return raised
    for number, code in enumerate(graph.functions):
        if code.key == "draw":
            continue
        for first, second in _arguments(graph, number, code, x):
            if _fails(code, first, second):
                found: BaseException | None = code.cause_at(first, second)
                if found is not None:
                    return found
    return None


def cause_text(raised: BaseException | None) -> str:
    """Return a sentence about an exception of a function, to be put behind another; empty if there is none."""
    if raised is None:
        return ""
    hint = "; its argument has the values of its own sites, in order" if isinstance(raised, IndexError) else ""
    return f" The function raised {raised!r}{hint}."


def _arguments(graph: Graph, number: int, code: Foreign, x: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield the arrays that a function of a graph is called with at a place."""
    arrays: Any = graph.arrays
    if graph.kind == "functions":
        yield from arrays.calls_of(number, x)
    elif code.key in ("value2", "adding"):
        for row in arrays.data.reshape(arrays.rows, arrays.width):
            yield x, row
    else:
        yield x, np.zeros(x.size if code.key == "array" else 0)


def _fails(code: Foreign, first: Floats, second: Floats) -> bool:
    workspace = np.concatenate([first, np.zeros(first.size)])  # gradients of rows are written behind the place
    value = call_at(code.address, workspace, 0, first.size, second.copy(), 0, second.size, _WORDS)
    return math.isnan(value) or value == math.inf
