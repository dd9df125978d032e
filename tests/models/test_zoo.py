"""Builders against the formulas they promise, over all states of small models."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gibbsite.errors import ModelError
from gibbsite.models import (
    FactorGraph,
    FieldFactors,
    LatticeFactors,
    SpinFactors,
    ising,
    ising_grid,
    potts,
    potts_grid,
    rbm,
)

sparse: Any = pytest.importorskip("scipy.sparse")

RNG = np.random.default_rng(99)
N = 5
J = np.triu(RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.7), 1)
H = RNG.normal(size=N)
I_EDGE, J_EDGE = np.nonzero(J)
FLIP = np.arange(len(I_EDGE)) % 2 == 0
SHUFFLE = RNG.permutation(len(I_EDGE))
A_EDGE, B_EDGE = np.where(FLIP, I_EDGE, J_EDGE)[SHUFFLE], np.where(FLIP, J_EDGE, I_EDGE)[SHUFFLE]
W_EDGE = J[I_EDGE, J_EDGE]

SAME: dict[str, Any] = {
    "symmetric": J + J.T,
    "upper": J,
    "lower": J.T,
    "list": (J + J.T).tolist(),
    "csr": sparse.csr_matrix(J + J.T),
    "csc array": sparse.csc_array(J + J.T),
    "coo upper": sparse.coo_matrix(J),
    "dia lower": sparse.dia_matrix(J.T),
    "coo with sums": sparse.coo_matrix(
        (np.r_[W_EDGE, W_EDGE] / 2, (np.r_[I_EDGE, I_EDGE], np.r_[J_EDGE, J_EDGE])), (N, N)
    ),
    "edges": (I_EDGE, J_EDGE, W_EDGE),
    "edges in any order": (A_EDGE, B_EDGE, W_EDGE[SHUFFLE]),
    "edges in both directions": (np.r_[I_EDGE, J_EDGE], np.r_[J_EDGE, I_EDGE], np.r_[W_EDGE, W_EDGE]),
    "last bits differ": J + J.T * (1 + 1e-14),
}


def states(n: int, k: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(k), repeat=n)


@pytest.mark.parametrize("key", SAME)
def test_ising_is_its_formula(key: str) -> None:
    model = ising(SAME[key], H)
    for x in states(N, 2):
        s = 2.0 * np.array(x) - 1
        expected = sum(J[i, j] * s[i] * s[j] for i in range(N) for j in range(i + 1, N)) + H @ s
        assert model.log_potential(x) == pytest.approx(expected, abs=1e-12)
        assert model.log_potential({str(k): int(v) for k, v in enumerate(s)}) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 2), (2, 4), (0, 3), (2, 0)])
def test_rbm_is_its_formula(m: int, n: int) -> None:
    w, b, c = RNG.normal(size=(m, n)), RNG.normal(size=m), RNG.normal(size=n)
    model = rbm(w, b, c)
    assert model.sites == tuple([f"v{i}" for i in range(m)] + [f"h{j}" for j in range(n)])
    for x in states(m + n, 2):
        v, h = np.array(x[:m], float), np.array(x[m:], float)
        expected = v @ w @ h + b @ v + c @ h
        assert model.log_potential(x) == pytest.approx(expected, abs=1e-12)
        assert rbm(w, hidden=0.5).log_potential(x) == pytest.approx(v @ w @ h + 0.5 * h.sum(), abs=1e-12)


def test_couplings_of_an_rbm_are_its_weights_row_by_row() -> None:
    w, other = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3))
    model = rbm(w)
    group = model.group("couplings")
    assert group.scopes.tolist() == [[i, 2 + j] for i in range(2) for j in range(3)]
    fields = np.concatenate([other.sum(axis=1), other.sum(axis=0)]) / 4
    changed = model.reweight(couplings=other.ravel() / 4, fields=fields)
    x, y = [1, 0, 1, 1, 0], [0, 1, 1, 0, 0]
    difference = changed.log_potential(x) - changed.log_potential(y)
    assert difference == pytest.approx(other[0, :2].sum() - other[1, 0], abs=1e-12)


@pytest.mark.parametrize("key", SAME)
def test_pairs_come_once_and_sorted(key: str) -> None:
    group = ising(SAME[key]).group("couplings")
    assert isinstance(group, SpinFactors)
    assert group.scopes.tolist() == [list(pair) for pair in zip(I_EDGE, J_EDGE, strict=True)]
    np.testing.assert_allclose(group.weights, W_EDGE, rtol=1e-12)


@pytest.mark.parametrize("key", ["symmetric", "csr", "edges in both directions"])
@pytest.mark.parametrize("per_site", [False, True])
def test_potts_is_its_formula(key: str, per_site: bool) -> None:
    h = RNG.normal(size=(N, 3) if per_site else 3)
    model = potts(SAME[key], 3, h)
    rows = np.broadcast_to(h, (N, 3))
    for x in itertools.islice(states(N, 3), 0, None, 5):
        expected = sum(J[i, j] * (x[i] == x[j]) for i in range(N) for j in range(i + 1, N)) + sum(
            rows[i, x[i]] for i in range(N)
        )
        assert model.log_potential(x) == pytest.approx(expected, abs=1e-12)


def test_defaults_names_and_labels() -> None:
    model = ising(J, sites=list("vwxyz"))
    assert model.sites == tuple("vwxyz")
    assert model.labels("v") == (-1, 1)
    assert model.group("fields").scopes.tolist() == [[k] for k in range(N)]
    assert model.reweight(fields=H).log_potential([1] * N) == pytest.approx(J.sum() + H.sum())
    assert ising(J, 0.5).log_potential([1] * N) == pytest.approx(J.sum() + 0.5 * N)
    assert potts(J, ["r", "g", "b"]).labels(0) == ("r", "g", "b")
    shifted = potts(J, 3).reweight(fields=[0.0, 0.0, 1.0])
    assert shifted.log_potential([2] * N) == pytest.approx(J.sum() + N)


def test_size_of_an_edge_list() -> None:
    edges = ([0, 1], [1, 3], [1.0, 2.0])
    assert ising(edges).n_sites == 4
    assert ising(edges, np.zeros(6)).n_sites == 6
    assert ising(edges, sites=list("abcdef")).n_sites == 6
    assert potts(edges, 2, np.zeros((7, 2))).n_sites == 7
    assert potts(edges, 2, np.zeros(2)).n_sites == 4
    assert ising(([], [], []), np.zeros(3)).log_potential([0, 1, 0]) == 0.0
    assert ising(([0, 1], [1, 2], 0.5)).log_potential([1, 1, 1]) == 1.0


def test_stored_zeros_of_a_sparse_matrix_are_couplings() -> None:
    matrix = sparse.csr_matrix(([1.0, 0.0], ([0, 1], [1, 2])), (3, 3))
    model = ising(matrix)
    assert model.group("couplings").scopes.tolist() == [[0, 1], [1, 2]]
    assert model.reweight(couplings=[0.0, 3.0]).log_potential([0, 1, 1]) == 3.0
    one_sided = sparse.csr_matrix(([1.0, 0.0, 1.0], ([0, 0, 1], [1, 2, 0])), (3, 3))
    assert ising(one_sided).group("couplings").size == 2


@pytest.mark.parametrize("wrap", [np.array, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1, 0], [2, 0, 0], [0, 0, 0]], r"sites 0 and 1 differ between \(0, 1\) and \(1, 0\)"),
        ([[0, 1, 0], [0, 0, 0], [0, 1, 0]], r"sites 0 and 1 differ .* symmetric or a triangular"),
        ([[0, 1], [1, 3]], r"have 3 on the diagonal at site 1; .* use fields"),
        ([[0, 1, 2], [1, 0, 2]], r"must be a square matrix, got shape \(2, 3\)"),
        ([[0, np.nan], [np.nan, 0]], r"factor 0 of group 'couplings' over \(0, 1\) has .* nan"),
    ],
)
def test_bad_matrices(wrap: Any, matrix: Any, message: str) -> None:
    couplings = wrap(np.array(matrix, float))
    with pytest.raises(ModelError, match=message):
        ising(couplings)
    with pytest.raises(ModelError, match=message):
        potts(couplings, 3)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (([0, 0], [1, 1], [1.0, 1.0]), r"sites 0 and 1 is given twice; list each pair once"),
        (([0, 1, 1], [1, 0, 2], [1.0, 1.0, 1.0]), r"sites 0 and 1 is given twice"),
        (([0, 1], [1, 0], [1.0, 2.0]), r"sites 0 and 1 differ"),
        (([0, 2], [1, 2], [1.0, 1.0]), r"have 1 on the diagonal at site 2"),
        (([0, -1], [1, 2], [1.0, 1.0]), r"name sites from -1 to 2"),
        (([0.0], [1.0], [1.0]), r"need integer site positions"),
        (([0, 1], [1], [1.0]), r"must have equal lengths, got shapes \(2,\), \(1,\) and \(1,\)"),
        (([0], [1]), r"must be a tuple \(i, j, w\), got 2 entries"),
    ],
)
def test_bad_edges(edges: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ising(edges)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ising(J, np.zeros(4)), r"fields have shape \(4,\); expected a number or 5 fields"),
        (lambda: potts(J, 3, np.zeros(5)), r"shape \(5,\); expected \(3,\) or \(5, 3\)"),
        (lambda: ising(J, sites=["a"]), r"couplings are for 5 sites, but 1 names are given"),
        (lambda: ising(([0], [9], [1.0]), np.zeros(3)), r"from 0 to 9, but there are 3 sites"),
        (lambda: ising(J, [0, 0, np.inf, 0, 0]), r"factor 2 of group 'fields' over \(2\) .* inf"),
        (lambda: rbm(np.zeros(4)), r"^weights have shape \(4,\); expected \(visible units, hidden"),
        (
            lambda: rbm(np.zeros((2, 3)), np.zeros(3)),
            r"^visible biases have shape \(3,\); expected a number or 2 biases, .* shape \(2, 3\)\.$",
        ),
        (lambda: rbm(np.zeros((2, 3)), hidden=np.zeros((3, 1))), r"^hidden biases have shape \(3, 1\); "),
        (lambda: rbm([[1.0, np.nan]]), r"^weights must be finite, got nan at \(0, 1\)\.$"),
        (lambda: rbm([[1.0]], [np.inf]), r"^visible biases must be finite, got inf at 0; observe a unit .*certain\.$"),
        (lambda: rbm([[1.0]], 0.0, -np.inf), r"^hidden biases must be finite, got -inf at 0; "),
        (lambda: rbm(np.full((2, 2), 1e308)), r"^weights and biases add up to more than 1.8e308"),
        (lambda: rbm([["a"]]), r"^weights must be real numbers, got text"),
        (lambda: ising_grid((2, 2), np.zeros((2, 2))), r"shape \(2, 2\) do not fit the lattice"),
        (lambda: ising_grid((3, 3), (1.0, np.zeros((2, 3)))), r"along axis 1 have shape \(2, 3\)"),
        (
            lambda: ising_grid((3, 3), (np.zeros((2, 3)), 1.0), periodic=True),
            r"along axis 0 have shape \(2, 3\); expected a number or an array of shape \(3, 3\)\.",
        ),
        (lambda: ising_grid((3, 3), np.nan), r"the coupling along axis 0 is nan"),
        (lambda: ising_grid((2, 2), (0.0, [[np.inf, 0], [0, 0]])), r"the coupling along axis 1 at \(0, 0\) is inf"),
        (lambda: ising_grid((3, 3), field=np.zeros(9)), r"field has shape \(9,\); .* \(3, 3\)\."),
        (lambda: ising_grid((2, 3), periodic=True), r"axis 0 .* is periodic but has only 2 sites"),
        (lambda: potts_grid((2, 2), 3, 1.0, 0.5), r"shape \(\); expected \(K,\) or \(2, 2, K\)"),
        (lambda: potts_grid((2, 2), 0, 1.0), r"every site has no states"),
        (lambda: potts_grid((2, 2), 3, 1.0, [0, 1]), r"2 log-potentials .* have 3 states"),
    ],
)
def test_bad_arguments(build: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build()


def neighbours(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> Iterator[tuple[int, ...]]:
    """Yield (axis, site, successor) by walking over coordinates."""
    places = list(itertools.product(*map(range, shape)))
    for axis, place in itertools.product(range(len(shape)), places):
        after = tuple(c + (a == axis) for a, c in enumerate(place))
        if after[axis] == shape[axis]:
            if not periodic[axis]:
                continue
            after = tuple(0 if a == axis else c for a, c in enumerate(after))
        yield axis, places.index(place), places.index(after)


LATTICES = [
    ((7,), (False,)),
    ((5,), (True,)),
    ((3, 4), (False, False)),
    ((4, 3), (True, True)),
    ((2, 3), (False, True)),
    ((3, 1), (True, False)),
    ((2, 3, 2), (False, True, False)),
    ((1, 1), (False, False)),
]


@pytest.mark.parametrize(("shape", "periodic"), LATTICES)
@pytest.mark.parametrize("form", ["scalar", "per axis", "arrays", "stacked", "short"])
@pytest.mark.parametrize("spin", [True, False])
def test_lattices_are_their_formula(shape: tuple[int, ...], periodic: tuple[bool, ...], form: str, spin: bool) -> None:
    rng = np.random.default_rng(7)
    n, d, k = int(np.prod(shape)), len(shape), 2 if spin else 3
    full = rng.normal(size=(d, *shape))
    coupling: Any
    if form == "scalar":
        full[:] = coupling = 0.3
    elif form == "per axis":
        coupling = tuple(0.1 * (axis + 1) for axis in range(d))
        for axis in range(d):
            full[axis] = coupling[axis]
    elif form == "arrays":
        coupling = tuple(full)
    elif form == "stacked":
        coupling = full
    else:
        coupling = tuple(w if periodic[a] else np.delete(w, -1, axis=a) for a, w in enumerate(full))
    if spin:
        field = rng.normal(size=shape)
        model = ising_grid(shape, coupling, field, periodic=periodic)
    else:
        field = rng.normal(size=(*shape, k))
        model = potts_grid(shape, k, coupling, field, periodic=periodic)
    flat_field = field.reshape(n) if spin else field.reshape(n, k)
    group = model.group("couplings")
    pairs = list(neighbours(shape, periodic))
    assert isinstance(group, LatticeFactors)
    assert group.scopes.tolist() == [[i, j] for _, i, j in pairs]
    assert group.size == len(pairs)
    weights = [full[axis].reshape(n)[i] for axis, i, _ in pairs]
    np.testing.assert_array_equal(group.edge_weights(), weights)
    for _ in range(30):
        x = rng.integers(0, k, n)
        if spin:
            s = 2 * x - 1
            expected = sum(w * s[i] * s[j] for w, (_, i, j) in zip(weights, pairs, strict=True))
            expected += flat_field @ s
        else:
            expected = sum(w for w, (_, i, j) in zip(weights, pairs, strict=True) if x[i] == x[j]) + sum(
                flat_field[i, x[i]] for i in range(n)
            )
        assert model.log_potential(x) == pytest.approx(expected, abs=1e-9)


def test_lattice_weights_are_stored_by_site() -> None:
    coupling = (np.full((2, 3), np.nan), 0.5)
    coupling[0][0] = [1.0, 2.0, 3.0]
    group = ising_grid((2, 3), coupling).group("couplings")
    assert [w.tolist() for w in group.weights] == [[1.0, 2.0, 3.0, 0.0, 0.0, 0.0], [0.5]]


def test_lattices_take_new_weights_as_the_builder_does() -> None:
    rng = np.random.default_rng(11)
    grid, colors = ising_grid((3, 4)), potts_grid((3, 4), 3, 0.1)
    couplings, field = tuple(rng.normal(size=(2, 3, 4))), rng.normal(size=(3, 4))
    states_field = rng.normal(size=(3, 4, 3))
    assert grid.reweight(couplings=couplings, fields=field).digest == ising_grid((3, 4), couplings, field).digest
    assert (
        colors.reweight(couplings=(0.1, 0.2), fields=states_field).digest
        == potts_grid((3, 4), 3, (0.1, 0.2), states_field).digest
    )
    assert grid.reweight(couplings=1.0).shared is grid.shared


def test_a_line_may_be_given_by_its_length_and_couplings() -> None:
    for coupling in ([1.0, 2.0], np.array([1.0, 2.0]), ([1.0, 2.0],), np.array([[1.0, 2.0, 9.0]])):
        line = ising_grid(3, coupling)
        assert [line.log_potential([0, 0, x]) for x in (0, 1)] == [3.0, -1.0]


def test_sizes_may_be_numpy_numbers() -> None:
    size: Any = np.int64(3)
    rings: Any = np.bool_(True)
    assert potts_grid(size, size, 1.0, periodic=rings).group("couplings").size == 3
    assert potts(J, size).labels(0) == (0, 1, 2)


def bytes_of(model: FactorGraph) -> int:
    """Return the bytes of all arrays a model keeps, views of one number counting as one."""

    def size(array: npt.NDArray[Any]) -> int:
        return array.itemsize if array.strides == (0,) else array.nbytes

    total = size(model.cards) + size(model._domains.kind_of)
    for group in model.groups:
        assert isinstance(group, (LatticeFactors, FieldFactors))
        parts = group.weights if isinstance(group.weights, tuple) else (group.weights,)
        total += sum(size(array) for array in parts)
    return total


def test_a_uniform_lattice_costs_nothing_per_site() -> None:
    assert bytes_of(ising_grid((10_000, 1000), 0.4, 0.1, periodic=True)) < 100
    assert bytes_of(potts_grid((10_000, 1000), 3, 0.4)) < 100


def test_large_models_build_without_an_object_per_factor() -> None:
    # Far looser than what is measured: only a Python loop over factors would miss it.
    start = time.perf_counter()
    couplings = tuple(np.random.default_rng(0).normal(size=(2, 500, 500)))
    grid = ising_grid((500, 500), couplings)
    group = grid.group("couplings")
    assert isinstance(group, LatticeFactors)
    scopes, weights = group.scopes, group.edge_weights()
    model = ising((scopes[:, 0], scopes[:, 1], weights))
    x = np.random.default_rng(1).integers(0, 2, 250_000)
    assert model.log_potential(x) == pytest.approx(grid.log_potential(x))
    part = grid.observe({str(k): 1 for k in range(0, 250_000, 10)})
    assert part.n_sites == 225_000
    assert time.perf_counter() - start < 30.0
