"""Caches of values that are computed from a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T = TypeVar("T")


class Cache(dict[type, Any]):
    """A cache with at most one value of each type; ``cache[kind]`` makes the value by ``kind()`` if there is none.

    Copies and pickles of a cache are empty, because its values may refer to machine code and can be computed again.

    Examples
    --------
    >>> cache = Cache()
    >>> cache.find(list, lambda: [1, 2]), cache.find(list, list), cache.get(dict), cache[set]
    ([1, 2], [1, 2], None, set())
    """

    __slots__ = ()

    if TYPE_CHECKING:  # more is known of the types than of those of a dictionary

        def get(self, kind: type[T]) -> T | None: ...  # type: ignore[override]

        def __getitem__(self, kind: type[T]) -> T: ...

    def __missing__(self, kind: type[T]) -> T:
        return self.put(kind())

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        return Cache, ()

    def put(self, value: T) -> T:
        """Keep a value, in place of the one of its type, and return it."""
        self[type(value)] = value
        return value

    def find(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the value of a type; make it if there is none."""
        if kind not in self:
            self[kind] = make()
        return self[kind]


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
