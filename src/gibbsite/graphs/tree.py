"""Trees over positions, and bounds on sums of a decreasing function of the distance.

Every node is a range of points in the order of the tree, with their bounding box. For each point, ``list_nodes`` covers
the other points by small nodes near it and large ones far away. The function differs by at most a given ratio inside a
node, or its sum over the node is negligible. The largest value of the function in a box times the number of points in
it is an upper bound of the sum.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, called, compiled
from gibbsite.graphs.kinds.distance import Decay, fall

# The first two numbers are the largest ratios of values of the function inside a node, for draws and for bounds of
# sums. Nodes whose sum is below the last number are not divided.
_RATIO, _FINE_RATIO, _NOTHING = 2.5, 1.05, 2e-3
_DEEPEST = 128  # size of the stack; the tree halves its points, which are fewer than 2^31


class Tree(NamedTuple):
    """Nodes with points ``order[first[k] : last[k]]``, children ``child[k]`` and ``child[k] + 1``, and boxes."""

    order: Ints32
    first: Ints32
    last: Ints32
    child: Ints32
    low: Floats
    high: Floats


class Nodes(NamedTuple):
    """Nodes of every point in compressed rows, bounds of the function in them, and bounds of its sums."""

    start: Ints
    node: Words32
    bound: Floats
    sums: Floats


def build_tree(positions: Floats) -> Tree:
    """Halve the points along the longest side of their box, down to single ones."""
    n, d = positions.shape
    many = max(2 * n - 1, 0)
    order, child = np.arange(n, dtype=np.int32), np.zeros(many, np.int32)
    first, last = np.zeros(many, np.int32), np.zeros(many, np.int32)
    low, high = np.zeros((many, d)), np.zeros((many, d))
    begin, end = 0, min(n, 1)
    last[:end] = n
    while begin < end:  # a level of the tree, that is, the disjoint nodes begin, ..., end - 1
        size = last[begin:end] - first[begin:end]
        start = np.cumsum(size) - size
        node = np.repeat(np.arange(end - begin), size)
        place = np.arange(node.size) + (first[begin:end] - start)[node]
        points = positions[order[place]]
        low[begin:end] = np.minimum.reduceat(points, start)
        high[begin:end] = np.maximum.reduceat(points, start)
        longest = np.argmax(high[begin:end] - low[begin:end], axis=1)
        key = points[np.arange(node.size), longest[node]]
        order[place] = order[place[np.lexsort((key, node))]]
        split = begin + np.flatnonzero(size > 1)
        left = end + 2 * np.arange(split.size)
        child[split] = left
        middle = (first[split] + last[split]) // 2
        first[left], last[left] = first[split], middle
        first[left + 1], last[left + 1] = middle, last[split]
        begin, end = end, end + 2 * split.size
    return Tree(order, first, last, child, low, high)


def list_nodes(tree: Tree, positions: Floats, decay: Decay) -> Nodes:
    """Return the nodes of every point for couplings that fall with the distance, on all cores."""
    n = len(positions)
    start, sums = np.zeros(n + 1, np.int64), np.zeros(n)
    members = max(1, min(os.cpu_count() or 1, n // 1024))
    cuts = [n * k // members for k in range(members + 1)]
    none = np.zeros(0, np.uint32), np.zeros(0)

    def visit(member: int, node: Words32, bound: Floats, fill: bool) -> None:
        _visit(tree, positions, decay, cuts[member], cuts[member + 1], start, node, bound, sums, fill)

    with ThreadPoolExecutor(members) as pool:
        list(pool.map(lambda k: visit(k, *none, False), range(members)))
        np.cumsum(start, out=start)
        node, bound = np.zeros(start[-1], np.uint32), np.zeros(start[-1])
        list(pool.map(lambda k: visit(k, node, bound, True), range(members)))
    return Nodes(start, node, bound, sums)


@called
def _square_range(tree: Tree, positions: Floats, i: Integer, k: Integer) -> tuple[float, float]:
    """Return the least and the largest square of the distance of point i from the box of node k."""
    near, far = 0.0, 0.0
    for axis in range(positions.shape[1]):
        at = positions[i, axis]
        below, above = tree.low[k, axis] - at, at - tree.high[k, axis]
        gap = max(below, above, 0.0)
        reach = max(-below, -above)
        near += gap * gap
        far += reach * reach
    return near, far


@compiled
def _visit(
    tree: Tree,
    positions: Floats,
    decay: Decay,
    begin: int,
    end: int,
    start: Ints,
    node: Words32,
    bound: Floats,
    sums: Floats,
    fill: bool,
) -> None:
    """Count the nodes of some points and bound their sums, or fill in the nodes."""
    stack = np.empty(_DEEPEST, np.int32)
    for i in range(begin, end):
        for fine in range(1 if fill else 2):
            ratio = _FINE_RATIO if fine else _RATIO
            at = start[i] if fill else 0
            total = 0.0
            stack[0], depth = 0, 1
            while depth > 0:
                depth -= 1
                k = stack[depth]
                many = tree.last[k] - tree.first[k]
                if many == 1 and tree.order[tree.first[k]] == i:
                    continue
                near, far = _square_range(tree, positions, i, k)
                largest = fall(decay, near)
                whole = many == 1 or largest <= ratio * fall(decay, far)
                if whole or many * largest <= (_NOTHING * (1.0 / 16.0 if fine else 1.0)):
                    if fill:
                        node[at] = k
                        bound[at] = largest
                    at += 1
                    total += many * largest
                else:
                    stack[depth] = tree.child[k]
                    stack[depth + 1] = tree.child[k] + 1
                    depth += 2
            if not fill and fine:
                sums[i] = total
            elif not fill:
                start[i + 1] = at
