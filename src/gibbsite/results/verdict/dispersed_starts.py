"""The dispersed-start check of a run that seems to have converged: many short chains from other starts.

Four chains that fall into the same mode agree with each other. So before a run is called converged, 64 more
chains are started elsewhere, half of them at random states of positive probability and half of them cooled
down from such states, and must come to agree with the run (:mod:`gibbsite.results.measure.agreement`). They
move as the run moves, for 8 to 128 sweeps depending on the length of the run; if they do not agree then,
they go on until they do, or have cost 10 % of the run. Means are taken over the second half of
their sweeps. Other modes that they find are named, and the run is then not converged.

The chains have keyed random numbers of their own, so that a run with a given seed and number of sweeps gets
the same check every time; a limit in seconds ends it as it ends the run.

What it cannot see: a mode that neither a random start nor a cooled one falls into. That takes chains that
cross between modes; where a run has such, they can take the place of :class:`DispersedStarts`, whose one method
:meth:`~DispersedStarts.examine` returns what they have found.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Positions, Words64
from gibbsite.errors import SamplingError, SupportError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.support.given import start_values
from gibbsite.graphs.support.possible import has_zeros
from gibbsite.graphs.support.start import find_start
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.protocols import Fallible, Stateful
from gibbsite.models import FactorGraph
from gibbsite.models.tempered import temper
from gibbsite.results.measure.agreement import compare_chains, compare_energies
from gibbsite.results.measure.moments import Directions
from gibbsite.results.verdict.convergence import StartCheck
from gibbsite.results.verdict.rows import Rows
from gibbsite.sampling.batched_layouts import PackedLayout, RenumberedLayout
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.layout import PlainLayout
from gibbsite.scans.systematic import Systematic

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording
    from gibbsite.sampling.setup import Setup

CHAINS = 64
SHARE = 0.1  # of the cost of a run, for this check
_FIRST = 8  # sweeps after which short chains are compared with the run for the first time
# Sweeps of small models that may be made even where they cost more than that share.
_ENOUGH, _SMALL = 128, 2e8  # updates of sites, all chains together
_BETAS = (0.1, 0.2, 0.35, 0.55, 0.75)  # inverse temperatures of the chains that are cooled down
_WITH_COOLING = 1.5  # what starting and cooling cost besides, about
_MOST_CELLS = 1 << 22  # means of short chains that are compared, chains times cells
_MOST_IN_ROWS = 1024  # sites of models whose short chains are moved by one call
_MOST_FACTS = 1 << 26  # sites times chains whose log-potentials are computed


class DispersedStarts:
    """Short chains beside a run; the same ones are continued when the run is looked at again later."""

    def __init__(self, setup: Setup, threads: int, asked: Positions | None = None) -> None:
        self.setup, self.threads, self.asked = setup, threads, asked
        self.kernel = setup.kernel if _moves_like_draws(setup.kernel) else Gibbs()
        self.sweeps = 0
        self.short: Setup  # of the short chains
        self.driver: Driver | None = None
        self.rows: Rows | None = None  # instead of a driver, where a model is small
        self.means: Floats
        self.pick: Positions

    def examine(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> StartCheck | str:
        """Compare short chains with a run, going on until they agree or have cost their share.

        Parameters
        ----------
        recording, result
            The run, and what is known of it.
        stop : function
            Returns whether there is no time left for something that takes a number of seconds.

        Returns
        -------
        StartCheck or str
            "no time" if there was none for any comparison, "impossible" if nothing can be compared: marginals
            were not recorded, no other starts were found, or steps from there went wrong.
        """
        graph = self.setup.graph
        if not graph.n_units:
            return StartCheck(0, 0)
        if not self.setup.record.n_cells:
            return "impossible"
        thin = self.setup.plan.thin
        draws = int(recording.tapes[0].counters[0])
        total = len(recording.tapes) * (draws * thin + recording.warmup)
        share = SHARE * total / CHAINS
        enough = _ENOUGH if graph.discrete else _FIRST  # functions of users may be slow
        most = max(share, min(enough, _SMALL / (CHAINS * graph.n_sites)))
        first = 1 << int(np.clip(np.log2(share), np.log2(_FIRST), np.log2(_ENOUGH)))
        pace = recording.seconds / max(total, 1)  # of a sweep of one chain
        if self.driver is None and self.rows is None:
            while first > _FIRST and stop(_WITH_COOLING * CHAINS * first * pace):
                first //= 2
            if stop(_WITH_COOLING * CHAINS * first * pace):
                return "no time"
            self._begin(max(1, first // 8), recording, stop)
            if self.driver is None and self.rows is None:
                return "impossible"
        start_check: StartCheck | None = None
        if self.sweeps:
            start_check = self._compare(result, len(recording.tapes) * draws * thin)
        while start_check is None or not start_check.findings.agree:
            goal = max(first, 2 * self.sweeps)
            if goal > most and self.sweeps:
                break
            if start_check is not None and stop(CHAINS * (goal - self.sweeps) * pace):
                return replace(start_check, complete=False)
            if not self.extend(goal, stop):
                self.driver, self.rows, self.sweeps = None, None, 0
                if start_check is not None:
                    return replace(start_check, complete=False)
                return "no time" if stop(0.0) else "impossible"
            start_check = self._compare(result, len(recording.tapes) * draws * thin)
        assert start_check is not None
        return start_check

    # ---- the chains

    def _begin(self, sweeps: int, recording: Recording, stop: Callable[[float], bool]) -> None:
        """Find starts, and cool half of them down by a number of sweeps at each temperature."""
        setup = self.setup
        graph = setup.graph
        self.lay_out(_choose_cells(setup, _MOST_CELLS // CHAINS, self.asked))
        starts = self._find_starts(stop)
        if graph.discrete and isinstance(setup.model, FactorGraph):
            half = len(starts) // 2
            starts[half:] = self._cool(starts[half:], half, sweeps) if starts else []
        if len(starts) > 1:
            self.start(starts, recording)

    def _find_starts(self, stop: Callable[[float], bool]) -> list[Array]:
        """Return random states of positive probability, of fewer chains where time or states run out."""
        setup, graph = self.setup, self.setup.graph
        if self._fits_rows() and not has_zeros(graph):
            rng = np.random.default_rng(np.random.SeedSequence(setup.plan.entropy, spawn_key=(0, 2)))
            cards = 2 if graph.binary else graph.cards
            return list(rng.integers(0, cards, (CHAINS, graph.n_sites), graph.state_dtype))
        starts: list[Array] = []
        for chain in range(CHAINS):
            if chain >= CHAINS // 4 and stop(0.0):
                break
            rng = np.random.default_rng(np.random.SeedSequence(setup.plan.entropy, spawn_key=(chain, 2)))
            try:
                starts.append(
                    find_start(setup.model, graph, rng)
                    if graph.discrete
                    else start_values(setup.model, graph, [rng])[0]
                )
            except SupportError:
                break
        return starts

    def lay_out(self, cells: Positions) -> None:
        """Decide how the short chains move, and which cells they record."""
        setup = self.setup
        self.pick = cells
        record = replace(setup.record, batches=False, pulse=False, energy=False, best=False)
        record = replace(record, draw_sites=record.draw_sites[:0], open=(), meetings=(), to=None)
        short = _short_setup(setup, self.kernel, record)
        assert short is not None
        self.short = short

    def start(self, starts: list[Array], recording: Recording, stage: int = 0) -> None:
        """Start a chain at each state; ``stage`` selects their random numbers."""
        if self._fits_rows():
            self.rows, self.sweeps = (Rows(self.setup.graph, np.stack(starts), self._words(len(starts), stage)), 0)
            return
        self.driver = driver = Driver(
            self.short.starting_at(starts), threads=self.threads, first=_first_stream(stage), share=self.threads
        )
        self.sweeps = 0
        if not self.setup.graph.discrete:
            # step sizes and the like were learnt in the warmup of the run
            for number, state in enumerate(driver.states):
                memory = copy.deepcopy(recording.memories[number % len(recording.memories)])
                if isinstance(self.kernel, Stateful):
                    self.kernel.forget(memory)
                driver.states[number] = state._replace(memory=memory)

    def _fits_rows(self) -> bool:
        """Tell whether all chains can be moved by one call: plain Gibbs sampling of a small model."""
        graph, layout, record = self.setup.graph, self.short.layout, self.short.record
        return (
            self.kernel == Gibbs()
            and graph.discrete
            and graph.units is None
            and graph.n_sites <= _MOST_IN_ROWS
            and isinstance(layout, PlainLayout)
            and type(layout.scan) is Systematic
            and record.conditional
            and record.n_cells == record.n_marginal
        )

    def _words(self, chains: int, stage: int) -> Words64:
        """Return generators for some chains (chains, 4)."""
        seed = np.random.SeedSequence(self.setup.plan.entropy, spawn_key=(stage, 4))
        return np.random.default_rng(seed).integers(0, 2**64 - 1, (chains, 4), np.uint64, endpoint=True)

    def _cool(self, starts: list[Array], first: int, sweeps: int) -> list[Array]:
        """Take states through rising inverse temperatures, some sweeps at each.

        Blocks are chosen for the model as it is: kernels that move blocks leave the cooling to single sites.
        """
        setup = self.setup
        kernel = self.kernel if setup.graph.units is None else Gibbs()
        if self._fits_rows():
            rows = Rows(setup.graph, np.stack(starts), self._words(len(starts), 1))
            for beta in _BETAS:
                rows.move(sweeps, beta=beta)
            return list(rows.x)
        for stage, beta in enumerate(_BETAS, 1):
            model = temper(setup.model, beta)
            graph = compile_graph(model, kind=setup.graph.kind)
            cooled = _short_setup(replace(setup, model=model), kernel, self.short.record, graph)
            if cooled is None:
                return starts
            driver = Driver(cooled.starting_at(starts), first=_first_stream(stage) + first, share=1)
            driver.advance(sweeps)
            starts = list(driver.states_by_chain())
        return starts

    def extend(self, goal: int, stop: Callable[[float], bool]) -> bool:
        """Move all chains on, and take the means of the second half; False if there was no time."""
        window = max(goal // 2, 1)
        if self.rows is not None:
            if stop(0.0):
                return False
            self.rows.move(goal - window - self.sweeps)
            self.means = self.rows.move(window)[:, self.pick]
            self.sweeps = goal
            return True
        driver, means = self.driver, []
        assert driver is not None
        bundles = range(len(driver.states))
        for a in range(0, len(bundles), self.threads):
            if stop(0.0):
                return False
            part = driver.part(bundles[a : a + self.threads])
            part.erase()
            if goal - window > self.sweeps:
                part.advance(goal - window - self.sweeps)
            part.freeze()  # what a warmup adapts must not depend on the states that are averaged
            part.advance(window, keep=True)
            for bundle in zip(part.states, part.tapes, part.sizes, strict=True):
                try:
                    if isinstance(self.kernel, Fallible):
                        self.kernel.inspect(self.setup.model, self.short.graph, bundle[0].memory)
                except SamplingError:  # a step went wrong: such a chain says nothing
                    continue
                for _, tape in driver.layout.release(*bundle):
                    means.append((tape.total + tape.open_batch)[self.pick] / window)
        self.sweeps = goal
        if len(means) < 2:
            return False
        self.means = np.stack(means)
        return True

    # ---- the comparison

    def _compare(self, result: Result, sweeps: float) -> StartCheck:
        pick, kernel, series = self.pick, self.kernel, result._pulse
        cells = result.measure(pick)
        number = np.isin(np.arange(pick.size), cells.numbers)
        findings = compare_chains(
            cells.mean,
            cells.error,
            np.where(number, np.square(cells.scale), cells.mean * (1.0 - cells.mean)),
            float(sweeps),
            self._unrolled(result),
            self.sweeps // 2,
            result._trace.shape[0] * result._trace.shape[1] if kernel is self.setup.kernel else 0,
            number,
        )
        energy = compare_energies(series, self._log_potentials()) if series.size else ""
        return StartCheck(
            len(self.means),
            self.sweeps,
            replace(findings, cells=tuple(int(pick[c]) for c in findings.cells), energy=energy),
        )

    def _unrolled(self, result: Result) -> Floats:
        """Return the means of the short chains, those of angles as the run has them: direction and length."""
        first, turns = _number_cells(self.setup)
        turns &= np.isin(first, self.pick)
        if not turns.any():
            return self.means
        domains = self.setup.model.domains
        rate, low = (part[domains.numbers][turns] for part in (domains.angular, domains.bounds[0]))
        pooled = result.totals.sum(axis=0)[self.pick] / max(result.chains * result.n_draws, 1)
        seen = Directions(pooled, np.searchsorted(self.pick, first[turns]), rate, low)
        return seen.unrolled(self.means.copy())

    def _log_potentials(self) -> Floats:
        """Return the log-potentials of the short chains now; of fewer chains where a model is very large."""
        if self.rows is not None:
            return self.rows.log_potentials()
        model = self.setup.model
        most = max(8, _MOST_FACTS // max(model.n_sites, 1))
        assert self.driver is not None
        states = self.driver.states_by_chain()
        return np.array([model.log_potential(x) for x in states[:most]])


def _choose_cells(setup: Setup, most: int, asked: Positions | None) -> Positions:
    """Return the cells that are compared: everything that was recorded but the squares of numbers.

    Of angles cosine and sine are taken, which together are a direction. Of a very large model, about ``most``
    evenly spread cells, and as many of those that were asked for.
    """
    if setup.graph.discrete and setup.record.n_cells <= most:
        return np.arange(setup.record.n_cells)
    first, turns = _number_cells(setup)
    cells = np.delete(np.arange(setup.record.n_cells), first[~turns] + 1)
    if cells.size > most:
        wanted = [cells] if asked is None else [cells, np.intersect1d(cells, asked)]
        cells = np.unique(np.concatenate([_spread_evenly(each, most) for each in wanted]))
    cosines = first[turns & (np.isin(first, cells) | np.isin(first + 1, cells))]
    return np.asarray(np.union1d(cells, np.concatenate([cosines, cosines + 1])), np.intp)


def _spread_evenly(cells: Positions, most: int) -> Positions:
    """Return evenly spread cells, at most ``most`` of them."""
    return cells if cells.size <= most else cells[np.linspace(0, cells.size - 1, most).astype(np.intp)]


def _number_cells(setup: Setup) -> tuple[Positions, Bools]:
    """Return the first of the two cells of each number, and which of them are angles."""
    domains = setup.model.domains
    if setup.graph.discrete:
        return np.zeros(0, np.intp), np.zeros(0, np.bool_)
    cards = np.asarray(setup.model.cards, np.intp)
    first = np.asarray(np.cumsum(cards) - cards, np.intp)
    return first[domains.numbers], domains.angular[domains.numbers] > 0.0


def _moves_like_draws(kernel: Kernel) -> bool:
    """Tell whether short chains of a kernel are independent and forget their starts as its runs do."""
    return kernel.error_source == "draws"


def _first_stream(stage: int) -> int:
    """Return the number of the first stream of the short chains of a stage; those of the run begin at zero."""
    return (1 << 40) + (stage << 20)


def _short_setup(setup: Setup, kernel: Kernel, record: Any, graph: Graph | None = None) -> Setup | None:
    """Return the set-up of short chains in the layout of the run, so that no other loop is compiled.

    ``graph`` is that of another model with the same structure; None if it does not fit the layout.
    """
    old: Any = setup.layout
    same, scan = kernel is setup.kernel, setup.scan
    if same and graph is None:
        return replace(setup, record=record, layout=replace(old, record=record))
    graph = replace(setup.graph, units=None) if graph is None else graph
    if same and isinstance(old, PackedLayout):
        packed = old.update.prepare(kernel, setup.model, graph)
        if packed is None:
            return None
        return replace(setup, record=record, layout=replace(old, graph=graph, record=record, packed=packed))
    if same and not isinstance(old, PlainLayout | RenumberedLayout):
        return None
    scan = setup.scan if same else Systematic()
    layout = PlainLayout(graph, kernel, scan, record, setup.model)
    return replace(setup, kernel=kernel, scan=scan, record=record, layout=layout)
