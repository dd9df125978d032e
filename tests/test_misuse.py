"""Whatever is given as an argument of a public function: a result comes out, or one sentence of ours."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from tests.campaigns import misuse


def nonsense() -> dict[str, Any]:
    """Return about fifty things that are hardly ever what an argument should be; fresh ones on each call."""
    pandas = pytest.importorskip("pandas")
    return {
        "None": None,
        "true": True,
        "false": False,
        "zero": 0,
        "minus one": -1,
        "half": 0.5,
        "minus half": -0.5,
        "nan": math.nan,
        "inf": math.inf,
        "minus inf": -math.inf,
        "huge": 10**18,
        "beyond floats": 10**400,
        "complex": 1j,
        "fraction": Fraction(1, 3),
        "decimal": Decimal("0.1"),
        "text": "nonsense",
        "empty text": "",
        "null byte": "a\x00b",
        "surrogate": "\ud800",
        "number as text": "3",
        "bytes": b"ab",
        "bytearray": bytearray(b"ab"),
        "empty list": [],
        "empty tuple": (),
        "empty dict": {},
        "empty set": set(),
        "set": {1, 2},
        "dict": {"a": 1},
        "dict of objects": {object(): object()},
        "list": [1, 2, 3],
        "texts": ["a", "b"],
        "nested": [[1, 2], [3]],
        "deep": [[[[1]]]],
        "list of None": [None],
        "itself": _own(),
        "range": range(3),
        "slice": slice(None),
        "ellipsis": ...,
        "lambda": lambda *args: None,
        "failing": _fail,
        "generator": (k for k in (1, 2)),
        "class": dict,
        "object": object(),
        "module": math,
        "exception": ValueError("no"),
        "path": Path("/proc/nowhere/at/all"),
        "NumPy number": np.float32(2.5),
        "NumPy flag": np.bool_(True),
        "array of no dimension": np.array(3),
        "empty array": np.zeros((0, 3)),
        "array": np.arange(6.0).reshape(2, 3),
        "flags": np.array([True, False]),
        "texts of NumPy": np.array(["x", "y"]),
        "objects of NumPy": np.array([None, {}], object),
        "times": np.array(["2020-01-01"], "datetime64[D]"),
        "record": np.zeros(2, [("a", int)]),
        "series": pandas.Series([1.0, 2.0]),
        "frame": pandas.DataFrame({"a": [1.0]}),
        "model": GRID,
    }


def _own() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _fail(*given: Any) -> Any:
    raise ZeroDivisionError("a function of a user went wrong")


GRID = gs.ising_grid((2, 2), coupling=0.2)
TABLE = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 2, 1]])])
ASIA = gs.example("asia")
PAIRS = [[0, 1]]
FAST: dict[str, Any] = {"sweeps": 8, "rng": 1, "progress": False, "chains": 2}


def _bell(x: Any) -> float:
    return -0.5 * float(x[0] ** 2)


def _with(kernel: type, model: Any = GRID, **more: Any) -> Callable[..., Any]:
    """Return a function that makes a kernel, a scan or a recorder and runs it."""

    def call(**given: Any) -> Any:
        made = kernel(**given)
        role = (
            "kernel" if isinstance(made, gs.kernels.Kernel) else "scan" if isinstance(made, gs.scans.Scan) else "record"
        )
        return gs.sample(model, **{role: made, **FAST, **more}, criteria=gs.Criteria(dispersed_starts=False))

    call.__signature__ = inspect.signature(kernel)  # type: ignore[attr-defined]
    return call


#: Public functions and what they are given beside the argument that is tried.
QUICK: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "AgreementFactors": (gs.factors.AgreementFactors, {"scopes": PAIRS, "weights": 1.0}),
    "Angle": (gs.Angle, {}),
    "DistanceFactors": (gs.factors.DistanceFactors, {"positions": np.eye(3), "gamma": 1.0, "weights": 1.0}),
    "FactorGraph": (gs.FactorGraph, {"sites": {"a": 2, "b": 2}}),
    "FieldFactors": (gs.factors.FieldFactors, {"n_sites": 3, "weights": 1.0}),
    "Gaussian": (gs.Gaussian, {"mean": np.zeros(2), "covariance": np.eye(2)}),
    "Gaussian, precision": (gs.Gaussian, {"precision": np.eye(2)}),
    "Interval": (gs.Interval, {}),
    "LatticeFactors": (gs.factors.LatticeFactors, {"shape": (3,), "periodic": (False,), "weights": 1.0}),
    "SpinFactors": (gs.factors.SpinFactors, {"scopes": PAIRS, "weights": 1.0}),
    "TableFactors": (gs.factors.TableFactors, {"scopes": PAIRS, "log_tables": np.zeros((1, 2, 2))}),
    "LogDensity": (gs.LogDensity, {"fn": _bell, "dim": 1}),
    "DataDensity": (
        gs.DataDensity,
        {"prior": _bell, "likelihood": lambda x, row: 0.0, "data": np.zeros((3, 1)), "dim": 1},
    ),
    "Conditionals": (gs.Conditionals, {"draws": {"a": lambda x, rng: 0.0}}),
    "ContinuousModel": (gs.ContinuousModel, {"sites": {"a": gs.Interval(0, 1)}}),
    "ising": (gs.ising, {"couplings": ([0], [1], [1.0])}),
    "ising_grid": (gs.ising_grid, {"shape": (2, 2)}),
    "potts": (gs.potts, {"couplings": ([0], [1], [1.0]), "states": 3}),
    "potts_grid": (gs.potts_grid, {"shape": (2, 2), "states": 3, "coupling": 1.0}),
    "rbm": (gs.rbm, {"weights": [[1.0, 2.0]]}),
    "distance_potts": (gs.models.distance_potts, {"positions": np.eye(3), "states": 2}),
    "continuous_spins": (gs.models.continuous_spins, {"couplings": np.zeros((2, 2))}),
    "difference_factors": (gs.factors.difference_factors, {"pairs": PAIRS, "precisions": 1.0}),
    "product_factors": (gs.factors.product_factors, {"pairs": PAIRS, "couplings": 1.0}),
    "normal_factors": (gs.factors.normal_factors, {"sites": [0], "mean": 0.0, "sd": 1.0}),
    "mixture_factors": (gs.factors.mixture_factors, {"scope": [0, 1], "data": [0.0, 1.0], "sd": 1.0}),
    "logistic_factors": (gs.factors.logistic_factors, {"scope": [0], "rows": [[1.0]], "labels": [1]}),
    "observe": (GRID.observe, {"evidence": {"0": 1}}),
    "log_potential": (GRID.log_potential, {"x": [0, 0, 0, 0]}),
    "index": (GRID.index, {"site": "0"}),
    "group": (GRID.group, {"name": "couplings"}),
    "labels": (GRID.labels, {"site": "0"}),
    "code": (GRID.code, {"site": "0", "label": 1}),
    "example": (gs.example, {"name": "asia"}),
    "read_model": (gs.read_model, {"path": "/nowhere.uai"}),
    "read_evidence": (gs.read_evidence, {"path": "/nowhere.evid", "model": GRID}),
    "open_model": (gs.open_model, {"path": "/nowhere.pairs"}),
    "load": (gs.load, {"path": "/nowhere.npz"}),
    "save": (gs.save, {"answer": GRID, "path": "/nowhere/run.npz"}),
    "from_ising": (gs.formats.from_ising, {"h": {"a": 1.0}, "J": {("a", "b"): 1.0}}),
    "from_qubo": (gs.formats.from_qubo, {"Q": {("a", "b"): 1.0}}),
    "from_bqm": (gs.formats.from_bqm, {"bqm": None}),
    "from_networkx": (gs.formats.from_networkx, {"G": None}),
    "from_pgmpy": (gs.formats.from_pgmpy, {"model": None}),
    "to_bqm": (gs.formats.to_bqm, {"model": GRID}),
    "to_networkx": (gs.formats.to_networkx, {"model": GRID}),
    "compile_graph": (gs.graphs.compile_graph, {"model": GRID}),
    "color_sites": (gs.graphs.color_sites, {"graph": gs.graphs.compile_graph(GRID)}),
    "predict_exact": (gs.exact.predict_exact, {"model": GRID}),
    "solve_exact": (gs.solve_exact, {"model": GRID}),
    "bound_influence": (gs.influence.bound_influence, {"model": GRID}),
    "certify": (gs.certify, {"model": GRID, "sweeps": 2}),
    "dogs": (gs.dogs, {"model": GRID, "steps": 4}),
    "herding_bound": (gs.kernels.herding_bound, {"model": GRID}),
    "local_energies": (gs.kernels.local_energies, {"model": GRID}),
}


#: The same of functions that run something, and the arguments that are tried.
RUNS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "sample": (gs.sample, {"model": GRID, **FAST}),
    "infer": (gs.infer, {"model": TABLE, "method": "gibbs", "sweeps": 8, "rng": 1, "progress": False}),
    "Gibbs": (_with(gs.Gibbs), {}),
    "Systematic": (_with(gs.Systematic), {}),
    "RandomScan": (_with(gs.RandomScan), {}),
    "mean_field": (gs.mean_field, {"model": TABLE}),
    "belief_propagation": (gs.belief_propagation, {"model": TABLE}),
    "sample_weighted": (gs.sample_weighted, {"model": TABLE, "draws": 64, "rng": 1, "progress": False}),
    "HerdedGibbs": (_with(gs.HerdedGibbs), {}),
    "BlockGibbs": (_with(gs.BlockGibbs), {}),
    "Agreement": (_with(gs.recorders.Agreement), {"reference": [0, 0, 0, 0]}),
    "BestState": (_with(gs.recorders.BestState), {}),
    "Draws": (_with(gs.Draws), {}),
    "Energy": (_with(gs.recorders.Energy), {}),
    "Joint": (_with(gs.recorders.Joint), {"sets": [["0", "1"]]}),
    "Magnetisation": (_with(gs.recorders.Magnetisation), {}),
    "Marginals": (_with(gs.Marginals), {}),
    "PairMoments": (_with(gs.recorders.PairMoments), {}),
    "TwoPoint": (_with(gs.recorders.TwoPoint), {}),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gs.ConvergenceWarning)
    _NORMAL = gs.Gaussian(np.zeros(2), covariance=np.eye(2))
    _RESULTS: dict[str, Any] = {
        "Result": gs.sample(GRID, record=["marginals", "draws"], **FAST),
        "Result of numbers": gs.sample(_NORMAL, record=["marginals", "draws"], **FAST),
        "ExactResult": gs.solve_exact(TABLE),
        "Inference": gs.infer(TABLE),
        "WeightedResult": gs.sample_weighted(ASIA, draws=64, rng=1, progress=False),
    }
_TRIED = ("at", "errors_of", "hdi", "quantiles", "quantiles_mcse", "save", "summary", "rows")
#: Methods of results.
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    f"{name}.{method}": (getattr(result, method), {})
    for name, result in _RESULTS.items()
    for method in (*_TRIED, "log_probability_of")
    if hasattr(result, method)
}
#: A huge number of these is nonsense, but not an error.
LASTING = ("sweeps", "draws", "steps", "seconds", "warmup", "thin", "iterations")
#: A function that shows progress fails in its own way if it cannot be called with what it is given.
CALLED = ("progress",)


def _cases(table: dict[str, tuple[Callable[..., Any], dict[str, Any]]]) -> Iterator[Any]:
    for name, (function, valid) in table.items():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                yield pytest.param(function, valid, parameter.name, id=f"{name}-{parameter.name}")


def _try_all(function: Callable[..., Any], valid: dict[str, Any], argument: str) -> list[str]:
    """Return what went wrong otherwise than by an error of ours."""
    wrong = []
    for what, value in nonsense().items():
        if what == "huge" and argument in LASTING:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.ConvergenceWarning)
            try:
                function(**{**valid, argument: value})
            except gs.GibbsiteError:
                pass
            except ZeroDivisionError as error:
                if "a function of a user went wrong" not in str(error):
                    wrong.append(f"{what}: {error!r}")
            except (Exception, Warning) as error:
                wrong.append(f"{what}: {type(error).__name__}: {error}"[:200])
    return wrong


@pytest.mark.long
@pytest.mark.parametrize(("function", "valid", "argument"), list(_cases({**QUICK, **METHODS})))
def test_nonsense_as_an_argument(
    function: Callable[..., Any], valid: dict[str, Any], argument: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _try_all(function, valid, argument) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "valid", "argument"), [case for case in _cases(RUNS) if case.values[2] not in (*LASTING, *CALLED)]
)
def test_nonsense_as_an_argument_of_a_run(
    function: Callable[..., Any], valid: dict[str, Any], argument: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _try_all(function, valid, argument) == []


@pytest.mark.parametrize("wrong", [None, "yes", np.array([True, False]), [1], 0.5])
def test_flags_are_true_or_false(wrong: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="directed must be True or False, got"):
        gs.FactorGraph({"a": 2}, directed=wrong)
    with pytest.raises(gs.errors.ArgumentError, match="dispersed_starts must be True or False, got"):
        gs.Criteria(dispersed_starts=wrong)


@pytest.mark.parametrize("wrong", [3, None, "a\x00b", "\ud800", b"a", [], np.array("a"), 1j])
def test_paths_are_paths(wrong: Any) -> None:
    for call in (gs.load, gs.read_model):
        with pytest.raises(gs.GibbsiteError):
            call(wrong)


def test_absurd_sizes_are_refused_at_once() -> None:
    for call in (
        lambda: gs.sample(GRID, chains=10**9),
        lambda: gs.PersistentChains(GRID, chains=10**9),
        lambda: gs.ising_grid((10**6, 10**6)),
        lambda: gs.LogDensity(_bell, dim=10**12),
        lambda: gs.infer(TABLE, method="gibbs", chains=10**9),
    ):
        with pytest.raises(gs.GibbsiteError):
            call()


@pytest.mark.parametrize("wrong", [10**400, 1j, "1", [], np.array([1.0]), True, float("nan"), -1])
def test_seconds_are_a_positive_number(wrong: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="seconds must be a positive number, got"):
        gs.infer(TABLE, seconds=wrong)


#: Namespaces of which no call of the campaign may give a raw error.
CLEAN = ("applications.entities", "factors", "formats", "models", "recorders", "scans")


@pytest.mark.long
def test_the_campaign_has_valid_arguments_of_all_public_functions(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for space in misuse.SPACES:
        for name, function, given in misuse.calls(space):
            try:
                inspect.signature(function).bind(**given)
            except TypeError as error:
                pytest.fail(f"name valid arguments of {name} in SPECIAL: {error}")


@pytest.mark.long
def test_a_sample_of_wrong_calls_of_all_public_functions(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = [(one, argument) for space in CLEAN for one in misuse.calls(space) for argument in misuse.arguments(one[1])]
    random, end, raw, tried = np.random.default_rng(1), time.monotonic() + 60.0, [], 0
    for k in random.integers(len(found), size=600):
        (name, function, given), argument = found[int(k)]
        what = str(random.choice(list(misuse.nonsense())))
        if time.monotonic() < end and not (what in misuse.HUGE and argument in misuse.LASTING):
            error = misuse.wrong(function, {**given, argument: misuse.nonsense()[what]})
            raw += [f"{name}({argument}={what}): {error}"] if error else []
            tried += 1
    assert tried > 50
    assert raw == []
