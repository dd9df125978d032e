"""Kernels and scans with one deliberate mistake each; the proofs must notice every one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._numba.jit import implement, inlined
from gibbsite._numba.random.generators import below, uniform
from gibbsite.graphs.local import weights
from gibbsite.kernels.base import Kernel, step, transition
from gibbsite.kernels.rules import pick
from gibbsite.scans.base import Ordered, Scan, in_order


class Copy(NamedTuple):
    """Scratch space and a copy of the state as it was some time ago."""

    work: Any
    old: Any


class Mistake(NamedTuple):
    """The number of a mistake: all of them are compiled together."""

    number: int


class WrongSign(NamedTuple):
    """The one mistake that is in the transition probabilities, too."""

    unused: int = 0


MISTAKES = ("Jacobi", "StaleNeighbour", "BiasedDraw", "ReusedNumbers", "NextSite", "LostProposal")
_JACOBI, _STALE, _BIASED, _REUSED, _NEXT, _ = range(6)


@dataclass(frozen=True)
class Broken(Kernel):
    """A kernel given by the name of its mistake."""

    mistake: str
    conditional = False

    def parameters(self, graph: Any) -> Mistake | WrongSign:
        return WrongSign() if self.mistake == "WrongSign" else Mistake(MISTAKES.index(self.mistake))

    def memory(self, graph: Any, stream: Any) -> Copy:
        return Copy(np.zeros(int(graph.cards.max())), np.zeros(graph.n_sites, graph.state_dtype))


@inlined
def _jacobi(graph, memory, x, i, rng):
    """All sites see the state at the beginning of the sweep."""
    old = memory.old
    if i == 0:
        for j in range(x.size):
            old[j] = x[j]
    size, total = weights(graph, old, i, memory.work)
    rng, u = uniform(rng)
    if total > 0.0:
        x[i] = pick(memory.work, size, u * total)
    return rng


@implement(step, WrongSign)
def _wrong_sign(kernel, graph, memory, x, i, rng, cond, keep):
    """Weights inverted, as by a wrong sign of the energy."""
    w = memory.work
    size, total = weights(graph, x, i, w)
    total = 0.0
    for a in range(size):
        w[a] = 1.0 / w[a] if w[a] > 0.0 else 0.0
        total += w[a]
    rng, u = uniform(rng)
    x[i] = pick(w, size, u * total)
    return rng


@implement(transition, WrongSign)
def _wrong_sign_row(kernel, graph, memory, x, i, row):
    size, total = weights(graph, x, i, row)
    total = 0.0
    for a in range(size):
        row[a] = 1.0 / row[a] if row[a] > 0.0 else 0.0
        total += row[a]
    for a in range(size):
        row[a] /= total
    return size


@inlined
def _stale(graph, memory, x, i, rng):
    """The conditional is computed one step late: the last update is not seen."""
    old = memory.old
    old[i] = x[i]
    size, total = weights(graph, old, i, memory.work)
    for j in range(x.size):
        old[j] = x[j]
    rng, u = uniform(rng)
    if total > 0.0:
        x[i] = pick(memory.work, size, u * total)
    return rng


@inlined
def _biased(graph, memory, x, i, rng):
    """Uniform numbers that never exceed 0.93."""
    size, total = weights(graph, x, i, memory.work)
    rng, u = uniform(rng)
    x[i] = pick(memory.work, size, 0.93 * u * total)
    return rng


@inlined
def _reused(graph, memory, x, i, rng):
    """The generator advances only at the first site: one number serves the whole sweep."""
    size, total = weights(graph, x, i, memory.work)
    after, u = uniform(rng)
    x[i] = pick(memory.work, size, u * total)
    return after if i == 0 else rng


@inlined
def _next_site(graph, memory, x, i, rng):
    """Off by one: the conditional of site i is drawn into site i + 1 (all sites have equal domains)."""
    size, total = weights(graph, x, i, memory.work)
    rng, u = uniform(rng)
    x[(i + np.uintp(1)) % np.uintp(x.size)] = pick(memory.work, size, u * total)
    return rng


@inlined
def _lost(graph, memory, x, i, rng):
    """Metropolis that always accepts."""
    size, _ = weights(graph, x, i, memory.work)
    rng, proposal = below(rng, size)
    if memory.work[proposal] > 0.0:
        x[i] = proposal
    return rng


@implement(step, Mistake)
def _mistaken(kernel, graph, memory, x, i, rng, cond, keep):
    number = kernel.number
    if number == _JACOBI:
        return _jacobi(graph, memory, x, i, rng)
    if number == _STALE:
        return _stale(graph, memory, x, i, rng)
    if number == _BIASED:
        return _biased(graph, memory, x, i, rng)
    if number == _REUSED:
        return _reused(graph, memory, x, i, rng)
    if number == _NEXT:
        return _next_site(graph, memory, x, i, rng)
    return _lost(graph, memory, x, i, rng)


@dataclass(frozen=True)
class SkipsLast(Scan):
    """Off by one: the last site is never visited."""

    def schedule(self, graph: Any, model: Any = None) -> Ordered:
        return in_order(np.arange(graph.n_sites - 1, dtype=np.int32))
