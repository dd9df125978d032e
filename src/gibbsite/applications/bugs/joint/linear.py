"""Find the blocks of unknowns that are normal, or have a linear predictor, and the coefficients of their factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.blocks import Block, Shift, Terms, build_block, components, find_shift
from gibbsite.applications.bugs.choices import Choice
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.joint.sums import offsets
from gibbsite.applications.bugs.network import Network, Reach, distinct
from gibbsite.applications.bugs.tables import CODE
from gibbsite.errors import ModelError

_FEW = 10  # unknowns of a relation that are moved together with those of others
_MEASURED = 0.3  # share of the coefficients of counts that have to be known
_MOST_JOINT = 40  # unknowns with linear predictors that are moved together in any case


def find_blocks(network: Network, choices: list[Choice], measure: Any, means: Any) -> tuple[list[Block], Ints]:
    """Return the blocks of normal unknowns, and the places that are drawn one by one."""
    chosen = [choice for choice in choices if choice.update == units.NORMAL_BLOCK]
    parts = _parts(network, chosen)
    if not parts:
        return [], np.zeros(0, np.int64)
    members = np.sort(np.concatenate(parts))
    terms = _terms(network, members, measure)
    if not np.isfinite(terms.coefficient).all():
        raise ModelError("A mean of a normal variable is not a number at simple values of the unknowns; check it.")
    blocks: list[Block] = []
    singles: list[Ints] = []
    known = distinct(terms.node)
    residual = offsets(network, choices, known, lambda nodes: means(nodes, members))
    for those in components(terms, members):
        mine = terms.some(np.isin(terms.member, those))
        block = build_block(network, mine, those, known, residual)
        if block is not None:
            blocks.append(block)
        else:  # the unknowns of one relation at a time
            more, left = _smaller_blocks(network, mine, [those[np.isin(those, part)] for part in parts])
            blocks += more
            singles += left
    return blocks, np.concatenate([*singles, np.zeros(0, np.int64)]).astype(np.int64)


def find_predictor_blocks(network: Network, choices: list[Choice], measure: Any) -> tuple[list[Block], list[Shift]]:
    """Return the blocks of unknowns with linear predictors, and moves that leave predictors as they are."""
    chosen = [choice for choice in choices if choice.update == units.PREDICTOR_BLOCK]
    parts = _parts(network, chosen)
    if not parts:
        return [], []
    members = np.sort(np.concatenate(parts))
    terms = _terms(network, members, measure)
    measured = np.isfinite(terms.coefficient)
    shifts = []
    if measured.all():
        found = (find_shift(network, terms, part) for part in parts if 1 < part.size < members.size)
        shifts = [shift for shift in found if shift is not None]
    counts = _codes(network)[network.rule_of[terms.node]] != dist.NORMAL
    if not (measured | counts).all() or measured[counts].mean() < _MEASURED:
        return [], []
    # where a predictor is minus infinity, nothing is known; the coefficients matter for proposals only
    terms.coefficient[~measured] = 0.0
    small = [part for part in parts if part.size <= _FEW]
    if members.size > _MOST_JOINT and small:
        parts = [np.sort(np.concatenate(small)), *(part for part in parts if part.size > _FEW)]
    elif members.size <= _MOST_JOINT:
        parts = [members]
    return _smaller_blocks(network, terms, parts)[0], shifts


def _smaller_blocks(network: Network, terms: Terms, parts: list[Ints]) -> tuple[list[Block], list[Ints]]:
    """Return a block for each set of members of a part that factors join, and members of too large blocks."""
    blocks: list[Block] = []
    singles: list[Ints] = []
    for part in parts:
        if not part.size:
            continue
        inner = terms.some(np.isin(terms.member, part))
        groups = components(inner, np.sort(part))
        label = np.zeros(int(part.max()) + 1, np.int64)
        for k, few in enumerate(groups):
            label[few] = k
        order = np.argsort(label[inner.member], kind="stable")
        cuts = np.searchsorted(label[inner.member][order], np.arange(len(groups) + 1))
        for k, few in enumerate(groups):
            block = build_block(network, inner.some(order[cuts[k] : cuts[k + 1]]), few)
            if block is not None:
                blocks.append(block)
            else:
                singles.append(few)
    return blocks, singles


def _parts(network: Network, chosen: list[Choice]) -> list[Ints]:
    """Return the unknowns of each relation."""
    compiled = network.assembly.compiled
    free = network.unknown & ~network.forward
    return [compiled[c.rule].targets[free[compiled[c.rule].targets]] for c in chosen]


def _terms(network: Network, members: Ints, measure: Any) -> Terms:
    """Return the coefficients of all residuals in some normal unknowns."""
    reach: Reach = network.reach(members, np.arange(members.size), members.size)
    stochastic = network.stochastic[network.rule_of[reach.node]]
    unit, node = reach.unit[stochastic], reach.node[stochastic]
    widths = np.array([each.targets.shape[1] for each in network.assembly.compiled], np.int64)
    width = widths[network.rule_of[node]]
    coefficients = measure(reach, members, int(width.sum()))
    component = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width)
    found = Terms(np.repeat(node, width), component, members[np.repeat(unit, width)], coefficients)
    normal = np.isin(_codes(network)[network.rule_of[found.node]], (dist.NORMAL, dist.MULTIVARIATE_NORMAL))
    found = found.some(~normal | (found.coefficient != 0.0))
    own = network.owner[members]
    mine = network.first[own] + network.instance[members]
    entry = np.zeros(members.size, np.int64)
    for rule in distinct(own).tolist():
        targets = network.assembly.compiled[rule].targets
        here = np.flatnonzero(own == rule)
        rows = targets[network.instance[members[here]]]
        entry[here] = np.argmax(rows == members[here, None], axis=1)
    return Terms(
        np.concatenate([found.node, mine]),
        np.concatenate([found.component, entry]),
        np.concatenate([found.member, members]),
        np.concatenate([found.coefficient, np.ones(members.size)]),
    )


def _codes(network: Network) -> Ints:
    return np.array([each.row[CODE] for each in network.assembly.compiled], np.int64)
