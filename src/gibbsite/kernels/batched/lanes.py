"""One site of 32 chains in one go: thresholds chosen by the neighbours, compared with random bytes.

Processors that can (AVX2) do it at once, by vector instructions (:mod:`gibbsite._numba.vector`); others
go through the chains one by one, with the same result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bytes, Floats32, Ints8, Words32
from gibbsite._numba.intrinsic import WIDTH
from gibbsite._numba.jit import DISABLED, Integer, inlined, intrinsic_for
from gibbsite.kernels.batched.colored import SCALE

_U, _U8, _U32 = np.uintp, np.uint8, np.uint32
_TO_UNIT = np.float32(1.0 / SCALE)


class Near(NamedTuple):
    """Where the states of a site's four neighbours begin; a missing one's bit is not in the mask."""

    first: Integer
    second: Integer
    third: Integer
    fourth: Integer
    mask: Integer


def draw_lanes(
    x: Ints8, here: Any, near: Any, upper: Bytes, table: Any, words: Words32, at: Any, shift: Any, place: Bytes, k: Any
) -> Any:
    """Update a site of 32 chains, whose states begin at ``x[here]``; return where nothing is decided yet.

    The neighbours' bits select one of sixteen bytes from ``upper[table]`` on; which one is written to
    ``place`` from k on. A chain takes state 1 if the byte of its word (from ``words[at]`` on) that begins
    at bit ``shift`` is smaller. Where both are equal, its bit of the result is set.
    """
    ties = _U32(0)
    for r in range(_U(WIDTH)):
        low = _U8(x[near.first + r]) | _U8(_U8(x[near.second + r]) << _U8(1))
        high = _U8(_U8(x[near.third + r]) << _U8(2)) | _U8(_U8(x[near.fourth + r]) << _U8(3))
        code = _U8((low | high) & _U8(near.mask))
        byte, limit = _U8((words[at + r] >> _U32(shift)) & _U32(255)), upper[table + code]
        place[k + r] = code
        x[here + r] = byte < limit
        ties |= _U32(byte == limit) << _U32(r)
    return ties


def add_lanes(sums: Floats32, here: Any, threshold: Words32, table: Any, place: Bytes, k: Any) -> None:
    """Add to 32 sums the probabilities that ``place`` selects from sixteen thresholds."""
    for r in range(_U(WIDTH)):
        sums[here + r] += np.float32(threshold[table + place[k + r]]) * _TO_UNIT


if not DISABLED:
    from gibbsite._numba.vector import add_vector, draw_vector, has_shuffles

    _settle_one_by_one, _add_one_by_one = inlined(draw_lanes), inlined(add_lanes)

    @intrinsic_for(draw_lanes)
    def _choose_settle(x, here, near, upper, table, words, at, shift, place, k):  # type: ignore[no-untyped-def]
        if has_shuffles():
            return lambda x, here, near, upper, table, words, at, shift, place, k: draw_vector(
                x, _U(here), near, upper, _U(table), words, _U(at), _U32(shift), place, _U(k)
            )
        return lambda x, here, near, upper, table, words, at, shift, place, k: _settle_one_by_one(
            x, here, near, upper, table, words, at, shift, place, k
        )

    @intrinsic_for(add_lanes)
    def _choose_add(sums, here, threshold, table, place, k):  # type: ignore[no-untyped-def]
        if has_shuffles():
            return lambda sums, here, threshold, table, place, k: add_vector(
                sums, _U(here), threshold, _U(table), place, _U(k)
            )
        return lambda sums, here, threshold, table, place, k: _add_one_by_one(sums, here, threshold, table, place, k)
