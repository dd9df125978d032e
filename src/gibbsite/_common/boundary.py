"""Checks of arrays and headers from files, against what their readers declare.

A reader declares the type, shape and range of each array as a :class:`Wanted`. Type and shape are checked before the
data are unpacked, and the values before the array is used. Headers are JSON texts; :func:`fits` compares them with a
pattern.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array

#: A function that turns a reason into an error, which names the file and says what to do.
Fail = Callable[[str], Exception]

# Largest ratio of unpacked to packed size, of data and of the text of a header; small files are not limited.
_GROWTH, _FLOOR = 250, 64 << 20
_TEXT_GROWTH, _TEXT_FLOOR = 50, 16 << 20


@dataclass(frozen=True)
class Wanted:
    """The type, shape and range that an array from a file must have.

    ``dtype`` is a type in native byte order, or a tuple of accepted types. In ``shape``, a word stands for any length;
    it must be the same wherever the word is used. ``finite`` refuses infinite numbers, ``missing`` accepts NaN, and an
    ``optional`` array may be absent.
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
        """The accepted types."""
        return tuple(map(np.dtype, self.dtype if isinstance(self.dtype, tuple) else (self.dtype,)))


def check_description(
    name: str, dtype: np.dtype[Any], shape: tuple[int, ...], wanted: Wanted, sizes: dict[str, int], fail: Fail
) -> None:
    """Check type and shape of an array before its data are read; ``sizes`` collects the values of words."""
    if dtype not in wanted.dtypes:
        said = " or ".join(str(one) for one in wanted.dtypes)
        raise fail(f"its array {name} has numbers of type {dtype}, not {said}")
    named = [sizes.setdefault(n, m) if isinstance(n, str) else n for n, m in zip(wanted.shape, shape, strict=False)]
    if len(shape) != len(wanted.shape) or list(shape) != named:
        said = " x ".join(str(sizes.get(n, "any") if isinstance(n, str) else n) for n in wanted.shape)
        found = " x ".join(map(str, shape))
        raise fail(f"its array {name} has {found or 'no'} entries, not {said or 'one number'}")


def check_values(name: str, found: Array, wanted: Wanted, fail: Fail) -> None:
    """Check the range of an array, and that it contains no unexpected NaN or infinite values."""
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
        raise fail(f"its array {name} has the entry {low}, and the smallest allowed one is {wanted.low}")
    if wanted.high is not None and high > wanted.high:
        raise fail(f"its array {name} has the entry {high}, and the largest allowed one is {wanted.high}")


def admit(arrays: Mapping[str, Array], wanted: Mapping[str, Wanted], fail: Fail) -> dict[str, Array]:
    """Return the wanted arrays after checking them; other arrays are ignored.

    Examples
    --------
    >>> wanted = {"label": Wanted(np.uint8, ("n",), high=2), "weight": Wanted(np.float64, ("n",))}
    >>> arrays = {"label": np.array([0, 7], np.uint8), "weight": np.zeros(2)}
    >>> admit(arrays, wanted, ValueError)
    Traceback (most recent call last):
    ValueError: its array label has the entry 7, and the largest allowed one is 2
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
    """Refuse data that would take far more memory than their file."""
    if unpacked > max(_FLOOR, _GROWTH * packed):
        raise fail(f"its {packed:,} bytes would unpack to {unpacked:,}, which is too much for a file of this kind")


def check_text_growth(unpacked: int, packed: int, fail: Fail) -> None:
    """Refuse a header that is far longer than its file, because the parsed data take even more memory."""
    if unpacked > max(_TEXT_FLOOR, _TEXT_GROWTH * packed):
        raise fail(f"its header would have {unpacked:,} bytes, which is too much for a file of this kind")


def read_json(text: str | bytes, fail: Fail) -> dict[str, Any]:
    """Return the JSON object in a text.

    Examples
    --------
    >>> read_json("[" * 100_000, ValueError)
    Traceback (most recent call last):
    ValueError: its header is not valid JSON
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise fail("its header is not valid JSON") from None
    if not isinstance(found, dict):
        raise fail("its header is not a JSON object")
    return found


def check_header(header: Any, pattern: Any, fail: Fail) -> None:
    """Refuse a header that does not fit a pattern; the error names the entry."""
    for name, wanted in pattern.items():
        if name not in header or not fits(header[name], wanted):
            what = "does not have the expected form" if name in header else "is missing"
            raise fail(f"the entry {name!r} of its header {what}")


def fits(value: Any, pattern: Any) -> bool:
    """Tell whether parsed JSON data match a pattern.

    A pattern is a type (``float`` accepts integers, too, but no booleans, NaN or infinities), ``None``, ``[p]`` for a
    list whose items match p, ``{str: p}`` for an object whose values match p, an object of names and patterns, all of
    which are required, a tuple of alternatives, or a function that returns whether the data match.

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
    except OverflowError:  # an integer larger than every float
        return False


def between(low: int, high: int) -> Callable[[Any], bool]:
    """Return a pattern for integers in a range."""
    return lambda value: fits(value, int) and low <= value <= high


def one_of(*values: Any) -> Callable[[Any], bool]:
    """Return a pattern for the given values."""
    return lambda value: any(value == one and type(value) is type(one) for one in values)
