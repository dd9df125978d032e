"""Forward sampling: a draw from a Bayesian network, parents before children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Ints32, Words64
from gibbsite._numba.jit import compiled, interpreted
from gibbsite._numba.random.generators import load, store, uniform
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.support.possible import Whole

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


class DrawOrder(NamedTuple):
    """Which factor is the conditional table of each site (-1: only its own weights), and an order."""

    table: Ints32
    order: Ints32


def find_draw_order(model: FactorGraph, graph: Graph) -> tuple[TableGraph, DrawOrder] | None:
    """Return the directed factors if every site has exactly one and they form no cycle."""
    tables = np.zeros(model.n_sites, np.int64)
    table = np.full(model.n_sites, -1, np.int32)
    number = 0  # factors are numbered as compile_graph does: in group order, single sites left out
    for group in model.groups:
        if group.directed:
            children = group.scopes[:, -1]
            tables += np.bincount(children, minlength=model.n_sites)
            if group.arity > 1:
                table[children] = np.arange(number, number + group.size, dtype=np.int32)
        number += group.size if group.arity > 1 else 0
    if not (tables == 1).all():
        return None
    arrays: Any = (graph if graph.kind == "table" else compile_graph(model, "table")).arrays
    order = np.zeros(model.n_sites, np.int32)
    with interpreted(2.0 * (arrays.member.size + order.size)):
        if _sort_sites(arrays, table, order) < model.n_sites:
            return None
    return arrays, DrawOrder(table, order)


@compiled
def _sort_sites(g: TableGraph, table: Ints32, order: Ints32) -> Whole:
    """Fill ``order`` with sites whose parents come before them; return how many there are."""
    missing = np.zeros(table.size, np.int64)
    filled = 0
    for i in range(table.size):
        f = np.int64(table[i])
        if f >= 0:
            missing[i] = np.int64(g.member_start[f + 1]) - np.int64(g.member_start[f]) - 1
        if missing[i] == 0:
            order[filled] = i
            filled += 1
    at = 0
    while at < filled:
        parent = np.int64(order[at])
        at += 1
        for k in range(np.int64(g.start[parent]), np.int64(g.start[parent + 1])):
            f = np.int64(g.factor[k])
            child = np.int64(g.member[np.int64(g.member_start[f + 1]) - 1])
            if child != parent and table[child] == f:
                missing[child] -= 1
                if missing[child] == 0:
                    order[filled] = child
                    filled += 1
    return np.int64(filled)


@compiled
def draw_forward(g: TableGraph, network: DrawOrder, alive: Bools, x: Array, words: Words64) -> None:
    """Draw every site given its parents, among its living states; where all weigh nothing, uniformly."""
    rng = load(words)
    w = np.zeros(np.int64(g.card.max()))
    for place in range(network.order.size):
        i = np.int64(network.order[place])
        f = np.int64(network.table[i])
        cell, card = g.offset[i], np.int64(g.card[i])
        entry = np.int64(0)
        if f >= 0:
            entry = g.table[f]
            for m in range(np.int64(g.member_start[f]), np.int64(g.member_start[f + 1]) - 1):
                entry += g.stride[m] * x[np.int64(g.member[m])]
        total = 0.0
        for a in range(card):
            w[a] = g.unary[cell + a] if alive[cell + a] else 0.0
            if f >= 0:
                w[a] *= g.value[entry + a]  # the child is the last member: its stride is one
            total += w[a]
        if total == 0.0:
            for a in range(card):
                w[a] = 1.0 if alive[cell + a] else 0.0
                total += w[a]
        rng, u = uniform(rng)
        u *= total
        chosen = np.int64(-1)
        for a in range(card):
            if w[a] > 0.0 and (chosen < 0 or u >= 0.0):
                chosen = np.int64(a)
            u -= w[a]
        x[i] = chosen
    store(words, rng)
