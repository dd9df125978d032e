"""Short pilot runs, by which a kernel finds out what it needs (``Kernel.tune``)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._numba.jit import clock
from gibbsite.errors import CheckpointError, SupportError
from gibbsite.graphs.support.start import start_states
from gibbsite.kernels.protocols import Trial, Tunable
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.setup import Budget, Setup, lay_out_plainly
from gibbsite.scans.systematic import Systematic

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan

# Sweeps of all pilot runs together, where the run is counted in sweeps: its warmup, but at least this many.
_LEAST_SWEEPS = 400
# Share of a time limit for them.
_SHARE = 0.15
# Factor by which they may exceed that share, because a run has a shortest length, before the next one is the last.
_PATIENCE = 2.0
# Sweeps of one pilot run, at least; the same where time is over; share of each that is not recorded.
_FEWEST, _FEWEST_LATE, _FORGOTTEN = 8, 3, 1 / 3
# Seconds between two chances for the user to interrupt.
_BLOCK_SECONDS = 0.2
# Streams of random numbers of pilot runs begin here, a million for each run.
_STREAMS = 1 << 41


def tune_kernel(
    setup: Setup, starts: list[Array], entropy: int, threads: int, budget: Budget | None, tuned: dict[str, Array] | None
) -> Kernel:
    """Return the kernel of a run, tuned by pilot runs or by the results of earlier ones (``tuned``)."""
    kernel: Any = setup.kernel
    if tuned is None:
        whole = Budget(None, None, setup.graph.n_units, 0, math.inf) if budget is None else budget
        return cast(
            "Kernel", kernel.tune(ChainPilot(setup.model, setup.graph, setup.scan, starts, entropy, threads, whole))
        )
    try:
        found: Kernel = kernel.retuned(tuned) if tuned else kernel  # the plan tells whether it is of another kernel
        found.parameters(setup.graph)
    except (TypeError, ValueError, IndexError) as reason:
        raise CheckpointError(
            f"The checkpoint is a damaged one: what its kernel had found out makes no sense ({reason}); remove it "
            "to start afresh."
        ) from None
    return found


def tune_in(seconds: float | None, model: Model, graph: Graph, kernel: Kernel) -> Kernel:
    """Return a kernel tuned to a model in about the given number of seconds.

    Without a time limit the pilot runs are as long as those of a short run that is counted in sweeps, and the
    same is found every time.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.5)
    >>> graph = gs.graphs.compile_graph(model)
    >>> tune_in(0.2, model, graph, gs.Tempered()).summary(graph)["rungs"]
    4.0
    """
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
        That of the run.
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
        """Whether the pilot runs have taken much more than their share of a time limit."""
        return clock() - self.begun > _PATIENCE * _SHARE * self.budget.seconds

    def run(self, kernel: Kernel, share: float) -> Trial:
        """Run all chains for a share of the time, or of the sweeps, that the pilot has.

        Setting up the chains is part of that time.
        """
        arrived = clock()
        setup = lay_out_plainly(self.model, kernel, self.scan, "marginals", self.graph)
        setup = replace(setup, starts=tuple(self.starts), entropy=self.entropy)
        self.turn += 1
        driver = Driver(setup, threads=self.threads, first=_STREAMS + (self.turn << 20))
        with driver.threads:
            driver.advance(0)  # compiles
            sweeps, done = self._sweeps(share, driver, arrived), 0
            forgotten = math.ceil(_FORGOTTEN * sweeps)
            began = clock()
            while done < sweeps:
                pace = (clock() - began) / done if done else math.inf
                goal = forgotten if done < forgotten else sweeps
                block = max(1, min(goal - done, int(min(_BLOCK_SECONDS / max(pace, 1e-9), sweeps))))
                driver.advance(block, keep=done >= forgotten)
                done += block
                if done == forgotten:
                    driver.freeze()
        self.starts = [state.x for state in driver.states]
        draws = max(1, (sweeps - forgotten) * len(self.starts))
        means = sum(tape.total + tape.open_batch for tape in driver.tapes) / draws
        if self.graph.binary:
            means = np.stack([1.0 - means, means], axis=1).ravel()
        return Trial([state.memory for state in driver.states], np.asarray(means))

    def _sweeps(self, share: float, driver: Driver, arrived: float) -> int:
        """Return how many sweeps to make; fewer where time runs out."""
        wanted = math.inf
        if self.budget.counted or not math.isfinite(self.budget.seconds):
            wanted = share * max(_LEAST_SWEEPS, self.budget.warmup or 0)
        if math.isfinite(self.budget.seconds):
            began = clock()
            tried = 1 if self.late else _FEWEST // 2
            driver.advance(tried)
            pace = (clock() - began) / tried
            left = share * _SHARE * self.budget.seconds - (clock() - arrived)
            wanted = min(wanted, max(left, 0.0) / max(pace, 1e-9))
        return max(_FEWEST_LATE if self.late else _FEWEST, math.ceil(wanted))
