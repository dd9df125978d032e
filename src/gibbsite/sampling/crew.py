"""Who moves the chains of a run: threads of this process, or workers somewhere else.

The engine decides how far to go; a crew takes all bundles of chains there. Whoever it is, the numbers are the
same: chains have random numbers of their own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gibbsite._numba.jit import clock
from gibbsite.kernels.base import Team
from gibbsite.sampling.chain import State, advance
from gibbsite.sampling.executor import Executor
from gibbsite.sampling.tape import Tape

if TYPE_CHECKING:
    from gibbsite.sampling.chain_layout import ChainLayout
    from gibbsite.sampling.recipe import Recipe


class Bundles(Protocol):
    """Bundles of chains: states and tapes, which a crew moves on, and what does not change."""

    form: ChainLayout
    kernel: Any
    schedule: Any
    states: list[State]
    tapes: list[Tape]
    sizes: list[int]
    threads: int
    executor: Executor


class Crew(ABC):
    """Moves the chains of a run.

    Attributes
    ----------
    block_seconds : float
        How long a block of sweeps should take: between blocks, the engine shows progress, looks at the
        clock and saves checkpoints.
    away : bool
        Whether states and tapes are with workers: counters and positions are here, all else as it was when
        everything was here.
    """

    block_seconds: float = 0.15

    @property
    def away(self) -> bool:
        """Whether states and tapes are with workers."""
        return False

    def employ(self, recipe: Recipe, say: Callable[[str], None], form: ChainLayout | None = None) -> Crew:
        """Learn what the chains of the next run are made of; ``say`` tells the user something.

        Return who is going to move them. A layout that nobody can move here is refused.
        """
        return self

    def dismiss(self) -> None:  # noqa: B027 (most need nothing)
        """Learn that the run is over."""

    @abstractmethod
    def move(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make ``rounds`` times ``length`` steps of all chains; record a draw after each if ``keep``.

        Return the seconds that the steps took, without what it took to send chains to and fro. Where they
        cannot be made (``SamplingError``), chains are as they were when everything was here.
        """

    def most_draws(self, chains: Bundles) -> float:
        """Return how many draws can be recorded in a block, at most."""
        return math.inf

    def bring(self, chains: Bundles) -> None:  # noqa: B027 (most leave nothing elsewhere)
        """Bring states and tapes here, if they are with workers."""


class Threads(Crew):
    """Threads of this process: compiled code runs without the interpreter's lock."""

    def move(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains; threads share a chain where there are more of them than chains."""
        members = min(chains.form.most_members, max(1, chains.threads // len(chains.states)))
        gates = [np.zeros(1, np.int64) for _ in chains.states]

        def move(item: int) -> None:
            bundle, member = divmod(item, members)
            advance(
                chains.kernel,
                chains.form.arrays(chains.sizes[bundle]),
                chains.schedule,
                chains.states[bundle],
                chains.tapes[bundle],
                rounds,
                length,
                keep,
                Team(member, members, gates[bundle]),
            )

        began = clock()
        chains.executor.map(move, range(len(chains.states) * members))
        return clock() - began
