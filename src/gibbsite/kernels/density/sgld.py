"""Stochastic gradient Langevin dynamics: ULA with the gradient of a random part of the data.

    x' = x + g (grad prior(x) + (N / K) sum over K rows of grad likelihood(x, row)) + sqrt(2 g) z

There is no accept step: its ratio would need the likelihood of all rows, which minibatches avoid, and MALA with a ratio
or gradient of a minibatch is not exact. So the bias of ULA remains, and the noise of the gradient adds to that of the
move, whose covariance is 2 g I + g^2 V. Here V = (N^2 / K) times the covariance of the rows' gradients (with
replacement; times (N - K) / (N - 1) without). The noise is small if g V / 2 << 1. Control variates replace the sum by
its exact value at a fixed place plus differences from that place, which are small near it.

References
----------
.. [1] Welling, M. and Teh, Y. W. (2011). Bayesian learning via stochastic gradient Langevin dynamics. ICML.
.. [2] Baker, J. et al. (2019). Control variates for stochastic gradient MCMC. Statistics and Computing 29.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.foreign import call_at
from gibbsite._numba.intrinsic import fetch
from gibbsite._numba.jit import Integer, compiled, implement, inlined
from gibbsite._numba.random.generators import Words, below
from gibbsite._numba.random.ziggurat import normal
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.graphs.functions.densities import evaluate_gradients, inside
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.density import DataGraph
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.density.bias import Bias, bias_of_steps, curvature_at
from gibbsite.kernels.density.langevin import bias_text
from gibbsite.kernels.density.moves import (
    ACCEPTED,
    MOVES,
    SLOPE,
    MoveMemory,
    WalkingKernel,
    complain,
    is_stuck,
    positive,
    ran_away,
)
from gibbsite.kernels.registry import register

_AHEAD = 5  # number of rows that are prefetched; processors wait for more than ten cache lines at a time
_ROWS = 4000  # number of rows from which the bias is computed
_LINE = 8  # number of floats in a cache line


class SgldParameters(NamedTuple):
    """Size of a minibatch, whether rows are replaced, the decay of steps, and the fixed place with its gradient."""

    batch: int
    replace: bool
    delay: float
    power: float
    fixed: Floats
    slope: Floats


class Batch(NamedTuple):
    """Memory of a chain: its moves, the rows of a minibatch, and a hash table of drawn rows (key, stamp)."""

    moves: MoveMemory
    rows: Ints
    key: Ints
    stamp: Ints
    steps: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file; stamps are numbers of past steps."""
        return {"steps": (0, 1 << 62), "stamp": (0, int(self.steps[0]))}


