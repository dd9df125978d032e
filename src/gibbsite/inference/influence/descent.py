"""DoGS: improvement of a scan step by step, from last to first (Mitliagkas and Mackey 2017, algorithm 2).

The variation d' B(q_T) ... B(q_1) 1 is linear in each step. Let b be the bound before step t, r = (I - C) b, and d the
weights propagated back through the later steps. Visiting site j at step t lowers the variation d' b by d_j r_j, so the
best site has the largest d_j r_j. From step to step, only neighbours of two sites change: these are O(degree) changes,
each of cost O(log n) in a tree of maxima.

In the tree of maxima, leaf j of n is ``top[size + j]``, where size is the next power of two; node k is the larger of
nodes 2 k and 2 k + 1, and the root is ``top[1]``.

No precision is lost when the bound falls by many orders of magnitude: r_i is zero right after a visit, and is summed
up again from the changes of its neighbours. (The paper has a misprint in the line for the variation: the change is d_i
r_i - d_j r_j, before d changes.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints32
from gibbsite._numba.jit import Integer, called, compiled_loop, inlined
from gibbsite.inference.influence.matrix import Influence, InfluenceRows, multiply


def make_tree(n: int) -> Floats:
    """Allocate a tree of n leaves, all minus infinity."""
    return np.full(2 << max(n - 1, 0).bit_length(), -np.inf)


@inlined
def set_leaf(top: Floats, j: Integer, now: Any) -> None:
    """Set a leaf of the tree and update its ancestors."""
    node = (np.uintp(top.size) >> np.uintp(1)) + np.uintp(j)
    if top[node] == now:
        return
    top[node] = now
    while node > np.uintp(1):
        other = top[node ^ np.uintp(1)]
        if other > now:
            now = other
        node >>= np.uintp(1)
        if top[node] == now:
            return
        top[node] = now


@inlined
def first_largest(top: Floats) -> Integer:
    """Return the first leaf with the largest number."""
    size = np.uintp(top.size) >> np.uintp(1)
    node = np.uintp(1)
    while node < size:
        node <<= np.uintp(1)
        if top[node] < top[node + np.uintp(1)]:
            node += np.uintp(1)
    return node - size


class DescentWorkspace(NamedTuple):
    """Work arrays of a descent, which are restored after each one, so that short ones cost little.

    ``bound`` is b, ``rest`` is r = (I - C) b, ``weight`` is d and ``given`` its value at the end of the scan, not zero
    at ``targets``; ``top`` is the tree of the largest d_j r_j.
    """

    bound: Floats
    rest: Floats
    weight: Floats
    given: Floats
    targets: Ints32
    top: Floats


def make_workspace(influence: Influence, weights: Floats) -> DescentWorkspace:
    """Allocate the work arrays of descents with the same influence and weights."""
    n = influence.n_sites
    targets = np.flatnonzero(weights).astype(np.int32)
    workspace = DescentWorkspace(np.ones(n), np.empty(n), weights.astype(np.float64), weights, targets, make_tree(n))
    _renew_all(influence.rows, workspace)
    return workspace


@inlined
def _resting(rows: InfluenceRows, i: Integer) -> Any:
    """Return r_i at b = 1."""
    total = 0.0
    for k in range(rows.start[i], rows.start[i + np.uintp(1)]):
        total += rows.value[k]
    return 1.0 - total


@called
def _plant(workspace: DescentWorkspace) -> None:
    """Build the tree of maxima."""
    size = workspace.top.size // 2
    for j in range(workspace.rest.size):
        workspace.top[size + j] = workspace.weight[j] * workspace.rest[j]
    for node in range(size - 1, 0, -1):
        workspace.top[node] = max(workspace.top[2 * node], workspace.top[2 * node + 1])


@compiled_loop
def _renew_all(rows: InfluenceRows, workspace: DescentWorkspace) -> None:
    _reset(rows, workspace)


@called
def _reset(rows: InfluenceRows, workspace: DescentWorkspace) -> None:
    for i in range(workspace.rest.size):
        workspace.bound[i] = 1.0
        workspace.rest[i] = _resting(rows, np.uintp(i))
        workspace.weight[i] = workspace.given[i]
    _plant(workspace)


@inlined
def _raise(workspace: DescentWorkspace, j: Integer) -> None:
    """Update the tree after a change at site j."""
    set_leaf(workspace.top, j, workspace.weight[j] * workspace.rest[j])


@inlined
def _change(rows: InfluenceRows, workspace: DescentWorkspace, i: Integer, delta: Any, track: bool) -> None:
    """Lower b_i by delta."""
    workspace.rest[i] -= delta
    if track:
        _raise(workspace, i)
    for k in range(rows.start[i], rows.start[i + np.uintp(1)]):
        j = np.uintp(rows.neighbour[k])
        workspace.rest[j] += rows.back[k] * delta
        if track:
            _raise(workspace, j)


@inlined
def _renew_site(rows: InfluenceRows, workspace: DescentWorkspace, i: Integer) -> None:
    workspace.bound[i] = 1.0
    workspace.rest[i] = _resting(rows, i)
    workspace.weight[i] = workspace.given[i]
    _raise(workspace, i)


@called
def _renew(rows: InfluenceRows, workspace: DescentWorkspace, scan: Ints32) -> None:
    """Restore the work arrays at the sites of a scan and at their neighbours."""
    for t in range(scan.size):
        i = np.uintp(scan[t])
        _renew_site(rows, workspace, i)
        for k in range(rows.start[i], rows.start[i + np.uintp(1)]):
            _renew_site(rows, workspace, np.uintp(rows.neighbour[k]))


@called
def _evaluate(rows: InfluenceRows, workspace: DescentWorkspace, scan: Ints32) -> Any:
    """Return the variation of a scan, by additions only, so that no precision is lost."""
    bound = workspace.bound
    for t in range(scan.size):
        i = np.uintp(scan[t])
        total = 0.0
        for k in range(rows.start[i], rows.start[i + np.uintp(1)]):
            total += rows.value[k] * bound[rows.neighbour[k]]
        bound[i] = total
    variation = 0.0
    for k in range(workspace.targets.size):
        variation += workspace.given[workspace.targets[k]] * bound[workspace.targets[k]]
    for t in range(scan.size):
        bound[scan[t]] = 1.0
    return variation


class Descent(NamedTuple):
    """The variation before and after a descent and as tracked, and the number of first steps left unchanged."""

    before: float
    after: float
    tracked: float
    kept: int


@compiled_loop
def _descend(
    rows: InfluenceRows, workspace: DescentWorkspace, scan: Ints32, new: Ints32, delta: Floats, goal: float
) -> tuple[Any, Any, Any, Integer]:
    before = _evaluate(rows, workspace, scan)
    for t in range(scan.size):
        i = np.uintp(scan[t])
        delta[t] = workspace.rest[i]
        _change(rows, workspace, i, delta[t], False)
    short = 8 * scan.size < workspace.rest.size
    if short:
        for t in range(scan.size):
            i = np.uintp(scan[t])
            _raise(workspace, i)
            for k in range(rows.start[i], rows.start[i + np.uintp(1)]):
                _raise(workspace, np.uintp(rows.neighbour[k]))
    else:
        _plant(workspace)
    tracked = before
    kept = scan.size
    while kept > 0 and tracked > goal:
        kept -= 1
        i = np.uintp(scan[kept])
        _change(rows, workspace, i, -delta[kept], True)  # back to before the step
        j = first_largest(workspace.top)
        gain, own = workspace.weight[j] * workspace.rest[j], workspace.weight[i] * workspace.rest[i]
        if gain <= own:
            j = i
        else:
            tracked += own - gain
        new[kept] = np.int32(j)
        moved = workspace.weight[j]
        if moved > 0.0:
            workspace.weight[j] = 0.0
            _raise(workspace, j)
            for k in range(rows.start[j], rows.start[j + np.uintp(1)]):
                neighbour = np.uintp(rows.neighbour[k])
                workspace.weight[neighbour] += moved * rows.value[k]
                _raise(workspace, neighbour)
    for t in range(kept):
        new[t] = scan[t]
    if short:
        _renew(rows, workspace, scan)
        _renew(rows, workspace, new)
    else:
        if kept == 0:  # b is 1 again, so compute d' b without differences of large numbers
            tracked = 0.0
            for site in range(workspace.weight.size):
                tracked += workspace.weight[site]
        _reset(rows, workspace)
    return before, _evaluate(rows, workspace, new), tracked, kept


def descend(
    influence: Influence, workspace: DescentWorkspace, scan: Ints32, goal: float = -np.inf
) -> tuple[Ints32, Descent]:
    """Improve a fixed scan; return the new scan and its gain.

    Steps before the one that brings the variation to ``goal`` are left unchanged.
    """
    new, delta = np.empty_like(scan), np.empty(scan.size)
    return new, Descent(*_descend(influence.rows, workspace, scan, new, delta, goal))


def descend_drawn(influence: Influence, weights: Floats, chances: Floats, steps: int) -> tuple[Ints32, Descent]:
    """Turn steps at sites drawn with given probabilities into a fixed scan that is at least as good.

    Here b changes everywhere at every step. It is stored at about sqrt(steps) moments and computed again between them,
    which takes O(sites sqrt(steps)) memory and O(entries) work per step.
    """
    stretch = max(1, int(np.sqrt(steps)))
    arrays = (influence.start, influence.neighbour, influence.value)
    b, r, kept_b = np.ones(weights.size), np.empty(weights.size), []
    for t in range(steps):
        if t % stretch == 0:
            kept_b.append(b.copy())
        multiply(*arrays, b, r)
        b -= chances * (b - r)
    before = float(weights @ b)
    d, tracked = weights.astype(np.float64), before
    new = np.zeros(steps, np.int32)
    kept = steps
    for first in range(stretch * (len(kept_b) - 1), -1, -stretch):
        bounds = [kept_b.pop()]
        for _ in range(first + 1, min(first + stretch, steps)):
            multiply(*arrays, bounds[-1], r)
            bounds.append(bounds[-1] - chances * (bounds[-1] - r))
        while bounds:
            b = bounds.pop()
            kept -= 1
            multiply(*arrays, b, r)
            gains = d * (b - r)
            j = int(np.argmax(gains))
            tracked += float(chances @ gains) - float(gains[j])
            new[kept] = j
            row = slice(int(influence.start[j]), int(influence.start[j + 1]))
            moved, d[j] = d[j], 0.0
            d[influence.neighbour[row]] += moved * influence.value[row]
    workspace = make_workspace(influence, weights)
    return new, Descent(before, evaluate(influence, workspace, new), tracked, kept)


@compiled_loop
def _value(rows: InfluenceRows, workspace: DescentWorkspace, scan: Ints32) -> Any:
    return _evaluate(rows, workspace, scan)


def evaluate(influence: Influence, workspace: DescentWorkspace, scan: Ints32) -> float:
    """Return the variation of a fixed scan, in time proportional to its length."""
    return float(_value(influence.rows, workspace, scan))
