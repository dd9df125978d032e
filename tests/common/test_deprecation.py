"""What is deprecated says until which version it works, and does not outlive it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from typing import Any

import pytest

import gibbsite as gs
from gibbsite._common.deprecation import DEPRECATIONS, Deprecation, deprecated, renamed_argument


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite._common.deprecation.DEPRECATIONS", [])


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def outlived(found: list[Deprecation], version: str) -> list[str]:
    return [one.what for one in found if numbers(version) >= numbers(one.removed)]


def test_a_function_warns_the_code_that_calls_it() -> None:
    @deprecated(since="0.2", removed="0.4", instead="gs.sample")
    def draw(x: int) -> int:
        """Draw."""
        return x

    with pytest.warns(
        DeprecationWarning, match=r"draw\(\) is deprecated since gibbsite 0\.2 and .* in 0\.4; use"
    ) as found:
        assert draw(3) == 3
    assert found[0].filename == __file__
    assert draw.__doc__ == "Draw."


def test_a_class_warns_when_it_is_made() -> None:
    class Old:
        @deprecated(since="0.2", removed="0.4", instead="gs.Gibbs")
        def __init__(self) -> None:
            self.made = True

    with pytest.warns(DeprecationWarning, match=r"^Old\(\) is deprecated"):
        assert Old().made


def test_an_argument_has_an_old_name() -> None:
    @renamed_argument("seed", "rng", since="0.2", removed="0.4")
    def draw(n: int, *, rng: Any = None) -> Any:
        return n, rng

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(1, rng=2) == (1, 2)
    with pytest.warns(DeprecationWarning, match=r"The argument 'seed' of draw\(\) .* removed in 0\.4; use 'rng'\."):
        assert draw(1, seed=2) == (1, 2)  # type: ignore[call-arg]
    with pytest.raises(gs.errors.ArgumentError, match="both 'rng' and its old name 'seed'"):
        draw(1, rng=2, seed=3)  # type: ignore[call-arg]


def test_old_names_are_found_when_their_time_is_over() -> None:
    one = Deprecation("f()", "0.2", "0.10", "g")
    assert outlived([one], "0.9.1") == []
    assert outlived([one], "0.10.0") == ["f()"]


def test_nothing_outlives_the_version_that_removes_it() -> None:
    for module in pkgutil.walk_packages(gs.__path__, "gibbsite."):
        if "__main__" not in module.name:
            try:
                importlib.import_module(module.name)
            except ImportError:
                continue  # of an optional package
    assert outlived(DEPRECATIONS, gs.__version__) == []
