"""The textbook Gibbs sampler: draw a site, or a block, from its full conditional, as users give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._foreign import call_at
from gibbsite._jit import Integer, implement
from gibbsite._random import Words, load, store
from gibbsite.errors import SamplingError
from gibbsite.graph.conditionals import ConditionalsGraph
from gibbsite.graph.lower import Graph
from gibbsite.kernel._local import log_potential
from gibbsite.kernel.base import Kernel, step
from gibbsite.kernel.slicing import Slice, SliceParameters
from gibbsite.kernel.walking import Walk

if TYPE_CHECKING:
    from gibbsite.model import Model

_OTHER = Slice()
# what went wrong
_FAILED, _OUTSIDE = 1, 2


class ConditionalsMemory(NamedTuple):
    """Room for the values of a block and the words of the generator; what went wrong, where, what value.

    ``walk`` is what slice sampling of sites without a function needs.
    """

    out: NDArray[np.float64]
    words: NDArray[np.uint64]
    trouble: NDArray[np.int64]
    value: NDArray[np.float64]
    walk: Walk


class ConditionalsParameters(NamedTuple):
    """How sites without a function are moved."""

    other: SliceParameters


@dataclass(frozen=True)
class ConditionalGibbs(Kernel):
    """Gibbs sampling by functions that draw from full conditionals (:class:`gibbsite.Conditionals`).

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.Conditionals({
    ...     "a": lambda x, rng: rng.normal(0.4 * x[1], 0.68**0.5),
    ...     "b": lambda x, rng: rng.normal(0.8 * x[0], 1.36**0.5),
    ... })
    >>> result = gs.sample(target, gs.ConditionalGibbs(), sweeps=1000, rng=1, progress=False)
    >>> abs(result.marginals["b"]["mean"]) < 0.3
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"conditionals"})
    conditional: ClassVar[bool] = False
    fallible: ClassVar[bool] = True

    def parameters(self, graph: Graph) -> ConditionalsParameters:
        """Return how sites without a function are moved; all else is in the graph."""
        return ConditionalsParameters(_OTHER.parameters(graph))

    def memory(self, graph: Graph, stream: NDArray[np.uint64]) -> ConditionalsMemory:
        """Allocate room for the largest block."""
        widest = int(np.diff(graph.arrays.start).max(initial=1))
        words, trouble = np.zeros(4, np.uint64), np.zeros(2, np.int64)
        return ConditionalsMemory(np.zeros(widest), words, trouble, np.zeros(1), _OTHER.walk(graph))

    def freeze(self, memory: Any) -> None:
        """End learning how wide slices should be."""
        _OTHER.freeze(memory.walk)

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Stop where a function failed, or left the domain of its sites."""
        _OTHER.inspect(model, graph, memory.walk)
        what, where = memory.trouble.tolist()
        if not what:
            return
        arrays: ConditionalsGraph = graph.arrays
        if what == _FAILED:
            block = model.domains.scope_text(arrays.member[arrays.start[where] : arrays.start[where + 1]])
            raised = graph.take_raised()
            said = f": {raised!r}" if raised else ", or returned a value that is no number"
            raise SamplingError(f"the conditional of {block} failed{said}.") from raised
        name = model.domains.names[where]
        low, high = arrays.low[where], arrays.high[where]
        raise SamplingError(
            f"the conditional of the site {name!r} returned {memory.value[0]:.6g}, which is "
            f"{'no state code' if arrays.card[where] else 'not'} between {low:g} and {high:g}."
        )


@implement(log_potential, ConditionalsGraph)
def _log_potential_conditionals(graph: ConditionalsGraph, x: NDArray[Any]) -> float:
    if graph.density == 0:
        return 0.0
    return call_at(graph.density, x, 0, x.size, x, 0, 0, graph.nothing)


@implement(step, ConditionalsParameters)
def _step(
    kernel: ConditionalsParameters,
    graph: ConditionalsGraph,
    memory: ConditionalsMemory,
    x: NDArray[Any],
    i: Integer,
    rng: Words,
    cond: NDArray[np.float64],
    keep: bool,
) -> Words:
    if memory.trouble[0] != 0:
        return rng
    if graph.address[i] == 0:
        memory.walk.now[1] = 0.0  # others have moved since
        return step(
            kernel.other, graph, memory.walk, x, np.uintp(graph.member[graph.start[i]]), rng, cond, keep
        )
    first, count = graph.start[i], graph.start[i + 1] - graph.start[i]
    store(memory.words, rng)
    said = call_at(graph.address[i], x, 0, x.size, memory.out, 0, count, memory.words)
    rng = load(memory.words)
    if np.isnan(said):
        memory.trouble[0], memory.trouble[1] = _FAILED, i
        return rng
    for k in range(count):
        site, v = graph.member[first + k], memory.out[k]
        inside = graph.low[site] <= v <= graph.high[site]
        if not inside or (graph.card[site] > 0 and v != np.floor(v)):
            memory.trouble[0], memory.trouble[1], memory.value[0] = _OUTSIDE, site, v
            return rng
    for k in range(count):
        x[graph.member[first + k]] = memory.out[k]
    return rng
