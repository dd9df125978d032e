"""Runs that look converged and are not: several modes, rare states, stops that come too early."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.graph import compile_graph
from gibbsite.inference.exact.enumeration import enumerate_states
from gibbsite.inference.exact.transition import sweep_matrix
from gibbsite.models.tempered import temper
from gibbsite.results.measure.agreement import compare_chains, compare_energies, count_round_trips
from gibbsite.results.measure.measurement import measure_disagreement
from gibbsite.results.verdict import conditional_marginals, known_marginals
from gibbsite.results.verdict.rows import Rows
from tests.campaigns.verdicts import ACCURACY, tiny

RARE = 0.01


@pytest.fixture(autouse=True)
def chains_from_other_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start chains elsewhere for tiny models, too: their exact marginals make that unnecessary."""
    monkeypatch.setattr(known_marginals, "TINY", 0)


def two_modes(strength: float = 14.0, bias: float = 0.5, n: int = 6) -> gs.FactorGraph:
    """All sites equal, or nearly so; the two modes have weights e^bias : 1, and chains do not cross."""
    sites = [f"x{i}" for i in range(n)]
    pairs = [((a, b), np.exp(strength * np.eye(2))) for a, b in itertools.pairwise(sites)]
    return gs.FactorGraph(dict.fromkeys(sites, 2), [*pairs, ("x0", [1.0, np.exp(bias)])])


def sample(model: Any, **more: Any) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, **{"sweeps": 2000, "rng": 1, "progress": False, **more})


def test_chains_in_one_mode_are_not_converged() -> None:
    """All chains start, and stay, in the mode that has a third of the probability."""
    model = two_modes()
    start = dict.fromkeys(model.sites, 0)
    blind = sample(model, start=start, criteria=gs.Criteria(dispersed_starts=False))
    assert blind.diagnostics.converged  # nothing within the run shows it
    assert abs(blind.marginals["x3"][0] - gs.solve_exact(model).marginals["x3"][0]) > 0.5
    assert blind.diagnostics.dispersed_starts == "off"
    assert "no dispersed-start check, as asked" in blind.diagnostics.line()
    seen = sample(model, start=start)
    verdict = seen.diagnostics
    assert not verdict.converged
    assert verdict.dispersed_starts == "differs"
    (reason,) = verdict.reasons
    assert "two groups of chains" in reason
    assert "weights are not known" in reason
    assert any(f"{site} = " in reason for site in model.sites)  # they are named
    assert verdict.dispersed_chains == 64


def test_two_modes_of_a_lattice() -> None:
    """Far below the critical temperature, from all up: the form of the run is that of many sites at once."""
    model = gs.ising_grid((72, 72), coupling=1.2)
    up = np.ones(model.n_sites, int)
    assert sample(model, start=up, sweeps=800, criteria=gs.Criteria(dispersed_starts=False)).diagnostics.converged
    verdict = sample(model, start=up, sweeps=800).diagnostics
    assert not verdict.converged
    assert verdict.dispersed_starts == "differs"


def test_a_run_that_is_right_stands_it() -> None:
    model = gs.FactorGraph({"a": 3, "b": 2}, [(("a", "b"), [[3, 1], [1, 2], [1, 0]]), ("a", [1, 2, 1])])
    result = sample(model)
    assert result.diagnostics.converged
    assert result.diagnostics.dispersed_starts == "agrees"
    assert "64 short chains agree" in result.summary()


def test_it_is_reproducible_and_is_saved(tmp_path: Path) -> None:
    model = two_modes()
    start = dict.fromkeys(model.sites, 0)
    first, second = (sample(model, start=start, threads=threads) for threads in (1, 3))
    assert first._start_check == second._start_check
    first.save(tmp_path / "run.npz")
    again = gs.load(tmp_path / "run.npz")
    assert again._start_check == first._start_check
    assert again.diagnostics == first.diagnostics


