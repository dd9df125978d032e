"""Functions of ``gibbsite.cli.answers`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.cli.answers import text_cell


def test_text_cell_returns_a_name_or_a_state_for_a_cell() -> None:
    assert (text_cell("=1+1"), text_cell("-1"), text_cell(-1), text_cell("a-b")) == ("'=1+1", "-1", -1, "a-b")
