"""Where chains run: one after another, or on threads. The numbers are the same either way."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from gibbsite.sampling.budget import check_integer

T = TypeVar("T")
R = TypeVar("R")


def usable_cores() -> int:
    """Return the number of cores this process may use.

    Examples
    --------
    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Executor:
    """Apply a function to every chain; compiled code releases the GIL, so threads suffice.

    Examples
    --------
    >>> with Executor(threads=2) as executor:
    ...     executor.map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the results in the order of the items."""
        if self._pool is None:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)


def read_threads(threads: int | None) -> int:
    """Return how many threads to use: by default as many as there are cores."""
    return usable_cores() if threads is None else check_integer("threads", threads, 1)
