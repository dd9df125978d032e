"""Where chains run: on threads of this process, or on workers elsewhere.

The driver decides how far to go; an executor takes all bundles of chains there. The numbers do not depend on
the executor, because every chain has its own random numbers.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._numba.jit import clock
from gibbsite.kernels.base import Team
from gibbsite.sampling.sweep import State, sweep_chain
from gibbsite.sampling.tape import Tape

if TYPE_CHECKING:
    from gibbsite.sampling.layout import ChainLayout
    from gibbsite.sampling.setup import Recipe

T = TypeVar("T")
R = TypeVar("R")
_NO_GATE = np.zeros(1, np.int64)


class Bundles(Protocol):
    """Bundles of chains as a driver holds them: states and tapes, which change, and everything else."""

    layout: ChainLayout
    parameters: Any
    schedule: Any
    arrays: list[Any]
    states: list[State]
    tapes: list[Tape]
    sizes: list[int]
    threads: Threads


class Executor(ABC):
    """Moves the chains of a run.

    Attributes
    ----------
    block_seconds : float
        How long a block of sweeps should take. Between blocks, the caller shows progress, looks at the clock
        and saves checkpoints.
    away : bool
        Whether states and tapes are with workers; only counters and positions are up to date here then.
    """

    block_seconds: float = 0.15
    away: bool = False

    def employ(self, recipe: Recipe, say: Callable[[str], None], layout: ChainLayout | None = None) -> Executor:
        """Prepare for the chains of the next run, and return the executor that will move them.

        ``say`` shows a message to the user. A layout that the executor cannot move is refused.
        """
        return self

    def dismiss(self) -> None:  # noqa: B027 (most need nothing)
        """End the run on all workers."""

    @abstractmethod
    def advance(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make ``rounds`` times ``length`` steps of all chains; record a draw after each round if ``keep``.

        Return the seconds that the steps took, without the time for sending chains. If the steps fail
        (``SamplingError``), the chains are as they were when states and tapes were last here.
        """

    def most_draws(self, chains: Bundles) -> float:
        """Return how many draws can be recorded in a block, at most."""
        return math.inf

    def bring(self, chains: Bundles) -> None:  # noqa: B027 (most leave nothing elsewhere)
        """Bring states and tapes here, if they are with workers."""


class Threads(Executor):
    """Threads of this process; compiled code releases the interpreter's lock.

    Examples
    --------
    >>> with Threads(2) as threads:
    ...     threads.map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Apply a function to every item; return the results in the order of the items."""
        if self._pool is None or len(items) == 1:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def advance(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains; threads share a chain if there are more threads than chains."""
        bundles = len(chains.states)
        members = min(chains.layout.most_members, max(1, self.count // bundles)) if self.count > bundles else 1
        # teams must not meet at the same gate; a chain that one thread moves needs none
        gates = [_NO_GATE] * bundles if members == 1 else [np.zeros(1, np.int64) for _ in range(bundles)]

        def advance_one(item: int) -> None:
            k, member = divmod(item, members)
            sweep_chain(
                chains.parameters,
                chains.arrays[k],
                chains.schedule,
                chains.states[k],
                chains.tapes[k],
                rounds,
                length,
                keep,
                Team(member, members, gates[k]),
            )

        began = clock()
        self.map(advance_one, range(bundles * members))
        return clock() - began

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)


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


def read_threads(threads: int | None) -> int:
    """Return how many threads to use: by default one for each usable core."""
    return usable_cores() if threads is None else check_integer("threads", threads, 1)
