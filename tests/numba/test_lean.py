"""Helpers are compiled as far as their callers need, and no further."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import numba
from gibbsite._numba import lean, parts
from gibbsite._numba.jit import called, compiled, generic, implement, inlined

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


class Shift(NamedTuple):
    by: float


@inlined
def square(x: float) -> float:
    return x * x


@called
def cube(x: float) -> float:
    return x * square(x)


@generic
def moved(how: Shift, x: float) -> float:
    """Return x, moved."""
    raise NotImplementedError


@implement(moved, Shift)
def _shifted(how: Shift, x: float) -> float:
    return cube(x) + how.by


@compiled
def all_of(values: np.ndarray, how: Shift) -> float:
    total = 0.0
    for value in values:
        total += moved(how, value)
    return total


def test_helpers_work_and_have_no_machine_code() -> None:
    values = np.array([1.0, 2.0, -3.0])
    assert all_of(values, Shift(0.5)) == (values**3 + 0.5).sum()
    for helper in (square, cube):
        (made,) = helper.dispatcher.overloads.values()  # type: ignore[attr-defined]
        name = made.fndesc.llvm_func_name
        assert f"@{name}" in made.library.get_llvm_str()
        if numba.version_info.short in lean._TRIED:
            assert made.library.get_pointer_to_function(name) == 0
    (entry,) = all_of._fresh.overloads.values()  # type: ignore[union-attr]
    assert entry.library.get_pointer_to_function(entry.fndesc.llvm_cpython_wrapper_name) != 0


def test_unknown_versions_of_numba_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "_TRIED", set())
    monkeypatch.setattr(parts, "_missing", {})
    assert not any("pipeline_class" in options for options in lean.lean_options())
    assert "has not been tried" in parts.missing_parts()["helpers"]
