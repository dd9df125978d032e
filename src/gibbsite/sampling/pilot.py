"""Short runs before a run, by which a kernel finds out what it needs (``Kernel.tune``)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._numba.jit import clock
from gibbsite._numba.random.generators import stream
from gibbsite.errors import SupportError
from gibbsite.graphs.support.start import start_states
from gibbsite.kernels.base import alone
from gibbsite.kernels.protocols import Adaptive, Trial, Tunable
from gibbsite.sampling.budget import Budget
from gibbsite.sampling.chain import advance
from gibbsite.sampling.chain_layout import PlainLayout
from gibbsite.sampling.executor import Executor
from gibbsite.sampling.record import lay_out

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan

# Sweeps of all short runs together, where the run is counted in sweeps: its warmup, but at least so many.
_LEAST_SWEEPS = 400
# Share of a time limit for them.
_SHARE = 0.15
# By what factor they may exceed it, because a run has a shortest length, before the next one is the last.
_PATIENCE = 2.0
# Sweeps of one short run, at least; the same where time is over; part of each that is not recorded.
_FEWEST, _FEWEST_LATE, _FORGOTTEN = 8, 3, 1 / 3
# Sweeps between two looks whether the user wants to stop.
_BLOCK_SECONDS = 0.2


def tune_in(seconds: float | None, model: Model, graph: Graph, kernel: Kernel) -> Kernel:
    """Return a kernel with what it finds out about a model in about so many seconds.

    Without a time limit the short runs have as many sweeps as those of a short run that is counted in sweeps,
    and the same is found every time.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.5)
    >>> graph = gs.graphs.compile_graph(model)
    >>> tune_in(0.2, model, graph, gs.Tempered()).summary(graph)["rungs"]
    4.0
    """
    from gibbsite.scans.systematic import Systematic

    if not (isinstance(kernel, Tunable) and kernel.tunes):
        return kernel
    limit = math.inf if seconds is None else seconds / _SHARE
    budget = Budget(None, None, graph.n_units, 0, limit, counted=seconds is None)
    try:
        starts = start_states(model, graph, 2, None, 0)
    except SupportError:  # there is nothing to run
        return kernel
    return kernel.tune(ChainPilot(model, graph, Systematic(), starts, 0, 1, budget))


@dataclass
class ChainPilot:
    """Runs chains of a kernel for a while, from where the last ones ended.

    Parameters
    ----------
    model, graph, scan
        What will be sampled, and in which order.
    starts : list of arrays
        Where chains begin.
    entropy : int
        Seed of the run; the chains have streams of their own.
    threads : int
        Threads to use; the numbers do not depend on it.
    budget : Budget
        Of the run.
    """

    model: Model
    graph: Graph
    scan: Scan
    starts: list[Array]
    entropy: int
    threads: int
    budget: Budget
    turn: int = field(default=0, init=False)
    begun: float = field(default_factory=clock, init=False)

    @property
    def late(self) -> bool:
        """Whether the short runs have taken much more than their share of a time limit."""
        return clock() - self.begun > _PATIENCE * _SHARE * self.budget.seconds

    def run(self, kernel: Kernel, share: float) -> Trial:
        """Run all chains for a share of the time, or of the sweeps, that there are.

        What is made before the chains can begin is part of that time.
        """
        arrived = clock()
        layout = lay_out(self.model, self.graph, kernel, "marginals")
        form = PlainLayout(self.graph, kernel, self.scan, layout, self.model)
        self.turn += 1
        first = (1 << 41) + (self.turn << 20)
        states = [form.start([x0], [stream(self.entropy, first + chain)]) for chain, x0 in enumerate(self.starts)]
        tapes = [form.tape(1) for _ in states]
        parameters, schedule = kernel.parameters(self.graph), form.schedule()

        def move(sweeps: int, keep: bool) -> None:
            def one(chain: int) -> None:
                state, tape, length = states[chain], tapes[chain], self.graph.n_units
                advance(parameters, form.arrays(1), schedule, state, tape, sweeps, length, keep, alone())

            with Executor(self.threads) as executor:
                executor.map(one, range(len(states)))

        move(0, False)  # compiles
        sweeps, done = self._sweeps(share, move, arrived), 0
        forgotten = math.ceil(_FORGOTTEN * sweeps)
        began = clock()
        while done < sweeps:
            pace = (clock() - began) / done if done else math.inf
            goal = forgotten if done < forgotten else sweeps
            block = max(1, min(goal - done, int(min(_BLOCK_SECONDS / max(pace, 1e-9), sweeps))))
            move(block, done >= forgotten)
            done += block
            if done == forgotten:
                for state in states:
                    if isinstance(kernel, Adaptive):
                        kernel.freeze(state.memory)
        self.starts = [state.x for state in states]
        draws = max(1, (sweeps - forgotten) * len(states))
        means = sum(tape.total + tape.open_batch for tape in tapes) / draws
        if self.graph.binary:
            means = np.stack([1.0 - means, means], axis=1).ravel()
        return Trial([state.memory for state in states], np.asarray(means))

    def _sweeps(self, share: float, move: Any, arrived: float) -> int:
        """Return how many sweeps to make, most of them fewer where time runs out."""
        wanted = math.inf
        if self.budget.counted or not math.isfinite(self.budget.seconds):
            wanted = share * max(_LEAST_SWEEPS, self.budget.warmup or 0)
        if math.isfinite(self.budget.seconds):
            began = clock()
            tried = 1 if self.late else _FEWEST // 2
            move(tried, False)
            pace = (clock() - began) / tried
            left = share * _SHARE * self.budget.seconds - (clock() - arrived)
            wanted = min(wanted, max(left, 0.0) / max(pace, 1e-9))
        return max(_FEWEST_LATE if self.late else _FEWEST, math.ceil(wanted))
