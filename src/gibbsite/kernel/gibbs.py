"""Gibbs sampling: draw a site from its conditional given the rest.

Three rules share the conditional and differ in how the new value is drawn from it:

* ``heat-bath``: independently of the old value (the textbook sampler);
* ``metropolised``: propose one of the *other* values in proportion to its weight, accept with
  min(1, (1 - p_old) / (1 - p_new)). Never worse than heat bath in asymptotic variance [1]_;
* ``suwa-todo``: global balance without detailed balance, rejection as small as possible [2]_.

For two states the last two are the same (Metropolis flip).

References
----------
.. [1] Liu, J. S. (1996). Peskun's theorem and a modified discrete-state Gibbs sampler. Biometrika 83.
.. [2] Suwa, H. and Todo, S. (2010). Markov chain Monte Carlo method without detailed balance. PRL 105.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, implement, inlined
from gibbsite._random import Words, uniform
from gibbsite.errors import ModelError
from gibbsite.graph.kinds import IsingGraph, LatticeGraph, PottsGraph
from gibbsite.graph.lower import Graph
from gibbsite.kernel._local import log_odds, weights
from gibbsite.kernel.base import Buffer, Kernel, step, transition
from gibbsite.kernel.running import Running, note_change, running_memory, running_pays, running_weights

RULES = ("heat-bath", "metropolised", "suwa-todo")
_HEAT_BATH, _METROPOLISED, _SUWA_TODO = range(3)
_ONE = np.uintp(1)
_BINS = 1024
# logit(k / 1024) for k = 0 .. 1024, both ends infinite
_LOGITS = np.array(
    [-np.inf, *(math.log(k / (_BINS - k)) for k in range(1, _BINS)), np.inf],
)


class GibbsParameters(NamedTuple):
    """Parameters of the Gibbs step: the number of the rule."""

    rule: int


@dataclass(frozen=True)
class Gibbs(Kernel):
    """Plain Gibbs sampling.

    Parameters
    ----------
    rule : {"heat-bath", "metropolised", "suwa-todo"}
        How the new value is drawn from the conditional.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.3)
    >>> result = gs.sample(model, gs.Gibbs(rule="metropolised"), sweeps=100, rng=1, progress=False)
    >>> 0.3 < result.marginals["5"][1] < 0.7
    True
    """

    rule: str = "heat-bath"

    @property
    def at_once(self) -> bool:
        """The heat bath, which forgets the old value, can move many sites at once."""
        return self.rule == "heat-bath"

    @property
    def reversible(self) -> bool:
        """Every rule but Suwa and Todo's."""
        return self.rule != "suwa-todo"

    def parameters(self, graph: Graph) -> GibbsParameters:
        """Return the rule's number."""
        if self.rule not in RULES:
            raise ModelError(f"Gibbs rule {self.rule!r} is unknown; choose one of {', '.join(RULES)}.")
        return GibbsParameters(RULES.index(self.rule))

    def memory(self, graph: Graph, stream: NDArray[np.uint64]) -> NamedTuple:
        """Keep log-weights where that pays, otherwise a scratch array."""
        return running_memory(graph) if running_pays(graph) else super().memory(graph, stream)

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        scratch = super().memory_bytes(graph)
        return scratch * (1 + graph.n_sites) + 8 if running_pays(graph) else scratch

    def forget(self, memory: Any) -> None:
        """Let the log-weights be summed up anew."""
        if isinstance(memory, Running):
            memory.left[0] = 0


@implement(step, GibbsParameters, IsingGraph)
@implement(step, GibbsParameters, LatticeGraph)
def _step_binary(
    kernel: GibbsParameters,
    graph: IsingGraph | LatticeGraph,
    memory: Buffer,
    x: NDArray[np.int8],
    i: Integer,
    rng: Words,
    cond: NDArray[np.float64],
    keep: bool,
) -> Words:
    rng, u = uniform(rng)
    odds = log_odds(graph, x, i)
    if keep:
        cond[i] = odds
    if kernel.rule == _HEAT_BATH:
        x[i] = is_up(odds, u)
    else:
        gain = odds if x[i] == 0 else -odds
        if gain >= 0.0 or u < math.exp(gain):
            x[i] = 1 - x[i]
    return rng


@inlined
def is_up(odds: float, u: float) -> bool:
    """Tell whether u < P(1) = 1 / (1 + exp(-odds)), that is odds > logit(u).

    A table of logits brackets logit(u) so closely that the logarithm itself is needed in one update of a
    thousand.
    """
    k = np.uintp(u * _BINS)
    up: bool = odds >= _LOGITS[k + _ONE]
    if up != (odds >= _LOGITS[k]):  # a branch that is almost never taken, unlike one on ``up``
        up = odds > math.log(u / (1.0 - u))
    return up


@implement(step, GibbsParameters)
def _step_categorical(
    kernel: GibbsParameters,
    graph: Any,
    memory: Buffer,
    x: NDArray[np.int16],
    i: Integer,
    rng: Words,
    cond: NDArray[np.float64],
    keep: bool,
) -> Words:
    size, total = weights(graph, x, i, memory.work)
    return _draw(kernel, graph, memory.work, size, total, x, i, rng, cond, keep)


