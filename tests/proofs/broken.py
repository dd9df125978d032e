"""Kernels and scans with one deliberate mistake each; the proofs must notice every one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._jit import implement
from gibbsite._random import below, uniform
from gibbsite.kernel._local import weights
from gibbsite.kernel.base import Kernel, step, transition
from gibbsite.kernel.rules import pick
from gibbsite.scan.base import Ordered, Scan


class Copy(NamedTuple):
    """Scratch space and a copy of the state as it was some time ago."""

    work: Any
    old: Any


class Jacobi(NamedTuple):
    unused: int = 0


class WrongSign(NamedTuple):
    unused: int = 0


class StaleNeighbour(NamedTuple):
    unused: int = 0


class BiasedDraw(NamedTuple):
    unused: int = 0


class ReusedNumbers(NamedTuple):
    unused: int = 0


class NextSite(NamedTuple):
    unused: int = 0


class LostProposal(NamedTuple):
    unused: int = 0


@dataclass(frozen=True)
class Broken(Kernel):
    """A kernel given by its parameter type."""

    mistake: Any
    conditional = False

    def parameters(self, graph: Any) -> Any:
        return self.mistake()

    def memory(self, graph: Any, stream: Any) -> Copy:
        return Copy(np.zeros(int(graph.cards.max())), np.zeros(graph.n_sites, graph.state_dtype))


@implement(step, Jacobi)
def _jacobi(kernel, graph, memory, x, i, rng, cond, keep):
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


@implement(step, StaleNeighbour)
def _stale(kernel, graph, memory, x, i, rng, cond, keep):
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


@implement(step, BiasedDraw)
def _biased(kernel, graph, memory, x, i, rng, cond, keep):
    """Uniform numbers that never exceed 0.93."""
    size, total = weights(graph, x, i, memory.work)
    rng, u = uniform(rng)
    x[i] = pick(memory.work, size, 0.93 * u * total)
    return rng


@implement(step, ReusedNumbers)
def _reused(kernel, graph, memory, x, i, rng, cond, keep):
    """The generator advances only at the first site: one number serves the whole sweep."""
    size, total = weights(graph, x, i, memory.work)
    after, u = uniform(rng)
    x[i] = pick(memory.work, size, u * total)
    return after if i == 0 else rng


@implement(step, NextSite)
def _next_site(kernel, graph, memory, x, i, rng, cond, keep):
    """Off by one: the conditional of site i is drawn into site i + 1 (all sites have equal domains)."""
    size, total = weights(graph, x, i, memory.work)
    rng, u = uniform(rng)
    x[(i + np.uintp(1)) % np.uintp(x.size)] = pick(memory.work, size, u * total)
    return rng


@implement(step, LostProposal)
def _lost(kernel, graph, memory, x, i, rng, cond, keep):
    """Metropolis that always accepts."""
    size, _ = weights(graph, x, i, memory.work)
    rng, proposal = below(rng, size)
    if memory.work[proposal] > 0.0:
        x[i] = proposal
    return rng


@dataclass(frozen=True)
class SkipsLast(Scan):
    """Off by one: the last site is never visited."""

    def schedule(self, graph: Any, model: Any = None) -> Ordered:
        return Ordered(np.arange(graph.n_sites - 1, dtype=np.int32))
