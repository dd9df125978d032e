"""Factors of a block of normal unknowns that share a precision: sums over them that are the same in all draws.

The residuals of factors whose values and means depend on the members of the block alone are c + D x, where c and D are
constant. If all of them have the precision tau, their share of the precision of the block is tau D'D, and that of the
gradient -tau (D'c + D'D x), so that a draw does not visit the factors one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.network import Network
from gibbsite.applications.bugs.nodes import Compiled
from gibbsite.applications.bugs.tables import AFFINE, KIND, SINGLE, STOCHASTIC

_FEWEST = 4  # factors that a precision has on average; otherwise they are visited one by one


def offsets(network: Network, choices: list[Choice], nodes: Ints, means: Any) -> Floats:
    """Return the residuals of nodes where all members are 0; NaN where others influence them, or they are vectors."""
    updates = {choice.rule: choice.update for choice in choices}
    compiled, rules = network.assembly.compiled, network.rule_of[nodes]
    closed = np.array([each.row[KIND] == STOCHASTIC for each in compiled], np.bool_)
    for choice in choices:
        if choice.update != units.NORMAL_BLOCK:
            for child, forms in choice.dependence.parameters.items():
                closed[child] &= not forms[0].level
    found = np.full(nodes.size, np.nan)
    for rule in np.unique(rules).tolist():
        if closed[rule]:
            here = np.flatnonzero(rules == rule)
            targets = compiled[rule].targets[nodes[here] - network.first[rule], 0]
            unknown = network.unknown[targets]
            value = np.where(unknown, 0.0, network.start[targets])
            if unknown.any() and updates[rule] != units.NORMAL_BLOCK:
                value[unknown] = np.nan
            found[here] = value
    kept = np.flatnonzero(np.isfinite(found))
    if kept.size:
        order = np.argsort(nodes[kept])
        found[kept[order]] -= means(nodes[kept[order]])
    return found


def precision_of(network: Network, rule: int, instances: Ints) -> Ints | None:
    """Return a number for each of some instances of a rule, alike where precisions are; None if all may differ."""
    compiled = network.assembly.compiled[rule]
    register = compiled.parameters[1]
    one = compiled.code[register]
    found: Ints = np.zeros(instances.size, np.int64)
    if _is_common(network, compiled, register):
        return found
    if one.operation != Operation.LOAD:
        return None
    kind, base, step, begin = network.assembly.leaf_rows[one.operands[0]]
    if kind == AFFINE:
        found = base + step * instances
    else:
        found = np.concatenate(network.assembly.index_parts)[begin + instances].astype(np.int64)
    return found if np.unique(found).size * _FEWEST <= found.size else None


def _is_common(network: Network, compiled: Compiled, register: int) -> bool:
    """Whether a register holds the same value for all instances."""
    one = compiled.code[register]
    if one.operation == Operation.LOAD:
        return network.assembly.leaf_rows[one.operands[0]][0] == SINGLE
    if one.operation == Operation.CONSTANT:
        return True
    if Operation.ADD <= one.operation <= Operation.POWER:
        return all(_is_common(network, compiled, k) for k in one.operands[:2])
    return Operation.NEGATE <= one.operation <= Operation.STEP and _is_common(network, compiled, one.operands[0])
