"""``gs.infer``: every method answers its tasks, and says what its answer is."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference import ARGUMENTS, METHODS, SAMPLING, WEIGHTED
from gibbsite.inference.best_states.search import search_best
from gibbsite.results.verdict import known_marginals

RNG = np.random.default_rng(8)
# A chain of eight sites with three states that like to agree: all methods answer, and the answers are known.
CHAIN = gs.FactorGraph(
    {f"s{i}": ["a", "b", "c"] for i in range(8)},
    [((f"s{i}", f"s{i + 1}"), np.exp(RNG.uniform(0.2, 1.0) * np.eye(3))) for i in range(7)]
    + [((f"s{i}",), np.exp(RNG.normal(size=3))) for i in range(8)],
)
EXACT = gs.solve_exact(CHAIN)
# The same size as a Bayesian network, which some methods of weighted draws need.
NETWORK = gs.FactorGraph(
    {f"s{i}": ["a", "b", "c"] for i in range(8)},
    [("s0", [0.2, 0.3, 0.5]), *(((f"s{i}", f"s{i + 1}"), RNG.dirichlet(np.ones(3), 3)) for i in range(7))],
    directed=True,
)


def ask(task: str, method: Any, model: gs.FactorGraph = CHAIN, **given: Any) -> Any:
    if method != "exact":  # which refuses what it has no use for
        given = given if method == "bp" else {"rng": 1, **given}
    return gs.infer(model, task, method=method, progress=False, **given)


@pytest.mark.parametrize("task", ["MAR", "MAP", "PR"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_its_tasks_and_no_others(method: str, task: str) -> None:
    if task not in METHODS[method]:
        with pytest.raises(gs.errors.ModelError, match=f"'{method}' does not answer {task}; choose one of auto, exact"):
            ask(task, method)
        return
    if method == "proved":
        pytest.importorskip("pytoulbar2")
    model = NETWORK if method in WEIGHTED else CHAIN
    exact = gs.solve_exact(NETWORK) if method in WEIGHTED else EXACT
    budget = "draws" if method in WEIGHTED else "sweeps"
    answer = ask(task, method, model, **({} if method == "exact" else {budget: 2048}))
    said = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert {"task", "method", "reason", "kind", "diagnostics", "seconds", "plan"} <= set(said)
    assert {"converged", "reasons"} <= set(said["diagnostics"])
    assert said["plan"]
    assert (said["kind"] == "exact") == (answer.method in ("exact", "proved"))
    if task == "MAR":
        assert gs.compare(answer, exact).max_abs < 0.2
        assert set(said["mcse"]) == set(CHAIN.sites)
    elif task == "MAP":
        assert answer.assignment == EXACT.assignment
        assert answer.log_potential == pytest.approx(EXACT.log_potential)
        assert said["proved"] == (answer.method in ("exact", "proved"))
    elif answer.kind == "estimate":
        assert abs(answer.log_z - exact.log_z) <= 6.0 * answer.log_z_error + 1e-9
        if method != "forward":  # which has no bounds
            assert said["log_z_bounds"][0] <= exact.log_z + 1e-9
    else:
        assert answer.log_z <= exact.log_z + 1e-9


def test_mean_field_says_that_it_is_approximate_and_a_bound() -> None:
    law = gs.mean_field(CHAIN, progress=False)
    marginals, partition = ask("MAR", "mean-field"), ask("PR", "mean-field")
    assert gs.compare(marginals, law).max_abs == 0.0
    assert gs.compare(marginals, EXACT).max_z is None
    assert (marginals.kind, partition.kind) == ("approximation", "lower bound")
    assert partition.log_z == law.log_z < EXACT.log_z
    assert partition.to_dict()["log_z_error"] is None
    assert ask("PR", "exact").to_dict()["log_z_error"] == 0.0
    assert "approximate" in marginals.line()
    assert "log Z >=" in partition.line()
    assert marginals.converged is None
    assert all(math.isnan(error) for error in marginals.mcse["s0"].values())
    assert marginals.to_dict()["mcse"]["s0"] == {"a": None, "b": None, "c": None}


def test_mean_field_takes_its_own_arguments() -> None:
    with pytest.warns(gs.ConvergenceWarning):
        answer = ask("MAR", "mean-field", damping=0.01, parallel=True, sweeps=3)
    assert not answer.converged
    assert answer.to_dict()["plan"]["damping"] == 0.01
    assert answer.to_dict()["diagnostics"]["sweeps"] == 3


# method, task, and an argument that it has no use for
USELESS = [
    ("mean-field", "MAR", {"chains": 4}),
    ("mean-field", "PR", {"scan": gs.Chromatic()}),
    ("gibbs", "MAR", {"damping": 0.5}),
    (gs.Gibbs(), "MAR", {"parallel": True}),
    ("exact", "MAR", {"sweeps": 100}),
    ("exact", "MAP", {"seconds": 5}),
    ("exact", "PR", {"rng": 1}),
    ("annealed", "MAP", {"warmup": 5}),
    ("auto", "MAP", {"warmup": 5}),
    ("auto", "MAR", {"damping": 0.5}),
]


@pytest.mark.parametrize("method, task, given", USELESS, ids=str)
def test_arguments_without_effect_are_refused(method: Any, task: str, given: dict[str, Any]) -> None:
    with pytest.raises(gs.errors.ArgumentError, match=r"has no effect with|belongs to sampling runs") as refused:
        gs.infer(CHAIN, task, method=method, progress=False, **given)
    assert set(given) <= set(refused.value.arguments)


# invalid arguments, though the model is solved exactly, and the messages
SENSELESS = [
    ({"bogus": 1}, "argument 'bogus' is unknown; choose one of"),
    ({"sweep": 100}, "argument 'sweep' is unknown; did you mean 'sweeps'?"),
    ({"chains": 0}, "chains must be a whole number of at least 1"),
    ({"chains": 2.5}, "chains must be"),
    ({"rng": "x"}, "rng must be an integer"),
    ({"seconds": -1}, "seconds must be a positive number"),
    ({"sweeps": 0}, "sweeps must be"),
    ({"warmup": -3}, "warmup must be"),
    ({"threads": 0}, "threads must be"),
    ({"criteria": "x"}, "criteria must be gs.Criteria"),
    ({"checkpoint": 5}, "checkpoint must be the path of a file"),
    ({"scan": "random"}, "scan must be a scan"),
    ({"record": "margin"}, "Recorder 'margin' is unknown; did you mean 'marginals'?"),
    ({"start": "rendom"}, "start 'rendom' is unknown; did you mean 'random'?"),
    ({"start": 3.5}, "A start needs"),
    ({"progress": 3}, "progress must be"),
    ({"task": "MAQ"}, "task 'MAQ' is unknown; did you mean 'MAR'?"),
    ({"method": "exat"}, "method 'exat' is unknown; did you mean 'exact'?"),
]


@pytest.mark.parametrize("given, said", SENSELESS, ids=str)
def test_arguments_are_checked_where_an_exact_solution_needs_none(given: dict[str, Any], said: str) -> None:
    with pytest.raises(gs.errors.ArgumentError) as refused:
        gs.infer(CHAIN, **given)
    assert said in str(refused.value)


def test_arguments_of_sampling_that_were_not_used_are_named() -> None:
    generator = np.random.default_rng(1)
    answer = gs.infer(CHAIN, chains=2, rng=generator, seconds=5, progress=False)
    assert answer.method == "exact"
    assert answer.reason.endswith("s; chains, rng not used")
    assert "not used" in answer.line()
    assert generator.integers(1 << 30) == np.random.default_rng(1).integers(1 << 30)
    assert "not used" not in gs.infer(CHAIN, seconds=5).reason


def test_the_table_of_arguments_is_that_of_the_functions() -> None:
    def named(function: Any) -> set[str]:
        # those that infer sets itself
        own = {"model", "kernel", "progress", "best", "until_sure", "error", "query"}
        names = set(inspect.signature(function).parameters) - own
        return {"sweeps" if name == "max_iterations" else name for name in names}  # infer has one name for both

    assert set(SAMPLING) - {"dispersed_starts"} == named(gs.sample) - {"criteria"}
    assert set(ARGUMENTS["annealed"]) == named(search_best)
    assert set(ARGUMENTS["mean-field"]) == named(gs.mean_field)
    assert set(ARGUMENTS["bp"]) == named(gs.belief_propagation)


def test_the_default_start_of_a_plan_is_null() -> None:
    for method, task in (("gibbs", "MAR"), ("annealed", "MAP")):
        answer = ask(task, method, sweeps=20)
        assert json.loads(json.dumps(answer.to_dict()))["plan"]["start"] is None
    named = dict.fromkeys(CHAIN.sites, "a")
    assert ask("MAR", "gibbs", sweeps=20, start=named).to_dict()["plan"]["start"] == str(named)


def test_herded_answers_have_a_note_and_no_errors() -> None:
    for method in ("herded", "herded-shared"):
        answer = ask("MAR", method, sweeps=20_000)
        assert gs.compare(answer, EXACT).max_abs < 0.01
        [note] = answer.remarks
        assert "not guaranteed" in note
        assert "NOT JUDGED: no standard errors (4 chains x 20,000 draws)" in answer.line()
        [reason] = answer.reasons
        assert "there are no standard errors" in reason
        assert np.isnan(answer.mcse.cells).all()


def test_quasi_runs_are_whole_periods() -> None:
    assert ask("MAR", "quasi", seconds=20).result.n_draws == 1024
    with pytest.raises(gs.errors.ModelError, match=r"take sweeps=1024 \(m = 10\) or sweeps=2048 \(m = 11\)"):
        ask("MAR", "quasi", sweeps=2000)
    with pytest.raises(gs.errors.IncompatibleError, match="needs a scan of fixed order"):
        ask("MAR", "quasi", scan=gs.RandomScan())


def test_observed_sites_are_certain_in_every_answer() -> None:
    seen = CHAIN.observe({"s3": "b"})
    answer = ask("MAR", "mean-field", seen)
    assert answer.marginals["s3"] == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert answer.mcse["s3"] == {"a": 0.0, "b": 0.0, "c": 0.0}
    found = ask("MAP", "annealed", seen, sweeps=500)
    assert found.assignment == gs.solve_exact(seen, task="MAP").assignment


@pytest.mark.parametrize("kernel", [gs.Gibbs(), gs.Gibbs("suwa-todo"), gs.AnnealedGibbs("exponential", 300)])
def test_any_kernel_may_look_for_the_best_state(kernel: gs.kernels.Kernel) -> None:
    answer = ask("MAP", kernel, sweeps=3000)
    assert answer.method == type(kernel).__name__
    assert answer.assignment == EXACT.assignment
    assert answer.kind == "best found"


def test_the_best_state_is_taken_uphill() -> None:
    # one hot sweep: whatever it ends at, single sites of the answer cannot be improved
    model = gs.potts_grid((12, 12), states=3, coupling=0.6)
    answer = ask("MAP", gs.AnnealedGibbs([9.0]), model)
    codes = np.array([answer.assignment[name] for name in model.sites])
    for site in range(0, 144, 7):
        for state in range(3):
            other = codes.copy()
            other[site] = state
            assert model.log_potential(other) <= answer.log_potential + 1e-9


def test_a_kernel_that_searches_gives_no_marginals() -> None:
    with pytest.raises(gs.errors.ModelError, match="AnnealedGibbs does not answer MAR"):
        ask("MAR", gs.AnnealedGibbs())
    with pytest.raises(gs.errors.ModelError, match="method must be a name or a kernel"):
        ask("MAR", 3)
    with pytest.raises(gs.errors.ModelError, match=r"'magic' is unknown; choose one of auto, exact, .*annealed, gibbs"):
        ask("MAR", "magic")


def test_log_z_of_what_is_too_large_for_exact_is_estimated_above_its_bound() -> None:
    dense = gs.ising(np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1) / 20.0)
    answer = ask("PR", "auto", dense, sweeps=1000)
    assert answer.method == "tempered"
    assert "does not fit" in answer.reason
    assert answer.kind == "estimate"
    bound = ask("PR", "mean-field", dense).log_z
    assert answer.log_z_bounds == (bound, math.inf)
    assert bound > 80 * math.log(2)  # that of the uniform law
    assert bound < answer.log_z + 4 * answer.log_z_error
    # a high-temperature expansion: log cosh of every pair, to which triangles add little
    couplings = np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1) / 20.0
    assert abs(answer.log_z - 80 * math.log(2) - np.log(np.cosh(couplings)).sum()) < 0.5


def test_mini_buckets_bound_what_is_too_large_for_exact() -> None:
    dense = gs.ising(np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1))
    answer = ask("PR", "mini-bucket", dense, seconds=1.0)
    lower, upper = answer.log_z_bounds
    assert 80 * math.log(2) < lower < upper  # that of the uniform law
    assert not answer.converged


def test_chains_that_disagree_are_not_trusted() -> None:
    dense = gs.ising(np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1))
    with pytest.warns(gs.ConvergenceWarning):
        answer = ask("MAP", "annealed", dense, sweeps=5)
    assert not answer.converged
    assert "found by one chain of 4" in answer.reasons[0]
    assert "NOT CONVERGED: the best state found by 1 of 4 chains" in answer.line()


def test_the_accuracy_is_asked_of_the_sites_that_are_asked_for() -> None:
    """A free site has independent draws; two that stick together have draws that last for many sweeps."""
    stuck = [(("a", "b"), [[60.0, 1.0], [1.0, 60.0]])]
    model = gs.FactorGraph({"a": 2, "b": 2, "free": 2}, [*stuck, ("free", [1.0, 3.0])])
    given: dict[str, Any] = {"method": "gibbs", "sweeps": 60_000, "rng": 1, "progress": False}
    whole = gs.infer(model, **given)
    asked = gs.infer(model, criteria=gs.Criteria(query=["free"]), **given)
    other = gs.infer(model, criteria=gs.Criteria(query=["a", "free"]), **given)
    assert (whole.converged, asked.converged, other.converged) == (False, True, False)
    assert len(whole.reasons) == 1 and "standard errors are up to" in whole.reasons[0]
    assert asked.diagnostics.figures["mcse_max"] == max(asked.mcse["free"].values())
    assert asked.diagnostics.figures["n_draws"] < 60_000  # it ends as soon as the site asked for is known
    assert "of the sites asked for" in other.reasons[0]
    assert "judged at the sites asked for" in asked.line()
    # chains that do not mix are refused whatever is asked for
    split = gs.FactorGraph({"a": 2, "b": 2, "free": 2}, [(("a", "b"), [[1e7, 1.0], [1.0, 1e7]])])
    assert gs.infer(split, criteria=gs.Criteria(query=["free"]), **given).converged is False
    with pytest.raises(gs.errors.ArgumentError, match="the task is PR"):
        gs.infer(model, "PR", criteria=gs.Criteria(query=["a"]))
    with pytest.raises(gs.errors.ArgumentError, match="list of sites"):
        gs.infer(model, criteria=gs.Criteria(query="a"))


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_other_sites_mix_to_a_lower_standard() -> None:
    """Two sites that stick together have 50 to 400 effective draws: enough if another one is asked for."""
    stuck = [(("a", "b"), [[60.0, 1.0], [1.0, 60.0]])]
    model = gs.FactorGraph({"a": 2, "b": 2, "free": 2}, [*stuck, ("free", [1.0, 3.0])])
    given: dict[str, Any] = {"sweeps": 1000, "rng": 1, "progress": False}
    whole = gs.sample(model, **given)
    asked = gs.sample(model, criteria=gs.Criteria(query=["free"]), **given)
    assert np.array_equal(whole.totals, asked.totals)
    assert 50 < whole.diagnostics.ess_min < 400 < asked.diagnostics.ess_min
    assert (whole.diagnostics.converged, asked.diagnostics.converged) == (False, True)
    short = gs.sample(model, criteria=gs.Criteria(query=["free"]), **{**given, "sweeps": 600})
    assert not short.diagnostics.converged
    assert "a site that was not asked for" in short.diagnostics.reasons[0]


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_rare_states_of_other_sites_count_by_their_influence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rare state of two sites that stick together matters for "near" and not for "far"."""
    monkeypatch.setattr(known_marginals, "TINY", 0)  # visits are not measured where exact marginals agree
    rare = [("a", [0.998, 0.002]), (("a", "b"), [[0.9995, 0.0005], [0.02, 0.98]])]
    near = (("b", "near"), [[0.6, 0.4], [0.05, 0.95]])
    model = gs.FactorGraph({"a": 2, "b": 2, "near": 2, "far": 2}, [*rare, near, ("far", [0.4, 0.6])], directed=True)
    given: dict[str, Any] = {"sweeps": 20_000, "rng": 1, "progress": False}
    found = gs.sample(model, criteria=gs.Criteria(query=["near", "far"]), **given)
    whole = gs.sample(model, **given)
    lasts = found.visit_times
    assert whole.visit_times[2] == 1.0 < whole.visit_times[1]  # a visit says nothing of what it is near to
    assert 0.3 < lasts[2] / lasts[1] < 0.9  # near is 0.95 instead of 0.4 there
    assert lasts[3] < 1.001
    assert found.mcse["near"][1] > whole.mcse["near"][1]
    path = tmp_path / "asked.npz"
    found.save(path)
    assert gs.load(path).diagnostics == found.diagnostics


