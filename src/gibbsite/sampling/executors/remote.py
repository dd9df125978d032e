"""How tasks, segments of chains above all, are handed out to workers of a cluster, and how they come back."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.sampling.executor import Bundles, Executor
from gibbsite.sampling.executors.segment import Done, checksum, cut_segment, join_segment, move_segment
from gibbsite.sampling.layout import ChainLayout

# How often tasks are handed out in vain before a run is given up.
MOST_ATTEMPTS = 20


def lost_too_often(times: int) -> SamplingError:
    """Return what a run ends with whose workers are lost again and again.

    Examples
    --------
    >>> str(lost_too_often(20)).split(";")[0]
    'Workers were lost 20 times while they moved the same chains'
    """
    return SamplingError(
        f"Workers were lost {times} times while they moved the same chains; what was recorded before is "
        "kept. Look at their logs: they may have too little memory."
    )


class Work(NamedTuple):
    """What is done with tasks: a pure function of the name of a run, its recipe and a task."""

    name: str
    function: Callable[[str, Any, Any], Done]


SEGMENT = Work("gibbs-segment", move_segment)


class Returned(NamedTuple):
    """What came back of a task: nothing where its worker was lost, or has ``other`` versions."""

    done: Done | None
    worker: str
    other: str = ""


class RemoteExecutor(Executor):
    """Workers of a cluster, each of which makes a task at a time, such as to move a bundle of chains.

    A task that is lost with its worker is made again by another one; one that comes back with a wrong
    checksum is made again, and its worker dropped. In either case the numbers are the same.
    """

    block_seconds = 5.0

    def __init__(self) -> None:
        self.run = ""
        self.blocks = 0
        self.proved = False  # whether any task has come back
        self.say: Callable[[str], None] = lambda text: None

    def employ(self, recipe: Any, say: Callable[[str], None], layout: ChainLayout | None = None) -> Executor:
        """Send out what all tasks need: for chains, what they are made of."""
        self.run, self.blocks, self.proved, self.say = secrets.token_hex(8), 0, False, say
        self.send_recipe(recipe)
        return self

    @abstractmethod
    def send_recipe(self, recipe: Any) -> None:
        """Send what all tasks need to all workers."""

    @abstractmethod
    def hand_out(self, work: Work, tasks: Sequence[tuple[int, Any]]) -> Iterable[tuple[int, Returned]]:
        """Have numbered tasks made, and yield what came back with its number, as it comes."""

    @abstractmethod
    def drop(self, worker: str) -> None:
        """Give no more work to a worker."""

    @abstractmethod
    def places(self) -> int:
        """Return how many bundles are moved at the same time."""

    @abstractmethod
    def threads_each(self, bundles: int) -> int:
        """Return the number of threads of a worker for each of a number of bundles."""

    def _refuse(self, returned: Returned) -> None:
        """Do without a worker that has other versions; one that is there from the beginning is an error."""
        text = (
            f"Worker {returned.worker} has other versions than this process, and might give other numbers: "
            f"{returned.other}."
        )
        if self.blocks <= 1 and not self.proved:
            raise ArgumentError(f"{text} Install the same ones.")
        self.say(f"{text} It gets no more work.")
        self.drop(returned.worker)

    def make(self, work: Work, tasks: Sequence[Any], take: Callable[[int, Done], None]) -> None:
        """Have all tasks made; each is taken, with its number, when it comes back."""
        missing = dict(enumerate(tasks))
        self.blocks += 1
        in_vain = 0
        while missing:
            before = len(missing)
            for number, returned in self.hand_out(work, list(missing.items())):
                done = returned.done
                if returned.other:
                    self._refuse(returned)
                if done is None:
                    continue
                if checksum(done.arrays) != done.checksum:
                    self.say(f"Worker {returned.worker} returned wrong numbers; it gets no more work.")
                    self.drop(returned.worker)
                    continue
                self.proved = True
                take(number, done)
                del missing[number]
            in_vain = in_vain + 1 if len(missing) == before else 0
            if in_vain == MOST_ATTEMPTS:
                raise lost_too_often(MOST_ATTEMPTS)

    def advance(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains, each bundle on some worker."""
        threads = self.threads_each(len(chains.states))
        members = min(chains.layout.most_members, threads)
        segments = [
            cut_segment(state, tape, size, rounds, length, keep, members)
            for state, tape, size in zip(chains.states, chains.tapes, chains.sizes, strict=True)
        ]
        found: dict[int, Done] = {}
        self.make(SEGMENT, segments, found.__setitem__)
        for _, done in sorted(found.items()):
            if done.wrong is not None:
                raise done.wrong
        for number, done in found.items():  # not before all are there: chains are of the same length
            chains.states[number], chains.tapes[number] = join_segment(
                done, chains.states[number], chains.tapes[number]
            )
        # workers make bundles one after another where there are more of them than workers
        turns = -(-len(segments) // self.places())
        return turns * max(done.seconds for done in found.values())
