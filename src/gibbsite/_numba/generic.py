"""Functions with one implementation per type of their leading arguments, in compiled code and in Python.

The types are the named tuples that describe a kernel, a graph or a schedule. The implementation is chosen at compile
time: a loop is written once and specialised for each combination of types, at no cost at run time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numba.extending

from gibbsite._numba.options import DISABLED, HELPER, LEAN

P = ParamSpec("P")
R = TypeVar("R")


class Dispatch(Generic[P, R]):
    """The registry behind :func:`generic`, of implementations by the types of the leading arguments."""

    def __init__(self, stub: Callable[P, R]) -> None:
        self.name = getattr(stub, "__name__", "function")
        self.table: dict[tuple[type | None, ...], Callable[..., Any]] = {}

    def find(self, types: tuple[type | None, ...]) -> Callable[..., Any] | None:
        """Return the implementation with the longest match of these argument types.

        An implementation for a named tuple also serves types derived from it, unless they have their own.
        """
        for length in range(min(len(types), 3), -1, -1):
            found = self.table.get(types[:length])
            if found is not None:
                return found
            for kin in itertools.product(*map(_kin, types[:length])):
                if kin in self.table:
                    return self.table[kin]
        return None


@functools.cache
def _kin(kind: type | None) -> tuple[type | None, ...]:
    """Return a type and the named tuples it is derived from, nearest first."""
    return kind, *(base for base in getattr(kind, "__mro__", ())[1:] if hasattr(base, "_fields"))


def generic(stub: Callable[P, R]) -> Callable[P, R]:
    """Make a function whose implementation is chosen by the types of its leading arguments.

    The decorated function is a stub: name, signature and docstring. Implementations are added with :func:`implement`.
    This works in compiled code, where the choice is made at compile time, and in Python.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Circle(NamedTuple):
    ...     radius: float
    >>> @generic
    ... def area(shape: object) -> float:
    ...     '''Area of a shape.'''
    >>> @implement(area, Circle)
    ... def _area_circle(shape: Circle) -> float:
    ...     return 3.0 * shape.radius**2
    >>> area(Circle(2.0))
    12.0
    """
    registry = Dispatch(stub)

    @functools.wraps(stub)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = registry.find(tuple(type(arg) for arg in args[:3]))
        if found is None:
            raise TypeError(f"{registry.name} has no implementation for {type(args[0]).__name__}")
        return found(*args, **kwargs)

    call.__dict__["registry"] = registry
    if not DISABLED:

        def choose(*args: Any) -> Any:
            return registry.find(tuple(getattr(arg, "instance_class", None) for arg in args[:3]))

        options: Any = {"forceinline": True, **LEAN, **HELPER}
        numba.extending.overload(call, strict=False, jit_options=options)(choose)
    return cast(Callable[P, R], call)


def implement(function: Callable[..., Any], *types: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register an implementation of a :func:`generic` function for the given leading types.

    See :func:`generic` for an example.
    """

    def register(implementation: Callable[P, R]) -> Callable[P, R]:
        registry: Dispatch[..., Any] = function.__dict__["registry"]
        registry.table[types] = implementation
        return implementation

    return register


def intrinsic_for(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give compiled code its own version of a Python function, chosen by the argument types."""
    options: Any = {"forceinline": True, **LEAN, **HELPER}
    register: Any = numba.extending.overload(function, jit_options=options)
    return cast("Callable[[Callable[..., Any]], Callable[..., Any]]", register)
