"""The sampler interface of dimod: reads are states of low energy, or follow Boltzmann's law."""

from __future__ import annotations

import itertools
import signal
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gibbsite as gs

dimod: Any = pytest.importorskip("dimod")

SAMPLER = gs.applications.DimodSampler()
FEW: dict[str, Any] = {"num_reads": 8, "num_sweeps": 100, "seed": 1}


def problem(vartype: str, scale: float = 1.0) -> Any:
    """Return a frustrated problem of twelve variables of all kinds of names."""
    rng = np.random.default_rng(5)
    names: list[Any] = [*"abcdef", 0, 1, 2, ("t", 1), ("t", 2), 7.5]
    linear = {v: scale * rng.normal() for v in names}
    quadratic = {pair: scale * rng.normal() for pair in itertools.combinations(names, 2)}
    return dimod.BinaryQuadraticModel(linear, quadratic, scale * 0.25, vartype)


def test_it_is_a_sampler() -> None:
    from dimod.testing.asserts import assert_sampler_api

    assert_sampler_api(gs.applications.DimodSampler())
    assert set(SAMPLER.parameters) >= {"num_reads", "num_sweeps", "beta", "seed"}
    assert all(needed in SAMPLER.properties for each in SAMPLER.parameters.values() for needed in each)


@pytest.mark.parametrize("method", ["auto", "annealed"])
def test_best_states_of_an_inference_are_rows(method: str) -> None:
    model = gs.FactorGraph(
        {"a": ["no", "yes"], "b": ["x", "y"], "c": ["l", "r"]},
        [(("a", "b"), [[1, 4], [2, 3]]), (("b", "c"), [[5, 1], [1, 6]]), ("a", [1.0, 1.5])],
    )
    answer = gs.infer(model, "MAP", method=method, best=2, rng=1, progress=False)
    found = gs.applications.to_sampleset(answer, model)
    assert len(found) == len(answer.ranked)
    for row, one in zip(found.data(sorted_by=None), answer.ranked, strict=True):
        assert row.energy == pytest.approx(-one.log_potential)
        labels = {site: model.labels(site)[int(value > 0)] for site, value in row.sample.items()}
        assert labels == one.assignment
    seen = model.observe({"a": "yes"})
    alone = gs.applications.to_sampleset(gs.infer(seen, "MAP"), seen)
    assert list(alone.variables) == ["b", "c"]
    with pytest.raises(gs.errors.IncompatibleError, match="different sites"):
        gs.applications.to_sampleset(answer, gs.ising_grid((3,)))


def test_draws_of_an_inference_are_rows() -> None:
    model = gs.ising([[0, 0.5], [0.5, 0]])
    answer = gs.infer(model, method="gibbs", sweeps=10, chains=2, record=["marginals", "draws"], rng=1)
    assert len(gs.applications.to_sampleset(answer, model)) == 20


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_ground_state_is_found_on_any_scale(vartype: str, scale: float) -> None:
    bqm = problem(vartype, scale)
    found = SAMPLER.sample(bqm, **FEW)
    assert len(found) == 8
    assert found.vartype is bqm.vartype
    assert set(found.variables) == set(bqm.variables)
    np.testing.assert_allclose(found.record.energy, bqm.energies(found), rtol=1e-12)
    best = dimod.ExactSolver().sample(bqm).first
    assert found.first.energy == pytest.approx(best.energy)
    assert found.first.sample == best.sample
    assert not found.info["interrupted"]


def test_reads_repeat_and_do_not_depend_on_threads() -> None:
    bqm = problem("SPIN")
    for how in ({}, {"beta": 0.3}):
        first, again, other = (
            SAMPLER.sample(bqm, **{**FEW, "num_reads": 20, "num_sweeps": 3, **how, **more}).record.sample
            for more in ({}, {"threads": 1}, {"seed": 2})
        )
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_reads_at_a_temperature_follow_the_law() -> None:
    # 8 states, 4000 independent reads; after 40 sweeps the law is within 1e-6 of its limit.
    bqm = dimod.BinaryQuadraticModel({"a": 0.5, "b": -0.3}, {("a", "b"): 0.4, ("b", "c"): -0.6}, 0.0, "SPIN")
    found = SAMPLER.sample(bqm, num_reads=4000, num_sweeps=40, beta=0.7, seed=3)
    assert found.info["beta_range"] == [0.7, 0.7]
    values = found.record.sample[:, [found.variables.index(v) for v in "abc"]]
    states = np.array(list(itertools.product((-1, 1), repeat=3)))
    seen = [int((values == state).all(axis=1).sum()) for state in states]
    weights = np.exp(-0.7 * bqm.energies((states, "abc")))
    assert stats.chisquare(seen, 4000 * weights / weights.sum()).pvalue > 1e-7


