"""How long visits to rare states last, measured by chains that are started in them.

A run that never entered a state, or entered it once or twice, cannot tell how long a visit lasts. If visits
last for tens of sweeps, the run has had far fewer chances to enter the state than it has draws, and its
standard errors are too small. The model knows better. Chains are put into each rare state, the other sites
adapt to it while it is held fixed, and then the chain is released and moves as the run does. The time that it
spends in the state, beyond the state's share in the run, is the sum of the autocorrelations of the state's
indicator. The standard errors of the run take it into account
(:func:`~gibbsite.results.measure.measurement.count_chances`), so that a rare state that lasts long asks for a
longer run.

Where certain sites were asked for, a rare state of another site counts as far as it matters for these. If a
run is off by e in the probability of that state, it is off by e d in a probability that was asked for, where
d is the difference of the latter between that state and the whole run. The chains that hold the state show d.
The time of a cell that was asked for becomes the root of the sum of its own squared time and of the squares
of all other times, each multiplied by d.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Positions
from gibbsite.graphs.support.possible import has_zeros
from gibbsite.graphs.support.start import find_state_with
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.models import FactorGraph
from gibbsite.results.verdict.dispersed_starts import DispersedStarts
from gibbsite.results.verdict.rows import Rows

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording
    from gibbsite.sampling.setup import Setup

_RARE = 0.2  # more probable states are seen so often that the run itself tells how long they last
_EACH = 8  # chains that are started in each rare state
_MOST_CHAINS, _FEWEST_CHAINS = 512, 32
_HELD = 32  # sweeps in which the other sites adapt
_ADAPTED = 16  # the last of them, by which the influence of the state on other sites is measured
_MOST_PAIRS = 1 << 24  # of rare states and cells asked for, beyond which every influence is taken to be full
_FEWEST_SWEEPS = 8  # for which a visit has to be followed
_LONGEST = 4096  # sweeps after which a visit is not followed any more
_SHARE = 0.05  # of the sweeps of a run, for visits
_FREE = 1e7  # updates of single sites that may be made whatever the run has cost, about 0.2 seconds
_TELLING = 1.01  # smaller times are not distinguished from one sweep
_OVER = 0.02  # share of the chains still in the state at which visits count as over
_MOST_HELD = 0.05  # share of the sites that one chain holds at the same time
_STAGE = 64  # of the random numbers; those of the dispersed-start check have smaller numbers


class Held(NamedTuple):
    """Which rare states are held in which chains, an entry for each pair of them."""

    chain: Positions
    site: Positions
    code: Positions
    cell: Positions

    def among(self, which: Bools) -> Held:
        """Return the entries of some of them."""
        return Held(*(part[which] for part in self))


class Visits:
    """Measures visits to rare states; what was measured is kept for later questions about the same run."""

    def __init__(self, setup: Setup, threads: int, asked: Positions | None = None) -> None:
        self.setup, self.threads, self.asked = setup, threads, asked
        self.times = np.ones(setup.record.n_marginal)
        self.squares = np.zeros(0 if asked is None else asked.size)  # of times of other sites' states
        self.measured = np.zeros(setup.record.n_marginal, np.bool_)
        self.horizon = 0

    def measure(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> Floats | None:
        """Return the integrated autocorrelation times of marginals, in sweeps; 1 where none was measured.

        An empty array says that no visits last longer than a sweep, or that none can be measured in a small
        part of the time of the run; None that there was no time left.

        Parameters
        ----------
        recording, result
            The run, and what is known of it.
        stop : function
            Returns whether there is no time left for something that takes a number of seconds.
        """
        if can_measure(self.setup) and not self._update(recording, result, stop):
            return None
        times = self.times.copy()
        if self.asked is not None:
            times[self.asked] = np.sqrt(np.square(times[self.asked]) + self.squares)
        return times if times.max(initial=1.0) > 1.0 else np.zeros(0)

    def _update(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> bool:
        """Measure what was not measured yet, if that costs little; tell whether there was time."""
        setup, graph = self.setup, self.setup.graph
        mean = result.totals[:, : self.times.size].sum(axis=0) / max(result.chains * result.n_draws, 1)
        rare = _find_rare(setup, mean)
        total = len(recording.tapes) * (result.n_draws * setup.plan.thin + recording.warmup)
        allowed = max(_SHARE * total, _FREE / graph.n_sites)
        chains = int(np.clip(_EACH * rare.cell.size, _FEWEST_CHAINS, _MOST_CHAINS))
        while chains > _FEWEST_CHAINS and chains * 2 * _HELD > allowed:
            chains //= 2
        horizon = 1 << int(np.log2(np.clip(allowed / chains - _HELD, 1.0, _LONGEST)))
        known = bool(self.measured[rare.cell].all()) and horizon < 4 * self.horizon
        pace = recording.seconds / max(total, 1)
        if not rare.cell.size or known or horizon < 2:
            return True
        if stop(chains * (_HELD + 2) * pace):
            return False
        self.horizon = horizon
        rng = np.random.default_rng(np.random.SeedSequence(setup.plan.entropy, spawn_key=(0, 3)))
        held = _assign(rare, chains, graph.n_sites, rng, alone=has_zeros(graph))
        rows, held, shown = self._adapt(held, recording, chains, rng)
        if held.cell.size and not self._follow(recording, rows, held, mean, horizon, stop):
            return False
        if self.asked is not None:
            self.squares = self._weigh_others(held, shown, mean)
        self.measured[rare.cell] = True
        return True

    def _adapt(
        self, held: Held, recording: Recording, chains: int, rng: np.random.Generator
    ) -> tuple[Rows, Held, Floats]:
        """Return chains in which the held states are typical, and the entries that these are for.

        Also returned are the means of all cells in these chains; those of sites that are held are zero.
        """
        setup, graph = self.setup, self.setup.graph
        x = np.stack([recording.states[c % len(recording.states)] for c in range(chains)])
        x[held.chain, held.site] = held.code
        good = np.ones(chains, np.bool_)
        if has_zeros(graph):
            known: dict[int, Any] = {}
            for chain, site, code, cell in zip(*(part.tolist() for part in held), strict=True):
                if np.isneginf(setup.model.log_potential(x[chain])):
                    if cell not in known:
                        known[cell] = find_state_with(setup.model, graph, site, code, rng)[0]
                    good[chain] = known[cell] is not None
                    x[chain] = known[cell] if good[chain] else x[chain]
        place = np.cumsum(good) - 1
        left = held.among(good[held.chain])
        left = left._replace(chain=place[left.chain])
        seed = np.random.SeedSequence(setup.plan.entropy, spawn_key=(1, 3))
        words = seed.generate_state(4 * chains, np.uint64).astype(np.uint64).reshape(chains, 4)[good]
        rows = Rows(graph, x[good], words)
        fixed = np.zeros(rows.x.shape, np.bool_)
        fixed[left.chain, left.site] = True
        rows.move(_HELD - _ADAPTED, fixed)
        return rows, left, rows.move(_ADAPTED, fixed)

    def _weigh_others(self, held: Held, shown: Floats, mean: Floats) -> Floats:
        """Return what states of other sites add to the squared time of each cell that was asked for."""
        assert self.asked is not None
        graph, order = self.setup.graph, np.argsort(held.cell, kind="stable")
        cells, first, count = np.unique(held.cell, return_index=True, return_counts=True)
        squares = np.square(self.times[cells]) - 1.0
        if cells.size * self.asked.size > _MOST_PAIRS:
            return np.full(self.asked.size, squares.max(initial=0.0))
        site = self.asked if graph.binary else np.searchsorted(graph.offset, self.asked, side="right") - 1
        free = np.ones((len(shown), graph.n_sites), np.bool_)
        free[held.chain, held.site] = False
        apart = np.where(free[:, site], shown[:, self.asked] - mean[self.asked], 0.0)
        added = np.zeros(self.asked.size)
        for k in np.flatnonzero(squares > 0.0):
            chains = held.chain[order[count[:k].sum() :][: count[k]]]
            influence = np.where(site == held.site[first[k]], 0.0, apart[chains].mean(axis=0))
            added += squares[k] * np.square(influence)
        return added

    def _follow(
        self, recording: Recording, rows: Rows, held: Held, mean: Floats, horizon: int, stop: Callable[[float], bool]
    ) -> bool:
        """Release the chains and add up the time that they spend in the states in which they started.

        Plain Gibbs sampling goes on as the other sites did; other kernels move chains of their own.
        """
        cells = np.unique(held.cell)
        column = np.searchsorted(cells, held.cell)
        released: PlainGibbs | OwnKernel = PlainGibbs(rows, held)
        if not isinstance(self.setup.kernel, Gibbs):
            released = self._release(recording, rows, held)
        share = _time_in(mean[held.cell], held, self.setup.graph.binary)
        spent, still = np.zeros(held.cell.size), np.zeros(cells.size)
        done, goal = 0, 1
        while goal <= horizon:
            there = released.follow(goal, stop)
            if there is None and done < _FEWEST_SWEEPS:
                return False
            if there is None:
                break
            excess = there - share
            spent += excess * (goal - done)
            done = goal
            still = _average(column, excess, cells.size)
            if goal > 4 and still.max() < _OVER:
                break
            goal *= 2
        average = _average(column, spent, cells.size)
        square = _average(column, np.square(spent), cells.size)
        count = np.bincount(column, minlength=cells.size)
        error = np.sqrt(np.maximum(square - np.square(average), 0.0) / np.maximum(count, 1))
        # visits that are not over: the rest of an exponential law with the same share in the last window
        last = np.clip(still, 0.0, 0.99)
        length = 0.75 * done / np.log(1.0 / np.maximum(last, 1e-9))
        rest = np.where(last > _OVER, length * np.exp(-done / length), 0.0)
        times = 1.0 + 2.0 * (average + error + rest)
        self.times[cells] = np.where(times > _TELLING, times, 1.0)
        return True

    def _release(self, recording: Recording, rows: Rows, held: Held) -> OwnKernel:
        """Start chains that move as the run does at the states of others."""
        short = DispersedStarts(self.setup, self.threads)
        cells = np.unique(held.cell)
        short.lay_out(cells)
        short.start(list(rows.x), recording, _STAGE + 1)
        return OwnKernel(short, held, cells, self.setup.graph.binary)


class PlainGibbs:
    """Chains that move by plain Gibbs sampling, after their release from held states."""

    def __init__(self, rows: Rows, held: Held) -> None:
        self.rows, self.held, self.sweeps = rows, held, 0

    def follow(self, goal: int, stop: Callable[[float], bool]) -> Floats | None:
        """Continue to ``goal`` sweeps after the release; return the share spent in the states, None if late."""
        if stop(0.0):
            return None
        cells = self.rows.move(goal - self.sweeps)
        self.sweeps = goal
        return _time_in(cells[self.held.chain, self.held.cell], self.held, self.rows.graph.binary)


class OwnKernel(NamedTuple):
    """Chains that move as a run does, after their release from held states."""

    short: DispersedStarts
    held: Held
    cells: Positions
    binary: bool

    def follow(self, goal: int, stop: Callable[[float], bool]) -> Floats | None:
        """Continue to ``goal`` sweeps after the release; return the share spent in the states, None if late."""
        if not self.short.extend(goal, stop):
            return None
        there = self.short.means[self.held.chain, np.searchsorted(self.cells, self.held.cell)]
        return _time_in(there, self.held, self.binary)


def _time_in(there: Floats, held: Held, binary: bool) -> Floats:
    """Return probabilities of held states from those of their cells: of two states, only one has a cell."""
    return np.where(held.code == 0, 1.0 - there, there) if binary else there


def can_measure(setup: Setup) -> bool:
    """Tell whether visits can be measured: marginals of a discrete model in memory, draws that are random."""
    return (
        setup.graph.discrete
        and isinstance(setup.model, FactorGraph)
        and not setup.graph.on_disk
        and setup.record.n_marginal > 0
        and setup.graph.n_units > 0
        and setup.kernel.error_source == "draws"
    )


def _find_rare(setup: Setup, mean: Floats) -> Held:
    """Return the states that are rare in a run, each in a chain of its own."""
    graph = setup.graph
    if graph.binary:
        site = np.flatnonzero(np.minimum(mean, 1.0 - mean) < _RARE)
        return Held(np.arange(site.size), site, (mean[site] < 0.5).astype(np.intp), site)
    cell = np.flatnonzero(mean < _RARE)
    site = np.searchsorted(graph.offset, cell, side="right") - 1
    return Held(np.arange(cell.size), site, cell - graph.offset[site], cell)


def _assign(rare: Held, chains: int, n_sites: int, rng: np.random.Generator, alone: bool) -> Held:
    """Deal rare states out to chains at random, several times each; a chain holds few states of other sites.

    Examples
    --------
    >>> three = np.arange(3)
    >>> held = _assign(Held(three, three, three * 0, three), 12, 5, np.random.default_rng(1), False)
    >>> np.bincount(held.cell).tolist(), np.bincount(held.chain).max().item()
    ([4, 4, 4], 1)
    """
    most = 1 if alone else max(1, int(_MOST_HELD * n_sites))
    each = max(1, min(_EACH, chains * most // max(rare.cell.size, 1)))
    order = np.concatenate([rng.permutation(rare.cell.size) for _ in range(each)])[: chains * most]
    chain = np.arange(order.size) % chains
    dealt = rare.among(order)._replace(chain=chain)
    _, first = np.unique(dealt.chain * n_sites + dealt.site, return_index=True)
    return Held(*(part[np.sort(first)] for part in dealt))


def _average(group: Positions, values: Floats, groups: int) -> Floats:
    """Return the average of the values in each group, 0 of empty ones."""
    total = np.bincount(group, values, groups)
    return total / np.maximum(np.bincount(group, minlength=groups), 1)
