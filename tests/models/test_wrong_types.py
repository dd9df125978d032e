"""Whatever is given to a function that builds a model: a model comes out, or one sentence of ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import gibbsite as gs
from gibbsite._common.reals import read_real, read_reals

WRONG: list[Any] = [
    *(None, "abc", b"ab", {}, {"a": 1}, {1, 2}, object(), lambda x: 0.0),
    *(1j, [1j, 2.0], math.nan, [math.nan], True, -1, 0, 2.5, 10**30, [10**400]),
    *([], [[]], (1, 2), (1, 2, 3), range(3), [1, [2, 3]], [[1, 2], [3]], ["a", "b"]),
    *(np.array(["x"]), np.ones((2, 2, 2, 2)), np.array([None]), sparse.eye(3) * 1j),
]
GRID = gs.ising_grid((2, 2))
EDGE: Any = ([0], [1], 1.0)
BUILDERS: dict[str, Callable[[Any], Any]] = {
    "sites": gs.FactorGraph,
    "names": lambda x: gs.FactorGraph(x, states=2),
    "states": lambda x: gs.FactorGraph(2, states=x),
    "states of one": lambda x: gs.FactorGraph({"a": x}),
    "factors": lambda x: gs.FactorGraph(2, x, states=2),
    "one factor": lambda x: gs.FactorGraph(2, [x], states=2),
    "scope": lambda x: gs.FactorGraph(2, [(x, [1, 1])], states=2),
    "table": lambda x: gs.FactorGraph(2, [("0", x)], states=2),
    "log-table": lambda x: gs.FactorGraph(2, log_factors=[("0", x)], states=2),
    "groups": lambda x: gs.FactorGraph(2, groups=x, states=2),
    "group": lambda x: gs.FactorGraph(2, groups=[x], states=2),
    "evidence": GRID.observe,
    "finding": lambda x: GRID.observe({"0": x}),
    "likelihood": lambda x: GRID.observe({"0": {-1: x, 1: 1.0}}),
    "new couplings": lambda x: GRID.reweight(couplings=x),
    "new fields": lambda x: GRID.reweight(fields=x),
    "state": GRID.log_potential,
    "site": GRID.index,
    "label": lambda x: GRID.code("0", x),
    "ising": gs.ising,
    "ising, ends": lambda x: gs.ising((x, [1], [1.0])),
    "ising, weights": lambda x: gs.ising(([0], [1], x)),
    "ising, fields": lambda x: gs.ising(EDGE, fields=x),
    "ising, sites": lambda x: gs.ising(EDGE, sites=x),
    "potts": lambda x: gs.potts(x, 3),
    "potts, states": lambda x: gs.potts(EDGE, x),
    "potts, fields": lambda x: gs.potts(EDGE, 2, fields=x),
    "ising_grid": gs.ising_grid,
    "ising_grid, coupling": lambda x: gs.ising_grid((3, 3), x),
    "ising_grid, field": lambda x: gs.ising_grid((3, 3), field=x),
    "ising_grid, periodic": lambda x: gs.ising_grid((3, 3), periodic=x),
    "potts_grid": lambda x: gs.potts_grid(x, 2, 1.0),
    "potts_grid, states": lambda x: gs.potts_grid((3, 3), x, 1.0),
    "potts_grid, coupling": lambda x: gs.potts_grid((3, 3), 2, x),
    "potts_grid, field": lambda x: gs.potts_grid((3, 3), 2, 1.0, field=x),
    "rbm": gs.rbm,
    "rbm, visible": lambda x: gs.rbm([[1.0, 2.0]], x),
    "rbm, hidden": lambda x: gs.rbm([[1.0, 2.0]], hidden=x),
    "distance_potts": lambda x: gs.models.distance_potts(x, 2),
    "distance_potts, gamma": lambda x: gs.models.distance_potts([[0.0], [1.0]], 2, gamma=x),
    "distance_potts, beta": lambda x: gs.models.distance_potts([[0.0], [1.0]], 2, beta=x),
    "distance_potts, fields": lambda x: gs.models.distance_potts([[0.0], [1.0]], 2, fields=x),
    "SpinFactors, scopes": lambda x: gs.factors.SpinFactors(x, 1.0),
    "SpinFactors, weights": lambda x: gs.factors.SpinFactors([[0, 1]], x),
    "AgreementFactors, weights": lambda x: gs.factors.AgreementFactors([[0, 1]], x),
    "TableFactors, tables": lambda x: gs.factors.TableFactors([[0]], x),
    "LatticeFactors, shape": lambda x: gs.factors.LatticeFactors(x, (False,), 1.0),
    "LatticeFactors, periodic": lambda x: gs.factors.LatticeFactors((3,), x, 1.0),
    "LatticeFactors, weights": lambda x: gs.factors.LatticeFactors((3,), (False,), x),
    "FieldFactors, sites": lambda x: gs.factors.FieldFactors(x, 1.0),
    "FieldFactors, weights": lambda x: gs.factors.FieldFactors(3, x),
    "Gaussian, mean": lambda x: gs.Gaussian(x, np.eye(3)),
    "Gaussian, covariance": lambda x: gs.Gaussian(np.zeros(3), x),
    "Gaussian, precision": lambda x: gs.Gaussian(precision=x),
    "Gaussian, names": lambda x: gs.Gaussian(0.0, np.eye(3), names=x),
    "continuous_spins": gs.models.continuous_spins,
    "from_bqm": gs.formats.from_bqm,
    "from_ising, h": lambda x: gs.formats.from_ising(x, {}),
    "from_ising, bias": lambda x: gs.formats.from_ising({"a": x}, {}),
    "from_ising, J": lambda x: gs.formats.from_ising({}, x),
    "from_ising, coupling": lambda x: gs.formats.from_ising({}, {("a", "b"): x}),
    "from_ising, offset": lambda x: gs.formats.from_ising({}, {("a", "b"): 1.0}, offset=x),
    "from_ising, beta": lambda x: gs.formats.from_ising({}, {("a", "b"): 1.0}, beta=x),
    "from_qubo": gs.formats.from_qubo,
    "from_qubo, bias": lambda x: gs.formats.from_qubo({("a", "b"): x}),
    "from_qubo, offset": lambda x: gs.formats.from_qubo({("a", "b"): 1.0}, offset=x),
    "from_networkx": gs.formats.from_networkx,
    "from_pgmpy": gs.formats.from_pgmpy,
    "to_bqm": gs.formats.to_bqm,
    "to_bqm, beta": lambda x: gs.formats.to_bqm(GRID, beta=x),
    "to_bqm, vartype": lambda x: gs.formats.to_bqm(GRID, vartype=x),
    "to_networkx": gs.formats.to_networkx,
    "read_model": gs.read_model,
    "write_model": lambda x: gs.write_model(x, "-", format="uai"),
    "write_model, path": lambda x: gs.write_model(GRID, x),
    "compile_graph": gs.graphs.compile_graph,
    "color_sites": gs.graphs.color_sites,
    "bound_influence": gs.influence.bound_influence,
    "infer": gs.infer,
    "solve_exact": gs.solve_exact,
    "mean_field": gs.mean_field,
    "belief_propagation": gs.belief_propagation,
}


@pytest.mark.parametrize("key", BUILDERS)
def test_wrong_types_give_an_error_of_ours(key: str) -> None:
    for given in WRONG:
        try:
            BUILDERS[key](given)
        except gs.GibbsiteError as error:
            assert str(error).endswith((".", "?", "]")), error
            assert len(str(error)) < 1000


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: gs.formats.from_bqm({("a", "b"): 1.0}),
            gs.errors.IncompatibleError,
            "got dict; dictionaries go to gs.formats.from_",
        ),
        (
            lambda: gs.formats.from_bqm(None),
            gs.errors.IncompatibleError,
            "takes a dimod BinaryQuadraticModel, got NoneType",
        ),
        (lambda: gs.formats.from_networkx("abc"), gs.errors.IncompatibleError, "takes a networkx graph, got str"),
        (lambda: gs.ising([[0, 1j], [1j, 0]]), gs.errors.ModelError, "couplings must be real numbers, got complex"),
        (lambda: gs.ising([["0", "1"], ["1", "0"]]), gs.errors.ModelError, "couplings must be real numbers, got text"),
        (lambda: gs.ising([[0, 1], [1]]), gs.errors.ModelError, "couplings must .* got lists of unequal length"),
        (lambda: gs.ising(EDGE, fields=[None, 1]), gs.errors.ModelError, "fields must be real numbers, got NoneType"),
        (lambda: gs.ising_grid((3, 3), 1j), gs.errors.ModelError, "the couplings must be real .* got complex"),
        (lambda: gs.ising_grid((3.5, 3)), gs.errors.ModelError, "shape of a lattice must be whole numbers"),
        (lambda: gs.potts_grid((3, 3), 2, "x"), gs.errors.ModelError, "the couplings must be real .* got text"),
        (lambda: gs.Gaussian(0.0, [["1"]]), gs.errors.ModelError, "the covariance must be real numbers, got text"),
        (lambda: gs.Gaussian(precision=sparse.eye(3) * 1j), gs.errors.ModelError, "precision must .* got complex"),
        (
            lambda: gs.formats.from_ising({"a": "1"}, {}),
            gs.errors.ModelError,
            "the biases of h must be real numbers, got text",
        ),
        (lambda: gs.formats.from_ising({}, {("a", "b"): 1j}), gs.errors.ModelError, "the biases of J .* got complex"),
        (
            lambda: gs.formats.from_ising({}, {"ab": 1.0}),
            gs.errors.ModelError,
            r"J must have pairs \(u, v\) as keys, got 'ab'",
        ),
        (lambda: gs.read_model(None), gs.errors.FormatError, "named by a text or a path, got None"),  # type: ignore
        (lambda: gs.graphs.color_sites(GRID), gs.errors.IncompatibleError, r"gs\.graphs\.compile_graph\(model\)"),  # type: ignore
    ],
)
def test_what_is_wrong(build: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(
    "model",
    [
        gs.LogDensity(lambda x: -(x[0] ** 2), dim=1),
        gs.Gaussian(covariance=[[1.0]]),
        gs.ContinuousModel({"a": gs.Interval(0, 1)}, [(lambda x: x[0], ("a",))]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_infer_sends_models_of_numbers_to_sample(model: Any) -> None:
    for task, method in [("MAR", "auto"), ("MAP", "auto"), ("PR", "exact"), ("MAP", gs.Metropolis())]:
        with pytest.raises(gs.errors.IncompatibleError, match=rf"infer answers {task} for .*gs\.recommend\(model\)"):
            gs.infer(model, task, method=method)


def test_real_numbers_of_all_kinds() -> None:
    assert read_reals([Fraction(1, 4), 2], "x").tolist() == [0.25, 2.0]
    assert read_reals(np.float32(0.5), "x").dtype == np.float64
    given = np.ones(3)
    assert read_reals(given, "x") is given, "no copy"
    assert read_real(np.array(2), "x") == 2.0
    with pytest.raises(gs.errors.ModelError, match=r"x must be one number, got an array of shape \(1,\)"):
        read_real([1.0], "x")
    with pytest.raises(gs.errors.ModelError, match=r"below 1\.8e308"):
        read_reals([10**400], "x")
