"""Mean field: a true bound, fixed points that are fixed, the iteration of the textbooks as a special case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite.sampling.progress import Status
from gibbsite.testing import tiny_models
from tests.inference.mean_field.oracle import Oracle

EXAMPLES = Path(__file__).parents[3] / "examples"
MODELS = tiny_models()
EQUAL = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 2]])])


def solve(model: gs.FactorGraph, **given: Any) -> gs.inference.MeanFieldResult:
    return gs.mean_field(model, progress=False, **given)


def as_law(result: gs.inference.MeanFieldResult) -> list[np.ndarray]:
    cards = result.model.cards
    return [row[:size] for row, size in zip(result.marginals.to_array(), cards, strict=True)]


# ---- the bound


@pytest.mark.parametrize("start", [None, "uniform", "unary", "random", "support"])
@pytest.mark.parametrize("name", MODELS)
def test_log_z_is_bounded_from_below_on_the_way_and_at_the_end(name: str, start: Any) -> None:
    oracle = Oracle(MODELS[name])
    for parallel in (False, True):
        for damping in (1.0, 0.5):
            found = solve(MODELS[name], start=start, parallel=parallel, damping=damping, max_iterations=60, rng=1)
            assert (found.bounds <= oracle.exact.log_z + 1e-9).all()
            assert found.log_z == pytest.approx(oracle.bound(as_law(found)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("damping", [1.0, 0.4])
@pytest.mark.parametrize("name", MODELS)
def test_in_place_the_bound_never_falls(name: str, damping: float) -> None:
    for seed in range(5):
        found = solve(MODELS[name], start="random", damping=damping, rng=seed, tolerance=1e-10)
        size = np.abs(found.bounds[np.isfinite(found.bounds)]).max()
        assert (found.bounds[1:] >= found.bounds[:-1] - 1e-13 * size).all()


def test_sites_without_neighbours_are_solved_exactly() -> None:
    lonely = gs.FactorGraph(
        {"a": 2, "b": 3, "c": 1}, [("a", [1, 3]), ("b", [2, 0, 5]), ("b", [1, 1, 0.25]), ("c", [7])]
    )
    for model in (lonely, gs.ising(np.zeros((3, 3)), [0.5, -2.0, 30.0]), gs.ising_grid((4,), coupling=0.0, field=0.7)):
        found, exact = solve(model), gs.solve_exact(model)
        assert found.sweeps == 2  # one to get there, one to notice
        assert found.log_z == pytest.approx(exact.log_z, rel=1e-14)
        assert gs.compare(found, exact).max_abs < 1e-15


@given(st.integers(0, 10**6))
def test_the_bound_holds_on_random_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, size=int(rng.integers(1, 6)))
    sites = {str(i): int(k) for i, k in enumerate(cards)}
    factors = []
    for _ in range(int(rng.integers(1, 6))):
        scope = rng.choice(cards.size, size=int(rng.integers(1, min(cards.size, 3) + 1)), replace=False)
        table = np.exp(rng.normal(scale=2.0, size=tuple(cards[scope])))
        table.flat[int(rng.integers(table.size))] *= rng.random() < 0.5
        factors.append((tuple(str(i) for i in scope), table if table.any() else table + 1.0))
    try:
        model = gs.FactorGraph(sites, factors)
        exact = gs.exact.enumerate(model)
    except gs.errors.SupportError:
        return
    found = solve(model, rng=seed)
    assert -np.inf < found.log_z <= exact.log_z + 1e-9 * (1 + abs(exact.log_z))
    assert found.log_z == pytest.approx(Oracle(model).bound(as_law(found)), rel=1e-9, abs=1e-9)


# ---- fixed points


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_fixed_point_is_fixed(name: str, parallel: bool) -> None:
    if parallel and name in ("mixed", "tables"):
        return  # sites that exclude each other, and move at once, need not come to rest
    found = solve(MODELS[name], parallel=parallel, damping=0.5 if parallel else 1.0, tolerance=1e-14, rng=1)
    assert found.settled
    oracle, law = Oracle(MODELS[name]), as_law(found)
    for site, p in enumerate(law):
        assert np.allclose(oracle.best(law, site), p, rtol=0, atol=1e-12)


def test_all_kinds_reach_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    from gibbsite.graphs.graph import compile_graph
    from gibbsite.inference.mean_field import fixed_point

    for name in ("grid", "potts", "mixed"):
        found = []
        for kind in ("lattice", "ising", "potts", "pairwise", "table"):
            monkeypatch.setattr(
                fixed_point, "compile_graph", lambda model, kind=kind, among=(): compile_graph(model, kind)
            )
            try:
                found.append(solve(MODELS[name], tolerance=1e-12))
            except gs.errors.IncompatibleError:
                continue
        assert len(found) >= 2
        for other in found[1:]:
            assert other.log_z == pytest.approx(found[0].log_z, abs=1e-11)
            assert gs.compare(found[0], other).max_abs < 1e-11


# ---- the iteration of magnetisations: mu <- (1 - D) mu + D tanh(J sum mu + h)


def magnetisations(fields: np.ndarray, j: float, damping: float, parallel: bool, sweeps: int) -> np.ndarray:
    mu = np.tanh(fields)
    rows, columns = fields.shape
    for _ in range(sweeps):
        old = mu.copy() if parallel else mu
        for r in range(rows):
            for c in range(columns):
                near = [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]
                total = sum(old[a, b] for a, b in near if 0 <= a < rows and 0 <= b < columns)
                mu[r, c] = (1 - damping) * old[r, c] + damping * np.tanh(j * total + fields[r, c])
    return mu


@pytest.mark.parametrize("damping", [0.5, 1.0])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_spins_follow_the_damped_tanh_iteration(parallel: bool, damping: float, sweeps: int) -> None:
    fields = np.random.default_rng(4).normal(size=(6, 7)) / 4.0  # y / sigma^2 of a noisy image
    model = gs.ising_grid((6, 7), coupling=1.0, field=fields)
    found = solve(model, start="unary", parallel=parallel, damping=damping, max_iterations=sweeps, tolerance=0.0)
    wanted = magnetisations(fields, 1.0, damping, parallel, sweeps)
    assert found.sweeps == sweeps
    assert np.allclose(2.0 * found.cells.reshape(6, 7) - 1.0, wanted, rtol=0, atol=1e-13)


def test_parallel_steps_may_swing_for_ever_and_damping_ends_it() -> None:
    pair = gs.ising(np.array([[0.0, -2.0], [-2.0, 0.0]]))
    given = [0.9, 0.9]
    with pytest.warns(gs.ConvergenceWarning, match="still change"):
        swinging = solve(pair, parallel=True, start=given, max_iterations=200)
    assert swinging.converged is False
    assert swinging.sweeps == 200
    assert solve(pair, parallel=True, damping=0.5, start=given).settled
    assert solve(pair, start=given).settled


def test_damping_does_not_pass_for_convergence() -> None:
    # a step of a millionth changes little, but the law is far from where it should be
    with pytest.warns(gs.ConvergenceWarning):
        found = solve(gs.ising_grid((3,), field=1.0), damping=1e-6, max_iterations=5)
    assert found.change > 0.3


# ---- zeros


def test_what_is_impossible_has_probability_zero() -> None:
    for name in ("mixed", "tables", "agreements"):
        exact = gs.exact.enumerate(MODELS[name]).marginals.to_array()
        for start in (None, "uniform", "random", "support"):
            found = solve(MODELS[name], start=start, rng=2, damping=0.5)
            assert found.log_z > -np.inf
            assert (found.marginals.to_array()[exact == 0.0] == 0.0).all()


def test_sites_that_exclude_each_other_settle_on_the_least_excluded_states() -> None:
    # under the uniform law all states of both are excluded by a half: the weights decide, 1 against 2
    found = solve(EQUAL, start="uniform")
    assert found.marginals["a"][1] > 0.5
    # three states: "x" agrees with one, the others with two states of the neighbour each
    table = [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    found = solve(gs.FactorGraph({"a": ["x", "y", "z"], "b": 3}, [(("a", "b"), table)]))
    assert found.marginals["a"] == {"x": 0.0, "y": 0.5, "z": 0.5}
    assert found.log_z == pytest.approx(np.log(4.0))


def test_a_law_that_cannot_exclude_the_impossible_says_so_and_the_default_starts_again() -> None:
    same = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 1]])])
    with pytest.warns(gs.ConvergenceWarning, match="start='support'"):
        stuck = solve(same, start="uniform")  # symmetric, so it stays where it is
    assert stuck.marginals["a"] == {0: 0.5, 1: 0.5}
    assert stuck.log_z == -np.inf
    found = solve(same, rng=1)
    assert found.settled
    assert found.log_z == 0.0  # one of the two states, of potential 1


def test_networks_with_deterministic_tables() -> None:
    for name in ("asia", "alarm", "child"):
        found = solve(gs.read_model(EXAMPLES / f"{name}.bif"))
        assert found.settled
        assert -5.0 < found.log_z < 0.0  # the exact one is 0


# ---- starts, evidence, reports


def test_the_start_may_be_given() -> None:
    model = gs.ising_grid((2, 2), coupling=1.0)  # two mirrored fixed points beside the uniform one
    assert solve(model).marginals["0"][1] == 0.5
    up, down = solve(model, start=np.full(4, 0.6)), solve(model, start=np.full(4, 0.4))
    assert up.marginals["0"][1] == pytest.approx(down.marginals["0"][-1], abs=1e-6)
    assert up.marginals["0"][1] > 0.9
    for again in (up, up.marginals, up.marginals.to_array()):
        assert solve(model, start=again, tolerance=1e-4).sweeps == 1
    named = solve(gs.solve_exact(MODELS["mixed"]).model, start=gs.solve_exact(MODELS["mixed"]))
    assert named.settled


def test_evidence_and_constants_are_part_of_the_bound() -> None:
    model = MODELS["tables"]
    seen = model.observe({"q": 0})
    found, exact = solve(seen), gs.solve_exact(seen)
    assert found.log_z <= exact.log_z
    assert found.marginals["q"] == {0: 1.0, 1: 0.0, 2: 0.0}
    assert gs.compare(found, exact).sites == 3
    everything = model.observe({"p": 1, "q": 0, "r": 1, "s": 0})
    assert solve(everything).log_z == pytest.approx(gs.solve_exact(everything).log_z)


def test_seeds_repeat_and_differ() -> None:
    laws = [solve(MODELS["glass"], start="random", rng=seed, max_iterations=1).cells.tobytes() for seed in (1, 1, 2)]
    assert laws[0] == laws[1] != laws[2]


def test_small_models_run_without_the_compiler_and_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from gibbsite._numba import jit

    for name in MODELS:
        found = []
        for patience in (-1.0, 1e9):
            monkeypatch.setattr(jit._Patience, "steps", patience)
            monkeypatch.setattr(jit.Entry, "_at_hand", lambda entry: False)
            found.append(solve(MODELS[name], rng=1, max_iterations=5))
        assert found[0].cells.tobytes() == found[1].cells.tobytes()
        assert found[0].bounds.tobytes() == found[1].bounds.tobytes()


def test_the_report_says_what_the_numbers_are() -> None:
    found = solve(gs.ising_grid((3, 3), coupling=0.1, field=0.2))
    assert (found.sweeps, found.bounds.size, found.changes.size) == (7, 7, 7)
    assert found.change == found.changes[-1] <= found.tolerance
    for text in (repr(found), found.line()):
        assert "approximate" in text
        assert ">=" in text
        assert "settled" in text
        assert "converged" not in text  # the error is not known
    assert found.converged is None


def test_progress_and_time_limit() -> None:
    seen: list[Status] = []
    gs.mean_field(gs.ising_grid((3, 3), coupling=0.1, field=0.2), progress=seen.append)
    assert [status.done for status in seen] == list(range(1, 8))
    assert {status.phase for status in seen} == {"mean field"}
    assert seen[-1].text().startswith("gibbsite: mean field   0.7%  sweep 7/1,000, 0 s")
    with pytest.warns(gs.ConvergenceWarning):
        assert solve(gs.ising_grid((3, 3), coupling=0.1, field=0.2), seconds=1e-9).sweeps == 1


def test_an_interrupt_returns_partial_results() -> None:
    import os
    import signal

    def stop(status: Status) -> None:
        if status.done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(gs.ConvergenceWarning):
        found = gs.mean_field(gs.ising_grid((9, 9), coupling=0.3), start="random", rng=1, progress=stop)
    assert found.interrupted
    assert found.sweeps <= 4


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "zero damping": ({"damping": 0.0}, ["damping", "above 0", "0.0"]),
    "negative damping": ({"damping": -0.5}, ["damping", "-0.5"]),
    "too much damping": ({"damping": 1.5}, ["damping", "at most 1", "1.5"]),
    "NaN damping": ({"damping": np.nan}, ["damping", "nan"]),
    "damping as a word": ({"damping": "half"}, ["damping", "'half'"]),
    "zero iterations": ({"max_iterations": 0}, ["max_iterations", "at least 1"]),
    "negative tolerance": ({"tolerance": -1e-3}, ["tolerance", "-0.001"]),
    "endless tolerance": ({"tolerance": np.inf}, ["tolerance", "inf"]),
    "zero seconds": ({"seconds": 0}, ["seconds", "positive"]),
    "seed as a word": ({"rng": "x"}, ["rng", "'x'"]),
    "unknown start": ({"start": "hot"}, ["'hot'", "uniform", "unary"]),
    "start of a wrong shape": ({"start": np.ones((3, 2))}, ["start", "(2, 2)", "(2,)", "(3, 2)"]),
    "start of one number": ({"start": 0.5}, ["start", "shape"]),
    "negative start": ({"start": [[1.5, -0.5], [1, 0]]}, ["start", "'a'", "-0.5"]),
    "start beyond one": ({"start": [0.5, 1.5]}, ["start", "'b'", "1.5"]),
    "NaN start": ({"start": [np.nan, 0.5]}, ["start", "'a'", "nan"]),
    "empty start": ({"start": [[1, 0], [0, 0]]}, ["start", "no probability", "'b'"]),
    "start of words": ({"start": ["x", "y"]}, ["start", "probabilities"]),
    "start of another model": ({"start": gs.solve_exact(gs.ising_grid((2,)))}, ["start", "other sites"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    arguments, words = BAD[case]
    with pytest.raises(gs.errors.ModelError) as caught:
        solve(EQUAL, **arguments)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text


def test_what_is_no_model() -> None:
    with pytest.raises(gs.errors.ModelError, match="must be a model, got"):
        gs.mean_field("ising")  # type: ignore[arg-type]
    contradiction = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), np.eye(2)), (("a", "b"), 1 - np.eye(2))])
    with pytest.raises(gs.errors.SupportError):
        solve(contradiction)
