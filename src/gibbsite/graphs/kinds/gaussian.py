"""Normal distributions as arrays: the precision matrix in compressed rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Words32
from gibbsite._numba.jit import implement
from gibbsite.graphs.graph import Graph, graph_of
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import row_starts
from gibbsite.models.gaussian import Gaussian


class GaussianGraph(NamedTuple):
    """Site i, given the others, is normal with mean ``center[i] - sum_k weight[k] x[neighbour[k]]``.

    k runs from ``start[i]`` to ``start[i + 1]``. Weights are entries of the precision matrix divided by the diagonal
    entry of their row, and ``sd[i]`` is the inverse square root of that. ``mean`` is the mean of the whole
    distribution.
    """

    offset: Ints
    start: Words32
    neighbour: Words32
    weight: Floats
    center: Floats
    sd: Floats
    mean: Floats


@register(name="gaussian", model="Gaussian")
def compile_gaussian(model: Gaussian) -> Graph:
    """Turn a normal distribution into arrays."""
    precision, n = model.precision, model.n_sites
    if model.sparse:
        matrix = precision.tocsr()
        row = np.repeat(np.arange(n), np.diff(matrix.indptr))
        column, value = matrix.indices, matrix.data
    else:
        row, column = np.nonzero(precision)
        value = precision[row, column]
    diagonal = precision.diagonal()
    apart = (row != column) & (value != 0.0)
    row, column, value = row[apart], column[apart], value[apart]
    weight = value / diagonal[row]
    center = model.mean + np.bincount(row, weight * model.mean[column], minlength=n)
    arrays = GaussianGraph(
        offset=model.domains.offset,
        start=row_starts(np.bincount(row, minlength=n), np.uint32),
        neighbour=column.astype(np.uint32),
        weight=weight,
        center=center,
        sd=1.0 / np.sqrt(diagonal),
        mean=np.array(model.mean),
    )
    return graph_of(model, "gaussian", arrays)


@implement(log_potential, GaussianGraph)
def _log_potential_gaussian(arrays: GaussianGraph, x: Array) -> float:
    total = 0.0
    for i in range(np.uintp(x.size)):
        pull = 0.0
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + np.uintp(1)])):
            j = arrays.neighbour[k]
            pull += arrays.weight[k] * (x[j] - arrays.mean[j])
        d = x[i] - arrays.mean[i]
        total -= 0.5 * d * (d + pull) / (arrays.sd[i] * arrays.sd[i])
    return total
