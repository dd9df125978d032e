"""All rules of a model as arrays for compiled code, and the columns of their table."""

from __future__ import annotations

from typing import NamedTuple

from gibbsite._common.arrays import Floats, Ints, Ints32

# Kinds of rules.
LOGICAL, STOCHASTIC, STOCHASTIC_ARRAY, MATRIX = range(4)
# Kinds of leaves.
SINGLE, AFFINE, TABLE = range(3)
# Columns of the table of rules.
(
    KIND,
    CODE_BEGIN,
    CODE_END,
    INSTANCES,
    VALUE,
    TARGET,
    CODE,
    FIRST,
    SECOND,
    THIRD,
    FOURTH,
    LOWER,
    UPPER,
    BOUNDED,
    WIDTH,
    ENTRIES,
) = range(16)
UNBOUNDED, TRUNCATED, CENSORED = range(3)


class Tables(NamedTuple):
    """All rules as arrays, for compiled code.

    Attributes
    ----------
    code : int32 (instructions, 5)
        Operation, register of the result, and three operands.
    constants : float64
        Numbers of the text.
    leaf : int64 (leaves, 4)
        Kind, first place, distance, and start in ``places``.
    places : int32
        Tables of places.
    slices : int64 (slices, 4)
        Register of the first place, start of relative places in ``places``, entries, leaf of their number or -1.
    steps : int64 (steps, 2)
        Size of a dimension and distance of its elements, for indices that are unknown.
    rule : int64 (rules, 16)
        See the columns above.
    """

    code: Ints32
    constants: Floats
    leaf: Ints
    places: Ints32
    slices: Ints
    steps: Ints
    rule: Ints
