"""Compare a run with exact marginals where these cost next to nothing.

A run can miss a region of states that is seldom entered and lasts long. So can chains from other starts, and chains
that are held in rare states, because the states of every single site may be common in the region. The marginals of a
connected component do not depend on the other components, so every component that is small is solved exactly.

A tiny model is solved before chains are started elsewhere. If its marginals agree with those of a run, these chains
have nothing to add. Tiny models that differ in their weights alone are solved together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Positions
from gibbsite.graphs.elimination.given import LOWEST_LOG, Neighbourhoods, Plan, plan_elimination, solve_given
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.models import FactorGraph
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.verdict.convergence import StartCheck
from gibbsite.results.wording import tell_apart

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.setup import Setup

MOST_SITES = 1024  # of a component that is solved: elimination takes about 30 microseconds for each
MOST_ENTRIES = 2.0**20  # of all its tables, which take about 0.03 seconds
MOST_SOLVED = 4096  # sites of all components that are solved
_READ = 1 << 20  # sites and table entries of models whose components are looked for
_ALL_READ = 8192  # sites of models all of whose components are looked at; of others the small ones alone
TINY = 32  # sites of a model that is solved before chains are started elsewhere
_TOGETHER = 1 << 22  # table entries of models that are solved together
_SIGMAS, _SMALL = 6.0, 1e-3  # standard errors, and differences, that are let pass
# With more standard errors and a larger difference than these, a run is wrong, whatever the number of its sites.
_WRONG_SIGMAS, _WRONG = 4.0, 0.01


class Parts(NamedTuple):
    """The components of a model: exact marginals (cells) of those that are small, and the sites of the others."""

    hoods: Neighbourhoods
    cells: Floats
    known: Bools
    large: list[list[int]]


def solve_parts(setup: Setup) -> Parts | None:
    """Solve the small components of a discrete model; None if it cannot be read, or is very large."""
    graph, model = setup.graph, setup.model
    if not graph.discrete or graph.on_disk or graph.kind == "causes" or not isinstance(model, FactorGraph):
        return None
    if setup.record.n_marginal != graph.n_cells or not 0 < graph.n_sites <= _READ:
        return None
    arrays = compile_graph(model, "table").arrays
    logs = np.concatenate([arrays.log_value, arrays.log_unary])
    if logs.size > _READ or bool(((logs < LOWEST_LOG) & (logs > -np.inf)).any()):
        return None
    looked_at: Sequence[int] = range(graph.n_sites)
    if graph.n_sites > _ALL_READ:
        looked_at = _in_small_components(arrays)
        if not looked_at:
            return None
        arrays = _factors_of(arrays, looked_at)
    hoods = Neighbourhoods(arrays)
    cells, known = np.zeros(graph.n_cells), np.zeros(graph.n_cells, np.bool_)
    large: list[list[int]] = []
    solved, any_state = 0, np.zeros((1, graph.n_sites), np.int64)
    for sites in hoods.components(looked_at):
        plan = plan_elimination(hoods, sites, MOST_ENTRIES) if len(sites) <= MOST_SITES else None
        complete = plan is not None and len(plan.cliques) == len(sites) and plan.entries <= MOST_ENTRIES
        found = None
        if plan is not None and complete and solved + len(sites) <= MOST_SOLVED:
            found = solve_given(hoods, plan, any_state)
        if found is None:
            large.append(sites)
            continue
        solved += len(sites)
        for site, probabilities in found.items():
            where, values = cells_of(setup, site, probabilities)
            cells[where], known[where] = values[0], True
    return Parts(hoods, cells, known, large if graph.n_sites <= _ALL_READ else [])


def _in_small_components(arrays: TableGraph) -> list[int]:
    """Return the sites of small components of a large model, as many as may be solved, in the order of sites."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, member = arrays.card.size, arrays.member
    start = arrays.member_start.astype(np.int64)
    width = start[1:] - start[:-1]
    first = np.repeat(member[arrays.member_start[:-1]], width)
    links = coo_array((np.ones(member.size, np.int8), (first, member)), shape=(n, n))
    labels = connected_components(links, directed=False)[1]
    small = np.flatnonzero((np.bincount(labels) <= MOST_SITES)[labels])
    return np.flatnonzero(np.isin(labels, np.unique(labels[small[:MOST_SOLVED]]))).tolist()


def _factors_of(arrays: TableGraph, sites: Sequence[int]) -> TableGraph:
    """Return a model with the factors of some sites alone; these are complete components."""
    wanted = np.zeros(arrays.card.size, np.bool_)
    wanted[list(sites)] = True
    start = arrays.member_start.astype(np.int64)
    width = start[1:] - start[:-1]
    kept = wanted[arrays.member[arrays.member_start[:-1]]]
    rows = np.repeat(kept, width)
    starts = np.concatenate([[0], np.cumsum(width[kept])])
    return arrays._replace(
        member_start=starts, member=arrays.member[rows], stride=arrays.stride[rows], table=arrays.table[kept]
    )


