"""Functions of ``gibbsite.applications.entities.links`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.entities.documents import read_text
from gibbsite.applications.entities.links import classes_of, components, find_links
from gibbsite.learn.crf.sequences import Sequences


def test_find_links_returns_pairs_of_tokens_of_a_document_with_the_same_name_counted() -> None:
    assert find_links([read_text("Rome is old. So is ROME."), read_text("Rome.")]).tolist() == [[0, 6]]


def test_classes_of_returns_the_classes_o_among_them_and_that_of_each_label() -> None:
    names, of = classes_of(["B-X", "I-X", "O"])
    assert (names, of.tolist()) == (["O", "X"], [1, 1, 0])


def test_components_returns_for_each_sequence_the_number_of_the_part_that_it_belongs() -> None:
    three = Sequences(np.array([0, 2, 3, 5]), np.zeros(6, int), np.zeros(0, np.int32), np.zeros(0))
    assert components(three, np.array([[0, 4]])).tolist() == [0, 1, 0]
