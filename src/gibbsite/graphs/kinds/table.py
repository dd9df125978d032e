"""Tables over any number of sites of any number of states: the kind that every factor graph fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Codes, Floats, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, implement, inlined
from gibbsite.graphs.kinds.base import Cells, Tables, groups_of
from gibbsite.graphs.local import ONE, TINY, from_logs, log_potential, log_weights, own_weights, weights
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import row_starts
from gibbsite.models.factorgraph import FactorGraph


class TableGraph(NamedTuple):
    """Sites of any cardinality with tables over any number of sites.

    Row k of site i gives one of its factors and its stride in the table of that factor. Factor f has members
    ``member[member_start[f] : member_start[f + 1]]`` with their strides and starts at ``table[f]``.
    """

    start: Words32
    factor: Words32
    own_stride: Ints
    member_start: Words32
    member: Words32
    stride: Ints
    table: Ints
    card: Ints32
    offset: Ints
    unary: Floats
    log_unary: Floats
    value: Floats
    log_value: Floats

    def pairs(self) -> Ints:
        """Return all pairs of sites that share a factor, each once, the smaller one first."""
        width = np.diff(self.member_start.astype(np.int64))
        n, found = self.card.size, [np.zeros(0, np.int64)]
        for arity in np.unique(width):
            first = self.member_start[:-1][width == arity].astype(np.int64)
            scope = np.sort(self.member[first[:, None] + np.arange(arity)].astype(np.int64), axis=1)
            a, b = np.triu_indices(int(arity), 1)
            found.append((scope[:, a] * n + scope[:, b]).ravel())
        return np.stack(np.divmod(np.unique(np.concatenate(found)), max(n, 1)), axis=1)


@register(name="table", rank=5)
def build_table(model: FactorGraph, without: type | None = None) -> tuple[TableGraph, float]:
    """Build the graph of any discrete model; groups of a class that another kind holds can be left out."""
    cells, tables = Cells.collect(model), Tables()
    starts: list[Ints] = []
    members: list[Ints32] = []
    strides: list[Ints] = []
    widths: list[Ints] = []
    for group in groups_of(model):
        if group.arity >= 2 and not (without is not None and isinstance(group, without)):
            shifted = tables.add(group, model.cards)
            starts.append(tables.keep(shifted, group.size))
            members.append(group.scopes.ravel())
            stride = np.ones(group.arity, np.int64)
            stride[:-1] = np.cumprod(np.array(shifted.shape[:1:-1], np.int64))[::-1]
            strides.append(np.tile(stride, group.size))
            widths.append(np.full(group.size, group.arity, np.int64))
    width = np.concatenate(widths) if widths else np.zeros(0, np.int64)
    member = np.concatenate(members) if members else np.zeros(0, np.int32)
    stride = np.concatenate(strides) if strides else np.zeros(0, np.int64)
    factor = np.repeat(np.arange(width.size, dtype=np.int64), width)
    # rows of sites: a stable sort of (site, factor) pairs by site
    by_site = np.argsort(member, kind="stable")
    start = row_starts(np.bincount(member, minlength=model.n_sites), np.uint32)
    member_start = row_starts(width, np.uint32)
    logs = tables.joined()
    arrays = TableGraph(
        start=start,
        factor=factor[by_site].astype(np.uint32),
        own_stride=stride[by_site],
        member_start=member_start,
        member=member.astype(np.uint32),
        stride=stride,
        table=np.concatenate(starts) if starts else np.zeros(0, np.int64),
        **cells.columns(model),
        value=np.exp(logs),
        log_value=logs,
    )
    return arrays, cells.constant + tables.constant


@inlined
def entry_of(arrays: TableGraph, x: Codes, f: Integer) -> Integer:
    """Return the position in ``value`` of the entry of factor f at state x."""
    entry = arrays.table[f]
    for m in range(np.uintp(arrays.member_start[f]), np.uintp(arrays.member_start[f + ONE])):
        entry += arrays.stride[m] * x[np.uintp(arrays.member[m])]
    return np.uintp(entry)


@implement(log_weights, TableGraph)
def _log_weights_table(arrays: TableGraph, x: Codes, i: Integer, w: Floats) -> Integer:
    size, now = own_weights(arrays, arrays.log_unary, i, w), np.uintp(x[i])
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        own = np.uintp(arrays.own_stride[k])
        entry = entry_of(arrays, x, np.uintp(arrays.factor[k])) - own * now
        for a in range(size):
            w[a] += arrays.log_value[entry + own * a]
    return np.int64(size)


@implement(weights, TableGraph)
def _weights_table(arrays: TableGraph, x: Codes, i: Integer, w: Floats) -> tuple[Integer, float]:
    size, now = own_weights(arrays, arrays.unary, i, w), np.uintp(x[i])
    for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + ONE])):
        own = np.uintp(arrays.own_stride[k])
        entry = entry_of(arrays, x, np.uintp(arrays.factor[k])) - own * now
        for a in range(size):
            w[a] *= arrays.value[entry + own * a]
    total = 0.0
    for a in range(size):
        total += w[a]
    if total < TINY:
        log_weights(arrays, x, i, w)
        total = from_logs(w, size)
    return np.int64(size), total


@implement(log_potential, TableGraph)
def _log_potential_table(arrays: TableGraph, x: Codes) -> float:
    total = 0.0
    for site in range(x.size):
        i = np.uintp(site)
        total += arrays.log_unary[np.uintp(arrays.offset[i]) + np.uintp(x[i])]
    for f in range(arrays.table.size):
        total += arrays.log_value[entry_of(arrays, x, np.uintp(f))]
    return total
