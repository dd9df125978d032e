"""Chains beside a run of a model of numbers: its kernel moves them, with what it has learnt."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import SamplingError
from gibbsite.kernels.protocols import Fallible, Stateful
from gibbsite.sampling.driver import Driver

if TYPE_CHECKING:
    from gibbsite.sampling.driver import Recording


_STREAMS = 1 << 40  # the chains of a run have streams of random numbers from zero up


class Walkers:
    """Chains that move as the chains of a run do, from places of their own.

    Parameters
    ----------
    recording : Recording
        The run. Step sizes and the like are those that its chains have learnt.
    starts : list of arrays (n,)
        Where they start.
    group : int
        A number for these chains, which their random numbers depend on.
    threads : int
        How many threads move them; the numbers do not depend on it.
    """

    def __init__(self, recording: Recording, starts: list[Floats], group: int, threads: int) -> None:
        setup = recording.setup
        record = replace(
            setup.record,
            recorders=(),
            conditional=False,
            batches=False,
            pulse=False,
            energy=False,
            best=False,
            open=(),
            meetings=(),
            to=None,
            draw_sites=np.arange(setup.graph.n_sites, dtype=np.int32),
        )
        self.setup, self.threads = setup, max(1, min(threads, len(starts)))
        layout: Any = setup.layout
        short = replace(setup, record=record, layout=replace(layout, record=record), starts=tuple(starts))
        self.driver = Driver(short, threads=self.threads, first=_STREAMS + (group << 20))
        for number, state in enumerate(self.driver.states):
            memory = copy.deepcopy(recording.memories[number % len(recording.memories)])
            if isinstance(setup.kernel, Stateful):
                setup.kernel.forget(memory)
            self.driver.states[number] = state._replace(memory=memory)

    def walk(self, draws: int, thin: int = 1, which: Sequence[int] | None = None) -> list[Floats | None]:
        """Move all chains on, or some of them, and return the places (draws, n) of each.

        None stands for a chain whose steps went wrong.
        """
        setup, found = self.setup, list[Floats | None]()
        moving = range(len(self.driver.states)) if which is None else which
        for a in range(0, len(moving), self.threads):
            part = self.driver.part(moving[a : a + self.threads])
            part.erase()
            part.advance(draws, thin * setup.graph.n_units, keep=True)
            for state, tape in zip(part.states, part.tapes, strict=True):
                try:
                    if isinstance(setup.kernel, Fallible):
                        setup.kernel.inspect(setup.model, setup.graph, state.memory)
                    found.append(tape.values[:draws])
                except SamplingError:
                    found.append(None)
        return found


def can_walk(recording: Recording) -> bool:
    """Tell whether chains of a run can be moved one by one, and their places be written down."""
    from gibbsite.sampling.layout import PlainLayout

    return isinstance(recording.setup.layout, PlainLayout)
