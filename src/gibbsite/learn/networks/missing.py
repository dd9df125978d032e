"""Missing cells: groups of cells that depend on each other given the observed ones, and their distributions.

Two missing cells of a case belong to one group if a table has both; groups are independent given the observed cells and
the tables. The states of a small group are enumerated. Cells of a larger one are drawn one after another, each given
all others, or their expectations are computed on a clique tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints16
from gibbsite._numba.jit import called, compiled_loop
from gibbsite.graphs.rows import row_starts
from gibbsite.learn.networks.layout import Layout


class Groups(NamedTuple):
    """Groups of missing cells.

    Group g is in case ``row[g]`` and has the sites ``site[begin[g]]`` to ``site[begin[g + 1]]``; the tables that depend
    on them are ``table[first[g]]`` to ``table[first[g + 1]]``. ``states`` is its number of joint states.
    """

    row: Ints
    begin: Ints
    site: Ints
    first: Ints
    table: Ints
    states: Floats


class Scratch(NamedTuple):
    """Memory for one group: weights of its states, entries of its tables, digits, and strides (site, table)."""

    weight: Floats
    entry: Ints
    digit: Ints
    stride: Ints


def find_groups(layout: Layout, codes: Ints16) -> Groups:
    """Find the groups of missing cells of cases (sites, rows).

    Examples
    --------
    >>> from gibbsite.learn.networks.layout import make_layout
    >>> layout = make_layout(["a", "b", "c"], {"a": (), "b": ("a",), "c": ("b",)}, np.array([2, 3, 2]))
    >>> groups = find_groups(layout, np.array([[-1, -1], [-1, 1], [0, -1]], np.int16))
    >>> groups.row.tolist(), groups.site.tolist(), groups.states.tolist()
    ([0, 1, 1], [0, 1, 0, 2], [6.0, 2.0, 2.0])
    """
    n = layout.card.size
    root, used = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sizes = np.zeros(3, np.int64)
    nothing = np.zeros(0, np.int64)
    _group(layout, codes, root, used, nothing, nothing, nothing, nothing, nothing, sizes, False)
    count, sites, tables = sizes.tolist()
    row, width, reach = np.zeros((3, count), np.int64)
    site, table = np.zeros(sites, np.int64), np.zeros(tables, np.int64)
    _group(layout, codes, root, used, row, width, reach, site, table, sizes, True)
    begin = row_starts(width)
    cards = np.log(layout.card[site])
    logs = np.add.reduceat(cards, begin[:-1]) if count else np.zeros(0)
    return Groups(
        row, begin, site, row_starts(reach), table, np.asarray(np.round(np.exp(np.minimum(logs, 60.0))), np.float64)
    )


def make_scratch(layout: Layout, groups: Groups, most: int) -> Scratch:
    """Allocate memory for groups of at most this number of states, and for single sites."""
    small = groups.states[groups.states <= most]
    wide = int(np.diff(groups.begin).max(initial=1))
    reach = int(np.diff(groups.first).max(initial=1))
    return Scratch(
        np.zeros(max(int(small.max(initial=1)), int(layout.card.max(initial=1)))),
        np.zeros(reach, np.int64),
        np.zeros(wide, np.int64),
        np.zeros((wide, reach), np.int64),
    )


@compiled_loop
def _group(
    layout: Layout,
    codes: Ints16,
    root: Ints,
    used: Ints,
    row: Ints,
    width: Ints,
    reach: Ints,
    site: Ints,
    table: Ints,
    sizes: Ints,
    fill: bool,
) -> None:
    """Count the groups, their sites and their tables; with ``fill``, list them."""
    n = layout.card.size
    count, sites, tables = 0, 0, 0
    for r in range(codes.shape[1]):
        missing = 0
        for i in range(n):
            root[i], used[i] = i, 0
            if codes[i, r] < 0:
                missing += 1
        if not missing:
            continue
        for i in range(n):
            last = -1
            for k in range(layout.begin[i], layout.begin[i + 1]):
                j = layout.site[k]
                if codes[j, r] < 0:
                    while root[j] != j:
                        j = root[j]
                    if last >= 0 and j != last:
                        root[max(j, last)] = min(j, last)
                        j = min(j, last)
                    last = j
        for i in range(n):
            if codes[i, r] < 0:
                j = i
                while root[j] != j:
                    j = root[j]
                root[i] = j
        for i in range(n):
            if codes[i, r] >= 0 or root[i] != i:
                continue
            sites_before, tables_before = sites, tables
            for j in range(n):
                if codes[j, r] < 0 and root[j] == i:
                    if fill:
                        site[sites] = j
                    sites += 1
                for k in range(layout.begin[j], layout.begin[j + 1]):
                    m = layout.site[k]
                    if codes[m, r] < 0 and root[m] == i:
                        if fill:
                            table[tables] = j
                        tables += 1
                        break
            if fill:
                row[count], width[count], reach[count] = r, sites - sites_before, tables - tables_before
            count += 1
    sizes[0], sizes[1], sizes[2] = count, sites, tables


@called
def _enter(layout: Layout, groups: Groups, g: int, codes: Ints16, scratch: Scratch) -> None:
    """Find the entries of the tables of a group at its first states, and the strides of its sites."""
    r, wide = groups.row[g], groups.begin[g + 1] - groups.begin[g]
    for t in range(groups.first[g + 1] - groups.first[g]):
        i = groups.table[groups.first[g] + t]
        scratch.entry[t] = layout.start[i]
        for a in range(wide):
            scratch.stride[a, t] = 0
        for k in range(layout.begin[i], layout.begin[i + 1]):
            j = layout.site[k]
            inside = -1
            for a in range(wide):
                if groups.site[groups.begin[g] + a] == j:
                    inside = a
            if inside >= 0:
                scratch.stride[inside, t] = layout.stride[k]
            else:
                scratch.entry[t] += layout.stride[k] * codes[j, r]
    for a in range(wide):
        scratch.digit[a] = 0


@called
def _advance(layout: Layout, groups: Groups, g: int, scratch: Scratch) -> None:
    """Go on to the next joint state of a group."""
    first, reach = groups.begin[g], groups.first[g + 1] - groups.first[g]
    a = groups.begin[g + 1] - first - 1
    while a >= 0:
        card = layout.card[groups.site[first + a]]
        if scratch.digit[a] + 1 < card:
            scratch.digit[a] += 1
            for t in range(reach):
                scratch.entry[t] += scratch.stride[a, t]
            return
        for t in range(reach):
            scratch.entry[t] -= (card - 1) * scratch.stride[a, t]
        scratch.digit[a] = 0
        a -= 1


@called
def _weigh(layout: Layout, groups: Groups, g: int, logs: Floats, scratch: Scratch) -> tuple[float, float]:
    """Write the weights of all joint states of a group, relative to the largest; return its logarithm and the sum."""
    reach, size = groups.first[g + 1] - groups.first[g], int(groups.states[g])
    top, total = -np.inf, 0.0
    for k in range(size):
        found = 0.0
        for t in range(reach):
            found += logs[scratch.entry[t]]
        scratch.weight[k] = found
        top = max(top, found)
        _advance(layout, groups, g, scratch)
    if top == -np.inf:
        return top, 0.0
    for k in range(size):
        scratch.weight[k] = math.exp(scratch.weight[k] - top)
        total += scratch.weight[k]
    return top, total


@compiled_loop
def expect(
    layout: Layout,
    groups: Groups,
    chosen: Ints,
    codes: Ints16,
    weights: Floats,
    logs: Floats,
    scratch: Scratch,
    counts: Floats,
) -> float:
    """Add the expected counts of the tables of some groups; return the sum of their log-likelihoods."""
    found = 0.0
    for g in chosen:
        _enter(layout, groups, g, codes, scratch)
        top, total = _weigh(layout, groups, g, logs, scratch)
        if total == 0.0:
            return -np.inf
        weight = weights[groups.row[g]]
        found += weight * (top + math.log(total))
        share = weight / total
        for k in range(int(groups.states[g])):
            for t in range(groups.first[g + 1] - groups.first[g]):
                counts[scratch.entry[t]] += share * scratch.weight[k]
            _advance(layout, groups, g, scratch)
    return found


class Urn(NamedTuple):
    """Counts of every entry and of every row, their pseudocounts, and the row of each entry.

    With tables integrated over their Dirichlet distribution, the next case falls on an entry of a row in proportion to
    its count and pseudocount.
    """

    entry: Floats
    total: Floats
    extra: Floats
    extra_total: Floats
    row: Ints


@compiled_loop
def impute(
    layout: Layout, groups: Groups, most: int, codes: Ints16, urn: Urn, uniforms: Floats, scratch: Scratch
) -> None:
    """Draw the missing cells of all cases again, each given all other cells, with tables integrated out.

    Groups of at most ``most`` states are drawn at once; the sites of others one after another.
    """
    at = 0
    for g in range(groups.row.size):
        r, first, wide = groups.row[g], groups.begin[g], groups.begin[g + 1] - groups.begin[g]
        reach = groups.first[g + 1] - groups.first[g]
        _enter(layout, groups, g, codes, scratch)
        _shift(groups, g, codes, scratch, 1)
        _put(urn, scratch, reach, -1.0)
        if groups.states[g] <= most:
            _shift(groups, g, codes, scratch, -1)
            size, top, total = int(groups.states[g]), -np.inf, 0.0
            for k in range(size):
                scratch.weight[k] = _predict(urn, scratch, reach, 0, 0, False)
                top = max(top, scratch.weight[k])
                _advance(layout, groups, g, scratch)
            for k in range(size):
                scratch.weight[k] = math.exp(scratch.weight[k] - top)
                total += scratch.weight[k]
            k = _choose(scratch.weight, size, uniforms[at] * total)
            for a in range(wide - 1, -1, -1):
                card = layout.card[groups.site[first + a]]
                codes[groups.site[first + a], r] = k % card
                k //= card
            _shift(groups, g, codes, scratch, 1)
        else:
            for a in range(wide):
                i = groups.site[first + a]
                card, old, top, total = layout.card[i], codes[i, r], -np.inf, 0.0
                for s in range(card):
                    scratch.weight[s] = _predict(urn, scratch, reach, a, s - old, True)
                    top = max(top, scratch.weight[s])
                for s in range(card):
                    scratch.weight[s] = math.exp(scratch.weight[s] - top)
                    total += scratch.weight[s]
                new = _choose(scratch.weight, card, uniforms[at + a] * total)
                for t in range(reach):
                    scratch.entry[t] += (new - old) * scratch.stride[a, t]
                codes[i, r] = new
        at += wide
        _put(urn, scratch, reach, 1.0)


@called
def _shift(groups: Groups, g: int, codes: Ints16, scratch: Scratch, sign: int) -> None:
    """Move from the first states of a group to its present ones, or back."""
    for a in range(groups.begin[g + 1] - groups.begin[g]):
        code = sign * codes[groups.site[groups.begin[g] + a], groups.row[g]]
        for t in range(groups.first[g + 1] - groups.first[g]):
            scratch.entry[t] += scratch.stride[a, t] * code


@called
def _put(urn: Urn, scratch: Scratch, reach: int, weight: float) -> None:
    """Add a case to the entries of a group, or take it out."""
    for t in range(reach):
        urn.entry[scratch.entry[t]] += weight
        urn.total[urn.row[scratch.entry[t]]] += weight


@called
def _predict(urn: Urn, scratch: Scratch, reach: int, a: int, step: int, single: bool) -> float:
    """Return the logarithm of the probability of the present entries, after ``step`` states of one site.

    With ``single``, only tables that have this site count.
    """
    found, product = 0.0, 1.0
    for t in range(reach):
        if single and scratch.stride[a, t] == 0:
            continue
        entry = scratch.entry[t] + step * scratch.stride[a, t] if single else scratch.entry[t]
        row = urn.row[entry]
        product *= (urn.entry[entry] + urn.extra[entry]) / (urn.total[row] + urn.extra_total[row])
        if product < 1e-150:
            found += math.log(product)
            product = 1.0
    return found + math.log(product)


@called
def _choose(weight: Floats, size: int, rest: float) -> int:
    """Return the first number at which the sum of weights exceeds ``rest``."""
    k = 0
    while k < size - 1 and rest >= weight[k]:
        rest -= weight[k]
        k += 1
    return k
