"""Chains that go on where they were, and many models in one call: the numbers of single runs, bit by bit."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.kinds import base

RNG = np.random.default_rng(3)
COUPLINGS = np.triu(0.2 * RNG.normal(size=(12, 12)), 1)
SPINS = gs.ising(COUPLINGS, np.zeros(12))
POTTS = gs.potts(0.3 * (1.0 - np.eye(5)), states=3)
TABLES = gs.FactorGraph(
    {"a": ["x", "y", "z"], "b": 2, "c": 3},
    [(("a", "b", "c"), RNG.random((3, 2, 3))), (("a", "b"), [[1, 2], [3, 1], [1, 1]])],
)
MODELS = {"spins": SPINS, "potts": POTTS, "tables": TABLES}
# plain chains of every kind, and spins side by side
CASES = [("spins", 3), ("spins", 20), ("potts", 3), ("tables", 3)]


@pytest.mark.parametrize(("name", "chains"), CASES)
def test_pieces_make_the_run_they_are_pieces_of(name: str, chains: int) -> None:
    model = MODELS[name]
    standing = gs.PersistentChains(model, gs.Gibbs(), chains=chains, rng=7)
    sums: Any = 0.0
    for sweeps in (1, 4, 7):
        standing.run(sweeps)
        sums = sums + standing.result().totals
    record = gs.Marginals(batches=False)
    whole = gs.sample(model, gs.Gibbs(), sweeps=12, warmup=0, chains=chains, rng=7, record=record, progress=False)
    # where chains move side by side sums are taken in 32-bit floats
    assert np.allclose(sums, whole.totals, rtol=0, atol=1e-12 if chains < 16 else 1e-5)
    assert standing.sweeps == 12
    again = gs.PersistentChains(model, gs.Gibbs(), chains=chains, rng=7).run(12)
    assert np.array_equal(again.states, standing.states)
    assert again.result().totals.tobytes() == whole.totals.tobytes()


def test_states_are_those_of_sample() -> None:
    for name in MODELS:
        drawn = gs.sample(MODELS[name], sweeps=9, warmup=0, chains=3, rng=2, record="draws", progress=False).draws
        standing = gs.PersistentChains(MODELS[name], chains=3, rng=2)
        for sweeps in (2, 3, 4):
            standing.run(sweeps)
            assert np.array_equal(standing.states, drawn[:, standing.sweeps - 1])


@pytest.mark.parametrize(("name", "chains"), CASES)
def test_marginals_are_those_of_the_latest_call(name: str, chains: int) -> None:
    standing = gs.PersistentChains(MODELS[name], chains=chains, rng=1).run(5).run(3)
    result = standing.result()
    assert result.n_draws == 3
    assert gs.compare(standing, result).max_abs < 1e-6 if chains >= 16 else 1e-12
    assert set(standing.marginals) == set(MODELS[name].sites)


def test_labels_and_moments_of_the_chains_as_they_stand() -> None:
    standing = gs.PersistentChains(SPINS, chains=20, rng=1).run(4)
    assert np.array_equal(standing.labels, 2 * standing.states - 1)
    pairs, means = standing.pair_moments()
    assert len(pairs) == 66
    assert means[5] == np.mean(standing.labels[:, pairs[5, 0]] * standing.labels[:, pairs[5, 1]])
    _, chosen = standing.pair_moments([("0", "3")])
    assert chosen.shape == (1,)
    words = gs.PersistentChains(TABLES, chains=3, rng=1).run(2)
    assert set(words.labels[:, 0]) <= {"x", "y", "z"}


@pytest.mark.parametrize(("name", "chains"), CASES[:3])
def test_new_weights_are_those_of_a_model_made_with_them(name: str, chains: int) -> None:
    """From the same state with the same random numbers, the next sweep is that of the new model."""
    model = MODELS[name]
    couplings = 1.7 * np.asarray(model.group("couplings").weights)
    standing = gs.PersistentChains(model, gs.Gibbs(), chains=chains, rng=4).run(6)
    before = standing.states
    standing.reweight(couplings=couplings).run(5)
    other = gs.PersistentChains(model, gs.Gibbs(), chains=chains, rng=4).run(6)
    other.run(5, model=model.reweight(couplings=couplings))
    assert np.array_equal(standing.states, other.states)
    unchanged = gs.PersistentChains(model, gs.Gibbs(), chains=chains, rng=4).run(6)
    assert np.array_equal(unchanged.states, before)
    assert not np.array_equal(unchanged.run(5).states, standing.states)


def test_new_weights_do_not_touch_the_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of training neither hashes the model nor sorts its scopes: both take longer than a sweep."""
    rng = np.random.default_rng(1)
    model = gs.rbm(rng.normal(size=(30, 20)))
    standing = gs.PersistentChains(model, chains=20, rng=4).run(2)
    standing.reweight(couplings=0.1)  # where entries of rows stem from is kept from the second model on
    touched: list[str] = []

    def note(name: str, function: Any) -> Any:
        return lambda *given, **named: touched.append(name) or function(*given, **named)

    monkeypatch.setattr(np, "sort", note("sort", np.sort))
    monkeypatch.setattr(hashlib, "blake2b", note("hash", hashlib.blake2b))
    monkeypatch.setattr(base, "build_rows", note("rows", base.build_rows))
    standing.run(1, model=standing.model.reweight(couplings=rng.normal(size=600)))
    standing.reweight(fields=rng.normal(size=50)).run(1)
    assert touched == []
    assert standing.result().plan.model.endswith(standing.model.digest)
    assert "hash" in touched  # it is when the plan is asked for