def test_dictionaries() -> None:
    h, J = {"a": 0.5}, {("a", "b"): -1.0}
    assert SAMPLER.sample_ising(h, J, **FEW).first.sample == {"a": -1, "b": -1}
    assert SAMPLER.sample_ising([0.5, 0.0], {(0, 1): 1.0}, **FEW).first.sample == {0: -1, 1: 1}
    found = SAMPLER.sample_qubo({("a", "a"): -1, ("a", "b"): 2, ("b", "b"): -0.5}, **FEW).first
    assert (found.sample, found.energy) == ({"a": 1, "b": 0}, -1.0)


def test_composites_take_it_as_a_child() -> None:
    tracked = dimod.TrackingComposite(SAMPLER)
    assert tracked.sample(problem("SPIN"), **FEW).first == SAMPLER.sample(problem("SPIN"), **FEW).first
    assert tracked.input["num_reads"] == 8


def test_problems_without_anything_to_do() -> None:
    empty = SAMPLER.sample(dimod.BinaryQuadraticModel({}, {}, 1.5, "SPIN"), num_reads=3)
    assert empty.record.energy.tolist() == [1.5] * 3
    flat = SAMPLER.sample(dimod.BinaryQuadraticModel({"a": 0.0}, {}, 0.0, "BINARY"), num_reads=40, num_sweeps=5)
    assert flat.record.energy.tolist() == [0.0] * 40


def test_starts_and_ranges() -> None:
    bqm = problem("BINARY")
    state = dict.fromkeys(bqm.variables, 1)
    # so cold that nothing moves uphill, and from a local minimum nothing at all
    low = SAMPLER.sample(bqm, initial_state=state, beta_range=(1e9, 1e9), num_sweeps=50, num_reads=2, seed=1)
    again = SAMPLER.sample(bqm, initial_state=low.first.sample, beta_range=[1e9, 1e9], num_sweeps=5, seed=2)
    assert again.first.sample == low.first.sample
    assert low.info["beta_range"] == [1e9, 1e9]


@pytest.mark.parametrize("size", [20, 100, 2000])
def test_the_last_temperature_leaves_few_variables_of_the_whole_problem_excited(size: int) -> None:
    ring = dimod.BinaryQuadraticModel({}, {(i, (i + 1) % size): -1.0 for i in range(size)}, 0.0, "SPIN")
    _, cold = SAMPLER.sample(ring, num_reads=1, num_sweeps=2, seed=1).info["beta_range"]
    # to turn a spin whose neighbours agree with it costs 4
    assert size * np.exp(-4.0 * cold) == pytest.approx(min(0.3, 1e-3 * size))


def test_ctrl_c_returns_the_reads_so_far() -> None:
    def press(status: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    found = SAMPLER.sample(problem("SPIN"), num_reads=2, num_sweeps=10**7, progress=press)
    assert found.info["interrupted"]
    assert len(found) == 2


def test_what_is_not_known_is_ignored_with_a_warning() -> None:
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning, match="Ignoring unknown kwarg: 'chain_strength'"):
        SAMPLER.sample(problem("SPIN"), chain_strength=3, **FEW)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"num_reads": 0}, "num_reads must be"),
        ({"num_sweeps": 2.5}, "num_sweeps must be"),
        ({"beta_range": (2.0, 1.0)}, "two positive numbers, the smaller first"),
        ({"beta_range": "hot"}, "beta_range must be real numbers, got text"),
        ({"beta": -1.0}, "beta must be a number not below 0"),
        ({"beta": 1.0, "beta_range": (1.0, 2.0)}, "not both"),
        ({"initial_state": [1, 2]}, "initial_state must be a mapping"),
        ({"initial_state": {"a": 1}}, "no state for"),
    ],
)
def test_bad_arguments(how: dict[str, Any], message: str) -> None:
    with pytest.raises(gs.GibbsiteError, match=message):
        SAMPLER.sample(problem("SPIN"), **how)
    with pytest.raises(gs.errors.IncompatibleError, match="takes a dimod BinaryQuadraticModel, got dict"):
        SAMPLER.sample({("a", "b"): 1.0})


