"""Independent draws of a normal distribution: the transformation method, by a banded Cholesky factor.

With the precision Q = L L^T, sites ordered so that L has a narrow band, L^T (x - mean) = z of standard normal
numbers z has the solution x of covariance Q^-1. The draws are independent, but they are made as a chain, so that
all features of runs are available.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words
from gibbsite._numba.random.ziggurat import normal
from gibbsite.errors import TooLargeError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.gaussian import GaussianGraph
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.registry import register

_MOST = 1 << 27  # entries of the factor: a gigabyte


class FactorParameters(NamedTuple):
    """The factor: entry (i + k, i) of L is ``band[i * width + k]``; ``site[i]`` is the i-th of its order."""

    band: Floats
    width: int
    site: Ints


@register(proof="tests/proofs/test_gaussian.py", recommend={"ExactGaussian": {}})
@dataclass(frozen=True)
class ExactGaussian(Kernel):
    """Independent draws of a normal distribution, where a Cholesky factor fits into memory.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.Gaussian([1.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])
    >>> result = gs.sample(target, gs.kernels.ExactGaussian(), sweeps=1000, rng=1, progress=False)
    >>> abs(result.marginals["0"]["mean"] - 1.0) < 0.1, result.ess["0"]["mean"] > 2000
    (True, True)
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"gaussian"})
    conditional: ClassVar[bool] = False
    joint: ClassVar[bool] = True

    def parameters(self, graph: Graph) -> FactorParameters:
        """Return the factor; it is kept with the model."""
        return graph.cache.find(FactorParameters, lambda: _factorise(graph.arrays))

    def independent(self, graph: Graph) -> bool:
        """Every draw begins anew."""
        return True

    def memory(self, graph: Graph, stream: Words64) -> Any:
        """Allocate room for a draw."""
        return Draw(np.zeros(graph.n_sites))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 8 * graph.n_sites


class Draw(NamedTuple):
    """Room for a draw in the order of the factor."""

    y: Floats

    @property
    def rebuildable(self) -> bool:
        """Every draw begins anew."""
        return True


def _factorise(arrays: GaussianGraph) -> FactorParameters:
    """Return the banded Cholesky factor of the precision, in the order of Cuthill and McKee, reversed."""
    from scipy.linalg import cholesky_banded
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = arrays.sd.size
    diagonal = arrays.sd**-2
    start: Ints = arrays.start.astype(np.int64)
    row = np.repeat(np.arange(n), start[1:] - start[:-1])
    column = arrays.neighbour.astype(np.int64)
    value = arrays.weight * diagonal[row]
    joined = csr_array((np.ones(row.size), (row, column)), shape=(n, n))
    site = np.asarray(reverse_cuthill_mckee(joined, symmetric_mode=True), np.int64)
    place = np.empty(n, np.int64)
    place[site] = np.arange(n)
    below = place[row] - place[column]
    width = int(below.max(initial=0)) + 1
    if width * n > _MOST:
        raise TooLargeError(
            f"A Cholesky factor of {n:,} sites needs {width * n:,} entries, more than {_MOST:,}; use "
            "gs.kernels.GaussianGibbs()."
        )
    band = np.zeros((width, n))
    band[0, place] = diagonal
    lower = below > 0
    band[below[lower], place[column[lower]]] = value[lower]
    factor = cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
    return FactorParameters(np.ascontiguousarray(factor.T).ravel(), width, site)


@implement(step, FactorParameters)
def _draw(
    params: FactorParameters, arrays: Any, memory: Draw, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    n, width, y = x.size, params.width, memory.y
    for k in range(n):
        j = n - 1 - k
        rng, z = normal(rng)
        first = j * width
        for m in range(1, min(width, n - j)):
            z -= params.band[first + m] * y[j + m]
        y[j] = z / params.band[first]
        x[params.site[j]] = arrays.mean[params.site[j]] + y[j]
    return rng
