"""Functions of users that stay Python, as compiled code calls them back."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Words64
from gibbsite.errors import ModelError

_MIXING = 12  # discarded numbers after seeding


def calling_back(function: Any, key: str, raised: list[BaseException]) -> Callable[..., float]:
    """Return a Python function with the C signature around a function of the user."""

    def back(a: int, na: int, b: int, nb: int, words: int) -> float:
        try:
            first, second = doubles(a, na).copy(), doubles(b, nb)
            if key in ("value1", "value2"):
                return float(call_in_python(function, key, first, second.copy(), None))
            if key == "draw":
                rng, move_on = generator_of(doubles(words, 4).view(np.uint64))
                second[:] = call_in_python(function, key, first, second, rng)
                move_on()
            elif key == "array":
                second[:] = call_in_python(function, key, first, second, None)
            elif key == "scalar":
                second[0] = call_in_python(function, key, first, second, None)
            elif key == "update":
                call_in_python(function, key, first, second, None)
            else:
                doubles(a, 2 * na)[na:] += call_in_python(function, key, first, second.copy(), None)
            return 0.0
        except BaseException as reason:
            raised.append(reason)
            return np.nan

    return back


def doubles(address: int, size: int) -> Floats:
    """Return a view of numbers in memory."""
    if not size:
        return np.zeros(0)
    memory: Any = (ctypes.c_double * size).from_address(address)
    return np.frombuffer(memory, np.float64)


def call_in_python(function: Any, key: str, first: Floats, second: Floats, rng: Any) -> Any:
    """Call a function of the user in Python; return the number or the array that its shape promises."""
    if key in ("value1", "scalar"):
        return float(function(first))
    if key == "update":
        return function(first, second)
    if key == "value2":
        return float(function(first, second))
    if key == "array":
        return _of_size(function(first), second.size)
    if key == "adding":
        return _of_size(function(first, second), first.size)
    found = _numbers(function(first, rng))
    return found if found.ndim == 0 else _of_size(found, second.size)


def _numbers(found: Any) -> Floats:
    """Return the result of a user's function as numbers; None is refused, which NumPy would convert to NaN."""
    array = np.asarray(found)
    if array.dtype == object and any(value is None for value in array.flat):
        raise ModelError(f"it returned {found!r}, and a number is needed.")
    return np.asarray(array, float)


def _of_size(found: Any, size: int) -> Floats:
    array = _numbers(found)
    if array.shape != (size,):
        raise ModelError(f"an array of shape ({size},) is needed, got {array.shape}.")
    return array


class _Generators(threading.local):
    """A NumPy generator for each thread, whose state is set to that of a chain."""

    def __init__(self) -> None:
        self.bits = np.random.SFC64(0)
        self.rng = np.random.Generator(self.bits)
        self.state: Any = self.bits.state


_GENERATORS = _Generators()


def generator_of(words: Words64) -> tuple[np.random.Generator, Callable[[], None]]:
    """Return a NumPy generator seeded from the words of a chain, and a function that advances the words."""
    mine = _GENERATORS
    mine.state["state"]["state"] = words.copy()
    bits = mine.bits
    bits.state = mine.state
    bits.random_raw(_MIXING, output=False)

    def move_on() -> None:
        words[:] = bits.random_raw(4)
        words[0] |= np.uint64(1)  # not all zero

    return mine.rng, move_on
