"""Exact transition matrices of kernel x scan on tiny models, from the kernel's own compiled conditionals.

Column by column nothing is simulated: the probabilities of a site's next value come from the kernel's
``transition`` implementation, the order of visits from the compiled schedule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import Integer, compiled
from gibbsite._random.generators import load, store, stream
from gibbsite.errors import IncompatibleError
from gibbsite.exact.enumeration import Enumeration
from gibbsite.graph.graph import Graph
from gibbsite.kernel.base import Kernel, transition
from gibbsite.scan.base import Scan, period, refresh, site_at

Matrix = NDArray[np.float64]


@compiled
def _row(
    parameters: Any, arrays: Any, memory: Any, x: NDArray[Any], i: Integer, row: NDArray[np.float64]
) -> Integer:
    return transition(parameters, arrays, memory, x, i, row)


@compiled
def _visits(schedule: Any, order: NDArray[np.int32], rng: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """Write the sites of one period, as the run's loop would visit them."""
    words = refresh(schedule, order, load(rng))
    for k in range(out.size):
        out[k] = site_at(schedule, order, np.uintp(k))
    store(rng, words)


@compiled
def _length(schedule: Any) -> int:
    return period(schedule)


def site_matrix(exact: Enumeration, graph: Graph, kernel: Kernel, site: int) -> Matrix:
    """Return the transition matrix of one step at a site.

    Parameters
    ----------
    exact : Enumeration
        The model's states and law.
    graph : Graph
        The compiled model.
    kernel : Kernel
        A kernel that implements ``transition``.
    site : int
        Position of the site.

    Returns
    -------
    float array (states, states)
    """
    parameters = kernel.parameters(graph)
    memory = kernel.memory(graph, stream(0, 0))
    row = np.zeros(int(graph.cards.max(initial=1)))
    matrix = np.zeros((len(exact.states), len(exact.states)))
    for number, codes in enumerate(exact.states):
        if exact.probabilities[number] == 0.0:
            matrix[number, number] = 1.0  # never visited
            continue
        x = codes.astype(graph.state_dtype)
        size = _row(parameters, graph.arrays, memory, x, np.uintp(site), row)
        for code in range(size):
            moved = codes.copy()
            moved[site] = code
            matrix[number, exact.number(moved)] += row[code]
    return matrix


def scan_order(scan: Scan, graph: Graph, model: Any = None, seed: int = 0) -> NDArray[np.int64]:
    """Return the sites visited in one period of a scan, from the compiled schedule.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.compile_graph(gs.ising_grid((1, 3)))
    >>> scan_order(gs.Palindromic(), graph).tolist()
    [0, 1, 2, 2, 1, 0]
    """
    schedule = scan.schedule(graph, model)
    visits = np.zeros(int(_length(schedule)), np.int64)
    _visits(schedule, scan.buffer(graph), stream(seed, 0), visits)
    return visits


def sweep_matrix(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan) -> Matrix:
    """Return the transition matrix of one period of a fixed scan, or one step of a random one.

    A random scan with weights p has the matrix sum_i p_i P_i; p is read from the scan's own alias table. A
    shuffled scan averages the products over all permutations of the sites.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((1, 2), coupling=0.5)
    >>> exact, graph = gs.exact.enumerate(model), gs.compile_graph(model)
    >>> matrix = sweep_matrix(exact, graph, gs.Gibbs(), gs.Systematic())
    >>> bool(np.allclose(exact.probabilities @ matrix, exact.probabilities, atol=1e-14))
    True
    """
    steps = [site_matrix(exact, graph, kernel, i) for i in range(graph.n_sites)]
    if not scan.random:
        matrix = np.eye(len(exact.states))
        for site in scan_order(scan, graph, exact.model):
            matrix = matrix @ steps[site]
        return matrix
    schedule: Any = scan.schedule(graph, exact.model)
    if hasattr(schedule, "stay"):
        weight = np.full(graph.n_sites, 1.0 / graph.n_sites)
        if schedule.stay.size:
            weight = schedule.stay / graph.n_sites
            np.add.at(weight, schedule.other, (1.0 - schedule.stay) / graph.n_sites)
        return np.asarray(sum(w * step for w, step in zip(weight, steps, strict=True)))
    from itertools import permutations

    orders = list(permutations(range(graph.n_sites)))
    if len(orders) > 720:
        raise IncompatibleError("The matrix of a shuffled scan needs at most 6 sites.")
    total = np.zeros_like(steps[0])
    for order in orders:
        product = np.eye(len(exact.states))
        for site in order:
            product = product @ steps[site]
        total += product / len(orders)
    return total
