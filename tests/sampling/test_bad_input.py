"""Bad input of a run gives one clear sentence that names what is wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs

MODEL = gs.FactorGraph(
    {"a": ["no", "yes"], "b": 2, "c": 3}, [(("a", "b"), [[1, 0], [1, 3]]), (("b", "c"), [[1, 2, 1], [2, 1, 1]])]
)
HERE = Path(__file__).parent
NAN, INFINITY = math.nan, math.inf

# what is given to sample -> words the message must contain
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    # the parts
    "model": ({"model": "ising"}, ["needs a model", "str"]),
    "no model": ({"model": None}, ["needs a model", "NoneType"]),
    "kernel": ({"kernel": "gibbs"}, ["kernel", "'gibbs'", "gs.Gibbs()"]),
    "kernel class": ({"kernel": gs.Gibbs}, ["kernel", "class", "gs.Gibbs()"]),
    "rule": ({"kernel": gs.Gibbs("cold-bath")}, ["'cold-bath'", "heat-bath", "metropolised", "suwa-todo"]),
    "scan": ({"scan": "systematic"}, ["scan", "'systematic'", "gs.Systematic()"]),
    "scan class": ({"scan": gs.Chromatic}, ["scan", "Chromatic"]),
    # the budget
    "zero sweeps": ({"sweeps": 0}, ["sweeps", "at least 1", "got 0"]),
    "negative sweeps": ({"sweeps": -5}, ["sweeps", "got -5"]),
    "half a sweep": ({"sweeps": 2.5}, ["sweeps", "whole number", "2.5"]),
    "sweeps as a word": ({"sweeps": "many"}, ["sweeps", "'many'"]),
    "sweeps as a list": ({"sweeps": [10]}, ["sweeps", "[10]"]),
    "sweeps yes": ({"sweeps": True}, ["sweeps", "True"]),
    "NaN sweeps": ({"sweeps": NAN}, ["sweeps", "nan"]),
    "endless sweeps": ({"sweeps": INFINITY}, ["sweeps", "inf"]),
    "zero seconds": ({"seconds": 0}, ["seconds", "positive", "got 0"]),
    "negative seconds": ({"seconds": -1.5}, ["seconds", "-1.5"]),
    "NaN seconds": ({"seconds": NAN}, ["seconds", "nan"]),
    "endless seconds": ({"seconds": INFINITY}, ["seconds", "inf"]),
    "seconds as a word": ({"seconds": "soon"}, ["seconds", "'soon'"]),
    "negative warmup": ({"warmup": -1}, ["warmup", "at least 0", "-1"]),
    "warmup as a word": ({"warmup": "long"}, ["warmup", "'long'"]),
    "thin beyond the sweeps": ({"sweeps": gs.Sweeps(10, thin=11)}, ["thin=11", "10 sweeps", "lower it"]),
    "zero chains": ({"chains": 0}, ["chains", "at least 1", "got 0"]),
    "chains as a word": ({"chains": "four"}, ["chains", "'four'"]),
    "half a chain": ({"chains": 1.5}, ["chains", "1.5"]),
    "zero threads": ({"threads": 0}, ["threads", "at least 1", "got 0"]),
    "threads as a word": ({"threads": "all"}, ["threads", "'all'"]),
    "half a thread": ({"threads": 1.5}, ["threads", "1.5"]),
    # seeds
    "negative seed": ({"rng": -1}, ["rng", "negative", "-1"]),
    "seed as a word": ({"rng": "x"}, ["rng", "Generator", "'x'"]),
    "seed with a fraction": ({"rng": 1.5}, ["rng", "1.5"]),
    "seed yes": ({"rng": True}, ["rng", "True"]),
    "old generator": ({"rng": np.random.RandomState(1)}, ["rng", "Generator", "RandomState"]),
    # recorders
    "recorder": ({"record": "everything"}, ["'everything'", "marginals", "draws", "energy"]),
    "recorder of another kind": ({"record": 5}, ["5", "not a recorder"]),
    "recorder class": ({"record": gs.Draws}, ["Draws", "not a recorder"]),
    "recorder twice": ({"record": ["draws", gs.Draws(["a"])]}, ["Draws", "twice"]),
    "draws of an unknown site": ({"record": gs.Draws(["a", "zz"])}, ["'zz'", "'a', 'b', 'c'"]),
    "draws of an unknown position": ({"record": gs.Draws([7])}, ["position 7", "0 to 2"]),
    "draws of a word": ({"record": gs.Draws("abc")}, ["Draws", "list of sites", "'abc'"]),
    "draws of a number": ({"record": gs.Draws(2)}, ["Draws", "list of sites", "2"]),
    "joint of an unknown site": ({"record": gs.recorders.Joint([("a", "zz")])}, ["'zz'"]),
    "joint of a word": ({"record": gs.recorders.Joint("ab")}, ["Joint", "sets of sites", "'ab'"]),
    "joint of words": ({"record": gs.recorders.Joint(["a", "b"])}, ["Joint", "'a'", "('A', 'B')"]),
    "joint of a number": ({"record": gs.recorders.Joint(3)}, ["Joint", "3"]),
    "joint of numbers": ({"record": gs.recorders.Joint([1, 2])}, ["Joint", "1"]),
    "joint with itself": ({"record": gs.recorders.Joint([("a", "a")])}, ["Joint", "each once", "['a', 'a']"]),
    "joint of nothing": ({"record": gs.recorders.Joint([()])}, ["Joint", "must name sites"]),
    "pairs of a word": ({"record": gs.recorders.PairMoments("all")}, ["PairMoments", "'edges'", "'all'"]),
    "pairs of an unknown site": ({"record": gs.recorders.PairMoments([("a", "zz")])}, ["'zz'"]),
    "pairs with itself": ({"record": gs.recorders.PairMoments([("a", "a")])}, ["PairMoments", "two different", "'a'"]),
    "pairs of three": ({"record": gs.recorders.PairMoments([("a", "b", "c")])}, ["PairMoments", "'c'"]),
    "pairs of one and two": (
        {"record": gs.recorders.PairMoments([("a", "b"), ("a",)])},
        ["PairMoments", "two different"],
    ),
    "pairs outside": ({"record": gs.recorders.PairMoments(np.array([[0, 9]]))}, ["PairMoments", "9"]),
    "pairs of a number": ({"record": gs.recorders.PairMoments(3)}, ["PairMoments", "3"]),
    # starts
    "start outside the support": ({"start": {"a": "no", "b": 1, "c": 0}}, ["impossible", "(a, b)"]),
    "start of codes outside": ({"start": [0, 1, 0]}, ["impossible", "(a, b)"]),
    "start without a site": ({"start": {"a": "no"}}, ["start", "'b'"]),
    "start of an unknown site": ({"start": {"a": "no", "b": 0, "c": 0, "zz": 1}}, ["'zz'"]),
    "start of an unknown label": ({"start": {"a": "maybe", "b": 0, "c": 0}}, ["'maybe'", "'no', 'yes'"]),
    "start of a wrong length": ({"start": np.zeros(5, int)}, ["start", "(3,)", "(5,)"]),
    "start for other chains": ({"start": np.zeros((2, 3), int)}, ["start", "(4, 3)", "(2, 3)"]),
    "start of a code too large": ({"start": [0, 0, 9]}, ["'c'", "9"]),
    "start of fractions": ({"start": np.zeros(3)}, ["start", "integer", "float64"]),
    "start as a word": ({"start": "hot"}, ["'hot'", "random"]),
    "start as a number": ({"start": 3}, ["start", "(3,)"]),
    # scans
    "sequence with an unknown site": ({"scan": gs.scans.FixedOrder(["a", "zz"])}, ["'zz'"]),
    "sequence with an unknown position": ({"scan": gs.scans.FixedOrder([0, 9])}, ["site 9", "entry 1", "0..2"]),
    "empty sequence": ({"scan": gs.scans.FixedOrder([])}, ["empty"]),
    "sequence as a word": ({"scan": gs.scans.FixedOrder("ab")}, ["'ab'"]),
    "sequence as a number": ({"scan": gs.scans.FixedOrder(3)}, ["sequence of sites", "3"]),
    "sequence of fractions": ({"scan": gs.scans.FixedOrder([0.5, 1.0])}, ["positions", "0.5"]),
    "sequence as a table": ({"scan": gs.scans.FixedOrder(np.zeros((2, 2), int))}, ["(2, 2)"]),
    "order that repeats": ({"scan": gs.Systematic([0, 0, 1])}, ["site 0", "2 times", "FixedOrder"]),
    "order that leaves out": ({"scan": gs.Systematic(["a", "b"])}, ["site 2", "0 times", "FixedOrder"]),
    "palindrome that repeats": ({"scan": gs.scans.Palindromic([0, 0, 1])}, ["site 0", "2 times"]),
    "negative weight": ({"scan": gs.RandomScan([1, -2, 1])}, ["'b'", "-2"]),
    "NaN weight": ({"scan": gs.RandomScan([1, 1, NAN])}, ["'c'", "nan"]),
    "too few weights": ({"scan": gs.RandomScan([1, 1])}, ["3 sites", "(2,)"]),
    "no weight": ({"scan": gs.RandomScan([0, 0, 0])}, ["all zero"]),
    "weight of an unknown site": ({"scan": gs.RandomScan({"a": 1, "zz": 1})}, ["'zz'"]),
    "weights as a word": ({"scan": gs.RandomScan("abc")}, ["numbers", "'abc'"]),
    "weight as a word": ({"scan": gs.RandomScan({"a": "often"})}, ["numbers", "'often'"]),
    # checkpoints
    "checkpoint is a folder": ({"checkpoint": HERE}, [str(HERE), "folder"]),
    "checkpoint in a file": ({"checkpoint": HERE / "test_bad_input.py" / "x"}, ["test_bad_input.py", "director"]),
    "checkpoint nowhere": ({"checkpoint": HERE / "nowhere" / "x"}, ["nowhere", "No such file"]),
    "checkpoint exists": ({"checkpoint": __file__}, ["exists already", "resume=True"]),
    "checkpoint is a number": ({"checkpoint": 5}, ["checkpoint", "path", "5"]),
    "checkpoint without a name": ({"checkpoint": ""}, ["folder"]),
    "resume from source code": ({"checkpoint": gs.Checkpoint(__file__, resume=True)}, ["not a gibbsite checkpoint"]),
    # display
    "progress": ({"progress": "loud"}, ["progress", "'loud'"]),
}


def check(error: BaseException, words: list[str]) -> None:
    """One sentence of ours that has the words."""
    text = str(error)
    assert isinstance(error, gs.GibbsiteError)
    for word in words:
        assert word in text, text
    assert "\n" not in text
    assert text.endswith(".")
    assert len(text) < 400
    # a sentence ends where a period is followed by a space; names such as gs.Draws do not count
    assert ". " not in text.rstrip("."), text


@pytest.mark.parametrize("case", CASES)
def test_bad_arguments(case: str) -> None:
    given, words = CASES[case]
    arguments = {"model": MODEL, "kernel": None, "sweeps": 10, "rng": 1, "progress": False, **given}
    with pytest.raises(gs.GibbsiteError) as caught:
        gs.sample(arguments.pop("model"), arguments.pop("kernel"), **arguments)
    check(caught.value, words)


GROUPED: dict[str, tuple[Any, list[str]]] = {
    "zero steps": (lambda: gs.Steps(0), ["steps", "at least 1", "got 0"]),
    "zero sweeps": (lambda: gs.Sweeps(0), ["sweeps", "at least 1", "got 0"]),
    "zero thin": (lambda: gs.Sweeps(thin=0), ["thin", "at least 1", "got 0"]),
    "no thin": (lambda: gs.Steps(5, thin=None), ["thin", "None"]),  # type: ignore[arg-type]
    "accuracy as a word": (lambda: gs.Criteria(accuracy="small"), ["accuracy", "'small'"]),  # type: ignore[arg-type]
    "zero accuracy": (lambda: gs.Criteria(accuracy=0.0), ["accuracy", "between 0 and 1", "0.0"]),
    "query as a name": (lambda: gs.Criteria(query="a"), ["query", "list of sites", "'a'"]),
    "interval as a word": (lambda: gs.Checkpoint("x", every="often"), ["checkpoint_every", "'often'"]),  # type: ignore[arg-type]
    "negative interval": (lambda: gs.Checkpoint("x", every=-1), ["checkpoint_every", "-1"]),
    "NaN interval": (lambda: gs.Checkpoint("x", every=NAN), ["checkpoint_every", "nan"]),
    "resume as a word": (lambda: gs.Checkpoint("x", resume="yes"), ["resume", "True or False"]),  # type: ignore[arg-type]
    "zero partitions": (lambda: gs.Cluster("local-dask", partitions=0), ["partitions", "at least 1"]),
    "partitions of Ray": (lambda: gs.Cluster("ray", partitions=2), ["partitions", "Dask"]),
}


@pytest.mark.parametrize("case", GROUPED)
def test_bad_values_of_grouped_arguments(case: str) -> None:
    make, words = GROUPED[case]
    with pytest.raises(gs.errors.ArgumentError) as caught:
        make()
    check(caught.value, words)


MODELS: dict[str, tuple[Any, list[str]]] = {
    "contradictory evidence": (lambda: MODEL.observe({"a": "no", "b": 1}), ["a='no'", "b=1", "(a, b)"]),
    "evidence of an unknown site": (lambda: MODEL.observe({"zz": 1}), ["'zz'", "'a', 'b', 'c'"]),
    "evidence of an unknown state": (lambda: MODEL.observe({"a": "maybe"}), ["'a'", "'maybe'"]),
    "all-zero factor": (lambda: gs.FactorGraph({"a": 2}, [("a", [0, 0])]), ["(a)", "zero everywhere"]),
    "negative potential": (lambda: gs.FactorGraph({"a": 2}, [("a", [1, -1])]), ["(a)", "-1"]),
    "NaN potential": (lambda: gs.FactorGraph({"a": 2}, [("a", [1, NAN])]), ["(a)", "NaN"]),
    "factors that contradict": (
        lambda: gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), np.eye(2)), (("a", "b"), 1 - np.eye(2))]),
        ["(a, b)", "zero"],
    ),
    "three that all differ": (
        lambda: gs.FactorGraph(
            dict.fromkeys("abc", 2), [(pair, 1 - np.eye(2)) for pair in (("a", "b"), ("b", "c"), ("a", "c"))]
        ),
        ["No state", "positive probability"],
    ),
    "soft evidence of zeros": (lambda: MODEL.observe({"a": [0.0, 0.0]}), ["'a'"]),
}


@pytest.mark.parametrize("case", MODELS)
def test_models_without_a_state(case: str) -> None:
    build, words = MODELS[case]
    with pytest.raises(gs.GibbsiteError) as caught:
        gs.sample(build(), sweeps=10, rng=1, progress=False)
    check(caught.value, words)


def test_the_kinds_of_errors() -> None:
    """Errors of arguments are also ValueErrors, of checkpoints OSErrors, so that old habits catch them."""
    with pytest.raises(ValueError, match="sweeps"):
        gs.sample(MODEL, sweeps=0)
    with pytest.raises(OSError, match="folder"):
        gs.sample(MODEL, sweeps=1, checkpoint=HERE)
    with pytest.raises(gs.errors.SupportError):
        gs.sample(MODEL, sweeps=1, start=[0, 1, 0])


def test_questions_about_what_was_not_recorded() -> None:
    result = gs.sample(MODEL, sweeps=500, rng=1, record="energy", progress=False)
    best = gs.sample(MODEL, sweeps=500, rng=1, record="best", progress=False)
    asked = {"Joint": lambda: result.joint("a", "b")}
    assert all(math.isnan(p) for p in best.marginals["c"].values())
    assert result.assignment is None and best.assignment is not None
    for word, ask in asked.items():
        with pytest.raises(gs.errors.ModelError) as caught:
            ask()
        check(caught.value, ["not recorded", word])
    kept = gs.sample(MODEL, sweeps=500, rng=1, record=gs.recorders.Joint([("a", "b")]), progress=False)
    with pytest.raises(gs.errors.ModelError) as caught:
        kept.joint("a", "zz")
    check(caught.value, ["'zz'"])
    plain = gs.sample(MODEL, sweeps=500, rng=1, progress=False)
    with pytest.raises(KeyError, match="zz"):
        plain.marginals["zz"]


def test_what_is_not_bad() -> None:
    for given in (
        {"sweeps": np.int64(3)},
        {"sweeps": 3.0},
        {"seconds": np.float32(50.0), "sweeps": 3},
        {"threads": 99},
        {"record": gs.Draws([])},
        {"record": []},
        {"rng": np.uint32(4)},
        {"start": [1, 0, 2]},
        {"start": {"a": "yes", "b": 1, 2: 2}},
    ):
        assert gs.sample(MODEL, **{"sweeps": 3, "progress": False, **given}).n_draws == 3
