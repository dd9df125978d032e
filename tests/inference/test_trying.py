"""Which methods are tried where an exact solution does not fit, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import gibbsite as gs
from gibbsite.inference.trying import Attempt, Tried, compare_answers, plan_attempts, standard_error, uncertainty

ROOT = Path(gs.__file__).parent / "formats" / "networks"


def methods(model: gs.FactorGraph) -> list[str]:
    return [attempt.method for attempt in plan_attempts(model)]


def test_networks_and_zeros_are_seen() -> None:
    alarm = gs.read_model(ROOT / "alarm.bif")
    assert methods(alarm)[0] == "forward"
    loops = gs.FactorGraph(
        {"a": 2, "b": 2, "c": 2}, [(pair, [[0.0, 2.0], [1.0, 3.0]]) for pair in (("a", "b"), ("b", "c"), ("c", "a"))]
    )
    assert methods(loops) == ["mini-bucket", "blocks", "gibbs", "tempered"]
    assert methods(gs.ising_grid((200, 200), coupling=0.1)) == ["gibbs"]


def test_one_block_of_all_sites_comes_before_single_sites_where_it_is_small() -> None:
    assert methods(gs.ising_grid((10, 10), coupling=0.3)) == ["blocks", "gibbs", "mini-bucket", "tempered"]
    assert methods(gs.ising_grid((30, 30), coupling=0.3)) == ["gibbs", "mini-bucket", "tempered"]
    model = gs.ising_grid((10, 10), coupling=0.6, field=0.02)  # two modes, between which single sites hardly move
    answer = gs.infer(model, exact=False, seconds=60, rng=1, progress=False)
    assert answer.method == "blocks"
    assert answer.reason.endswith("all sites are drawn at once")
    assert answer.converged
    assert "checked_by" not in answer.diagnostics.figures  # independent draws need no second method
    exact = gs.solve_exact(model)
    assert max(abs(answer.marginals[site][1] - exact.marginals[site][1]) for site in model.sites) < 1e-6


def test_two_modes_are_weighed_after_single_sites_have_failed() -> None:
    n, coupling, field = 60, 1.6 / 60, 0.01
    model = gs.ising(np.full((n, n), coupling) - coupling * np.eye(n), np.full(n, field))
    answer = gs.infer(model, seconds=3, rng=1, progress=False)
    assert answer.method in ("mini-bucket", "tempered")
    assert "does not fit" in answer.reason
    assert " after gibbs" in answer.reason
    up = np.arange(n + 1)
    spins = 2 * up - n
    law = gammaln(n + 1) - gammaln(up + 1) - gammaln(n - up + 1) + coupling / 2 * (spins**2 - n) + field * spins
    exact = float(np.exp(law - logsumexp(law)) @ up) / n
    # of the mean over sites, which is as uncertain as one of them; a false alarm has a chance below 1e-8
    mean = np.mean([answer.marginals[site][1] for site in model.sites])
    error = max(answer.mcse[site][1] for site in model.sites)
    assert abs(mean - exact) < 6 * error < 0.3


def test_arguments_about_sampling_leave_the_choice_to_the_user() -> None:
    model = gs.ising(np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1) / 20.0)
    answer = gs.infer(model, sweeps=200, rng=1, progress=False)
    assert answer.method == "gibbs"
    assert answer.reason.startswith("an exact solution does not fit")


def test_what_converges_first_is_taken() -> None:
    model = gs.ising(np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1) / 40.0)
    answer = gs.infer(model, seconds=60, criteria=gs.Criteria(accuracy=0.1), rng=1, progress=False)
    assert answer.converged
    assert answer.method == "gibbs"
    assert answer.reason.endswith("single sites")


def test_log_z_comes_with_bounds_on_both_sides() -> None:
    n, coupling, field = 60, 1.6 / 60, 0.01
    model = gs.ising(np.full((n, n), coupling) - coupling * np.eye(n), np.full(n, field))
    answer = gs.infer(model, "PR", seconds=3, rng=1, progress=False)
    up = np.arange(n + 1)
    spins = 2 * up - n
    law = gammaln(n + 1) - gammaln(up + 1) - gammaln(n - up + 1) + coupling / 2 * (spins**2 - n)
    log_z = float(logsumexp(law + field * spins))
    assert answer.log_z_bounds is not None
    lower, upper = answer.log_z_bounds
    assert lower <= log_z <= upper < np.inf
    assert answer.log_z_error is not None
    assert abs(answer.log_z - log_z) < 6 * answer.log_z_error < 1.0


@pytest.mark.parametrize(("task", "method"), [("MAR", "forward"), ("PR", "mini-bucket"), ("MAP", "annealed")])
def test_exact_solving_can_be_switched_off(task: str, method: str) -> None:
    alarm = gs.example("alarm")
    answer = gs.infer(alarm, task, exact=False, seconds=2, rng=1, progress=False)
    assert answer.method == method
    assert answer.reason.startswith("an exact solution was not asked for")
    exact = gs.infer(alarm, task)
    if task == "MAR":
        assert answer.converged
        worst = max(abs(answer.marginals[s][k] - p) for s, law in exact.marginals.items() for k, p in law.items())
        assert worst < 0.01
    elif task == "PR":
        assert abs(answer.log_z - exact.log_z) < 1e-6
    else:
        assert answer.log_potential == pytest.approx(exact.log_potential, abs=1e-9)


def test_switching_exact_solving_off_is_refused_where_it_says_nothing() -> None:
    alarm = gs.example("alarm")
    with pytest.raises(gs.errors.ArgumentError, match="method='exact' and exact=False contradict each other"):
        gs.infer(alarm, method="exact", exact=False)
    for method in ("gibbs", gs.Gibbs(), "annealed"):
        with pytest.raises(gs.errors.ArgumentError, match="exact=False has no effect with"):
            gs.infer(alarm, "MAP", method=method, exact=False)
    with pytest.raises(gs.errors.ArgumentError, match="exact must be True or False"):
        gs.infer(alarm, exact="no")  # type: ignore[arg-type]


def answered(method: str, model: gs.FactorGraph, reasons: tuple[str, ...] = (), **numbers: Any) -> Tried:
    found = SimpleNamespace(
        marginals=gs.solve_exact(model).marginals,
        diagnostics=gs.results.Diagnostics("estimate", not reasons, reasons, numbers),
        log_z_error=None,
    )
    return Tried(Attempt(method, 1.0, ""), found)


def test_a_second_method_confirms_contradicts_or_has_no_time() -> None:
    model, other = gs.ising_grid((3, 3), field=0.1), gs.ising_grid((3, 3), field=0.15)
    first = answered("gibbs", model)
    run = gs.sample(model, sweeps=4000, rng=1, progress=False)
    assert run.converged

    def checked(second: Tried, accuracy: float) -> gs.results.Diagnostics:
        return run._judged(check=compare_answers(first, second), accuracy=accuracy).diagnostics

    agreed = checked(answered("mini-bucket", model), 0.1)
    assert agreed.converged
    assert (agreed.checked_by, agreed.check_difference) == ("mini-bucket", 0.0)
    assert agreed.text.endswith("checked by mini-bucket, which differs by 0 at most")
    late = checked(answered("mini-bucket", other, ("too short.",)), 0.1)
    assert late.converged
    assert late.text.endswith("mini-bucket had no time to check it")
    apart = checked(answered("mini-bucket", other), 0.02)
    assert apart.text.startswith("NOT CONVERGED")
    assert "gibbs and mini-bucket differ by 0.049" in apart.reasons[-1]
    assert checked(answered("mini-bucket", other), 0.1).converged


def test_the_least_uncertain_answer_is_the_one_that_says_so() -> None:
    model = gs.ising_grid((2, 2))
    stuck = answered("tempered", model, ("stuck.",), mcse_max=0.87)
    close = answered("mini-bucket", model, ("short.",), mcse_max=0.004, unseen=3.0, pareto_k=0.1)
    blind = answered("mini-bucket", model, ("blind.",), mcse_max=0.004, unseen=1e9, pareto_k=5.0)
    unknown = answered("gibbs", model, ("no errors.",), mcse_max=None)
    assert uncertainty(close, "MAR") == 0.016
    assert uncertainty(stuck, "MAR") == uncertainty(blind, "MAR") == uncertainty(unknown, "MAR") == 1.0
    # between equals, the one that gives the smaller error
    assert standard_error(blind, "MAR") == 0.004
    assert standard_error(stuck, "MAR") == 0.87
    assert standard_error(unknown, "MAR") == np.inf


def test_chains_that_converge_are_checked_by_weighted_draws() -> None:
    model = gs.ising_grid((24, 24), coupling=0.1, field=0.1)
    answer = gs.infer(model, exact=False, seconds=60, criteria=gs.Criteria(accuracy=0.05), rng=1, progress=False)
    assert answer.method == "gibbs"
    assert answer.converged
    assert answer.diagnostics.figures["checked_by"] == "mini-bucket"
    assert answer.diagnostics.figures["check_difference"] < 0.1
    assert "checked by mini-bucket" in answer.line()
