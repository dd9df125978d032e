"""Functions of ``gibbsite.applications.entities.columns`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.applications.entities.columns import read_classes


def test_read_classes_returns_names_of_classes_from_old_new() -> None:
    assert read_classes(["person=PER", "MISC="]) == {"person": "PER", "MISC": ""}
