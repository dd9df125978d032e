"""Functions of ``gibbsite.learn.parameters`` on small inputs whose results are known."""

from __future__ import annotations

import gibbsite as gs


def test_parameters_readss_and_changes_attributes_that_are_named_as_the_arguments() -> None:
    model = gs.learn.AspectModel(topics=3)
    assert model.get_params()["topics"] == 3
    assert repr(model.set_params(starts=2)) == "AspectModel(topics=3, starts=2)"
