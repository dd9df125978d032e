"""What a run has recorded: the numbers of every cell, and the verdict on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints, Ints32, Positions
from gibbsite.errors import ArgumentError
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.measure.diagnostics import ess, rhat
from gibbsite.results.measure.measurement import CellNumbers, count_chances, count_states, measure_cells, without_floor
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.results.verdict.convergence import INDEPENDENT, MOST_JUDGED, Check, StartCheck, Unreached, judge

if TYPE_CHECKING:
    from gibbsite.models.domain import Domains
    from gibbsite.results.observables import Observables
    from gibbsite.results.tempering import Tempering
    from gibbsite.sampling.recorders.base import OpenRecorder

_DRAWN = "_by_draws"  # the numbers of all cells by the draws alone, kept beside those that are judged


@dataclass(frozen=True)
class JointSets:
    """Recorded sets of sites in compressed rows; see ``Result.joint``."""

    start: Ints
    member: Ints32
    cell: Ints
    n_joint: int


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Answer):
    """The records of a run, which its verdict is about; :class:`gibbsite.Result` explains the fields and adds views."""

    plan: Any
    domains: Domains
    evidence: dict[str, Any]
    evidence_labels: dict[str, tuple[Any, ...]]
    _binary: bool
    _n_marginal: int
    n_draws: int
    warmup: int
    totals: Floats
    _trace: Array  # means over batches of `_length` draws (chains, batches, cells)
    _length: int  # draws of a batch
    _sets: JointSets  # recorded sets of sites
    draw_sites: Ints32
    draws: Array
    energy: Floats
    _bests: Floats  # largest log-potential seen by each chain (chains,), if recorded
    _best_x: Array  # its state
    unreached: tuple[Unreached, ...] = ()
    visit_times: Floats = field(default_factory=lambda: np.zeros(0))
    errors: str = "draws"
    _period: int | None = None  # draws that averages are meant to be taken over; None: any number
    remarks: tuple[str, ...] = ()
    report: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Array] = field(default_factory=dict)
    _pulse: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _start_check: StartCheck | str = "not needed"  # what the dispersed-start check has found, or why there was none
    _doubts: tuple[str, ...] = ()
    _asked: Positions | None = None  # positions of the sites by which the run is judged; None: all
    _open: tuple[OpenRecorder, ...] = ()  # recorders with a block of their own
    _blocks: tuple[Floats, ...] = ()  # these blocks, each (chains, numbers)
    interrupted: bool = False
    _means: Floats | None = None  # of all cells, mapped from a file, if marginals were written to disk
    task: str = "MAR"
    accuracy: float | None = None
    check: Check | None = None
    seconds: float = field(default=float("nan"), compare=False)
    _model: Any = field(default=None, compare=False)  # if it has further groups for ArviZ; not saved

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.totals)

    @cached_property
    def numbers(self) -> CellNumbers:
        """Mean, standard error, effective size and R-hat of every cell."""
        known: CellNumbers | None = self.__dict__.get(_DRAWN)
        cells = self._number_cells
        if known is None:
            found = self.totals, self._trace, self.n_draws, self._length, self.errors, cells
            real = self.domains.numbers
            more = (self.domains.angular[real], self.domains.bounds[0][real]) if cells.size else ()
            known = self.__dict__[_DRAWN] = measure_cells(*found, *more)
        if not cells.size and (self._start_check == INDEPENDENT or self.visit_times.size):
            return self._corrected(known, self._trace, np.arange(known.mean.size))
        return known

    def measure(self, cells: Positions) -> CellNumbers:
        """Return the numbers of some cells; cheaper than all of :attr:`numbers` for a very large model."""
        if "numbers" in self.__dict__ or self.totals.shape[1] <= MOST_JUDGED or self._number_cells.size:
            return self.numbers.of(cells)
        # np.take is much faster here than an index
        some = np.take(self.totals, cells, axis=1), np.take(self._trace, cells, axis=2)
        known = measure_cells(*some, self.n_draws, self._length, self.errors)
        return self._corrected(known, some[1], cells)

    def _corrected(self, known: CellNumbers, trace: Array, cells: Positions) -> CellNumbers:
        """Return numbers of cells, corrected for independent draws or for the length of visits."""
        if self._start_check == INDEPENDENT:
            return without_floor(known, trace)
        if not self.visit_times.size:
            return known
        times = np.ones(cells.size)
        marginal = cells < self.visit_times.size
        times[marginal] = self.visit_times[cells[marginal]]
        return count_chances(known, times, float(self.chains * self.n_draws * self.plan.thin))

    def _judged(self, **found: Any) -> Self:
        """Return the result with other findings about it; numbers are not computed again."""
        other = replace(self, **found)
        same = np.array_equal(other.visit_times, self.visit_times)
        for name in (_DRAWN, "numbers", "_even_selection") if same else (_DRAWN,):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @cached_property
    def _even_selection(self) -> tuple[Positions, CellNumbers]:
        """Cells by which a very large model is judged, and their numbers."""
        pick = np.linspace(0, self.totals.shape[1] - 1, MOST_JUDGED).astype(np.intp)
        if self._asked is not None:
            pick = np.union1d(pick, self._asked_cells)
        return pick, self.measure(pick)

    @cached_property
    def _asked_cells(self) -> Positions:
        """Marginal cells of the sites that were asked for, in their order."""
        if self._asked is None or not self._n_marginal:
            return np.arange(self._n_marginal)
        return self._cells_of(np.unique(self._asked))

    def _cells_of(self, positions: Positions) -> Positions:
        """Return the marginal cells of some sites, one site after another."""
        if self._binary:
            return positions
        cards = np.asarray(self.domains.cards, np.intp)[positions]
        first = np.repeat(self.domains.offset[positions] - (np.cumsum(cards) - cards), cards)
        return np.asarray(first + np.arange(first.size), np.intp)

    def _is_asked(self, cells: Positions) -> Bools | None:
        """Tell which cells are judged as asked for: of certain sites, or recorded besides; None: all."""
        if self._asked is None or not self._n_marginal:
            return None
        return (cells >= self._n_marginal) | np.isin(cells, self._asked_cells)

    @cached_property
    def _number_cells(self) -> Positions:
        """Cells that are values of numbers, not probabilities."""
        numbers = self.domains.numbers
        if not self._n_marginal or not numbers.any():
            return np.zeros(0, np.intp)
        cards = np.asarray(self.domains.cards, np.intp)
        return (np.cumsum(cards) - cards)[numbers]

    @cached_property
    def _moment_cells(self) -> frozenset[int]:
        """Cells that are means or standard deviations of numbers."""
        return frozenset(self._number_cells.tolist()) | frozenset((self._number_cells + 1).tolist())

    def _table(self, cells: Floats, complement: bool, certain: float, other: float) -> SiteTable:
        observed = observed_cells(self.evidence, self.evidence_labels, certain, other)
        if not self._n_marginal and self.domains.n_sites:
            chosen = self._chosen_sites
            if not chosen.size:
                nothing = np.full(self.domains.n_sites if self._binary else int(self.domains.cards.sum()), np.nan)
                return SiteTable(self.domains, nothing, self._binary, complement, observed)
            domains = self.domains.among(self._sets.member[self._sets.start[chosen]])
            first = np.repeat(self._sets.cell[chosen] - domains.offset[:-1], domains.cards)
            return SiteTable(domains, cells[first + np.arange(first.size)], False, complement, observed)
        return SiteTable(self.domains, cells[: self._n_marginal], self._binary, complement, observed)

    @property
    def _chosen_sites(self) -> Positions:
        """Recorded sets of one site: where marginals are those of chosen sites, these."""
        return np.flatnonzero(np.diff(self._sets.start)[: self._sets.n_joint] == 1)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """The verdict: ``converged`` and the numbers behind it."""
        cells = self.totals.shape[1]
        name = self._cell_name
        if cells > MOST_JUDGED and not self._number_cells.size:
            pick, numbers = self._even_selection
            name = lambda cell: self._cell_name(int(pick[cell]))  # noqa: E731
        else:
            numbers, pick = self.numbers, np.arange(cells)
        asked = None if self._asked is None else self._is_asked(pick)
        others = None if asked is None else ~asked & ~np.isin(pick, self._number_cells + 1)
        if asked is not None and self._number_cells.size and self.draws.size:
            numbers = self._by_ranks(numbers)
        if not numbers.mean.size and self.draws.size:
            # No probabilities were recorded: the draws tell whether the chains agree.
            real = self.domains.numbers[self.draw_sites]
            cards = np.asarray(self.domains.cards)[self.draw_sites]
            angular, low = (part[self.draw_sites] for part in (self.domains.angular, self.domains.bounds[0]))
            found, values = count_states(self.draws, cards, angular)
            numbers = measure_cells(*found, self.errors, values, angular[real], low[real])
            name = self._draw_name
        blind = not numbers.mean.size and self.domains.n_sites > 0
        return judge(
            numbers,
            len(self.totals),
            self.n_draws,
            self.unreached,
            name,
            blind,
            self.errors,
            self._period,
            self._bests,
            self._pulse,
            self._start_check,
            cells,
            self._observed_numbers() if self._open else (),
            self._doubts,
            asked,
            others,
            task=self.task,
            accuracy=self.accuracy,
            log_z_error=self.log_z_error if self.task == "PR" else None,
            check=self.check,
        )

    def _by_ranks(self, numbers: CellNumbers) -> CellNumbers:
        """Judge the width of a number by the ranks of its draws, which heavy tails do not make unstable.

        In place of the standard deviation, R-hat is that of ranks and of folded ranks, and the effective size that of
        the tails, of numbers with recorded draws.
        """
        sites = self.draw_sites[self.domains.numbers[self.draw_sites] & (self.domains.angular[self.draw_sites] == 0.0)]
        draws = self.draws[:, :, np.isin(self.draw_sites, sites)]
        cells = self._cells_of(sites.astype(np.intp))[1::2]
        apart, worth = numbers.rhat.copy(), numbers.ess.copy()
        apart[cells], worth[cells] = rhat(draws), ess(draws, "tail")
        return replace(numbers, rhat=apart, ess=worth)

    def _observed_numbers(self) -> list[tuple[str, float, float]]:
        """Return name, R-hat and effective size of every value that was observed and is no constant."""
        found = []
        for estimate in (self.observables[r.key] for r in self._open if r.key in self.observables):
            numbers = (np.atleast_1d(part) for part in (estimate.sd, estimate.rhat, estimate.ess))
            for value, sd, apart, worth in zip(estimate.names, *numbers, strict=True):
                if sd > 0 and np.isfinite(worth):
                    found.append((f"{estimate.name} {value}".rstrip(), float(apart), float(worth)))
        return found

    def _cell_name(self, cell: int) -> str:
        if cell >= self._n_marginal:
            set_of = int(np.searchsorted(self._sets.cell, cell, side="right")) - 1
            first, last = self._sets.start[set_of : set_of + 2]
            names = ", ".join(self.domains.names[int(i)] for i in self._sets.member[first:last])
            return f"({names}) configuration {cell - int(self._sets.cell[set_of])}"
        if self._binary:
            return f"{self.domains.names[cell]} = {self.domains.labels(cell)[1]}"
        return self._state_name(cell, np.arange(self.domains.n_sites))

    def _draw_name(self, cell: int) -> str:
        return self._state_name(cell, self.draw_sites)

    def _state_name(self, cell: int, sites: Ints | Ints32) -> str:
        """Return the name of a cell, counted over the states of some sites."""
        offset = np.concatenate([[0], np.cumsum(np.asarray(self.domains.cards)[sites], dtype=np.int64)])
        number = int(np.searchsorted(offset, cell, side="right")) - 1
        site, code = int(sites[number]), cell - int(offset[number])
        name, label = self.domains.names[site], self.domains.labels(site)[code]
        return f"{label} of {name}" if self.domains.numbers[site] else f"{name} = {label}"

    @cached_property
    def observables(self) -> Observables:
        """Quantities that were observed, by name: mean, mcse, ess, tau, ...; see :class:`gs.Observable`.

        Recorded energies are among them.
        """
        from gibbsite.results.observables import make_observables

        return make_observables(self)

    @cached_property
    def tempering(self) -> Tempering:
        """What a tempered run tells about its rungs: round trips, rates of swaps, the barrier, log Z."""
        from gibbsite.results.tempering import Tempering

        if "betas" not in self.kept:
            raise ArgumentError("The run was not tempered; sample with gs.Tempered().")
        return Tempering(self.kept)

    @property
    def log_z(self) -> float | None:
        """Natural logarithm of the partition function, by a tempered run; None otherwise."""
        return self.tempering.log_z if "betas" in self.kept else None

    @property
    def log_z_error(self) -> float | None:
        """Standard error of :attr:`log_z`."""
        return self.tempering.log_z_error if "betas" in self.kept else None

    @property
    def log_potential(self) -> float | None:
        """Largest log-potential seen, if the best state was recorded."""
        return float(self._bests.max()) if self._bests.size else None

    @property
    def assignment_codes(self) -> Array | None:
        """The same state as codes, or numbers, of the free sites."""
        return self._best_x if self._bests.size else None

    @cached_property
    def assignment(self) -> dict[str, Any] | None:
        """The state of largest log-potential seen, by name and label, observed sites included.

        None if it was not recorded; add ``gs.recorders.BestState()`` to ``record``.
        """
        if not self._bests.size:
            return None
        codes, real = self._best_x.tolist(), self.domains.numbers
        named = {
            name: codes[i] if real[i] else self.domains.labels(i)[int(codes[i])]
            for i, name in enumerate(self.domains.names.all())
        }
        return {**named, **self.evidence}
