"""Chains with given weights: those of CRFsuite give its labels and probabilities, and mistakes are refused."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs

HERE = Path(__file__).parent
DUMP, TAGGED = HERE / "crfsuite.dump", json.loads((HERE / "crfsuite.json").read_text(encoding="utf-8"))["tagged"]


def test_a_dump_gives_what_crfsuite_gives() -> None:
    """The file has six decimals of each weight."""
    crf = gs.learn.ChainCRF.from_weights(DUMP)
    assert crf.classes_.tolist() == ["B-PER", "I-PER", "O", "B-LOC"]
    X, y = [row["features"] for row in TAGGED], [row["labels"] for row in TAGGED]
    assert crf.predict(X) == y
    np.testing.assert_allclose(np.exp(crf.log_probability(X, y)), [row["probability"] for row in TAGGED], rtol=2e-5)
    for row, found in zip(TAGGED, crf.predict_proba(X), strict=True):
        theirs = np.array([row["marginals"][label] for label in crf.classes_.tolist()]).T
        np.testing.assert_allclose(found, theirs, atol=2e-5)


def test_mappings_give_the_same_model_as_the_dump() -> None:
    crf = gs.learn.ChainCRF.from_weights(DUMP)
    given = gs.learn.crf.given.read_dump(DUMP)
    nested: dict[str, dict[str, float]] = {}
    for (feature, label), weight in given.features.items():
        nested.setdefault(feature, {})[label] = weight
    X = [row["features"] for row in TAGGED]
    for weights in (given.features, nested):
        other = gs.learn.ChainCRF.from_weights(weights, given.transitions, labels=given.labels)
        np.testing.assert_array_equal(np.concatenate(other.predict_proba(X)), np.concatenate(crf.predict_proba(X)))


@pytest.mark.parametrize("method", ["viterbi", "gibbs", "herded", "blocks"])
def test_every_decoder_finds_the_labels_of_a_clear_model(method: str) -> None:
    crf = gs.learn.ChainCRF.from_weights(DUMP)
    X, y = [row["features"] for row in TAGGED], [row["labels"] for row in TAGGED]
    assert crf.predict(X, method=method, sweeps=200, rng=2) == y
    assert crf.predict([], method=method) == []
    assert crf.predict([[], X[0]], method=method) == [[], y[0]]


def random_model(rng: np.random.Generator, **given: Any) -> gs.learn.ChainCRF:
    labels = ["a", "b", "c"]
    weights = {f"f{k}": dict(zip(labels, 2.0 * rng.normal(size=3), strict=True)) for k in range(4)}
    moves = {pair: float(rng.normal()) for pair in product(labels, repeat=2)}
    edges = {name: dict(zip(labels, rng.normal(size=3).tolist(), strict=True)) for name in ("first", "last")}
    return gs.learn.ChainCRF.from_weights(weights, moves | given.pop("forbid", {}), **edges, **given)


@pytest.mark.parametrize("forbid", [{}, {("a", "b"): -np.inf, ("c", "c"): -np.inf}])
def test_the_weights_are_those_that_are_given(forbid: Any) -> None:
    rng = np.random.default_rng(1)
    labels = ["a", "b", "c"]
    weights = {f"f{k}": dict(zip(labels, rng.normal(size=3).tolist(), strict=True)) for k in range(4)}
    moves = {pair: float(rng.normal()) for pair in product(labels, repeat=2)} | forbid
    first, last = ({label: float(rng.normal()) for label in labels[:2]} for _ in range(2))
    crf = gs.learn.ChainCRF.from_weights(weights, moves, first=first, last=last)
    x = [[{"f0": 1.5, "f2": 1.0}], [], [["f1", "unknown"]], [["f3"]]]
    x = [{"f0": 1.5, "f2": 1.0}, {}, {"f1": 1.0, "unknown": 3.0}, {"f3": True}]
    log = {}
    for y in product(labels, repeat=4):
        score = first.get(y[0], 0.0) + last.get(y[-1], 0.0) + sum(moves[pair] for pair in pairwise(y))
        score += sum(
            weights[name][label] * value
            for row, label in zip(x, y, strict=True)
            for name, value in row.items()
            if name in weights
        )
        log[y] = score
    log_z = np.logaddexp.reduce(list(log.values()))
    for y, score in log.items():
        found = crf.log_probability([x], [list(y)])[0]
        assert found == pytest.approx(score - log_z, abs=1e-9) or (found == score == -np.inf)
    best = max(log, key=lambda y: log[y])
    assert crf.predict([x]) == [list(best)]
    for method in ("gibbs", "herded", "blocks"):
        assert crf.predict([x], method=method, sweeps=300) == [list(best)]


def test_sampled_labels_are_never_better_than_viterbis() -> None:
    rng = np.random.default_rng(2)
    crf = random_model(rng)
    X = [[[f"f{k}"] for k in rng.integers(0, 4, 12)] for _ in range(20)]
    best = crf.log_probability(X, crf.predict(X))
    for method in ("gibbs", "herded", "blocks"):
        few, many = (crf.log_probability(X, crf.predict(X, method=method, sweeps=n)) for n in (3, 200))
        assert (few <= best + 1e-9).all()
        assert (many <= best + 1e-9).all()
        assert many.sum() >= few.sum()
    assert crf.log_probability(X, crf.predict(X, method="herded", sweeps=200)).sum() > best.sum() - 1.0


def test_names_of_features_may_have_arrows_and_colons(tmp_path: Path) -> None:
    path = tmp_path / "odd.dump"
    path.write_text(
        "LABELS = {\n 0: x: y\n 1: O\n}\nATTRIBUTES = {\n 0: a --> O: 3\n 1: word:Rome\n}\nTRANSITIONS = {\n"
        " (1) x: y --> O: 0.5\n}\nSTATE_FEATURES = {\n (0) a --> O: 3 --> x: y: 2.500000\n (0) word:Rome --> O: 1e-3\n}\n"
    )
    crf = gs.learn.ChainCRF.from_weights(path)
    assert crf.classes_.tolist() == ["x: y", "O"]
    assert crf.vocabulary_.names == ["a --> O: 3", "word:Rome"]
    assert crf.chain_.weight.tolist() == [2.5, 0.001]
    assert crf.predict([[["a --> O: 3"], {"word": "Rome"}]]) == [["x: y", "O"]]
    assert crf.log_probability([[{"word": "Rome"}]], [["O"]])[0] == pytest.approx(0.001 - np.logaddexp(0, 0.001))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("lCRFtext", "expected a section"),
        ("LABELS = {\n 0: O\n}\n", "no section STATE_FEATURES"),
        ("LABELS = {\n}\nSTATE_FEATURES = {\n}\n", "no labels"),
        ("LABELS = {\n O\n}\n", "a number, a colon and a name"),
        ("LABELS = {\n 0: O\n}\nSTATE_FEATURES = {\n (0) a --> X: 1\n}\n", "expected two names"),
        ("LABELS = {\n 0: O\n}\nSTATE_FEATURES = {\n (0) a --> O: nan\n}\n", "expected two names"),
        ("LABELS = {\n 0: O\n}\nSTATE_FEATURES = {\n (0) a --> O: one\n}\n", "expected two names"),
        ("LABELS = {\n 0: O\n}\nTRANSITIONS = {\n (1) X --> O: 1\n}\nSTATE_FEATURES = {\n}\n", "from 'X'"),
    ],
)
def test_damaged_dumps_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.dump"
    path.write_text(text)
    with pytest.raises(gs.errors.FormatError, match=message):
        gs.learn.ChainCRF.from_weights(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "weights must be a mapping"),
        (({"a": 3.0},), "expected a pair of names"),
        (({"a": {"x": "1"}},), "expected a number"),
        (({"a": {"x": np.nan}},), "expected a number"),
        (({"a": {"x": np.inf}},), "expected a number"),
        (({},), "1 to 255 labels"),
        (({"a": {"x": 1.0}}, {"x": {"y": np.inf}}), "expected a number"),
        ((DUMP, {("O", "O"): 1.0}), "of its own"),
    ],
)
def test_wrong_weights_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(gs.errors.GibbsiteError, match=message):
        gs.learn.ChainCRF.from_weights(*arguments)


def test_other_mistakes_are_refused() -> None:
    weights = {"a": {"x": 1.0, "y": 0.0}}
    make = gs.learn.ChainCRF.from_weights
    for given, message in (
        ({"labels": ["x"]}, "'y', which is not in labels"),
        ({"labels": ["x", "y", "x"]}, "twice"),
        ({"labels": "xy"}, "list of names"),
        ({"scheme": "bio"}, "neither"),
        ({"first": {"z": 1.0}, "labels": ["x", "y"]}, "'z'"),
        ({"last": [1.0, 2.0]}, "last must be a mapping"),
    ):
        with pytest.raises(gs.errors.GibbsiteError, match=message):
            make(weights, **given)
    crf = make(weights)
    with pytest.raises(gs.errors.GibbsiteError, match="viterbi, posterior, gibbs"):
        crf.predict([[["a"]]], method="annealed")
    with pytest.raises(gs.errors.GibbsiteError, match="'q', which the model does not have"):
        crf.log_probability([[["a"]]], [["q"]])
    with pytest.raises(gs.errors.GibbsiteError, match="sweeps"):
        crf.predict([[["a"]]], method="gibbs", sweeps=0)
    nowhere = make(weights, {(a, b): -np.inf for a in "xy" for b in "xy"})
    with pytest.raises(gs.errors.GibbsiteError, match="no labelling of sequence 0 is allowed"):
        nowhere.predict([[["a"], ["a"]]], method="herded")
