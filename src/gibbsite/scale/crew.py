"""How segments of chains are handed out to workers of a cluster, and how they come back."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.run.crew import Bundles, Crew
from gibbsite.run.recipe import Recipe
from gibbsite.run.tape import DRAWS
from gibbsite.scale.segment import Done, Segment, checksum, pack_chain, unpack_chain

# How often the segments of a block are handed out anew, before a run is given up.
MOST_ATTEMPTS = 20


class Returned(NamedTuple):
    """What came back of a segment: nothing where its worker was lost, or has ``other`` versions."""

    done: Done | None
    worker: str
    other: str = ""


class RemoteCrew(Crew):
    """Workers of a cluster, each of which moves a bundle of chains at a time.

    A segment that is lost with its worker is made again by another one; one that comes back with a wrong
    checksum is made again, and its worker dropped. In either case the numbers are the same.
    """

    block_seconds = 5.0

    def __init__(self) -> None:
        self.run = ""
        self.blocks = 0
        self.say: Callable[[str], None] = lambda text: None

    def employ(self, recipe: Recipe, say: Callable[[str], None]) -> None:
        """Send out what the chains are made of."""
        self.run, self.blocks, self.say = secrets.token_hex(8), 0, say
        self.send_recipe(recipe)

    @abstractmethod
    def send_recipe(self, recipe: Recipe) -> None:
        """Send what the chains are made of to all workers."""

    @abstractmethod
    def hand_out(self, segments: Sequence[tuple[int, Segment]]) -> list[Returned]:
        """Have numbered segments made, and return what came back, in the same order."""

    @abstractmethod
    def drop(self, worker: str) -> None:
        """Give no more work to a worker."""

    @abstractmethod
    def places(self) -> int:
        """Return how many bundles are moved at the same time."""

    @abstractmethod
    def threads_each(self, bundles: int) -> int:
        """Return how many threads a worker can give to each of so many bundles."""

    def _refuse(self, returned: Returned) -> None:
        """Do without a worker that has other versions; one that is there from the beginning is an error."""
        text = (
            f"Worker {returned.worker} has other versions than this process, and might give other numbers: "
            f"{returned.other}."
        )
        if self.blocks == 1:
            raise ArgumentError(f"{text} Install the same ones.")
        self.say(f"{text} It gets no more work.")
        self.drop(returned.worker)

    def move(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains, each bundle on some worker."""
        threads = self.threads_each(len(chains.states))
        members = min(chains.form.most_members, threads)
        room = int(chains.tapes[0].counters[DRAWS])
        segments = [
            Segment(size, pack_chain(state, tape), rounds, length, keep, room + rounds, members)
            for state, tape, size in zip(chains.states, chains.tapes, chains.sizes, strict=True)
        ]
        missing = dict(enumerate(segments))
        found: dict[int, Done] = {}
        self.blocks += 1
        for _ in range(MOST_ATTEMPTS):
            numbers = list(missing)
            for number, returned in zip(numbers, self.hand_out(list(missing.items())), strict=True):
                done = returned.done
                if returned.other:
                    self._refuse(returned)
                if done is None:
                    continue
                if checksum(done.arrays) != done.checksum:
                    self.say(f"Worker {returned.worker} returned wrong numbers; it gets no more work.")
                    self.drop(returned.worker)
                    continue
                found[number] = done
                del missing[number]
            if not missing:
                break
        else:
            raise SamplingError(
                f"Workers were lost {MOST_ATTEMPTS} times while they moved the same chains; what was "
                "recorded before is kept. Look at their logs: they may have too little memory."
            )
        for number, done in found.items():
            if done.wrong is not None:
                raise done.wrong
            chains.states[number], chains.tapes[number] = unpack_chain(
                done.arrays, chains.states[number], chains.tapes[number]
            )
        # workers make bundles one after another where there are more of them than workers
        turns = -(-len(segments) // self.places())
        return turns * max(done.seconds for done in found.values())
