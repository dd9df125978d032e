"""The boundary: arrays and headers from files are checked here, by what their readers say about them.

A reader declares of each array what it wants, :class:`Wanted`: type, shape, range. The description of an
array (type and shape) is checked before its data are unpacked, and its values before the array is handed on.
Headers are JSON texts; :func:`fits` compares them with a pattern.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array

#: What makes an error out of a reason: it names the file and says what to do.
Fail = Callable[[str], Exception]

# Largest ratio of unpacked to packed size, of data and of the text of a header; small files are not limited.
_GROWTH, _FLOOR = 250, 64 << 20
_TEXT_GROWTH, _TEXT_FLOOR = 50, 16 << 20


@dataclass(frozen=True)
class Wanted:
    """The type, shape and range that an array from a file must have.

    ``dtype`` is one type, in the byte order of this machine, or several to choose from. In ``shape`` a word stands for
    any length, which is the same wherever the word is used. ``finite`` refuses infinite numbers, ``missing`` accepts
    NaN, and an ``optional`` array may be left out.
    """

    dtype: Any
    shape: tuple[int | str, ...]
    low: float | None = None
    high: float | None = None
    finite: bool = True
    missing: bool = False
    optional: bool = False

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The types to choose among."""
        return tuple(map(np.dtype, self.dtype if isinstance(self.dtype, tuple) else (self.dtype,)))


def check_description(
    name: str, dtype: np.dtype[Any], shape: tuple[int, ...], wanted: Wanted, sizes: dict[str, int], fail: Fail
) -> None:
    """Check type and shape of an array whose data need not be there yet; note what words stand for."""
    if dtype not in wanted.dtypes:
        said = " or ".join(str(one) for one in wanted.dtypes)
        raise fail(f"its array {name} has numbers of type {dtype}, not {said}")
    named = [sizes.setdefault(n, m) if isinstance(n, str) else n for n, m in zip(wanted.shape, shape, strict=False)]
    if len(shape) != len(wanted.shape) or list(shape) != named:
        said = " x ".join(str(sizes.get(n, "any") if isinstance(n, str) else n) for n in wanted.shape)
        found = " x ".join(map(str, shape))
        raise fail(f"its array {name} has {found or 'no'} entries, not {said or 'one number'}")


def check_values(name: str, found: Array, wanted: Wanted, fail: Fail) -> None:
    """Check the range of an array, and that its numbers are numbers."""
    if found.dtype.kind == "b":
        found, wanted = found.view(np.uint8), Wanted(np.uint8, wanted.shape, 0, 1)
    if found.dtype.kind not in "iuf" or not found.size:
        return
    real = found.dtype.kind == "f"
    with np.errstate(invalid="ignore"):
        low, high = found.min(), found.max()
        if real and math.isnan(low):
            if not wanted.missing:
                raise fail(f"its array {name} has entries that are not numbers")
            low, high = np.fmin.reduce(found, axis=None), np.fmax.reduce(found, axis=None)
    if real and wanted.finite and (math.isinf(low) or math.isinf(high)):
        raise fail(f"its array {name} has infinite entries")
    if wanted.low is not None and low < wanted.low:
        raise fail(f"its array {name} has the entry {low}, and the least possible one is {wanted.low}")
    if wanted.high is not None and high > wanted.high:
        raise fail(f"its array {name} has the entry {high}, and the largest possible one is {wanted.high}")


def admit(arrays: Mapping[str, Array], wanted: Mapping[str, Wanted], fail: Fail) -> dict[str, Array]:
    """Return the arrays that are wanted, checked; others are left behind.

    Examples
    --------
    >>> wanted = {"label": Wanted(np.uint8, ("n",), high=2), "weight": Wanted(np.float64, ("n",))}
    >>> arrays = {"label": np.array([0, 7], np.uint8), "weight": np.zeros(2)}
    >>> admit(arrays, wanted, ValueError)
    Traceback (most recent call last):
    ValueError: its array label has the entry 7, and the largest possible one is 2
    """
    sizes: dict[str, int] = {}
    found = {}
    for name, want in wanted.items():
        if name in arrays:
            check_description(name, arrays[name].dtype, arrays[name].shape, want, sizes, fail)
            check_values(name, arrays[name], want, fail)
            found[name] = arrays[name]
        elif not want.optional:
            raise fail(f"its array {name} is missing")
    return found


def check_growth(unpacked: int, packed: int, fail: Fail) -> None:
    """Refuse data that would take far more memory than the file that holds them."""
    if unpacked > max(_FLOOR, _GROWTH * packed):
        raise fail(f"its {packed:,} bytes would unpack to {unpacked:,}, which no file of this kind does")


def check_text_growth(unpacked: int, packed: int, fail: Fail) -> None:
    """Refuse a header that is far longer than its file; data made of it take more memory still."""
    if unpacked > max(_TEXT_FLOOR, _TEXT_GROWTH * packed):
        raise fail(f"its header would have {unpacked:,} bytes, which no file of this kind has")


def read_json(text: str | bytes, fail: Fail) -> dict[str, Any]:
    """Return the JSON object that a text holds.

    Examples
    --------
    >>> read_json("[" * 100_000, ValueError)
    Traceback (most recent call last):
    ValueError: its header is no JSON text
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise fail("its header is no JSON text") from None
    if not isinstance(found, dict):
        raise fail("its header is no JSON object")
    return found


def check_header(header: Any, pattern: Any, fail: Fail) -> None:
    """Refuse a header that does not fit a pattern; the error names the entry."""
    for name, wanted in pattern.items():
        if name not in header or not fits(header[name], wanted):
            what = "has another form than it should" if name in header else "is missing"
            raise fail(f"the entry {name!r} of its header {what}")


def fits(value: Any, pattern: Any) -> bool:
    """Tell whether data from a JSON text fit a pattern.

    A pattern is a type (``float`` takes whole numbers, too, but no flags, no NaN and nothing infinite),
    ``None``, ``[p]`` for a list of items that fit p, ``{str: p}`` for an object whose values do, an object of
    names and patterns, all of which must be there, a tuple of alternatives, or a function that tells.

    Examples
    --------
    >>> fits({"names": ["a", "b"], "share": 1}, {"names": [str], "share": (float, None)})
    True
    >>> fits([1, True], [int]), fits(float("nan"), float)
    (False, False)
    """
    if pattern is None:
        return value is None
    if pattern is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
    if pattern is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(pattern, type):
        return isinstance(value, pattern)
    if isinstance(pattern, list):
        return isinstance(value, list) and all(fits(one, pattern[0]) for one in value)
    if isinstance(pattern, tuple):
        return any(fits(value, one) for one in pattern)
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return False
        if list(pattern) == [str]:
            return all(fits(one, pattern[str]) for one in value.values())
        return all(name in value and fits(value[name], one) for name, one in pattern.items())
    return bool(pattern(value))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def between(low: int, high: int) -> Callable[[Any], bool]:
    """Return a pattern for whole numbers of a range."""
    return lambda value: fits(value, int) and low <= value <= high


def one_of(*values: Any) -> Callable[[Any], bool]:
    """Return a pattern for some values."""
    return lambda value: any(value == one and type(value) is type(one) for one in values)
