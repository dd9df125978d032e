"""Damaged files: only a FormatError may come out of a reader."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.formats.fuzz import CORPUS, READERS, attempt, mutate, seeds


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_was_found_stays_fixed(path: Path) -> None:
    assert attempt(path.name.rpartition("-")[0], path.read_bytes()) is None


@pytest.mark.parametrize("format", sorted(READERS))
def test_only_format_errors_escape(format: str) -> None:
    rng = random.Random(2)
    pool = [data for data in seeds(format) if len(data) < 3000]
    for data in pool:
        assert attempt(format, data) is None
    for _ in range(400):
        data = mutate(rng.choice(pool), rng, pool)
        assert attempt(format, data) is None, data
