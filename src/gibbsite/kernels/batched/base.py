"""Batched updates, and the choice of one for a kernel and a model.

Compiled code that moves many sites, or many chains, at once needs another layout of the model and another memory of
chains. A batched update defines both in one module of this folder:

* ``prepare`` lays the model out, or returns None where the update does not fit kernel and graph;
* ``memory`` allocates the memory of a bundle of chains;
* ``move`` is compiled: the implementation of :func:`gibbsite.kernels.base.visit` for these arrays, which also
  adds conditionals to the recorded sums;
* the site order of the packed model converts states to the layout (``pack``), and states and records back
  (``unpack``).

A class decorated with :func:`register_batched` is found when chains are laid out (:mod:`gibbsite.sampling.layout`).
Its module is imported when a kernel and a kind of graph that it declares are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from gibbsite._common.arrays import Array, Words64
from gibbsite._common.loading import import_downwards, read_declarations
from gibbsite._numba.jit import implement
from gibbsite._numba.random.generators import Words
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import Kernel, sums_up, visit
from gibbsite.kernels.batched.site_order import PackedModel

if TYPE_CHECKING:
    from gibbsite.models import Model

Streams = list[Words64]


class BatchedUpdate(ABC):
    """An update of many sites of a chain, or of many chains, at once.

    Attributes
    ----------
    name : str
        Name of the update.
    form : str
        Name of its layout in plans. Updates of a kernel whose layouts have the same name give the same states.
    rank : int
        Updates are tried in this order: faster ones, which fit fewer models, first.
    lanes : int
        Chains that move together; the size of a bundle is a multiple of this. 1: a bundle is one chain.
    parameters : type
        The kernel's parameters as compiled code sees them.
    layouts : tuple of types
        The named tuples of arrays that :meth:`arrays` may return.
    move : function
        The arguments are those of :func:`gibbsite.kernels.base.visit`; ``cond`` are the recorded sums.
    divisible : bool
        Whether several processes can share a chain, each moving some positions: new states depend on position, sweep,
        neighbours, and on what :meth:`carried` returns, but not on which sites have moved before.
    """

    name: ClassVar[str]
    form: ClassVar[str]
    rank: ClassVar[int]
    lanes: ClassVar[int] = 1
    parameters: ClassVar[type]
    layouts: ClassVar[tuple[type, ...]]
    move: ClassVar[Callable[..., Words]]
    divisible: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, kernel: Kernel, model: Model, graph: Graph) -> PackedModel | None:
        """Lay a model out; None where the update does not fit kernel or model."""

    def arrays(self, packed: PackedModel, chains: int) -> Any:
        """Return what compiled code sees of a model, for a bundle of ``chains`` chains."""
        return packed.arrays

    @abstractmethod
    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> NamedTuple:
        """Allocate the memory of a bundle, given the generator words of its chains.

        A team of up to ``MOST_MEMBERS`` threads shares it.
        """

    def carried(self, packed: PackedModel, memory: Any, segment: int, low: int, high: int) -> Array:
        """Return the part of a memory that belongs to positions low to high of a segment: a view.

        Segments are those of :mod:`gibbsite.kernels.batched.cut`. By default there is none.
        """
        return np.zeros(0)


_REGISTERED: list[BatchedUpdate] = []

U = TypeVar("U", bound=type[BatchedUpdate])


def register_batched(*, kernel: str, kinds: tuple[str, ...]) -> Callable[[U], U]:
    """Register a batched update, for a kernel by the name of its class, and its compiled move.

    ``kinds`` are the kinds of graphs that it can lay out, "binary" for all kinds of two-state sites. Both arguments
    must be literals, because they are read from the source.
    """

    def add(update: U) -> U:
        for arrays in update.layouts:
            implement(visit, update.parameters, arrays)(update.move)
            implement(sums_up, arrays)(_adds_up)
        _REGISTERED.append(update())
        return update

    return add


def _adds_up(arrays: Any) -> bool:
    return True


def find_batched_update(
    kernel: Kernel, model: Model, graph: Graph, *, chains: bool = False
) -> tuple[BatchedUpdate, PackedModel] | None:
    """Return the fastest batched update that fits a kernel and a model, and the model laid out for it.

    ``chains``: an update of many chains, rather than of many sites of one chain.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.25)
    >>> graph = gs.graphs.compile_graph(model)
    >>> update, packed = find_batched_update(gs.Gibbs(), model, graph)
    >>> update.name, packed.longest
    ('checkerboard', 8)
    >>> find_batched_update(gs.Gibbs("suwa-todo"), model, graph) is None
    True
    """
    names = {base.__name__ for base in type(kernel).__mro__}
    kinds = {graph.kind, "binary"} if graph.binary else {graph.kind}
    for given in read_declarations("kernels/batched", "@register_batched"):
        if given["kernel"] in names and not kinds.isdisjoint(given["kinds"]):
            import_downwards(given["module"])
    for update in sorted(_REGISTERED, key=lambda each: each.rank):
        if (update.lanes > 1) == chains:
            packed = update.prepare(kernel, model, graph)
            if packed is not None:
                return update, packed
    return None
