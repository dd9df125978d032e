"""Functions of ``gibbsite.lab.dogs.marginal`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.dogs.marginal import measure_distance


def test_measure_distance_returns_the_manhattan_distance_of_each_site_to_the_corner() -> None:
    assert (measure_distance(False).max(), measure_distance(True).max()) == (78, 40)
