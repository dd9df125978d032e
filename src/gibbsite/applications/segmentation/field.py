"""The Potts field of an image: neighbours prefer equal labels, more weakly across colour edges.

For the labels x of pixels (or superpixels) i,

    log p(x) = sum_i u_i(x_i)  +  J sum_(i,j) g_ij [x_i = x_j] + constant,
    g_ij = exp(-|c_i - c_j|^2 / (2 m)) / d_ij,

over pairs of neighbours at distance d_ij with colours c, m being the mean of |c_i - c_j|^2 over all pairs
[1]_; without contrast, g_ij = 1 / d_ij. Pixels with known labels are evidence: they are not sites of the
model, and their couplings become fields of their neighbours.

References
----------
.. [1] Boykov, Y. and Jolly, M.-P. (2001). Interactive graph cuts for optimal boundary and region segmentation
   of objects in N-D images. ICCV.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Bools, Floats32, Ints, Ints32

#: Offsets of the neighbours of a pixel that follow it, by the number of neighbours.
_AFTER = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}
NEIGHBOURS = tuple(_AFTER)


class Neighbourhood(NamedTuple):
    """Nodes and pairs of neighbouring nodes."""

    nodes: Ints  # (n,): positions of pixels, row by row, or numbers of superpixels
    pairs: Ints32  # (m, 2): neighbours, as indices of nodes
    closeness: Floats32  # (m,): one over the distance of a pair


def grid_neighbourhood(free: Bools, neighbours: int) -> Neighbourhood:
    """Return the pairs of neighbouring pixels with at least one free pixel each.

    ``free`` (height, width): the pixels whose labels are unknown; ``neighbours`` in {4, 8}: how many a pixel has.
    """
    height, width = free.shape
    sites = np.flatnonzero(free)
    row, column = np.divmod(sites, width)
    is_free = free.ravel()
    kept, ends, others, closeness = is_free.copy(), [], [], []
    for down, right in _AFTER[neighbours]:
        near = np.float32(1.0 / math.hypot(down, right))
        for sign in (1, -1):
            y, x = row + sign * down, column + sign * right
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            here, there = sites[inside], (y * width + x)[inside]
            if sign < 0:  # pairs of free pixels were already found from their first pixel
                beyond = ~is_free[there]
                here, there = here[beyond], there[beyond]
            kept[there] = True
            ends.append(here)
            others.append(there)
            closeness.append(np.full(here.size, near))
    nodes = np.flatnonzero(kept)
    index = np.empty(free.size, np.int32)  # only entries of nodes are read
    index[nodes] = np.arange(nodes.size, dtype=np.int32)
    pairs = np.stack([index[np.concatenate(ends)], index[np.concatenate(others)]], axis=1)
    return Neighbourhood(nodes, pairs, np.concatenate(closeness))


def squared_steps(colours: Floats32, pairs: Ints32) -> Floats32:
    """Return the squared distances of colours of pairs."""
    step = colours[pairs[:, 0]] - colours[pairs[:, 1]]
    squares: Floats32 = np.einsum("ij,ij->i", step, step)
    return squares


def pair_weights(around: Neighbourhood, colours: Floats32, mean_square: float | None) -> Floats32:
    """Return g of all pairs; without contrast if ``mean_square`` is None."""
    if mean_square is None or mean_square == 0.0:
        return around.closeness
    weights: Floats32 = np.exp(squared_steps(colours, around.pairs) / np.float32(-2.0 * mean_square))
    return weights * around.closeness


def potts_field(pairs: Ints32, coupling: Any, unary: Array, known: Array) -> gs.FactorGraph:
    """Return the field of the nodes whose labels are unknown, given those that are known.

    ``pairs`` (m, 2): neighbours; ``coupling`` (m,): log-potential of equal labels; ``unary`` (unknown, labels):
    log-potentials of the nodes whose labels are unknown, in order; ``known`` (n,): the labels of nodes, -1 where
    unknown. The sites are the unknown nodes, in order; the groups are "couplings" and "fields".
    """
    sites = np.flatnonzero(known < 0)
    place = np.full(known.size, -1, np.int32)
    place[sites] = np.arange(sites.size, dtype=np.int32)
    fields = np.array(unary, np.float64)
    first, second = place[pairs[:, 0]], place[pairs[:, 1]]
    labels = fields.shape[1]
    for site, other in ((first, pairs[:, 1]), (second, pairs[:, 0])):
        seen = (site >= 0) & (known[other] >= 0)
        cell = site[seen].astype(np.int64) * labels + known[other[seen]]
        fields += np.bincount(cell, coupling[seen], fields.size).reshape(fields.shape)
    both = (first >= 0) & (second >= 0)
    scopes = np.stack([first[both], second[both]], axis=1)
    groups = (
        gs.factors.AgreementFactors(scopes, np.asarray(coupling, np.float64)[both], name="couplings"),
        gs.factors.FieldFactors(sites.size, fields, spin=False, name="fields"),
    )
    return gs.FactorGraph(sites.size, groups=groups, states=labels)


def natural_coupling(unary: Array, weights: Array, pairs: Ints32) -> float:
    """Return the coupling J at which equal neighbours outweigh the unary terms of nine in ten pixels.

    It is the 0.9 quantile of the differences between the two largest log-potentials, divided by the mean
    sum of g over the neighbours of a node.
    """
    if not len(unary) or not len(pairs):
        return 1.0
    labels = unary.shape[1]
    top = np.partition(unary, labels - 2, axis=1)[:, labels - 2 :]
    around = 2.0 * float(weights.sum()) / np.unique(pairs).size
    strength = float(np.quantile(top[:, 1] - top[:, 0], 0.9)) / around
    return float(np.clip(strength, *_NATURAL))


#: Bounds of an automatic coupling, between which regions form and chains still move.
_NATURAL = (0.2, 4.0)
