"""Batched updates, and the choice of one for a kernel and a model.

Compiled code that moves many sites, or many chains, at once needs another layout of the model and another memory of
chains. A batched update defines both in one module of this folder:

* ``prepare`` lays the model out, or returns None if the update does not fit kernel and graph;
* ``memory`` allocates the memory of a bundle of chains;
* ``move`` is compiled: the implementation of :func:`gibbsite.kernels.base.visit` for these arrays, which also
  adds conditionals to the recorded sums;
* the site order of the packed model converts states to the layout (``pack``), and states and records back
  (``unpack``).

A class decorated with :func:`register_batched` is found when chains are laid out (:mod:`gibbsite.sampling.layout`).
Its module is imported when a kernel and a kind of graph that it declares are used.

Code that moves many sites at once needs the sites of a color to be contiguous. States are packed before such code runs,
and unpacked afterwards, so that other code does not depend on the order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from gibbsite._common.arrays import Array, Bools, Integers, Ints, Words64
from gibbsite._common.loading import import_downwards, read_declarations
from gibbsite._numba.jit import implement
from gibbsite._numba.random.generators import Words
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import Kernel, sums_up, visit

if TYPE_CHECKING:
    from gibbsite.models import Model


class SiteOrder(ABC):
    """An order of the sites."""

    @abstractmethod
    def pack(self, values: Array) -> Array:
        """Return values given in the model's order (last axis) in this order."""

    @abstractmethod
    def unpack(self, values: Array) -> Array:
        """Return values given in this order (last axis) in the model's order."""

    @abstractmethod
    def locate(self, sites: Integers) -> Ints:
        """Return the positions of some sites."""


class PackedModel(NamedTuple):
    """A model laid out for moves of many sites at once."""

    arrays: Any  # the layout, for compiled code
    order: SiteOrder  # the order of the sites
    longest: int  # largest number of sites that move at once
    # constant to be added to log-potentials computed from these arrays, which may differ from that of the graph
    log_offset: float
    near: Integers | None = None  # (n,): by position, the ranks by which the sites of a class are sorted


@dataclass(frozen=True, eq=False)
class Permutation(SiteOrder):
    """Any order: ``order[p]`` is the site at position p.

    Examples
    --------
    >>> there = Permutation(np.array([2, 0, 1]))
    >>> there.pack(np.array([10, 20, 30])).tolist(), there.unpack(there.pack(np.arange(3))).tolist()
    ([30, 10, 20], [0, 1, 2])
    >>> there.locate(np.array([2, 1])).tolist()
    [0, 2]
    """

    order: Integers

    def pack(self, values: Array) -> Array:
        """Return values given in the model's order (last axis) in this order."""
        return np.ascontiguousarray(values[..., self.order])

    def unpack(self, values: Array) -> Array:
        """Return values given in this order (last axis) in the model's order."""
        out = np.empty_like(values)
        out[..., self.order] = values
        return out

    def locate(self, sites: Integers) -> Ints:
        """Return the positions of some sites."""
        position = np.empty(self.order.size, np.int64)
        position[self.order] = np.arange(self.order.size)
        found: Ints = position[sites]
        return found


