"""Call every public function, class and method with things that are hardly ever a valid argument.

The functions, classes and methods are those that the namespaces list. Each argument is replaced by about sixty
values, one at a time; the others are valid. A call must return, or raise an error of gibbsite with one sentence.
Whatever else it raises is printed, and so is a call that takes more than a second.

    python -m tests.campaigns.misuse --spaces formats methods
    python -m tests.campaigns.misuse --only sample Result.save
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import math
import signal
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from inspect import getattr_static
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from tests.formats.objects.test_pyagrum import Network

Given = dict[str, Any]


def nonsense() -> dict[str, Any]:
    """Return about sixty things that are hardly ever what an argument should be; fresh ones on each call."""
    import pandas

    own: list[Any] = []
    own.append(own)
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
        "billion": 10**9,
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
        "itself": own,
        "range": range(3),
        "slice": slice(None),
        "ellipsis": ...,
        "lambda": _nothing,
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
        "model": grid(),
    }


def _nothing(*given: Any) -> None:
    return None


def _fail(*given: Any) -> Any:
    raise ZeroDivisionError("a function of a user went wrong")


# ---- public names


def _spaces() -> tuple[str, ...]:
    """Return the namespaces that the package shows: the root, which is the empty name, then inner ones."""
    names = [name for name in dir(gs) if isinstance(getattr(gs, name), types.ModuleType) and not name.startswith("_")]
    inner = ("applications.entities", "applications.segmentation")
    return ("", *inner, *sorted(set(names) - {"errors", "random"}))  # compiled functions call those of gs.random


def space(name: str) -> Any:
    """Return a namespace by its name; the root is the empty one."""
    found: Any = gs
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found


def listed(module: Any) -> dict[str, Any]:
    """Return what a namespace lists as public, other namespaces aside."""
    names = [one for one in getattr(module, "__all__", None) or dir(module) if not one.startswith("_")]
    found = {name: getattr(module, name) for name in names}
    return {name: one for name, one in found.items() if not isinstance(one, types.ModuleType)}


SPACES = _spaces()


@cache
def callables() -> dict[str, dict[str, Callable[..., Any]]]:
    """Return all public functions and classes, by the first namespace that has them."""
    known: set[int] = set()
    found: dict[str, dict[str, Callable[..., Any]]] = {}
    for name in SPACES:
        here = found.setdefault(name, {})
        for one, value in listed(space(name)).items():
            if callable(value) and id(value) not in known and _is_ours(value):
                known.add(id(value))
                here[one] = value
    return found


def _is_ours(value: Any) -> bool:
    is_error = isinstance(value, type) and issubclass(value, BaseException)
    return getattr(value, "__module__", "").startswith("gibbsite") and not is_error


def methods(instance: Any) -> dict[str, Callable[..., Any]]:
    """Return the public methods of an answer or a model."""
    names = [name for name in dir(type(instance)) if not name.startswith("_")]
    kinds = (types.FunctionType, classmethod, staticmethod)
    found = {name: getattr(instance, name) for name in names if isinstance(getattr_static(instance, name), kinds)}
    return {name: one for name, one in found.items() if _is_ours(inspect.unwrap(one))}


def arguments(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that a function lists."""
    listed = inspect.signature(function).parameters.values()
    return [one.name for one in listed if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


# ---- valid arguments


@cache
def grid() -> Any:
    """Return a model of four spins."""
    return gs.ising_grid((2, 2), coupling=0.2)


@cache
def asia() -> Any:
    """Return a Bayesian network."""
    return gs.example("asia")


@cache
def table() -> Any:
    """Return a model of two sites with other numbers of states."""
    return gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 2, 1]])])


def bell(x: Any) -> float:
    """Return the log-density of a normal."""
    return -0.5 * float(x[0] ** 2)


def _slope(x: Any) -> Any:
    return -x


def _draw(x: Any, rng: Any) -> float:
    return 0.0


def _marks() -> Any:
    marks = np.zeros((8, 8), np.uint8)
    marks[0], marks[-1] = 1, 2
    return marks


