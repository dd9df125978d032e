"""Functions of ``gibbsite.learn.crf.structure`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.learn.crf.structure import Structure


def test_structure_labelss_in_a_row() -> None:
    free = Structure(np.ones((2, 2), bool), np.ones(2, bool), np.ones(2, bool))
    assert (free.size, free.moves(np.zeros(8), exponentials=False).row[:2, :2].tolist()) == (
        8,
        [[0.0, 0.0], [0.0, 0.0]],
    )


def test_tables_returns_scores_of_pairs_of_triples_order_2_of_the_first_and_of_the_last() -> None:
    chain = Structure(np.array([[True, False], [True, True]]), np.ones(2, bool), np.ones(2, bool))
    assert repr(chain.tables(np.arange(7.0))[0].tolist()) == "[[0.0, -inf], [1.0, 2.0]]"


def test_gather_adds_up_what_was_expected_of_moves_by_the_weights_that_score_them() -> None:
    free = Structure(np.ones((2, 2), bool), np.ones(2, bool), np.ones(2, bool))
    assert free.gather(np.arange(16.0).reshape(4, 4), np.arange(4.0), np.arange(4.0)).tolist() == [
        0.0,
        1.0,
        4.0,
        5.0,
        0.0,
        1.0,
        0.0,
        1.0,
    ]
