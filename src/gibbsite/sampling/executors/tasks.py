"""Whole runs as tasks: any function of one argument, on the workers that move chains otherwise."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gibbsite.sampling.executor import Executor
from gibbsite.sampling.executors.remote import RemoteExecutor, Work
from gibbsite.sampling.executors.segment import Done, checksum

T = TypeVar("T")
R = TypeVar("R")


def _call(run: str, function: Callable[[Any], Any], item: Any) -> Done:
    """Call a function on a worker; what it returns travels as bytes, which have a checksum."""
    began = time.monotonic()
    arrays = {"value": np.frombuffer(pickle.dumps(function(item)), np.uint8)}
    return Done(arrays, checksum(arrays), time.monotonic() - began)


CALL = Work("gibbs-task", _call)


def map_tasks(
    executor: Executor | None,
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    take: Callable[[T, R], None] = lambda item, found: None,
    say: Callable[[str], None] = lambda text: None,
) -> list[R]:
    """Return what a function makes of each item, on workers or, without any, here and one after another.

    Parameters
    ----------
    executor : Executor or None
        As :func:`gibbsite.sampling.executors.choosing.find_executor` gives it.
    function : function
        A pure one: what is lost with a worker is made again. It goes out once, the items with the tasks.
    items : sequence
        Its arguments.
    take : function (item, result)
        Called whenever a result is there.
    say : function
        Tells the user about workers that are lost.

    Returns
    -------
    list
        Results in the order of the items, whoever was first.

    Examples
    --------
    >>> map_tasks(None, abs, [-1, 2])
    [1, 2]
    """
    found: dict[int, R] = {}

    def keep(number: int, value: R) -> None:
        found[number] = value
        take(items[number], value)

    if isinstance(executor, RemoteExecutor):
        executor.employ(function, say)
        executor.make(CALL, items, lambda number, done: keep(number, pickle.loads(done.arrays["value"].data)))
    else:
        for number, item in enumerate(items):
            keep(number, function(item))
    return [found[number] for number in range(len(items))]