@register(proof="tests/proofs/test_densities.py")
@dataclass(frozen=True)
class SGLD(WalkingKernel):
    """Stochastic gradient Langevin dynamics: a step reads ``batch`` rows of the data; biased.

    Parameters
    ----------
    step : float
        The step g, or the first one if steps decay.
    batch : int
        Number of rows of a minibatch.
    replace : bool
        Whether rows are drawn with replacement; without, the noise of large batches is smaller.
    decay : (delay, power), optional
        Step number t is ``step * (1 + t / delay) ** -power``, 0.5 < power <= 1; constant by default. All
        draws have the same weight in results.
    control_variates : array (n,), optional
        A fixed place near the mode, at which the gradients of all rows are added up once.

    References
    ----------
    Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.

    Examples
    --------
    >>> import warnings
    >>> import gibbsite as gs
    >>> data = np.random.default_rng(1).normal(3.0, 1.0, 10_000)
    >>> target = gs.DataDensity(
    ...     None,
    ...     lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
    ...     data,
    ...     likelihood_grad=lambda theta, row: np.array([row[0] - theta[0]]),
    ...     dim=1,
    ... )
    >>> kernel = gs.kernels.SGLD(1e-5, batch=100, control_variates=[3.0])
    >>> with warnings.catch_warnings(record=True):
    ...     result = gs.sample(target, kernel, sweeps=1000, start=[3.0], rng=1, progress=False)
    >>> bool(abs(result.marginals["0"]["mean"] - data.mean()) < 0.01)
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"data"})
    exact: ClassVar[bool] = False
    sloped: ClassVar[bool] = True
    rejects: ClassVar[bool] = False
    size_name: ClassVar[str] = "step"
    step: float
    batch: int
    replace: bool = True
    decay: tuple[float, float] | None = None
    control_variates: npt.ArrayLike | None = None

    def first_size(self, graph: Graph) -> Floats:
        """Return the first step."""
        return np.array([positive("the step of SGLD", self.step)])

    def size(self, graph: Graph) -> int:
        """Return the number of rows of a minibatch."""
        rows, size = graph.arrays.rows, self.batch
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ArgumentError(f"the batch of SGLD must be a whole number of at least 1, got {size!r}.")
        if size > rows:
            raise ArgumentError(
                f"a batch of {size} rows is larger than the data with {rows} rows; take fewer, or gs.MALA(), which "
                "reads all rows and is exact."
            )
        return int(size)

    def parameters(self, graph: Graph) -> SgldParameters:
        """Return the parameters of minibatches; at a fixed place, add up the gradients of all rows."""
        self.first_size(graph)
        delay, power = 1.0, 0.0
        if self.decay is not None:
            try:
                delay, power = (float(part) for part in self.decay)
            except (TypeError, ValueError):
                delay = math.nan
            if not (delay > 0.0 and 0.5 < power <= 1.0):
                raise ArgumentError(
                    f"{argument('decay')} must be (delay, power) with delay > 0 and 0.5 < power <= 1, got "
                    f"{self.decay!r}."
                )
        fixed, slope = np.zeros(0), np.zeros(0)
        if self.control_variates is not None:
            fixed = np.ascontiguousarray(self.control_variates, float)
            if fixed.shape != (graph.n_sites,) or not np.isfinite(fixed).all():
                raise ArgumentError(f"{argument('control_variates')} must be a place of {graph.n_sites} numbers.")
            workspace = np.concatenate([fixed, np.zeros(fixed.size)])
            add_all_rows(graph.arrays, workspace)
            slope = workspace[fixed.size :].copy()
            if not np.isfinite(slope).all():
                raise ModelError("the gradient is not finite at the place of the control variates.")
        return SgldParameters(self.size(graph), bool(self.replace), delay, power, fixed, slope)

    def memory(self, graph: Graph, stream: Words64) -> Batch:
        """Allocate places, rows, and a hash table of drawn rows."""
        size = self.size(graph)
        slots = 0 if self.replace else 1 << (2 * size).bit_length()
        none = np.zeros(slots, np.int64)
        return Batch(self.move_memory(graph), np.zeros(size, np.int64), none, none.copy(), np.zeros(1, np.int64))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Warn that there is no accept step, and describe the bias."""
        less = "" if self.replace else " (N - K) / (N - 1)"
        noise = (
            "their noise is that of differences of gradients from the fixed place"
            if self.control_variates is not None
            else f"they add g^2 V to the noise 2 g of a move, V = (N^2 / K){less} times the covariance of "
            "the rows' gradients"
        )
        return (
            KernelWarning(
                f"SGLD has no accept step, which would need the likelihood of all {graph.arrays.rows:,} "
                f"rows: {bias_text(self.step)}. Gradients of minibatches make the bias larger: {noise}. The "
                "verdict states its size.",
                grave=True,
            ),
        )

    def bias(self, graph: Graph, place: Floats, sds: Floats, memories: Any) -> Bias | None:
        """Return the bias near the mean of a run, estimated from the gradients of some rows."""
        arrays, n = graph.arrays, place.size
        many = min(arrays.rows, _ROWS)
        rows = np.sort(np.random.default_rng(0).choice(arrays.rows, many, replace=False))
        data = arrays.data.reshape(arrays.rows, arrays.width)[rows].ravel()
        some, share = arrays._replace(data=data, rows=many), arrays.rows / many

        def of_rows(where: Floats) -> Floats:
            out = np.zeros((many, 2 * n))
            out[:, :n] = where
            row_gradients(some, out)
            return out[:, n:]

        def gradients(places: Floats) -> Floats:
            room = np.zeros((len(places), 2 * n))
            room[:, :n] = places
            if arrays.prior != 0:
                evaluate_gradients(arrays._replace(data=data[:0], rows=0), room)
            return np.asarray(room[:, n:] + share * np.stack([of_rows(each).sum(axis=0) for each in places]))

        curvature = curvature_at(gradients, place, sds)
        if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature)[0] <= 0.0:
            return None
        fixed = None if self.control_variates is None else of_rows(np.asarray(self.control_variates, float))
        # for the average of a quadratic function, points at mean and standard deviations of the target suffice
        aside = np.sqrt(n) * np.linalg.cholesky(np.linalg.inv(curvature)).T
        noise = np.zeros((n, n))
        for where in np.concatenate([place + aside, place - aside]):
            terms = of_rows(where) if fixed is None else of_rows(where) - fixed
            noise += np.cov(terms.T).reshape(n, n) / (2 * n)
        noise *= arrays.rows**2 / self.size(graph)
        if not self.replace:
            noise *= (arrays.rows - self.size(graph)) / max(arrays.rows - 1, 1)
        steps = int(memories[0].steps[0])
        falls = [self._fall(int(t)) for t in np.linspace(0.1 * steps, steps, 64)]
        g = float(memories[0].moves.size[0] * np.mean(falls))
        return bias_of_steps(gradients, place, curvature, g, np.eye(n), noise)

    def freeze(self, memory: Any) -> None:
        """End learning, and set all counts to zero."""
        super().freeze(memory.moves)

    def forget(self, memory: Any) -> None:
        """Forget the current place."""
        super().forget(memory.moves)

    def report(self, memories: Any) -> dict[str, float]:
        """Return the last step."""
        steps = [m.moves.size[0] * self._fall(int(m.steps[0])) for m in memories]
        return {"step": float(np.mean(steps))}

    def _fall(self, steps: int) -> float:
        return 1.0 if self.decay is None else float((1.0 + steps / self.decay[0]) ** -self.decay[1])

    def inspect(self, model: Any, graph: Graph, memory: Any) -> None:
        """Raise the error of a failed step."""
        super().inspect(model, graph, memory.moves)


