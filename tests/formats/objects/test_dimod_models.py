"""Binary polynomials and discrete quadratic models of dimod."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gibbsite.errors import IncompatibleError, ModelError, TooLargeError
from gibbsite.formats import from_bqm, from_dqm, from_polynomial

dimod: Any = pytest.importorskip("dimod")


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_energies_of_polynomials(vartype: str) -> None:
    rng = np.random.default_rng(3)
    names = ["a", "b", ("t", 1), 7]
    terms = [c for size in range(5) for c in itertools.combinations(names, size)]
    polynomial = dimod.BinaryPolynomial({term: rng.normal() for term in terms}, vartype)
    model = from_polynomial(polynomial, beta=0.5)
    assert set(model.sites) == {"a", "b", "('t', 1)", "7"}
    for values in itertools.product((-1, 1) if vartype == "SPIN" else (0, 1), repeat=4):
        sample = dict(zip(names, values, strict=True))
        x = {str(name): value for name, value in sample.items()}
        assert model.log_potential(x) == pytest.approx(-0.5 * polynomial.energy(sample))


def test_energies_of_discrete_models() -> None:
    rng = np.random.default_rng(4)
    dqm = dimod.DiscreteQuadraticModel()
    for name, cases in (("a", 3), ((0, 1), 2), ("c", 4)):
        dqm.add_variable(cases, label=name)
        dqm.set_linear(name, rng.normal(size=cases))
    dqm.set_quadratic("a", "c", rng.normal(size=(3, 4)))
    dqm.set_quadratic_case("c", 1, (0, 1), 0, 2.5)
    dqm.offset = -1.5
    model = from_dqm(dqm, beta=2.0)
    assert model.sites == ("a", "(0, 1)", "c") and model.cards.tolist() == [3, 2, 4]
    for values in itertools.product(range(3), range(2), range(4)):
        sample = dict(zip(("a", (0, 1), "c"), values, strict=True))
        assert model.log_potential(sample) == pytest.approx(-2.0 * dqm.energy(sample))


def test_cases_with_labels() -> None:
    dqm = dimod.CaseLabelDQM()
    dqm.add_variable(["red", "green"], label="x", shared_labels=True)
    dqm.add_variable(["red", "v", "w"], label="y", shared_labels=True)
    dqm.set_quadratic_case("x", "red", "y", "w", -3.0)
    dqm.set_linear_case("x", "red", 1.0)
    dqm.set_linear_case("x", "green", 2.0)
    model = from_dqm(dqm)
    assert model.labels("x") == ("red", "green")
    assert model.log_potential({"x": "red", "y": "w"}) == 2.0
    assert model.log_potential({"x": "green", "y": "w"}) == -2.0


def test_what_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="takes a dimod BinaryPolynomial, got dict"):
        from_polynomial({})
    with pytest.raises(IncompatibleError, match="takes a dimod DiscreteQuadraticModel, got dict"):
        from_dqm({})
    with pytest.raises(TooLargeError, match="a term has 40 variables"):
        from_polynomial(dimod.BinaryPolynomial({tuple(range(40)): 1.0}, "SPIN"))
    with pytest.raises(ModelError, match="beta must be positive"):
        from_polynomial(dimod.BinaryPolynomial({"ab": 1.0}, "SPIN"), beta=-1.0)
    dqm = dimod.DiscreteQuadraticModel()
    dqm.add_variable(2, label=1)
    dqm.add_variable(2, label="1")
    with pytest.raises(IncompatibleError, match="two variables have the same name as text, '1'"):
        from_dqm(dqm)


def test_other_functions_are_named() -> None:
    with pytest.raises(IncompatibleError, match=r"use gs\.formats\.from_polynomial"):
        from_bqm(dimod.BinaryPolynomial({"abc": 1.0}, "SPIN"))
    with pytest.raises(IncompatibleError, match=r"use gs\.formats\.from_dqm"):
        from_bqm(dimod.DiscreteQuadraticModel())
    cqm = dimod.ConstrainedQuadraticModel()
    with pytest.raises(IncompatibleError, match="turns constraints into penalties"):
        from_bqm(cqm)
