"""Herded Gibbs: errors fall like 1 / T where the theorem says so, and have a floor where it does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.kernels.herded.herding import RULES
from gibbsite.kernels.herded.keys import KEYS, Hashed
from gibbsite.lab.chains import envelope, fit_slope, follow, space_lengths

TWO = {0.1: 4.5, 0.01: 16.4, 0.001: 468.0, 0.0001: 2862.0}


def joint_errors(model: gs.FactorGraph, kernel: gs.kernels.Kernel, sweeps: Any, rng: int = 1) -> Any:
    """Return the L1 distance of the joint frequencies from the law after each number of sweeps."""
    found = follow(model, kernel, sweeps, gs.recorders.Joint([tuple(model.sites)]), rng=rng)[0]
    return np.abs(found - gs.exact.enumerate(model).probabilities).sum(axis=1)


def complete(n: int, states: int, seed: int) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    pairs = [((i, j), np.exp(0.3 * rng.normal(size=(states, states)))) for i in range(n) for j in range(i)]
    single = [((i,), np.exp(0.3 * rng.normal(size=states))) for i in range(n)]
    return gs.FactorGraph(n, pairs + single, states=states)


def four_cycle(seed: int) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    pairs = [((i, (i + 1) % 4), np.exp([[0, 0], [0, rng.normal()]])) for i in range(4)]
    single = [((i,), np.exp([0, rng.normal()])) for i in range(4)]
    return gs.FactorGraph(4, pairs + single, states=2)


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=[pytest.mark.campaign] if n in (3, 4, 6, 7) else []) for n in range(2, 9)]
)
def test_errors_on_complete_graphs_fall_like_the_inverse_of_the_length(n, states) -> None:
    """From as many sweeps on as a site has keys: before, most choices are the first of their key.

    With 7 or 8 sites of three states that is after 729 or 2,187 sweeps; until then errors fall more slowly.
    """
    sweeps = space_lengths(1_000_000)
    met = sweeps >= states ** (n - 1)
    for rule in ("argmax", "tijdeman") if states > 2 else ("threshold",):
        errors = joint_errors(complete(n, states, n), gs.HerdedGibbs(rule=rule, start="centred"), sweeps)
        assert fit_slope(sweeps[met], envelope(errors)[met]) < -0.9
        # the bound of the first decade holds in the last
        assert (errors * sweeps)[-20:].max() < 5 * (errors * sweeps)[:20].max()


@pytest.mark.parametrize("epsilon", sorted(TWO))
def test_constants_of_two_variables(epsilon) -> None:
    """Errors times length are those others measured with one start; starts differ twofold."""
    table = [[0.25 - epsilon, epsilon], [epsilon, 0.75 - epsilon]]
    model, sweeps = gs.FactorGraph(2, [((0, 1), table)], states=2), space_lengths(2**18)
    worst = [(joint_errors(model, gs.HerdedGibbs(), sweeps, seed) * sweeps).max() for seed in range(12)]
    ratio = np.array(worst) / TWO[epsilon]
    assert np.count_nonzero(np.abs(ratio - 1.0) < 0.5) >= 4
    assert ratio.min() > 0.2
    assert ratio.max() < 4.0


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=[pytest.mark.campaign] if n in (3, 5) else []) for n in range(2, 7)]
)
def test_errors_obey_the_theorem(n) -> None:
    model, sweeps = complete(n, 2, n), space_lengths(1_000_000)
    bound = gs.kernels.herding_bound(model)
    errors = 0.5 * joint_errors(model, gs.HerdedGibbs(), sweeps)  # total variation
    promised = np.array([bound.error(float(t), warmup=False) for t in sweeps])
    assert (errors <= promised).all()
    assert np.isfinite(promised).any() or n > 4
    assert bound.l == pytest.approx(bound.least**n)
    assert bound.b == pytest.approx(bound.l + (1 - (2 * bound.least) ** n) / (1 - 2 * bound.least))


def test_the_theorem_says_where_it_does_not_apply() -> None:
    with pytest.raises(gs.GibbsiteError, match="can have 9 sites, this one has 16"):
        gs.kernels.herding_bound(gs.ising_grid((4, 4)))
    with pytest.raises(gs.GibbsiteError, match="two states"):
        gs.kernels.herding_bound(gs.potts_grid((2, 2), 3, 0.1))
    with pytest.raises(gs.GibbsiteError, match="without zeros"):
        gs.kernels.herding_bound(gs.FactorGraph(2, [((0, 1), [[1, 0], [1, 1]])], states=2))
    with pytest.raises(gs.GibbsiteError, match="fixed order"):
        gs.kernels.herding_bound(gs.ising_grid((2, 2)), gs.RandomScan())


def test_sparse_graphs_have_a_floor_unless_keys_are_full() -> None:
    sweeps, floors = space_lengths(3_000_000), []
    for seed in range(5):
        model = four_cycle(seed)
        stalled = joint_errors(model, gs.HerdedGibbs(keys="blanket"), sweeps)
        clean = joint_errors(model, gs.HerdedGibbs(keys="full"), sweeps)
        assert fit_slope(sweeps, envelope(clean)) < -0.9
        assert clean[-1] < 3e-5
        floors.append(envelope(stalled)[-1])
    assert np.median(floors) > 1e-4  # seen by others: 3.5e-4 to 3.5e-3


def models() -> dict[str, gs.FactorGraph]:
    rng = np.random.default_rng(8)
    tables = [((0, 1, 2), rng.random((2, 3, 2))), ((2, 3), [[1.0, 0.0], [0.5, 2.0]]), ((1, 4), rng.random((3, 4)))]
    return {
        "ising": gs.ising(np.triu(rng.normal(size=(6, 6)), 1), rng.normal(size=6)),
        "lattice": gs.ising_grid((3, 4), coupling=0.3, field=0.1, periodic=(False, True)),
        "potts": gs.potts_grid((3, 3), states=3, coupling=0.4),
        "pairwise": gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 0, 1]])]),
        "table": gs.FactorGraph({"a": 2, "b": 3, "c": 2, "d": 2, "e": 4}, tables),
    }


# every third combination of a kind and keys, so that each meets some of the other; all in the campaign
COMBINATIONS = [
    pytest.param(name, keys, marks=pytest.mark.long if (i + j) % 3 == 0 else pytest.mark.campaign)
    for i, name in enumerate(sorted(models()))
    for j, keys in enumerate(KEYS)
]


@pytest.mark.parametrize("all_rules", [False, pytest.param(True, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(("name", "keys"), COMBINATIONS)
def test_every_combination_repeats_and_resumes(name, keys, all_rules, tmp_path) -> None:
    model = models()[name]
    chosen = list(itertools.product(RULES, ("dense", "hash")))
    if not all_rules:
        # of rules and storages those of one part in four, another one for each combination
        part = sorted(models()).index(name) + KEYS.index(keys)
        chosen = chosen[part // 3 % 4 :: 4]
    for rule, storage in chosen:
        if rule == "threshold" and (model.cards > 2).any():
            continue
        if keys == "shared" and storage == "dense":
            storage = "auto"
        kernel = gs.HerdedGibbs(keys=keys, rule=rule, storage=storage, bins=4)
        options = {"rng": 3, "progress": False, "warmup": 0, "chains": 2, "record": ["marginals", "draws"]}
        once, again = (gs.sample(model, kernel, sweeps=60, **options) for _ in range(2))
        path = tmp_path / f"{rule}-{storage}"
        gs.sample(model, kernel, sweeps=25, checkpoint=path, **options)
        resumed = gs.sample(model, kernel, sweeps=60, checkpoint=gs.Checkpoint(path, resume=True), **options)
        for other in (again, resumed):
            assert (other.draws == once.draws).all()
            assert all(other.marginals[s] == once.marginals[s] for s in model.sites)


@pytest.mark.parametrize("name", sorted(models()))
def test_storage_does_not_matter(name) -> None:
    model = models()[name]
    for keys in ("blanket", "full", "binned", "randomised-binned", "site"):
        found = [
            gs.sample(
                model, gs.HerdedGibbs(keys=keys, storage=s, bins=3), sweeps=200, rng=1, record="draws", progress=False
            )
            for s in ("dense", "hash")
        ]
        assert (found[0].draws == found[1].draws).all()


def test_hash_tables_grow_and_stay_small() -> None:
    """Twenty sites that all see each other: half a million keys each, of which few are met."""
    rng = np.random.default_rng(1)
    model = gs.ising(np.triu(0.05 * rng.normal(size=(20, 20)), 1))
    graph, kernel = gs.graphs.compile_graph(model), gs.HerdedGibbs(storage="hash")
    from gibbsite._numba.random.generators import stream
    from gibbsite.kernels.base import alone
    from gibbsite.sampling.record import lay_out
    from gibbsite.sampling.sweep import start_chain, sweep_chain

    scan, layout = gs.Systematic(), lay_out(model, graph, kernel, "draws")
    state = start_chain(graph, kernel, scan, np.zeros(20, np.int8), stream(1, 0), False)
    tape = layout.grow(layout.empty_tape(graph), 10_000)
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, model)
    sweep_chain(parameters, graph.arrays, schedule, state, tape, 10_000, 20, True, alone())
    ledger = state.memory.ledger
    assert isinstance(ledger, Hashed)
    slots, keys, lost = ledger.fill.tolist()
    # every key is the site and what the others were: count those of all visits
    draws = tape.values.astype(np.int64)
    met, x = set(), np.zeros(20, np.int64)
    for row in draws[: len(draws)]:
        for i in range(20):
            met.add((i, *np.delete(x, i).tolist()))
            x[i] = row[i]
    assert keys == len(met) == np.count_nonzero(ledger.key)
    assert not lost
    assert 16 * slots / keys < 24.0
    # and the weights of a table, where there is one
    dense = gs.HerdedGibbs(storage="dense").memory(graph, stream(1, 0))
    assert dense.ledger.weight.size == 20 * 2**19


def test_a_full_hash_table_is_an_error_that_names_the_site() -> None:
    model = gs.ising(np.triu(np.full((24, 24), 0.01), 1))
    kernel = gs.HerdedGibbs(memory_limit=20_000)
    with pytest.raises(gs.errors.TooLargeError, match=r"site 0 alone can have 8\.4e\+06.*keys='binned'"):
        gs.sample(model, kernel, sweeps=2000, rng=1, progress=False)
    with pytest.raises(gs.errors.TooLargeError, match=r"site 0 alone, with 23 others.*storage='hash'"):
        gs.sample(model, gs.HerdedGibbs(storage="dense"), sweeps=10, rng=1, progress=False)


@pytest.mark.long
def test_threads_do_not_matter() -> None:
    model = gs.ising_grid((200, 200), coupling=0.3, field=0.05)
    for keys in ("blanket", "shared", "site"):
        found = [
            gs.sample(
                model, gs.HerdedGibbs(keys=keys), scan=gs.Chromatic(), sweeps=30, rng=1, threads=t, progress=False
            )
            for t in (1, 2, 4)
        ]
        for other in found[1:]:
            assert other.marginals.cells.tobytes() == found[0].marginals.cells.tobytes()


BAD = {
    "keys 'neighbours' is unknown": {"keys": "neighbours"},
    "rule 'max' is unknown": {"rule": "max"},
    "start 'zero' is unknown": {"start": "zero"},
    r"start in \[0, 1\), got 1.5": {"start": 1.5},
    "bins must be a positive whole number": {"bins": 0},
    "band must be": {"band": -1.0},
}


@pytest.mark.parametrize("message", sorted(BAD))
def test_mistakes_are_named(message) -> None:
    with pytest.raises(gs.GibbsiteError, match=message):
        gs.sample(gs.ising_grid((3, 3)), gs.HerdedGibbs(**BAD[message]), sweeps=10, progress=False)


def test_the_threshold_rule_refuses_three_states() -> None:
    with pytest.raises(gs.GibbsiteError, match="chooses between two states, but site 0 has 3"):
        gs.sample(gs.potts_grid((2, 2), 3, 0.1), gs.HerdedGibbs(rule="threshold"), sweeps=10, progress=False)
