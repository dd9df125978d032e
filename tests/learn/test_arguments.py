"""Functions of ``gibbsite.learn.arguments`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.learn.arguments import read_codes, read_numbers, read_pairs


def test_read_numbers_returns_an_array_of_finite_numbers() -> None:
    assert read_numbers([[1, -1]], "data").tolist() == [[1.0, -1.0]]


def test_read_codes_returns_data_as_state_codes_draws_sites() -> None:
    assert read_codes([[1, -1], [1, 1]], 2, spins=True).tolist() == [[1, 0], [1, 1]]


def test_read_pairs_returns_pairs_i_j_in_the_order_they_are_given() -> None:
    assert read_pairs([(2, 0), (1, 2)], 3).tolist() == [[0, 2], [1, 2]]
