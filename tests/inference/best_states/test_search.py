"""The search for a most probable state: right where the answer is known, repeatable, honest about itself."""

from __future__ import annotations

import itertools
import os
import signal
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs.color import markov_graph
from gibbsite.inference.best_states.saving import LAYOUT
from gibbsite.inference.best_states.search import _Turns, search_best
from gibbsite.inference.best_states.searcher import BLOCKS, CUTSETS, Searcher, Task
from gibbsite.kernels.gibbs.temperature import temperature_range
from gibbsite.kernels.gibbs.uphill import Neighbourhood, recombine
from gibbsite.sampling.checkpoint import load_checkpoint, save_checkpoint


def glass(shape: tuple[int, int], seed: int, scale: float = 1.0) -> gs.FactorGraph:
    """Return a spin glass on a grid, as a model that is not known to be one."""
    rng = np.random.default_rng(seed)
    at = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = np.concatenate([np.stack([at[:-1].ravel(), at[1:].ravel()], 1), _rows(at)])
    weights = scale * rng.normal(size=len(pairs))
    return gs.FactorGraph(at.size, groups=[gs.factors.SpinFactors(pairs, weights)], states=[-1, 1])


def _rows(at: Any) -> Any:
    return np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1)


DENSE = gs.ising(np.triu(np.random.default_rng(1).normal(size=(80, 80)), 1))


def ask(model: gs.FactorGraph, **given: Any) -> Any:
    return gs.infer(model, "MAP", rng=1, progress=False, **given)


# ---- what it finds


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_temperatures_follow_the_weights(scale: float, seed: int) -> None:
    model = glass((6, 20), seed, scale)
    exact = gs.solve_exact(model, task="MAP")
    answer = ask(model, method="annealed", sweeps=20_000)
    assert answer.log_potential == pytest.approx(exact.log_potential, rel=1e-12)
    assert answer.result.found >= 2


def test_the_range_of_temperatures_is_in_units_of_the_weights() -> None:
    ranges = [temperature_range(gs.graphs.compile_graph(glass((8, 8), 3, scale))) for scale in (1.0, 1e5)]
    assert np.allclose(np.array(ranges[1]) / 1e5, ranges[0], rtol=1e-6)
    assert ranges[0].cold < 0.5 < ranges[0].hot
    nothing = gs.FactorGraph({"a": 2}, [])
    assert temperature_range(gs.graphs.compile_graph(nothing)).hot == 1.0
    kernel = gs.AnnealedGibbs("exponential", 5)
    assert kernel.temperatures_for(glass((8, 8), 3))[[0, -1]] == pytest.approx([ranges[0].hot, ranges[0].cold])
    with pytest.raises(gs.errors.ModelError, match=r"temperatures_for\(model\)"):
        _ = kernel.temperatures


def test_auto_anneals_where_an_exact_solution_does_not_fit() -> None:
    answer = ask(DENSE, sweeps=600)
    assert (answer.method, answer.kind) == ("annealed", "best found")
    assert "does not fit" in answer.reason
    assert answer.converged
    assert answer.result.found == answer.diagnostics.figures["found"] >= 2
    assert "chains, at the end of" in answer.line()
    said = answer.to_dict()
    assert said["diagnostics"]["restarts"] > said["diagnostics"]["restarts_found"] >= 1
    assert answer.marginals is None


def test_zeros_that_single_sites_cannot_cross_are_crossed() -> None:
    # twelve rings of four sites that must agree: from a random start, a single site can never move
    sites = {f"{g}.{i}": 2 for g in range(12) for i in range(4)}
    same = [((f"{g}.{i}", f"{g}.{(i + 1) % 4}"), [[1, 0], [0, 1]]) for g in range(12) for i in range(4)]
    rng = np.random.default_rng(4)
    fields = [(f"{g}.0", np.exp(rng.normal(size=2))) for g in range(12)]
    linked = [((f"{g}.0", f"{g + 1}.0"), np.exp(rng.normal(size=(2, 2)))) for g in range(11)]
    model = gs.FactorGraph(sites, [*same, *fields, *linked])
    exact = gs.solve_exact(model, task="MAP")
    answer = ask(model, method="annealed", sweeps=1000)
    assert answer.log_potential == pytest.approx(exact.log_potential)


