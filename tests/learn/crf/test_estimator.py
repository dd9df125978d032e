"""The estimator: scikit-learn's own checks, sequences of all kinds, and mistakes in them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gibbsite as gs

X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"], ["sleeps"]], [["the"], ["dog"], ["barks"]]]
Y = [["D", "N", "V"]] * 3


def test_it_passes_the_checks_of_scikit_learn() -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimator ChainCRF does not inherit")
        found = checks.check_estimator(gs.learn.ChainCRF(), on_fail=None, on_skip=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []


def test_it_can_be_cloned_changed_and_shown() -> None:
    crf = gs.learn.ChainCRF(l2=0.5)
    assert repr(crf.set_params(order=2)) == "ChainCRF(order=2, l2=0.5)"
    assert gs.learn.ChainCRF(**crf.get_params()).get_params() == crf.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        crf.set_params(nonsense=1)


@pytest.mark.parametrize("order", [1, 2])
def test_it_learns_sequences(order: int) -> None:
    crf = gs.learn.ChainCRF(order=order, l2=0.1).fit(X, Y)
    assert crf.predict([[["a"], ["cat"], ["barks"]], []]) == [["D", "N", "V"], []]
    assert crf.score(X, Y) == 1.0
    assert crf.classes_.tolist() == ["D", "N", "V"]
    probabilities = crf.predict_proba(X)
    assert [p.shape for p in probabilities] == [(3, 3)] * 3
    np.testing.assert_allclose(probabilities[0].sum(axis=1), 1.0, atol=1e-12)
    best = crf.predict_best(X[:1], best=27)[0]
    assert sum(p for _, p in best) == pytest.approx(1.0, abs=1e-9)
    assert best[0][0] == Y[0]


def test_values_are_numbers_flags_and_texts() -> None:
    rows = [[{"size": 2.5, "capital": True, "small": False, "word": "Rome"}], [{"size": -1.0, "word": "is"}]]
    crf = gs.learn.ChainCRF(min_count=1).fit(rows, [["LOC"], ["O"]])
    assert crf.vocabulary_.names == ["size", "capital", "word=Rome", "(bias)", "word=is"]
    assert crf.predict(rows) == [["LOC"], ["O"]]
    rare = gs.learn.ChainCRF(min_count=2).fit(rows, [["LOC"], ["O"]])
    assert rare.vocabulary_.names == ["size", "(bias)"]


def test_what_a_scheme_forbids_never_comes_out() -> None:
    rng = np.random.default_rng(1)
    words = [[[f"w{k}"] for k in rng.integers(0, 5, 6)] for _ in range(30)]
    labels = [["O", "B-X", "I-X", "O", "B-X", "O"] for _ in words]
    crf = gs.learn.ChainCRF(scheme="bio").fit(words, labels)
    codes = {label: k for k, label in enumerate(crf.classes_.tolist())}
    for p in crf.predict_proba(words):
        assert p[0, codes["I-X"]] == 0.0


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([[["a"], ["b"]]], [["x"]], "sequence 0 has 2 positions and 1 labels"),
        ([[["a"]]], [["x"], ["y"]], "there are 1 sequences and 2 rows of labels"),
        ([[["a"], 3]], [["x", "y"]], "position 1 of sequence 0 must be a mapping"),
        ([[{"a": float("nan")}]], [["x"]], "the feature 'a' of position 0 of sequence 0 is nan"),
        (["text"], [["x"]], "sequence 0 must be a list of positions"),
        ([[]], [[]], "all sequences are empty"),
    ],
)
def test_mistakes_are_named(x: object, y: object, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.learn.ChainCRF().fit(x, y)


def test_penalties_are_checked() -> None:
    with pytest.raises(gs.errors.ArgumentError, match="l2 must be a number of at least 0"):
        gs.learn.ChainCRF(l2=-1.0).fit(X, Y)
    with pytest.raises(gs.errors.ModelError, match="is not fitted"):
        gs.learn.ChainCRF().predict(X)
