"""The textbook Gibbs sampler: draw a site, or a block, from a full conditional that users supply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._numba.foreign import call_at
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words, load, store
from gibbsite.errors import ModelError, SamplingError
from gibbsite.graphs.functions.densities import wrapped
from gibbsite.graphs.functions.failure import cause_text
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.conditionals import ConditionalsGraph
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.density.moves import MoveMemory
from gibbsite.kernels.density.slice import Slice, SliceParameters
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import Model

_OTHER = Slice()
# Kinds of failures.
_FAILED, _OUTSIDE = 1, 2


class ConditionalsMemory(NamedTuple):
    """The values of a block, the words of the generator, and the record of a failure.

    ``trouble`` has the kind of the failure, the block, and the rank of the first site that failed; ``place`` has the
    state before the failed draw, and ``words`` the generator. ``moves`` is the memory of slice sampling, for sites
    without a function.
    """

    out: Floats
    words: Words64
    trouble: Ints
    place: Floats
    moves: MoveMemory

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may contain NaN."""
        return ("out", "place")


class ConditionalsParameters(NamedTuple):
    """Parameters of slice sampling, for sites without a function."""

    other: SliceParameters


@register(proof="tests/proofs/test_conditionals.py", default_for=["conditionals"], recommend={"ConditionalGibbs": {}})
@dataclass(frozen=True)
class ConditionalGibbs(Kernel):
    """Gibbs sampling with users' functions that draw from full conditionals (:class:`gibbsite.Conditionals`).

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.Conditionals({
    ...     "a": lambda x, rng: rng.normal(0.4 * x[1], 0.68**0.5),
    ...     "b": lambda x, rng: rng.normal(0.8 * x[0], 1.36**0.5),
    ... })
    >>> result = gs.sample(target, gs.kernels.ConditionalGibbs(), sweeps=1000, rng=1, progress=False)
    >>> abs(result.marginals["b"]["mean"]) < 0.3
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"conditionals"})
    conditional: ClassVar[bool] = False
    fallible: ClassVar[bool] = True

    def parameters(self, graph: Graph) -> ConditionalsParameters:
        """Return the parameters of slice sampling for sites without a function; all others are in the graph."""
        return ConditionalsParameters(_OTHER.parameters(graph))

    def memory(self, graph: Graph, stream: Words64) -> ConditionalsMemory:
        """Allocate buffers for the largest block."""
        widest = int(np.diff(graph.arrays.start).max(initial=1))
        words, trouble = np.zeros(4, np.uint64), np.zeros(3, np.int64)
        return ConditionalsMemory(np.zeros(widest), words, trouble, np.zeros(graph.n_sites), _OTHER.move_memory(graph))

    def freeze(self, memory: Any) -> None:
        """End learning the widths of slices."""
        _OTHER.freeze(memory.moves)

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise an error if a function failed or returned a value outside the domain of its site."""
        _OTHER.inspect(model, graph, memory.moves)
        what, block, rank = memory.trouble.tolist()
        if not what:
            return
        arrays: ConditionalsGraph = graph.arrays
        sites = arrays.member[arrays.start[block] : arrays.start[block + 1]]
        codes = graph.functions
        draw = next(code for code in codes if code.address == arrays.address[block])
        raised = graph.take_raised() or draw.cause_at(memory.place, np.zeros(sites.size), memory.words)
        given = model.place_text(memory.place)
        if what == _FAILED:
            problem = f"raised {raised!r}" if raised else "returned no number, or too many"
            if isinstance(raised, ModelError):  # raised by this package
                problem = f"failed: {str(raised).removesuffix('.')}"
            names = model.domains.scope_text(sites)
            raise SamplingError(f"the conditional of {names} {problem}, given {given}.") from raised
        site, value = int(sites[rank]), memory.out[rank]
        low, high = arrays.low[site], arrays.high[site]
        wrong = "no state code" if arrays.card[site] else "not"
        why = f"{wrong} between {low:g} and {high:g}" if np.isfinite(value) else "no finite number"
        raise SamplingError(
            f"the conditional of the site {model.domains.names[site]!r} returned {value:.6g}, which is {why}"
            f", given {given}.{cause_text(raised)}"
        ) from raised


@implement(step, ConditionalsParameters)
def _step(
    params: Any, arrays: Any, memory: ConditionalsMemory, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw a block by its function, or a site without a function by slice sampling."""
    if memory.trouble[0] != 0:
        return rng
    if arrays.address[i] == 0:
        memory.moves.now[1] = 0.0  # other sites have moved since the last visit
        return step(params.other, arrays, memory.moves, x, np.uintp(arrays.member[arrays.start[i]]), rng, cond, keep)
    first, count = arrays.start[i], arrays.start[i + 1] - arrays.start[i]
    store(memory.words, rng)
    said = call_at(arrays.address[i], x, 0, x.size, memory.out, 0, count, memory.words)
    what, rank = _FAILED if np.isnan(said) else 0, 0
    for k in range(count):
        site = arrays.member[first + k]
        v = wrapped(arrays.low[site], arrays.period[site], memory.out[k])
        memory.out[k] = v
        inside = arrays.low[site] <= v <= arrays.high[site] and abs(v) < np.inf
        if what == 0 and (not inside or (arrays.card[site] > 0 and v != np.floor(v))):
            what, rank = _OUTSIDE, k
    if what != 0:
        memory.trouble[0], memory.trouble[1], memory.trouble[2] = what, i, rank
        store(memory.words, rng)  # restore the generator, to repeat the failing call later
        for k in range(x.size):
            memory.place[k] = x[k]
        return rng
    rng = load(memory.words)
    for k in range(count):
        x[arrays.member[first + k]] = memory.out[k]
    return rng
