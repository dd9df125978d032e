"""Functions of ``gibbsite.applications.segmentation.field`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications.segmentation.field import (
    Neighbourhood,
    grid_neighbourhood,
    natural_coupling,
    pair_weights,
    potts_field,
)


def test_grid_neighbourhood_returns_the_pairs_of_neighbouring_pixels_with_at_least_one() -> None:
    free = np.array([[True, False, False]])
    found = grid_neighbourhood(free, 4)
    assert (found.nodes.tolist(), found.pairs.tolist()) == ([0, 1], [[0, 1]])


def test_pair_weights_returns_g_of_all_pairs() -> None:
    around = Neighbourhood(np.arange(2), np.array([[0, 1]], np.int32), np.ones(1, np.float32))
    assert round(float(pair_weights(around, np.array([[0, 0, 0], [1, 0, 0]], np.float32), 0.5)[0]), 6) == 0.367879


def test_potts_field_returns_the_field_of_the_nodes_whose_labels_are_unknown_given() -> None:
    pairs, coupling = np.array([[0, 1], [1, 2]]), np.array([0.5, 2.0])
    model = potts_field(pairs, coupling, np.zeros((2, 3)), np.array([-1, -1, 1]))
    assert (model.log_potential([1, 1]), model.log_potential([0, 1]), model.log_potential([0, 0])) == (2.5, 2.0, 0.5)


def test_natural_coupling_returns_the_coupling_j_at_which_neighbours_of_one_label() -> None:
    assert natural_coupling(np.array([[0.0, 4.0], [4.0, 0.0]]), np.array([1.0]), np.array([[0, 1]])) == 4.0
