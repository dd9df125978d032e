"""Compare a run with exact marginals given the states of some of its sites, where a model is too large to be solved.

The average of exact conditional probabilities over states of the other sites is the marginal, P(x_A) = E[P(x_A | x_B)].
So the chains of a run go on for a while, some sites of each state are kept, and all other sites are solved exactly
given these. A run that has missed a region of states, whose sites are common one by one, disagrees with this average.
There are two ways to choose the sites that are kept, with as little in common as possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Bools, Floats
from gibbsite.graphs.elimination.given import Plan, plan_elimination, solve_given
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.verdict.convergence import Look
from gibbsite.results.verdict.known_marginals import Parts, cells_of, name_cell
from gibbsite.results.verdict.rows import Rows
from gibbsite.results.wording import tell_apart

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording

MOST_SITES = 4096  # of all components that are compared
_TABLE = 2.0**6  # entries of a table, unless a factor has more
_MOST_ENTRIES = 5e6  # of all tables and states, which take about 0.2 seconds
_BATCHES, _FEWEST, _MOST = 32, 64, 512  # of states: batches for standard errors, and numbers of states
_SHARE = 0.05  # of the sweeps of a run, for the states
_LONGEST = 64  # sweeps between two states
_SIGMAS, _SMALL = 6.0, 0.005  # standard errors, and differences, that are let pass


def compare_given(recording: Recording, result: Result, parts: Parts | None, accuracy: float | None) -> Look | None:
    """Return where a run disagrees with exact conditional marginals; None if it agrees or nothing can be compared."""
    graph = recording.setup.graph
    if parts is None or not parts.large or sum(map(len, parts.large)) > MOST_SITES:
        return None
    sites = [site for part in parts.large for site in part]
    first = plan_elimination(parts.hoods, sites, _TABLE)
    spared = np.ones(graph.n_sites, np.bool_)
    spared[[clique[0] for clique in first.cliques]] = False
    plans = [first, plan_elimination(parts.hoods, sites, _TABLE, spared)]
    many = int(_MOST_ENTRIES / max(sum(plan.entries for plan in plans), 1.0)) // _BATCHES * _BATCHES
    if many < _FEWEST:
        return None
    states = _draw_states(recording, result, min(many, _MOST))
    asked = np.zeros(graph.n_cells, np.bool_)
    asked[result.asked_cells] = True
    for plan in plans:
        look = _compare(recording, result, parts, plan, states, asked, accuracy)
        if look is not None:
            return look
    return None


def _draw_states(recording: Recording, result: Result, many: int) -> np.ndarray:
    """Return states of chains that go on where the run ended; those of a batch follow one another in one chain."""
    setup, ends = recording.setup, recording.states
    chains = min(1 << int(np.log2(len(ends))), _BATCHES)
    seed = np.random.SeedSequence(setup.plan.entropy, spawn_key=(0, 5))
    words = np.random.default_rng(seed).integers(0, 2**64 - 1, (chains, 4), np.uint64, endpoint=True)
    rows = Rows(setup.graph, np.stack(ends[:chains]), words)
    thin = int(np.clip(_SHARE * len(ends) * result.draws * setup.plan.thin / many, 1, _LONGEST))
    found = []
    for _ in range(many // chains):
        rows.move(thin)
        found.append(rows.x.copy())
    return np.stack(found, axis=1).reshape(many, -1)


def _compare(
    recording: Recording,
    result: Result,
    parts: Parts,
    plan: Plan,
    states: np.ndarray,
    asked: Bools,
    accuracy: float | None,
) -> Look | None:
    """Compare the average of exact conditional marginals over states with the marginals of a run."""
    setup = recording.setup
    found = solve_given(parts.hoods, plan, states)
    if found is None:
        return None
    mean, error = np.zeros(setup.graph.n_cells), np.full(setup.graph.n_cells, np.inf)
    for site, probabilities in found.items():
        where, values = cells_of(setup, site, probabilities)
        values = np.broadcast_to(values, (len(states), values.shape[1]))
        batches: Floats = values.reshape(_BATCHES, -1, values.shape[1]).mean(axis=1)
        mean[where] = batches.mean(axis=0)
        error[where] = batches.std(axis=0, ddof=1) / np.sqrt(_BATCHES)
    pick = np.flatnonzero(asked & np.isfinite(error))
    if not pick.size:
        return None
    numbers = result.measure(pick)
    gap = np.abs(numbers.mean - mean[pick])
    slack = np.maximum(_SIGMAS * np.hypot(numbers.error, error[pick]), _SMALL if accuracy is None else accuracy)
    worst = int(np.argmax(gap - slack))
    if not gap[worst] > slack[worst]:
        return None
    here, there = tell_apart(float(numbers.mean[worst]), float(mean[pick][worst]))
    said = (
        f"the probability of {name_cell(setup, pick, worst)} is {here} in the run, but {there} by exact inference "
        "given states of other sites from the run: the run has missed states that are seldom entered and last long; "
        "run longer, or take a method that moves several sites at once."
    )
    return Look(0, 0, Findings(said=said))