def test_reweighted_chains_have_the_law_of_the_new_model() -> None:
    # tables are remembered, Potts sums are kept up to date: both must notice that weights have changed
    dense = gs.potts(0.02 * (1.0 - np.eye(60)), states=3)
    standing = gs.PersistentChains(dense, chains=4, rng=5).run(50)
    standing.reweight(couplings=-np.asarray(dense.group("couplings").weights) * 40).run(2000)
    codes = standing.states
    counts = np.stack([(codes == k).sum(axis=1) for k in range(3)], axis=1)
    assert (np.abs(counts - 20) <= 8).all()  # strong repulsion keeps the states balanced
    tables = [np.exp(RNG.normal(size=(2, 2, 2))) for _ in range(2)]
    models = [gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b", "c"), table)]) for table in tables]
    standing = gs.PersistentChains(models[0], chains=8, rng=1).run(500)
    standing.run(20_000, model=models[1])
    exact = gs.solve_exact(models[1]).marginals
    for site in "abc":
        # 160,000 draws of a chain of three sites: five standard errors of draws that are worth a tenth
        assert abs(standing.marginals[site][1] - exact[site][1]) < 5 * 0.5 / np.sqrt(16_000)


def test_weights_too_strong_for_chains_side_by_side() -> None:
    standing = gs.PersistentChains(SPINS, chains=20, rng=1).run(3)
    before = standing.states
    standing.reweight(couplings=1000.0 * np.asarray(SPINS.group("couplings").weights))
    assert np.array_equal(standing.states, before)
    standing.run(50)
    strong = SPINS.reweight(couplings=1000.0 * np.asarray(SPINS.group("couplings").weights))
    for x in standing.states:  # frozen: no single site can be improved
        for i in range(12):
            y = x.copy()
            y[i] ^= 1
            assert strong.log_potential(y) <= strong.log_potential(x) + 1e-9
    standing.reweight(couplings=np.asarray(SPINS.group("couplings").weights)).run(3)


@pytest.mark.parametrize(("name", "chains"), CASES)
def test_pickled_chains_go_on_bit_by_bit(name: str, chains: int) -> None:
    standing = gs.PersistentChains(MODELS[name], chains=chains, rng=1).run(3)
    if name != "tables":
        standing.reweight(couplings=0.5 * np.asarray(MODELS[name].group("couplings").weights)).run(2)
    copy = pickle.loads(pickle.dumps(standing))
    assert copy.result().totals.tobytes() == standing.result().totals.tobytes()
    assert np.array_equal(copy.run(6).states, standing.run(6).states)
    assert copy.sweeps == standing.sweeps


def test_mistakes_are_named() -> None:
    with pytest.raises(gs.errors.ModelError, match="have not made a sweep yet"):
        gs.PersistentChains(SPINS, chains=3).result()
    with pytest.raises(gs.errors.ModelError, match="chains must be a whole number"):
        gs.PersistentChains(SPINS, chains=0)
    with pytest.raises(gs.errors.ModelError, match="same sites"):
        gs.PersistentChains(SPINS, chains=3).run(1, model=POTTS)
    with pytest.raises(gs.errors.ModelError, match="needs a model"):
        gs.PersistentChains(3)
    with pytest.raises(gs.errors.ModelError, match="no factor group 'coupling'"):
        gs.PersistentChains(SPINS, chains=3).reweight(coupling=1.0)
    with pytest.raises(gs.errors.ModelError, match="sweeps must be a whole number"):
        gs.PersistentChains(SPINS, chains=3).run(0)


# ---- many models


@pytest.mark.parametrize("chains", [2, 20])
def test_a_batch_is_its_single_runs(chains: int) -> None:
    fields = RNG.normal(size=(5, 12))
    couplings = RNG.normal(size=(5, 66)) * 0.2
    given: dict[str, Any] = {"sweeps": 30, "chains": chains, "progress": False}
    batch = gs.sample_batch(SPINS, fields=fields, couplings=couplings, rng=9, **given)
    assert len({result.plan.entropy for result in batch}) == 5
    for k, result in enumerate(batch):
        model = SPINS.reweight(fields=fields[k], couplings=couplings[k])
        single = gs.sample(model, rng=result.plan.entropy, **given)
        assert single.plan == result.plan
        assert single.totals.tobytes() == result.totals.tobytes()
        assert single._trace.tobytes() == result._trace.tobytes()
        assert single.diagnostics == result.diagnostics
    again = gs.sample_batch(SPINS, fields=fields, couplings=couplings, rng=9, threads=1, **given)
    assert all(a.totals.tobytes() == b.totals.tobytes() for a, b in zip(batch, again, strict=True))


def test_models_of_different_kinds_in_one_call() -> None:
    results = gs.inference.sample_models(MODELS.values(), sweeps=20, chains=3, rng=[4, 5, 6], progress=False)
    for model, seed, result in zip(MODELS.values(), (4, 5, 6), results, strict=True):
        single = gs.sample(model, sweeps=20, chains=3, rng=seed, progress=False)
        assert single.totals.tobytes() == result.totals.tobytes()
        assert single.plan == result.plan
    assert gs.inference.sample_models([], progress=False) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "needs weights with a row for each model"),
        ({"fields": 1.0}, "needs a row of weights"),
        ({"fields": np.zeros((2, 12)), "couplings": np.zeros((3, 66))}, "fields has 2, couplings has 3"),
        ({"fields": np.zeros((2, 11))}, "shape"),
        ({"field": np.zeros((2, 12))}, "no factor group 'field'"),
        ({"fields": np.zeros((2, 12)), "rng": [1]}, "2 models and 1 seeds"),
        ({"fields": np.zeros((2, 12)), "sweeps": 0}, "sweeps must be a whole number"),
    ],
)
def test_bad_batches(given: dict[str, Any], words: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=words):
        gs.sample_batch(SPINS, progress=False, **given)


def test_states_can_be_set() -> None:
    """To a row for each chain, one state for all, or labels; chains go on from there, also when pickled."""
    chains = gs.PersistentChains(gs.ising_grid((2, 2), coupling=0.5), chains=2, rng=1)
    chains.states = [[0, 0, 0, 0], [1, 1, 1, 1]]
    assert chains.states.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1]]
    chains.states = dict.fromkeys("0123", 1)
    assert chains.states.tolist() == [[1, 1, 1, 1]] * 2
    again = pickle.loads(pickle.dumps(chains))
    assert (chains.run(5).states == again.run(5).states).all()
    with pytest.raises(gs.errors.ArgumentError, match="the state code 2"):
        chains.states = [2, 0, 0, 0]
