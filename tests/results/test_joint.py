"""Joint probabilities of any sites: exact ones against enumeration, sampled ones with standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gs

# of two hundred figures, one is off by more than six standard errors less than once in a million times
SIX = 6.0


def random_model(seed: int) -> gs.FactorGraph:
    """Up to six sites of one to three states, factors of up to three sites, zeros among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    cards = rng.integers(1, 4, n)
    factors = []
    for _ in range(n + 1):
        scope = rng.permutation(n)[: int(rng.integers(1, min(4, n + 1)))]
        table = rng.random(cards[scope]) * (rng.random(cards[scope]) < 0.8)
        table.flat[0] += 0.1  # the first state is always possible
        factors.append((tuple(f"s{i}" for i in scope), table))
    return gs.FactorGraph({f"s{i}": int(card) for i, card in enumerate(cards)}, factors)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_exact_joints_agree_with_enumeration(seed: int):
    model = random_model(seed)
    rng = np.random.default_rng(seed)
    seen = {f"s{i}": 0 for i in range(model.n_sites) if rng.random() < 0.3}
    if len(seen) == model.n_sites:
        seen = {}
    law = gs.exact.enumerate(model).law
    for k, state in enumerate(model.sites):
        if state in seen:
            keep = np.zeros(law.shape[k])
            keep[0] = 1.0
            law = law * keep.reshape([-1 if axis == k else 1 for axis in range(law.ndim)])
    law = law / law.sum()
    asked = rng.permutation(model.n_sites)[: int(rng.integers(1, model.n_sites + 1))].tolist()
    true = np.einsum(law, list(range(law.ndim)), asked)
    names = [model.sites[i] for i in asked]
    observed = model.observe(seen)
    for solve in (gs.solve_exact, gs.exact.enumerate):
        np.testing.assert_allclose(solve(observed).joint(*names), true, atol=1e-12)
    np.testing.assert_allclose(gs.solve_exact(model).joint(*names, given=seen), true, atol=1e-12)
    if len(seen) < model.n_sites:
        np.testing.assert_allclose(gs.infer(observed, progress=False).joint(*names), true, atol=1e-12)


def test_ends_of_a_long_chain():
    exact = gs.solve_exact(gs.ising_grid((200,), coupling=2.0))
    both = np.tanh(2.0) ** 199
    joint = exact.joint("0", "199")
    np.testing.assert_allclose(joint, [[1 + both, 1 - both], [1 - both, 1 + both]] / np.array(4.0), rtol=1e-9)


def test_a_site_may_have_the_name_of_the_added_one():
    model = gs.FactorGraph({"configuration": 2, "b": 2}, [(("configuration", "b"), [[1, 2], [3, 4]])])
    np.testing.assert_allclose(10 * gs.solve_exact(model).joint("b", "configuration"), [[1, 3], [2, 4]])


MODEL = gs.ising_grid((3, 3), coupling=0.3, field=0.1).observe({"4": 1})
EXACT = gs.solve_exact(MODEL)
PAIRS = [("0", "1"), ("0", "8"), ("2", "5")]


@pytest.fixture(scope="module")
def result() -> gs.Result:
    record = ["marginals", "draws", "pairs", gs.recorders.Joint([("0", "1"), ("8", "0")])]
    return gs.sample(MODEL, record=record, sweeps=5000, rng=1, progress=False)


def test_sampled_joints_have_standard_errors(result: gs.Result):
    for sites in [*PAIRS, ("0", "2", "6"), ("4", "0"), ("0", "4", "8"), ("3",), ("4",)]:
        joint, error, true = result.joint(*sites), result.joint_mcse(*sites), EXACT.joint(*sites)
        assert joint.shape == error.shape == (2,) * len(sites)
        assert (np.abs(joint - true) <= SIX * error + 1e-12).all()
        assert ((error > 0) == (true > 0)).all() or sites == ("4",)
    # recorded or counted from draws: the same
    set_of = result.joint("0", "8")
    drawn = [result.draw_sites.tolist().index(MODEL.index(site)) for site in ("0", "8")]
    counted = np.zeros((2, 2))
    np.add.at(counted, tuple(result.draws[:, :, k].ravel() for k in drawn), 1.0)
    np.testing.assert_allclose(set_of, counted / counted.sum(), atol=1e-6)


def test_errors_of_joints_are_the_spread_of_repeated_runs():
    runs = [gs.sample(MODEL, record=["draws"], sweeps=1000, chains=2, rng=seed, progress=False) for seed in range(40)]
    spread = np.std([run.joint("0", "8")[1, 1] for run in runs], ddof=1)
    said = np.mean([run.joint_mcse("0", "8")[1, 1] for run in runs])
    # 39 degrees of freedom: a ratio outside by chance once in 1e8
    assert 0.5 < spread / said < 1.9


def test_pair_moments_have_standard_errors(result: gs.Result):
    pairs, moments = result.pair_moments
    errors = result.pair_moments_mcse
    assert errors.shape == moments.shape == (len(pairs),)
    for (a, b), moment, error in zip(pairs.tolist(), moments, errors, strict=True):
        joint = EXACT.joint(a, b)
        true = joint[0, 0] + joint[1, 1] - joint[0, 1] - joint[1, 0]
        assert 0 < error < 0.05
        assert abs(moment - true) <= SIX * error


def test_errors_that_are_not_known():
    run = gs.sample(MODEL, gs.HerdedGibbs(), record=["draws"], sweeps=200, chains=1, rng=1, progress=False)
    assert run.joint("0", "8").sum() == pytest.approx(1.0)
    assert np.isnan(run.joint_mcse("0", "8")).all()


def test_mean_field_multiplies():
    field = gs.mean_field(MODEL)
    p, q = (np.array(list(field.marginals[site].values())) for site in ("0", "8"))
    np.testing.assert_allclose(field.joint("8", "4", "0"), np.stack([0 * np.outer(q, p), np.outer(q, p)], 1))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.joint(), "none was given"),
        (lambda r: r.joint(["0", "1"]), "Name sites one by one"),
        (lambda r: r.joint("0", "0"), "'0' is asked for twice"),
        (lambda r: r.joint("0", 0), "'0' is asked for twice"),
        (lambda r: r.joint("0", "nowhere"), "no site 'nowhere'"),
    ],
)
def test_what_has_no_joint(ask: Any, message: str, result: gs.Result):
    for answer in (result, EXACT):
        with pytest.raises(gs.errors.ModelError, match=message):
            ask(answer)


def test_joints_that_were_not_recorded():
    plain = gs.sample(MODEL, sweeps=500, rng=1, progress=False)
    with pytest.raises(
        gs.errors.ModelError, match=r"'0', '8' was not recorded; add gs\.recorders\.Joint\(\[\('0', '8'\)\]\)"
    ):
        plain.joint("0", "8")
    wide = gs.FactorGraph({f"s{k}": 3 for k in range(12)})
    with pytest.raises(gs.errors.ModelError, match="531,441 configurations"):
        gs.solve_exact(wide).joint(*wide.sites)


def test_numbers_have_no_joint_probabilities():
    pair = gs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], names=["u", "v"])
    run = gs.sample(pair, record=["draws"], sweeps=500, rng=1, progress=False)
    with pytest.raises(gs.errors.ModelError, match="'u' is a number"):
        run.joint("u", "v")


def test_exact_joints_of_too_many_configurations():
    with pytest.raises(gs.errors.ModelError, match="65,536 configurations together, more than 32,767"):
        gs.solve_exact(gs.ising_grid((4, 4), coupling=0.3)).joint(*map(str, range(16)))
