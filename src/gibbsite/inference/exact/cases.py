"""Many cases of evidence on one clique tree: the plan and the potentials are made once.

A case is a state for some sites. Before each pass the potentials are copied, and the entries that contradict the case
are set to zero, for each observed site in one table that has it. Nothing else is done again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._numba.jit import called, compiled_loop
from gibbsite.graphs.elimination.rings import LogSum, Max, Ring, Sum
from gibbsite.inference.exact.cost import Limits
from gibbsite.inference.exact.plan import EliminationPlan, make_plan, outline
from gibbsite.inference.exact.potentials import Operands
from gibbsite.inference.exact.propagate import pass_over
from gibbsite.inference.exact.states import Slate, choose_best, make_slate
from gibbsite.inference.exact.sweep import SweepWorkspace
from gibbsite.inference.exact.tree import CliqueTree
from gibbsite.models import FactorGraph
from gibbsite.models.networks.expansion import expand, tabulate

_NEGLIGIBLE = 1e-20  # relative error of plain arithmetic above which a case is solved in logarithms
_TOGETHER = 250  # cases of a thread between two looks at the others


class Place(NamedTuple):
    """The table in which each site is observed: its position in the pool, -1 if no table has the site.

    Entries with state s of site i are those at ``table[i] + (r * card + s) * inner[i] + k`` for r below ``outer[i]``
    and k below ``inner[i]``.
    """

    table: Ints
    outer: Ints
    inner: Ints


class ThreadMemory(NamedTuple):
    """What one thread needs: a workspace, its own tables, errors of messages, and space for states."""

    workspace: SweepWorkspace
    pool: Floats
    loss: Floats
    floor: Floats
    slate: Slate


class CaseTree:
    """A clique tree on which many cases of evidence are solved.

    Examples
    --------
    >>> chain = FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b"), [[3, 1], [1, 1]]), (("b", "c"), [[2, 1], [1, 1]])])
    >>> log_sums, cells = CaseTree(chain).solve(np.array([[-1, 1, -1], [-1, -1, -1]]))
    >>> np.exp(log_sums).round(9).tolist(), cells[0].tolist()
    ([4.0, 16.0], [0.5, 0.5, 0.0, 1.0, 0.5, 0.5])
    """

    def __init__(self, model: FactorGraph, limits: Limits | None = None, threads: int = 1) -> None:
        self._given, self.model, self.threads = model, expand(model), threads
        self._plan = make_plan(outline(self.model), Limits() if limits is None else limits)
        self._place = _find_places(self._plan)
        self._memories: dict[type, list[tuple[ThreadMemory, Floats, float, bool]]] = {}

    def solve(self, codes: Ints, marginals: bool = True) -> tuple[Floats, Floats]:
        """Return log-sums over all states of each case, and the marginals of all states of all sites, a row a case.

        Cases hold a code for every site of the model, -1 where nothing is observed. The log-sum of an impossible case
        is minus infinity, and its marginals are NaN. Without ``marginals`` these are an empty array.
        """
        reduction, problem = self._plan.reduction, self._plan.reduction.problem
        hidden = self.model.n_sites - codes.shape[1]
        free, possible = self._split(np.pad(codes, ((0, 0), (0, hidden)), constant_values=-1) if hidden else codes)
        found = np.zeros((len(codes), problem.code.size if marginals else 0))
        log_sums = np.full(len(codes), -np.inf)
        rows = np.flatnonzero(possible)
        rows = self._run(Sum(), rows, free, log_sums, found)
        self._run(LogSum(), rows, free, log_sums, found)
        # tables do not have sites that no factor prefers anything about: all their states weigh the same
        for i in np.flatnonzero(self._place.table < 0).tolist():
            seen = np.flatnonzero(free[:, i] >= 0)
            log_sums[seen] -= np.log(problem.cards[i])
            if marginals:
                first = problem.code_start[i]
                found[seen, first : first + problem.cards[i]] = 0.0
                found[seen, first + free[seen, i]] = 1.0
        if not marginals:
            return log_sums, found
        # states of determined sites are certain
        cells = np.repeat(reduction.alive.astype(np.float64)[None], len(codes), axis=0)
        open_site = np.zeros(self.model.n_sites, np.bool_)
        open_site[problem.origin] = True
        cells[:, np.repeat(open_site, self.model.cards) & reduction.alive] = found
        cells[np.isneginf(log_sums)] = np.nan
        return log_sums, cells[:, : int(self._given.cards.sum())]

    def maximise(self, codes: Ints) -> tuple[Ints, Floats]:
        """Return a most probable state of all sites for each case, as codes, and its log-potential.

        States of impossible cases are -1 throughout, with log-potential minus infinity.
        """
        if self._given is not self.model:  # the most probable state of hidden sites, too, would be another one
            return CaseTree(tabulate(self._given), threads=self.threads).maximise(codes)
        reduction, problem = self._plan.reduction, self._plan.reduction.problem
        free, possible = self._split(codes)
        best = np.zeros(free.shape, np.int64)
        tops = np.full(len(codes), -np.inf)
        ring = Max()

        def work(memory: ThreadMemory, fresh: Floats, rows: Ints) -> None:
            none = np.zeros(0), np.zeros(0, np.int64)
            plan = self._plan
            _maximise(ring, plan.tree, plan.operands, self._place, memory, fresh, free, rows, tops, best, *none)

        self._share(ring, np.flatnonzero(possible), work)
        for i in np.flatnonzero(self._place.table < 0).tolist():
            best[:, i] = np.maximum(free[:, i], 0)
        states = np.repeat(reduction.codes[None], len(codes), axis=0)
        states[:, problem.origin] = problem.code[problem.code_start[:-1] + best]
        states[np.isneginf(tops)] = -1
        return states, tops + self._constant(ring)

    def _run(self, ring: Ring, rows: Ints, free: Ints, log_sums: Floats, found: Floats) -> Ints:
        """Solve some cases; return those for which plain numbers were not exact enough."""
        if isinstance(ring, Sum) and rows.size and not self._memory(ring, 0)[3]:
            return rows
        problem = self._plan.reduction.problem
        lost = np.zeros(len(free))

        def work(memory: ThreadMemory, fresh: Floats, rows: Ints) -> None:
            _solve(
                ring,
                self._plan.tree,
                self._plan.operands,
                self._place,
                memory,
                fresh,
                free,
                rows,
                log_sums,
                lost,
                found.shape[1] > 0,
                found,
                problem.code_start,
            )

        self._share(ring, rows, work)
        if rows.size:
            log_sums[rows] += self._constant(ring)
        if isinstance(ring, LogSum):
            return rows[:0]
        return rows[~(lost[rows] < _NEGLIGIBLE) | np.isneginf(log_sums[rows])]

    def _share(self, ring: Ring, rows: Ints, work: Callable[[ThreadMemory, Floats, Ints], None]) -> None:
        """Divide cases among threads."""
        threads = max(1, min(self.threads, -(-rows.size // _TOGETHER)))
        if not rows.size:
            return
        parts = np.array_split(rows, threads)
        memories = [self._memory(ring, k) for k in range(threads)]
        if threads == 1:
            work(memories[0][0], memories[0][1], rows)
            return
        with ThreadPoolExecutor(threads) as pool:
            for done in [
                pool.submit(work, memory, fresh, part)
                for (memory, fresh, _, _), part in zip(memories, parts, strict=True)
            ]:
                done.result()

    def _memory(self, ring: Ring, number: int) -> tuple[ThreadMemory, Floats, float, bool]:
        """Return the memory of a thread, its potentials, the constant taken out of them, and whether they are plain."""
        memories = self._memories.setdefault(type(ring), [])
        while len(memories) <= number:
            loaded, tree = self._plan.load(ring), self._plan.tree
            fresh = loaded.pool[: self._plan.potentials.table[-1]].copy()
            cliques = tree.own.size
            memory = ThreadMemory(loaded.workspace, loaded.pool, np.zeros(cliques), np.ones(cliques), make_slate(tree))
            memories.append((memory, fresh, loaded.log_constant, loaded.plain))
        return memories[number]

    def _constant(self, ring: Ring) -> float:
        return self._memory(ring, 0)[2]

    def _split(self, codes: Ints) -> tuple[Ints, Bools]:
        """Return the observed states of the undetermined sites, numbered among those possible, and what is possible."""
        reduction, problem = self._plan.reduction, self._plan.reduction.problem
        codes = np.asarray(codes, np.int64).reshape(-1, self.model.n_sites)
        offset = np.concatenate([[0], np.cumsum(self.model.cards)])[:-1].astype(np.int64)
        seen = codes >= 0
        alive = reduction.alive[offset + np.maximum(codes, 0)] | ~seen
        # numbers of the possible states among those of the same site
        before: Ints = np.cumsum(reduction.alive) - reduction.alive
        rank: Ints = before - np.repeat(before[offset], self.model.cards)
        free = np.where(seen, rank[offset + np.maximum(codes, 0)], -1)[:, problem.origin]
        return np.ascontiguousarray(free), np.all(alive, axis=1)


def _find_places(plan: EliminationPlan) -> Place:
    """Choose for each site the smallest table that has it."""
    potentials, cards = plan.potentials, plan.tree.card
    place = Place(*(np.full(cards.size, value, np.int64) for value in (-1, 0, 0)))
    least = np.full(cards.size, np.iinfo(np.int64).max)
    for g in range(potentials.mask.size):
        sites = potentials.site[potentials.axis[g] : potentials.axis[g + 1]]
        size = int(potentials.table[g + 1] - potentials.table[g])
        inner = size
        for i in sites.tolist():
            outer = size // inner
            inner //= int(cards[i])
            if size < least[i]:
                least[i] = size
                place.table[i], place.outer[i], place.inner[i] = potentials.table[g], outer, inner
    return place


@called
def _observe(ring: Ring, tree: CliqueTree, place: Place, pool: Floats, fresh: Floats, states: Ints) -> None:
    """Write the potentials of a case."""
    for k in range(fresh.size):
        pool[k] = fresh[k]
    for i in range(states.size):
        state, card, inner = states[i], tree.card[i], place.inner[i]
        if state >= 0 and place.table[i] >= 0:
            for r in range(place.outer[i]):
                first = place.table[i] + r * card * inner
                for k in range(first, first + state * inner):
                    pool[k] = ring.zero
                for k in range(first + (state + 1) * inner, first + card * inner):
                    pool[k] = ring.zero


@compiled_loop
def _solve(
    ring: Ring,
    tree: CliqueTree,
    operands: Operands,
    place: Place,
    memory: ThreadMemory,
    fresh: Floats,
    states: Ints,
    rows: Ints,
    log_sums: Floats,
    lost: Floats,
    back: bool,
    cells: Floats,
    cell_start: Ints,
) -> None:
    """Solve the cases of some rows."""
    for row in rows:
        _observe(ring, tree, place, memory.pool, fresh, states[row])
        memory.loss[:] = 0.0
        log_sums[row], lost[row] = pass_over(
            ring, tree, operands, memory.workspace, memory.pool, memory.loss, memory.floor, back, cells[row], cell_start
        )


@compiled_loop
def _maximise(
    ring: Max,
    tree: CliqueTree,
    operands: Operands,
    place: Place,
    memory: ThreadMemory,
    fresh: Floats,
    states: Ints,
    rows: Ints,
    tops: Floats,
    best: Ints,
    cells: Floats,
    cell_start: Ints,
) -> None:
    """Find the best states of the cases of some rows."""
    for row in rows:
        _observe(ring, tree, place, memory.pool, fresh, states[row])
        tops[row], _ = pass_over(
            ring, tree, operands, memory.workspace, memory.pool, memory.loss, memory.floor, False, cells, cell_start
        )
        if tops[row] > -np.inf:
            for c in range(tree.own.size - 1, -1, -1):
                choose_best(ring, tree, operands, memory.pool, c, best[row], memory.slate)
