"""Markov equivalence: structures that no complete cases can tell apart, and distances between such classes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Bools
from gibbsite.errors import ArgumentError
from gibbsite.learn.networks.structure import read_structure


def complete_pattern(edges: Bools) -> Bools:
    """Return the completed pattern of an acyclic structure, where edge (i, j) is from i to j.

    Edges in both directions have a direction that no complete cases can tell. The others, and those in all equivalent
    structures, keep theirs: colliders, and what follows from them by the rules of Meek (1995).

    Examples
    --------
    >>> complete_pattern(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]], bool)).astype(int).tolist()
    [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    """
    linked = edges | edges.T
    fixed = np.zeros_like(edges)
    for child in range(len(edges)):
        for a, b in combinations(np.flatnonzero(edges[:, child]).tolist(), 2):
            if not linked[a, b]:
                fixed[a, child] = fixed[b, child] = True
    while True:
        before = fixed.sum()
        open_ = linked & ~fixed & ~fixed.T
        for a, b in np.argwhere(open_).tolist():
            if fixed[a, b] or fixed[b, a]:
                continue
            into = fixed[:, a] & ~linked[:, b]  # c -> a - b, c and b not linked
            into[b] = False
            through = fixed[a, :] & fixed[:, b]  # a -> c -> b
            sides = np.flatnonzero(linked[a] & ~fixed[a] & ~fixed[:, a] & fixed[:, b])  # a - c -> b, twice
            crossing = any(not linked[c, d] for c, d in combinations(sides.tolist(), 2))
            if into.any() or through.any() or crossing:
                fixed[a, b] = True
        if fixed.sum() == before:
            return fixed | (linked & ~fixed.T)


@checked
def structural_distance(first: Any, second: Any, *, equivalence: bool = True) -> int:
    """Count the pairs of sites whose edge differs between two structures (structural Hamming distance).

    Parameters
    ----------
    first, second : network, FactorGraph, mapping of sites to parents, list of edges, or StructureFit
        The structures; sites that one does not name have no edges in it.
    equivalence : bool
        Compare the classes of structures that no complete cases can tell apart, as in Tsamardinos, Brown and Aliferis
        (2006). Otherwise, directions of all edges count.

    Returns
    -------
    int

    Examples
    --------
    >>> structural_distance([("a", "b")], [("b", "a")]), structural_distance([("a", "b")], [("a", "c")])
    (0, 2)
    >>> structural_distance([("a", "b")], [("b", "a")], equivalence=False)
    1
    """
    parents = [read_structure(each)[0] for each in (first, second)]
    names = sorted({*parents[0], *parents[1]})
    found = []
    for each in parents:
        edges = to_matrix(each, names)
        found.append(complete_pattern(edges) if equivalence else edges)
    apart = found[0] != found[1]
    return int(np.triu(apart | apart.T).sum())


def to_matrix(parents: Any, names: Any) -> Bools:
    """Return a structure as a matrix of edges (parent, child)."""
    number = {name: k for k, name in enumerate(names)}
    edges = np.zeros((len(number), len(number)), np.bool_)
    for child, each in parents.items():
        for parent in each:
            if parent not in number or child not in number:
                raise ArgumentError(f"the edge {parent!r} -> {child!r} has a site without a column in the data.")
            edges[number[parent], number[child]] = True
    return edges
