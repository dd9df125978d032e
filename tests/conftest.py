"""Settings of all tests: property tests draw the same examples every time and have no time limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

_ROOT = Path(__file__).parent.parent
# What takes longest, so that no worker is left alone with it at the end.
_FIRST = ("tests/lab", "tests/proofs", "tests/applications", "tests/kernel", "tests/benchmarks", "tests/cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests of a file to one worker: they share compiled loops, and those of the lab experiments."""

    def group(item: pytest.Item) -> str:
        path = item.path.relative_to(_ROOT).as_posix()
        return "tests/lab" if path.startswith("tests/lab/") else path

    def rank(item: pytest.Item) -> int:
        return next((k for k, name in enumerate(_FIRST) if group(item).startswith(name)), len(_FIRST))

    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=rank)
