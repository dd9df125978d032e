"""Bounds on influence hold against brute force, theorems are exact where they say so, norms are norms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array

import gibbsite as gs
from gibbsite.inference.influence import read_influence
from tests.inference.influence.random_models import KINDS, brute_influence, random_model

ROUNDING = 1e-14


def theorem_11(coupling: Any, field: Any, others: Any) -> Any:
    """Bound the influence between two spins of a pairwise model exp(theta_ij s_i s_j + theta_i s_i).

    ``coupling`` is theta_ij, ``field`` theta_i of the influenced spin, ``others`` the sum of abs(theta_ik) over its
    other neighbours. This is theorem 11 of Mitliagkas and Mackey (2017), which is exact unless the other neighbours
    cannot bring the log-odds as close to zero as their range allows.
    """
    u = 2.0 * np.abs(coupling)
    m = np.maximum(2.0 * np.abs(field) - 2.0 * np.asarray(others, np.float64), 0.0)
    return -np.expm1(-2.0 * u) / (1.0 + np.exp(-2.0 * u) + np.exp(m - u) + np.exp(-m - u))


def theorem_10(log_table: np.ndarray) -> float:
    """Bound the influence of the second site of a pair on the first, from their summed log-potentials (K_i, K_j)."""
    table = np.asarray(log_table, np.float64)
    change = table[:, :, None] - table[:, None, :]
    return float(np.tanh(np.max(change.max(axis=0) - change.min(axis=0)) / 4.0))


def theorem_12(shared: Any, field: Any, others: Any) -> Any:
    """Bound the influence between two spins of a model with products of any number of spins.

    ``shared`` is the sum of abs(theta_S) over the products with both spins, ``others`` that over the products with i
    but without j, ``field`` theta_i of the influenced spin. This is theorem 12 as printed, which may exceed 1;
    :func:`theorem_11` with ``shared`` in place of the coupling holds as well and is never larger, since the influence
    grows with the coupling.
    """
    b = np.exp(-np.maximum(2.0 * np.abs(field) - 2.0 * np.asarray(others, np.float64), 0.0))
    return 2.0 * np.sinh(2.0 * np.abs(shared)) * b / (1.0 + b) ** 2


def check_bounds(kind: str, models: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(models):
        model = random_model(kind, rng)
        true = brute_influence(model)
        bound, best = gs.influence.bound_influence(model, "bound"), gs.influence.bound_influence(model)
        assert (bound.to_dense() >= true - ROUNDING).all()
        assert best.exact.all()
        assert best.to_dense() == pytest.approx(true, abs=1e-11)
        assert (best.to_dense() >= true - ROUNDING).all()
        assert (bound.value <= 1.0).all()
        assert bound.to_dense()[bound.exact] == pytest.approx(true[bound.exact], abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_at_least_the_influence(kind: str) -> None:
    check_bounds(kind, 40, seed=1)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_on_thousands_of_models(kind: str) -> None:
    check_bounds(kind, 1500, seed=2)


def spins(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, gs.FactorGraph]:
    n = int(rng.integers(2, 6))
    upper = np.triu(rng.normal(0, rng.choice([0.1, 0.5, 2.0]), (n, n)), 1)
    field = rng.normal(0, 1, n)
    return upper + upper.T, field, gs.ising(upper, field)


@pytest.mark.parametrize("seed", range(20))
def test_theorem_11_is_exact_unless_its_cutoff_is_out_of_reach(seed: int) -> None:
    theta, field, model = spins(np.random.default_rng(seed))
    true = brute_influence(model)
    loose = gs.influence.bound_influence(model, "bound").to_dense()
    for i in range(len(field)):
        for j in range(len(field)):
            if i != j:
                others = np.abs(theta[i]).sum() - abs(theta[i, j])
                bound = theorem_11(theta[i, j], field[i], others)
                assert bound == pytest.approx(loose[i, j], abs=1e-14)
                assert bound >= true[i, j] - ROUNDING
                if abs(field[i]) >= others:  # the cutoff is not used: b* differs from 1
                    assert bound == pytest.approx(true[i, j], abs=1e-14)


def test_theorem_12_is_what_its_tightened_form_tightens() -> None:
    rng = np.random.default_rng(5)
    shared, field, others = rng.exponential(1, 1000), rng.normal(0, 2, 1000), rng.exponential(1, 1000)
    assert (theorem_11(shared, field, others) <= theorem_12(shared, field, others) + ROUNDING).all()


def test_higher_order_products_of_spins_get_the_tightened_theorem_12() -> None:
    signs = np.array([-1.0, 1.0])
    triple = 0.4 * signs[:, None, None] * signs[:, None] * signs
    pair = -0.3 * signs[:, None] * signs
    model = gs.FactorGraph(
        4, states=2, log_factors=[((0, 1, 2), triple), ((0, 3), pair), ((0,), 0.6 * signs), ((0, 1), 0.5 * pair)]
    )
    bound = gs.influence.bound_influence(model, "bound").to_dense()
    assert bound[0, 1] == pytest.approx(theorem_11(0.4 + 0.15, 0.6, 0.3), abs=1e-12)
    assert bound[0, 2] == pytest.approx(theorem_11(0.4, 0.6, 0.3 + 0.15), abs=1e-12)
    assert bound[0, 3] == pytest.approx(theorem_11(0.3, 0.6, 0.4 + 0.15), abs=1e-12)


def test_theorem_10_for_agreements_and_for_pairs_of_tables() -> None:
    model = gs.potts_grid((3, 4), states=5, coupling=0.48)
    influence = gs.influence.bound_influence(model, "bound")
    assert influence.value == pytest.approx(np.tanh(0.24), abs=1e-15)
    rng = np.random.default_rng(3)
    table = rng.normal(size=(3, 4))
    pair = gs.FactorGraph({"a": 3, "b": 4}, log_factors=[(("a", "b"), table)])
    dense = gs.influence.bound_influence(pair, "bound").to_dense()
    assert dense[0, 1] == pytest.approx(theorem_10(table), abs=1e-15)
    assert dense[1, 0] == pytest.approx(theorem_10(table.T), abs=1e-15)


def torus(states: int, table: np.ndarray, size: int = 4) -> gs.FactorGraph:
    """Return a square lattice on a torus with the same table for all pairs."""
    site = np.arange(size**2).reshape(size, size)
    pairs = [np.stack([site, np.roll(site, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    return gs.FactorGraph(size**2, log_factors=[(tuple(pair), table) for pair in np.concatenate(pairs)], states=states)


@pytest.mark.parametrize("states", [5, 6, 9, 12, 100])
def test_colorings_have_the_influence_of_one_color_among_those_left(states: int) -> None:
    # the other three neighbours exclude three colors, the moving one each of two others: 1 / (states - 4)
    model = torus(states, np.where(np.eye(states) > 0, -np.inf, 0.0))
    exact, bound = gs.influence.bound_influence(model), gs.influence.bound_influence(model, "bound")
    assert exact.exact.all()
    assert not bound.exact.any()
    for found in (exact, bound):
        assert found.value == pytest.approx(1.0 / (states - 4), rel=1e-13)
    assert (exact.total < 1.0) == (states > 8)


@pytest.mark.parametrize("weight", [-3.0, -0.7, 0.4])
@pytest.mark.parametrize("states", [3, 5])
def test_numbers_of_neighbours_give_what_configurations_give(states: int, weight: float) -> None:
    for leaves in range(1, 6):
        hub = np.array([[0, i] for i in range(1, leaves + 1)])
        model = gs.FactorGraph(leaves + 1, states=states, groups=[gs.factors.AgreementFactors(hub, weight)])
        table = gs.FactorGraph(
            leaves + 1, states=states, log_factors=[(tuple(pair), weight * np.eye(states)) for pair in hub]
        )
        for each in (model, table):
            found = gs.influence.bound_influence(each)
            assert found.exact.all()
            assert found.to_dense() == pytest.approx(brute_influence(model), abs=1e-12)


def partitions(number: int, parts: int) -> int:
    """Return in how many ways a number is a sum of at most ``parts`` positive numbers."""
    if number == 0 or parts == 0:
        return int(number == 0)
    return partitions(number, parts - 1) + (partitions(number - parts, parts) if number >= parts else 0)


def test_numbers_of_many_neighbours_are_few() -> None:
    # 12 ** 20 configurations, but the other 19 neighbours are distributed over 12 states alike in few ways
    ways = partitions(19, 12)
    hub = np.array([[0, i] for i in range(1, 21)])
    model = gs.FactorGraph(21, states=12, groups=[gs.factors.AgreementFactors(hub, -0.5)])
    found = gs.influence.bound_influence(model, "exact")
    bound = gs.influence.bound_influence(model, "bound").to_dense()[0, 1]
    assert found.to_dense()[0, 1] <= bound <= 1.05 * found.to_dense()[0, 1]
    assert bound < np.tanh(0.25) / 3
    with pytest.raises(gs.errors.ModelError, match="configurations"):
        gs.influence.bound_influence(model, "exact", limit=ways - 1)
    assert gs.influence.bound_influence(model, "exact", limit=ways).exact.all()


def test_a_list_of_colors_leaves_fewer_choices() -> None:
    differ = np.where(np.eye(6) > 0, -np.inf, 0.0)
    pairs: list[tuple[tuple[int, ...], np.ndarray]] = [((0, i), differ) for i in range(1, 4)]
    full = gs.FactorGraph(4, states=6, log_factors=pairs)
    listed = gs.FactorGraph(4, states=6, log_factors=[*pairs, ((0,), np.array([0.0] * 4 + [-np.inf] * 2))])
    for model, wanted in ((full, 1 / 3), (listed, 1.0)):
        for method in ("best", "bound"):
            assert gs.influence.bound_influence(model, method).to_dense()[0, 1] == pytest.approx(wanted)
        assert gs.influence.bound_influence(model).to_dense() == pytest.approx(brute_influence(model), abs=1e-13)


def test_repeated_pairs_are_added_up_before_they_are_bounded() -> None:
    once = gs.FactorGraph(2, states=2, groups=[gs.factors.SpinFactors([[0, 1]], [0.5])])
    twice = gs.FactorGraph(2, states=2, groups=[gs.factors.SpinFactors([[0, 1], [1, 0]], [0.8, -0.3])])
    assert gs.influence.bound_influence(twice).to_dense() == pytest.approx(
        gs.influence.bound_influence(once).to_dense(), abs=1e-15
    )
    potts = gs.FactorGraph(2, states=3, groups=[gs.factors.AgreementFactors([[0, 1], [0, 1]], [0.8, -0.3])])
    assert gs.influence.bound_influence(potts, "bound").value == pytest.approx(np.tanh(0.25))


def test_lattices_and_their_explicit_pairs_agree() -> None:
    rng = np.random.default_rng(8)
    for shape, periodic in (((4, 5), False), ((3, 4), True), ((3, 3, 4), True), ((7,), True), ((1, 1), False)):
        weights = rng.normal(0, 0.4, (len(shape), *shape))
        model = gs.ising_grid(shape, coupling=weights, field=rng.normal(size=shape), periodic=periodic)
        explicit = gs.FactorGraph(
            model.n_sites, states=2, groups=[g.explicit() if hasattr(g, "explicit") else g for g in model.groups]
        )
        assert gs.graphs.compile_graph(explicit).kind == "ising"
        for method in ("bound", "best"):
            a, b = gs.influence.bound_influence(model, method), gs.influence.bound_influence(explicit, method)
            assert a.start.tolist() == b.start.tolist()
            assert a.neighbour.tolist() == b.neighbour.tolist()
            assert a.value == pytest.approx(b.value, abs=1e-13)


def test_extreme_weights_give_no_nan() -> None:
    for coupling, field in ((1e4, 0.0), (1e4, 1e4), (1.0, 1e5), (1e-300, 0.0), (500.0, -499.5)):
        for method in ("bound", "best"):
            value = gs.influence.bound_influence(gs.ising_grid((2, 3), coupling=coupling, field=field), method).value
            assert ((value >= 0) & (value <= 1)).all()
    tables = gs.FactorGraph(3, states=2, log_factors=[((0, 1, 2), 1e4 * np.arange(8.0).reshape(2, 2, 2) ** 2)])
    assert (
        (gs.influence.bound_influence(tables, "bound").value >= 0) & (gs.influence.bound_influence(tables).value <= 1)
    ).all()


@pytest.mark.parametrize("seed", range(10))
def test_norms_are_upper_bounds_and_nearly_tight(seed: int) -> None:
    influence = gs.influence.bound_influence(random_model("ising", np.random.default_rng(seed)))
    dense, norms = influence.to_dense(), influence.norms
    assert norms.row_sum == pytest.approx(dense.sum(axis=1).max())
    assert norms.column_sum == pytest.approx(dense.sum(axis=0).max())
    spectral, radius = np.linalg.norm(dense, 2), np.abs(np.linalg.eigvals(dense)).max()
    assert spectral * (1 - 1e-12) <= norms.spectral <= spectral * 1.05
    assert radius * (1 - 1e-12) <= norms.radius <= max(radius * 1.05, norms.row_sum)
    assert influence.to_scipy().toarray() == pytest.approx(dense)
    back = influence.rows.back
    row = np.repeat(np.arange(influence.n_sites), np.diff(influence.start.astype(int)))
    assert (dense[influence.neighbour, row] == back).all()


def test_bounds_from_outside() -> None:
    given = np.array([[0, 0.2, 0], [0, 0, 0.5], [0.1, 0, 0]])
    for form in (given, given.tolist(), coo_array(given)):
        assert read_influence(form, 3).to_dense().tolist() == given.tolist()
    influence = read_influence(given, 3)
    assert read_influence(influence, 3) is influence
    assert influence.scaled(1.5).to_dense() == pytest.approx(1.5 * given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((2, 2)), r"shape \(2, 2\).*\(3, 3\)"),
        (np.zeros(3), "square matrix"),
        ([[0, 1.5, 0], [0, 0, 0], [0, 0, 0]], r"entry \(0, 1\) is 1.5"),
        ([[0, -0.1, 0], [0, 0, 0], [0, 0, 0]], r"entry \(0, 1\) is -0.1"),
        ([[0, np.nan, 0], [0, 0, 0], [0, 0, 0]], "nan"),
        ([[0.5, 0, 0], [0, 0, 0], [0, 0, 0]], "itself"),
        ("abc", "matrix of numbers"),
        ([[0, 1], [1]], "matrix of numbers"),
    ],
)
def test_bad_matrices_are_refused(given: object, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        read_influence(given, 3)


def test_bad_requests_are_refused() -> None:
    model = gs.ising_grid((6, 6))
    with pytest.raises(gs.errors.ModelError, match="unknown"):
        gs.influence.bound_influence(model, "magic")
    with pytest.raises(gs.errors.ModelError, match="limit"):
        gs.influence.bound_influence(model, limit=0)
    star = gs.ising(np.eye(30, k=0) * 0 + np.outer(np.eye(30)[0], np.ones(30)) - np.outer(np.eye(30)[0], np.eye(30)[0]))
    with pytest.raises(gs.errors.ModelError, match="configurations"):
        gs.influence.bound_influence(star, "exact")
    with pytest.raises(gs.errors.ModelError, match="at least 1"):
        gs.influence.bound_influence(model).scaled(0.5)


def test_the_statement_says_on_which_side_of_one() -> None:
    assert "< 1" in gs.influence.bound_influence(gs.ising_grid((5, 5), coupling=0.2)).statement
    assert ">= 1" in gs.influence.bound_influence(gs.ising_grid((5, 5), coupling=0.6)).statement
    hard = gs.FactorGraph(2, [((0, 1), [[1, 0], [0, 1]])], states=2)
    assert "hard zeros" in gs.influence.bound_influence(hard).statement
    assert gs.influence.bound_influence(gs.FactorGraph(3, states=2)).total == 0.0