@dataclass(frozen=True, eq=False)
class Parity(SiteOrder):
    """A lattice's sites of even coordinate sum, then the odd ones, both row by row; nothing is stored.

    Examples
    --------
    >>> board = Parity((2, 3))
    >>> board.pack(np.arange(6)).tolist(), board.unpack(board.pack(np.arange(6))).tolist()
    ([0, 2, 4, 1, 3, 5], [0, 1, 2, 3, 4, 5])
    >>> board.locate(np.array([4, 1])).tolist()
    [2, 3]
    """

    shape: tuple[int, ...]

    def _rows(self) -> tuple[int, int, Bools]:
        """Return the number of rows, their length, and which of them begin with an odd site."""
        *outer, length = self.shape
        odd = np.zeros(outer, np.bool_)
        for axis, size in enumerate(outer):
            shape = [1] * len(outer)
            shape[axis] = size
            odd ^= (np.arange(size) & 1).astype(np.bool_).reshape(shape)
        return odd.size, length, odd.ravel()

    def starts(self) -> Ints:
        """Return, for both colors (2, rows + 1), where each row begins among the sites of the color."""
        rows, length, odd = self._rows()
        found = np.zeros((2, rows + 1), np.int64)
        for color in (0, 1):
            begin = odd ^ bool(color)  # the first column of the color
            np.cumsum((length - begin + 1) // 2, out=found[color, 1:])
        return found

    def pack(self, values: Array) -> Array:
        """Return values given in the model's order (last axis) in this order."""
        out = np.empty(values.shape, values.dtype)
        for here, there in self._pair_up(values, out):
            there[...] = here
        return out

    def unpack(self, values: Array) -> Array:
        """Return values given in this order (last axis) in the model's order."""
        out = np.empty(values.shape, values.dtype)
        for here, there in self._pair_up(out, values):
            here[...] = there
        return out

    def _pair_up(self, cells: Array, packed: Array) -> Iterator[tuple[Any, Any]]:
        """Yield matching views of values in the model's order and of values in this order."""
        n = cells.shape[-1]
        shape = tuple(size for size in self.shape if size > 1) or (1,)
        flat = cells.reshape(-1, n), packed.reshape(-1, n)
        half = (n + 1) // 2
        yield from _pair_up(flat[0], flat[1][:, :half], flat[1][:, half:], shape, 0)

    def locate(self, sites: Integers) -> Ints:
        """Return the positions of some sites."""
        _, length, odd = self._rows()
        row, column = np.divmod(np.asarray(sites, np.int64), length)
        color = odd[row] ^ (column & 1).astype(np.bool_)
        starts = self.starts()
        position = starts[color.astype(np.intp), row] + column // 2
        found: Ints = np.where(color, position + starts[0, -1], position)
        return found


def _pair_up(cells: Array, even: Array, odd: Array, shape: tuple[int, ...], flip: int) -> Iterator[tuple[Any, Any]]:
    """Yield views of a lattice, each with the matching view of its even or odd sites; ``flip`` exchanges the colors.

    If the sizes of all axes but the first are odd, the colors alternate in memory. Otherwise every layer of the first
    axis has equally many even and odd sites, and layers are paired one by one; in two dimensions, every second row at
    once.
    """
    n = cells.shape[1]
    if math.prod(shape[1:]) % 2:
        parts = cells[:, flip::2], cells[:, 1 - flip :: 2]
        yield parts[0], even[:, : parts[0].shape[1]]
        yield parts[1], odd[:, : parts[1].shape[1]]
    elif len(shape) == 2:
        lattice = cells.reshape(-1, shape[0], shape[1] // 2, 2)
        for color, half in ((flip, even), (1 - flip, odd)):
            rows = half[:, : n // 2].reshape(-1, shape[0], shape[1] // 2)
            yield lattice[:, 0::2, :, color], rows[:, 0::2]
            yield lattice[:, 1::2, :, 1 - color], rows[:, 1::2]
    else:
        layer = n // shape[0]
        for k in range(shape[0]):
            inside, part = slice(k * layer, (k + 1) * layer), slice(k * layer // 2, (k + 1) * layer // 2)
            yield from _pair_up(cells[:, inside], even[:, part], odd[:, part], shape[1:], flip ^ (k & 1))


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
        Updates are tried in ascending order of rank: faster ones, which fit fewer models, come first.
    lanes : int
        Number of chains that move together; the size of a bundle is a multiple of it. 1: a bundle is one chain.
    parameters : type
        The kernel's parameters as compiled code sees them.
    layouts : tuple of types
        The named tuples of arrays that :meth:`arrays` may return.
    move : function
        The arguments are those of :func:`gibbsite.kernels.base.visit`; ``cond`` are the recorded sums.
    divisible : bool
        Whether several processes can share a chain, each of them moving some positions. New states may depend on
        position, sweep, neighbours, and on what :meth:`carried` returns, but not on which sites have moved before.
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
        """Return a model's layout, or None if the update does not fit kernel or model."""

    def arrays(self, packed: PackedModel, chains: int) -> Any:
        """Return the arrays of a model for compiled code that moves a bundle of ``chains`` chains."""
        return packed.arrays

    @abstractmethod
    def memory(self, kernel: Kernel, packed: PackedModel, streams: Streams) -> NamedTuple:
        """Allocate the memory of a bundle, given the generator words of its chains.

        A team of up to ``MOST_MEMBERS`` threads shares it.
        """

    def carried(self, packed: PackedModel, memory: Any, segment: int, low: int, high: int) -> Array:
        """Return a view of the part of a memory that belongs to positions low to high of a segment.

        Segments are those of :mod:`gibbsite.kernels.batched.cut`. By default, it is empty.
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

    ``chains`` asks for an update of many chains, rather than of many sites of one chain.

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
    _import_updates(type(kernel), graph.kind, graph.binary)
    for update in sorted(_REGISTERED, key=lambda each: each.rank):
        if (update.lanes > 1) == chains:
            packed = update.prepare(kernel, model, graph)
            if packed is not None:
                return update, packed
    return None


@cache
def _import_updates(kernel: type, kind: str, binary: bool) -> None:
    """Import the batched updates that are declared for a kernel and a kind of graph."""
    names = {base.__name__ for base in kernel.__mro__}
    kinds = {kind, "binary"} if binary else {kind}
    for given in read_declarations("kernels/batched", "@register_batched"):
        if given["kernel"] in names and not kinds.isdisjoint(given["kinds"]):
            import_downwards(given["module"])