def test_recombining_takes_the_best_of_every_part() -> None:
    model = glass((5, 5), 7)
    graph = gs.graphs.compile_graph(model)
    start, neighbour = markov_graph(graph)
    near = Neighbourhood(start, neighbour, np.zeros(25, np.int64), np.zeros(25, np.bool_))
    one = np.random.default_rng(1).integers(0, 2, 25, np.int8)
    parts = [[0, 1, 5], [3, 4], [12], [20, 21, 22], [24]]  # no part touches another one
    other = one.copy()
    other[[*itertools.chain(*parts)]] ^= 1
    best = -np.inf
    for chosen in itertools.product([0, 1], repeat=len(parts)):
        x = one.copy()
        for part, take in zip(parts, chosen, strict=True):
            x[part] ^= take
        best = max(best, model.log_potential(x))
    merged = one.copy()
    gain = recombine(graph.arrays, near, merged, other.copy(), np.zeros(2))
    assert model.log_potential(merged) == pytest.approx(best)
    assert gain == pytest.approx(best - model.log_potential(one))


# ---- budgets


def test_the_same_seed_gives_the_same_states_on_any_number_of_threads() -> None:
    runs = [search_best(DENSE, sweeps=300, best=6, rng=5, threads=t, progress=False) for t in (1, 2, 1)]
    assert len({run.codes.tobytes() for run in runs}) == 1
    assert {run.sweeps for run in runs} == {300}
    assert runs[0].restarts > 4
    short = [search_best(DENSE, sweeps=8, rng=seed, progress=False).bests for seed in (5, 6, 5)]
    assert short[0].tobytes() == short[2].tobytes() != short[1].tobytes()


@pytest.mark.long
def test_the_time_is_used_and_kept() -> None:
    found = search_best(DENSE, seconds=1.5, rng=1, progress=False)
    assert 1.3 < found.seconds < 30.0  # a search that forgot its limit would not end
    assert found.restarts > 8
    large = gs.ising_grid((700, 700), coupling=0.5)  # a single sweep takes long
    search_best(large, sweeps=1, chains=1, progress=False)
    assert search_best(large, seconds=1.0, chains=2, progress=False).seconds < 30.0


def test_without_a_budget_a_search_ends_when_it_is_sure() -> None:
    answer = ask(glass((8, 8), 1), method="annealed")
    assert answer.seconds < 30
    assert answer.result.hits >= 24
    assert answer.result.found == 4


def test_an_interrupt_returns_the_best_so_far() -> None:
    seen = []

    def interrupt(status: Any) -> None:
        seen.append(status)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    answer = gs.infer(DENSE, "MAP", seconds=60, rng=1, progress=interrupt)
    assert answer.interrupted
    assert answer.seconds < 30
    assert answer.log_potential > 450
    assert seen[0].phase == "searching"


# ---- several states


def test_the_most_probable_states_in_order() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        factors = []
        for i, j in itertools.combinations(range(7), 2):
            if rng.random() < 0.45:
                table = np.round(rng.random((3, 3)), 1)  # zeros, and ties
                factors.append(((f"s{i}", f"s{j}"), table))
        model = gs.FactorGraph({f"s{i}": ["a", "b", "c"] for i in range(7)}, factors)
        listed = gs.exact.enumerate(model)
        answer = ask(model, best=50)
        assert answer.kind == "exact"
        wanted = [model.log_potential(x) for x in listed.rank(50)]
        assert [one.log_potential for one in answer.ranked] == pytest.approx(wanted, abs=1e-9)
        assert len({tuple(one.assignment.items()) for one in answer.ranked}) == len(answer.ranked)
        for one in answer.ranked:
            assert one.log_potential == pytest.approx(model.log_potential(one.assignment))
        assert answer.assignment == answer.ranked[0].assignment


def test_impossible_states_are_not_listed() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 1], [0, 2]])])
    values = [one.log_potential for one in ask(model, best=10).ranked]
    assert np.exp(values) == pytest.approx([3, 2, 1])
    fixed = model.observe({"a": 1})
    assert [one.assignment for one in ask(fixed, best=5).ranked] == [{"a": 1, "b": 1}]
    assert [one.assignment for one in ask(fixed.observe({"b": 1}), best=5).ranked] == [{"a": 1, "b": 1}]