def cells_of(setup: Setup, site: int, probabilities: Floats) -> tuple[slice, Floats]:
    """Return the cells of a site, and which of its probabilities (states, codes) belong there."""
    if setup.graph.binary:
        return slice(site, site + 1), probabilities[:, 1:]
    first = int(setup.graph.offset[site])
    return slice(first, first + probabilities.shape[1]), probabilities


def solve_together(setups: Sequence[Setup]) -> list[KnownMarginals | None]:
    """Solve tiny models that differ in their weights alone; None for models that have to be solved one by one."""
    found: list[KnownMarginals | None] = [None] * len(setups)
    alike: dict[int, list[int]] = defaultdict(list)
    for k, setup in enumerate(setups):
        if is_tiny(setup) and setup.record.n_marginal == setup.graph.n_cells:
            alike[id(setup.model.shared)].append(k)
    for members in alike.values():
        arrays = compile_graph(setups[members[0]].model, "table").arrays
        hoods = Neighbourhoods(arrays)
        plan = plan_elimination(hoods, range(len(arrays.card)), MOST_ENTRIES)
        if len(plan.cliques) < len(arrays.card) or plan.entries > MOST_ENTRIES:
            continue
        step = max(1, int(_TOGETHER / max(plan.entries, 1.0)))
        for first in range(0, len(members) if len(members) > 1 else 0, step):
            some = members[first : first + step]
            for k, parts in zip(some, _solve_alike([setups[k] for k in some], hoods, plan), strict=True):
                found[k] = KnownMarginals(setups[k], parts)
    return found


def _solve_alike(setups: Sequence[Setup], hoods: Neighbourhoods, plan: Plan) -> list[Parts | None]:
    """Solve models that differ in their weights alone."""
    graph = setups[0].graph
    each = Neighbourhoods.together(hoods.arrays, [setup.model for setup in setups])
    found = None if each is None else solve_given(each, plan, np.zeros((1, graph.n_sites), np.int64))
    if found is None:
        return [solve_parts(setup) for setup in setups]
    cells, known = np.zeros((len(setups), graph.n_cells)), np.ones(graph.n_cells, np.bool_)
    for site, probabilities in found.items():
        where, values = cells_of(setups[0], site, probabilities)
        cells[:, where] = values
    return [Parts(hoods, row, known, []) for row in cells]


def is_tiny(setup: Setup) -> bool:
    """Tell whether a model is solved before chains are started elsewhere."""
    return (
        setup.graph.discrete
        and setup.graph.kind != "causes"
        and isinstance(setup.model, FactorGraph)
        and 0 < setup.graph.n_sites <= min(TINY, MOST_SITES)
    )


class KnownMarginals:
    """Compares a run with exact marginals, which are computed once."""

    def __init__(self, setup: Setup, parts: Parts | None = None) -> None:
        self.setup = setup
        self.parts = solve_parts(setup) if parts is None else parts

    def settles(self, result: Result, accuracy: float | None) -> bool:
        """Tell whether nothing but marginals was recorded, and all are known and within four standard errors."""
        if self.parts is None or not self.setup.record.only_marginals or not is_tiny(self.setup):
            return False
        pick = result._asked_cells
        if not pick.size or not self.parts.known[pick].all():
            return False
        numbers = result.measure(pick)
        gap = np.abs(numbers.mean - self.parts.cells[pick])
        slack = _WRONG_SIGMAS * numbers.error
        return bool((gap <= (slack if accuracy is None else np.minimum(slack, accuracy))).all())

    def compare(self, result: Result, accuracy: float | None) -> StartCheck | None:
        """Return where a run is wrong; None if it is right, or if the exact marginals are not known.

        Parameters
        ----------
        result : Result
            The run, and what is known of it.
        accuracy : float or None
            By how much marginals may be off; None: by some of their standard errors.
        """
        if self.parts is None:
            return None
        pick = result._asked_cells[self.parts.known[result._asked_cells]]
        if not pick.size:
            return None
        numbers, exact = result.measure(pick), self.parts.cells[pick]
        gap = np.abs(numbers.mean - exact)
        few, most = np.maximum(_SIGMAS * numbers.error, _SMALL), np.maximum(_WRONG_SIGMAS * numbers.error, _WRONG)
        slack = np.minimum(few, most) if accuracy is None else np.full(gap.size, accuracy)
        worst = int(np.argmax(gap - slack))
        if not gap[worst] > slack[worst]:
            return None
        here, there = tell_apart(float(numbers.mean[worst]), float(exact[worst]))
        said = (
            f"the probability of {name_cell(self.setup, pick, worst)} is {here} in the run, but {there} by exact "
            "inference: the run has missed states that are seldom entered and last long; run longer, or take "
            "the exact answer (gs.solve_exact)."
        )
        return StartCheck(0, 0, Findings(said=said))


def name_cell(setup: Setup, pick: Positions, k: int) -> str:
    """Name a site and its state by the cell that they have."""
    graph, model, cell = setup.graph, setup.model, int(pick[k])
    site = cell if graph.binary else int(np.searchsorted(graph.offset, cell, side="right") - 1)
    code = 1 if graph.binary else cell - int(graph.offset[site])
    return f"{model.domains.names[site]} = {model.labels(site)[code]}"