def test_every_way_of_recording_can_be_looked_at() -> None:
    model = gs.ising_grid((3, 3), coupling=0.1)
    result = sample(model, record=["marginals", "draws", "energy", "best", "pairs"], sweeps=gs.Sweeps(2000, thin=2))
    assert result.diagnostics.dispersed_starts == "agrees"
    assert result.diagnostics.converged


RECORDS: dict[str, Any] = {
    "draws": "draws",
    "draws and energy": ["draws", "energy"],
    "draws of one site": gs.Draws(["x0"]),
    "joint": gs.recorders.Joint([("x0", "x1")]),
    "joint and draws": [gs.recorders.Joint([("x0", "x1")]), "draws"],
    "pairs": gs.recorders.PairMoments(),
    "energy": "energy",
    "energy and best": ["energy", "best"],
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_runs_are_checked_whatever_they_record(record: Any) -> None:
    """Marginals are kept for it; chains that stay in one mode are not converged, others are."""
    model = two_modes()
    stuck = sample(model, start=dict.fromkeys(model.sites, 0), record=record)
    assert not stuck.diagnostics.converged
    assert stuck.diagnostics.dispersed_starts == "differs"
    assert "two groups of chains" in stuck.diagnostics.reasons[0]
    right = sample(two_modes(strength=0.3), record=record)
    assert right.diagnostics.converged
    assert right.diagnostics.dispersed_starts == "agrees"
    assert "64 short chains agree" in right.diagnostics.line()


def test_the_best_state_alone_is_judged_by_it() -> None:
    verdict = sample(two_modes(), record="best").diagnostics
    assert verdict.found is not None
    assert verdict.dispersed_starts == "not needed"


def test_no_run_stops_early_without_the_check() -> None:
    """An early stop is asked for at 256 draws, and refused as long as short chains disagree."""
    model = two_modes()
    result = sample(model, start=dict.fromkeys(model.sites, 0), record="draws", criteria=gs.Criteria(accuracy=0.99))
    assert result.n_draws == 2000
    assert not result.diagnostics.converged


def test_batches_of_models_are_checked_whatever_they_record() -> None:
    models = [two_modes(), two_modes(strength=0.3)]
    results = gs.inference.sample_models(
        models, start=dict.fromkeys(models[0].sites, 0), sweeps=2000, rng=1, record="draws", progress=False
    )
    assert [result.diagnostics.converged for result in results] == [False, True]
    assert [result.diagnostics.dispersed_starts for result in results] == ["differs", "agrees"]


def test_joint_probabilities_are_compared() -> None:
    """Two pairs of sites that are equal in some modes and differ in others."""
    flip = np.zeros((2, 2, 2, 2))
    for a, b, c, d in itertools.product(range(2), repeat=4):
        flip[a, b, c, d] = 1.0 if a == b and c == d else 2.0 if a != b and c != d else 1e-9
    model = gs.FactorGraph(dict.fromkeys("abcd", 2), [(tuple("abcd"), flip)])
    run = {"start": dict.fromkeys("abcd", 0), "sweeps": 4000}
    verdict = sample(model, record=gs.recorders.Joint([("a", "b")]), **run).diagnostics
    assert not verdict.converged
    assert "(a, b) configuration" in verdict.reasons[0]


def test_without_a_comparison_a_run_is_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other starts are found, which can only happen where there are zeros."""
    from gibbsite.results.verdict import dispersed_starts

    def refuse(*_: Any) -> Any:
        raise gs.errors.SupportError("no start")

    monkeypatch.setattr(dispersed_starts, "find_start", refuse)
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 1], [1, 0]])])
    verdict = sample(model).diagnostics
    assert not verdict.converged
    assert verdict.dispersed_starts == "impossible"
    assert "no dispersed-start check was possible" in verdict.reasons[0]


COOLED: dict[str, gs.FactorGraph] = {
    "lattice": gs.ising_grid((3, 4), coupling=0.6, field=0.2),
    "pairs": gs.ising(np.triu(np.random.default_rng(1).normal(size=(7, 7)), 1), np.linspace(-1, 1, 7)),
    "tables": gs.FactorGraph(
        {"a": 2, "b": 3, "c": 3}, [(("a", "b"), [[3, 1, 0], [1, 0, 9]]), (("b", "c"), np.eye(3) + 0.01)]
    ),
}


@pytest.mark.parametrize("model", COOLED.values(), ids=COOLED)
@pytest.mark.parametrize("beta", [0.1, 0.55])
def test_chains_are_cooled_as_the_tempered_model_moves(model: gs.FactorGraph, beta: float) -> None:
    """The powers of conditional weights are those of a model that is compiled at that temperature."""
    graph = compile_graph(model)
    words = np.random.default_rng(3).integers(1, 2**63, (11, 4), np.uint64)
    start = np.random.default_rng(4).integers(0, 2, (11, model.n_sites))
    start[:, :3] *= model.n_sites > 3  # possible in every model
    rows, twin, cold = (
        Rows(one, start.astype(graph.state_dtype), words.copy())
        for one in (graph, compile_graph(temper(model, beta), kind=graph.kind), graph)
    )
    np.testing.assert_allclose(rows.move(20, beta=beta), twin.move(20), atol=1e-12)
    np.testing.assert_array_equal(rows.x, twin.x)
    np.testing.assert_array_equal(rows.words, twin.words)
    assert not np.allclose(cold.move(20), rows.move(20, beta=beta), atol=0.01)


def test_a_kernel_whose_draws_are_no_draws() -> None:
    """Beside it plain Gibbs looks about."""
    model = two_modes()
    start = dict.fromkeys(model.sites, 0)
    verdict = sample(model, kernel=gs.HerdedGibbs(), start=start, sweeps=4096).diagnostics
    assert not verdict.converged
    assert verdict.dispersed_starts in ("differs", "not needed")


def test_numbers_are_looked_at() -> None:
    """A mixture of two normal distributions far apart, all chains in one of them."""
    gap = 40.0

    def density(x: np.ndarray) -> float:
        low, high = -0.5 * (x[0] + gap) ** 2, -0.5 * (x[0] - gap) ** 2
        return max(low, high) + np.log1p(np.exp(-abs(low - high)))

    model = gs.LogDensity(density, dim=1)
    result = sample(model, kernel=gs.Metropolis(), start=[gap], sweeps=4000)
    assert result.diagnostics.dispersed_starts == "differs"
    assert not result.diagnostics.converged


@pytest.mark.parametrize("record", ["marginals", "draws"])
def test_draws_of_numbers_are_looked_at(record: str) -> None:
    def density(x: np.ndarray) -> float:
        low, high = -0.5 * (x[0] + 10.0) ** 2, -0.5 * (x[0] - 10.0) ** 2
        return max(low, high) + np.log1p(np.exp(-abs(low - high)))

    model = gs.LogDensity(density, dim=1)
    verdict = sample(model, kernel=gs.Slice(), start=[10.0], record=record, sweeps=1000).diagnostics
    assert verdict.dispersed_starts == "differs"
    assert not verdict.converged


@pytest.mark.parametrize("strength", [1.0, 60.0])
def test_angles_are_looked_at(strength: float) -> None:
    """An angle with two modes half a turn apart, all chains in one of them."""
    two = gs.ContinuousModel({"t": gs.Angle()}, [(lambda x, k=strength: k * np.cos(2.0 * x[0]), ("t",))])
    kernel = gs.Metropolis(scale=0.1 if strength > 1.0 else 2.0, adapt=False)
    verdict = sample(two, kernel=kernel, start=[0.0], sweeps=20_000).diagnostics
    assert verdict.dispersed_starts == ("agrees" if strength == 1.0 else "differs")
    assert verdict.converged == (strength == 1.0)


def test_interrupts_end_it_and_keep_the_run() -> None:
    """Ctrl-C while short chains run: the answer is there, and not called converged."""
    model = gs.ising_grid((40, 40), coupling=0.05)
    whole = sample(model, sweeps=400)
    assert whole.diagnostics.dispersed_starts == "agrees"
    from gibbsite.results.verdict import dispersed_starts as sampling

    def press(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

    examine = sampling.DispersedStarts.examine

    def examine_interrupted(self: Any, *given: Any) -> Any:
        press()
        return examine(self, *given)

    sampling.DispersedStarts.examine = examine_interrupted  # type: ignore[method-assign]
    try:
        assert threading.current_thread() is threading.main_thread()
        result = sample(model, sweeps=400)
    finally:
        sampling.DispersedStarts.examine = examine  # type: ignore[method-assign]
    assert result.interrupted
    assert result.n_draws == 400
    assert not result.diagnostics.converged
    assert result.diagnostics.dispersed_starts == "no time"


@pytest.mark.long
def test_tiny_models() -> None:
    """Random factor graphs: no verdict is false. The campaign asks 5,000 of them.

    Without the dispersed-start check, about 1 in 36 of these verdicts was false.
    """
    called, false, missed = 0, [], 0
    for number in range(150):
        model, known = tiny(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.ConvergenceWarning)
            answer = gs.infer(model, method="gibbs", rng=number, sweeps=4000, progress=False)
        error = max(
            abs(p - q)
            for site, truth in known.items()
            for p, q in zip(answer.marginals[site].values(), truth, strict=True)
        )
        called += answer.converged
        if answer.converged and error > ACCURACY:
            false.append((number, error))
        missed += error <= ACCURACY and not answer.converged and "dispersed-start" in " ".join(answer.reasons)
    assert not false
    assert called >= 60
    assert missed <= 6


def rare_states(number: int) -> gs.FactorGraph:
    """Make a tree of 40 sites of 2 or 3 states with probabilities from 0.5 down to about 1e-5."""
    rng = np.random.default_rng(number)
    cards = rng.integers(2, 4, 40)
    names = [f"v{i}" for i in range(cards.size)]
    factors: list[Any] = []
    for i, states in enumerate(cards):
        field = -rng.uniform(0.0, 11.5, states)
        field[rng.integers(states)] = 0.0
        factors.append(([names[i]], np.exp(field)))
        if i:
            j = int(rng.integers(i))
            coupling = (0.3, 1.0, 2.0)[number % 3] * rng.normal(size=(cards[j], states))
            factors.append(([names[j], names[i]], np.exp(coupling)))
    return gs.FactorGraph({name: int(k) for name, k in zip(names, cards, strict=True)}, factors)


def count_failures(models: range, sweeps: int, rao_blackwell: bool) -> tuple[int, int, int]:
    """Return how many intervals of four standard errors fail, of how many, and how many of rare states."""
    failed = cells = rare = 0
    for number in models:
        model = rare_states(number)
        exact = gs.solve_exact(model).marginals
        result = sample(
            model,
            rng=number,
            sweeps=sweeps,
            criteria=gs.Criteria(dispersed_starts=False),
            record=gs.Marginals(rao_blackwell),
        )
        for site in model.sites:
            for state, truth in exact[site].items():
                failed += abs(result.marginals[site][state] - truth) > 4.0 * result.mcse[site][state]
                cells += 1
                rare += truth < RARE
    return failed, cells, rare


@pytest.mark.parametrize("rao_blackwell", [True, False])
def test_errors_of_rare_states_cover(rao_blackwell: bool) -> None:
    """At most one in a thousand may fail; 14 or more of 4,000 have a probability below 1e-4 then."""
    failed, cells, rare = count_failures(range(40), 1000, rao_blackwell)
    assert cells > 3500
    assert rare > 1200
    assert failed < 14


@pytest.mark.campaign
@pytest.mark.parametrize("sweeps", [300, 3000])
def test_errors_of_rare_states_cover_in_full(sweeps: int) -> None:
    """Over 10^5 cells at most 0.1 % fail."""
    for rao_blackwell in (True, False):
        failed, cells, _ = count_failures(range(1000), sweeps, rao_blackwell)
        assert cells >= 100_000
        assert failed <= 0.001 * cells


def test_a_state_never_seen_has_an_error() -> None:
    """A count of zero among n independent draws says that a probability is below some 8 / n."""
    model = gs.FactorGraph({"a": 2}, [("a", [1.0, 1e-7])])
    result = sample(model, sweeps=1000, record=gs.Marginals(rao_blackwell=False))
    assert result.marginals["a"][1] == 0.0
    assert 4.0 * result.mcse["a"][1] == pytest.approx(8.0 / 4000)


def test_early_stops_need_round_trips() -> None:
    """Values that rise all the time have been to both ends once; that is no reason to stop."""
    steady = np.arange(64.0)[None].repeat(4, axis=0)
    assert count_round_trips(steady) == 0
    noise = np.random.default_rng(1).normal(size=(4, 64))
    assert (count_round_trips(noise) or 0) > 20
    assert count_round_trips(np.ones((4, 64))) is None
    slow = two_modes(strength=5.0, bias=0.0)
    answer = sample(
        slow, sweeps=20000, criteria=gs.Criteria(accuracy=0.99)
    )  # crossings are rare: small errors are not enough
    trips = count_round_trips(answer._pulse)
    assert trips is None or trips >= 10 or answer.n_draws == 20000


def test_energies_are_compared() -> None:
    noise = np.random.default_rng(2).normal(size=(4, 64))
    assert measure_disagreement(noise) < 1.1
    assert measure_disagreement(noise + 1e3 * np.array([0, 0, 0, 1e-14])[:, None]) < 1.1  # rounding
    assert measure_disagreement(np.full((4, 64), 7.0) + np.array([0, 0, 0, 1])[:, None]) == np.inf
    short = np.random.default_rng(3).normal(size=64)
    assert compare_energies(noise, short) == ""
    near = compare_energies(np.full((4, 64), 69.0), np.full(64, 69.002))
    assert near == "their log-potential is 69.002 on average, that of the run 69"
    short[:8] = 9.0
    assert "above" in compare_energies(noise, short)


def test_false_alarms_of_the_comparison() -> None:
    """Draws of the run's own law: 0.5 % may differ; more than 11 of 300 have a probability below 1e-6."""
    rng, alarms = np.random.default_rng(5), 0
    p = np.concatenate([np.full(200, 1e-4), np.full(100, 1e-2), np.linspace(0.05, 0.95, 100)])
    error = np.sqrt(p * (1.0 - p) / 40_000)
    for _ in range(300):
        mean = rng.binomial(40_000, p) / 40_000
        short = rng.binomial(16, p, (64, p.size)) / 16
        alarms += not compare_chains(mean, error, p * (1.0 - p), 40_000.0, short, 16, 2000).agree
    assert alarms <= 11


def test_few_strangers_are_seen() -> None:
    """Three of 64 chains stay in a state that the run has hardly seen."""
    p = np.full(50, 1e-5)
    short = np.zeros((64, 50))
    run = (p, np.full(50, 1e-5), p * (1.0 - p), 1e5)
    assert compare_chains(*run, short, 16, 2000).agree
    short[:3, 7] = 1.0
    found = compare_chains(*run, short, 16, 2000)
    assert found.cells[0] == 7
    assert found.strangers == 3


@pytest.mark.parametrize(
    "model",
    [
        gs.ising_grid((3, 3), coupling=[0.3, -0.2], field=0.1),
        gs.ising_grid((2, 3), coupling=np.arange(12.0).reshape(2, 2, 3) / 10, periodic=False),
        gs.potts_grid((3, 3), states=3, coupling=0.4),
        gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 2, 0], [3, 1, 1]])]),
    ],
    ids=["lattice", "edges", "potts", "zeros"],
)
def test_temper(model: gs.FactorGraph) -> None:
    """The law of a tempered model is the power of the law."""
    from gibbsite.inference.exact.enumeration import enumerate_states

    law = enumerate_states(model).probabilities
    power = np.where(law > 0, np.where(law > 0, law, 1.0) ** 0.3, 0.0)
    np.testing.assert_allclose(enumerate_states(temper(model, 0.3)).probabilities, power / power.sum(), rtol=1e-10)
    assert gs.graphs.compile_graph(temper(model, 0.3)).kind == gs.graphs.compile_graph(model).kind


