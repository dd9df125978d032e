"""Experiments are tested without data from outside the repository."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("GIBBSITE_DATA", str(tmp_path_factory.mktemp("nothing")))
