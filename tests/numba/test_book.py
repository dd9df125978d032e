"""Arrays and functions by address: compiled code sees what was put down, and takes nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import numba
from gibbsite._common.arrays import Ints
from gibbsite._numba import options
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import compiled
from gibbsite._numba.pointer import call_pointer, point_at, pointed
from gibbsite.sampling.sweep import entries

KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint64, np.float32, np.float64]
needs_compiler = pytest.mark.skipif(options.DISABLED, reason="compilation is switched off")


@compiled
def _double(book: Ints, like: NDArray[Any]) -> int:
    array = array_in(book, 1, like.dtype)
    for k in range(array.size):
        array[k] = array[k] + array[k]
    return array.size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,), (4, 0)])
def test_compiled_code_sees_the_arrays_of_a_book(kind: Any, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).astype(kind).reshape(shape)
    before, behind = np.ones(3), np.ones(3)
    book = np.array(entries(*[(each, each.dtype) for each in (before, array, behind)]))
    expected = (array + array).astype(kind)
    assert array_in(book, 1, kind).tolist() == array.ravel().tolist()
    assert _double(book, np.zeros(1, kind)) == array.size
    assert (array == expected).all()
    assert _double.plain(book, np.zeros(1, kind)) == array.size, "the same in Python"
    assert (array == (expected + expected).astype(kind)).all()
    assert (before == 1.0).all()
    assert (behind == 1.0).all()


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros(6)[::2], np.zeros((2, 3)).T])
def test_arrays_of_other_types_have_no_place_in_a_book(array: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="contiguous and of type float64"):
        entries((array, np.dtype(np.float64)))


@pointed
def _put(x: NDArray[np.float64], i: int, a: float, b: float) -> None:
    x[i] = a + b


@compiled
def _apply(address: int, x: NDArray[np.float64]) -> None:
    call_pointer(address, x, 1, 4.0, 2.0)


def test_functions_are_called_by_address_in_compiled_code_and_in_python() -> None:
    address = point_at(_put, np.zeros(1), 0, 0.0, 0.0)
    for call in (_apply, _apply.plain):
        x = np.zeros(2)
        call(address, x)
        assert x.tolist() == [0.0, 6.0]


@needs_compiler
def test_arrays_that_are_not_contiguous_are_not_handed_to_addresses() -> None:
    with pytest.raises(numba.TypingError, match="call_pointer"):
        _apply(point_at(_put, np.zeros(1), 0, 0.0, 0.0), np.zeros(4)[::2])
