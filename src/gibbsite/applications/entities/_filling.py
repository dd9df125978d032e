"""Compiled: the numbers of features of all tokens, one attribute at one place after the other."""

from __future__ import annotations

from typing import NamedTuple

from gibbsite._common.arrays import Ints, Ints32
from gibbsite._numba.jit import Integer, compiled_loop, inlined


class Column(NamedTuple):
    """An attribute at a place."""

    key: Ints32  # (tokens,): by what the values of a token are found: its word, or itself
    first: Ints  # (keys + 1,): where the values of a key begin
    value: Ints32  # numbers of values; 0 and 1 stand for places before and behind a sentence
    number: Ints32  # (values,): the feature of each value; -1 if there is none
    offset: int  # how far from the token it is looked at


@inlined
def _place(t: Integer, low: Integer, high: Integer, offset: Integer) -> Integer:
    """Return the token to look at, or -1 and -2 where the sentence has not begun or has ended."""
    at = t + offset
    return -1 if at < low else -2 if at >= high else at


@compiled_loop
def count(column: Column, begin: Ints, many: Ints) -> None:
    """Add how many features a column gives every token."""
    for s in range(begin.size - 1):
        for t in range(begin[s], begin[s + 1]):
            at = _place(t, begin[s], begin[s + 1], column.offset)
            if at < 0:
                many[t] += column.number[-1 - at] >= 0
            else:
                key = column.key[at]
                for k in range(column.first[key], column.first[key + 1]):
                    many[t] += column.number[column.value[k]] >= 0


@compiled_loop
def fill(column: Column, begin: Ints, cursor: Ints, feature: Ints32) -> None:
    """Write the features of a column; the cursor of a token says where its next feature goes."""
    for s in range(begin.size - 1):
        for t in range(begin[s], begin[s + 1]):
            at = _place(t, begin[s], begin[s + 1], column.offset)
            if at < 0:
                here = column.number[-1 - at]
                if here >= 0:
                    feature[cursor[t]] = here
                    cursor[t] += 1
            else:
                key = column.key[at]
                for k in range(column.first[key], column.first[key + 1]):
                    here = column.number[column.value[k]]
                    if here >= 0:
                        feature[cursor[t]] = here
                        cursor[t] += 1
