"""Herding many sites at once makes the choices it makes one by one: the same states, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling import batched_layouts as forms
from gibbsite.sampling import layout

pytestmark = pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")

SHAPES = [
    ((7,), False),
    ((64,), True),
    ((1, 40), False),
    ((2, 50), False),
    ((9, 300), False),
    ((10, 12), True),
    ((4, 6, 10), False),
    ((4, 6, 8), True),
    ((3, 5, 7), False),
]


def lattice(shape: tuple[int, ...], periodic: bool, sites: bool) -> gs.FactorGraph:
    field = np.random.default_rng(1).normal(size=shape) if sites else 0.1
    return gs.ising_grid(shape, coupling=0.3, field=field, periodic=periodic)


def pairs(degree: int) -> gs.FactorGraph:
    """Return a graph of 60 sites with 0 to some number of neighbours each, and couplings of both signs."""
    rng = np.random.default_rng(degree)
    i, j = np.triu_indices(60, 1)
    near = (j - i <= (degree + 1) // 2) & (i < 50) & (rng.random(i.size) < 0.8)
    return gs.ising((i[near], j[near], rng.normal(size=near.sum())), rng.normal(size=60))


def run(model: gs.FactorGraph, kernel: gs.kernels.Kernel, at_once: bool, **settings: Any) -> gs.Result:
    options = {"sweeps": 50, "warmup": 3, "chains": 2, "rng": 4, "record": ["draws", "energy", "best"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "LEAST_SITES", 1)
        patch.setattr(forms, "LEAST_SHARE", 16)
        patch.setattr(layout, "LEAST_SHARE", 16)
        if not at_once:
            patch.setattr(forms, "move_at_once", lambda *_: None)
        result = gs.sample(model, kernel, scan=gs.Chromatic(), progress=False, **{**options, **settings})
    assert (result.plan.form == "plain") != at_once
    return result


def check_same_choices(model: gs.FactorGraph, kernel: gs.HerdedGibbs, form: str) -> None:
    at_once, one_by_one = run(model, kernel, True), run(model, kernel, False)
    assert at_once.plan.form == form
    np.testing.assert_array_equal(at_once.draws, one_by_one.draws)
    # sums of 64-bit floats, one term per site; compressed columns keep couplings and fields as 32-bit floats
    arrays = gs.graphs.compile_graph(model, "ising").arrays
    reach = np.abs(arrays.coupling).sum() + np.abs(arrays.field).sum()
    rounding = reach * (2.0**-24 if form == "arranged" else model.n_sites * 2.0**-52)
    np.testing.assert_allclose(at_once.energy, one_by_one.energy, rtol=0, atol=rounding)
    np.testing.assert_array_equal(at_once._best_x, one_by_one._best_x)
    # sums of conditionals are 32-bit floats: 50 terms below one, a rounding of 2^-24 of the sum each
    found, expected = (run(model, kernel, how, record=None).totals for how in (True, False))
    np.testing.assert_allclose(found, expected, rtol=0, atol=50 * 50 * 2.0**-24)


@pytest.mark.parametrize("sites", [False, True], ids=["one field", "fields"])
@pytest.mark.parametrize(("shape", "periodic"), SHAPES)
def test_numbers_of_neighbours(shape: tuple[int, ...], periodic: bool, sites: bool) -> None:
    kernel = gs.HerdedGibbs(keys="shared", start="centred" if sites else 0.3)
    check_same_choices(lattice(shape, periodic, sites), kernel, "counted")


@pytest.mark.parametrize("degree", [1, 3, 4, 7, 12])
def test_states_of_neighbours(degree: int) -> None:
    check_same_choices(pairs(degree), gs.HerdedGibbs(start="centred"), "arranged")


@pytest.mark.parametrize(("shape", "periodic"), SHAPES[3:6])
def test_states_of_neighbours_on_lattices(shape: tuple[int, ...], periodic: bool) -> None:
    check_same_choices(lattice(shape, periodic, True), gs.HerdedGibbs(start=0.7), "arranged")


def test_steps_that_end_within_a_row_are_the_same_steps() -> None:
    model, kernel = lattice((9, 300), False, True), gs.HerdedGibbs(keys="shared", start="centred")
    for steps in (2_701, 4_133):
        found = [run(model, kernel, how, sweeps=gs.Steps(steps), warmup=0, record="best") for how in (True, False)]
        np.testing.assert_array_equal(found[0]._best_x, found[1]._best_x)


def cases() -> dict[str, tuple[gs.FactorGraph, gs.HerdedGibbs]]:
    return {
        "one field": (lattice((12, 90), False, False), gs.HerdedGibbs(keys="shared")),
        "fields": (lattice((12, 90), True, True), gs.HerdedGibbs(keys="shared")),
        "pairs": (pairs(5), gs.HerdedGibbs()),
    }


@pytest.mark.parametrize("name", sorted(cases()))
def test_threads_pauses_and_kills_do_not_matter(name: str, tmp_path: Path) -> None:
    model, kernel = cases()[name]
    whole = tmp_path / "whole.npz"
    options: dict[str, Any] = {"chains": 1, "record": None, "sweeps": 120}
    run(model, kernel, True, threads=1, **options).save(whole)
    for threads in (1, 2, 4):
        parts, place = tmp_path / f"{threads}.npz", tmp_path / f"{threads}.ckpt"
        run(model, kernel, True, threads=threads, checkpoint=place, **{**options, "sweeps": 50})
        result = run(model, kernel, True, threads=threads, checkpoint=gs.Checkpoint(place, resume=True), **options)
        result.save(parts)
        assert whole.read_bytes() == parts.read_bytes()


@pytest.mark.parametrize("name", sorted(cases()))
def test_chains_start_with_weights_of_their_own(name: str) -> None:
    model, kernel = cases()[name]
    start = np.zeros(model.n_sites, np.int64)
    result = run(model, kernel, True, start=start, warmup=0)
    assert (result.draws[0, 0] != result.draws[1, 0]).any()
    # one visit with a uniform weight is one draw from the conditional: of all 1080 or 60 sites in the first
    # sweep the share in state 1 is within six standard deviations of what the same visits promise
    first = run(model, kernel, True, start=start, warmup=0, sweeps=1, record=None).totals
    drawn = result.draws[:, 0].sum(axis=1)
    spread = np.sqrt((first * (1.0 - first)).sum(axis=1))
    assert (np.abs(drawn - first.sum(axis=1)) < 6.0 * spread).all()


def test_other_keys_go_one_by_one() -> None:
    model = lattice((12, 90), False, True)
    for kernel in (gs.HerdedGibbs(keys="binned"), gs.HerdedGibbs(rule="bounded"), gs.HerdedGibbs(storage="hash")):
        assert run(model, kernel, False).plan.form == "plain"
        with pytest.raises(AssertionError):
            run(model, kernel, True)
