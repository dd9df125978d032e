"""Functions of ``gibbsite.applications.entities.scoring`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.applications.entities.scoring import paired_difference


def test_paired_difference_returns_how_much_higher_the_f1_of_the_second_labels() -> None:
    truth = [[["B-X"]]] * 5
    assert paired_difference(truth, [[["O"]]] * 5, truth, repeats=10) == (1.0, 1.0, 1.0)
