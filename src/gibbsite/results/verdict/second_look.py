"""A second look at a run that seems to have converged: many short chains from dispersed starts.

Four chains that fall into the same mode agree with each other. So before a run is called converged, 64 more
chains are started elsewhere, half of them at random states of positive probability and half of them cooled
down from such states, and must come to agree with the run (:mod:`gibbsite.results.measure.agreement`). They
move as the run moves, for 8 to 128 sweeps depending on the length of the run; if they do not agree then,
they go on until they do, or have cost 10 % of the run. Means are taken over the second half of
their sweeps. Other modes that they find are named, and the run is then not converged.

The chains have keyed random numbers of their own, so that a run with a given seed and number of sweeps gets
the same second look every time; a limit in seconds ends it as it ends the run.

What it cannot see: a mode that neither a random start nor a cooled one falls into. That takes chains that
cross between modes; where a run has such, they can take the place of :class:`SecondLook`, whose one method
:meth:`~SecondLook.examine` returns what they have found.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Positions, Words64
from gibbsite._numba.random.generators import stream
from gibbsite.errors import SamplingError, SupportError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.support.possible import has_zeros
from gibbsite.graphs.support.start import find_start
from gibbsite.graphs.support.start_values import start_values
from gibbsite.kernels.base import Kernel, alone
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.protocols import Adaptive, Fallible, Stateful
from gibbsite.models import FactorGraph
from gibbsite.models.tempered import temper
from gibbsite.results.measure.agreement import compare_chains, compare_energies
from gibbsite.results.measure.directions import Directions
from gibbsite.results.verdict.convergence import Look
from gibbsite.results.verdict.rows import Rows
from gibbsite.sampling.chain import advance
from gibbsite.sampling.chain_layout import ChainLayout, PackedLayout, PlainLayout, RenumberedLayout
from gibbsite.sampling.executor import Executor
from gibbsite.scans.systematic import Systematic

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.engine import Recording, Setup

CHAINS = 64
SHARE = 0.1  # of the cost of a run, for the second look at it
_FIRST = 8  # sweeps after which short chains are compared with the run for the first time
# Sweeps that are made, if need be, even where they cost more than that share: so many, of small models.
_ENOUGH, _SMALL = 128, 2e8  # updates of sites, all chains together
_BETAS = (0.1, 0.2, 0.35, 0.55, 0.75)  # inverse temperatures of the chains that are cooled down
_WITH_COOLING = 1.5  # what starting and cooling cost besides, about
_MOST_CELLS = 1 << 22  # means of short chains that are compared, chains times cells
_MOST_IN_ROWS = 1024  # sites of models whose short chains are moved by one call
_MOST_FACTS = 1 << 26  # sites times chains whose log-potentials are computed


class SecondLook:
    """Short chains beside a run; the same ones are continued when the run is looked at again later."""

    def __init__(self, setup: Setup, threads: int, asked: Positions | None = None) -> None:
        self.setup, self.threads, self.asked = setup, threads, asked
        self.kernel = setup.kernel if _moves_like_draws(setup.kernel) else Gibbs()
        self.sweeps = 0
        self.states: list[Any] = []
        self.rows: Rows | None = None  # in place of states, where a model is small
        self.form: ChainLayout
        self.means: Floats
        self.pick: Positions

    def examine(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> Look | str:
        """Compare short chains with a run, going on until they agree or have cost their share.

        Parameters
        ----------
        recording, result
            The run, and what is known of it.
        stop : function
            Tells whether there is no time for something that takes so many seconds.

        Returns
        -------
        Look or str
            "no time" if there was none for any comparison, "impossible" if nothing can be compared: marginals
            were not recorded, no other starts were found, or steps from there went wrong.
        """
        graph = self.setup.graph
        if not graph.n_units:
            return Look(0, 0)
        if not self.setup.layout.n_cells:
            return "impossible"
        thin = self.setup.plan.thin
        draws = int(recording.tapes[0].counters[0])
        total = len(recording.tapes) * (draws * thin + recording.warmup)
        share = SHARE * total / CHAINS
        enough = _ENOUGH if graph.discrete else _FIRST  # functions of users may be slow
        most = max(share, min(enough, _SMALL / (CHAINS * graph.n_sites)))
        first = 1 << int(np.clip(np.log2(share), np.log2(_FIRST), np.log2(_ENOUGH)))
        pace = recording.seconds / max(total, 1)  # of a sweep of one chain
        if not self.states and self.rows is None:
            while first > _FIRST and stop(_WITH_COOLING * CHAINS * first * pace):
                first //= 2
            if stop(_WITH_COOLING * CHAINS * first * pace):
                return "no time"
            self._begin(max(1, first // 8), recording, stop)
            if not self.states and self.rows is None:
                return "impossible"
        look: Look | None = None
        if self.sweeps:
            look = self._compare(result, len(recording.tapes) * draws * thin)
        while look is None or not look.findings.agree:
            goal = max(first, 2 * self.sweeps)
            if goal > most and self.sweeps:
                break
            if look is not None and stop(CHAINS * (goal - self.sweeps) * pace):
                return replace(look, complete=False)
            if not self.extend(goal, stop):
                self.states, self.rows, self.sweeps = [], None, 0
                if look is not None:
                    return replace(look, complete=False)
                return "no time" if stop(0.0) else "impossible"
            look = self._compare(result, len(recording.tapes) * draws * thin)
        assert look is not None
        return look

    # ---- the chains

    def _begin(self, sweeps: int, recording: Recording, stop: Callable[[float], bool]) -> None:
        """Find starts, and cool half of them down by so many sweeps at each temperature."""
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
        layout = replace(setup.layout, batches=False, pulse=False, energy=False, best=False)
        layout = replace(layout, draw_sites=layout.draw_sites[:0], open=(), to=None)
        self.form = _form_of(setup, self.kernel, layout)

    def start(self, starts: list[Array], recording: Recording, stage: int = 0) -> None:
        """Start a chain at each state; ``stage`` selects their random numbers."""
        if self._fits_rows():
            self.rows, self.sweeps = (Rows(self.setup.graph, np.stack(starts), self._words(len(starts), stage)), 0)
            return
        width = self.form.width
        streams = [self.stream(chain, stage) for chain in range(len(starts))]
        firsts = range(0, len(starts), width)
        self.states = []
        for a in firsts:
            state = self.form.start(starts[a : a + width], streams[a : a + width])
            if getattr(state.memory, "rebuildable", False) and len(self.states) >= self.threads:
                # scratch space, which may be large: chains that are moved one after another share it
                state = state._replace(memory=self.states[len(self.states) % self.threads].memory)
            self.states.append(state)
        self.sizes = [min(width, len(starts) - a) for a in firsts]
        self.sweeps = 0
        if not self.setup.graph.discrete:
            # step sizes and the like were learnt in the warmup of the run
            for number, state in enumerate(self.states):
                memory = copy.deepcopy(recording.memories[number % len(recording.memories)])
                if isinstance(self.kernel, Stateful):
                    self.kernel.forget(memory)
                self.states[number] = state._replace(memory=memory)

    def _fits_rows(self) -> bool:
        """Tell whether all chains can be moved by one call: plain Gibbs sampling of a small model."""
        graph, form = self.setup.graph, self.form
        return (
            self.kernel == Gibbs()
            and graph.discrete
            and graph.units is None
            and graph.n_sites <= _MOST_IN_ROWS
            and isinstance(form, PlainLayout)
            and type(form.scan) is Systematic
            and form.layout.conditional
            and form.layout.n_cells == form.layout.n_marginal
        )

    def _words(self, chains: int, stage: int) -> Words64:
        """Return generators for some chains (chains, 4)."""
        seed = np.random.SeedSequence(self.setup.plan.entropy, spawn_key=(stage, 4))
        return np.random.default_rng(seed).integers(0, 2**64 - 1, (chains, 4), np.uint64, endpoint=True)

    def stream(self, chain: int, stage: int) -> Words64:
        """Return a generator of its own for a chain: the run's have numbers from zero up."""
        return stream(self.setup.plan.entropy, (1 << 40) + (stage << 20) + chain)

    def _cool(self, starts: list[Array], first: int, sweeps: int) -> list[Array]:
        """Take states through rising inverse temperatures, some sweeps at each.

        Blocks are chosen for the model as it is: kernels that move blocks leave the cooling to single sites.
        """
        setup = self.setup
        if self._fits_rows():
            rows = Rows(setup.graph, np.stack(starts), self._words(len(starts), 1))
            for beta in _BETAS:
                rows.move(sweeps, beta=beta)
            return list(rows.x)
        kernel = self.kernel if setup.graph.units is None else Gibbs()
        for stage, beta in enumerate(_BETAS, 1):
            model = temper(setup.model, beta)
            graph = compile_graph(model, kind=setup.graph.kind)
            cooled = replace(setup, model=model)
            form = _form_of(cooled, kernel, self.form.layout, graph)  # type: ignore[attr-defined]
            if form is None:
                return starts
            width = form.width
            after: list[Array] = []
            for a in range(0, len(starts), width):
                part = starts[a : a + width]
                streams = [self.stream(first + a + k, stage) for k in range(len(part))]
                state, tape = form.start(part, streams), form.tape(len(part))
                advance(
                    kernel.parameters(graph),
                    form.arrays(len(part)),
                    form.schedule(),
                    state,
                    tape,
                    sweeps,
                    graph.n_units,
                    False,
                    alone(),
                )
                after += [x for x, _ in form.release(state, tape, len(part))]
            starts = after
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
        graph = self.form.graph
        parameters, schedule = self.kernel.parameters(self.form.moving), self.form.schedule()

        def move(bundle: int) -> list[Floats] | None:
            if stop(0.0):
                return None
            state, size = self.states[bundle], self.sizes[bundle]
            tape = self.form.tape(size)
            arrays = self.form.arrays(size)
            for rounds, keep in ((goal - window - self.sweeps, False), (window, True)):
                if keep and isinstance(self.kernel, Adaptive):  # adaptation must not depend on states that are averaged
                    self.kernel.freeze(state.memory)
                if rounds > 0:
                    advance(parameters, arrays, schedule, state, tape, rounds, graph.n_units, keep, alone())
            try:
                if isinstance(self.kernel, Fallible):
                    self.kernel.inspect(self.setup.model, graph, state.memory)
            except SamplingError:  # a step went wrong: such a chain says nothing
                return []
            return [
                (tape.total + tape.open_batch)[self.pick] / window for _, tape in self.form.release(state, tape, size)
            ]

        def move_some(member: int) -> list[list[Floats] | None]:
            return [move(bundle) for bundle in range(member, len(self.states), self.threads)]

        with Executor(self.threads) as executor:
            parts = executor.map(move_some, range(self.threads))
        found = [parts[k % self.threads][k // self.threads] for k in range(len(self.states))]
        means = [mean for bundle in found if bundle is not None for mean in bundle]
        self.sweeps = goal
        if any(bundle is None for bundle in found) or len(means) < 2:
            return False
        self.means = np.stack(means)
        return True

    # ---- the comparison

    def _compare(self, result: Result, sweeps: float) -> Look:
        pick, kernel, series = self.pick, self.kernel, result.pulse
        cells = result.measure(pick)
        number = np.isin(np.arange(pick.size), cells.numbers)
        findings = compare_chains(
            cells.mean,
            cells.error,
            np.where(number, np.square(cells.scale), cells.mean * (1.0 - cells.mean)),
            float(sweeps),
            self._unrolled(result),
            self.sweeps // 2,
            result.trace.shape[0] * result.trace.shape[1] if kernel is self.setup.kernel else 0,
            number,
        )
        energy = compare_energies(series, self._log_potentials()) if series.size else ""
        return Look(
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
        pooled = result.totals.sum(axis=0)[self.pick] / max(result.chains * result.draws, 1)
        seen = Directions(pooled, np.searchsorted(self.pick, first[turns]), rate, low)
        return seen.unrolled(self.means.copy())

    def _log_potentials(self) -> Floats:
        """Return the log-potentials of the short chains now; of fewer chains where a model is very large."""
        if self.rows is not None:
            return self.rows.log_potentials()
        model = self.setup.model
        most = max(8, _MOST_FACTS // max(model.n_sites, 1))
        states = [
            x
            for state, size in zip(self.states, self.sizes, strict=True)
            for x, _ in self.form.release(state, self.form.tape(size), size)
        ]
        return np.array([model.log_potential(x) for x in states[:most]])


def _choose_cells(setup: Setup, most: int, asked: Positions | None) -> Positions:
    """Return the cells that are compared: everything that was recorded but the squares of numbers.

    Of angles cosine and sine are taken, which together are a direction. Of a very large model, about ``most``
    evenly spread cells, and as many of those that were asked for.
    """
    if setup.graph.discrete and setup.layout.n_cells <= most:
        return np.arange(setup.layout.n_cells)
    first, turns = _number_cells(setup)
    cells = np.setdiff1d(np.arange(setup.layout.n_cells), first[~turns] + 1)
    if cells.size > most:
        wanted = [cells] if asked is None else [cells, np.intersect1d(cells, asked)]
        cells = np.unique(np.concatenate([_spread_evenly(each, most) for each in wanted]))
    cosines = first[turns & (np.isin(first, cells) | np.isin(first + 1, cells))]
    return np.asarray(np.union1d(cells, np.concatenate([cosines, cosines + 1])), np.intp)


def _spread_evenly(cells: Positions, most: int) -> Positions:
    """Return at most so many cells, evenly spread."""
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


def _form_of(setup: Setup, kernel: Kernel, layout: Any, graph: Any = None) -> Any:
    """Return the form of the run for short chains, so that no other loop is compiled."""
    form = setup.form
    if kernel is setup.kernel and graph is None:
        return replace(form, layout=layout)  # type: ignore[type-var]
    graph = replace(setup.graph, units=None) if graph is None else graph
    if kernel is setup.kernel and isinstance(form, PackedLayout):
        packed = form.way.prepare(kernel, setup.model, graph)
        return None if packed is None else replace(form, graph=graph, layout=layout, packed=packed)
    if isinstance(form, PlainLayout | RenumberedLayout) or kernel is not setup.kernel:
        scan = setup.scan if kernel is setup.kernel else Systematic()
        return PlainLayout(graph, kernel, scan, layout, setup.model)
    return None
