"""Generic functions: the implementation for the nearest types, in compiled code as in Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from gibbsite._numba.jit import compiled, generic, implement


class Square(NamedTuple):
    side: float


class Tile(Square):
    """A square with its own perimeter, and the area of any square."""


class Colored(NamedTuple):
    color: int


@generic
def area(shape: Any, other: Any) -> float:
    """Area of a shape."""
    raise NotImplementedError


@generic
def perimeter(shape: Any) -> float:
    """Perimeter of a shape."""
    raise NotImplementedError


@implement(area, Square)
def _area_square(shape: Square, other: Any) -> float:
    return shape.side * shape.side


@implement(area, Square, Colored)
def _area_colored(shape: Square, other: Colored) -> float:
    return shape.side * shape.side + other.color


@implement(perimeter, Square)
def _perimeter_square(shape: Square) -> float:
    return 4.0 * shape.side


@implement(perimeter, Tile)
def _perimeter_tile(shape: Tile) -> float:
    return 4.0 * shape.side + 1.0


@compiled
def _both(shape: Any, other: Any) -> tuple[float, float]:
    return area(shape, other), perimeter(shape)


@pytest.mark.parametrize("how", [_both, _both.plain], ids=["compiled", "plain"])
def test_derived_types(how: Any) -> None:
    assert how(Square(3.0), 1) == (9.0, 12.0)
    assert how(Tile(3.0), 1) == (9.0, 13.0)
    assert how(Tile(3.0), Colored(5)) == (14.0, 13.0)


def test_no_implementation() -> None:
    with pytest.raises(TypeError, match="area has no implementation for Colored"):
        area(Colored(1), 1)
