"""Where chains start: random, dispersed states of positive probability.

Without zeros every state will do. With zeros a start is drawn forward (Bayesian networks) or at random among
the states that survive propagation, then repaired, and if repair gets stuck it is searched for. Everything
is bounded by numbers of table entries read, not by time, so that a seed always gives the same start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import ModelError, SupportError
from gibbsite.graph.kinds import TableGraph
from gibbsite.graph.lower import Graph
from gibbsite.graph.support import (
    Board,
    Constraints,
    evidence_text,
    has_zeros,
    propagated,
    scope_text,
    tighten,
)

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph
    from gibbsite.run._forward import Network

State = NDArray[np.signedinteger[Any]]

_TRIES = 4  # rounds of repairs and a search, each with five times the effort of the one before
_PATIENCE, _PATIENCE_PER_FACTOR = 200_000, 20  # table entries a repair reads without progress
_SEARCH = 1_000_000  # table entries the search reads
_OTHERS = 5  # how often a start equal to that of another chain is drawn again


@dataclass(frozen=True)
class _Problem:
    """What is known about the zeros of a graph."""

    constraints: Constraints
    board: Board
    network: tuple[TableGraph, Network] | None
    touched: NDArray[np.bool_]  # sites that have more than one living state and zeros around them


def _pose(model: FactorGraph, graph: Graph) -> _Problem:
    """Propagate the zeros of a graph; the answer is kept for the next question about the same graph."""
    kept = graph.structure.get("zeros")
    if kept is not None and kept[0] == graph.digest:
        problem: _Problem = kept[1]
        return problem
    from gibbsite.run._forward import find_network

    constraints, board = propagated(graph, model)
    touched = (np.diff(constraints.start) > 0) & (board.count > 1)
    problem = _Problem(constraints, board, find_network(model, graph), touched)
    # one slot: reweighted copies share the dictionary, and their zeros may differ
    graph.structure["zeros"] = (graph.digest, problem)
    return problem


def find_start(model: FactorGraph, graph: Graph, rng: np.random.Generator, tries: int = _TRIES) -> State:
    """Return a random state of positive probability.

    Parameters
    ----------
    model : FactorGraph
        The model.
    graph : Graph
        The same, compiled.
    rng : numpy.random.Generator
        Source of randomness.
    tries : int
        Rounds of repair and search, each with five times the effort of the one before.

    Returns
    -------
    int array (n,)
        State codes.

    Raises
    ------
    SupportError
        If there is no such state, or none was found; it names factors that stay in conflict.

    Examples
    --------
    >>> from gibbsite.graph import compile_graph
    >>> from gibbsite.model import FactorGraph
    >>> model = FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[0, 1], [1, 0]])])
    >>> x = find_start(model, compile_graph(model), np.random.default_rng(1))
    >>> int(x[0] + x[1])
    1
    """
    if not has_zeros(graph):
        return _uniform_codes(graph, rng)
    problem = _pose(model, graph)
    x, proved, culprits = _solve(problem, problem.board, graph, rng, tries)
    if x is None:
        raise SupportError(_failure_text(problem, model, proved, culprits))
    return x


def find_state_with(
    model: FactorGraph, graph: Graph, site: int, code: int, rng: np.random.Generator
) -> tuple[State | None, bool]:
    """Return a state of positive probability in which a site has a given state.

    Parameters
    ----------
    model, graph, rng
        As for :func:`find_start`.
    site, code : int
        Position of the site, code of its state.

    Returns
    -------
    int array (n,) or None
        State codes, None if none was found.
    bool
        Whether it is proved that there is none.

    Examples
    --------
    >>> from gibbsite.graph import compile_graph
    >>> from gibbsite.model import FactorGraph
    >>> model = FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[0, 1], [0, 0]])])
    >>> find_state_with(model, compile_graph(model), 0, 1, np.random.default_rng(1))
    (None, True)
    """
    if not has_zeros(graph):
        x = _uniform_codes(graph, rng)
        x[site] = code
        return x, False
    try:
        problem = _pose(model, graph)
    except SupportError:
        return None, True
    if not problem.board.alive[problem.constraints.offset[site] + code]:
        return None, True
    board = _copy_board(problem.board)
    if tighten(problem.constraints, board, site, code) >= 0:
        return None, True
    found, proved, _ = _solve(problem, board, graph, rng, _TRIES)
    return found, proved


def _solve(
    problem: _Problem, board: Board, graph: Graph, rng: np.random.Generator, tries: int
) -> tuple[State | None, bool, NDArray[np.int64]]:
    """Return a state whose members live on the board, or None, whether that is proved, and culprits."""
    from gibbsite.run._repair import repair
    from gibbsite.run._search import FOUND, IMPOSSIBLE, search

    c = problem.constraints
    words = rng.integers(1, 2**64, 4, np.uint64)
    culprits, fewest = np.full(3, -1), c.table.size + 1
    for attempt in range(tries):
        effort = 5**attempt
        patience = effort * (_PATIENCE + _PATIENCE_PER_FACTOR * c.table.size)
        for greedy in (True, False):
            x = _draw(problem, board, graph, rng, words)
            named = np.full(3, -1)
            left = repair(c, board, x, words, patience, greedy, named)
            if left == 0:
                return x, False, named
            if left < fewest:
                fewest, culprits = left, named
        # where the walk ended only few factors are violated: a good hint for the search
        answer = search(c, _copy_board(board), x, words, effort * _SEARCH)
        if answer == FOUND:
            return x, False, culprits
        if answer == IMPOSSIBLE:
            return None, True, culprits
    return None, False, culprits


def _draw(
    problem: _Problem,
    board: Board,
    graph: Graph,
    rng: np.random.Generator,
    words: NDArray[np.uint64],
) -> State:
    """Draw a state of living codes: forward in a network, otherwise each site on its own."""
    if problem.network is not None:
        from gibbsite.run._forward import draw_forward

        x = np.zeros(graph.n_sites, graph.state_dtype)
        draw_forward(*problem.network, board.alive, x, words)
        return x
    # the k-th living cell of a site, k uniform
    living = np.flatnonzero(board.alive)
    first = np.cumsum(board.count) - board.count
    cells = living[first + rng.integers(0, board.count)]
    return (cells - problem.constraints.offset[:-1]).astype(graph.state_dtype)


def _uniform_codes(graph: Graph, rng: np.random.Generator) -> State:
    cards = graph.cards
    if cards.size and cards.strides == (0,):
        return rng.integers(0, int(cards[0]), cards.size, graph.state_dtype)
    return rng.integers(0, cards, dtype=graph.state_dtype)


def _copy_board(board: Board) -> Board:
    return Board(*(part.copy() for part in board))


def start_states(
    model: FactorGraph, graph: Graph, chains: int, start: Any = None, entropy: int = 0
) -> list[State]:
    """Return the start of every chain.

    Parameters
    ----------
    model : FactorGraph
        The model.
    graph : Graph
        The same, compiled.
    chains : int
        Number of chains.
    start : None, "auto", "random", mapping or int array
        By default random states of positive probability, different ones if possible; "random": all
        codes uniform; site -> label for every site; codes (n,) for all chains or (chains, n).
    entropy : int
        The seed of the run; chain c has a generator of its own, whatever the other chains do.

    Returns
    -------
    list of int arrays (n,)
        State codes.

    Raises
    ------
    SupportError
        If no start is found or a given one is impossible; it names a factor.
    ModelError
        If a given start has a wrong shape, or unknown sites, labels or codes.

    Examples
    --------
    >>> from gibbsite.graph import compile_graph
    >>> from gibbsite.model import FactorGraph
    >>> model = FactorGraph({"a": ["x", "y"], "b": 2}, [(("a", "b"), [[0, 1], [1, 0]])])
    >>> [x.tolist() for x in start_states(model, compile_graph(model), 2, {"a": "y", "b": 0})]
    [[1, 0], [1, 0]]
    """
    if start is None or (isinstance(start, str) and start == "auto"):
        return _automatic(model, graph, chains, entropy)
    if isinstance(start, str):
        if start != "random":
            raise ModelError(
                f'start={start!r} is unknown; use "auto", "random", a mapping site -> label or codes.'
            )
        given = [_uniform_codes(graph, _chain_rng(entropy, c)) for c in range(chains)]
        advice = 'use the default start="auto", which looks for a possible state'
    elif isinstance(start, Mapping):
        given = [_read_labels(model, graph, start)] * chains
        advice = "change the start or leave it out"
    else:
        given = _read_codes(model, graph, chains, start)
        advice = "change the start or leave it out"
    _check_support(model, graph, given, advice)
    return [x.copy() for x in given]


def _chain_rng(entropy: int, chain: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(chain, 1)))


def _automatic(model: FactorGraph, graph: Graph, chains: int, entropy: int) -> list[State]:
    states: list[State] = []
    zeros = has_zeros(graph)
    for chain in range(chains):
        rng = _chain_rng(entropy, chain)
        x = find_start(model, graph, rng)
        if zeros:
            touched = _pose(model, graph).touched
            for _ in range(_OTHERS if touched.any() else 0):
                if not any((x[touched] == other[touched]).all() for other in states):
                    break
                x = find_start(model, graph, rng)
        states.append(x)
    return states


def _read_labels(model: FactorGraph, graph: Graph, start: Mapping[Any, Any]) -> State:
    x = np.full(graph.n_sites, -1, graph.state_dtype)
    evidence = model.evidence
    for site, label in start.items():
        if isinstance(site, str) and site in evidence:
            if str(evidence[site]) != str(label):
                raise SupportError(
                    f"The start has {site}={label!r}, but the evidence says {evidence[site]!r}; "
                    "leave observed sites out of the start."
                )
            continue
        x[model.index(site)] = model.code(site, label)
    if (x < 0).any():
        missing = model.sites[int(np.argmax(x < 0))]
        raise ModelError(f"The start has no state for the site {missing!r}; name every free site.")
    return x


def _read_codes(model: FactorGraph, graph: Graph, chains: int, start: Any) -> list[State]:
    codes = np.asarray(start)
    n = graph.n_sites
    if codes.shape not in ((n,), (chains, n)) or (codes.dtype.kind not in "iu" and codes.size):
        raise ModelError(
            f"A start needs integer state codes of shape ({n},) or ({chains}, {n}) for {chains} chains, "
            f"got {codes.dtype} of shape {codes.shape}; labels go into a mapping."
        )
    for row in codes.reshape(-1, n) if n else ():
        outside = (row < 0) | (row >= graph.cards)
        if outside.any():
            i = int(np.argmax(outside))
            raise ModelError(
                f"The start gives the site {model.sites[i]!r} the state code {row[i]}; its codes run "
                f"from 0 to {graph.cards[i] - 1}."
            )
    rows = np.broadcast_to(codes, (chains, n)).astype(graph.state_dtype)
    return list(rows)


def _check_support(model: FactorGraph, graph: Graph, states: list[State], advice: str) -> None:
    """Refuse states of probability zero, naming a site or factor that excludes one."""
    if not has_zeros(graph):
        return
    from gibbsite.graph.support import find_constraints

    c, arrays = find_constraints(graph), graph.arrays
    for chain, x in enumerate(states):
        where = f"The start of chain {chain}" if len(states) > 1 else "The start"
        bad = np.flatnonzero(np.isneginf(arrays.log_unary[c.offset[:-1] + x]))  # type: ignore[union-attr]
        if bad.size:
            i = int(bad[0])
            label = model.labels(i)[int(x[i])]
            raise SupportError(
                f"{where} is impossible: {model.sites[i]}={label!r} has weight zero; {advice}."
            )
        if c.table.size:
            entries = c.table + np.add.reduceat(c.stride * x[c.member], c.member_start[:-1])
            broken = np.flatnonzero(~c.allowed[entries])
            if broken.size:
                scope = scope_text(c, int(broken[0]), model)
                raise SupportError(f"{where} is impossible: the factor over {scope} is zero there; {advice}.")


def _failure_text(problem: _Problem, model: FactorGraph, proved: bool, culprits: NDArray[np.int64]) -> str:
    fighting = [scope_text(problem.constraints, int(f), model) for f in culprits if f >= 0]
    scopes = f"; the factors over {', '.join(fighting)} stay in conflict" if fighting else ""
    observed = evidence_text(model)
    if proved:
        return (
            f"No state of this model has positive probability{observed}{scopes}; check their zeros "
            "and the evidence."
        )
    return (
        f"No state of positive probability was found{observed}{scopes}; check the evidence, or give "
        "a possible state as start=."
    )
