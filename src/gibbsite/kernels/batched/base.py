"""What a way to move many sites, or many chains, at once is.

Compiled code that moves many sites at once wants the model in another layout, and the memory of a chain is
another one, too. A *way* is all of that in one file of this folder:

* ``prepare`` lays the model out, where the way fits kernel and graph (:mod:`gibbsite.graphs.layouts`);
* ``memory`` allocates what the chains of a bundle carry besides their states;
* ``move`` is compiled: the implementation of :func:`gibbsite.kernels.base.visit` for these arrays, which also
  adds conditionals to the recorded sums;
* the order of the packed model takes states there (``pack``), and states and records back (``unpack``).

A class registered with :func:`register_way` is known wherever chains are laid out
(:mod:`gibbsite.sampling.chain_layout`); no other file names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from gibbsite._common.arrays import Array, Words64
from gibbsite._numba.jit import implement
from gibbsite._numba.random.generators import Words
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.layouts.site_order import PackedModel
from gibbsite.kernels.base import Kernel, sums_up, visit

if TYPE_CHECKING:
    from gibbsite.models import Model

Streams = list[Words64]


class AtOnce(ABC):
    """A way to move many sites of a chain, or many chains, at once.

    Attributes
    ----------
    name : str
        Of the way.
    form : str
        The word for it in plans. Ways of a kernel with the same word give the same states.
    rank : int
        Ways are tried in this order: faster ones, which fit fewer models, first.
    lanes : int
        Chains that move together; a bundle is filled up to a multiple of them. 1: a bundle is one chain.
    parameters : type
        The kernel's parameters as compiled code sees them.
    layouts : tuple of types
        The named tuples of arrays that :meth:`arrays` may return.
    move : function
        The arguments are those of :func:`gibbsite.kernels.base.visit`; ``cond`` are the recorded sums.
    divisible : bool
        Whether several processes can share a chain, each of which moves some positions: new states depend on
        position, sweep, neighbours, and on what :meth:`carried` returns, but not on who has moved before.
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
        """Lay a model out; None where the way does not fit kernel or model."""

    def arrays(self, packed: PackedModel, chains: int) -> Any:
        """Return what compiled code sees of a model, for a bundle of so many chains."""
        return packed.arrays

    @abstractmethod
    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> NamedTuple:
        """Allocate what a bundle carries besides its states, given the generator words of its chains.

        A team of up to ``MOST_MEMBERS`` threads shares it.
        """

    def carried(self, packed: PackedModel, memory: Any, segment: int, low: int, high: int) -> Array:
        """Return the part of a memory that belongs to positions low to high of a segment: a view.

        Segments are those of :mod:`gibbsite.graphs.layouts.cut`. By default there is none.
        """
        return np.zeros(0)


_WAYS: list[AtOnce] = []

Way = TypeVar("Way", bound=type[AtOnce])


def register_way(way: Way) -> Way:
    """Register a way to move many sites or chains at once, and its move; a decorator of its class."""
    for arrays in way.layouts:
        implement(visit, way.parameters, arrays)(way.move)
        implement(sums_up, arrays)(_adds_up)
    _WAYS.append(way())
    return way


def _adds_up(arrays: Any) -> bool:
    return True


def find_way(kernel: Kernel, model: Model, graph: Graph, *, chains: bool = False) -> tuple[AtOnce, PackedModel] | None:
    """Return the fastest way that fits a kernel and a model, and the model laid out for it.

    Parameters
    ----------
    kernel, model, graph
        What runs.
    chains : bool
        Whether many chains shall move at once, rather than many sites of one chain.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.25)
    >>> graph = gs.graphs.compile_graph(model)
    >>> way, packed = find_way(gs.Gibbs(), model, graph)
    >>> way.name, packed.longest
    ('checkerboard', 8)
    >>> find_way(gs.Gibbs("suwa-todo"), model, graph) is None
    True
    """
    for way in sorted(_WAYS, key=lambda each: each.rank):
        if (way.lanes > 1) == chains:
            packed = way.prepare(kernel, model, graph)
            if packed is not None:
                return way, packed
    return None
