"""Functions of ``gibbsite.learn.crf.vocabulary`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.learn.crf.vocabulary import Vocabulary, read_labels


def test_vocabulary_namess_of_features_and_sequences_in_terms_of_their_numbers() -> None:
    words = Vocabulary()
    data = words.read([[{"word": "Rome", "capital": True}, ["word=is"]]], grow=True)
    assert (words.names, data.feature.tolist()) == (["word=Rome", "capital", "word=is"], [0, 1, 2])


def test_read_labels_returns_the_labels_of_sequences() -> None:
    words = Vocabulary()
    assert read_labels([["a", "b"]], words.read([[["x"], ["y"]]], grow=True)) == [["a", "b"]]
