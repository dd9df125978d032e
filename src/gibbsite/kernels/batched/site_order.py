"""Orders of sites other than the model's: conversion there and back.

Compiled code that moves many sites at once needs the sites of a color to be contiguous. States are packed before
such code runs, and unpacked afterwards, so that other code does not depend on the order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Integers, Ints


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

    arrays: Any  # what compiled code sees
    order: SiteOrder  # the order of the sites
    longest: int  # most sites that move at once
    # constant to be added to log-potentials computed from these arrays, which may differ from that of the graph
    log_offset: float
    near: Integers | None = None  # (n,): ranks by which sites of a class are ordered, by position


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
        """Yield parts of values in the model's order with those in this order that they correspond to."""
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
    """Yield parts of a lattice with those of its even and odd sites, which have changed places by ``flip``.

    Neighbours in memory alternate where all axes but the first are odd. Otherwise there are as many even as odd sites
    in every layer across the first axis, and it is done layer by layer; in two dimensions, with all even rows at once.
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
