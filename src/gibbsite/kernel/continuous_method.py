"""How a new value of a number is found: a method asks for energies at some points, and then at others.

The loop over factors is in one place, and methods do not know of it: what they ask for is evaluated, they
look at the energies and ask again, or have found a value.
"""

from __future__ import annotations

from typing import Any

from gibbsite._jit import Integer, generic
from gibbsite._random import Words
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.continuous_energy import ContinuousMemory, Floats


@generic
def ask(
    method: Any, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Write the points where the energy of site i is needed first to ``desk.points``; return how many."""
    raise NotImplementedError


@generic
def answer(
    method: Any, graph: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Look at ``desk.energy``; return the number of further points, or 0 and a value in ``desk.stage``."""
    raise NotImplementedError
