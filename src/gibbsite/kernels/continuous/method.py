"""How a new value of a site is found: a method asks for energies at some points, and then at others.

The loop over factors is in one place, and methods do not know of it: what they ask for is evaluated, they
look at the energies and ask again, or have found a value. All methods are one piece of compiled code; which
one a site takes is a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints8
from gibbsite._numba.jit import Integer, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.graphs.functions.bounds import Bounds
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.graphs.local import from_logs
from gibbsite.kernels.continuous.energy import CHOSEN, ContinuousMemory
from gibbsite.kernels.continuous.interpolated import Interpolation, answer_nodes, ask_nodes
from gibbsite.kernels.continuous.inverse import answer_ends, ask_ends
from gibbsite.kernels.continuous.rejection import answer_trials, ask_trials
from gibbsite.kernels.continuous.slice import answer_slice, ask_slice
from gibbsite.kernels.rules import pick

STATES, INVERSE, INTERPOLATED, REJECTED, SLICED = range(5)


class Method(NamedTuple):
    """The method of each site, and what methods need; ``gain`` is log(1 + 1 / tau)."""

    kind: Ints8
    interpolation: Interpolation
    gain: float
    bounds: Bounds


@inlined
def ask(
    method: Method, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Write the points where the energy of site i is needed first to the workspace; return how many."""
    kind = method.kind[i]
    if kind == STATES:
        for a in range(arrays.card[i]):
            memory.workspace.points[a] = a
        return rng, np.int64(arrays.card[i])
    if kind == INVERSE:
        return rng, ask_ends(arrays, memory, i)
    if kind == INTERPOLATED:
        return rng, ask_nodes(method.interpolation, arrays, memory, x, i)
    if kind == REJECTED:
        return ask_trials(method.bounds, method.gain, arrays, memory, i, rng)
    return rng, ask_slice(arrays, memory, x, i)


@inlined
def answer(
    method: Method, arrays: ContinuousGraph, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words
) -> tuple[Words, Integer]:
    """Look at the energies; return the number of further points, or 0 and a value in ``workspace.stage``."""
    kind = method.kind[i]
    if kind == STATES:
        size, w = np.int64(arrays.card[i]), memory.workspace.energy
        rng, u = uniform(rng)
        memory.workspace.stage[CHOSEN] = pick(w, size, u * from_logs(w, size))
        return rng, 0
    if kind == INVERSE:
        return answer_ends(arrays, memory, i, rng), 0
    if kind == INTERPOLATED:
        return answer_nodes(method.interpolation, arrays, memory, x, i, rng)
    if kind == REJECTED:
        return answer_trials(arrays, memory, i, rng)
    return answer_slice(arrays, memory, x, i, rng)
