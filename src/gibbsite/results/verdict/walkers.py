"""Chains beside a run of a model of numbers: its kernel moves them, with what it has learnt."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.random.generators import stream
from gibbsite.errors import SamplingError
from gibbsite.kernels.base import alone
from gibbsite.kernels.protocols import Fallible, Stateful
from gibbsite.sampling.chain import advance
from gibbsite.sampling.executor import Executor

if TYPE_CHECKING:
    from gibbsite.sampling.engine import Recording


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
        layout = replace(
            setup.layout,
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
        self.form: Any = replace(setup.form, layout=layout)  # type: ignore[type-var]
        self.states = []
        for number, start in enumerate(starts):
            words = stream(setup.plan.entropy, _STREAMS + (group << 20) + number)
            state = self.form.start([start], [words])
            memory = copy.deepcopy(recording.memories[number % len(recording.memories)])
            if isinstance(setup.kernel, Stateful):
                setup.kernel.forget(memory)
            self.states.append(state._replace(memory=memory))

    def walk(self, draws: int, thin: int = 1, stop: Callable[[], bool] = lambda: False) -> list[Floats | None]:
        """Move all chains on, and return the places (draws, n) of each.

        None stands for a chain whose steps went wrong, or for which there was no time.
        """
        setup, form = self.setup, self.form
        parameters, schedule = setup.kernel.parameters(form.moving), form.schedule()
        length = thin * setup.graph.n_units

        def walk_one(number: int) -> Floats | None:
            state = self.states[number]
            if stop():
                return None
            tape = form.layout.grow(form.tape(1), draws)
            advance(parameters, form.arrays(1), schedule, state, tape, draws, length, True, alone())
            try:
                if isinstance(setup.kernel, Fallible):
                    setup.kernel.inspect(setup.model, setup.graph, state.memory)
            except SamplingError:
                return None
            places: Floats = tape.values[:draws]
            return places

        def walk_some(member: int) -> list[Floats | None]:
            return [walk_one(number) for number in range(member, len(self.states), self.threads)]

        with Executor(self.threads) as executor:
            parts = executor.map(walk_some, range(self.threads))
        return [parts[k % self.threads][k // self.threads] for k in range(len(self.states))]


def can_walk(recording: Recording) -> bool:
    """Tell whether chains of a run can be moved one by one, and their places be written down."""
    from gibbsite.sampling.chain_layout import PlainLayout

    return isinstance(recording.setup.form, PlainLayout)