@cache
def files() -> Path:
    """Return a folder with files of many formats."""
    folder = Path(tempfile.mkdtemp())
    for name in ("m.uai", "m.bqm", "m.coo", "m.edges", "m.rudy"):
        gs.write_model(table() if name == "m.uai" else grid(), folder / name)
    for form in NETWORKS:
        gs.write_model(gs.example("asia"), folder / f"m.{form}")
    (folder / "m.wcsp").write_text("m 2 2 1 4\n2 2\n2 0 1 0 1\n0 1 3\n")
    (folder / "m.wcnf").write_text("p wcnf 2 1 10\n3 1 -2 0\n")
    gs.save(answer("Result"), folder / "result")
    gs.formats.store_edges([([0], [1], [1.0])], folder / "pairs", sites=2)
    gs.formats.write_uai_evidence({"a": 0}, folder / "m.uai.evid", table())
    gs.formats.write_uai_map({"a": 0, "b": 0}, folder / "m.map", table())
    gs.formats.write_uai_mar(answer("ExactResult").marginals, folder / "m.mar", table())
    gs.formats.write_uai_pr(1.0, folder / "m.pr")
    gs.applications.write_image(np.zeros((4, 4), np.uint8), folder / "m.png")
    (folder / "pictures").mkdir()
    for name in ("p.png", "p_GT.png"):
        gs.applications.write_image(np.zeros((8, 8, 3), np.uint8), folder / "pictures" / name)
    (folder / "m.conll").write_text("Anna B-PER\nsaw O\n")
    return folder


PAIRS = [[0, 1]]
#: Formats of Bayesian networks.
NETWORKS = ("bif", "xmlbif", "dsc", "net", "xdsl")
SPINS = np.array([[1, -1], [1, 1], [-1, -1], [-1, 1]])
MISSING = "/nowhere/a-file"
ROWS = {"a": ["x", "y", "x", "y"], "b": ["u", "v", "v", "u"]}


def _recogniser() -> Any:
    from gibbsite.applications.entities import Document, Sentence

    told = Sentence(["Anna", "saw", "Rome", "."], ["B-PER", "O", "B-LOC", "O"])
    return gs.applications.EntityRecognizer("window").fit([Document("d", [told])])


@cache
def scene() -> Any:
    """Return pictures with labels."""
    return gs.applications.segmentation.make_pictures(2, height=24, width=32)


@cache
def continuous() -> list[Any]:
    """Return models of other kinds than tables."""
    return [
        gs.LogDensity(bell, _slope, dim=1),
        gs.Gaussian(np.zeros(2), np.eye(2)),
        gs.Conditionals({"a": lambda x, rng: 0.0}),
        gs.models.continuous_spins(np.zeros((2, 2)), interval=gs.Interval(0.0, 1.0)),
        gs.DataDensity(bell, lambda x, row: 0.0, np.zeros((3, 1)), dim=1),
    ]


@cache
def discrete() -> tuple[Any, Any, Any]:
    """Return models of dimod, and a network as pyAgrum has them."""
    import dimod

    quadratic = dimod.DiscreteQuadraticModel()
    quadratic.add_variable(2, label="a")
    return quadratic, dimod.BinaryPolynomial({"ab": 1.0}, "SPIN"), Network()


