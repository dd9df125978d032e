"""Binary quadratic models against dimod's own energies."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats import from_bqm, from_ising, from_qubo, to_bqm
from gibbsite.models import AgreementFactors, FactorGraph, SpinFactors, ising, ising_grid

dimod: Any = pytest.importorskip("dimod")

BIAS = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.5])


@st.composite
def bqms(draw: st.DrawFn) -> Any:
    variables = draw(st.permutations(["a", "b", 7, ("t", 1)]))
    bqm = dimod.BinaryQuadraticModel(draw(st.sampled_from(["SPIN", "BINARY"])))
    for v in variables[: draw(st.integers(1, 4))]:
        bqm.add_linear(v, draw(BIAS))
    for u, v in itertools.combinations(list(bqm.variables), 2):
        if draw(st.booleans()):
            bqm.add_quadratic(*draw(st.permutations([u, v])), draw(BIAS))
    bqm.offset = draw(BIAS)
    return bqm


def assignments(model: FactorGraph) -> list[dict[str, Any]]:
    values = itertools.product(*(model.labels(k) for k in range(model.n_sites)))
    return [dict(zip(model.sites, each, strict=True)) for each in values]


@given(bqms(), st.sampled_from([0.5, 1.0, 3.0]))
@settings(deadline=None, max_examples=100)
def test_log_potential_is_minus_beta_times_energy(bqm: Any, beta: float) -> None:
    model = from_bqm(bqm, beta=beta)
    assert model.sites == tuple(str(v) for v in bqm.variables)
    assert model.labels(0) == ((-1, 1) if bqm.vartype is dimod.SPIN else (0, 1))
    back = to_bqm(model, beta=beta)
    assert back.vartype is bqm.vartype
    for x in assignments(model):
        energy = bqm.energy({v: x[str(v)] for v in bqm.variables})
        assert model.log_potential(x) == pytest.approx(-beta * energy, abs=1e-9)
        assert back.energy(x) == pytest.approx(energy, abs=1e-9)


def test_qubos_mean_what_dimod_means() -> None:
    Q = {("a", "b"): 1.0, ("a", "a"): -1, ("b", "a"): 0.5, ("c", "b"): -2.0, ("d", "d"): 0.0}
    model = from_qubo(Q, offset=3.0, beta=0.5)
    assert model.sites == ("a", "b", "c", "d")
    bqm = dimod.BinaryQuadraticModel.from_qubo(Q, 3.0)
    for x in assignments(model):
        assert model.log_potential(x) == pytest.approx(-0.5 * bqm.energy(x))
    matrix = np.array([[-1.0, 2.0, 0.0], [0.5, 0.0, -3.0], [0.0, 0.0, 4.0]])
    for same in (matrix, matrix.tolist(), sparse.csr_array(matrix), sparse.coo_matrix(matrix)):
        model = from_qubo(same)
        assert model.labels(0) == (0, 1)
        for x in assignments(model):
            bits = np.array(list(x.values()))
            assert model.log_potential(x) == pytest.approx(-bits @ matrix @ bits)
    with pytest.raises(ModelError, match=r"square matrix, got shape \(2, 3\)"):
        from_qubo(np.ones((2, 3)))
    assert from_qubo({}).n_sites == 0


def test_dictionaries_mean_what_dimod_means() -> None:
    h = {"a": 0.5, "b": -1.0}
    J = {("a", "b"): 1.0, ("b", "a"): 0.25, ("c", "b"): -2.0}
    model = from_ising(h, J, offset=3.0, beta=0.5)
    assert model.sites == ("a", "b", "c")
    bqm = dimod.BinaryQuadraticModel.from_ising(h, J, 3.0)
    for x in assignments(model):
        assert model.log_potential(x) == pytest.approx(-0.5 * bqm.energy(x))
    assert model.group("couplings").scopes.tolist() == [[0, 1], [1, 2]]
    assert from_ising([0.5, 1.0], {(0, 2): 1.0}).sites == ("0", "1", "2")
    assert from_ising({}, {}).n_sites == 0


def test_any_binary_pairwise_model_can_leave() -> None:
    rng = np.random.default_rng(4)
    model = FactorGraph(
        {"a": ["no", "yes"], "b": 2, "c": 2},
        [(("a", "b"), rng.random((2, 2))), (("b", "a"), rng.random((2, 2))), ("c", [0.2, 0.7])],
        groups=[SpinFactors([[0, 2]], [0.5]), AgreementFactors([[1, 2], [0, 2]], 0.25)],
    ).observe({"b": [0.3, 0.9]})
    spins = to_bqm(model, beta=2.0)
    bits = to_bqm(model, vartype="BINARY")
    assert (spins.vartype, bits.vartype) == (dimod.SPIN, dimod.BINARY)
    for x in itertools.product(range(2), repeat=3):
        energy = -model.log_potential(x)
        named = dict(zip("abc", x, strict=True))
        assert bits.energy(named) == pytest.approx(energy)
        assert spins.energy({k: 2 * v - 1 for k, v in named.items()}) == pytest.approx(energy / 2)


def test_lattices_and_couplings_leave_exactly() -> None:
    bqm = to_bqm(ising_grid((2, 2), 0.1, 0.3))
    assert set(bqm.quadratic.values()) == {-0.1}
    assert set(bqm.linear.values()) == {-0.3}
    assert to_bqm(ising([[0, 0.7], [0.7, 0]])).quadratic == {("0", "1"): -0.7}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FactorGraph({"a": 2, "b": 3}), r"the site 'b' has 3 states; this format needs two"),
        (
            FactorGraph(3, groups=[SpinFactors([[0, 1, 2]], [1.0])], states=2),
            r"the factor over \(0, 1, 2\) has 3 sites; this format needs pairs",
        ),
        (
            FactorGraph({"a": 2, "b": 2}, [("a", [1, 1]), ("b", [0, 1])]),
            r"the factor over \(b\) has a zero potential; this format has finite energies",
        ),
    ],
)
def test_models_that_cannot_leave(model: FactorGraph, message: str) -> None:
    with pytest.raises(IncompatibleError, match=message):
        to_bqm(model)


def test_bad_arguments() -> None:
    with pytest.raises(ModelError, match=r"J couples 'a' with itself"):
        from_ising({}, {("a", "a"): 1.0})
    with pytest.raises(ModelError, match=r"beta must be a number not below 0, got nan"):
        from_ising({"a": 1.0}, {}, beta=float("nan"))
    with pytest.raises(ModelError, match=r"beta must be positive, got 0"):
        to_bqm(ising([[0]]), beta=0)
    with pytest.raises(ModelError, match=r"the site name '1' is given twice"):
        from_ising({1: 0.5, "1": 0.5}, {})
    with pytest.raises(ModelError, match=r"group 'fields' over \(a\) has the weight nan"):
        from_ising({"a": float("nan")}, {})


def test_other_vartypes_are_refused() -> None:
    class Odd:
        vartype = "INTEGER"

    with pytest.raises(IncompatibleError, match=r"the BQM has vartype INTEGER"):
        from_bqm(Odd())


def test_other_objects_of_dimod_are_refused_by_name() -> None:
    cqm = dimod.ConstrainedQuadraticModel()
    cqm.set_objective(dimod.Binary("a"))
    with pytest.raises(IncompatibleError, match=r"got ConstrainedQuadraticModel; dimod\.cqm_to_bqm\(cqm\)") as said:
        from_bqm(cqm)
    assert "method" not in str(said.value)
    cubic = dimod.BinaryPolynomial({"abc": 1.0}, dimod.SPIN)
    with pytest.raises(IncompatibleError, match=r"got BinaryPolynomial; use gs\.formats\.from_polynomial"):
        from_bqm(cubic)
