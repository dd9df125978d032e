"""Exact transition matrices: what a scan does not say is refused, and blocks are counted as such."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite._numba.jit import implement
from gibbsite.graphs.graph import Graph
from gibbsite.inference.exact.transition import sweep_matrix, unit_matrix
from gibbsite.kernels.base import Kernel, transition, units_of
from gibbsite.scans.base import Ordered, shuffled
from gibbsite.testing import check_scan

COINS = gs.ising(np.zeros((4, 4)))


@dataclass(frozen=True)
class Unsaid(gs.scans.Scan):
    """A random scan that does not say what its transition matrix is."""

    random: ClassVar[bool] = True

    def schedule(self, graph: Graph, model: Any = None) -> Ordered:
        return shuffled(graph.n_units)


def test_a_random_scan_that_does_not_say_its_matrix_is_refused() -> None:
    graph = gs.graphs.compile_graph(COINS)
    with pytest.raises(gs.errors.IncompatibleError, match="Unsaid is random and does not define"):
        sweep_matrix(gs.exact.enumerate(COINS), graph, gs.Gibbs(), Unsaid())
    with pytest.raises(gs.errors.IncompatibleError, match="Unsaid is random and does not define"):
        check_scan(Unsaid())


class PairsParameters(NamedTuple):
    unused: int = 0


@dataclass(frozen=True)
class Pairs(Kernel):
    """Two sites at once, the second less often changed: only for sites that do not depend on each other."""

    def units(self, graph: Graph) -> int:
        return graph.n_sites // 2

    def sites_of(self, graph: Graph, unit: int) -> NDArray[np.intp]:
        return np.array([2 * unit, 2 * unit + 1])

    def parameters(self, graph: Graph) -> PairsParameters:
        return PairsParameters()


@implement(transition, PairsParameters)
def _pair_transition(
    parameters: Any, arrays: Any, memory: Any, x: NDArray[Any], i: Any, row: NDArray[np.float64]
) -> Any:
    for k in range(4):  # the second site stays as it is in half of the moves
        row[k] = 0.375 if k % 2 == x[2 * i + 1] else 0.125
    return np.uintp(4)


@pytest.mark.parametrize("scan", [gs.Systematic(), gs.RandomScan(), gs.scans.Shuffled()], ids=str)
def test_steps_are_counted_in_blocks(scan: gs.scans.Scan) -> None:
    exact, kernel = gs.exact.enumerate(COINS), Pairs()
    graph = gs.graphs.compile_graph(COINS)
    graph = replace(graph, units=units_of(kernel, graph))
    first, second = (unit_matrix(exact, graph, kernel, unit) for unit in range(2))
    # by hand, site 0 slowest: one site is drawn anew, the other keeps its state three times in four
    anew, lazy, same = np.full((2, 2), 0.5), np.array([[0.75, 0.25], [0.25, 0.75]]), np.eye(4)
    assert np.array_equal(first, np.kron(np.kron(anew, lazy), same))
    assert np.array_equal(second, np.kron(same, np.kron(anew, lazy)))
    expected = 0.5 * (first + second) if isinstance(scan, gs.RandomScan) else first @ second
    assert np.allclose(sweep_matrix(exact, graph, kernel, scan), expected, rtol=0, atol=1e-15)
