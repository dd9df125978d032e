"""Functions of ``gibbsite.lab.herded.empty_graph`` on small inputs whose results are known."""

from __future__ import annotations

import gibbsite as gs
from gibbsite.lab.herded.empty_graph import PAIRS, make_model, stated_error


def test_make_model_has_independent_sites() -> None:
    joint = gs.solve_exact(make_model(0.25, 0.5)).joint("a", "b")
    assert joint.round(9).tolist() == [[0.375, 0.375], [0.125, 0.125]]


def test_stated_errors_are_those_of_related_pairs() -> None:
    assert stated_error(make_model(0.25, 0.5)) == (0.5, 0.5)
    assert [bool(stated_error(make_model(*pair))[0]) for pair in PAIRS.values()] == [True] * 5 + [False] * 2
