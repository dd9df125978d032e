"""Derivatives of log Z by all entries of all tables, zeros included, from one pass forth and back.

Sites are eliminated one after another: the product of all tables that have the site is summed over its states. Going
back through the same steps, the derivative by each factor of a product is the derivative by the product times the other
factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.errors import TooLargeError
from gibbsite.graphs.elimination.order import find_order, interaction_graph

_MOST_ENTRIES = 2.0**24  # of a product, of which several are kept at a time
_MOST_TOTAL = 2.0**27  # entries of all products
Scope = tuple[int, ...]


class _Step(NamedTuple):
    """The elimination of a site: which tables were multiplied, and the scope of their product."""

    inputs: tuple[int, ...]
    scope: Scope
    scale: float


def differentiate(scopes: Sequence[Scope], tables: Sequence[Floats], cards: Ints) -> tuple[float, list[Floats]]:
    """Return log Z and its derivatives by the entries of tables.

    Parameters
    ----------
    scopes : sequence of tuples of int
        The sites of each table, in the order of its axes.
    tables : sequence of arrays
        Potentials, not logarithms.
    cards : int array
        Number of states of each site.

    Raises
    ------
    TooLargeError
        If a product would have too many entries.

    Examples
    --------
    >>> tables = [np.array([1.0, 3.0]), np.ones((2, 2))]
    >>> log_z, (first, second) = differentiate([(0,), (0, 1)], tables, np.array([2, 2]))
    >>> round(float(np.exp(log_z)), 6), first.round(6).tolist(), second[1].round(6).tolist()
    (8.0, [0.25, 0.25], [0.375, 0.375])
    """
    order = _find_order(scopes, cards)
    values: list[Floats] = [np.asarray(table, float) for table in tables]
    where = [tuple(scope) for scope in scopes]
    alive = set(range(len(values)))
    steps: list[_Step] = []
    log_z = 0.0
    of_site: dict[int, set[int]] = {site: set() for site in range(len(cards))}
    for k, scope in enumerate(where):
        for site in scope:
            of_site[site].add(k)
    for site in order:
        inputs = tuple(sorted(of_site[site]))
        if not inputs:
            log_z += math.log(cards[site])  # a site without a factor
            continue
        scope = tuple(sorted({one for k in inputs for one in where[k]} - {site}))
        whole = (*scope, site)
        product = _expanded(values[inputs[0]], where[inputs[0]], whole, cards)
        for k in inputs[1:]:
            product = product * _expanded(values[k], where[k], whole, cards)
        found = np.broadcast_to(product, [int(cards[one]) for one in whole]).sum(axis=-1)
        scale = float(found.max())
        if not scale > 0.0:
            return -math.inf, [np.full(table.shape, np.nan) for table in tables]
        log_z += math.log(scale)
        for k in inputs:
            alive.discard(k)
            for one in where[k]:
                of_site[one].discard(k)
        steps.append(_Step(inputs, whole, scale))
        new = len(values)
        values.append(found / scale)
        where.append(scope)
        alive.add(new)
        for one in scope:
            of_site[one].add(new)
    slopes: list[Floats | None] = [None] * len(values)
    for k in alive:  # tables without sites
        log_z += math.log(float(values[k]))
        slopes[k] = 1.0 / values[k]
    for number in range(len(steps) - 1, -1, -1):
        step, made = steps[number], len(tables) + number
        upper = slopes[made]
        assert upper is not None
        _pass_back(step, upper / step.scale, values, where, cards, slopes)
        slopes[made] = None
    return log_z, [
        np.zeros(table.shape) if found is None else found for table, found in zip(tables, slopes, strict=False)
    ]


def _pass_back(
    step: _Step, upper: Floats, values: list[Floats], where: list[Scope], cards: Ints, slopes: list[Floats | None]
) -> None:
    """Write the derivatives by the factors of a product, from those by its sum over the last site."""
    wide = [_expanded(values[k], where[k], step.scope, cards) for k in step.inputs]
    after: list[Floats] = [np.ones(())] * len(wide)
    for k in range(len(wide) - 2, -1, -1):
        after[k] = wide[k + 1] * after[k + 1]
    before: Floats = upper[..., None]
    for k, table in enumerate(wide):
        full = np.broadcast_to(before * after[k], [int(cards[one]) for one in step.scope])
        own = where[step.inputs[k]]
        gone = tuple(axis for axis, site in enumerate(step.scope) if site not in own)
        left = [site for site in step.scope if site in own]
        slopes[step.inputs[k]] = full.sum(axis=gone).transpose([left.index(site) for site in own])
        before = before * table


def _expanded(table: Floats, scope: Scope, whole: Scope, cards: Ints) -> Floats:
    """Return a table with the axes of a larger scope, those that it does not have being of length one."""
    order = sorted(range(len(scope)), key=lambda axis: whole.index(scope[axis]))
    shape = [int(cards[site]) if site in scope else 1 for site in whole]
    return table.transpose(order).reshape(shape)


def _find_order(scopes: Sequence[Scope], cards: Ints) -> list[int]:
    """Return an elimination order whose products are small enough."""
    start = np.concatenate([[0], np.cumsum([len(scope) for scope in scopes])]).astype(np.int64)
    member = np.array([site for scope in scopes for site in scope], np.int64)
    many = np.asarray(cards, np.int64)
    order = find_order(*interaction_graph(start, member, many.size), np.maximum(many, 2), seed=0)
    if order.log2_largest > math.log2(_MOST_ENTRIES) or order.total > _MOST_TOTAL or order.log2_largest > 30:
        raise TooLargeError(
            f"Derivatives need products of tables with 2^{order.log2_largest:.1f} entries, more than "
            f"2^{math.log2(_MOST_ENTRIES):.0f}; observe more sites, or ask about a part of the model."
        )
    found: list[int] = order.sites.tolist()
    return found