@pytest.mark.parametrize("method", ["forward", "mini-bucket"])
def test_weighted_draws_are_judged_by_the_sites_asked_for(method: str) -> None:
    model = gs.example("alarm")
    given: dict[str, Any] = {"method": method, "draws": 2048, "rng": 1, "progress": False}
    with pytest.warns(gs.ConvergenceWarning, match="standard errors"):
        assert not gs.infer(model, **given).converged
    asked = gs.infer(model, criteria=gs.Criteria(accuracy=0.015, query=["ANAPHYLAXIS"]), **given)
    assert asked.converged
    assert asked.diagnostics.figures["mcse_max"] == max(asked.mcse["ANAPHYLAXIS"].values())


def test_a_run_warns_once() -> None:
    model = gs.LogDensity(lambda x: -0.5 * x[0] ** 2, dim=1, grad=lambda x: -x)
    with pytest.warns(gs.ConvergenceWarning) as caught:
        result = gs.sample(model, gs.kernels.ULA(step=1.0), sweeps=20, rng=1, progress=False)
    said = [str(warning.message) for warning in caught]
    assert len(said) == 1
    assert all(reason in said[0] for reason in result.diagnostics.reasons)
    assert "no accept step" in said[0]


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_replicas_cool_down_to_find_the_best_state() -> None:
    """At the temperature of this model all states are nearly equally likely."""
    rng = np.random.default_rng(5)
    model = gs.ising_grid((6, 6), coupling=0.1 * rng.choice([-1, 1], (2, 6, 6)), periodic=True)
    best = gs.solve_exact(model, task="MAP").log_potential
    answer = gs.infer(model, "MAP", method="tempered", sweeps=300, rng=1, progress=False)
    assert answer.ranked[0].log_potential == pytest.approx(best)
    assert answer.result.log_potential == pytest.approx(best)


def test_a_registered_kernel_is_a_method() -> None:
    from gibbsite.kernels import registry

    before = dict(registry._REGISTERED)
    try:
        mine = type("Mine", (gs.Gibbs,), {})
        registry.register(methods={"mine": ("MAR",)}, proof=[{}])(mine)
        model = gs.ising_grid((3, 3), coupling=0.2, field=0.1)
        answer = gs.infer(model, method="mine", sweeps=2000, rng=1, progress=False)
        same = gs.infer(model, method="gibbs", sweeps=2000, rng=1, progress=False)
        assert answer.marginals == same.marginals
        with pytest.raises(gs.errors.ArgumentError, match="method 'mine' does not answer MAP"):
            gs.infer(model, "MAP", method="mine")
    finally:
        registry._REGISTERED.clear()
        registry._REGISTERED.update(before)
    with pytest.raises(gs.errors.ArgumentError, match="'mine' is unknown"):
        gs.infer(model, method="mine")
