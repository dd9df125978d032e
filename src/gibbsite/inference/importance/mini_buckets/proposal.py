"""``MiniBucket``, which draws from weighted mini-buckets whose tables grow within limits of time and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Floats, Words32
from gibbsite._common.wording import argument
from gibbsite._numba.jit import clock
from gibbsite._numba.random.generators import chain_key, stream
from gibbsite.errors import SupportError, TooLargeError
from gibbsite.inference.exact.memory import usable_memory
from gibbsite.inference.exact.plan import Outline, outline
from gibbsite.inference.importance.base import ImportanceProposal, SourceSettings, WeightedSource, register
from gibbsite.inference.importance.mini_buckets.buckets import BucketPlan, largest_table, plan_buckets
from gibbsite.inference.importance.mini_buckets.descent import Answers, DrawTables, draw_blocks, make_lanes
from gibbsite.inference.importance.mini_buckets.weighted_sum import eliminate_buckets, fill_pool, make_workspace
from gibbsite.inference.importance.tally import Tally

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


_FIRST, _FACTOR = 1 << 12, 4  # first number of entries of a table, and the factor by which it grows
_USUAL, _MOST = 1 << 20, 1 << 27  # the most entries if only a number of draws is given, and in any case
# Shares of the time by which the last pass ends, of the budget for draws from each source but the last, and of memory.
_PASS_SHARE, _PILOT_SHARE, _MEMORY_SHARE = 0.35, 0.03, 0.5
_FIRST_SHARE = 0.01  # share of the time for the first pass, if its tables may be chosen
_PER_SECOND, _TIMED = 1e8, 1e7  # entries of a product per second, before a pass of _TIMED entries has been timed
_ENTRIES_PER_LOOK = 3e7  # entries between two checks of the clock and of Ctrl-C
# The bound of log Z has stopped improving when it falls by less than this, several times in a row: larger tables are
# divided differently, and sometimes worse.
_LEAST_GAIN, _MOST_IN_VAIN = 0.01, 2


@register(method="mini-bucket", tasks=("MAR", "PR"))
@dataclass(frozen=True)
class MiniBucket(ImportanceProposal):
    """Draw from weighted mini-buckets, and bound the log-partition function.

    Sites are eliminated in the order of the exact solver. Where a table would be too large, its factors are divided
    among mini-buckets, which bounds the sum by Hoelder's inequality. Draws follow the messages back, and no weight
    exceeds the bound. Where nothing has to be divided, draws are from the model itself, and the bound is the
    log-partition function.

    Parameters
    ----------
    entries : int, optional
        Most entries of a table. Tables begin with 4,096 entries and grow by a factor of four while that improves the
        bound and time and memory allow it. By default there is no limit, or 2**20 in a run that is limited by a number
        of draws alone.

    References
    ----------
    .. [1] Dechter, R. and Rish, I. (2003). Mini-buckets: a general scheme for bounded inference. JACM 50(2).
    .. [2] Liu, Q. and Ihler, A. (2011). Bounding the partition function using Hoelder's inequality. ICML.
    .. [3] Liu, Q., Fisher, J. and Ihler, A. (2015). Probabilistic variational bounds for graphical models. NIPS.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((5, 5), coupling=0.4, field=0.1)
    >>> found = gs.sample_weighted(model, gs.importance.MiniBucket(entries=8), draws=50_000, rng=1, progress=False)
    >>> abs(found.log_z - gs.solve_exact(model).log_z) < 4 * found.log_z_error
    True
    """

    entries: int | None = None

    def __post_init__(self) -> None:
        if self.entries is not None:
            check_integer("entries", self.entries, 2)

    def sources(self, model: FactorGraph, setting: SourceSettings) -> Iterator[tuple[float, WeightedSource]]:
        """Yield mini-buckets with larger and larger tables, then the best of them."""
        found = outline(model)
        growth = Growth(found, self.entries, setting.seconds, setting.elapsed)
        best: BucketSource | None = None
        for number, plan in enumerate(growth):
            made = weigh_buckets(model, found, plan, setting, number, must=best is None)
            if made is None:  # Ctrl-C, and an earlier source can answer
                return
            gain = math.inf if best is None else best.log_bound - made.log_bound
            best = made if best is None or gain > 0.0 else best
            growth.note(gain)
            if growth.ended and best is made:
                break
            yield setting.elapsed() / setting.seconds + _PILOT_SHARE, made
            if growth.ended:
                best = best.again(setting.entropy, number + 1)
        assert best is not None
        yield 1.0, best


class Growth:
    """The plans of a run, with tables that grow while the bound falls and time and memory allow it.

    The first plan has the largest tables that can be computed in a small share of the time.
    """

    def __init__(self, found: Outline, entries: int | None, seconds: float, elapsed: Callable[[], float]) -> None:
        self.found, self.seconds, self.elapsed = found, seconds, elapsed
        self.memory = _MEMORY_SHARE * usable_memory()
        self.rate, self.work, self.begun, self.in_vain = _PER_SECOND, 0.0, 0.0, 0
        least = largest_table(found)
        usual = _USUAL if math.isinf(seconds) else _MOST
        self.most = max(usual, least) if entries is None else entries
        self.planning = 0.0
        self.plan: BucketPlan | None = self._plan(min(max(least, _FIRST), self.most))
        while self.plan.bytes > self.memory and self.plan.entries > least:
            self.plan = self._plan(max(self.plan.entries // _FACTOR, least))
        if self.plan.bytes > self.memory:
            raise TooLargeError(
                f"Mini-buckets of {self.plan.entries:,} entries need {self.plan.bytes / 1e6:,.0f} MB of "
                f"memory, more than the {self.memory / 1e6:,.0f} MB that may be used; give fewer "
                f"{argument('entries')}."
            )
        while (larger := self._larger(_FIRST_SHARE * seconds)) is not None:
            self.plan = larger

    def __iter__(self) -> Iterator[BucketPlan]:
        while self.plan is not None:
            self.begun, self.work = clock(), self.plan.work
            yield self.plan

    @property
    def ended(self) -> bool:
        """Whether there is no further plan."""
        return self.plan is None

    def note(self, gain: float) -> None:
        """Record the gain of a plan and the time that it took; decide on the next."""
        taken = max(clock() - self.begun, 1e-6)
        if self.work > _TIMED:
            self.rate = self.work / taken
        self.in_vain = 0 if gain > _LEAST_GAIN else self.in_vain + 1
        left = _PASS_SHARE * self.seconds - self.elapsed()
        self.plan = self._larger(left) if self.in_vain < _MOST_IN_VAIN else None

    def _plan(self, entries: int) -> BucketPlan:
        """Return a plan, and record the time that it took."""
        before = clock()
        plan = plan_buckets(self.found, entries)
        self.planning = clock() - before
        return plan

    def _larger(self, seconds: float) -> BucketPlan | None:
        """Return the next plan, if it differs and there is memory and time for it."""
        plan = self.plan
        assert plan is not None
        entries = plan.entries
        while plan.splits and entries < self.most and self.planning <= seconds:
            entries = min(_FACTOR * entries, self.most)
            larger = self._plan(entries)
            if larger.bytes > self.memory or larger.work / self.rate > seconds:
                return None
            if larger.work != plan.work or larger.splits != plan.splits:
                return larger
        return None


class BucketSource(WeightedSource):
    """Messages of mini-buckets to draw from.

    ``log_constant`` is the constant taken out of the model; ``log_bound`` bounds the log-partition function and every
    log-weight. The source is ``exact`` if nothing was split.
    """

    name = "mini-buckets"

    def __init__(
        self, plan: BucketPlan, tables: DrawTables, log_constant: float, log_bound: float, key: Words32
    ) -> None:
        self.plan, self.tables, self.exact = plan, tables, plan.splits == 0
        self.log_constant, self.log_bound, self.key = log_constant, log_bound, key

    def again(self, entropy: int, number: int) -> BucketSource:
        """Return the same source with other random numbers."""
        key = chain_key(stream(entropy, number))
        return BucketSource(self.plan, self.tables, self.log_constant, self.log_bound, key)

    def draw(self, tally: Tally, group: int, first: int, blocks: int, step: int) -> None:
        """Draw blocks and add them to a group."""
        lanes = make_lanes(self.plan.buckets, self.tables.answers.place.size)
        constant = self.log_bound if self.exact else self.log_constant
        draw_blocks(self.tables, lanes, self.key, constant, self.exact, tally, group, first, blocks, step)

    def describe(self) -> dict[str, Any]:
        """Return a description as plain data."""
        return {"name": self.name, "entries": self.plan.entries, "splits": self.plan.splits}


def weigh_buckets(
    model: FactorGraph, found: Outline, plan: BucketPlan, setting: SourceSettings, number: int, *, must: bool = True
) -> BucketSource | None:
    """Compute the messages of a plan and return their source, or None if Ctrl-C was pressed and ``must`` is false.

    ``number`` is the number of the source within the run.
    """
    pool = fill_pool(plan, found.reduction.problem)
    log_bound = pass_upwards(plan, pool, 0.0, (lambda: False) if must else setting.stopped)
    if log_bound is None:
        return None
    if log_bound == -math.inf:
        raise SupportError("No state has positive probability; check the zeros and the evidence.")
    reduction = found.reduction
    problem = reduction.problem
    place, first = np.full(model.n_sites, -1, np.int64), reduction.codes.copy()
    where = np.empty(plan.order.size, np.int64)
    where[plan.order] = np.arange(plan.order.size)
    place[problem.origin], first[problem.origin] = where, problem.code_start[:-1]
    answers = Answers(place[setting.query], first[setting.query], problem.code)
    key = chain_key(stream(setting.entropy, number))
    tables = DrawTables(plan.tables, plan.buckets, pool, answers)
    return BucketSource(plan, tables, reduction.log_constant, log_bound + reduction.log_constant, key)


def pass_upwards(
    plan: BucketPlan, pool: Floats, negative: float = 0.0, stopped: Callable[[], bool] = lambda: False
) -> float | None:
    """Eliminate all buckets; return the bound without constants, or None if stopped."""
    workspace = make_workspace(plan)
    buckets = plan.buckets
    work = np.cumsum(np.add.reduceat(buckets.size, buckets.mini[:-1]).astype(np.float64))
    total, begin = 0.0, 0
    while begin < work.size:
        before = work[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(work, before + _ENTRIES_PER_LOOK)))
        total += eliminate_buckets(plan, workspace, pool, begin, end, negative)
        if stopped():
            return None
        begin = end
    return total
