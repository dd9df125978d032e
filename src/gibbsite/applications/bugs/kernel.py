"""Models in the BUGS language as graphs, and the kernel that makes their updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.book import address_of
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite._numba.pointer import call_pointer
from gibbsite._numba.random.generators import Words, load, store
from gibbsite.applications.bugs.compiled.machine import Chain, address, flat_tables, static_book
from gibbsite.applications.bugs.compiled.updates import FAILED, LEARNING, LOADED, MOVED
from gibbsite.applications.bugs.tables import Tables
from gibbsite.errors import SamplingError
from gibbsite.graphs.graph import Graph, graph_of
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.registry import register as register_kind
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel

_SWEEPS_OF_SLICES = 30  # after the state was set from outside


class BugsGraph(NamedTuple):
    """A model in the BUGS language as arrays.

    The sites are described as in :class:`.ContinuousGraph`; ``place`` is the place of each site in the values of a
    chain, ``start`` has the values of all places, and the tables are those of :class:`.Derived`. ``density`` is 0:
    there is no joint density of the sites alone, because some of them may be computed from others.
    """

    offset: Ints
    low: Floats
    high: Floats
    period: Floats
    card: Ints32
    density: int
    place: Ints
    start: Floats
    tables: Tables
    lists: Ints32
    segment: Ints
    unit: Ints
    numbers: Floats
    widths: Floats
    sizes: Ints


class BugsParameters(NamedTuple):
    """The address of the compiled function, the pointer table of constant arrays, and the place of each site."""

    address: int
    static: Ints
    place: Ints
    last: int


@register_kind(name="bugs", model="BugsModel")
def compile_bugs(model: BugsModel) -> Graph:
    """Turn a model in the BUGS language into arrays."""
    derived, domains = model.derived, model.domains
    low, high = domains.bounds
    arrays = BugsGraph(
        offset=domains.offset,
        low=low,
        high=high,
        period=domains.periods,
        card=np.zeros(domains.n_sites, np.int32),
        density=0,
        place=model.places,
        start=model.start_values,
        tables=flat_tables(derived.tables),
        lists=derived.lists,
        segment=derived.segment,
        unit=derived.unit,
        numbers=derived.numbers,
        widths=derived.widths,
        sizes=np.array([model.registers, derived.counts, derived.work], np.int64),
    )
    return graph_of(model, "bugs", arrays, units=derived.units)


@implement(log_potential, BugsGraph)
def _log_potential(arrays: BugsGraph, x: Array) -> float:
    return 0.0


def new_chain(arrays: BugsGraph) -> Chain:
    """Return the arrays of a chain."""
    registers, counts, work = arrays.sizes.tolist()
    chain = Chain(
        values=arrays.start.copy(),
        registers=np.zeros(registers),
        words=np.zeros(4, np.uint64),
        widths=arrays.widths.copy(),
        counts=np.zeros(counts, np.int64),
        work=np.zeros(work),
        book=np.zeros(14, np.int64),
    )
    chain.counts[LEARNING] = 1
    return chain


@register(proof="tests/applications/bugs/test_updates.py", default_for=["bugs"])
@dataclass(frozen=True)
class BugsGibbs(Kernel):
    """Gibbs sampling of models in the BUGS language, with the updates that were derived for them.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.applications.bugs.read_bugs(
    ...     "model { for (i in 1:3) { y[i] ~ dnorm(mu, 1) }  mu ~ dnorm(0, 0.01) }", {"y": [1, 2, 3]}
    ... )
    >>> result = gs.sample(model, sweeps=1000, rng=1, progress=False)
    >>> abs(result.marginals["mu"]["mean"] - 2.0) < 0.1
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"bugs"})
    conditional: ClassVar[bool] = False
    fallible: ClassVar[bool] = True

    def parameters(self, graph: Graph) -> BugsParameters:
        """Return the addresses of compiled code and of the arrays of the graph."""
        arrays: BugsGraph = graph.arrays
        book = static_book(arrays.tables, arrays.lists, arrays.segment, arrays.unit, arrays.numbers)
        return BugsParameters(address(), book, arrays.place, graph.n_units - 1)

    def memory(self, graph: Graph, stream: Words64) -> Chain:
        """Allocate the values of all variables and work space."""
        return new_chain(graph.arrays)

    def freeze(self, memory: Any) -> None:
        """End learning the widths of slices."""
        memory.counts[LEARNING] = 0

    def forget(self, memory: Any) -> None:
        """Read all values from the state before the next update."""
        memory.counts[LOADED] = 0
        memory.counts[MOVED] = _SWEEPS_OF_SLICES * memory.counts.size

    def inspect(self, model: Any, graph: Graph, memory: Any) -> None:
        """Raise an error if an update failed."""
        failed = int(memory.counts[FAILED])
        if not failed:
            return
        memory.counts[FAILED] = 0
        raise SamplingError(model.failure_text(failed - 1, memory.values))


@inlined
def _load_state(params: BugsParameters, memory: Chain, x: Floats) -> None:
    """Read the values of the sites, and compute all others."""
    for k in range(params.place.size):
        memory.values[params.place[k]] = x[k]
    memory.counts[LOADED] = 1
    call_pointer(params.address, params.static, memory.book, 0.0, params.last)


@implement(step, BugsParameters)
def _step(
    params: BugsParameters, arrays: Any, memory: Chain, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Make the update of a unit."""
    if memory.counts[FAILED] != 0:
        return rng
    book = memory.book
    book[0], book[1] = address_of(memory.values), memory.values.size
    book[2], book[3] = address_of(memory.registers), memory.registers.size
    book[4], book[5] = address_of(x), x.size
    book[6], book[7] = address_of(memory.words), memory.words.size
    book[8], book[9] = address_of(memory.widths), memory.widths.size
    book[10], book[11] = address_of(memory.counts), memory.counts.size
    book[12], book[13] = address_of(memory.work), memory.work.size
    if memory.counts[LOADED] == 0:
        _load_state(params, memory, x)
    store(memory.words, rng)
    call_pointer(params.address, params.static, book, 1.0, np.int64(i))
    for k in range(14):
        book[k] = 0
    return load(memory.words)
