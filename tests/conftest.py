"""Settings of all tests: property tests draw the same examples every time and have no time limit."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

_ROOT = Path(__file__).parent.parent
# What takes longest, so that no worker is left alone with it at the end; a worker has all tests of a file.
_FIRST = (
    "tests/lab",
    "tests/proofs/test_conformance",
    "tests/proofs/test_herded",
    "tests/proofs",
    "tests/applications",
    "tests/kernels",
    "tests/benchmarks",
    "tests/cli",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first."""

    def rank(item: pytest.Item) -> int:
        path = item.path.relative_to(_ROOT).as_posix()
        return next((k for k, name in enumerate(_FIRST) if path.startswith(name)), len(_FIRST))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Leave what was loaded out of garbage collections: half a million objects that stay until the end."""
    gc.collect()
    gc.freeze()