def rare_cause() -> gs.FactorGraph:
    """A cause of probability 0.02 with an effect that nearly copies it, and two signs of the effect."""
    sign = [[0.9, 0.1], [0.3, 0.7]]
    return gs.FactorGraph(
        dict.fromkeys(("cause", "effect", "first", "second"), 2),
        [
            ("cause", [0.98, 0.02]),
            (("cause", "effect"), [[0.998, 0.002], [0.1, 0.9]]),
            (("effect", "first"), sign),
            (("effect", "second"), sign),
        ],
        directed=True,
    )


def test_rare_states_that_last_are_not_missed() -> None:
    """Visits are rare and last several sweeps: runs that stop early must have seen enough of them.

    Four standard errors are exceeded by chance in fewer than one of 1e4 runs, and most runs that stop are
    more accurate than they have to be. Without a check of visits, one run of ten was wrong.
    """
    model = rare_cause()
    known = gs.solve_exact(model).marginals
    for seed in range(48):
        result = sample(model, criteria=gs.Criteria(accuracy=4 * ACCURACY / 4), sweeps=60_000, rng=seed, threads=1)
        found = result.diagnostics
        error = max(abs(result.marginals[site][1] - known[site][1]) for site in model.sites)
        assert error <= ACCURACY or not found.converged or found.mcse_max > ACCURACY / 4, seed