def test_a_search_lists_distinct_local_maxima() -> None:
    answer = ask(DENSE, best=5, sweeps=600)
    values = [one.log_potential for one in answer.ranked]
    assert len(values) == 5
    assert values == sorted(values, reverse=True)
    assert len({tuple(one.assignment.values()) for one in answer.ranked}) == 5
    for codes in answer.result.codes:
        for site in range(80):
            other = codes.copy()
            other[site] ^= 1
            assert DENSE.log_potential(other) <= DENSE.log_potential(codes) + 1e-9
    assert answer.to_dict()["best_are"] == "local maxima found"
    assert ask(glass((3, 3), 1), best=2).to_dict()["best_are"] == "most probable states"
    # without a field, the opposite of the best state is as good
    assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"best": 0}, "best must be a whole number of at least 1"),
        ({"best": 2.5}, "best must be a whole number"),
        ({"best": 2, "method": "gibbs"}, "'gibbs' gives one best state"),
        ({"best": 2, "method": gs.AnnealedGibbs()}, "'AnnealedGibbs' gives one best state"),
        ({"method": "annealed", "warmup": 5}, "warmup belongs to sampling runs"),
        ({"method": "annealed", "sweeps": gs.Sweeps(thin=2)}, "sweeps must be a whole number"),
        ({"method": "annealed", "sweeps": gs.Steps(50)}, "sweeps must be a whole number"),
        ({"method": "annealed", "sweeps": 0}, "sweeps must be a whole number"),
        ({"method": "annealed", "seconds": -1}, "seconds must be a positive number"),
    ],
)
def test_arguments_without_a_meaning_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=words):
        ask(DENSE, **given)


def test_best_is_for_map_only() -> None:
    with pytest.raises(gs.errors.ModelError, match="the task is MAR; ask for MAP"):
        gs.infer(glass((3, 3), 1), best=2)
    with pytest.raises(gs.errors.ArgumentError, match="'dumping' is unknown; did you mean 'damping'"):
        ask(DENSE, method="annealed", dumping=1)


def test_domains_of_long_range_models_are_turned_over() -> None:
    # Couplings of all pairs fall with the distance: the part where two states differ is all of one piece,
    # but its pieces along the chain hardly depend on each other.
    n = 120
    at = np.arange(n)
    distance = np.minimum(np.abs(at[:, None] - at), n - np.abs(at[:, None] - at))
    rng = np.random.default_rng(11)
    couplings = np.triu(rng.normal(size=(n, n)), 1) / np.maximum(distance, 1) ** 2.5
    model = gs.ising(1e5 * couplings)
    runs = [search_best(model, sweeps=12_000, rng=seed, progress=False) for seed in (1, 2, 3)]
    assert len({round(run.log_potential) for run in runs}) == 1
    assert min(run.found for run in runs) >= 1


# ---- blocks, zeros, ties


def tied(seed: int) -> gs.FactorGraph:
    """Return a network of noisy ors, whose zeros tie sites together, as tables of two and three sites."""
    rng = np.random.default_rng(seed)
    sites = {f"s{i}": 2 for i in range(40)}
    factors: list[Any] = [(f"s{i}", rng.dirichlet([1, 6])[::-1]) for i in range(15)]
    for i in range(15, 40):
        a, b = rng.choice(i, 2, replace=False)
        either = np.zeros((2, 2, 2))
        for x, y in itertools.product((0, 1), repeat=2):
            either[x, y, x | y] = 1.0
        factors.append(((f"s{a}", f"s{b}", f"s{i}"), either))
    factors += [(f"s{i}", [0.05, 0.95]) for i in range(30, 40, 3)]
    return gs.FactorGraph(sites, factors)


@pytest.mark.parametrize("seed", range(4))
def test_sites_that_zeros_tie_together_move_together(seed: int) -> None:
    model = tied(seed)
    exact = gs.solve_exact(model, task="MAP")
    found = search_best(model, sweeps=300, rng=1, progress=False)
    assert found.log_potential == pytest.approx(exact.log_potential, abs=1e-9)
    assert found.log_potential == pytest.approx(model.log_potential(found.assignment_codes), abs=1e-12)


def test_every_state_found_is_possible() -> None:
    found = search_best(tied(5), sweeps=200, best=20, rng=2, progress=False)
    assert all(np.isfinite(tied(5).log_potential(codes)) for codes in found.codes)


def test_ties_are_counted() -> None:
    # A frustrated plaquette with couplings of equal size: 8 of 16 states are best.
    square = gs.FactorGraph(
        4, groups=[gs.factors.SpinFactors([[0, 1], [1, 2], [2, 3], [3, 0]], [1.0, 1.0, 1.0, -1.0])], states=[-1, 1]
    )
    answer = ask(square)
    assert answer.ties == {"count": 8, "complete": True, "how": "counted"}
    searched = ask(square, method="annealed", sweeps=2000)
    assert searched.ties == {"count": 8, "complete": False, "how": "seen"}
    assert searched.to_dict()["ties"]["count"] == 8
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = gs.FactorGraph(
            9, groups=[gs.factors.SpinFactors(glass((3, 3), 0).groups[0].scopes, rng.choice([-1.0, 1.0], 12))], states=2
        )
        levels = np.array([model.log_potential(x) for x in gs.exact.enumerate(model).states])
        wanted = int((levels > levels.max() - 1e-9).sum())
        assert ask(model).ties["count"] == wanted
        assert ask(model, method="annealed", sweeps=4000).ties["count"] == wanted


