"""Arguments of public functions are checked by their annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.arguments import (
    check_flags,
    checked,
    describe,
    is_flag,
    is_iterable,
    is_number,
    is_path,
    read_integers,
)
from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError


@checked
def repeat(word: str, loud: bool = False, times: float | None = None, *, into: str | Path | None = None) -> str:
    return word.upper() if loud else word


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"word": 3}, "word must be text, got 3."),
        ({"word": "no", "loud": [True]}, "loud must be True or False, got [True]."),
        ({"word": "no", "times": "x"}, "times must be a number or None, got 'x'."),
        ({"word": "no", "times": 10**400}, "times must be a number or None, got a whole number that is too large."),
        ({"word": "no", "into": 3}, "into must be a path or None, got 3."),
    ],
)
def test_wrong_types_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        repeat(**arguments)
    assert str(caught.value) == message


def test_right_types_pass() -> None:
    assert repeat("no", np.bool_(True), np.float32(2), into=Path("a")) == "NO"
    assert repeat("no", False, 1, into="a") == "no"


def test_annotations_in_brackets_are_not_read() -> None:
    @checked
    def count(items: list[int] | dict[str, int | None] | None = None) -> int:
        return len(items or [])

    assert count({"a": None}) == 1


@checked
class Study:
    def add(self, models: Sequence[gs.Model], weight: Floats | None = None, many: int = 1) -> int:
        return len(models) * many


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": 3}, "models must be a list in which every item is a model, got 3."),
        ({"models": [3]}, "models must be a list in which every item is a model, got [3]."),
        ({"models": [], "weight": "x"}, "weight must be an array of numbers or None, got 'x'."),
        ({"models": [], "many": []}, "many must be a whole number, got []."),
    ],
)
def test_methods_of_a_checked_class(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Study().add(**arguments)
    assert str(caught.value) == message
    assert Study().add([gs.ising_grid((2,))], weight=[0.5], many=2) == 2


@pytest.mark.parametrize("wrong", [-1, 0.5, "3", None, [1, [2]], 10**400, np.nan])
def test_arrays_of_whole_numbers(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="sweeps must be whole numbers of at least 0, got"):
        read_integers("sweeps", wrong)
    assert read_integers("sweeps", [[1.0, 2]]).tolist() == [[1, 2]]


def test_wrong_arguments_of_answers() -> None:
    grid = gs.ising_grid((2, 2), coupling=0.2)
    exact, pairs = gs.exact.enumerate(grid), gs.couple(grid, pairs=4, rng=1)
    calls: list[Any] = [
        lambda: pairs.bound("soon"),
        lambda: pairs.mixing_time([]),
        lambda: exact.number([[0, 0, 0, 2]]),
        lambda: exact.number("0000"),
        lambda: exact.draw(10**9, np.random.default_rng(1)),
        lambda: exact.draw(2, 1),
        lambda: exact.rank("all"),
        lambda: exact.joint("0", given=np.zeros(2)),
        lambda: gs.solve_exact(grid).rank(10**400),
        lambda: gs.couple(grid, "gibbs"),
        lambda: gs.formats.write_uai(3, "m.uai"),
        lambda: gs.applications.read_image(3),
        lambda: gs.infer(grid).to_dict(["nowhere"]),
        lambda: gs.Gaussian(np.zeros(2), np.eye(2)).marginal(3),
    ]
    for call in calls:
        with pytest.raises(ArgumentError):
            call()


def test_what_values_are() -> None:
    assert (is_path("a.uai"), is_path("a\0b"), is_path(3), is_path("\ud800")) == (True, False, False, False)
    assert (is_number(0.5), is_number(True), is_number(10**400), is_number(np.int8(1))) == (True, False, False, True)
    assert (is_flag(True), is_flag(1), is_flag(np.bool_(False))) == (True, False, True)
    assert (is_iterable([]), is_iterable(np.array(3)), is_iterable(np.zeros(2)), is_iterable(3)) == (
        True,
        False,
        True,
        False,
    )
    assert describe(np.zeros((2, 3))) == "an array of shape (2, 3)"
    assert describe(0.5) == "0.5"


def test_flags() -> None:
    check_flags(resume=True, force=np.bool_(False))
    with pytest.raises(ArgumentError, match="resume must be True or False, got 'yes'"):
        check_flags(resume="yes")