@implement(step, GibbsParameters, PottsGraph, Running)
def _step_running(
    kernel: GibbsParameters,
    graph: PottsGraph,
    memory: Running,
    x: NDArray[np.int16],
    i: Integer,
    rng: Words,
    cond: NDArray[np.float64],
    keep: bool,
) -> Words:
    size, total = running_weights(graph, memory, x, i)
    old = x[i]
    rng = _draw(kernel, graph, memory.work, size, total, x, i, rng, cond, keep)
    if x[i] != old:
        note_change(graph, memory, i, old, x[i])
    return rng


@inlined
def _draw(
    kernel: GibbsParameters,
    graph: Any,
    w: NDArray[np.float64],
    size: Integer,
    total: float,
    x: NDArray[np.int16],
    i: Integer,
    rng: Words,
    cond: NDArray[np.float64],
    keep: bool,
) -> Words:
    """Draw the value of a site from its weights by the rule of the kernel."""
    rng, u = uniform(rng)
    if total > 0.0:
        if keep:
            put_cells(graph, w, size, total, i, cond)
        if kernel.rule == _HEAT_BATH:
            x[i] = pick(w, size, u * total)
        else:
            if kernel.rule == _METROPOLISED:
                metropolised_row(w, size, total, np.int64(x[i]))
            else:
                suwa_todo_row(w, size, np.int64(x[i]))
            x[i] = pick(w, size, u)
    return rng


@inlined
def put_cells(
    graph: Any, w: NDArray[np.float64], size: Integer, total: float, i: Integer, cond: NDArray[np.float64]
) -> None:
    """Write the conditional of a site to ``cond``."""
    cell = np.uintp(graph.offset[i])
    scale = 1.0 / total
    for a in range(np.uintp(size)):
        cond[cell + a] = w[a] * scale


@inlined
def pick(w: NDArray[np.float64], size: Integer, level: float) -> Integer:
    """Return the state at which the running sum of ``w`` passes ``level``, never one of weight zero."""
    passed = 0.0
    for a in range(size):
        passed += w[a]
        if level < passed:
            return a
    for a in range(size - 1, -1, -1):  # rounding brought the level to the total
        if w[a] > 0.0:
            return a
    return 0


@inlined
def metropolised_row(w: NDArray[np.float64], size: Integer, total: float, now: Integer) -> None:
    """Replace weights by the transition row of Liu's rule from state ``now``.

    P(now -> v) = p_v / (1 - p_now) * min(1, (1 - p_now) / (1 - p_v)) = p_v / max(1 - p_now, 1 - p_v).
    """
    rest = 0.0  # 1 - p_now as a sum, so that nothing cancels when p_now is close to one
    for a in range(size):
        if a != now:
            rest += w[a]
    stay = total
    for a in range(size):
        if a != now:
            others = total - w[a]
            w[a] = w[a] / max(rest, others) if w[a] > 0.0 else 0.0
            stay -= w[a] * total
    w[now] = max(stay / total, 0.0)


@inlined
def suwa_todo_row(w: NDArray[np.float64], size: Integer, now: Integer) -> None:
    """Replace weights by the transition row of the Suwa-Todo rule from state ``now``.

    Lay the weights end to end on a circle, the largest first, and turn the circle by the largest weight: what
    lay on i now lies on the states it flows to. This is their v_ij = max(0, min(D, w_i + w_j - D, w_i, w_j)),
    D = S_i - S_{j-1} + w_1, as overlaps of intervals. States keep their own order behind the largest.
    """
    first = 0
    for a in range(size):
        if w[a] > w[first]:
            first = a
    total = 0.0
    low = 0.0
    for k in range(size):
        a = (first + k) % size
        if a == now:
            low = total
        total += w[a]
    low += w[first]
    high = low + w[now]
    begin = 0.0
    landed = first  # where the lower end comes to lie, should the interval vanish by rounding
    length = 0.0
    for k in range(size):
        a = (first + k) % size
        end = begin + w[a]
        if w[a] > 0.0 and (begin <= low < end or begin <= low - total < end):
            landed = a
        straight = min(high, end) - max(low, begin)
        around = min(high - total, end) - max(low - total, begin)
        w[a] = max(0.0, straight) + max(0.0, around)
        length += w[a]
        begin = end
    for a in range(size):
        if length > 0.0:
            w[a] = w[a] / length
        else:
            w[a] = 1.0 if a == landed else 0.0


@implement(transition, GibbsParameters)
def _transition(
    kernel: GibbsParameters,
    graph: Any,
    memory: Buffer,
    x: NDArray[Any],
    i: Integer,
    row: NDArray[np.float64],
) -> Integer:
    size, total = weights(graph, x, i, row)
    if kernel.rule == _HEAT_BATH:
        for a in range(size):
            row[a] /= total
    elif kernel.rule == _METROPOLISED:
        metropolised_row(row, size, total, np.int64(x[i]))
    else:
        suwa_todo_row(row, size, np.int64(x[i]))
    return size