# ---- results as sample sets


def test_draws_become_a_sample_set() -> None:
    bqm = problem("BINARY")
    model = gs.formats.from_bqm(bqm, beta=0.1)
    result = gs.sample(model, sweeps=50, chains=3, record=["draws", "energy"], rng=1, progress=False)
    for found in (gs.applications.to_sampleset(result, bqm), gs.applications.to_sampleset(result, model, beta=0.1)):
        assert len(found) == 150
        order = [list(map(str, found.variables)).index(name) for name in model.sites]
        assert np.array_equal(found.record.sample[:, order], result.draws.reshape(150, -1))
        np.testing.assert_allclose(found.record.energy, bqm.energies(gs.applications.to_sampleset(result, bqm)))
    part = model.observe({"a": 1})
    seen = gs.sample(part, sweeps=20, record="draws", rng=1, progress=False)
    energies = gs.applications.to_sampleset(seen, part).record.energy
    assert energies[0] == pytest.approx(-part.log_potential(seen.draws[0, 0].astype(int)))
    with pytest.raises(gs.errors.IncompatibleError, match="different sites"):
        gs.applications.to_sampleset(seen, bqm)


def test_best_states_and_codes_become_sample_sets() -> None:
    model = gs.ising(([0, 1, 2, 3], [1, 2, 3, 0], 0.5), [0.1, 0.0, 0.2, 0.3])
    best = gs.sample(model, gs.AnnealedGibbs(sweeps=50), rng=1, progress=False)
    found = gs.applications.to_sampleset(best, model)
    assert [dict(row) for row in found.samples()] == [dict.fromkeys(model.sites, 1)]
    assert found.first.energy == pytest.approx(-best.log_potential)
    codes = gs.solve_exact(model, task="PR").draw(7, np.random.default_rng(1))
    assert gs.applications.to_sampleset(codes, model).record.energy == pytest.approx(
        [-model.log_potential(c) for c in codes]
    )
    for wrong in (codes + 1, codes[:, :3], codes * 1.0, None):
        with pytest.raises(gs.errors.ModelError, match="draws must be a result or state codes 0 and 1 of 4 sites"):
            gs.applications.to_sampleset(wrong, model)
    means = gs.sample(model, sweeps=20, rng=1, progress=False)
    with pytest.raises(gs.errors.IncompatibleError, match='sample with record="draws"'):
        gs.applications.to_sampleset(means, model)
    with pytest.raises(gs.errors.IncompatibleError, match="has 3 states"):
        gs.applications.to_sampleset(means, gs.potts(([0], [1], 1.0), 3))


def test_without_dimod_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dimod", None)
    for use in (gs.applications.DimodSampler, lambda: gs.formats.to_bqm(gs.ising_grid((2, 2)))):
        with pytest.raises(gs.errors.IncompatibleError, match=r'needs dimod, .* pip install -e "\.\[dimod\]"'):
            use()


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_reads_start_at_given_states(vartype: str) -> None:
    """At a temperature of nearly zero, strong couplings hold a chain where it starts."""
    low = -1 if vartype == "SPIN" else 0
    bqm = dimod.BinaryQuadraticModel.from_ising({}, {(("t", 1), 7): -50.0, (7, "c"): -50.0})
    bqm = bqm.change_vartype(vartype)
    states = [{("t", 1): low, 7: low, "c": low}, {"c": 1, 7: 1, ("t", 1): 1}]
    found = SAMPLER.sample(bqm, beta=1.0, num_sweeps=5, initial_states=states, seed=1)
    assert [dict(row.sample) for row in found.data(sorted_by=None)] == states
    again = SAMPLER.sample(bqm, beta=1.0, num_sweeps=5, num_reads=3, initial_states=found, seed=1)
    assert [row.sample["c"] for row in again.data(sorted_by=None)] == [low, 1, low]
    for wrong, message in [
        ([{("t", 1): 1, 7: 1}], "no value of the variable 'c'"),
        ([{("t", 1): 1, 7: 1, "c": 5}], f"must have the values {low} and 1"),
        ("nonsense", "initial_states"),
    ]:
        with pytest.raises(gs.errors.ArgumentError, match=message):
            SAMPLER.sample(bqm, initial_states=wrong)
    with pytest.raises(gs.errors.ArgumentError, match="initial_state or initial_states, not both"):
        SAMPLER.sample(bqm, initial_states=states, initial_state=states[0])