def test_visits_last_as_long_as_the_exact_chain_says() -> None:
    """The integrated autocorrelation time of a rare state, against the exact transition matrix of a sweep."""
    model = rare_cause()
    graph, exact = compile_graph(model), enumerate_states(model)
    sweep = sweep_matrix(exact, graph, gs.Gibbs(), gs.Systematic())
    states, law = exact.states, exact.probabilities
    inside = (states[:, 0] == 1).astype(float)
    share = float(law @ inside)
    there, spent = law * inside / share, 0.0
    for _ in range(4000):
        there = there @ sweep
        spent += float(there @ inside) - share
    result = sample(model, sweeps=20_000)
    assert 1.0 + 2.0 * spent > 8.0
    cell = 1  # the cause is 1
    assert 0.4 < result.visit_times[cell] / (1.0 + 2.0 * spent) < 2.5


def test_visits_are_measured_where_the_error_is_not_reached() -> None:
    """A run that uses its whole budget is judged like any other, whatever error it was meant to reach."""
    asked = sample(rare_cause(), criteria=gs.Criteria(accuracy=4e-06), sweeps=5000)
    plain = sample(rare_cause(), sweeps=5000)
    assert asked.diagnostics.converged
    assert asked.visit_times.max() > 2.0
    assert np.array_equal(asked.visit_times, plain.visit_times)


