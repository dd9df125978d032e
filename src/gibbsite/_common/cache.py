"""Caches of values that are computed from a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Cache:
    """A cache with at most one value of each type.

    Copies and pickles of a cache are empty, because its values may refer to machine code and can be computed again.

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
        """Store a value, replacing the one of its type, and return it."""
        self._values[type(value)] = value
        return value

    def find(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the value of a type; make it if there is none."""
        if kind not in self._values:
            self._values[kind] = make()
        value: T = self._values[kind]
        return value


class Recent(Generic[T]):
    """A cache of the values of the ``most`` keys that were added last.

    Examples
    --------
    >>> squares = Recent[int](2)
    >>> [squares.find(k, lambda: k * k) for k in (1, 2, 3)], len(squares.values)
    ([1, 4, 9], 2)
    """

    def __init__(self, most: int = 8) -> None:
        self.most = most
        self.values: dict[Hashable, T] = {}

    def find(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key; make it if there is none."""
        if key not in self.values:
            while len(self.values) >= self.most:
                self.values.pop(next(iter(self.values)))
            self.values[key] = make()
        return self.values[key]
