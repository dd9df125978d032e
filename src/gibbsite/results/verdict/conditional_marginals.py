"""Compare a run with exact marginals given the states of some of its sites, where a model is too large to be solved.

The average of exact conditional probabilities over states of the other sites is the marginal, P(x_A) = E[P(x_A | x_B)].
So the chains of a run go on for a while, some sites of each state are kept, and all other sites are solved exactly
given these. A run that has missed a region of states, whose sites are common one by one, disagrees with this average.

The average has little noise if the sites of such a region are solved together with those around them. So the sites
that are kept are far from factors of many sites, which can make a region hard to enter. A second choice of sites has
as little in common with the first one as possible.

A run that has entered such a region a few times only may have a standard error that is too small, because it rests on
these few times. The average of exact probabilities then often knows better, though not well enough to prove the run
wrong. So the standard errors of the run are raised until four of them cover the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Positions
from gibbsite.graphs.elimination.given import Plan, distances, plan_elimination, solve_given
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.measure.measurement import measure_errors, times_for_errors
from gibbsite.results.verdict.carried_errors import carry_errors
from gibbsite.results.verdict.convergence import MOST_JUDGED, StartCheck
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
# Averages whose standard errors are at most this share of those of the run raise the latter, until these cover the
# difference and this number of standard errors of the average.
_PRECISE, _COVERED = 1.0, 2.5


class Finding(NamedTuple):
    """What a start_check has found: where the run is wrong, or the times of visits that explain the differences."""

    start_check: StartCheck | None
    times: Floats


def compare_given(recording: Recording, result: Result, parts: Parts | None, accuracy: float | None) -> Finding | None:
    """Compare a run with exact conditional marginals; None if nothing can be compared."""
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
    asked[result._asked_cells] = True
    wanted = np.zeros(graph.n_cells)  # standard errors that cover the differences
    for plan, sigmas in zip(plans, _SIGMAS, strict=True):
        averages = _average(recording, result, parts, plan, states, asked)
        if averages is None:
            continue
        start_check = _find_wrong(recording, averages, accuracy, sigmas)
        if start_check is not None:
            return Finding(start_check, np.zeros(0))
        precise = averages.error <= _PRECISE * averages.said
        pick = averages.pick[precise]
        wanted[pick] = np.maximum(wanted[pick], (averages.gap + _COVERED * averages.error)[precise] / _CLAIMED)
    return Finding(None, _explain(recording, result, wanted))


def _explain(recording: Recording, result: Result, wanted: Floats) -> Floats:
    """Return the times of visits with which the standard errors of a run are at least those that are wanted."""
    numbers = result.measure(np.arange(wanted.size))
    errors = numbers.error
    wanted = np.maximum(errors, wanted)
    if wanted.size <= MOST_JUDGED:
        wanted = carry_errors(result._trace[:, :, : wanted.size], numbers.mean, wanted)
    times = result.visit_times if result.visit_times.size else np.ones(wanted.size)
    sweeps = float(result.chains * result.n_draws * recording.setup.plan.thin)
    return times_for_errors(times, errors, wanted, sweeps) if (wanted > errors).any() else result.visit_times


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


class Averages(NamedTuple):
    """Marginals of some cells: in the run, the average of exact conditional ones, and how far they are apart.

    ``said`` are the standard errors of the run, ``error`` those of the average.
    """

    pick: Positions
    run: Floats
    said: Floats
    mean: Floats
    error: Floats

    @property
    def gap(self) -> Floats:
        """The differences."""
        return np.abs(self.run - self.mean)


def _average(
    recording: Recording, result: Result, parts: Parts, plan: Plan, states: Array, asked: Bools
) -> Averages | None:
    """Average exact conditional marginals over states; None if there are none."""
    setup = recording.setup
    found = solve_given(parts.hoods, plan, states.reshape(-1, states.shape[2]))
    if found is None:
        return None
    chains, draws = states.shape[:2]
    batches: Floats = np.zeros((chains, _BATCHES // chains, setup.graph.n_cells))
    alone = np.zeros(setup.graph.n_cells)  # standard errors that averages of independent states would have
    compared = np.zeros(setup.graph.n_cells, np.bool_)
    for site, probabilities in found.items():
        where, values = cells_of(setup, site, probabilities)
        values = np.broadcast_to(values, (chains * draws, values.shape[1]))
        batches[:, :, where] = values.reshape(*batches.shape[:2], -1, values.shape[1]).mean(axis=2)
        alone[where] = values.std(axis=0) / np.sqrt(len(values))
        compared[where] = True
    pick = np.flatnonzero(asked & compared)
    if not pick.size:
        return None
    batches = batches[:, :, pick]
    spread = batches.std(axis=(0, 1), ddof=1) / np.sqrt(_BATCHES)
    error = np.maximum(np.maximum(spread, alone[pick]), measure_errors(batches))
    numbers = result.measure(pick)
    return Averages(pick, numbers.mean, numbers.error, batches.mean(axis=(0, 1)), error)


def _find_wrong(
    recording: Recording, averages: Averages, accuracy: float | None, sigmas: tuple[float, float]
) -> StartCheck | None:
    """Return where a run disagrees with averages of exact conditional marginals, if it does."""
    pick, run, said, mean, error = averages
    slack = np.maximum(sigmas[0] * np.hypot(said, error), _SMALL if accuracy is None else accuracy)
    claimed = np.maximum(_CLAIMED * said, _WRONG) if accuracy is None else np.full(pick.size, accuracy)
    slack = np.minimum(slack, claimed + sigmas[1] * error)
    worst = int(np.argmax(averages.gap - slack))
    if not averages.gap[worst] > slack[worst]:
        return None
    here, there = tell_apart(float(run[worst]), float(mean[worst]))
    said_so = (
        f"the probability of {name_cell(recording.setup, pick, worst)} is {here} in the run, but {there} by exact "
        "inference given states of other sites from the run: the run has missed states that are seldom entered and "
        "last long; run longer, or take a method that moves several sites at once."
    )
    return StartCheck(0, 0, Findings(said=said_so))
