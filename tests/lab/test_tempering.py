"""The experiment on tempering in quick mode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.lab.quick_runs import check_what_it_says_and_saves, claims, family, findings

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", family("tempering"))
def test_experiments_say_what_they_are_and_save_what_they_found(name: str, tmp_path: Path) -> None:
    check_what_it_says_and_saves(name, tmp_path)


def test_what_is_known_is_found() -> None:
    said = claims("tempering-round-trips")
    assert [holds for holds in said.values() if holds == "no"] == []
    arrays = findings("tempering-round-trips").arrays
    curve = arrays["log_z"]
    # errors along one run go together: each of the twenty is within five standard errors
    assert np.abs(curve[:, 1]).max() < 5.0
    _, _, measured, expected = arrays["rates"].T
    assert (measured < 1.1 * expected).all()
