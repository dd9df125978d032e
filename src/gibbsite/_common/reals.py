"""Conversion of users' real numbers to arrays of 64-bit floats."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ModelError


def read_reals(given: Any, what: str, *, dimensions: int | None = None) -> Floats:
    """Return real numbers as an array, by default of any shape, NaN and infinities included.

    Texts, complex numbers, None and lists of unequal length are refused.
    """
    array = _read(given, what)
    if dimensions is not None and (array.ndim != dimensions or not array.size):
        wanted = f"{dimensions} dimension{'s' * (dimensions > 1)}"
        raise ModelError(f"{what} must be a non-empty array of {wanted}, got shape {array.shape}.")
    return array


def _read(given: Any, what: str) -> Floats:
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise _refused(what, "lists of unequal length") from None
    kind = array.dtype.kind
    if kind in "biuf":
        floats: Floats = array.astype(np.float64, copy=False)
        return floats
    if kind == "O":  # fractions, decimals and large integers are real numbers, too
        for item in array.reshape(-1):
            if not isinstance(item, Real):
                raise _refused(what, _describe(item))
        try:
            return array.astype(np.float64)
        except OverflowError:
            raise ModelError(f"{what} must be real numbers below 1.8e308, got a larger one.") from None
    kinds = {"c": "complex numbers", "U": "text", "S": "text"}
    raise _refused(what, kinds.get(kind, f"{array.dtype} values"))


def read_real(given: Any, what: str) -> float:
    """Return one real number, NaN and infinities included."""
    number = read_reals(given, what)
    if number.ndim:
        raise ModelError(f"{what} must be one number, got an array of shape {number.shape}.")
    return float(number)


def _describe(item: object) -> str:
    if isinstance(item, (str, bytes)):
        return "text"
    return "complex numbers" if isinstance(item, complex) else f"{type(item).__name__}"


def _refused(what: str, found: str) -> ModelError:
    return ModelError(f"{what} must be real numbers, got {found}.")
