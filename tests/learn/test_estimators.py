"""Functions of ``gibbsite.learn.estimators`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from gibbsite.learn.estimators import is_table, read_table


def test_parameters_readss_and_changes_attributes_that_are_named_as_the_arguments() -> None:
    model = gs.learn.AspectModel(topics=3)
    assert model.get_params()["topics"] == 3
    assert repr(model.set_params(starts=2)) == "AspectModel(topics=3, starts=2)"


def test_is_table_tells_whether_x_is_a_table_of_numbers_and_no_list_of_sequences() -> None:
    assert (is_table(np.zeros((3, 2))), is_table([[["the"], ["cat"]]])) == (True, False)


def test_read_table_returns_a_table_of_finite_numbers_and_a_label_for_each_row_where() -> None:
    assert read_table(np.ones((2, 3)), np.array([0, 1]))[0].shape == (2, 3)
