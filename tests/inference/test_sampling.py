"""Runs against exact answers, and everything that must not change their numbers.

Estimates are compared with enumeration at six standard errors. A normal deviate passes that with
probability 2e-9; some 600 numbers are compared, so the chance of one false alarm in this file is below
2e-6 (Bonferroni) for seeds chosen blindly. Seeds are fixed, so a test that passes goes on passing.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.results.measure.diagnostics import mcse
from gibbsite.results.verdict.judge import _left_out
from gibbsite.sampling import executor
from gibbsite.sampling.sweep import sweep_sites
from gibbsite.testing import tiny_models

MODELS = tiny_models()
EXACT = {name: gs.exact.enumerate(model) for name, model in MODELS.items()}
every_model = pytest.mark.parametrize("name", MODELS)

SIX = 6.0
ROUNDING = 1e-12


def run(model: gs.FactorGraph, *args: Any, **kwargs: Any) -> gs.Result:
    return gs.sample(model, *args, **{"rng": 1, "progress": False, **kwargs})


def saved(result: gs.Result, folder: Path) -> bytes:
    path = folder / "result.npz"
    result.save(path)
    return path.read_bytes()


def assert_marginals(result: gs.Result, exact: gs.exact.ExactResult, widest: float = 0.03) -> None:
    """Every probability within six standard errors, and those small enough to mean something."""
    assert set(result.marginals) == set(exact.marginals)
    for site, states in exact.marginals.items():
        for label, truth in states.items():
            error = result.mcse[site][label]
            assert error < widest
            assert abs(result.marginals[site][label] - truth) <= SIX * error + ROUNDING, (site, label)


# ---- agreement with enumeration


@every_model
@pytest.mark.parametrize("rao_blackwell", [True, False])
def test_marginals_agree_with_enumeration(name: str, rao_blackwell: bool) -> None:
    result = run(MODELS[name], sweeps=40_000, record=gs.Marginals(rao_blackwell))
    assert result.n_draws == 40_000
    assert result.diagnostics.converged, result.diagnostics.reasons
    assert_marginals(result, EXACT[name])


def test_conditionals_are_less_noisy_than_counts() -> None:
    counted = run(MODELS["grid"], sweeps=4000, record=gs.Marginals(rao_blackwell=False))
    averaged = run(MODELS["grid"], sweeps=4000)
    for site in MODELS["grid"].sites:
        assert averaged.mcse[site][1] < counted.mcse[site][1]
    assert run(MODELS["grid"], sweeps=100).plan.record == [
        {"name": "Marginals", "rao_blackwell": None, "batches": True}
    ]


@every_model
@pytest.mark.parametrize("rule", ["metropolised", "suwa-todo"])
def test_other_rules_agree_with_enumeration(name: str, rule: str) -> None:
    # no compilation: the rule is a number, not a type
    result = run(MODELS[name], gs.Gibbs(rule), sweeps=40_000)
    assert_marginals(result, EXACT[name])


@pytest.fixture(scope="module", params=MODELS)
def everything(request: pytest.FixtureRequest) -> tuple[str, gs.Result]:
    """One run that records all there is."""
    model = MODELS[request.param]
    sets = [model.sites[:2], tuple(reversed(model.sites)), model.sites[:1]]
    record = [gs.Marginals(rao_blackwell=False), gs.recorders.Joint(sets), "pairs", gs.Draws(), "energy", "best"]
    return request.param, run(model, sweeps=20_000, record=record)


def label_numbers(model: gs.FactorGraph, site: int) -> list[float]:
    labels = model.labels(site)
    numeric = all(isinstance(label, int) for label in labels)
    return [float(label) if numeric else code for code, label in enumerate(labels)]


def test_counts_are_counts_of_the_draws(everything: tuple[str, gs.Result]) -> None:
    name, result = everything
    model = MODELS[name]
    assert result.draws.shape == (4, 20_000, model.n_sites)
    for i, site in enumerate(model.sites):
        share = np.bincount(result.draws[:, :, i].ravel(), minlength=model.cards[i]) / 80_000
        assert list(result.marginals[site].values()) == pytest.approx(share.tolist(), abs=ROUNDING)
    numbers = EXACT[name].number(result.draws.reshape(-1, model.n_sites))
    joint = np.bincount(numbers, minlength=EXACT[name].law.size).reshape(EXACT[name].law.shape)
    np.testing.assert_allclose(result.joint(*model.sites), joint / 80_000, atol=ROUNDING)


def test_joint_agrees_with_enumeration(everything: tuple[str, gs.Result]) -> None:
    name, result = everything
    model, exact = MODELS[name], EXACT[name]
    sets = result._sets
    errors = mcse(result._trace)
    for number in range(sets.n_joint):
        members = sets.member[sets.start[number] : sets.start[number + 1]].tolist()
        law = exact.law.sum(axis=tuple(i for i in range(model.n_sites) if i not in members))
        law = law.transpose(np.argsort(np.argsort(members)))
        found = result.joint(*(model.sites[i] for i in members))
        cells = slice(sets.cell[number], sets.cell[number] + law.size)
        off = np.abs(found - law).ravel()
        # a configuration never seen has no spread; its count is then Poisson with mean below 20
        assert (off <= SIX * errors[cells] + 20 / 80_000).all()
        assert errors[cells].max() < 0.03


def test_joint_follows_the_order_of_the_question(everything: tuple[str, gs.Result]) -> None:
    name, result = everything
    a, b = MODELS[name].sites[:2]
    np.testing.assert_array_equal(result.joint(a, b), result.joint(b, a).T)


def test_pair_moments_agree_with_enumeration(everything: tuple[str, gs.Result]) -> None:
    name, result = everything
    model, exact = MODELS[name], EXACT[name]
    pairs, moments = result.pair_moments
    factors = sum(group.size for group in model.groups if group.arity == 2)
    assert len(pairs) == len(moments) == factors > 0
    for (i, j), moment in zip(pairs.tolist(), moments.tolist(), strict=True):
        law = exact.law.sum(axis=tuple(k for k in range(model.n_sites) if k not in (i, j)))
        law = law if i < j else law.T
        truth = label_numbers(model, i) @ law @ label_numbers(model, j)
        product = np.take(label_numbers(model, i), result.draws[:, :, i])
        product = product * np.take(label_numbers(model, j), result.draws[:, :, j])
        assert moment == pytest.approx(product.mean(), abs=1e-9)
        assert abs(moment - truth) <= SIX * float(mcse(product)) + 1e-9


def test_energy_agrees_with_enumeration(everything: tuple[str, gs.Result]) -> None:
    name, result = everything
    model, exact = MODELS[name], EXACT[name]
    assert result.energy.shape == (4, 20_000)
    for chain, draw in itertools.product(range(4), range(0, 20_000, 2500)):
        codes = result.draws[chain, draw]
        assert -result.energy[chain, draw] == pytest.approx(model.log_potential(codes), abs=1e-9)
    p = exact.probabilities[exact.probabilities > 0]
    truth = float(p @ (np.log(p) + exact.log_z))
    assert abs(result.energy.mean() + truth) <= SIX * float(mcse(result.energy)) + 1e-9


def test_best_state_is_the_most_probable_one(everything: tuple[str, gs.Result]) -> None:
    name, result = everything
    model, exact = MODELS[name], EXACT[name]
    top = float(np.log(exact.probabilities.max())) + exact.log_z
    assert result.log_potential == pytest.approx(top, abs=1e-9)
    assert result.log_potential == pytest.approx(-float(result.energy.min()), abs=1e-9)
    assert model.log_potential(result.assignment) == pytest.approx(top, abs=1e-9)


# ---- length of a run


def draws_of(**kwargs: Any) -> NDArray[np.int16]:
    return run(MODELS["glass"], record=gs.Draws(), chains=2, **kwargs).draws


def test_thin_keeps_every_third_sweep() -> None:
    dense = draws_of(sweeps=31, warmup=2)
    np.testing.assert_array_equal(draws_of(sweeps=gs.Sweeps(31, thin=3), warmup=2), dense[:, 2::3])


def test_thin_averages_the_conditionals_at_the_draws() -> None:
    sparse = run(MODELS["glass"], sweeps=gs.Sweeps(40, thin=4), warmup=0, chains=2)
    dense = run(MODELS["glass"], sweeps=40, warmup=0, chains=2)
    np.testing.assert_array_equal(sparse._trace, dense._trace[:, 3::4])


def test_warmup_is_left_out() -> None:
    np.testing.assert_array_equal(draws_of(sweeps=10, warmup=5), draws_of(sweeps=15, warmup=0)[:, 5:])


def test_warmup_is_a_tenth_by_default() -> None:
    assert run(MODELS["glass"], sweeps=50).warmup == 5
    assert run(MODELS["glass"]).warmup == 100
    assert run(MODELS["glass"], sweeps=gs.Steps(4 * 70)).warmup == 7


def test_steps_end_with_a_shorter_round() -> None:
    n = MODELS["glass"].n_sites
    found = draws_of(sweeps=gs.Steps(6 * n + 3), warmup=0)
    assert found.shape == (2, 7, n)
    whole = draws_of(sweeps=7, warmup=0)
    np.testing.assert_array_equal(found[:, :6], whole[:, :6])
    # three of the four sites of the last sweep have been visited, the fourth stands where it stood
    np.testing.assert_array_equal(found[:, 6, :3], whole[:, 6, :3])
    np.testing.assert_array_equal(found[:, 6, 3], whole[:, 5, 3])


def test_fewer_steps_than_sites_are_one_draw() -> None:
    found = draws_of(sweeps=gs.Steps(2), warmup=0)
    assert found.shape[1] == 1
    np.testing.assert_array_equal(found[:, 0, :2], draws_of(sweeps=1, warmup=0)[:, 0, :2])


def test_seconds_end_a_run_early() -> None:
    result = run(MODELS["glass"], sweeps=10**12, seconds=0.2, warmup=3, record="energy")
    assert 1 <= result.n_draws < 10**12
    assert result.warmup == 3
    assert not result.interrupted
    shorter = run(MODELS["glass"], sweeps=result.n_draws, warmup=3, record="energy")
    np.testing.assert_array_equal(shorter.energy, result.energy)


def test_seconds_alone_are_a_budget() -> None:
    result = run(MODELS["glass"], seconds=0.2)
    assert result.n_draws >= 1
    assert result.plan.warmup == result.warmup


def test_no_time_at_all_still_gives_a_draw() -> None:
    result = run(MODELS["glass"], seconds=1e-9)
    assert (result.warmup, result.n_draws) == (0, 1)
    assert not result.diagnostics.converged


def test_seconds_do_not_cut_a_run_that_fits(tmp_path: Path) -> None:
    assert saved(run(MODELS["glass"], sweeps=20, seconds=1e6), tmp_path) == saved(
        run(MODELS["glass"], sweeps=20), tmp_path
    )


# ---- evidence


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("mixed", {"a": 1}),
        ("mixed", {"b": "z", "fixed": 0}),
        ("mixed", {"a": [0.2, 0.8]}),
        ("mixed", {"c": 0, "b": {"x": 1.0, "y": 0.5, "z": 0.0}}),
        ("tables", {"q": 1}),
        ("tables", {"p": [3.0, 1.0], "s": 0}),
        ("grid", {"1": 1}),
        ("glass", {"0": -1, "2": {-1: 0.9, 1: 0.1}}),
    ],
)
def test_evidence_agrees_with_enumeration(name: str, evidence: dict[str, Any]) -> None:
    model = MODELS[name].observe(evidence)
    result = run(model, sweeps=20_000)
    assert_marginals(result, gs.exact.enumerate(model))
    # the joint law, conditioned by hand
    joint = EXACT[name].law.copy()
    for site, seen in evidence.items():
        i = MODELS[name].index(site)
        labels = MODELS[name].labels(i)
        if isinstance(seen, dict):
            likelihood = np.array([seen[label] for label in labels])
        elif isinstance(seen, list):
            likelihood = np.array(seen)
        else:
            likelihood = np.array([float(label == seen) for label in labels])
            assert result.marginals[site] == {label: float(label == seen) for label in labels}
            assert set(result.mcse[site].values()) == {0.0}
        joint *= likelihood.reshape([-1 if k == i else 1 for k in range(joint.ndim)])
    joint /= joint.sum()
    for i, site in enumerate(MODELS[name].sites):
        law = joint.sum(axis=tuple(k for k in range(joint.ndim) if k != i))
        for label, truth in zip(MODELS[name].labels(i), law, strict=True):
            off = abs(result.marginals[site][label] - truth)
            assert off <= SIX * result.mcse[site][label] + ROUNDING


@pytest.mark.parametrize("budget", [{"sweeps": 50}, {"sweeps": gs.Steps(7)}, {"seconds": 0.02}])
def test_all_sites_observed(budget: dict[str, Any]) -> None:
    seen = {"a": 1, "b": "y", "c": 0, "lonely": 2, "fixed": 0}
    model = MODELS["mixed"].observe(seen)
    assert model.n_sites == 0
    result = run(model, record=["marginals", "draws", "energy", "best", "pairs"], **budget)
    assert result.n_draws >= 1
    assert {site: max(p, key=p.get) for site, p in result.marginals.items()} == seen  # type: ignore[arg-type]
    assert result.assignment == seen
    assert result.log_potential == pytest.approx(MODELS["mixed"].log_potential(seen), abs=1e-9)
    assert (-result.energy == result.log_potential).all()
    assert result.diagnostics.converged, "nothing is left to estimate"


# ---- sizes


def test_one_site_is_exact() -> None:
    model = gs.FactorGraph({"coin": ["heads", "tails"]}, [("coin", [3.0, 1.0])])
    result = run(model, sweeps=500)
    assert result.marginals["coin"]["heads"] == pytest.approx(0.75, abs=ROUNDING)
    counted = run(model, sweeps=20_000, record=gs.Marginals(rao_blackwell=False))
    assert_marginals(counted, gs.exact.enumerate(model))


def test_one_chain() -> None:
    result = run(MODELS["tables"], sweeps=40_000, chains=1)
    assert result.totals.shape[0] == result.chains == 1
    assert result.diagnostics.converged
    assert_marginals(result, EXACT["tables"])


def test_chains_do_not_depend_on_their_number() -> None:
    many = run(MODELS["tables"], sweeps=50, chains=5, record="draws").draws
    few = run(MODELS["tables"], sweeps=50, chains=2, record="draws").draws
    np.testing.assert_array_equal(many[:2], few)
    assert len({chain.tobytes() for chain in many}) == 5


def chain_marginals(length: int, coupling: float, field: float) -> NDArray[np.float64]:
    """P(+1) along an open Ising chain, by transfer matrices."""
    spin = np.array([-1.0, 1.0])
    move = np.exp(coupling * np.outer(spin, spin) + field * spin)
    forward, backward = [np.exp(field * spin)], [np.ones(2)]
    for _ in range(length - 1):
        forward.append(forward[-1] @ move / move.sum())
        backward.append(move @ backward[-1] / move.sum())
    weight = np.array(forward) * np.array(backward[::-1])
    return weight[:, 1] / weight.sum(axis=1)


@pytest.mark.parametrize("coupling", [(0.4, 0.0), (0.0, 0.4)])
def test_a_lattice_of_200_by_200(coupling: tuple[float, float]) -> None:
    # coupled along one axis only, the lattice is 200 independent chains, solvable exactly
    model = gs.ising_grid((200, 200), coupling=coupling, field=0.15)
    result = run(model, sweeps=40, warmup=20, chains=2)
    assert len(result.marginals) == 40_000
    found = result.marginals.to_array()[:, 1].reshape(200, 200)
    copies = found if coupling[0] else found.T
    error = copies.std(axis=1, ddof=1) / np.sqrt(200)
    off = np.abs(copies.mean(axis=1) - chain_marginals(200, 0.4, 0.15))
    assert (off <= SIX * error).all()
    assert error.max() < 0.01


# ---- new weights


def test_reweighted_model_gives_the_result_of_a_fresh_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    edges = np.triu(rng.normal(size=(4, 4)), 1)
    old = gs.ising(edges, np.zeros(4))
    run(old, sweeps=10)
    group = old.group("couplings")
    new_edges = edges + np.triu(rng.normal(size=(4, 4)), 1)
    weights = [new_edges[i, j] for i, j in group.scopes.tolist()]
    new = old.reweight(couplings=weights, fields=[0.1, 0.2, -0.3, 0.4])
    fresh = gs.ising(new_edges, [0.1, 0.2, -0.3, 0.4])
    compiled = len(sweep_sites.signatures)
    assert saved(run(new, sweeps=200), tmp_path) == saved(run(fresh, sweeps=200), tmp_path)
    assert saved(run(new, sweeps=200), tmp_path) != saved(run(old, sweeps=200), tmp_path)
    assert len(sweep_sites.signatures) == compiled, "new weights must not cost a compilation"


def test_reweighting_forgets_the_zeros_of_the_old_weights() -> None:
    table = gs.factors.TableFactors([(0, 1)], np.log([[[1, 1e-3], [1e-3, 1]]]), name="t")
    apart = gs.FactorGraph({"a": 2, "b": 2}, groups=[table])
    with np.errstate(divide="ignore"):
        same = np.log([[[1.0, 0.0], [0.0, 1.0]]])
    equal = apart.reweight(t=same)
    differ = equal.reweight(t=same[:, ::-1])
    assert run(apart, sweeps=10).n_draws == 10
    for model, sign in [(equal, 0), (differ, 1), (equal, 0)]:
        values = run(model, sweeps=10, record="draws").draws
        assert ((values[..., 0] ^ values[..., 1]) == sign).all()


# ---- what must not change the numbers


@pytest.mark.parametrize("name", ["grid", "tables"])
def test_threads_do_not_change_a_byte(name: str, tmp_path: Path) -> None:
    record = ["marginals", "draws", "energy", "best", "pairs"]
    files = {saved(run(MODELS[name], sweeps=300, threads=t, record=record), tmp_path) for t in (1, 2, 4)}
    assert len(files) == 1


@pytest.mark.parametrize("budget", [{"sweeps": 700}, {"sweeps": gs.Steps(2001, thin=2)}, {"sweeps": 90, "warmup": 0}])
def test_blocks_do_not_change_a_byte(budget: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = ["marginals", "draws", "energy", "best", "pairs"]
    files = set()
    for seconds in (0.0, 0.001, 10.0):
        monkeypatch.setattr(executor.Threads, "block_seconds", seconds)
        files.add(saved(run(MODELS["tables"], record=record, **budget), tmp_path))
    assert len(files) == 1


def test_seeds_of_every_kind(tmp_path: Path) -> None:
    model = MODELS["glass"]
    seven = saved(run(model, sweeps=30, rng=7), tmp_path)
    assert saved(run(model, sweeps=30, rng=np.int64(7)), tmp_path) == seven
    assert saved(run(model, sweeps=30, rng=np.random.SeedSequence(7)), tmp_path) == seven
    assert saved(run(model, sweeps=30, rng=8), tmp_path) != seven
    huge = 2**127 + 1
    assert run(model, sweeps=30, rng=huge).plan.entropy == huge


def children() -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(7).spawn(2)


@pytest.mark.parametrize(
    "rng",
    [
        lambda: None,
        lambda: np.random.default_rng(7),
        lambda: np.random.SeedSequence([1, 2, 3]),
        lambda: children()[1],
        lambda: np.random.SeedSequence(),
    ],
)
def test_entropy_repeats_a_run(rng: Any, tmp_path: Path) -> None:
    first = run(MODELS["glass"], sweeps=30, rng=rng())
    again = run(MODELS["glass"], sweeps=30, rng=first.plan.entropy)
    assert saved(first, tmp_path) == saved(again, tmp_path)


def test_seeds_that_differ_give_runs_that_differ() -> None:
    generator = np.random.default_rng(7)
    seeds = [generator, generator, None, None, *children(), np.random.SeedSequence(7), 8]
    runs = [run(MODELS["glass"], sweeps=30, rng=seed, record="draws").draws.tobytes() for seed in seeds]
    assert len(set(runs)) == len(runs)


# ---- starts and sites that are left out


def test_start_is_where_the_chains_begin() -> None:
    # the sequence never visits sites 1 to 3, so the draws show where they began
    model = MODELS["glass"]
    codes = np.array([[0, 1, 0, 1], [1, 0, 1, 0]])
    scan = gs.scans.FixedOrder([0])
    found = run(model, scan=scan, sweeps=3, chains=2, start=codes, record="draws").draws
    assert (found[:, :, 1:] == codes[:, None, 1:]).all()
    labels = {"0": -1, "1": 1, "2": 1, "3": -1}
    found = run(model, scan=scan, sweeps=3, chains=2, start=labels, record="draws").draws
    assert (found[:, :, 1:] == [1, 1, 0]).all()


@pytest.mark.parametrize("scan", [gs.scans.FixedOrder([0, 1, 0, 3]), gs.RandomScan(weights=[1, 1, 0, 2])])
@pytest.mark.parametrize("record", ["marginals", "draws"])
@pytest.mark.parametrize("chains", [1, 2, 4])
def test_a_site_never_visited_is_reported(scan: gs.scans.Scan, record: str, chains: int) -> None:
    for start in (None, [0, 0, 0, 0], [1, 1, 1, 1]):
        with pytest.warns(gs.ConvergenceWarning, match="the scan never visits 1 sites, the first 2"):
            result = run(MODELS["glass"], scan=scan, sweeps=3000, chains=chains, start=start, record=record)
        assert not result.diagnostics.converged
        assert result.diagnostics.frozen == ("2",)
    if record == "marginals":
        assert result.marginals["2"] == pytest.approx({-1: 0.0, 1: 1.0}, abs=ROUNDING)


def test_a_sequence_that_visits_every_site_is_judged_by_its_draws() -> None:
    result = run(MODELS["glass"], scan=gs.scans.FixedOrder(["3", "0", "1", "2", "0"]), sweeps=40_000)
    assert result.diagnostics.converged
    assert_marginals(result, EXACT["glass"])


def test_every_scan_names_the_sites_it_leaves_out() -> None:
    model = MODELS["mixed"]
    graph = gs.graphs.compile_graph(model)
    for scan in (gs.Systematic(), gs.Systematic([4, 3, 2, 1, 0]), gs.scans.Palindromic(), gs.RandomScan()):
        assert scan.left_out(graph, model).tolist() == []
    for scan in (gs.scans.Shuffled(), gs.Chromatic(), gs.RandomScan([1, 2, 3, 4, 5])):
        assert scan.left_out(graph, model).tolist() == []
    assert gs.scans.FixedOrder(["a", "fixed", "a"]).left_out(graph, model).tolist() == [1, 2, 3]
    assert gs.RandomScan({"a": 2.0, "c": 1.0}).left_out(graph, model).tolist() == [1, 3, 4]


def test_a_site_of_one_state_may_be_left_out() -> None:
    # leaving out a site that cannot move anyway is no reason for doubt
    model = MODELS["mixed"]
    setup = SimpleNamespace(
        model=model, graph=gs.graphs.compile_graph(model), scan=gs.scans.FixedOrder(["a", "b", "c"])
    )
    states = [np.array([0, 0, 0, 2, 0])]
    unreached = _left_out(SimpleNamespace(setup=setup, states=states))  # type: ignore[arg-type]
    assert [(doubt.site, doubt.state) for doubt in unreached] == [("lonely", 0)]


def test_energy_is_minus_the_log_potential_constants_included() -> None:
    torus = gs.ising_grid((4, 4), coupling=1.0, periodic=True)
    result = gs.sample(torus, record=["draws", "energy"], start=np.ones(16, int), sweeps=2, warmup=0, rng=1)
    up = result.draws.all(axis=2)
    assert up.any()
    assert (result.energy[up] == -32.0).all()
    seen = torus.observe({"0": 1, "1": 1, "6": -1})
    result = gs.sample(seen, record=["draws", "energy"], sweeps=20, rng=1, progress=False)
    found = [seen.log_potential(codes) for codes in result.draws[0]]
    np.testing.assert_allclose(result.energy[0], -np.array(found), rtol=1e-12)
