"""Detection of random numbers that a user's function takes from elsewhere than the generator of its chain.

A conditional that calls ``np.random.normal`` uses a global state, which the seed of a run does not set and checkpoints
do not store, so the run cannot be repeated. The code of a function and of the functions it calls is searched for names
that refer to such generators; names that exist only at run time are not found.
"""

from __future__ import annotations

import dis
import functools
import random
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

_SOURCES = (np.random.Generator, np.random.RandomState, random.Random)
_BEGIN = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_BORROW")
_GO_ON = ("LOAD_ATTR", "LOAD_METHOD")
_BETWEEN = ("PUSH_NULL", "PRECALL", "KW_NAMES", "CACHE", "EXTENDED_ARG")
_KNOWN = ("gibbsite", "numpy", "numba", "scipy", "jax", "math")  # packages whose functions are not searched


def hidden_random(function: Any) -> str | None:
    """Return the name by which a function draws random numbers from elsewhere, None if none is found."""
    return _search(function, set())


def _search(function: Any, seen: set[int]) -> str | None:
    function = getattr(function, "py_func", function)
    if isinstance(function, functools.partial):
        return _search(function.func, seen)
    if isinstance(function, types.MethodType):
        function = function.__func__
    elif not isinstance(function, types.FunctionType):
        function = getattr(function.__call__, "__func__", None)
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return None
    if seen and (function.__module__ or "").split(".")[0] in _KNOWN:
        return None
    seen.add(id(function))
    outside = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            outside[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return _search_code(function.__code__, outside, seen)


def _search_code(code: types.CodeType, outside: dict[str, Any], seen: set[int]) -> str | None:
    for name, value, calls_without_arguments in _names(code, outside):
        if _draws(value, calls_without_arguments, code):
            return name
        if callable(value) and not isinstance(value, type):
            deeper = _search(value, seen)
            if deeper is not None:
                return deeper
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            deeper = _search_code(constant, outside, seen)
            if deeper is not None:
                return deeper
    return None


def _names(code: types.CodeType, outside: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the dotted names that code refers to, their values, and whether they are called without arguments."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _BETWEEN]
    imported: dict[str, Any] = {}
    for k, step in enumerate(steps):
        if step.opname == "IMPORT_NAME" and step.argval in ("random", "numpy", "numpy.random"):
            module = random if step.argval == "random" else np
            if k + 1 < len(steps) and steps[k + 1].opname.startswith("STORE"):
                imported[str(steps[k + 1].argval)] = module
            elif step.argval != "numpy":
                yield f"import {step.argval}", np.random.normal, False
        if step.opname not in _BEGIN or not isinstance(step.argval, str):
            continue
        local = step.opname.startswith("LOAD_FAST")
        known = imported if local else {**outside, **imported}
        if step.argval not in known:
            continue
        name, value, at = step.argval, known[step.argval], k + 1
        while at < len(steps) and steps[at].opname in _GO_ON:
            if not hasattr(value, str(steps[at].argval)):
                break
            value = getattr(value, str(steps[at].argval))
            name, at = f"{name}.{steps[at].argval}", at + 1
        called = at < len(steps) and steps[at].opname.startswith("CALL")
        yield name, value, called and steps[at].arg == 0


def _draws(value: Any, calls_without_arguments: bool, code: types.CodeType) -> bool:
    """Tell whether calling or using a value draws random numbers that do not belong to a chain."""
    if isinstance(value, _SOURCES) or isinstance(getattr(value, "__self__", None), _SOURCES):
        return True
    if value is np.random.default_rng:
        return calls_without_arguments
    if getattr(value, "__name__", "") == "rvs":  # of SciPy
        named = {name for names in code.co_consts if isinstance(names, tuple) for name in names}
        return "random_state" not in named
    return False
