"""Where the nodes of a graph are drawn: in layers along its arrows, or at distances that follow its paths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats

Edge = tuple[int, int]

_SWEEPS = 24  # over all layers, to reduce crossings
_SPACINGS = 128  # sweeps that move nodes towards their neighbours
_STEPS = 150  # of stress majorisation
_GAP = 1.4  # between components


class Layers(NamedTuple):
    """Places of nodes (x, y), and for every arrow the points that it passes through."""

    places: Floats
    routes: list[Floats]


def lay_out_layers(widths: Sequence[float], arrows: Sequence[Edge], height: float, bend: float) -> Layers:
    """Place every node below its parents (Sugiyama's method: layers, order by medians, even spacing).

    Arrows that pass several layers get a bend in each of them. Nodes have ``widths``, bends the width ``bend``; layers
    are ``height`` apart.

    Examples
    --------
    >>> lay_out_layers([1.0, 1.0], [(0, 1)], 0.5, 0.2).places.tolist()
    [[0.0, -0.0], [0.0, -0.5]]
    """
    n = len(widths)
    depth = _depths(n, arrows)
    nodes = n
    layer = depth.tolist()
    chains: list[list[int]] = []
    joins: list[Edge] = []
    for parent, child in arrows:
        chain = [parent]
        for level in range(layer[parent] + 1, layer[child]):
            layer.append(level)
            chain.append(nodes)
            nodes += 1
        chain.append(child)
        chains.append(chain)
        joins += list(pairwise(chain))
    rows = [[v for v in range(nodes) if layer[v] == level] for level in range(max(layer, default=0) + 1)]
    up: list[list[int]] = [[] for _ in range(nodes)]
    down: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in joins:
        down[a].append(b)
        up[b].append(a)
    rank = np.zeros(nodes)
    for row in rows:
        rank[row] = np.arange(len(row))
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        near = up if downwards else down
        for row in rows if downwards else rows[::-1]:
            row.sort(key=lambda v: float(rank[near[v]].sum() / len(near[v])) if near[v] else rank[v])
            rank[row] = np.arange(len(row))
    width = np.concatenate([np.asarray(widths, float), np.full(nodes - n, bend)])
    x = _space_rows(rows, up, down, width)
    places = np.column_stack([x, -height * np.array(layer, float)])
    return Layers(places[:n], [places[chain] for chain in chains])


def _depths(n: int, arrows: Sequence[Edge]) -> Array:
    """Return the length of the longest path to each node; roots are moved down to their first child."""
    parents: list[list[int]] = [[] for _ in range(n)]
    children: list[list[int]] = [[] for _ in range(n)]
    for parent, child in arrows:
        parents[child].append(parent)
        children[parent].append(child)
    depth = np.zeros(n, np.int64)
    waiting = np.array([len(each) for each in parents])
    ready = [v for v in range(n) if not waiting[v]]
    while ready:
        node = ready.pop()
        for child in children[node]:
            depth[child] = max(depth[child], depth[node] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    for node in range(n):
        if not parents[node] and children[node]:
            depth[node] = depth[children[node]].min() - 1
    return depth


def _space_rows(rows: list[list[int]], up: list[list[int]], down: list[list[int]], width: Floats) -> Floats:
    """Return positions along the layers: close to the mean of neighbours, without overlaps, in the given order."""
    nodes = width.size
    x = np.zeros(nodes)
    for row in rows:
        x[row] = np.cumsum(width[row]) - 0.5 * width[row] - 0.5 * width[row].sum()
    near = [np.array([*up[v], *down[v]] or [v], np.intp) for v in range(nodes)]
    for sweep in range(_SPACINGS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = np.array([x[near[v]].sum() / near[v].size for v in row])
            gaps = 0.5 * (width[row[1:]] + width[row[:-1]])
            offsets = np.concatenate([[0.0], np.cumsum(gaps)])
            x[row] = _isotonic(wanted - offsets) + offsets
        if sweep % 20 == 19:
            _close_gaps(rows, x, width)
    found: Floats = x - x.min()
    return found


def _close_gaps(rows: list[list[int]], x: Floats, width: Floats) -> None:
    """Move everything right of a vertical line to the left as far as no two nodes of a row overlap, for all lines."""
    for cut in sorted(set(x.tolist()))[1:]:
        right = x >= cut
        slack = np.inf
        for row in rows:
            at = np.array(row)
            first = int(right[at].argmax()) if right[at].any() else 0
            if first:
                b, a = at[first], at[first - 1]
                slack = min(slack, float(x[b] - x[a] - 0.5 * (width[a] + width[b])))
        if 1e-9 < slack < np.inf:
            x[right] -= slack


def _isotonic(values: Floats) -> Floats:
    """Return the non-decreasing sequence that is closest to the given one in squares."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            total = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / total]
            sizes[-2:] = [total]
    return np.repeat(means, sizes)


def lay_out_distances(n: int, edges: Sequence[Edge]) -> Floats:
    """Place nodes so that their distances are about the lengths of the shortest paths between them.

    Stress majorisation (Gansner, Koren and North 2004), component by component.

    Examples
    --------
    >>> places = lay_out_distances(3, [(0, 1), (1, 2)])
    >>> round(float(np.linalg.norm(places[0] - places[2])), 2)
    2.0
    """
    near: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    places = np.zeros((n, 2))
    seen: Bools = np.zeros(n, np.bool_)
    boxes: list[tuple[list[int], Floats]] = []
    for root in range(n):
        if not seen[root]:
            part = _reach(root, near)
            seen[part] = True
            boxes.append((part, _place_component(part, near)))
    boxes.sort(key=lambda box: -len(box[0]))
    limit = 1.3 * math.sqrt(sum(float(np.prod(np.ptp(at, axis=0) + _GAP)) for _, at in boxes))
    limit = max(limit, *(float(np.ptp(at[:, 0])) + _GAP for _, at in boxes)) if boxes else 0.0
    left = top = height = 0.0
    for part, at in boxes:
        size = np.ptp(at, axis=0) + _GAP
        if left + size[0] > limit + 1e-9:
            left, top, height = 0.0, top - height, 0.0
        low = at.min(axis=0)
        high = at.max(axis=0)
        places[part] = np.column_stack([at[:, 0] - low[0] + left, at[:, 1] - high[1] + top])
        left += size[0]
        height = max(height, float(size[1]))
    return places


def _reach(root: int, near: list[list[int]]) -> list[int]:
    found, stack = {root}, [root]
    while stack:
        for other in near[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return sorted(found)


def _place_component(part: list[int], near: list[list[int]]) -> Floats:
    many = len(part)
    if many == 1:
        return np.zeros((1, 2))
    number = {v: k for k, v in enumerate(part)}
    distance = np.full((many, many), np.inf)
    for k, v in enumerate(part):  # breadth-first search from every node
        row, front, far = distance[k], [v], 0.0
        row[k] = 0.0
        while front:
            far += 1.0
            front = [w for w in {w for u in front for w in near[u]} if not np.isfinite(row[number[w]])]
            row[[number[w] for w in front]] = far
    # Classical scaling gives the start.
    square = distance**2
    centered = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    values, vectors = np.linalg.eigh(centered)
    x = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    for axis in range(2):  # signs of eigenvectors are arbitrary
        lead = int(np.argmax(np.abs(x[:, axis]) > 1e-9 * max(np.abs(x).max(), 1e-300)))
        x[:, axis] *= 1.0 if x[lead, axis] >= 0.0 else -1.0
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)
    weight = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0)
    matrix = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(matrix)
    for _ in range(_STEPS):
        apart = np.linalg.norm(x[:, None] - x[None], axis=2)
        ratio = np.divide(weight * distance, apart, out=np.zeros_like(apart), where=apart > 1e-12)
        x = inverse @ (ratio.sum(axis=1)[:, None] * x - ratio @ x)
    long = x - x.mean(axis=0)
    _, axes = np.linalg.eigh(long.T @ long)
    turned: Floats = long @ axes[:, ::-1]  # the longest direction lies horizontally
    return turned
