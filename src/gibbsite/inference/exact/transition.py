"""Exact transition matrices of kernels and scans on tiny models, from the compiled conditionals of the kernel.

Nothing is simulated: the probabilities of a site's next value come from the kernel's ``transition`` implementation,
and the order of visits from the compiled schedule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._numba.jit import Integer, compiled
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.graphs.graph import Graph
from gibbsite.inference.exact.enumeration import Enumeration
from gibbsite.kernels.base import Kernel, sites_of, transition
from gibbsite.scans.base import Scan, period, refresh, site_at


@compiled
def _row(parameters: Any, arrays: Any, memory: Any, x: Array, i: Integer, row: Floats) -> Integer:
    return transition(parameters, arrays, memory, x, i, row)


@compiled
def _visits(schedule: Any, order: Ints32, rng: Words64, out: Ints) -> None:
    """Write the sites of one period, as the run's loop would visit them."""
    words = refresh(schedule, order, load(rng))
    for k in range(out.size):
        out[k] = site_at(schedule, order, np.uintp(k))
    store(rng, words)


@compiled
def _length(schedule: Any) -> int:
    return period(schedule)


def unit_matrix(exact: Enumeration, graph: Graph, kernel: Kernel, unit: int) -> Floats:
    """Return the transition matrix (states, states) of one step at a site, or at a block of sites."""
    parameters = kernel.parameters(graph)
    memory = kernel.memory(graph, stream(0, 0))
    sites = sites_of(kernel, graph, unit)
    values = np.array(list(np.ndindex(*graph.cards[sites].tolist())))  # of the unit, the last site fastest
    row = np.zeros(max(len(values), int(graph.cards.max(initial=1))))  # kernels may use it as scratch space
    matrix = np.zeros((len(exact.states), len(exact.states)))
    stride = exact.strides[sites]
    target, without = values @ stride, np.arange(len(exact.states)) - exact.states[:, sites] @ stride
    x = np.zeros(graph.n_sites, graph.state_dtype)
    step = _row.prepare(parameters, graph.arrays, memory, x, np.uintp(unit), row)
    for number, codes in enumerate(exact.states):
        if exact.probabilities[number] == 0.0:
            matrix[number, number] = 1.0  # never visited
            continue
        x[:] = codes
        size = step()
        matrix[number, without[number] + target[:size]] = row[:size]
    return matrix


def scan_order(scan: Scan, graph: Graph, model: Any = None, seed: int = 0) -> Ints:
    """Return the sites visited in one period of a scan, from the compiled schedule."""
    return draw_periods(scan, graph, model, 1, seed).ravel()


def draw_periods(scan: Scan, graph: Graph, model: Any, number: int, seed: int) -> Ints:
    """Return the sites visited in consecutive periods of a scan, from the compiled schedule."""
    schedule, order, rng = scan.schedule(graph, model), scan.buffer(graph), stream(seed, 0)
    visits = np.zeros((number, int(_length(schedule))), np.int64)
    for row in visits:
        _visits(schedule, order, rng, row)
    return visits


def sweep_matrix(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan) -> Floats:
    """Return the transition matrix of one period of a fixed scan, or the mixture that a random scan declares.

    Raises :class:`IncompatibleError` if a random scan does not declare :meth:`Scan.mixture`.
    """
    orders: Any = [(1.0, scan_order(scan, graph, exact.model))]
    if scan.random:
        orders = scan.mixture(graph, exact.model)
    steps = [unit_matrix(exact, graph, kernel, unit) for unit in range(graph.n_units)]
    total = np.zeros((len(exact.states), len(exact.states)))
    for chance, order in orders:
        product = np.eye(len(exact.states))
        for unit in order:
            product = product @ steps[unit]
        total += chance * product
    return total