@pytest.mark.parametrize("model", [glass((12, 12), 3), tied(7)], ids=["glass", "zeros"])
def test_a_resumed_search_goes_on_as_if_it_had_not_been_stopped(model: gs.FactorGraph, tmp_path: Any) -> None:
    stopped = tmp_path / "search.npz"
    seen = []

    def interrupt(status: Any) -> None:
        seen.append(status)
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    given: dict[str, Any] = {"rng": 3, "best": 4}
    whole = search_best(model, sweeps=2000, progress=False, **given)
    first = search_best(model, sweeps=2000, progress=interrupt, checkpoint=stopped, **given)
    assert first.interrupted
    assert first.sweeps < 2000
    rest = search_best(
        model, sweeps=2000, progress=False, checkpoint=gs.Checkpoint(stopped, resume=True), threads=1, **given
    )
    assert rest.codes.tobytes() == whole.codes.tobytes()
    assert rest.bests.tobytes() == whole.bests.tobytes()
    assert (rest.sweeps, rest.restarts, rest.hits, rest.ties) == (whole.sweeps, whole.restarts, whole.hits, whole.ties)
    with pytest.raises(gs.errors.CheckpointError, match="another search"):
        search_best(DENSE, progress=False, checkpoint=gs.Checkpoint(stopped, resume=True), **given)
    with pytest.raises(gs.errors.CheckpointError, match="exists already"):
        search_best(model, progress=False, checkpoint=stopped, **given)


def test_an_interrupt_in_the_middle_of_a_restart_is_resumed_bit_for_bit(tmp_path: Any, monkeypatch: Any) -> None:
    model, stopped, calls = glass((12, 12), 3), tmp_path / "search.npz", []
    given: dict[str, Any] = {"rng": 3, "sweeps": 1000, "threads": 1, "progress": False}
    whole = search_best(model, **given)
    finish = Searcher.finish

    def interrupt(self: Searcher, kind: str, x: Any) -> None:
        calls.append(kind)
        if len(calls) == 14:  # of four chains in one round, the second one
            os.kill(os.getpid(), signal.SIGINT)
        finish(self, kind, x)

    monkeypatch.setattr(Searcher, "finish", interrupt)
    assert search_best(model, checkpoint=stopped, **given).interrupted
    monkeypatch.setattr(Searcher, "finish", finish)
    rest = search_best(model, checkpoint=gs.Checkpoint(stopped, resume=True), **given)
    assert rest.codes.tobytes() == whole.codes.tobytes()
    assert (rest.sweeps, rest.restarts, rest.hits) == (whole.sweeps, whole.restarts, whole.hits)


def test_a_checkpoint_of_another_layout_is_refused_in_one_sentence(tmp_path: Any) -> None:
    saved = tmp_path / "search.npz"
    given: dict[str, Any] = {"rng": 3, "threads": 1, "progress": False}
    search_best(glass((4, 4), 3), sweeps=50, checkpoint=saved, **given)
    about, arrays = load_checkpoint(saved)
    for layout in (True, LAYOUT + 1):  # the first layout had no array "last", among other things
        kept = {name: part for name, part in arrays.items() if not name.endswith("/last")}
        save_checkpoint(saved, about["plan"], {**about["progress"], "search": layout}, [], kept)
        with pytest.raises(gs.errors.CheckpointError, match="another version of gibbsite, which stored a search in"):
            search_best(glass((4, 4), 3), sweeps=100, checkpoint=gs.Checkpoint(saved, resume=True), **given)


@pytest.mark.long
def test_cutsets_come_where_cheaper_moves_lead_chains_to_different_ends() -> None:
    task = Task(tied(1), None)
    turns = _Turns(task)
    starts = np.zeros((2, 40), np.int8)
    searchers = [Searcher(task, c, 1, x, False, 8) for c, x in enumerate(starts)]
    searchers[0].value, searchers[1].value = -3.0, -2.0
    assert not turns.need_cutsets(searchers)  # nothing else has been tried yet
    turns.rounds[BLOCKS] = 2
    assert turns.need_cutsets(searchers)
    searchers[0].value = -2.0
    assert not turns.need_cutsets(searchers)
    turns.look_for_cutsets()
    assert CUTSETS in turns.kinds
    assert not turns.need_cutsets(searchers)
    assert turns.movers(CUTSETS, searchers) == searchers  # the first time all chains
    turns.rounds[CUTSETS] = 1
    searchers[1].value = -1.0
    assert turns.movers(CUTSETS, searchers) == [searchers[1]]
    assert turns.movers(BLOCKS, searchers) == searchers
