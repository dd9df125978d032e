"""Starts of chains: random, dispersed states of positive probability.

Without zeros every state is possible. With zeros, a start is drawn by forward sampling (Bayesian networks) or at random
among the states that survive propagation, and then repaired; if the repair fails, a search follows. Effort is limited
by the number of table entries read, not by time, so that a seed always gives the same start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Codes, Ints, Ints32, Words64
from gibbsite._common.wording import unknown
from gibbsite._numba.jit import compiled, interpreted
from gibbsite._numba.random.generators import load, store, uniform
from gibbsite.errors import ArgumentError, SupportError
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.support.possible import (
    LiveStates,
    Support,
    Whole,
    broken_factors,
    copy_live,
    evidence_text,
    find_support,
    has_zeros,
    scope_text,
    tighten,
    with_hidden_sites,
)
from gibbsite.models.factorgraph import FactorGraph

if TYPE_CHECKING:
    from gibbsite.graphs.kinds.table import TableGraph

_TRIES = 4  # rounds of repairs and a search, each with four times the effort of the previous one
_PATIENCE, _PATIENCE_PER_FACTOR = 200_000, 50  # table entries a repair reads without progress
_SEARCH, _SEARCH_PER_SITE = 1_000_000, 100  # table entries the search reads
_STEPS_TO_DRAW = 5.0  # estimated steps of plain Python for each state and member of a factor
_OTHERS = 10  # sites at which a start that equals another one may be changed


class DrawOrder(NamedTuple):
    """The factor that is the conditional table of each site (-1 if it has only its own weights), and an order."""

    table: Ints32
    order: Ints32


class _Drawing(NamedTuple):
    """The model as a Bayesian network, if it is one."""

    network: tuple[TableGraph, DrawOrder] | None


def find_start(model: FactorGraph, graph: Graph, rng: np.random.Generator, tries: int = _TRIES) -> Codes:
    """Return a random state of positive probability, after at most ``tries`` rounds of repair and search."""
    if not has_zeros(graph):
        return _uniform_codes(graph, rng)
    if graph.kind == "causes":
        wide = with_hidden_sites(graph)
        return find_start(wide.require_model(), wide, rng, tries)[: graph.n_sites]
    support = find_support(graph, model)
    x, proved, culprits = _solve(support, support.board, graph, rng, tries)
    if x is not None:
        return x
    fighting = [scope_text(support.constraints, int(f), model) for f in culprits if f >= 0]
    scopes = f"; the factors over {', '.join(fighting)} stay in conflict" if fighting else ""
    observed = evidence_text(model)
    if proved:
        raise SupportError(
            f"No state of this model has positive probability{observed}{scopes}; check their zeros and the evidence."
        )
    raise SupportError(
        f"No state of positive probability was found{observed}{scopes}; check the evidence, or give "
        "a possible state as start=."
    )


def find_state_with(
    model: FactorGraph, graph: Graph, site: int, code: int, rng: np.random.Generator
) -> tuple[Codes | None, bool]:
    """Return a possible state in which a site has a given state, or None, and whether None is proved."""
    if not has_zeros(graph):
        x = _uniform_codes(graph, rng)
        x[site] = code
        return x, False
    if graph.kind == "causes":
        wide = with_hidden_sites(graph)
        found, proved = find_state_with(wide.require_model(), wide, site, code, rng)
        return None if found is None else found[: graph.n_sites], proved
    try:
        support = find_support(graph, model)
    except SupportError:
        return None, True
    if not support.board.alive[support.constraints.offset[site] + code]:
        return None, True
    board = copy_live(support.board)
    with interpreted(support.steps, least_charge=support.steps):
        wiped_out = int(tighten(support.constraints, board, site, code)) >= 0
    if wiped_out:
        return None, True
    found, proved, _ = _solve(support, board, graph, rng, _TRIES - 1)
    return found, proved


_Answer = tuple[Codes | None, bool, Ints]


def _solve(support: Support, board: LiveStates, graph: Graph, rng: np.random.Generator, tries: int) -> _Answer:
    """Return a possible state of living codes, or None; whether None is proved; and factors in conflict."""
    c = support.constraints
    words = rng.integers(1, 2**64, 4, np.uint64)
    culprits, fewest = np.full(3, -1), c.table.size + 1
    kept = graph.cache.get(_Drawing) or graph.cache.put(_Drawing(find_draw_order(graph.require_model(), graph)))
    living = np.flatnonzero(board.alive)
    first = np.cumsum(board.living) - board.living
    for attempt in range(tries):
        effort = 4**attempt
        patience = effort * (_PATIENCE + _PATIENCE_PER_FACTOR * c.table.size)
        if kept.network is not None:  # draw forward
            x: Codes = np.zeros(graph.n_sites, graph.state_dtype)
            steps = _STEPS_TO_DRAW * (graph.n_cells + kept.network[0].member.size)
            with interpreted(steps, least_charge=steps):
                draw_forward(*kept.network, board.alive, x, words)
        else:  # the k-th living cell of each site, k uniform
            x = (living[first + rng.integers(0, board.living)] - c.offset[:-1]).astype(graph.state_dtype)
        if not broken_factors(c, x).size:
            return x, False, np.full(3, -1)
        from gibbsite.graphs.support.backtracking import FOUND, IMPOSSIBLE, search
        from gibbsite.graphs.support.repair import repair

        with interpreted(np.inf):  # the work cannot be predicted
            for greedy in (False, True):
                named = np.full(3, -1)
                left = repair(c, board, x, words, patience, greedy, named)
                if left == 0:
                    return x, False, named
                if left < fewest:
                    fewest, culprits = left, named
            # few factors are violated at the end of the walk, so its state is a good hint for the search
            budget = effort * (_SEARCH + _SEARCH_PER_SITE * graph.n_sites)
            answer = search(c, copy_live(board), x, words, budget)
        if answer == FOUND:
            return x, False, culprits
        if answer == IMPOSSIBLE:
            return None, True, culprits
    return None, False, culprits


def _uniform_codes(graph: Graph, rng: np.random.Generator) -> Codes:
    cards = graph.cards
    if cards.size and cards.strides == (0,):
        return rng.integers(0, int(cards[0]), cards.size, graph.state_dtype)
    return rng.integers(0, cards, dtype=graph.state_dtype)


def start_states(model: Any, graph: Graph, chains: int, start: Any = None, entropy: int = 0) -> list[Array]:
    """Return the start of every chain.

    By default these are random states of positive probability, different ones if possible. For "random" all codes are
    uniform. A start can also be a mapping site -> label for every site, or codes (n,) for all chains or (chains, n).
    Each chain has its own generator.
    """
    if not graph.discrete:
        from gibbsite.graphs.support.given import start_values

        return start_values(model, graph, [_chain_rng(entropy, c) for c in range(chains)], start)
    if start is None or (isinstance(start, str) and start == "auto"):
        if graph.kind == "causes" and has_zeros(graph):
            wide = with_hidden_sites(graph)
            return [x[: graph.n_sites] for x in start_states(wide.model, wide, chains, entropy=entropy)]
        states: list[Codes] = []
        support = find_support(graph, model) if has_zeros(graph) else None
        for chain in range(chains):
            rng = _chain_rng(entropy, chain)
            x = find_start(model, graph, rng)
            if support is not None and states:
                touched = support.touched
                if (np.stack(states)[:, touched] == x[touched]).all(axis=1).any():
                    x = _elsewhere(support, graph, rng, states, x)
            states.append(x)
        return states
    from gibbsite.graphs.support.given import check_support, read_start

    if isinstance(start, str):
        if start != "random":
            raise ArgumentError(
                unknown("start", start, ("auto", "random"), ", or give a mapping site -> label or codes")
            )
        codes = np.stack([_uniform_codes(graph, _chain_rng(entropy, c)) for c in range(chains)])
        advice = 'use the default start="auto", which looks for a possible state'
    else:
        codes = read_start(model, graph, chains, start)
        advice = "change the start or leave it out"
    check_support(model, graph, codes, advice)
    return [x.copy() for x in np.broadcast_to(codes, (chains, graph.n_sites))]


def _chain_rng(entropy: int, chain: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(chain, 1)))


def _elsewhere(support: Support, graph: Graph, rng: np.random.Generator, taken: list[Codes], x: Codes) -> Codes:
    """Return a start that differs from all taken ones at some site; ``x`` if none is found quickly."""
    sites, c = np.flatnonzero(support.touched), support.constraints
    for site in rng.permutation(sites)[:_OTHERS].tolist():
        fresh = support.board.alive[c.offset[site] : c.offset[site + 1]].copy()
        fresh[np.stack(taken)[:, site]] = False
        if not fresh.any():
            continue
        board, code = copy_live(support.board), int(rng.choice(np.flatnonzero(fresh)))
        with interpreted(support.steps, least_charge=support.steps):
            wiped_out = int(tighten(c, board, site, code)) >= 0
        if not wiped_out:
            found, _, _ = _solve(support, board, graph, rng, 1)
            if found is not None:
                return found
    return x


# ---- forward sampling of a Bayesian network, parents before children


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
    """Fill ``order`` with sites whose parents come before them; return the number of such sites."""
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
    """Draw every site given its parents, among its living states; uniformly if all their weights are zero."""
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
