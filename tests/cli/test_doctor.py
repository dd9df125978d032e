"""``gibbsite doctor`` says what a bug report needs."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import gibbsite as gs
import numba
from gibbsite._numba import parts
from gibbsite.cli import group


def test_versions_cache_extras_and_parts_are_shown() -> None:
    done = CliRunner().invoke(group, ["doctor"])
    assert done.exit_code == 0
    assert f"gibbsite {gs.__version__}" in done.output
    assert f"numba {numba.__version__}" in done.output
    assert "dataframe: installed" in done.output
    for part in parts.PARTS:
        assert f"  {part}: " in done.output


def test_a_missing_part_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts._missing, "vectors", "it is being tried out")
    assert "vectors: not used (it is being tried out)" in CliRunner().invoke(group, ["doctor"]).output


def test_settings_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert "NUMBA_CPU_NAME=generic" in CliRunner().invoke(group, ["doctor"]).output
