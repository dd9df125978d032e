"""Turn what a run has recorded into its result and its verdict: cheap checks first, chains from other starts last.

The modules of expensive checks are loaded when a run needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gibbsite._common.arrays import Floats, Positions
from gibbsite._numba.jit import clock
from gibbsite.errors import SupportError
from gibbsite.graphs.support.possible import alive_states, has_zeros
from gibbsite.graphs.support.start import find_start, find_state_with
from gibbsite.kernels.base import Kernel, connects, sites_of
from gibbsite.kernels.protocols import Finite, Independent, Replicated
from gibbsite.models.base import Model
from gibbsite.results.measure.agreement import count_round_trips
from gibbsite.results.measure.measurement import measure_cells
from gibbsite.results.measured import JointSets
from gibbsite.results.result import Result
from gibbsite.results.verdict.convergence import COUNTED, CROSSED, EXACT, INDEPENDENT, MOST_JUDGED, UNCHECKED, Unreached
from gibbsite.results.verdict.criteria import STANDARD_ERRORS, Criteria
from gibbsite.sampling.driver import Recording
from gibbsite.sampling.progress import catch_interrupt
from gibbsite.sampling.setup import Setup
from gibbsite.sampling.tape import BATCHES, DRAWS, LENGTH, PULSE

if TYPE_CHECKING:
    from gibbsite.results.verdict.dispersed_starts import DispersedStarts
    from gibbsite.results.verdict.known_marginals import KnownMarginals
    from gibbsite.results.verdict.known_mean import KnownMean
    from gibbsite.results.verdict.modes import ModeSearch
    from gibbsite.results.verdict.settling import Settling
    from gibbsite.results.verdict.visits import Visits

    Examiner: TypeAlias = DispersedStarts | ModeSearch | Settling | KnownMean

_RESERVE = 0.2  # of a time limit, for diagnostics and the dispersed-start check
_SMALL_RESERVE = 0.05  # of a time limit, for diagnostics alone
_PATIENCE = 1.1  # of a time limit: how long a run may take in all, so that the dispersed-start check is not left out
_TELLING_CELLS = 1 << 14  # cells on which the time for judging all cells is estimated
_ROUND_TRIPS = 10  # between high and low energy, of all chains, before a run may end early
# Before a discrete run may end early, a state whose probability is the accuracy, and whose visits last twenty
# sweeps, is entered nine times on average; large models may end after this number of updates of single sites.
_VISIT, _ENTRIES, _MOST_UPDATES = 20, 9, 4e7
_CERTAIN = 10  # unreached states after which no further suspects are examined
_SUSPECTS = 200  # states a run never reached that are examined; further ones stay in doubt
_ELSEWHERE = 24  # states found at random that must be connected with the chains
_LARGE = 2000  # sites above which fewer of them are looked for


def _on_disk(folder: Path, sums: list[Floats], draws: int) -> tuple[Floats, Floats]:
    """Write the sums of all chains, and the means of all cells, as they are computed in memory."""
    from gibbsite.sampling.disk import write_pieces

    cells = sums[0].size
    totals = write_pieces(folder / "sums.npy", (len(sums), cells), lambda part: np.stack([each[part] for each in sums]))
    means = write_pieces(
        folder / "marginals.npy", (cells,), lambda part: (totals[:, part] / max(draws, 1)).mean(axis=0)
    )
    return totals, means


def make_result(recording: Recording) -> Result:
    """Turn what a run has recorded into a result, which is not judged yet."""
    setup, tapes = recording.setup, recording.tapes
    model, record = setup.model, setup.record
    counters = tapes[0].counters
    draws = int(counters[DRAWS])
    span = setup.kernel.natural_sweeps(model.n_sites) if isinstance(setup.kernel, Finite) else None
    if record.to is None:
        totals, means = np.stack([tape.total + tape.open_batch for tape in tapes]), None
    else:
        totals, means = _on_disk(record.to, [tape.open_batch for tape in tapes], draws)
    errors = setup.kernel.error_source
    if errors == "draws" and not record.batches:
        errors = "sums"  # means of batches, which show how draws depend on each other, were not kept
    blocks = zip(*map(record.blocks, tapes), strict=True) if record.open else ()
    bests = np.array([tape.best[0] for tape in tapes if record.best]) + setup.layout.log_offset
    return Result(
        plan=replace(setup.plan, warmup=recording.warmup),
        domains=model.domains,
        evidence=model.evidence,
        evidence_labels=model.evidence_labels,
        _binary=setup.graph.binary,
        _n_marginal=record.n_marginal,
        n_draws=draws,
        warmup=recording.warmup,
        totals=totals,
        _means=means,
        _trace=np.stack([tape.trace[: counters[BATCHES]] for tape in tapes]),
        _length=int(counters[LENGTH]),
        _sets=JointSets(record.set_start, record.set_member, record.set_cell, record.n_joint),
        draw_sites=record.draw_sites,
        draws=np.stack([tape.values[:draws] for tape in tapes]),
        energy=np.stack([tape.energy[:draws] - setup.layout.log_offset for tape in tapes]),
        _bests=bests,
        _best_x=tapes[int(np.argmax(bests))].best_x if record.best else np.zeros(0, setup.graph.state_dtype),
        errors=errors,
        remarks=tuple(map(attrgetter("text"), setup.remarks)),
        _period=None if span is None else span // setup.plan.thin,
        report=recording.report,
        kept=recording.kept,
        visit_times=np.zeros(0),
        _pulse=np.stack([tape.pulse[: -(-int(counters[BATCHES]) // PULSE)] for tape in tapes])
        + setup.layout.log_offset,
        _open=(*map(itemgetter(0), record.open), *record.meetings),
        _blocks=(*map(np.stack, blocks), *recording.meetings),
        interrupted=recording.interrupted,
        seconds=recording.seconds,
        _model=None if type(model).arviz_groups is Model.arviz_groups else model,
    )


class Judge:
    """A judge of a run, which can be asked repeatedly; all checks use the same short chains from other starts.

    Parameters
    ----------
    criteria : Criteria
        The accuracy at which a run may end early, and whether it is compared with chains from other starts.
    threads : int
        Threads for those chains.
    seconds : float or None
        Time limit of the run, the dispersed-start check included.
    query : sequence of int or None
        Positions of the sites that were asked for; None: all.
    """

    def __init__(
        self, criteria: Criteria, threads: int, seconds: float | None, query: Sequence[int] | None = None
    ) -> None:
        self.query = None if query is None else np.array(query, np.intp)
        accuracy = criteria.accuracy
        self.error = None if accuracy is None else accuracy / STANDARD_ERRORS
        self.wanted, self.threads = criteria.dispersed_starts, threads
        self.seconds = math.inf if seconds is None else float(seconds)
        self.examiner: Examiner | None = None
        self.visits: Visits
        self.known: KnownMarginals | None = None

    def reserve(self, kernel: Kernel | None) -> float:
        """Return the share of a time limit that is kept for the verdict."""
        if not self.wanted or (kernel is not None and not kernel.estimates):
            return 0.0
        return _SMALL_RESERVE if kernel is not None and isinstance(kernel, Replicated) else _RESERVE

    def is_enough(self, recording: Recording) -> bool:
        """Whether a run may end: its errors are small, and no check speaks against it; cheap checks come first."""
        assert self.error is not None
        first = self.first(recording)
        verdict = first.diagnostics
        if not verdict.converged or verdict.mcse_max is None or verdict.mcse_max > self.error:
            return False
        if first._start_check in UNCHECKED:
            return True
        trips = count_round_trips(first._pulse)
        if first._start_check != CROSSED and trips is not None and trips < _ROUND_TRIPS:
            return False
        if self._too_short(recording, first):
            return False
        found = self._scrutinise(recording, first, lambda: False).diagnostics
        return bool(found.converged) and found.mcse_max is not None and found.mcse_max <= self.error

    def _too_short(self, recording: Recording, first: Result) -> bool:
        """Whether the run is so short that it may have missed a rare state whose visits are long."""
        assert self.error is not None
        graph = recording.setup.graph
        if not graph.discrete:
            return False
        sweeps = first.chains * first.n_draws * recording.setup.plan.thin
        wanted = _ENTRIES * _VISIT / (STANDARD_ERRORS * self.error)
        return sweeps < min(wanted, _MOST_UPDATES / max(graph.n_sites, 1))

    def conclude(self, recording: Recording) -> Result:
        """Return the result of a run that has ended, with the verdict of all checks."""
        arrived = clock()
        first = self.first(recording)
        with catch_interrupt(lambda message: None) as flag:
            result = self._scrutinise(recording, first, lambda: flag.up)
        return result._judged(interrupted=result.interrupted or flag.up, seconds=recording.seconds + clock() - arrived)

    def first(self, recording: Recording) -> Result:
        """Return the result of a run before any check that takes time."""
        setup = recording.setup
        found = make_result(recording)
        if self.query is not None:
            found = found._judged(_asked=self.query)
        if isinstance(setup.kernel, Independent) and setup.kernel.independent(setup.graph):
            return found._judged(_start_check=INDEPENDENT if setup.record.conditional else COUNTED)
        doubts = setup.kernel.crossing_warnings(recording.memories) if isinstance(setup.kernel, Replicated) else None
        if doubts is not None:
            return found._judged(_start_check=CROSSED, _doubts=doubts)
        if setup.kernel.exact:
            return found
        from gibbsite.results.verdict.biased import find_bias

        against, remark = find_bias(recording, found)
        if against:
            return found._judged(_doubts=(against,))
        return found._judged(remarks=(*found.remarks, remark)) if remark else found

    def _scrutinise(self, recording: Recording, first: Result, stop: Callable[[], bool]) -> Result:
        """Check a run: for states out of reach, against chains from other starts, against exact marginals.

        Each check is made only if no earlier one speaks against the run, and none if the draws are independent.
        """
        if first._start_check in UNCHECKED:
            return first
        deadline = clock() + _PATIENCE * self.seconds - recording.seconds
        unreached = find_unreached(recording, first.totals, lambda: clock() >= deadline)
        result = first._judged(unreached=unreached)
        verdict = result.diagnostics
        if not verdict.converged or verdict.figures["found"] is not None:  # found: judged by the best state
            return result
        if verdict.figures["judged"] and result._start_check != CROSSED:  # nothing is judged if there are no free sites
            if not self.wanted:
                return result._judged(_start_check="off")
            if self._settled(recording, result):
                return result._judged(_start_check=EXACT)
            result = self._compare_with_other_starts(
                recording, result, lambda needs: stop() or clock() + needs >= deadline
            )
        if not self.wanted or not result.diagnostics.converged:
            return result
        return self._compare_exactly(recording, result)

    def _compare_with_other_starts(self, recording: Recording, result: Result, late: Callable[[float], bool]) -> Result:
        """Compare a run with chains from other starts, and measure how long visits of its rare states last."""
        if self.examiner is None or self.examiner.setup is not recording.setup:
            from gibbsite.results.verdict.visits import Visits

            asked = None if self.query is None else result._asked_cells
            self.examiner = choose_examiner(recording, self.threads, asked)
            self.visits = Visits(recording.setup, self.threads, asked)
        result = result._judged(_start_check=self.examiner.examine(recording, result, late))
        if not result.diagnostics.converged:
            return result
        times = self.visits.measure(recording, result, late)
        return result._judged(_start_check="no time") if times is None else result._judged(visit_times=times)

    def _compare_exactly(self, recording: Recording, result: Result) -> Result:
        """Compare a run with marginals that are known exactly, of parts of the model or given states of some sites."""
        known = self._known(recording)
        start_check = known.compare(result, self._accuracy(result))
        if start_check is not None:
            return result._judged(_start_check=start_check)
        from gibbsite.results.verdict.conditional_marginals import compare_given

        found = compare_given(recording, result, known.parts, self._accuracy(result))
        if found is None:
            return result
        if found.start_check is not None:
            return result._judged(_start_check=found.start_check)
        return result._judged(visit_times=found.times)

    def _known(self, recording: Recording) -> KnownMarginals:
        """Return the exact marginals of the model, as far as they are cheap."""
        if self.known is None or self.known.setup is not recording.setup:
            from gibbsite.results.verdict.known_marginals import KnownMarginals

            self.known = KnownMarginals(recording.setup)
        return self.known

    def _settled(self, recording: Recording, result: Result) -> bool:
        """Tell whether exact marginals of a tiny model show that a run is right."""
        from gibbsite.results.verdict.known_marginals import is_tiny

        if not is_tiny(recording.setup) or not recording.setup.record.only_marginals:
            return False
        return self._known(recording).settles(result, self._accuracy(result))

    def _accuracy(self, result: Result) -> float | None:
        """Return the accuracy that was asked for, if the standard errors of the run are small enough for it."""
        largest = result.diagnostics.mcse_max
        if self.error is None or largest is None or largest > self.error:
            return None
        return STANDARD_ERRORS * self.error


def choose_examiner(recording: Recording, threads: int, asked: Positions | None = None) -> Examiner:
    """Return the search for modes that the run has not seen; which one depends on the model.

    Of a very large model only some cells are examined, those of ``asked`` among them.
    """
    graph = recording.setup.graph
    if graph.kind == "gaussian":
        from gibbsite.results.verdict.known_mean import KnownMean

        return KnownMean(recording.setup)
    if not graph.discrete:
        from gibbsite.results.verdict import modes, settling
        from gibbsite.results.verdict.landscape import can_be_walked_in
        from gibbsite.results.verdict.walkers import can_walk

        walks = can_walk(recording) and recording.setup.kernel.error_source == "draws"
        if walks and can_be_walked_in(graph) and graph.n_sites <= modes.MOST_SITES:
            return modes.ModeSearch(recording, threads)
        if walks and graph.n_sites <= settling.MOST_SITES:
            return settling.Settling(recording, threads)
    from gibbsite.results.verdict.dispersed_starts import DispersedStarts

    return DispersedStarts(recording.setup, threads, asked)


def foresee(part: Recording) -> float:
    """Predict the seconds that judging a recording takes, by measuring a part of its cells."""
    began = clock()
    first = make_result(part)
    took, cells = clock() - began, first.totals.shape[1]
    measured = 0.0
    for some in (1, _TELLING_CELLS):  # the first time, compiled functions are loaded
        began = clock()
        measure_cells(first.totals[:, :some], first._trace[:, :, :some], first.n_draws, first._length)
        measured = clock() - began
    share = max(min(cells, _TELLING_CELLS), 1) / max(min(cells, MOST_JUDGED), 1)
    return float(took + measured / share)


# ---- states and regions that the chains could not enter


def find_unreached(
    recording: Recording, totals: Floats, late: Callable[[], bool] = lambda: False
) -> tuple[Unreached, ...]:
    """Return every reason to doubt that a run has seen all of the support.

    Zeros can cut the support of a model into regions that single-site moves do not connect. All chains may then stay in
    one region and agree with each other. Every run on a model with zeros is therefore asked three questions, and each
    is answered by a proof or left as a doubt:

    * is a state that no chain could ever enter really impossible?
    * do single-site moves connect the chains with each other?
    * do they connect them with states of positive probability found elsewhere, at random?

    ``totals`` are the sums of the recorded probabilities, ``late`` tells whether the time is over; states that have not
    been examined by then stay in doubt.
    """
    setup = recording.setup
    model, graph = setup.model, setup.graph
    unreached = [] if setup.scan.once and graph.units is None else _left_out(recording)
    if not graph.discrete or graph.binary or not has_zeros(graph):
        return tuple(unreached)
    rng = np.random.default_rng(setup.plan.entropy)
    if setup.record.n_marginal:
        unreached += _unreached(recording, totals, rng, late)
    if unreached:
        return tuple(unreached)
    here, others = recording.states[0], recording.states[1:]
    elsewhere = _ELSEWHERE if graph.n_sites <= _LARGE else _ELSEWHERE // 6
    for number in range(len(others) + elsewhere):
        try:
            there = others[number] if number < len(others) else find_start(model, graph, rng)
        except SupportError:
            break
        if not connects(setup.kernel, graph, here, there, rng):
            site = int(np.flatnonzero(here != there)[0])
            label = model.labels(site)[int(there[site])]
            return (Unreached(model.domains.names[site], label, False, "region"),)
    return ()


def _left_out(recording: Recording) -> list[Unreached]:
    """Name the sites the scan never visits: they kept their start, whatever the factors say of it."""
    setup = recording.setup
    model, start = setup.model, recording.states[0]
    unreached = []
    left_out = setup.scan.left_out(setup.graph, model)
    if setup.graph.discrete and setup.graph.units is not None:  # sites that are in no block that is visited
        moved = np.zeros(setup.graph.n_sites, bool)
        for unit in np.setdiff1d(np.arange(setup.graph.n_units), left_out).tolist():
            moved[sites_of(setup.kernel, setup.graph, unit)] = True
        left_out = np.flatnonzero(~moved)
    for site in left_out.tolist():
        if not setup.graph.discrete:
            unreached.append(Unreached(_unit_name(setup, site), "", False, "scan"))
            continue
        others = [label for code, label in enumerate(model.labels(site)) if code != start[site]]
        if others:
            unreached.append(Unreached(model.domains.names[site], others[0], False, "scan"))
    return unreached


def _unit_name(setup: Setup, unit: int) -> str:
    """Return the name of what a scan leaves out: a site, unless blocks of them are visited."""
    return setup.model.domains.names[unit] if setup.graph.units is None else f"block {unit}"


def _unreached(
    recording: Recording, totals: Floats, rng: np.random.Generator, late: Callable[[], bool]
) -> list[Unreached]:
    """Name the states that were never possible, but are not proved impossible nor seen to be in reach."""
    graph, model = recording.setup.graph, recording.setup.model
    never = totals[:, : graph.n_cells].max(axis=0) <= 0.0
    suspects = np.flatnonzero(never & alive_states(graph, model))
    sites = np.searchsorted(graph.offset, suspects, side="right") - 1
    kernel, here = recording.setup.kernel, recording.states[0]
    unreached: list[Unreached] = []
    for number, (site, cell) in enumerate(zip(sites.tolist(), suspects.tolist(), strict=True)):
        code = cell - int(graph.offset[site])
        found: Any = None
        impossible = False
        if number < _SUSPECTS and len(unreached) < _CERTAIN and not late():
            found, impossible = find_state_with(model, graph, site, code, rng)
        if impossible or (found is not None and connects(kernel, graph, here, found, rng)):
            continue
        label = model.labels(site)[code]
        unreached.append(Unreached(model.domains.names[site], label, found is not None, "state"))
    return unreached
