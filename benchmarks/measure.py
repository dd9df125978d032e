"""Race several pieces of code against each other in one process.

Every repetition gives each contestant one turn, and ratios are formed inside a repetition: whatever else the
machine does meanwhile slows neighbours in time alike. The figure is the median over repetitions; beside it
stand the smallest and the largest.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Median and range of one figure over the repetitions."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def to_dict(self) -> dict[str, float]:
        return {"median": self.median, "low": self.low, "high": self.high}


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Contestant:
    """Something that can be run for any number of rounds.

    Attributes
    ----------
    name : str
        What it is called in tables.
    run : function
        Makes the given number of rounds.
    work : int
        Updates per round.
    prepare : function
        Called before every turn, not timed.
    least : int
        Fewest rounds of a turn.
    """

    name: str
    run: Callable[[int], Any]
    work: int
    prepare: Callable[[], Any] = _nothing
    least: int = 16


@dataclass
class Times:
    """Seconds per update of one contestant, one entry per repetition."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def rate(self) -> Spread:
        """Updates per second of processor time."""
        return Spread.of([1.0 / t for t in self.cpu])

    @property
    def wall_rate(self) -> Spread:
        """Updates per second of the clock."""
        return Spread.of([1.0 / t for t in self.wall])

    def against(self, other: Times, clock: str = "cpu") -> Spread:
        """How many times faster than another, inside each repetition; by processor time, or ``"wall"``."""
        mine, theirs = getattr(self, clock), getattr(other, clock)
        return Spread.of([b / a for a, b in zip(mine, theirs, strict=True)])


def _turn(contestant: Contestant, rounds: int) -> tuple[float, float]:
    contestant.prepare()
    wall, cpu = time.perf_counter(), time.process_time()
    contestant.run(rounds)
    return time.process_time() - cpu, time.perf_counter() - wall


def race(contestants: Sequence[Contestant], *, repetitions: int, seconds: float) -> dict[str, Times]:
    """Time all contestants in turns.

    Parameters
    ----------
    contestants : sequence of Contestant
        Who takes part.
    repetitions : int
        Turns of each.
    seconds : float
        About how long a turn takes.

    Returns
    -------
    dict of Times
        By name of the contestant.
    """
    rounds = {}
    for contestant in contestants:
        _turn(contestant, 1)  # compile, load, touch the memory
        cpu, _ = _turn(contestant, contestant.least)
        pace = max(cpu / contestant.least, 1e-9)
        rounds[contestant.name] = max(contestant.least, round(seconds / pace))
    times = {contestant.name: Times() for contestant in contestants}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for repetition in range(repetitions):
            # so that no contestant always follows the same one
            first = repetition % len(contestants)
            for contestant in (*contestants[first:], *contestants[:first]):
                turns = rounds[contestant.name]
                cpu, wall = _turn(contestant, turns)
                updates = turns * contestant.work
                times[contestant.name].cpu.append(max(cpu, 1e-9) / updates)
                times[contestant.name].wall.append(max(wall, 1e-9) / updates)
    finally:
        if collecting:
            gc.enable()
    return times
