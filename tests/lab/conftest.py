"""Experiments are tested without data from outside the repository, and by default some of them.

The others are campaigns: ``pytest -m "campaign or not campaign" tests/lab`` runs all of them in quick mode.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs

BY_DEFAULT = {"herded-incomplete-graph", "dogs-guarantees", "notes-gaussian-gibbs"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need the findings of an experiment that is not run by default."""
    for item in items:
        ours = isinstance(item, pytest.Function) and Path(__file__).parent in item.path.parents
        if ours and _experiments(item) - BY_DEFAULT:
            item.add_marker(pytest.mark.campaign)


def _experiments(item: Any) -> set[str]:
    """Return the experiments whose findings a test asks for, by its text and its parameters."""
    asked = set(re.findall(r"(?:findings|claims)\(\"([a-z0-9-]+)\"", inspect.getsource(item.function)))
    given: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return asked | {value for value in given.values() if isinstance(value, str) and value in gs.lab.NAMES}


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("GIBBSITE_DATA", str(tmp_path_factory.mktemp("nothing")))
