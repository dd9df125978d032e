"""Marginal MAP against enumeration, zeros included."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.best_states.marginal import sum_out
from tests.inference.best_states.test_moves import random_model


def sums(model: gs.FactorGraph, keep: list[str]) -> dict[tuple[int, ...], float]:
    """Return the sum over all other sites for every state of some, by going through all states."""
    places = [model.index(site) for site in keep]
    total: dict[tuple[int, ...], float] = {}
    for x in itertools.product(*(range(int(size)) for size in model.cards)):
        key = tuple(x[i] for i in places)
        total[key] = total.get(key, 0.0) + float(np.exp(model.log_potential(np.array(x))))
    return total


@pytest.mark.parametrize("seed", range(25))
def test_sites_are_summed_out_exactly(seed: int) -> None:
    model = random_model(seed, sites=6)
    rng = np.random.default_rng(seed)
    keep = sorted(rng.choice(model.sites, size=int(rng.integers(1, 5)), replace=False).tolist())
    wanted = sums(model, keep)
    if max(wanted.values()) == 0.0:
        pytest.skip("nothing is possible")
    left = sum_out(model, keep)
    assert left.sites == tuple(keep)
    for key, value in wanted.items():
        assert np.exp(left.log_potential(np.array(key))) == pytest.approx(value, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("method", ["exact", "annealed"])
@pytest.mark.parametrize("seed", range(8))
def test_the_answer_attains_the_maximum(seed: int, method: str) -> None:
    model = random_model(seed, sites=6)
    keep = ["s1", "s3", "s4"]
    wanted = sums(model, keep)
    if max(wanted.values()) == 0.0:
        pytest.skip("nothing is possible")
    given: dict[str, Any] = {"sweeps": 200, "rng": 1} if method == "annealed" else {}
    answer = gs.infer(model, "MMAP", maximise=keep, method=method, progress=False, **given)
    assert answer.assignment is not None and set(answer.assignment) == set(keep)
    reached = wanted[tuple(model.code(site, answer.assignment[site]) for site in keep)]
    assert reached == pytest.approx(max(wanted.values()), rel=1e-9)
    assert answer.log_potential == pytest.approx(np.log(max(wanted.values())), abs=1e-9)
    assert (answer.kind == "exact") == (method == "exact")
    assert "summed out" in answer.reason
    assert answer.to_dict()["log_potential_is"] == "log of the sum over all other sites"


def test_it_differs_from_the_most_probable_state() -> None:
    model = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[4, 0, 0], [2, 2, 2]])])
    assert gs.infer(model, "MAP").assignment == {"a": 0, "b": 0}
    answer = gs.infer(model, "MMAP", maximise=["a"])
    assert answer.assignment == {"a": 1}
    assert answer.log_potential == pytest.approx(np.log(6))


def test_evidence_is_part_of_the_answer() -> None:
    model = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[4, 0, 0], [2, 2, 2]])]).observe({"b": 0})
    answer = gs.infer(model, "MMAP", maximise=["a"])
    assert answer.assignment == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("task", "sites", "words"),
    [
        ("MMAP", [], "names no site"),
        ("MMAP", "a", "must be a list of sites"),
        ("MMAP", ["nobody"], "nobody"),
        ("MAP", ["s1"], "belongs to MMAP"),
    ],
)
def test_bad_lists_of_sites_are_refused(task: str, sites: Any, words: str) -> None:
    with pytest.raises(gs.GibbsiteError, match=words):
        gs.infer(random_model(1), task, maximise=sites)


def test_tables_that_are_too_large_are_refused_before_they_are_made() -> None:
    model = gs.ising_grid((30, 30), coupling=0.3)
    with pytest.raises(gs.errors.TooLargeError, match="maximise over more sites"):
        gs.infer(model, "MMAP", maximise=["0", "899"])
