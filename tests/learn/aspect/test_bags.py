"""Functions of ``gibbsite.learn.aspect.bags`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.aspect.bags import is_counts, read_bags


def test_is_counts_tells_whether_x_is_a_table_documents_words_of_counts_and_no_list() -> None:
    assert (is_counts(np.zeros((3, 5))), is_counts([[0, 1, 1], [4]])) == (True, False)


def test_read_bags_returns_documents_as_bags() -> None:
    assert read_bags(np.array([[2, 0, 1], [0, 0, 0]])).words.ravel().tolist() == [0, 2]
    assert read_bags([[3, 3, 1], [0]]).first.tolist() == [0, 3, 4]
