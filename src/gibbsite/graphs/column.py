"""A number for every entry of compressed rows: an array, a byte for each where few are distinct, or one.

Sweeps of models that do not fit into caches take as long as their rows take to be read, so that a byte or
nothing instead of a float for every entry is time saved. Compiled code reads all three by :func:`entry_at`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Array, Bytes
from gibbsite._numba.intrinsic import fetch
from gibbsite._numba.jit import Integer, generic, implement

#: How many values a byte can tell apart.
MOST_VALUES = 256


class Coded(NamedTuple):
    """Numbers of which few are distinct; NumPy takes it for the array ``value[which]``.

    ``value`` has a place for every byte, so that no byte reads beyond it.
    """

    which: Bytes
    value: NDArray[np.floating[Any]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.value[self.which].astype(dtype or self.value.dtype, copy=False)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.which.size


def code(which: Bytes, value: Array) -> Coded:
    """Return numbers given by bytes and the values that bytes stand for; see :class:`Coded`."""
    padded = np.zeros(MOST_VALUES, value.dtype)
    padded[: value.size] = value
    return Coded(which, padded)


class Repeated(NamedTuple):
    """One number for all entries; NumPy takes it for an array of it."""

    value: np.floating[Any]
    size: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.full(self.size, self.value, dtype)


@generic
def entry_at(column: Any, k: Integer) -> Any:
    """Return the number of entry k."""
    raise NotImplementedError


@generic
def fetch_entry(column: Any, k: Integer) -> None:
    """Ask the processor to bring the number of entry k near; it need not exist."""
    raise NotImplementedError


@implement(entry_at)
def _entry_of_array(column: Array, k: Integer) -> Any:
    return column[k]


@implement(entry_at, Coded)
def _entry_of_coded(column: Coded, k: Integer) -> Any:
    return column.value[np.uintp(column.which[k])]


@implement(entry_at, Repeated)
def _entry_of_repeated(column: Repeated, k: Integer) -> Any:
    return column.value


@implement(fetch_entry)
def _fetch_array(column: Array, k: Integer) -> None:
    fetch(column, k)


@implement(fetch_entry, Coded)
def _fetch_coded(column: Coded, k: Integer) -> None:
    fetch(column.which, k)


@implement(fetch_entry, Repeated)
def _fetch_nothing(column: Repeated, k: Integer) -> None:
    pass
