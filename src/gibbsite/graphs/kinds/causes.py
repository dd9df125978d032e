"""Bayesian networks with noisy nodes of many parents: conditionals in a time linear in the number of parents."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Codes, Floats, Ints, Ints32
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite.graphs.kinds.base import groups_of
from gibbsite.graphs.kinds.table import TableGraph, build_table
from gibbsite.graphs.local import ONE, from_logs, log_potential, log_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import row_starts
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.causes import CauseFactors


class CauseGraph(NamedTuple):
    """Tables, and noisy nodes without a table.

    Row k of site i, ``start[i] <= k < start[i + 1]``, gives one of its noisy nodes and its place among the members,
    which are the parents and, unless it is observed, the node itself. Node f has the members ``member_start[f]`` to
    ``member_start[f + 1]``, of which ``child[f]`` is the node (-1: observed, and ``seen[f]`` is its strength). The
    numbers of member m begin at ``row[m]`` in ``number``, those of state a after a * ``width[f]``: logarithms of
    the probability that its effect is at most as strong as each level, or summands of the log-odds (``logistic``).
    The leak is at ``leak[f]``. Log-probabilities are multiplied by ``power[f]``.
    """

    tables: TableGraph
    card: Ints32
    offset: Ints
    unary: Floats
    log_unary: Floats
    start: Ints
    node: Ints
    place: Ints
    member_start: Ints
    member: Ints
    row: Ints
    leak: Ints
    width: Ints
    levels: Ints
    child: Ints
    seen: Ints
    descending: Bools
    logistic: Bools
    power: Floats
    number: Floats

    def pairs(self) -> Ints:
        """Return all pairs of sites that share a factor, each once, the smaller one first."""
        n = max(self.card.size, 1)
        first = self.tables.pairs().astype(np.int64)
        found = [first[:, 0] * n + first[:, 1]]
        for f in range(self.child.size):
            scope = np.sort(self.member[self.member_start[f] : self.member_start[f + 1]])
            a, b = np.triu_indices(scope.size, 1)
            found.append(scope[a] * n + scope[b])
        return np.stack(np.divmod(np.unique(np.concatenate(found)), n), axis=1)


@register(name="causes", rank=4, group="CauseFactors")
def build_causes(model: FactorGraph) -> tuple[CauseGraph, float] | None:
    """Build the graph of a model in which some noisy nodes have no table."""
    noisy = [group for group in groups_of(model) if isinstance(group, CauseFactors)]
    tables, constant = build_table(model, without=CauseFactors)
    width = [1 if group.kind == "logistic" else group.levels for group in noisy]
    numbers: list[Array] = []
    row: list[Array] = []
    leak: list[int] = []
    size = 0
    for group in noisy:
        parts = [each.reshape(-1) for each in (group.leak, *group.effects)]
        begin = size + row_starts(np.array([part.size for part in parts], np.int64))
        leak.append(int(begin[0]))
        row.append(np.concatenate([begin[1:-1], np.full(int(group.seen < 0), -1)]))
        numbers += parts
        size = int(begin[-1])
    member = np.concatenate([group.scopes[0] for group in noisy]).astype(np.int64)
    arity = np.array([group.arity for group in noisy], np.int64)
    member_start = row_starts(arity)
    by_site = np.argsort(member, kind="stable")
    node = np.repeat(np.arange(arity.size), arity)
    arrays = CauseGraph(
        tables=tables,
        card=tables.card,
        offset=tables.offset,
        unary=tables.unary,
        log_unary=tables.log_unary,
        start=row_starts(np.bincount(member, minlength=model.n_sites)),
        node=node[by_site],
        place=by_site.astype(np.int64),
        member_start=member_start,
        member=member,
        row=np.concatenate(row).astype(np.int64),
        leak=np.array(leak, np.int64),
        width=np.array(width, np.int64),
        levels=np.array([group.levels for group in noisy], np.int64),
        child=np.array([int(group.scopes[0, -1]) if group.seen < 0 else -1 for group in noisy], np.int64),
        seen=np.array([group.seen for group in noisy], np.int64),
        descending=np.array([group.descending for group in noisy], np.bool_),
        logistic=np.array([group.kind == "logistic" for group in noisy], np.bool_),
        power=np.array([group.power for group in noisy]),
        number=np.concatenate(numbers),
    )
    return arrays, constant


@inlined
def strength_of(arrays: CauseGraph, x: Codes, f: Integer) -> Integer:
    """Return the strength of the state of a noisy node."""
    child = arrays.child[f]
    if child < 0:
        return np.int64(arrays.seen[f])
    code = np.int64(x[np.uintp(child)])
    return arrays.levels[f] - 1 - code if arrays.descending[f] else code


@inlined
def sum_causes(arrays: CauseGraph, x: Codes, f: Integer, without: Integer, level: Integer) -> float:
    """Return leak and effects of all parents but one at a level: the log of a cumulative probability, or log-odds."""
    total: float = arrays.number[np.uintp(arrays.leak[f] + level)]
    width = arrays.width[f]
    for m in range(arrays.member_start[f], arrays.member_start[f + 1]):
        begin = arrays.row[np.uintp(m)]
        if begin >= 0 and m != without:
            total += arrays.number[np.uintp(begin + width * np.int64(x[np.uintp(arrays.member[np.uintp(m)])]) + level)]
    return total


@inlined
def log_gap(upper: float, lower: float) -> float:
    """Return log(exp(upper) - exp(lower)), minus infinity if both are equal."""
    if upper == -np.inf or lower >= upper:
        return -np.inf
    return upper + math.log(-math.expm1(lower - upper))


@inlined
def scaled(power: float, logs: float) -> float:
    """Return a log-probability times a power; what is impossible stays so, also for the power zero."""
    return logs if logs == -np.inf else power * logs


@inlined
def log_expit(odds: float) -> float:
    """Return the logarithm of the probability that has these log-odds."""
    if odds > 0.0:
        return -math.log1p(math.exp(-odds))
    return odds - math.log1p(math.exp(odds))


@inlined
def add_causes(arrays: CauseGraph, x: Codes, i: Integer, w: Floats, size: Integer) -> None:
    """Add the noisy nodes of a site to the logarithms of its weights."""
    for k in range(arrays.start[i], arrays.start[i + ONE]):
        f, m = np.uintp(arrays.node[np.uintp(k)]), arrays.place[np.uintp(k)]
        begin, power = arrays.row[np.uintp(m)], arrays.power[f]
        if arrays.logistic[f]:
            odds = sum_causes(arrays, x, f, m, np.int64(0))
            if begin < 0:
                w[np.uintp(0)] += scaled(power, log_expit(-odds))
                w[np.uintp(1)] += scaled(power, log_expit(odds))
            else:
                sign = 1.0 if strength_of(arrays, x, f) == 1 else -1.0
                for a in range(size):
                    w[a] += power * log_expit(sign * (odds + arrays.number[np.uintp(begin) + a]))
        elif begin < 0:
            below = -np.inf
            for level in range(arrays.levels[f]):
                total = sum_causes(arrays, x, f, m, level)
                w[np.uintp(arrays.levels[f] - 1 - level if arrays.descending[f] else level)] += scaled(
                    power, log_gap(total, below)
                )
                below = total
        else:
            level, width = strength_of(arrays, x, f), np.uintp(arrays.width[f])
            own = np.uintp(begin + level)
            total = sum_causes(arrays, x, f, m, level)
            if level == 0:
                for a in range(size):
                    w[a] += scaled(power, total + arrays.number[own + width * a])
            else:
                below = sum_causes(arrays, x, f, m, level - 1)
                for a in range(size):
                    at = own + width * a
                    w[a] += scaled(power, log_gap(total + arrays.number[at], below + arrays.number[at - ONE]))


@implement(log_weights, CauseGraph)
def _log_weights_causes(arrays: CauseGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    size = log_weights(arrays.tables, x, i, w)
    add_causes(arrays, x, i, w, np.uintp(size))
    return np.int64(size)


@implement(weights, CauseGraph)
def _weights_causes(arrays: CauseGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    if arrays.start[i] == arrays.start[i + ONE]:
        return weights(arrays.tables, x, i, w)
    size = np.int64(log_weights(arrays, x, i, w))
    return size, from_logs(w, size)


@implement(log_potential, CauseGraph)
def _log_potential_causes(arrays: CauseGraph, x: Codes) -> float:
    total = log_potential(arrays.tables, x)
    for node in range(arrays.child.size):
        f = np.uintp(node)
        level, power = strength_of(arrays, x, f), arrays.power[f]
        if arrays.logistic[f]:
            odds = sum_causes(arrays, x, f, np.int64(-1), np.int64(0))
            total += scaled(power, log_expit(odds if level == 1 else -odds))
        else:
            below = sum_causes(arrays, x, f, np.int64(-1), level - 1) if level > 0 else -np.inf
            total += scaled(power, log_gap(sum_causes(arrays, x, f, np.int64(-1), level), below))
    return total