#: What an argument of a name is wherever it must be given.
USUAL: dict[str, Callable[[], Any]] = {
    "model": grid,
    "path": lambda: MISSING,
    "n": lambda: 2,
    "graph": lambda: gs.graphs.compile_graph(grid()),
    "couplings": lambda: ([0], [1], [1.0]),
    "states": lambda: 3,
    "shape": lambda: (2, 2),
    "scopes": lambda: PAIRS,
    "pairs": lambda: PAIRS,
    "weights": lambda: 1.0,
    "name": lambda: "m",
    "result": lambda: answer("Result"),
    "kernel": gs.Gibbs,
    "scan": gs.Systematic,
    "exact": lambda: gs.exact.enumerate(grid()),
    "step": lambda: 0.1,
    "batch": lambda: 2,
    "function": lambda: bell,
    "fn": lambda: bell,
    "dim": lambda: 1,
    "image": lambda: np.arange(64.0).reshape(8, 8),
    "labels": lambda: [0, 1, 1],
    "rows": lambda: [[1.0], [2.0], [-1.0]],
    "fields": lambda: np.zeros((6, 8, 2)),
    "reference": lambda: [0, 0, 0, 0],
    "sites": lambda: [0],
    "positions": lambda: np.eye(3),
}
#: What is given beside, so that nothing takes long.
QUICK: Given = {"progress": False, "chains": 2, "sweeps": 8, "draws": 64, "rng": 1, "steps": 4, "threads": 1}
QUICK |= {
    "repeats": 2,
    "particles": 8,
    "quick": True,
    "max_iterations": 20,
    "criteria": gs.Criteria(dispersed_starts=False),
    "runs": 20,
}
#: Valid arguments of some functions, by their public name; those of others follow from the names of arguments.
SPECIAL: dict[str, Callable[[], Given]] = {
    "applications.score_cases": lambda: {"model": asia(), "cases": {"smoke": ["yes"]}},
    "applications.solve_cases": lambda: {"model": asia(), "cases": {"smoke": ["yes"]}, "task": "MAR"},
    "questions.analyse_sensitivity": lambda: {"model": asia(), "target": "lung", "state": "yes"},
    "learn.fit_tables": lambda: {"data": ROWS, "structure": {"b": ["a"], "a": []}},
    "learn.learn_structure": lambda: {"data": ROWS},
    "learn.read_cases": lambda: {"data": ROWS},
    "learn.sample_structures": lambda: {"data": ROWS, "sweeps": 8, "chains": 2, "rng": 1},
    "learn.score_structure": lambda: {"data": ROWS, "structure": {"b": ["a"], "a": []}},
    "learn.structural_distance": lambda: {"first": {"b": ["a"], "a": []}, "second": {"b": [], "a": []}},
    "questions.ask": lambda: {"model": asia(), "events": ["lung = yes"], "seconds": 1.0},
    "questions.compare_evidence": lambda: {"model": asia(), "first": {"smoke": "yes"}, "second": {"smoke": "no"}},
    "questions.compute_expectation": lambda: {"model": grid(), "function": {"0": {-1: 1.0, 1: 2.0}}},
    "questions.estimate_effect": lambda: {"model": asia(), "cause": "smoke", "effect": "lung"},
    "questions.intervene": lambda: {"model": asia(), "settings": {"smoke": "yes"}},
    "questions.measure_conflict": lambda: {"model": asia(), "evidence": {"smoke": "yes", "lung": "no"}},
    "questions.plan_observations": lambda: {"model": asia(), "target": "lung", "candidates": ["xray"], "depth": 1},
    "questions.rank_observations": lambda: {"model": asia(), "target": "lung"},
    "questions.weigh_evidence": lambda: {
        "model": asia(),
        "evidence": {"smoke": "yes"},
        "target": "lung",
        "state": "yes",
    },
    "AnnealedGibbs": lambda: {"schedule": [0.5, 1.0], "sweeps": None},
    "Cluster": lambda: {"workers": 2},
    "Steps": lambda: {"count": 8},
    "herd": lambda: {"features": np.eye(2), "moments": [0.4, 0.6], "steps": 8},
    "applications.cluster_points": lambda: {"X": np.eye(4)[:, :2], "components": 2, "sweeps": 8},
    "applications.select_variables": lambda: {"X": np.eye(6)[:, :2], "y": np.arange(6.0), "sweeps": 8},
    "influence.bound_curvature": lambda: {"own": [1.0, 1.0], "mixed": [[0.0, 0.2], [0.2, 0.0]]},
    "plots.plot_autocorrelation": lambda: {"values": np.arange(8.0)},
    "plots.plot_comparison": lambda: {"a": answer("ExactResult"), "b": answer("Inference")},
    "plots.plot_fit": lambda: {"fit": answer("Fit")},
    "plots.plot_observable": lambda: {"at": [0.0, 1.0], "estimates": [1.0, 2.0]},
    "Conditionals": lambda: {"draws": {"a": lambda x, rng: 0.0}},
    "ContinuousModel": lambda: {"sites": {"a": gs.Interval(0, 1)}},
    "DataDensity": lambda: {"prior": bell, "likelihood": lambda x, row: 0.0, "data": np.zeros((3, 1)), "dim": 1},
    "factors.NoisyMax": lambda: {"effects": {"a": {1: [0.5, 0.5]}}},
    "factors.NoisyOr": lambda: {"causes": {"a": 0.5}},
    "factors.Logistic": lambda: {"weights": {"a": 0.5}},
    "FactorGraph": lambda: {"sites": {"a": 2, "b": 2}},
    "Gaussian": lambda: {"mean": np.zeros(2), "covariance": np.eye(2)},
    "Observable": lambda: {"name": "m", "function": lambda x: x[0]},
    "importance.bound_log_z": lambda: {"model": table(), "draws": 64},
    "certify": lambda: {"model": grid(), "steps": None},
    "inference.check_conditionals": lambda: {"model": gs.Conditionals({"a": _draw}, log_density=bell), "draws": 64},
    "compare": lambda: {"a": answer("ExactResult"), "b": answer("Inference")},
    "couple": lambda: {"model": grid(), "pairs": 4, "sweeps": None},
    "dogs": lambda: {"model": grid(), "target": 0},
    "example": lambda: {"name": "asia"},
    "infer": lambda: {"model": table(), "method": "gibbs"},
    "load": lambda: {"path": files() / "result"},
    "open_model": lambda: {"path": files() / "pairs"},
    "potts_grid": lambda: {"shape": (2, 2), "states": 3, "coupling": 1.0},
    "rbm": lambda: {"weights": [[1.0, 2.0]]},
    "read_evidence": lambda: {"path": files() / "m.uai.evid", "model": table()},
    "read_model": lambda: {"path": files() / "m.uai"},
    "recommend": lambda: {"model": grid(), "seconds": 0.01},
    "sample_batch": lambda: {"model": grid(), "couplings": np.zeros((2, 4)), "record": None},
    "sample_weighted": lambda: {"model": gs.example("asia")},
    "save": lambda: {"answer": answer("Result"), "path": "run.npz"},
    "write_model": lambda: {"model": table(), "path": "out.uai"},
    "applications.DimodSampler": dict,
    "applications.denoise": lambda: {"image": 200.0 * np.tri(8), "sigma": 1.0},
    "applications.estimate_flip": lambda: {"spins": np.sign(np.tri(8) - 0.5)},
    "applications.logistic_regression": lambda: {"rows": [[1.0], [2.0], [-1.0]], "labels": [0, 1, 1]},
    "applications.read_image": lambda: {"path": files() / "m.png"},
    "applications.to_sampleset": lambda: {"draws": np.zeros((2, 4), int), "model": grid()},
    "applications.write_image": lambda: {"image": np.zeros((4, 4), np.uint8), "path": "m.png"},
    "applications.entities.Document": lambda: {"name": "d", "sentences": []},
    "applications.entities.read_columns": lambda: {"path": files() / "m.conll"},
    "applications.entities.read_text": lambda: {"text": "Anna saw Rome."},
    "applications.entities.render": lambda: {"tagged": [], "form": "json"},
    "applications.entities.score_labels": lambda: {"true": [[["B-PER"]]], "found": [[["O"]]]},
    "applications.segmentation.aimed_scan": lambda: {"shape": (4, 4), "region": (0, 0, 2, 2)},
    "applications.segmentation.make_legend": lambda: {"names": ["a", "b"]},
    "applications.segmentation.make_pictures": lambda: {"count": 1, "height": 24, "width": 32},
    "applications.segmentation.read_labelled": lambda: {"folder": files() / "pictures"},
    "applications.segmentation.segment_scribbles": lambda: {
        "image": np.zeros((8, 8, 3), np.uint8),
        "scribbles": _marks(),
    },
    "applications.segmentation.write_segmentation": lambda: {
        "path": "s.png",
        "labels": np.zeros((4, 4), np.uint8),
        "legend": gs.applications.segmentation.make_legend(["a", "b"]),
    },
    "factors.DistanceFactors": lambda: {"positions": np.eye(3), "gamma": 1.0},
    "factors.FieldFactors": lambda: {"n_sites": 3},
    "factors.LatticeFactors": lambda: {"shape": (3,), "periodic": (False,)},
    "factors.TableFactors": lambda: {"scopes": PAIRS, "log_tables": np.zeros((1, 2, 2))},
    "factors.difference_factors": lambda: {"pairs": PAIRS, "precisions": 1.0},
    "factors.logistic_factors": lambda: {"scope": [0], "rows": [[1.0]], "labels": [1]},
    "factors.mixture_factors": lambda: {"scope": [0, 1], "data": [0.0, 1.0], "sd": 1.0},
    "factors.normal_factors": lambda: {"sites": [0], "mean": 0.0, "sd": 1.0},
    "factors.product_factors": lambda: {"pairs": PAIRS, "couplings": 1.0},
    "formats.from_bqm": lambda: {"bqm": gs.formats.to_bqm(grid())},
    "formats.from_dqm": lambda: {"dqm": discrete()[0]},
    "formats.from_polynomial": lambda: {"polynomial": discrete()[1]},
    "formats.from_pyagrum": lambda: {"network": discrete()[2]},
    "formats.from_ising": lambda: {"h": {"a": 1.0}, "J": {("a", "b"): 1.0}},
    "formats.from_networkx": lambda: {"G": gs.formats.to_networkx(grid())},
    "formats.from_qubo": lambda: {"Q": {("a", "b"): 1.0}},
    "formats.read_uai_map": lambda: {"model": table()},
    "formats.store_edges": lambda: {"edges": [([0], [1], [1.0])], "sites": 2, "path": "out.pairs"},
    "formats.write_uai_evidence": lambda: {"evidence": {"a": 0}, "model": table()},
    "formats.write_uai_map": lambda: {"assignment": {"a": 0, "b": 0}, "model": table()},
    "formats.write_uai_mar": lambda: {"marginals": answer("ExactResult").marginals, "model": table()},
    "formats.write_uai_mmap": lambda: {"assignment": {"a": 0, "b": 0}, "model": table()},
    "formats.write_uai_pr": lambda: {"log_z": 1.0},
    "inference.sample_models": lambda: {"models": [grid()]},
    "influence.BlockOrder": lambda: {"blocks": [[0, 1], [2, 3]]},
    "influence.read_influence": lambda: {"given": np.zeros((2, 2)), "n_sites": 2},
    "influence.short_runs": lambda: {"model": grid(), "steps": None},
    "kernels.BlockedGaussianGibbs": lambda: {"blocks": [[0], [1]]},
    "kernels.Proposal": lambda: {"draw": _draw, "symmetric": True},
    "kernels.SGLD": lambda: {"step": 0.1, "batch": 2},
    "lab.Experiment": lambda: {"source": "a", "run": _nothing, "draw": _nothing},
    "lab.Findings": lambda: {"tables": []},
    "lab.Table": lambda: {"title": "t", "columns": ["a"], "rows": [[1]]},
    "lab.find": lambda: {"name": "herded-two-variables"},
    "learn.fit_ising": lambda: {"data": SPINS},
    "learn.fit_pairwise": lambda: {"data": SPINS > 0},
    "learn.screen_pairs": lambda: {"data": SPINS},
    "models.continuous_spins": lambda: {"couplings": np.zeros((2, 2))},
    "plots.plot_variation": lambda: {"certificates": answer("Certificate")},
    "plots.plot_sensitivity": lambda: {
        "sensitivity": gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes")
    },
    "plots.plot_tornado": lambda: {"sensitivity": gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes")},
    "recorders.Joint": lambda: {"sets": [["0", "1"]]},
    "recorders.TwoPoint": lambda: {"most": 1},
    "scans.FixedOrder": lambda: {"order": [0, 1, 2, 3]},
    "testing.check_model": lambda: {"model": gs.applications.bugs.read_bugs("model { x ~ dnorm(0, 1) }")},
    "testing.check_scan": lambda: {"scan": gs.Systematic(), "draws": 100},
    "testing.law_p_value": lambda: {"exact": answer("Enumeration"), "states": np.zeros((4, 2), int)},
    "testing.scans": lambda: {"n_units": 2},
}
#: The same of methods, by the name of an answer and a method, or by that of a method of any answer.
METHODS: dict[str, Callable[[], Given]] = {
    "save": lambda: {"path": "saved.npz"},
    "write_report": lambda: {"path": "saved.html"},
    "from_weights": lambda: {"weights": {"w": {"a": 1.0}}, "transitions": {("a", "a"): 0.5}},
    "log_probability": lambda: {"X": [[["w"]]], "y": [["a"]]},
    "certify": lambda: {"model": grid()},
    "errors_of": lambda: {"sites": ["0"]},
    "load": lambda: {"path": "missing"},
    "at": lambda: {"beta": 0.5},
    "batch_means": lambda: {"cell": 0},
    "draw": lambda: {"size": 2, "rng": np.random.default_rng(1)},
    "rank": lambda: {"many": 2},
    "number": lambda: {"x": [[0, 0]]},
    "scaled": lambda: {"factor": 1.5},
    "log_probability_of": lambda: {"log_potential": 0.0},
    "texts": lambda: {"site": "0", "errors": answer("Result").mcse},
    "is_number": lambda: {"site": "0"},
    "get": lambda: {"key": "0"},
    "code": lambda: {"site": 0, "label": 0},
    "index": lambda: {"site": 0},
    "labels": lambda: {"site": 0},
    "observe": lambda: {"evidence": {}},
    "group": lambda: {"name": "couplings"},
    "condition": lambda: {"values": {0: 1.0}},
    "marginal": lambda: {"sites": [0]},
    "FactorGraph.log_potential": lambda: {"x": [0, 0]},
    "log_potential": lambda: {"x": [0.0]},
    "Segmenter.fit": lambda: {"images": scene()},
    "Segmenter.score": lambda: {"images": scene(), "rounds": 3},
    "Segmenter.fields": lambda: {"image": scene().examples[0].image},
    "Segmenter.segment": lambda: {"image": scene().examples[0].image, "rounds": 3},
    "EntityRecognizer.tag": lambda: {"text": "Anna saw Rome."},
    "ChainCRF.fit": lambda: {"X": [[["a"], ["b"]]], "y": [["x", "y"]]},
    "ChainCRF.score": lambda: {"X": [[["a"], ["b"]]], "y": [["x", "y"]]},
    "ChainCRF": lambda: {"X": [[["a"], ["b"]]]},
    "AspectModel.from_words": lambda: {"words": [[[0.9, 0.1], [0.2, 0.8]]], "classes": ["day", "night"]},
    "AspectModel": lambda: {"X": np.eye(4)},
    "EntityRecognizer": lambda: {"documents": [gs.applications.entities.read_text("Anna saw Rome.")]},
}
#: What is no call of a user, or cannot be called a thousand times in a second.
ENDS = {"uai_evidence": "m.uai.evid", "uai_map": "m.map", "uai_mar": "m.mar", "uai_pr": "m.pr"}
#: Classes that functions answer with: their methods are tried, and users do not make them.
ANSWERS = {
    "Advice",
    "AnnealedEstimate",
    "Answer",
    "BeliefResult",
    "Certificate",
    "Check",
    "Comparison",
    "Compatibility",
}
ANSWERS |= {"Coupling", "Denoised", "Diagnostics", "Domains", "DogsScan", "Entity", "Enumeration", "ExactCost"}
ANSWERS |= {"ExactResult", "Example", "Finding", "Fit", "Folding", "Graph", "HammingScore", "HerdingBound", "Inference"}
ANSWERS |= {"Influence", "Labelled", "LabelledImages", "Legend", "LocalEnergies", "LogZInterval", "LogisticRegression"}
ANSWERS |= {"MeanFieldResult", "Norms", "ParticleEstimate", "Report", "Result", "Segmentation", "Segmented", "Sentence"}
ANSWERS |= {"Clustering", "Herding", "Selection"}
ANSWERS |= {"Candidate", "CaseAnswers", "CaseScore", "Conflict", "Effect", "Entry", "EventAnswer", "EvidenceComparison"}
ANSWERS |= {"AveragedAnswer", "Cases", "Expectation", "StructureFit", "StructurePosterior", "TableFit"}
ANSWERS |= {"NextObservations", "ObservationPlan", "Sensitivity", "Support"}
ANSWERS |= {"ShortRuns", "SiteTable", "StoredPairs", "StoredPotts", "Tagged", "WeightedResult"}
LEFT_OUT = {
    **dict.fromkeys(("draw_start", "place_text"), "kernels and messages call these methods of models"),
    **dict.fromkeys(("buffer", "cycle", "chances", "left_out", "mixture", "schedule", "visits"), "for kernels"),
    **dict.fromkeys(("arviz_groups",), "for conversions of results"),
    **dict.fromkeys(("judged", "measure", "fields_of", "reweight"), "for other parts of gibbsite"),
    "kernels.default_kernel": "for other parts of gibbsite",
    "Model": "a base class",
    "testing.check_kernel": "runs for half a minute",
    "testing.check_invariance": "has the conditions of check_kernel",
    "lab.run": "an experiment takes seconds",
    "formats.from_pgmpy": "pgmpy is not installed with the tests",
}


#: What every run is given.
FAST: Given = {"sweeps": 40, "rng": 1, "progress": False, "chains": 2, "criteria": gs.Criteria(dispersed_starts=False)}
SILENT: Given = {"rng": 1, "progress": False}
#: An object of every public class whose methods are tried.
OBJECTS: dict[str, Callable[[], Any]] = {
    "Result": lambda: gs.sample(grid(), record=["marginals", "draws", "best", "energy"], **FAST),
    "Result of numbers": lambda: gs.sample(continuous()[1], record=["marginals", "draws"], **FAST),
    "Result of a ladder": lambda: gs.sample(grid(), gs.Tempered(ladder=(0.0, 0.5, 1.0)), **FAST),
    "ExactResult": lambda: gs.solve_exact(table()),
    "Inference": lambda: gs.infer(table(), **SILENT),
    "WeightedResult": lambda: gs.sample_weighted(gs.example("asia"), draws=64, **SILENT),
    "LogZInterval": lambda: gs.log_z.bound_log_z(table(), draws=64, **SILENT),
    "Coupling": lambda: gs.couple(grid(), pairs=4, rng=1),
    "Enumeration": lambda: gs.exact.enumerate(table()),
    "MeanFieldResult": lambda: gs.mean_field(table(), rng=1),
    "BeliefResult": lambda: gs.belief_propagation(table()),
    "Advice": lambda: gs.recommend(grid(), seconds=0.01, rng=1),
    "PersistentChains": lambda: gs.PersistentChains(grid(), chains=2, rng=1),
    "Certificate": lambda: gs.certify(grid(), sweeps=2),
    "DogsScan": lambda: gs.dogs(grid(), target=0, steps=4),
    "Influence": lambda: gs.influence.bound_influence(grid()),
    "HerdingBound": lambda: gs.kernels.herding_bound(grid()),
    "Segmenter": lambda: gs.applications.segmentation.Segmenter(10, 4).fit(scene()),
    "EntityRecognizer": _recogniser,
    "ChainCRF": lambda: gs.learn.ChainCRF().fit([[["a"], ["b"]]] * 2, [["x", "y"]] * 2),
    "AspectModel": lambda: gs.learn.AspectModel(2, iterations=3).fit(np.eye(4)),
    "Interval": lambda: gs.Interval(0, 1),
    "Fit": lambda: gs.learn.fit_ising(SPINS, rng=1),
    "SiteTable": lambda: answer("Result").marginals,
    "Comparison": lambda: gs.compare(answer("Result"), answer("Result")),
    "Diagnostics": lambda: answer("Result").diagnostics,
    "FactorGraph": lambda: table(),
    **{f"model {k}": lambda k=k: continuous()[k] for k in range(5)},
}


@cache
def answer(name: str) -> Any:
    """Return an object of a public class, made when it is first asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OBJECTS[name]()


# ---- calls


def calls(space_name: str) -> Iterator[tuple[str, Callable[..., Any], Given]]:
    """Yield name, function and valid arguments of everything in a namespace."""
    for name, function in callables()[space_name].items():
        place = f"{space_name}.{name}".lstrip(".")
        if place not in LEFT_OUT and name not in ANSWERS and arguments(function):
            yield place, running(function), valid(place, function)


def valid(place: str, function: Callable[..., Any]) -> Given:
    """Return valid arguments of a function."""
    listed = inspect.signature(function).parameters
    given = SPECIAL.get(place, dict)()
    way, _, form = place.removeprefix("formats.").partition("_")
    if way in ("read", "write"):
        usual: Given = {"path": files() / ENDS.get(form, f"m.{form}") if way == "read" else f"out.{form}"}
        usual |= {"model": gs.example("asia") if form in NETWORKS else grid()}
        given = {name: usual[name] for name in usual if name in listed} | given
    for one in listed.values():
        if one.name in given or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            continue
        if one.default is one.empty and one.name in USUAL:
            given[one.name] = USUAL[one.name]()
        elif one.name in QUICK:
            given[one.name] = QUICK[one.name]
    return given


def method_calls() -> Iterator[tuple[str, Callable[..., Any], Given]]:
    """Yield name, function and valid arguments of the public methods of answers and models."""
    for name in OBJECTS:
        instance = answer(name)
        kind = type(instance).__name__
        for method, function in methods(instance).items():
            if method not in LEFT_OUT and arguments(function):
                key = next((key for key in (f"{kind}.{method}", method, kind) if key in METHODS), "")
                listed = inspect.signature(function).parameters
                given = {n: one for n, one in METHODS[key]().items() if n in listed} if key else {}
                yield f"{name}.{method}", function, {n: QUICK[n] for n in QUICK if n in listed} | given


def running(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a kernel, a scan or a recorder and runs it; others as they are."""
    roles = {"kernel": gs.kernels.Kernel, "scan": gs.scans.Scan, "record": gs.recorders.base.Recorder}
    role = next((r for r, base in roles.items() if isinstance(function, type) and issubclass(function, base)), None)
    if role is None:
        return function

    def call(**given: Any) -> Any:
        made = function(**given)
        for model in (grid(), *continuous()):
            with contextlib.suppress(gs.errors.IncompatibleError):
                return gs.sample(model, **{role: made}, **FAST | {"sweeps": 8})
        raise gs.errors.IncompatibleError("No model fits.")

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def wrong(function: Callable[..., Any], given: Given) -> str:
    """Call a function; return what went wrong otherwise than by an error of ours, or nothing."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        warnings.filterwarnings("ignore", "Some statistic is constant in the data", UserWarning)  # advice of ours
        try:
            found = function(**given)
            if isinstance(found, Iterator):
                list(zip(found, range(3), strict=False))
        except gs.GibbsiteError:
            return ""
        except (Exception, Warning) as error:
            ours = isinstance(error, ZeroDivisionError) and "of a user" in str(error)
            return "" if ours else f"{type(error).__name__}: {error}"[:200]
        finally:
            if "matplotlib.pyplot" in sys.modules:  # warns of many figures
                sys.modules["matplotlib.pyplot"].close("all")
    return ""


# ---- the campaign

#: A huge number of these is nonsense, but not an error.
LASTING = ("sweeps", "draws", "steps", "seconds", "warmup", "thin", "iterations", "runs", "rounds", "max_iterations")
CALLED = ("progress", "reference")  # a class is called where these are functions, and fails in its own way
HUGE = ("billion", "huge", "beyond floats")
PATIENCE = 5  # seconds of a processor that a call may take


def left_out(argument: str, what: str) -> bool:
    """Tell whether something is nonsense, but not an error that gibbsite could find."""
    return (what in HUGE and argument in LASTING) or (what == "class" and argument in CALLED)


def try_all(name: str, function: Callable[..., Any], given: Given, say: Callable[[str], None]) -> tuple[int, int]:
    """Replace every argument of a function by every kind of nonsense; return the numbers of calls and raw errors."""
    inspect.signature(function).bind(**given)
    signal.signal(signal.SIGPROF, _interrupt)
    wrong(function, given)  # compile what it needs
    tried = raw = 0
    for argument in arguments(function):
        for what, value in nonsense().items():
            if left_out(argument, what):
                continue
            begun = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            found = wrong(function, {**given, argument: value})
            if "TimeoutError" in found:  # something was compiled; this time it is not
                signal.setitimer(signal.ITIMER_PROF, PATIENCE)
                found = wrong(function, {**given, argument: nonsense()[what]})
            signal.setitimer(signal.ITIMER_PROF, 0)
            tried, raw = tried + 1, raw + bool(found)
            if found:
                say(f"{name}({argument}={what}): {found}")
            elif time.process_time() - begun > 1.0:
                say(f"{name}({argument}={what}) took {time.process_time() - begun:.1f} s")
    return tried, raw


def _say(text: str) -> None:
    print(text.encode("ascii", "backslashreplace").decode(), flush=True)


def _interrupt(*given: Any) -> None:
    raise TimeoutError(f"more than {PATIENCE} s")


def main() -> int:
    """Run the campaign."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--spaces", nargs="+", default=[*SPACES, "methods"], help="namespaces, or methods of answers")
    reader.add_argument("--only", nargs="+", default=[], help="names of functions and methods")
    spaces, only = reader.parse_args().spaces, reader.parse_args().only
    failed = False
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for one in spaces:
            counts = [
                try_all(name, function, given, _say)
                for name, function, given in (method_calls() if one == "methods" else calls(one))
                if not only or name in only
            ]
            tried, raw = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
            print(f"{one or 'gibbsite'}: {tried:,} calls, {raw:,} raw errors", flush=True)
            failed = failed or raw > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