@inlined
def add_row(arrays: DataGraph, workspace: Floats, row: Integer) -> float:
    """Add the gradient of a row's log-likelihood to the sum after a place; return NaN if that fails."""
    at = row * arrays.width
    return call_at(arrays.gradient, workspace, 0, arrays.low.size, arrays.data, at, arrays.width, arrays.nothing)


@compiled
def add_all_rows(arrays: DataGraph, workspace: Floats) -> None:
    """Add the gradients of all rows, without the prior."""
    for row in range(arrays.rows):
        add_row(arrays, workspace, row)


@compiled
def row_gradients(arrays: DataGraph, workspaces: Floats) -> None:
    """Write the gradient of each row to a separate workspace, after the place."""
    for row in range(arrays.rows):
        failed = add_row(arrays, workspaces[row], row)
        workspaces[row, -1] += failed


@inlined
def draw_rows(parameters: SgldParameters, arrays: DataGraph, memory: Batch, rng: Words) -> Words:
    """Draw the rows of a minibatch: independent ones, or a random subset (Floyd's algorithm, with a hash table)."""
    many, size = arrays.rows, parameters.batch
    if parameters.replace:
        for k in range(size):
            rng, memory.rows[k] = below(rng, many)
        return rng
    mask, now = memory.key.size - 1, memory.steps[0] + 1
    for k in range(size):
        last = many - size + k
        rng, row = below(rng, last + 1)
        for _ in range(2):  # a row that has been drawn already is replaced by the last one, which has not
            slot = (row * 0x9E3779B1) & mask
            while memory.stamp[slot] == now and memory.key[slot] != row:
                slot = (slot + 1) & mask
            if memory.stamp[slot] != now:
                break
            row = np.int64(last)
        memory.stamp[slot] = now
        memory.key[slot] = row
        memory.rows[k] = row
    return rng


@inlined
def batch_gradient(parameters: SgldParameters, arrays: DataGraph, memory: Batch) -> float:
    """Write the estimate of the gradient after the current place; return NaN if a function failed."""
    n, size, width = arrays.low.size, parameters.batch, arrays.width
    here, there = memory.moves.here, memory.moves.there
    controlled = parameters.fixed.size > 0
    failed = 0.0
    for k in range(n):
        here[n + k] = 0.0
        there[n + k] = 0.0
        if controlled:
            there[k] = parameters.fixed[k]
    for k in range(size):
        if k + _AHEAD < size:
            first = memory.rows[k + _AHEAD] * width
            for line in range(first, first + width, _LINE):
                fetch(arrays.data, line)
            fetch(arrays.data, first + width - 1)
        failed += add_row(arrays, here, memory.rows[k])
        if controlled:
            failed += add_row(arrays, there, memory.rows[k])
    ratio = float(arrays.rows) / size
    for k in range(n):
        here[n + k] = ratio * (here[n + k] - there[n + k])
        if controlled:
            here[n + k] += parameters.slope[k]
    if arrays.prior != 0:
        failed += call_at(arrays.prior_gradient, here, 0, n, there, n, n, arrays.nothing)
        for k in range(n):
            here[n + k] += there[n + k]
    for k in range(n):
        failed += here[n + k] - here[n + k]
    return failed


@implement(step, SgldParameters)
def _move_sgld(
    params: SgldParameters, arrays: Any, memory: Batch, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Make a step of SGLD."""
    moves = memory.moves
    if is_stuck(moves):
        return rng
    n = x.size
    if moves.now[1] == 0.0:
        moves.now[1] = 1.0
        for k in range(n):
            moves.home[k] = x[k]
    for k in range(n):
        moves.here[k] = x[k]
    rng = draw_rows(params, arrays, memory, rng)
    failed = batch_gradient(params, arrays, memory)
    if failed != 0.0:  # or NaN
        complain(moves, SLOPE, failed, x)
        return rng
    g = moves.size[0]
    if params.power > 0.0:
        g *= (1.0 + memory.steps[0] / params.delay) ** -params.power
    root = math.sqrt(2.0 * g)
    for k in range(n):
        rng, z = normal(rng)
        moves.there[k] = x[k] + g * moves.here[n + k] + root * z
    memory.steps[0] += 1
    moves.counts[MOVES] += 1
    if not ran_away(moves, moves.there) and inside(arrays, moves.there):
        moves.counts[ACCEPTED] += 1
        for k in range(n):
            x[k] = moves.there[k]
    return rng
