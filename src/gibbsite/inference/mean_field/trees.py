"""Tree-structured mean field: independent trees of sites, each of which is solved exactly.

Sites are divided into sets such that factors restricted to a set have no cycle. A distribution q under which these sets
are independent bounds log Z from below by E_q[log-potential] + entropy(q), as any distribution does. Given all other
sets the bound is largest where q of a set is proportional to exp(E_q[log-potential | its sites]) [1]_, which is a
forest again: one pass up and one down give its partition function, marginals, and the joint probabilities of the
members of factors, which suffice for the other sets. Every step raises the bound. From a product distribution with a
finite bound all bounds are finite, because the distribution never acquires impossible states.

References
----------
.. [1] Saul, L. K. and Jordan, M. I. (1996). Exploiting tractable substructures in intractable networks. NIPS 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import clock
from gibbsite.graphs.graph import compile_graph
from gibbsite.inference.belief.layout import MessageGraph, lay_out

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.results.table import SiteTable

_PASSES, _GAIN = 200, 1e-6  # largest number of passes, and the gain below which they end


@dataclass
class _Part:
    """The members of a factor in one set, as axes of its table, and their joint probabilities."""

    axes: tuple[int, ...]
    joint: Floats


@dataclass
class _Factor:
    """A factor: its sites, its table with zeros stored separately, and its members in each set."""

    sites: tuple[int, ...]
    finite: Floats
    impossible: Floats | None
    parts: dict[int, _Part] = field(default_factory=dict)

    def expected(self, but: int | None) -> Floats:
        """Return the mean log-potential for each state of the members in one set, or over all sets."""
        mean = self._mean(self.finite, but)
        if self.impossible is None:
            return mean
        return np.where(self._mean(self.impossible, but) > 0.0, -np.inf, mean)

    def _mean(self, table: Floats, but: int | None) -> Floats:
        left = list(range(len(self.sites)))
        for number, part in self.parts.items():
            if number != but:
                at = [left.index(axis) for axis in part.axes]
                table = np.tensordot(table, part.joint, (at, list(range(len(at)))))
                left = [axis for axis in left if axis not in part.axes]
        return table


@dataclass
class _Trees:
    """A set of sites: its roots, and its factors from the roots outwards, each with the axis towards the root."""

    number: int
    sites: list[int]
    roots: list[int]
    inner: list[tuple[_Factor, int]]
    outer: list[tuple[_Factor, int]]  # factors with one member in the set, and that member
    entropy: float = 0.0


def bound_by_trees(model: FactorGraph, start: SiteTable, seconds: float = math.inf) -> float:
    """Return a lower bound of log Z by independent trees, improved from a product distribution within a time limit.

    It is minus infinity if the start gives probability to impossible states and trees do not correct that.
    """
    begun = clock()
    graph, constant = lay_out(compile_graph(model), model)
    factors = _read_factors(graph)
    law = [start.to_array()[i, : graph.card[i]] for i in range(graph.n_sites)]
    unary = [graph.log_unary[graph.offset[i] : graph.offset[i + 1]] for i in range(graph.n_sites)]
    sets = _share_out(graph, factors)
    for one in factors:
        for part in one.parts.values():
            part.joint = _product([law[one.sites[axis]] for axis in part.axes])
    best = -math.inf
    for _ in range(_PASSES):
        for trees in sets:
            if clock() - begun >= seconds or not _renew(trees, unary, law):
                return best
        bound = constant + sum(one.entropy for one in sets)
        bound += sum(float(one.expected(None)) for one in factors)
        bound += sum(_mean_of(p, logs) for p, logs in zip(law, unary, strict=True))
        if len(sets) == 1 or not bound > best + _GAIN:
            return max(best, bound)
        best = bound
    return best


def _mean_of(p: Floats, logs: Floats) -> float:
    """Return the mean of logarithms, skipping those of probability zero."""
    seen = p > 0.0
    return float(p[seen] @ logs[seen])


def _product(laws: list[Floats]) -> Floats:
    """Return the joint probabilities of independent sites."""
    table = np.ones(())
    for law in laws:
        table = np.multiply.outer(table, law)
    return table


def _read_factors(graph: MessageGraph) -> list[_Factor]:
    found = []
    for f in range(graph.n_factors):
        edges = graph.member[graph.member_start[f] : graph.member_start[f + 1]]
        sites = graph.site[edges]
        shape, begin = graph.card[sites], int(graph.table[f])
        logs = graph.log_value[begin : begin + int(shape.prod())].reshape(shape)
        zeros = np.isneginf(logs)
        finite = np.where(zeros, 0.0, logs)
        found.append(_Factor(tuple(sites.tolist()), finite, zeros.astype(float) if zeros.any() else None))
    return found


def _share_out(graph: MessageGraph, factors: list[_Factor]) -> list[_Trees]:
    """Divide the sites into sets without cycles, by first fit."""
    around: list[list[int]] = [[] for _ in range(graph.n_sites)]
    for f, factor in enumerate(factors):
        for i in factor.sites:
            around[i].append(f)
    left = list(range(graph.n_sites))
    sets: list[_Trees] = []
    while left:
        above = list(range(graph.n_sites + len(factors)))  # union-find of sites, and of factors after them

        def find(node: int, above: list[int] = above) -> int:
            while above[node] != node:
                above[node] = above[above[node]]
                node = above[node]
            return node

        chosen: list[int] = []
        for i in left:
            heads = [find(graph.n_sites + f) for f in around[i]]
            if len(set(heads)) == len(heads):
                chosen.append(i)
                for head in heads:
                    above[head] = i
        sets.append(_plant(len(sets), chosen, factors, around))
        taken = set(chosen)
        left = [i for i in left if i not in taken]
    return sets


def _plant(number: int, sites: list[int], factors: list[_Factor], around: list[list[int]]) -> _Trees:
    """Find the roots of a set, and its factors in the order of a search from the roots."""
    within, seen, used = set(sites), set(), set()
    trees = _Trees(number, sites, [], [], [])
    for root in sites:
        if root in seen:
            continue
        trees.roots.append(root)
        seen.add(root)
        front = [root]
        for i in front:  # the list grows during the loop
            for f in around[i]:
                if f in used:
                    continue
                used.add(f)
                factor = factors[f]
                axes = tuple(axis for axis, j in enumerate(factor.sites) if j in within)
                factor.parts[number] = _Part(axes, np.ones(()))
                if len(axes) == 1:
                    trees.outer.append((factor, i))
                    continue
                trees.inner.append((factor, axes.index(factor.sites.index(i))))
                fresh = [factor.sites[axis] for axis in axes if factor.sites[axis] != i]
                seen.update(fresh)
                front.extend(fresh)
    return trees


def _renew(trees: _Trees, unary: list[Floats], law: list[Floats]) -> bool:
    """Give a set its best distribution given all others; False if it has none."""
    up = {i: unary[i].copy() for i in trees.sites}
    for factor, i in trees.outer:
        up[i] += factor.expected(trees.number)
    alone = {i: logs.copy() for i, logs in up.items()}
    down: list[tuple[Floats, Floats, Floats]] = []
    for factor, lead in reversed(trees.inner):
        axes = factor.parts[trees.number].axes
        mean = factor.expected(trees.number)
        logs = mean.copy()
        for at, axis in enumerate(axes):
            if at != lead:
                logs += up[factor.sites[axis]].reshape([-1 if d == at else 1 for d in range(len(axes))])
        message = _log_total(np.moveaxis(logs, lead, 0).reshape(logs.shape[lead], -1))
        up[factor.sites[axes[lead]]] += message
        down.append((mean, logs, message))
    entropy = 0.0
    for root in trees.roots:
        total = float(_log_total(up[root][None])[0])
        if total == -math.inf:
            return False
        law[root] = np.exp(up[root] - total)
        entropy += total
    for (factor, lead), (mean, logs, message) in zip(trees.inner, reversed(down), strict=True):
        part = factor.parts[trees.number]
        shape = [-1 if d == lead else 1 for d in range(len(part.axes))]
        above = law[factor.sites[part.axes[lead]]]
        known = np.where(np.isneginf(message), 0.0, message).reshape(shape)
        part.joint = above.reshape(shape) * np.exp(logs - known)
        for at, axis in enumerate(part.axes):
            if at != lead:
                law[factor.sites[axis]] = part.joint.sum(tuple(d for d in range(len(part.axes)) if d != at))
        entropy -= _mean_of(part.joint.ravel(), mean.ravel())
    for factor, i in trees.outer:
        factor.parts[trees.number].joint = law[i]
    trees.entropy = entropy - sum(_mean_of(law[i], logs) for i, logs in alone.items())
    return True


def _log_total(logs: Floats) -> Floats:
    """Return the logarithms of sums over the last axis."""
    top = logs.max(axis=-1)
    safe: Any = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - safe[..., None]).sum(axis=-1)) + safe)
