"""Caches of values that are computed from a model, each under its own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """At most one value of each type.

    Copies and pickles of a cache are empty: its values are quickly made again, and may hold machine code.

    Examples
    --------
    >>> cache = Cache()
    >>> cache.find(list, lambda: [1, 2]), cache.find(list, list), cache.get(dict)
    ([1, 2], [1, 2], None)
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[type, Any] = {}

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        return Cache, ()

    def get(self, kind: type[T]) -> T | None:
        """Return the value of a type, or None."""
        return self._values.get(kind)

    def put(self, value: T) -> T:
        """Keep a value, in place of the one of its type, and return it."""
        self._values[type(value)] = value
        return value

    def find(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the value of a type; make it if there is none."""
        if kind not in self._values:
            self._values[kind] = make()
        value: T = self._values[kind]
        return value
