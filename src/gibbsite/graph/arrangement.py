"""Sites in another order than the model's: how to get there and back.

Compiled code that moves many sites at once wants the sites of a color side by side. Nobody else should
notice: what goes in is packed, what comes out is unpacked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gibbsite.graph.lower import Graph


class Arrangement(ABC):
    """An order of the sites."""

    @abstractmethod
    def pack(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values given in the model's order (last axis) in this order."""

    @abstractmethod
    def unpack(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values given in this order (last axis) in the model's order."""

    @abstractmethod
    def locate(self, sites: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the positions of some sites."""


class Arranged(NamedTuple):
    """A model laid out for a walk that moves many sites at once.

    Attributes
    ----------
    graph : Graph
        The model in its own order, of the kind that was laid out.
    arrays : NamedTuple
        What compiled code sees.
    there : Arrangement
        The order of the sites.
    longest : int
        Most sites that move at once.
    name : str
        Of the layout, for plans.
    """

    graph: Graph
    arrays: Any
    there: Arrangement
    longest: int
    name: str


@dataclass(frozen=True, eq=False)
class Permutation(Arrangement):
    """Any order: ``order[p]`` is the site at position p.

    Examples
    --------
    >>> there = Permutation(np.array([2, 0, 1]))
    >>> there.pack(np.array([10, 20, 30])).tolist(), there.unpack(there.pack(np.arange(3))).tolist()
    ([30, 10, 20], [0, 1, 2])
    >>> there.locate(np.array([2, 1])).tolist()
    [0, 2]
    """

    order: NDArray[np.integer[Any]]

    def pack(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values given in the model's order (last axis) in this order."""
        return np.ascontiguousarray(values[..., self.order])

    def unpack(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values given in this order (last axis) in the model's order."""
        out = np.empty_like(values)
        out[..., self.order] = values
        return out

    def locate(self, sites: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the positions of some sites."""
        position = np.empty(self.order.size, np.int64)
        position[self.order] = np.arange(self.order.size)
        found: NDArray[np.int64] = position[sites]
        return found


@dataclass(frozen=True, eq=False)
class Parity(Arrangement):
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

    def _rows(self) -> tuple[int, int, NDArray[np.bool_]]:
        """Return the number of rows, their length, and which of them begin with an odd site."""
        *outer, length = self.shape
        odd = np.zeros(outer, np.bool_)
        for axis, size in enumerate(outer):
            shape = [1] * len(outer)
            shape[axis] = size
            odd ^= (np.arange(size) & 1).astype(np.bool_).reshape(shape)
        return odd.size, length, odd.ravel()

    def starts(self) -> NDArray[np.int64]:
        """Return, for both colors (2, rows + 1), where each row begins among the sites of the color."""
        rows, length, odd = self._rows()
        found = np.zeros((2, rows + 1), np.int64)
        for color in (0, 1):
            begin = odd ^ bool(color)  # the first column of the color
            np.cumsum((length - begin + 1) // 2, out=found[color, 1:])
        return found

    def _mask(self) -> NDArray[np.bool_]:
        """Return which sites are odd."""
        _, length, odd = self._rows()
        mask: NDArray[np.bool_] = odd[:, None] ^ (np.arange(length) & 1).astype(np.bool_)
        return mask.ravel()

    def pack(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values given in the model's order (last axis) in this order."""
        odd = self._mask()
        return np.concatenate([values[..., ~odd], values[..., odd]], axis=-1)

    def unpack(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values given in this order (last axis) in the model's order."""
        odd = self._mask()
        out = np.empty_like(values)
        split = odd.size - int(np.count_nonzero(odd))
        out[..., ~odd] = values[..., :split]
        out[..., odd] = values[..., split:]
        return out

    def locate(self, sites: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the positions of some sites."""
        _, length, odd = self._rows()
        row, column = np.divmod(np.asarray(sites, np.int64), length)
        color = odd[row] ^ (column & 1).astype(np.bool_)
        starts = self.starts()
        position = starts[color.astype(np.intp), row] + column // 2
        found: NDArray[np.int64] = np.where(color, position + starts[0, -1], position)
        return found
