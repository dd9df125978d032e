"""Functions of ``gibbsite.lab.herded.two_variables`` on small inputs whose results are known."""

from __future__ import annotations

import gibbsite as gs
from gibbsite.lab.herded.two_variables import make_model


def test_make_model_returns_the_model_of_table_1() -> None:
    assert round(gs.solve_exact(make_model(0.01)).marginals[0][1], 9) == 0.75