def rare_region(causes: int, probability: float) -> gs.FactorGraph:
    """An alarm has been raised: by failures of all parts at the same time, or, more often, by mistake.

    The region in which all have failed has a probability of 0.03. It is entered less than once in 50,000
    sweeps and lasts for thousands, although each failure by itself is common and does not last.
    """
    names = [f"failure{i}" for i in range(causes)]
    mistake = 30.0 * probability**causes
    alarm = np.full((2,) * causes + (2,), [1.0 - mistake, mistake])
    alarm[(1,) * causes] = [0.001, 0.999]
    failures = [(name, [1.0 - probability, probability]) for name in names]
    factors = [*failures, ((*names, "alarm"), alarm)]
    model = gs.FactorGraph(dict.fromkeys([*names, "alarm"], 2), factors, directed=True)
    return model.observe({"alarm": 1})


def test_regions_that_no_chain_has_found_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains alone do not find the region, and stop early without it; exact marginals show what is missing.

    With these there is no chance that a wrong answer passes.
    """
    model = rare_region(8, 0.15)
    known = gs.solve_exact(model).marginals

    def count_false() -> int:
        false = 0
        for seed in range(12):
            result = sample(model, criteria=gs.Criteria(accuracy=4 * ACCURACY / 4), sweeps=20_000, rng=seed, threads=1)
            found = result.diagnostics
            error = max(abs(result.marginals[site][1] - known[site][1]) for site in model.sites)
            false += found.converged and found.mcse_max <= ACCURACY / 4 and error > ACCURACY
        return false

    assert count_false() == 0
    monkeypatch.setattr(known_marginals, "MOST_SITES", 0)
    monkeypatch.setattr(conditional_marginals, "MOST_SITES", 0)
    assert count_false() > 0  # by chains alone


def beside_a_grid(model: gs.FactorGraph, side: int) -> gs.FactorGraph:
    """Return a model with a grid of its own beside another, which is too large for exact inference."""
    names = {(i, j): f"grid{i}_{j}" for i in range(side) for j in range(side)}
    pairs = [(names[i, j], names[at]) for i, j in names for at in ((i + 1, j), (i, j + 1)) if at in names]
    factors = [(pair, np.exp(0.2 * np.array([[1.0, -1.0], [-1.0, 1.0]]))) for pair in pairs]
    own = [
        (
            tuple(model.sites[s] for s in scope),
            group.log_tables(model.cards)[k if len(group.log_tables(model.cards)) > 1 else 0],
        )
        for group in model.groups
        for k, scope in enumerate(group.scopes)
        if group.arity
    ]
    return gs.FactorGraph(
        dict.fromkeys([*model.sites, *names.values()], 2), [(scope, np.exp(table)) for scope, table in own] + factors
    )


def test_small_components_of_large_models_are_compared_exactly() -> None:
    """The region is in a component of twelve sites; the other component has 400 sites and is not solved."""
    alone = rare_region(12, 0.2)
    model = beside_a_grid(alone, 20)
    start = dict.fromkeys(model.sites, 0)
    verdict = sample(model, start=start, sweeps=4000).diagnostics
    assert verdict.dispersed_starts == "differs"
    assert "by exact inference" in verdict.reasons[0]
    assert "failure" in verdict.reasons[0]


def test_a_run_that_has_missed_a_region_says_so() -> None:
    """No chain enters the region; one start of 4,096 would be in it."""
    model = rare_region(12, 0.3)
    verdict = sample(model, start=dict.fromkeys(model.sites, 0), sweeps=4000).diagnostics
    assert verdict.dispersed_starts == "differs"
    (reason,) = verdict.reasons
    assert "by exact inference" in reason
    assert any(f"{site} = " in reason for site in model.sites)


@pytest.mark.parametrize("query", [None, ["b"]])
def test_exact_marginals_of_states_are_compared_in_their_order(query: list[str] | None) -> None:
    """States of different numbers; a wrong order would be off by more than six standard errors."""
    tables = np.random.default_rng(1).random((3, 2)), np.random.default_rng(2).random((2, 4))
    model = gs.FactorGraph({"a": 3, "b": 2, "c": 4}, [(("a", "b"), tables[0]), (("b", "c"), tables[1])])
    assert sample(model, criteria=gs.Criteria(query=query)).diagnostics.converged


def test_exact_marginals_are_left_out_where_they_cost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(hoods: Any, plan: Any, states: np.ndarray) -> None:
        assert len(states) > 1, "an exact answer was computed"

    monkeypatch.setattr(known_marginals, "solve_given", refuse)
    many, wide = gs.ising_grid((1025,), 0.1), gs.ising(0.01 * (1.0 - np.eye(30)))
    assert sample(many).diagnostics.converged
    assert sample(wide).diagnostics.converged
    with pytest.raises(AssertionError):
        sample(gs.ising_grid((4,), 0.1))
