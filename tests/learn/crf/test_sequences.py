"""Functions of ``gibbsite.learn.crf.sequences`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.crf.sequences import Sequences, Vocabulary, read_labels


def test_sequences_positionss_of_all_sequences_one_after_the_other_with_their_features() -> None:
    two = Sequences(np.array([0, 2, 3]), np.array([0, 1, 3, 4]), np.array([0, 0, 1, 1], np.int32), np.zeros(0))
    assert (len(two), two.n_positions) == (2, 3)


def test_sequences_are_divided_into_ranges_of_about_equal_length() -> None:
    nothing = np.zeros(11, int), np.zeros(0, np.int32), np.zeros(0)
    five = Sequences(np.array([0, 1, 2, 9, 10]), *nothing)
    assert five.parts(2) == [(0, 3), (3, 4)]


def test_take_returns_some_sequences_in_a_row() -> None:
    two = Sequences(np.array([0, 2, 3]), np.array([0, 1, 3, 4]), np.array([0, 0, 1, 1], np.int32), np.zeros(0))
    assert two.take(1, 2).feature.tolist() == [1]


def test_vocabulary_namess_of_features_and_sequences_in_terms_of_their_numbers() -> None:
    words = Vocabulary()
    data = words.read([[{"word": "Rome", "capital": True}, ["word=is"]]], grow=True)
    assert (words.names, data.feature.tolist()) == (["word=Rome", "capital", "word=is"], [0, 1, 2])


def test_read_labels_returns_the_labels_of_sequences() -> None:
    words = Vocabulary()
    assert read_labels([["a", "b"]], words.read([[["x"], ["y"]]], grow=True)) == [["a", "b"]]
