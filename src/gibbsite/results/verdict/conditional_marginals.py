"""Compare a run with exact marginals given the states of some of its sites, where a model is too large to be solved.

The average of exact conditional probabilities over states of the other sites is the marginal, P(x_A) = E[P(x_A | x_B)].
So the chains of a run go on for a while, some sites of each state are kept, and all other sites are solved exactly
given these. A run that has missed a region of states, whose sites are common one by one, disagrees with this average.

The average has little noise if the sites of such a region are solved together with those around them. So the sites
that are kept are far from factors of many sites, which can make a region hard to enter. A second choice of sites has
as little in common with the first one as possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats
from gibbsite.graphs.elimination.given import Plan, distances, plan_elimination, solve_given
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.measure.measurement import measure_errors
from gibbsite.results.verdict.convergence import Look
from gibbsite.results.verdict.known_marginals import Parts, cells_of, name_cell
from gibbsite.results.verdict.rows import Rows
from gibbsite.results.wording import tell_apart

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording

MOST_SITES = 4096  # of all components that are compared
_TABLE = 2.0**6  # entries of a table, unless a factor has more
_MOST_ENTRIES = 7e6  # of all tables and states, which take about 0.3 seconds
_BATCHES, _FEWEST, _MOST = 32, 64, 768  # of states: batches for standard errors, and numbers of states
_SHARE = 0.05  # of the sweeps of a run, for the states
_FREE = 4e6  # updates of single sites that may be made whatever the run has cost, about 0.05 seconds
_LONGEST = 64  # sweeps between two states
_NEAR = 4  # steps from a large factor within which sites are kept last
_SMALL = 0.005  # differences that are let pass
# For each choice of sites, standard errors that are let pass: of run and average together, and of the average beyond
# what the run claims. Averages of the second choice are noisier than their errors from 32 batches say.
_SIGMAS = ((5.0, 4.0), (8.0, 6.0))
_CLAIMED, _WRONG = 4.0, 0.01  # what a run claims without an accuracy: the larger of standard errors and an error


def compare_given(recording: Recording, result: Result, parts: Parts | None, accuracy: float | None) -> Look | None:
    """Return where a run disagrees with exact conditional marginals; None if it agrees or nothing can be compared."""
    graph = recording.setup.graph
    if parts is None or not parts.large or sum(map(len, parts.large)) > MOST_SITES:
        return None
    sites = [site for part in parts.large for site in part]
    first = plan_elimination(parts.hoods, sites, _TABLE, distances(parts.hoods, _TABLE, _NEAR))
    solved = np.zeros(graph.n_sites, np.int64)
    solved[[clique[0] for clique in first.cliques]] = 1
    plans = [first, plan_elimination(parts.hoods, sites, _TABLE, solved.tolist())]
    many = int(_MOST_ENTRIES / max(sum(plan.entries for plan in plans), 1.0)) // _BATCHES * _BATCHES
    if many < _FEWEST:
        return None
    states = _draw_states(recording, result, min(many, _MOST))
    asked = np.zeros(graph.n_cells, np.bool_)
    asked[result.asked_cells] = True
    for plan, sigmas in zip(plans, _SIGMAS, strict=True):
        look = _compare(recording, result, parts, plan, states, asked, accuracy, sigmas)
        if look is not None:
            return look
    return None


def _draw_states(recording: Recording, result: Result, many: int) -> Array:
    """Return states (chains, draws, sites) of chains that go on where the run ended."""
    setup, ends = recording.setup, recording.states
    chains = min(1 << int(np.log2(len(ends))), _BATCHES)
    seed = np.random.SeedSequence(setup.plan.entropy, spawn_key=(0, 5))
    words = np.random.default_rng(seed).integers(0, 2**64 - 1, (chains, 4), np.uint64, endpoint=True)
    rows = Rows(setup.graph, np.stack(ends[:chains]), words)
    sweeps = max(_SHARE * len(ends) * result.n_draws * setup.plan.thin, _FREE / setup.graph.n_sites)
    thin = int(np.clip(sweeps / many, 1, _LONGEST))
    found = []
    for _ in range(many // chains):
        rows.move(thin)
        found.append(rows.x.copy())
    return np.stack(found, axis=1)


def _compare(
    recording: Recording,
    result: Result,
    parts: Parts,
    plan: Plan,
    states: Array,
    asked: Bools,
    accuracy: float | None,
    sigmas: tuple[float, float],
) -> Look | None:
    """Compare the average of exact conditional marginals over states with the marginals of a run."""
    setup = recording.setup
    found = solve_given(parts.hoods, plan, states.reshape(-1, states.shape[2]))
    if found is None:
        return None
    chains, draws = states.shape[:2]
    batches: Floats = np.zeros((chains, _BATCHES // chains, setup.graph.n_cells))
    compared = np.zeros(setup.graph.n_cells, np.bool_)
    for site, probabilities in found.items():
        where, values = cells_of(setup, site, probabilities)
        values = np.broadcast_to(values, (chains * draws, values.shape[1]))
        batches[:, :, where] = values.reshape(*batches.shape[:2], -1, values.shape[1]).mean(axis=2)
        compared[where] = True
    pick = np.flatnonzero(asked & compared)
    if not pick.size:
        return None
    batches = batches[:, :, pick]
    mean, spread = batches.mean(axis=(0, 1)), batches.std(axis=(0, 1), ddof=1)
    error = np.maximum(spread / np.sqrt(_BATCHES), measure_errors(batches))
    numbers = result.measure(pick)
    gap = np.abs(numbers.mean - mean)
    slack = np.maximum(sigmas[0] * np.hypot(numbers.error, error), _SMALL if accuracy is None else accuracy)
    claimed = np.maximum(_CLAIMED * numbers.error, _WRONG) if accuracy is None else np.full(gap.size, accuracy)
    slack = np.minimum(slack, claimed + sigmas[1] * error)
    worst = int(np.argmax(gap - slack))
    if not gap[worst] > slack[worst]:
        return None
    here, there = tell_apart(float(numbers.mean[worst]), float(mean[worst]))
    said = (
        f"the probability of {name_cell(setup, pick, worst)} is {here} in the run, but {there} by exact inference "
        "given states of other sites from the run: the run has missed states that are seldom entered and last long; "
        "run longer, or take a method that moves several sites at once."
    )
    return Look(0, 0, Findings(said=said))
