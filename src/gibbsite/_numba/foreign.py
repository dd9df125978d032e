"""Users' functions for compiled loops, called by address whether they are compiled or not.

A loop that calls a user's function by its address is compiled once for all such functions and kept on disk. A call
costs a few nanoseconds. All these functions have the same signature,

    double function(double *first, intp n_first, double *second, intp n_second, uint64 *words)

and the *shape* of a function describes what the user writes:

* ``"value"``: ``f(first, second) -> number``, or ``f(first) -> number`` (a factor, a density);
* ``"array"``: ``f(first) -> array`` of the size of ``second`` (a gradient);
* ``"adding"``: ``f(first, second) -> array`` of the size of ``first``, which is added to the numbers that follow
  ``first`` in memory (the part of a gradient that comes from a row of data);
* ``"draw"``: ``f(first, rng) -> number or array`` of the size of ``second`` (a conditional);
* ``"scalar"``: ``f(first) -> number``, which becomes the first number of ``second`` (an observable);
* ``"update"``: ``f(first, second)``, which changes ``second`` (a recorder).

Functions that Numba can compile are called directly. Others, if they are allowed, are called back in Python, which
takes a few microseconds and the interpreter's lock. In both cases an exception becomes NaN, which the caller checks
for. The exception of a callback is kept; compiled functions are called once more in Python to find it
(:meth:`Foreign.cause_at`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.core import types as numba_types

import numba
from gibbsite._common.arrays import Floats, Words64
from gibbsite._numba.callbacks import call_in_python, calling_back, doubles
from gibbsite._numba.hidden_random import hidden_random
from gibbsite._numba.jit import compiled
from gibbsite._numba.options import HELPER, ON_STACK
from gibbsite.errors import ModelError

_numba: Any = numba
nb: Any = numba_types
_SIGNATURE = nb.float64(nb.CPointer(nb.float64), nb.intp, nb.CPointer(nb.float64), nb.intp, nb.CPointer(nb.uint64))
# pointers as integers, because creating pointer objects would take longer than most functions
_C_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_double, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p
)
SHAPES = ("value", "array", "adding", "draw", "scalar", "update")


@dataclass
class Foreign:
    """A user's function as compiled loops call it."""

    name: str  # for messages
    address: int  # of its machine code; valid as long as this object exists
    digest: str  # hash of its content
    compiled: bool  # whether Numba has compiled it; otherwise it is called back in Python
    reason: str = ""  # why it was not compiled, in one line
    raised: list[BaseException] = field(default_factory=list)  # the first exception of a function that is called back
    alive: Any = field(repr=False, default=None)
    function: Any = field(repr=False, default=None)  # what the user gave
    key: str = "value1"  # its shape, followed by the number of arguments if it is a value

    def cause_at(self, first: Floats, second: Floats, words: Words64 | None = None) -> BaseException | None:
        """Return the exception that a call with these arrays raised, None if there was none."""
        kept = take_raised([self])
        if kept is not None or not self.compiled:
            return kept
        inner = getattr(self.function, "py_func", self.function)
        generator = np.zeros(4, np.uint64) if words is None else words.copy()
        try:
            with np.errstate(all="ignore"):
                call_in_python(inner, self.key, first.copy(), second.copy(), generator)
        except Exception as reason:
            return reason
        return None


def adopt(function: Any, shape: str, *, arguments: int = 1, must_compile: bool = False) -> Foreign:
    """Return the address of a user's function, compiled if possible.

    Parameters
    ----------
    function : callable
        A Python function, or one decorated with ``numba.njit``.
    shape : {"value", "array", "adding", "draw", "scalar", "update"}
        What it takes and returns; see the docstring of the module.
    arguments : int
        For a value: the number of its arguments, one array or two.
    must_compile : bool
        Refuse a function that Numba cannot compile, rather than call it back in Python.

    Raises
    ------
    ModelError
        If it is not a function, takes random numbers from elsewhere than its argument, or must be compiled and cannot
        be. The message has the reason in one line.

    Examples
    --------
    >>> square = adopt(lambda x: x[0] ** 2, "value")
    >>> none, words = np.zeros(0), np.zeros(4, np.uint64)
    >>> square.compiled, call_at(square.address, np.array([3.0]), 0, 1, none, 0, 0, words)
    (True, 9.0)
    """
    if not callable(function):
        raise ModelError(f"A function is needed, got {function!r}.")
    name = getattr(function, "__name__", type(function).__name__)
    digest = digest_of(function)
    key = shape if shape != "value" else f"value{arguments}"
    if (digest, key) in _ADOPTED:
        return _ADOPTED[digest, key]
    _refuse_hidden_random(function, name, shape)
    try:
        thunk = _compile(function, key)
        made = Foreign(name, thunk.address, digest, True, alive=thunk, function=function, key=key)
        if function.__module__.partition(".")[0] == "gibbsite":
            _ADOPTED[digest, key] = made
        return made
    except Exception as reason:  # Numba raises many types of exceptions
        said = _first_reason(reason)
    if must_compile and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise ModelError(f"the function {name} cannot be compiled: {said}")
    found = Foreign(name, 0, digest, False, said, function=function, key=key)
    found.alive = _C_SIGNATURE(calling_back(function, key, found.raised))
    found.address = ctypes.cast(found.alive, ctypes.c_void_p).value or 0
    return found


