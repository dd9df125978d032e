"""Local minibatch Gibbs: a uniform subset of the factors of a site, scaled up. Biased.

The obvious shortcut, a baseline for :mod:`.poisson`: of the N factors of a site take a random subset of B,
and draw from exp(N / B times their sum). The mean of an exponential is not the exponential of a mean: the
distribution it samples is another one, at no known distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Codes, Floats, Ints, Words64
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words, below
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.local import log_weights
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.minibatch.factors import (
    DRAWN,
    KEPT,
    UPDATES,
    MinibatchKernel,
    add_factor,
    draw_from_logs,
    drawn_rows,
    factor_at,
    start_logs,
)
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.scans.base import Scan


class LocalParameters(NamedTuple):
    """Rows of factors, and the size of the subset."""

    rows: Any
    size: int


class Subset(NamedTuple):
    """Memory of a chain: scratch and counts; and in which update each factor of a site was last taken."""

    work: Floats
    spare: Floats
    counts: Ints
    taken: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return between which numbers the entries of arrays from a file lie: updates are past ones."""
        return {"counts": (0, 1 << 62), "taken": (-1, int(self.counts[0]))}


@register(proof=[{"minibatch": 1}])
@dataclass(frozen=True)
class LocalMinibatchGibbs(MinibatchKernel):
    """Gibbs sampling from a random subset of the factors of a site; biased, for comparison only.

    Parameters
    ----------
    minibatch : int
        Size of the subset; sites with fewer factors are updated in full.

    Examples
    --------
    >>> import gibbsite as gs
    >>> import warnings
    >>> model = gs.potts(np.full((50, 50), 0.05) - 0.05 * np.eye(50), 3)
    >>> with warnings.catch_warnings(record=True):
    ...     result = gs.sample(model, gs.kernels.LocalMinibatchGibbs(8), sweeps=500, rng=1, progress=False)
    >>> result.report["factors"]
    8.0
    """

    exact: ClassVar[bool] = False
    minibatch: int = 16

    def parameters(self, graph: Graph) -> LocalParameters:
        """Return the factors and the size of subsets."""
        size = self.minibatch
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ArgumentError(f"minibatch of LocalMinibatchGibbs must be a whole number of at least 1, got {size!r}.")
        return LocalParameters(drawn_rows(graph), int(size))

    def memory(self, graph: Graph, stream: Words64) -> Subset:
        """Allocate scratch, counts, and a mark for each factor of a site."""
        widest = int(drawn_rows(graph).degree.max(initial=0))
        return Subset(*self.workspace(graph), np.zeros(widest, np.int64))

    def warnings(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Warn that it is biased."""
        if (drawn_rows(graph).degree <= self.minibatch).all():
            return ()
        return (
            KernelWarning(
                "Local minibatch Gibbs is biased: however long the run, it does not tend to the "
                "probabilities of the model, and standard errors do not show it; gs.PoissonGibbs() is exact.",
                grave=True,
            ),
        )


@implement(step, LocalParameters)
def _step(
    parameters: LocalParameters, arrays: Any, memory: Subset, x: Codes, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    memory.counts[UPDATES] += 1
    w, rows = memory.work, parameters.rows
    many, size = np.int64(rows.degree[i]), np.int64(parameters.size)
    if many <= size:
        states = np.int64(log_weights(arrays, x, i, w))
        size = many
    else:
        states = start_logs(rows, i, w)
        now = memory.counts[UPDATES]
        for last in range(many - size, many):  # Floyd's algorithm for a random subset
            rng, number = below(rng, last + 1)
            if memory.taken[number] == now:
                number = np.int64(last)
            memory.taken[number] = now
            k, view = factor_at(rows, i, x, number)
            add_factor(rows, k, i, view, many / size, w)
    memory.counts[DRAWN] += size
    memory.counts[KEPT] += size
    return draw_from_logs(arrays, x, i, w, states, rng, cond, keep)
