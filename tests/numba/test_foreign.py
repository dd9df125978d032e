"""Functions of users as addresses: what is compiled, what is called back, what a failure becomes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import gibbsite as gs
from gibbsite._numba.foreign import ROOM, adopt, call_at, digest_of, stack_room
from gibbsite._numba.hidden_random import hidden_random
from gibbsite._numba.jit import compiled_loop

WORDS = np.zeros(4, np.uint64)
NONE = np.zeros(0)


@compiled_loop
def call_in_loop(address: int, x: Any, p: Any, words: Any, times: int) -> float:
    total = 0.0
    for _ in range(times):
        total += call_at(address, x, 1, 2, p, 0, p.size, words)
    return total


@compiled_loop
def use_room(n: int) -> float:
    room = stack_room()
    for k in range(n):
        room[k] = k
    total = 0.0
    for k in range(n):
        total += room[k]
    return total


def interpreted(x: NDArray[Any], p: NDArray[Any]) -> float:
    return float(eval("x[0] * x[1] + p[0]"))  # what Numba cannot compile


def compilable(x: NDArray[Any], p: NDArray[Any]) -> Any:
    return x[0] * x[1] + p[0]


@pytest.mark.parametrize("function", [compilable, interpreted])
def test_one_loop_calls_whatever_there_is(function: Any) -> None:
    found = adopt(function, "value", arguments=2)
    assert found.compiled == (function is compilable)
    x, p = np.array([9.0, 2.0, 3.0]), np.array([0.5])
    assert call_in_loop(found.address, x, p, WORDS, 3) == pytest.approx(3 * 6.5)
    assert call_at(found.address, x, 1, 2, p, 0, 1, WORDS) == 6.5
    assert len(call_in_loop.signatures) <= 1


def test_what_cannot_be_compiled_is_refused_in_a_line() -> None:
    with pytest.raises(gs.errors.ModelError, match=r"interpreted cannot be compiled: .*eval") as caught:
        adopt(interpreted, "value", arguments=2, must_compile=True)
    assert "\n" not in str(caught.value)


def test_an_exception_becomes_nan_and_is_kept() -> None:
    def fails(x: NDArray[Any]) -> float:
        raise KeyError(f"no {len(x)}")

    def divides(x: NDArray[Any]) -> Any:
        return math.sqrt(x[0] - 5.0)

    back = adopt(fails, "value")
    assert math.isnan(call_at(back.address, np.ones(2), 0, 2, NONE, 0, 0, WORDS))
    assert back.compiled or isinstance(back.raised[0], KeyError)
    direct = adopt(divides, "value")
    assert direct.compiled
    assert math.isnan(call_at(direct.address, np.ones(2), 0, 2, NONE, 0, 0, WORDS))


def test_the_cause_of_a_failure_is_found_by_calling_again() -> None:
    def fails(x: NDArray[Any]) -> Any:
        if x[0] > 3.0:
            raise ValueError("boom")
        return x[0]

    found = adopt(fails, "value")
    assert found.compiled
    assert math.isnan(call_at(found.address, np.array([4.0]), 0, 1, NONE, 0, 0, WORDS))
    assert repr(found.cause_at(np.array([4.0]), NONE)) == "ValueError('boom')"
    assert found.cause_at(np.array([2.0]), NONE) is None


GLOBAL = np.random.default_rng(1)


def calls_another(x: Any, rng: Any) -> Any:
    return draws_globally(x)


def draws_globally(x: Any) -> Any:
    return GLOBAL.normal()


def imports_inside(x: Any, rng: Any) -> Any:
    import random

    return random.gauss(0.0, 1.0)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x, rng: np.random.normal(), "np.random.normal"),  # noqa: NPY002
        (lambda x, rng: next(np.random.rand() for _ in x), "np.random.rand"),  # noqa: NPY002
        (lambda x, rng: np.random.default_rng().normal(), "np.random.default_rng"),
        (calls_another, "GLOBAL.normal"),
        (imports_inside, "random.gauss"),
        (lambda x, rng: stats.norm.rvs(), "stats.norm.rvs"),
    ],
)
def test_random_numbers_from_elsewhere_are_found(function: Any, name: str) -> None:
    assert hidden_random(function) == name
    with pytest.raises(gs.errors.ModelError, match=f"{name}, which the seed of a run does not reach.*gs.random.normal"):
        adopt(function, "draw")
    with pytest.raises(gs.errors.ModelError, match="must return the same"):
        adopt(function, "value", arguments=2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rng: rng.normal(),
        lambda x, rng: gs.random.normal(rng),
        lambda x, rng: np.random.default_rng(rng).normal(),
        lambda x, rng: stats.norm.rvs(random_state=rng),
        lambda x, rng: float(isinstance(rng, np.random.Generator)),
        np.sum,
        len,
    ],
)
def test_random_numbers_of_the_generator_are_fine(function: Any) -> None:
    assert hidden_random(function) is None


def test_arrays_and_draws() -> None:
    out = np.zeros(2)
    gradient = adopt(lambda x: -2.0 * x, "array")
    assert gradient.compiled
    assert call_at(gradient.address, np.array([1.0, 2.0]), 0, 2, out, 0, 2, WORDS) == 0.0
    assert out.tolist() == [-2.0, -4.0]
    wrong = adopt(lambda x: x[:1], "array")
    assert math.isnan(call_at(wrong.address, np.array([1.0, 2.0]), 0, 2, out, 0, 2, WORDS))
    words = np.array([1, 2, 3, 4], np.uint64)
    draw = adopt(lambda x, rng: rng.normal(x[0], 1.0), "draw")
    first, again = np.zeros(1), np.zeros(1)
    for target in (first, again):
        moving = words.copy()
        assert call_at(draw.address, np.array([1.0]), 0, 1, target, 0, 1, moving) == 0.0
        assert (moving != words).any()
    assert first[0] == again[0] != 0.0


def test_digests_tell_functions_apart() -> None:
    def make(scale: float, table: Any) -> Any:
        return lambda x: scale * x[0] + table[0]

    base = digest_of(make(1.0, np.arange(3)))
    assert base == digest_of(make(1.0, np.arange(3)))
    assert base != digest_of(make(2.0, np.arange(3)))
    assert base != digest_of(make(1.0, np.arange(4)))
    assert digest_of(compilable) != digest_of(interpreted)


def test_docstrings_are_no_part_of_digests() -> None:
    def digest(docstring: str, constant: str = "a") -> str:
        source = f'''
def make():
    """{docstring}"""
    def helper(x):
        """{docstring}"""
        return len("{constant}") + x
    return helper

def compute(x):
    """{docstring}"""
    return make()(x) + len("{constant}")
'''
        names: dict[str, Any] = {}
        exec(source, names)
        return digest_of(names["compute"])

    assert digest("Compute.") == digest("Compute it.")
    assert digest("Compute.") != digest("Compute.", "b")
    assert digest_of(lambda: "a") != digest_of(lambda: "b")


def test_arrays_on_the_stack() -> None:
    assert use_room(ROOM) == ROOM * (ROOM - 1) / 2


def test_digests_tell_constants_apart() -> None:
    assert digest_of(lambda x: (x + 1) * 23) != digest_of(lambda x: (x + 12) * 3)

    def helper(factor: float) -> Any:
        return lambda x: factor * x

    def pair(one: Any, other: Any) -> Any:
        return lambda x: one(x) + other(x)

    found = {digest_of(pair(helper(a), helper(b))) for a in (1.0, 2.0, 3.0) for b in (4.0, 5.0, 6.0)}
    assert len(found) == 9


def test_functions_are_released() -> None:
    """Numba keeps what LLVM made of a function; the function itself, and what it refers to, must go."""
    import gc
    import weakref

    def make(number: int) -> Any:
        data = np.full(1000, float(number))
        return (lambda x: x[0] * data[0]), data

    gone = []
    for number in range(3):
        function, data = make(number)
        adopt(function, "value")
        gone += [weakref.ref(function), weakref.ref(data)]
        del function, data
    gc.collect()
    assert [each() for each in gone] == [None] * 6