#: Compiled functions of the library by their digests, so that they are not compiled again for every run.
_ADOPTED: dict[tuple[str, str], Foreign] = {}


def adopt_step(function: Any) -> Foreign:
    """Return the address of a function of the library that takes both arrays and the words of the generator.

    Examples
    --------
    >>> def total(first, second, words):
    ...     second[0] = first.sum() + words[0]
    ...     return 0.0
    >>> out = np.zeros(1)
    >>> call_at(adopt_step(total).address, np.ones(3), 0, 3, out, 0, 1, np.ones(4, np.uint64))
    0.0
    >>> out.tolist()
    [4.0]
    """
    name = function.__name__
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

        def back(a: int, na: int, b: int, nb: int, words: int) -> float:
            return float(function(doubles(a, na), doubles(b, nb), doubles(words, 4).view(np.uint64)))

        alive: Any = _C_SIGNATURE(back)
        return Foreign(name, ctypes.cast(alive, ctypes.c_void_p).value or 0, "", False, alive=alive)
    inner, carray = _numba.njit(error_model="numpy")(function), _numba.carray

    def body(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        return np.float64(inner(carray(a, (na,)), carray(b, (nb,)), carray(rng, (4,))))

    thunk = _numba.cfunc(_SIGNATURE, error_model="numpy")(body)
    return Foreign(name, thunk.address, "", True, alive=thunk)


def _refuse_hidden_random(function: Any, name: str, shape: str) -> None:
    source = hidden_random(function)
    if source is None:
        return
    if shape == "draw":
        raise ModelError(
            f"the function {name} takes random numbers from {source}, which the seed of a run does not reach"
            "; take them from its argument rng: rng.normal(...) in Python, gs.random.normal(rng, ...) in "
            "functions that Numba compiles."
        )
    raise ModelError(
        f"the function {name} takes random numbers from {source}; it must return the same value whenever it is "
        "called with the same values."
    )


def take_raised(functions: Iterable[Foreign]) -> BaseException | None:
    """Return the first exception of the functions that were called back, and clear it."""
    for function in functions:
        if function.raised:
            first = function.raised[0]
            function.raised.clear()
            return first
    return None


def _compile(function: Any, key: str) -> Any:
    """Return a C function around a function of the user; exceptions of Numba pass through."""
    inner = function
    if not hasattr(function, "py_func"):  # an index beyond the end is an error, as in Python
        # merged into its caller, because machine code of its own would stay in memory for ever
        inner = _numba.njit(error_model="numpy", boundscheck=True, **HELPER)(function)
    carray, nan = _numba.carray, np.nan

    def value1(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            return np.float64(inner(carray(a, (na,))))
        except Exception:
            return nan

    def value2(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            return np.float64(inner(carray(a, (na,)), carray(b, (nb,))))
        except Exception:
            return nan

    def array(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            found, out = inner(carray(a, (na,))), carray(b, (nb,))
            if found.size != nb:
                return nan
            for k in range(nb):
                out[k] = found[k]
            return 0.0
        except Exception:
            return nan

    def adding(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            found, out = inner(carray(a, (na,)), carray(b, (nb,))), carray(a, (2 * na,))
            if found.size != na:
                return nan
            for k in range(na):
                out[na + k] += found[k]
            return 0.0
        except Exception:
            return nan

    def draw(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            carray(b, (nb,))[:] = inner(carray(a, (na,)), carray(rng, (4,)))
            return 0.0
        except Exception:
            return nan

    def scalar(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            carray(b, (nb,))[0] = np.float64(inner(carray(a, (na,))))
            return 0.0
        except Exception:
            return nan

    def update(a: Any, na: Any, b: Any, nb: Any, rng: Any) -> Any:
        try:
            inner(carray(a, (na,)), carray(b, (nb,)))
            return 0.0
        except Exception:
            return nan

    bodies = (value1, value2, array, adding, draw, scalar, update)
    body = {each.__name__: each for each in bodies}[key]
    return _numba.cfunc(_SIGNATURE, error_model="numpy")(body)


def call_at(
    address: Any,
    first: Floats,
    first_at: Any,
    first_count: Any,
    second: Floats,
    second_at: Any,
    second_count: Any,
    words: Words64,
) -> float:
    """Call the function at an address with parts of two arrays: ``count`` numbers from index ``at``."""
    function = _C_SIGNATURE(int(address))
    starts = [array.ctypes.data + 8 * int(at) for array, at in ((first, first_at), (second, second_at))]
    return float(function(starts[0], int(first_count), starts[1], int(second_count), words.ctypes.data))


ROOM = 1024


def stack_room() -> Floats:
    """Return an uninitialised array of ``ROOM`` numbers on the stack of the calling compiled function."""
    return np.empty(ROOM)


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    import numba.extending
    from llvmlite import ir
    from numba.core import cgutils as numba_tools
    from numba.core.typing import templates as typing_templates

    from gibbsite._numba.intrinsic import intrinsic
    from gibbsite._numba.jit import intrinsic_for

    cgutils: Any = numba_tools
    numba_templates: Any = typing_templates

    @intrinsic
    def _call(typing: Any, address: Any, first: Any, i: Any, m: Any, second: Any, j: Any, n: Any, words: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def data(k: int) -> Any:
                return context.make_array(signature.args[k])(context, builder, arguments[k]).data

            double = ir.DoubleType()
            size = ir.IntType(64)
            pointer = double.as_pointer()
            kind = ir.FunctionType(double, [pointer, size, pointer, size, size.as_pointer()])
            function = builder.inttoptr(arguments[0], kind.as_pointer())
            at = [builder.gep(data(1), [arguments[2]]), builder.gep(data(4), [arguments[5]])]
            return builder.call(function, [at[0], arguments[3], at[1], arguments[6], data(7)])

        whole = nb.int64
        return nb.float64(whole, first, whole, whole, second, whole, whole, words), build

    @intrinsic
    def _stack_room(typing: Any) -> Any:
        kind = nb.Array(nb.float64, 1, "C")

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            size = ir.IntType(64)
            data = cgutils.alloca_once(builder, ir.DoubleType(), size(ROOM))
            array = context.make_array(kind)(context, builder)
            context.populate_array(
                array, data=data, shape=[size(ROOM)], strides=[size(8)], itemsize=size(8), meminfo=None
            )
            return array._getvalue()

        return kind(), build

    if ON_STACK:  # ``intrinsic_for`` does not allow functions that return new arrays
        template = numba_templates.make_intrinsic_template(stack_room, _stack_room._defn, "stack_room")
        numba_templates.infer(template)
        numba_templates.infer_global(stack_room, nb.Function(template))
    else:
        allocate: Any = numba.extending.overload(stack_room)
        allocate(lambda: lambda: np.empty(ROOM))
    intrinsic_for(call_at)(
        lambda address, first, first_at, first_count, second, second_at, second_count, words: (
            lambda address, first, first_at, first_count, second, second_at, second_count, words: _call(
                address, first, first_at, first_count, second, second_at, second_count, words
            )
        )
    )


@compiled
def _fill_values(address: int, at: Floats, out: Floats) -> None:
    words = np.zeros(4, np.uint64)
    for k in range(at.size):
        out[k] = call_at(address, at, k, 1, at, 0, 0, words)


def values_along(function: Any, at: Floats) -> Floats:
    """Return the values of a function of one number at many points."""
    code = adopt(function, "value", must_compile=True)
    out = np.empty(at.size)
    _fill_values(code.address, np.ascontiguousarray(at, float).ravel(), out)
    return out.reshape(at.shape)


def digest_of(function: Any) -> str:
    """Return a hash of what a function does: its code, its constants, and what it refers to; no docstrings."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, function, {})
    return digest.hexdigest()


def _feed(digest: Any, value: Any, seen: dict[int, Any]) -> None:
    """Add a value to a digest; ``seen`` keeps the added values alive, so that their ids are not reused."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    value = getattr(value, "py_func", value)
    if isinstance(value, functools.partial):
        for part in (value.func, value.args, value.keywords):
            _feed(digest, part, seen)
    elif isinstance(value, types.FunctionType):
        code = value.__code__
        _feed(digest, code, seen)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used = [value.__globals__.get(name) for name in code.co_names]
        _feed(digest, (code.co_names, cells, used, value.__defaults__), seen)
    elif isinstance(value, types.CodeType):
        digest.update(value.co_code)
        _feed(digest, _constants(value), seen)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        digest.update(f"({len(value)}".encode())
        for item in value:
            _feed(digest, item, seen)
    elif value is None or isinstance(value, str | bytes | int | float | complex | np.generic):
        digest.update(f"{value!r};".encode())  # with a separator, so that 1 and 23 differ from 12 and 3
    else:
        digest.update(f"{type(value).__module__}.{getattr(value, '__name__', type(value).__name__)}".encode())


def _constants(code: types.CodeType) -> tuple[Any, ...]:
    """Return the constants of a piece of code, without the docstring of a function, which comes first."""
    documented = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    if sys.version_info >= (3, 13):
        documented = code.co_flags & inspect.CO_HAS_DOCSTRING
    found = code.co_consts
    return (None, *found[1:]) if documented and found and isinstance(found[0], str) else found


def _first_reason(reason: Exception) -> str:
    """Return the line of a message of Numba that states the reason."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    skip = ("Failed in", "During:", "File ", "Traceback", "- Resolution", "- of which")
    telling = [line for line in lines if not line.startswith(skip)] or [type(reason).__name__]
    return telling[0]
