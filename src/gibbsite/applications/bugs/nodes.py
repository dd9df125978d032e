"""A compiled rule: its instructions, and the places that they read."""

from __future__ import annotations

from dataclasses import dataclass, field

from gibbsite._common.arrays import Ints
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.rules import Rule


@dataclass
class Instruction:
    """An instruction, and which places it may read."""

    operation: Operation
    result: int
    operands: tuple[int, int, int]
    reads: Ints | None = None


@dataclass
class Compiled:
    """A rule with its instructions.

    Attributes
    ----------
    rule : Rule
        The rule.
    targets : int array (instances, entries)
        Places of the elements that it defines.
    code : list of Instruction
        What computes its parameters.
    row : list of int
        Its row in the table of rules.
    parents : list of int array (instances or 1, any)
        Places that each instance reads.
    parameters : list
        For each parameter, its register, or for arrays its slice.
    slice_reads : dict
        Places that slices may read, by the number of the slice.
    """

    rule: Rule
    targets: Ints
    code: list[Instruction] = field(default_factory=list)
    row: list[int] = field(default_factory=lambda: [0] * 16)
    parents: list[Ints] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    slice_reads: dict[int, Ints] = field(default_factory=dict)
