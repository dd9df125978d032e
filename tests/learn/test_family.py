"""Functions of ``gibbsite.learn.family`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.family import make_spins, make_tables, project_rows


def test_make_spins_returns_the_ising_models_on_some_pairs() -> None:
    family = make_spins(3, np.array([[0, 1], [1, 2]], np.int32), fields=True)
    assert family.statistics(np.array([[0, 1, 1]])).tolist() == [[-1.0, 1.0, -1.0, 1.0, 1.0]]


def test_make_tables_returns_the_models_with_a_table_for_each_of_some_pairs() -> None:
    family = make_tables(2, np.array([[0, 1]], np.int32), fields=False, states=2)
    assert family.statistics(np.array([[0, 1]])).tolist() == [[0.0, 1.0, 0.0, 0.0]]


def test_project_rows_returns_the_nearest_weights_of_pairs_from_0_to_box_that_add_up() -> None:
    assert project_rows(np.array([1.0, 0.4]), np.array([[0, 1], [1, 2]]), 3, bound=1.0).round(3).tolist() == [0.8, 0.2]
