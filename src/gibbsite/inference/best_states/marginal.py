"""Marginal MAP: the best states of some sites with all others summed out.

The other sites are summed out one after another, smallest table first. This leaves a model of the sites to maximise
over, whose log-potential is the logarithm of their joint probability times the partition function of the whole model.
Its best state is found exactly or by annealing, like that of any other model.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, SupportError, TooLargeError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.models import FactorGraph
from gibbsite.models.networks.expansion import expand

if TYPE_CHECKING:
    from collections.abc import Sequence

Table = tuple[tuple[int, ...], Floats]  # sites in ascending order, log-potentials

#: Largest table, over sites to maximise over or while a site is summed out.
MOST_ENTRIES = 1 << 22


def read_maximised(model: FactorGraph, sites: Any) -> tuple[str, ...]:
    """Return the names of the sites to maximise over, in order, each once, without observed ones."""
    if isinstance(sites, str) or not isinstance(sites, Iterable):
        raise ArgumentError(f"{argument('maximise')} must be a list of sites to maximise over, got {sites!r}.")
    named = list(sites)
    if not named:
        raise ArgumentError(f"{argument('maximise')} names no site; name those to maximise over, or ask for PR.")
    free = [site for site in named if site not in model.evidence]
    return tuple(model.sites[i] for i in sorted({model.index(site) for site in free}))


def sum_out(model: FactorGraph, keep: Sequence[str]) -> FactorGraph:
    """Return the model of the sites in ``keep`` with all others summed out; its log-potentials are logs of sums.

    Raises :class:`TooLargeError` if a table would have more than :data:`MOST_ENTRIES` entries.
    """
    model = expand(model)
    graph = compile_graph(model, "table")
    cards = [int(size) for size in graph.cards]
    kept = {model.index(site) for site in keep}
    touching: list[set[int]] = [set() for _ in cards]
    tables: dict[int, Table] = {}
    numbers: list[int] = []
    for scope, logs in _list_tables(graph.arrays):
        _add(tables, touching, numbers, scope, logs)
    constant = float(graph.log_offset)
    heap = [(_cost(tables, touching, cards, i), i) for i in range(len(cards)) if i not in kept]
    heapq.heapify(heap)
    gone: set[int] = set()
    while heap:
        cost, i = heapq.heappop(heap)
        if i in gone:
            continue
        now = _cost(tables, touching, cards, i)
        if now != cost:  # the cost has changed since it was queued
            heapq.heappush(heap, (now, i))
            continue
        if cost > math.log2(MOST_ENTRIES) + 1e-9:
            raise TooLargeError(
                f"Summing out the other sites needs a table of 2^{cost:.0f} entries, more than the limit of "
                f"2^{math.log2(MOST_ENTRIES):.0f}; maximise over more sites, or observe some."
            )
        gone.add(i)
        used = sorted(touching[i])
        scope, logs = _multiply([tables[f] for f in used], cards)
        for f in used:
            for j in tables.pop(f)[0]:
                touching[j].discard(f)
        axis = scope.index(i)
        rest, message = scope[:axis] + scope[axis + 1 :], _log_sum(logs, axis)
        top = float(message.max())
        if top == -math.inf:
            raise SupportError("No state has positive probability; check the zeros and the evidence.")
        constant += top
        if rest:
            _add(tables, touching, numbers, rest, message - top)
    names = model.sites
    left = [(tuple(names[i] for i in scope), logs) for scope, logs in tables.values()]
    labels = {names[i]: list(model.labels(i)) for i in sorted(kept)}
    return FactorGraph(labels, log_factors=[((), constant), *left])


def _list_tables(arrays: TableGraph) -> list[Table]:
    """Return fields and factors of a model as tables whose axes are in the order of the sites."""
    found: list[Table] = []
    for i, size in enumerate(arrays.card.tolist()):
        first = int(arrays.offset[i])
        found.append(((i,), arrays.log_unary[first : first + size]))
    bounds = arrays.member_start.astype(np.int64)
    for f, first in enumerate(arrays.table.tolist()):
        members = arrays.member[bounds[f] : bounds[f + 1]].astype(np.int64)
        shape = tuple(arrays.card[members].tolist())
        logs = arrays.log_value[first : first + math.prod(shape)].reshape(shape)
        order = np.argsort(members)
        found.append((tuple(members[order].tolist()), logs.transpose(order)))
    return found


def _add(
    tables: dict[int, Table], touching: list[set[int]], numbers: list[int], scope: tuple[int, ...], logs: Floats
) -> None:
    """Add a table under a new number."""
    number = len(numbers)
    numbers.append(number)
    tables[number] = (scope, logs)
    for i in scope:
        touching[i].add(number)


def _cost(tables: dict[int, Table], touching: list[set[int]], cards: list[int], i: int) -> float:
    """Return log2 of the entries of the table needed to sum out a site."""
    scope = {i}.union(*(tables[f][0] for f in touching[i]))
    return sum(math.log2(cards[j]) for j in scope)


def _multiply(parts: list[Table], cards: list[int]) -> Table:
    """Return the product of tables, which is the sum of their logarithms."""
    scope = tuple(sorted(set().union(*(part for part, _ in parts))))
    total = np.zeros([cards[i] for i in scope])
    for part, logs in parts:
        total += logs.reshape([cards[i] if i in part else 1 for i in scope])
    return scope, total


def _log_sum(logs: Floats, axis: int) -> Floats:
    top = logs.max(axis=axis, keepdims=True)
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.exp(logs - safe).sum(axis=axis)) + np.squeeze(safe, axis)
    return found
