"""A pass of weighted mini-bucket elimination, which bounds the partition function and makes tables for draws.

The sum over a site of a product of mini-buckets is bounded by the product of their weighted sums (Hoelder's
inequality), (sum of psi_r^(1/w_r))^w_r with weights w_r that add up to one: from above if all are positive [1]_, from
below if one is positive and the others are negative. Before that the mini-buckets of a bucket are matched: their
product is left as it is, and each gets the same weighted sums for the states of the site (moment matching, eq. 16 of
[1]_), which tightens the bound.

All tables are in logarithms, which do not underflow; zeros are minus infinity.

References
----------
.. [1] Liu, Q. and Ihler, A. (2011). Bounding the partition function using Hoelder's inequality. ICML.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.exponential import exp_below, log_above
from gibbsite._numba.jit import Integer, called, compiled_loop
from gibbsite.graphs.elimination.rings import Max
from gibbsite.inference.exact.potentials import Odometer, add_factors, make_odometer
from gibbsite.inference.exact.reduce import Reduced
from gibbsite.inference.exact.sweep import SLAB, SweepWorkspace, allocate_workspace, multiply_out
from gibbsite.inference.exact.tree import MOST_AXES
from gibbsite.inference.importance.mini_buckets.buckets import BucketPlan, Buckets, BucketTables

_RUN = 512  # entries that are summed at a time, in the processor's cache


class BucketWorkspace(NamedTuple):
    """Workspace: products, a run of sums and maxima, weights and shifts of a bucket."""

    sweeping: SweepWorkspace
    product: Floats
    top: Floats
    total: Floats
    weight: Floats
    moment: Floats


def make_workspace(plan: BucketPlan) -> BucketWorkspace:
    """Allocate the workspace of a pass."""
    buckets = plan.buckets
    tables = int(np.diff(buckets.first).max(initial=0)) + 1
    minis = int(np.diff(buckets.mini).max(initial=0))
    most_states = int(buckets.card.max(initial=1))
    longest = max(SLAB, most_states)
    sweeping = allocate_workspace(tables, tables * MOST_AXES, tables * longest, longest, 1)
    return BucketWorkspace(
        sweeping,
        np.empty(plan.scratch),
        np.empty(_RUN),
        np.empty(_RUN),
        np.empty(max(minis, 1)),
        np.empty((max(minis, 1) + 1, most_states)),
    )


def fill_pool(plan: BucketPlan, problem: Reduced) -> Floats:
    """Allocate the pool and write the logarithms of the potentials."""
    pool = np.empty(plan.pooled)
    potentials = int(plan.group.max(initial=-1)) + 1
    pool[: plan.pooled if potentials == plan.tables.at.size else int(plan.tables.at[potentials])] = 0.0
    _fill(problem, plan.group, plan.tables, plan.order[plan.tables.site], make_odometer(), pool)
    return pool


@compiled_loop
def _fill(problem: Reduced, group: Ints, tables: BucketTables, site: Ints, odometer: Odometer, pool: Floats) -> None:
    add_factors(problem, group, tables.at, tables.start, site, odometer, pool)


def eliminate_buckets(
    plan: BucketPlan, workspace: BucketWorkspace, pool: Floats, begin: int, end: int, negative: float = 0.0
) -> float:
    """Eliminate the buckets from ``begin`` up to ``end``; return the sum of the messages that are numbers."""
    return float(_eliminate(Max(), plan.tables, plan.buckets, workspace, pool, float(negative), begin, end))


@compiled_loop
def _eliminate(
    ring: Max,
    tables: BucketTables,
    buckets: Buckets,
    workspace: BucketWorkspace,
    pool: Floats,
    negative: float,
    begin: int,
    end: int,
) -> float:
    """Eliminate buckets, with equal weights if ``negative`` is zero, else with minus that for all but the first."""
    log_bound = 0.0
    for p in range(begin, end):
        first, minis = buckets.mini[p], buckets.mini[p + 1] - buckets.mini[p]
        card = buckets.card[p]
        used = np.int64(0)
        for r in range(minis):
            workspace.weight[r] = 1.0 / minis if negative == 0.0 else -negative
            _multiply_out(ring, tables, buckets, workspace, pool, first + r, used)
            used += buckets.size[first + r]
        if negative > 0.0:
            workspace.weight[0] = 1.0 + (minis - 1) * negative
        for r in range(minis):
            for k in range(card):
                workspace.moment[r, k] = 0.0
        if minis > 1:
            _match(buckets, workspace, first, minis, card)
        used = np.int64(0)
        for r in range(minis):
            m = first + r
            size = buckets.size[m] // card
            if buckets.message[m] < 0:
                out = np.int64(0)
                log_bound += _sum_out(workspace, used, size, card, r, workspace.total, out, True)
            else:
                out = tables.at[buckets.message[m]]
                _sum_out(workspace, used, size, card, r, pool, out, False)
            used += buckets.size[m]
    return log_bound


@called
def _multiply_out(
    ring: Max,
    tables: BucketTables,
    buckets: Buckets,
    workspace: BucketWorkspace,
    pool: Floats,
    m: Integer,
    used: Integer,
) -> None:
    """Write the product of a mini-bucket, in logarithms, to its place among the products."""
    begin = buckets.start[m]
    axes = buckets.start[m + 1] - begin
    for a in range(axes):
        workspace.sweeping.card[a] = buckets.card[buckets.site[begin + a]]
    rows = buckets.first[m + 1] - buckets.first[m]
    for r in range(rows):
        workspace.sweeping.mask[r] = buckets.mask[buckets.first[m] + r]
        workspace.sweeping.base[r] = np.uintp(tables.at[buckets.table[buckets.first[m] + r]])
    multiply_out(ring, workspace.sweeping, axes, rows, pool, workspace.product[used : used + buckets.size[m]])


@called
def _match(buckets: Buckets, workspace: BucketWorkspace, first: Integer, minis: Integer, card: Integer) -> None:
    """Find the shifts of the products, by state of the site, after which all have the same sums."""
    mean = workspace.moment.shape[0] - 1
    total = 0.0
    for k in range(card):
        workspace.moment[mean, k] = 0.0
    used = np.int64(0)
    for r in range(minis):
        size = buckets.size[first + r] // card
        total += workspace.weight[r]
        for k in range(card):
            workspace.moment[r, k] = _log_total(workspace.product, used + k * size, size, 1.0 / workspace.weight[r])
            workspace.moment[mean, k] += workspace.weight[r] * workspace.moment[r, k]
        used += buckets.size[first + r]
    for r in range(minis):
        for k in range(card):
            if workspace.moment[mean, k] > -np.inf and workspace.moment[mean, k] < np.inf:
                workspace.moment[r, k] = workspace.weight[r] * (
                    workspace.moment[mean, k] / total - workspace.moment[r, k]
                )
            else:  # an impossible state, which one of the products already excludes
                workspace.moment[r, k] = 0.0


@called
def _log_total(product: Floats, begin: Integer, size: Integer, power: float) -> float:
    """Return the logarithm of the sum of powers of a part of a product."""
    top, total = -np.inf, 0.0
    done = np.int64(0)
    while done < size:  # a part at a time, so that it is read from memory once
        length = np.uintp(min(_RUN, size - done))
        first = np.uintp(begin + done)
        a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
        four = np.uintp(4)
        for i in range(length // four):
            at = first + i * four
            a = max(a, power * product[at])
            b = max(b, power * product[at + np.uintp(1)])
            c = max(c, power * product[at + np.uintp(2)])
            d = max(d, power * product[at + np.uintp(3)])
        for i in range(length // four * four, length):
            a = max(a, power * product[first + i])
        here = max(max(a, b), max(c, d))
        done += _RUN
        if here == np.inf:
            return here
        if here > -np.inf:
            if here > top:
                total *= exp_below(top - here)
                top = here
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(length // four):
                at = first + i * four
                a += exp_below(power * product[at] - top)
                b += exp_below(power * product[at + np.uintp(1)] - top)
                c += exp_below(power * product[at + np.uintp(2)] - top)
                d += exp_below(power * product[at + np.uintp(3)] - top)
            for i in range(length // four * four, length):
                a += exp_below(power * product[first + i] - top)
            total += (a + b) + (c + d)
    return top + np.log(total) if total > 0.0 else -np.inf


@called
def _sum_out(
    workspace: BucketWorkspace,
    used: Integer,
    size: Integer,
    card: Integer,
    r: Integer,
    out: Floats,
    begin: Integer,
    single: bool,
) -> float:
    """Write the weighted sum of a product over its slowest axis; return it if it is a single number."""
    weight = workspace.weight[r]
    power = 1.0 / weight
    done = np.int64(0)
    while done < size:
        length = np.uintp(min(_RUN, size - done))
        for i in range(length):
            workspace.top[i] = -np.inf
        for k in range(card):
            shift = workspace.moment[r, k]
            at = np.uintp(used + k * size + done)
            for i in range(length):
                value = power * (workspace.product[at + i] + shift)
                workspace.top[i] = value if value > workspace.top[i] else workspace.top[i]
        for i in range(length):
            workspace.total[i] = 0.0
        for k in range(card):
            shift = workspace.moment[r, k]
            at = np.uintp(used + k * size + done)
            for i in range(length):
                workspace.total[i] += exp_below(power * (workspace.product[at + i] + shift) - workspace.top[i])
        at = np.uintp(begin + done)
        for i in range(length):
            total = workspace.total[i] if workspace.total[i] > 1.0 else 1.0
            out[at + i] = weight * (workspace.top[i] + log_above(total))
        done += _RUN
    return float(out[begin]) if single else 0.0
