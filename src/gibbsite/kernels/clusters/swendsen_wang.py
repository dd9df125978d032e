"""The kernel of Swendsen and Wang: joined sites form clusters, and all clusters move, independently of each other.

Two sites that agree are joined with probability 1 - exp(-strength). Given the bonds, the weight of a cluster's label is
the product of the weights that its sites give the label. Both steps draw from exact conditional distributions of one
joint distribution of states and bonds (Edwards and Sokal), so the model is stationary, with or without fields.

References
----------
.. [1] Swendsen, R. H. and Wang, J.-S. (1987). Nonuniversal critical dynamics in Monte Carlo simulations.
       PRL 58.
.. [2] Edwards, R. G. and Sokal, A. D. (1988). Generalization of the Fortuin-Kasteleyn-Swendsen-Wang
       representation and Monte Carlo algorithm. Phys. Rev. D 38.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints16, Ints32, Words32, Words64
from gibbsite._numba.jit import Integer, generic, implement, inlined
from gibbsite._numba.random.generators import Words, below, uniform
from gibbsite.graphs.graph import KINDS, Graph, seal
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.base import Kernel, step, transition
from gibbsite.kernels.clusters.agreement import Agreements, find_agreements
from gibbsite.kernels.registry import register


class Bonds(NamedTuple):
    """Agreements of pairs in rows, each pair once, in the row of its first site.

    ``chance[k]`` is the probability of a bond between site i and ``neighbour[k]`` if they agree, for k from
    ``start[i]`` to ``start[i + 1]``. The other arrays are those of :class:`.agreement.Agreements`.
    """

    start: Words32
    neighbour: Words32
    chance: Floats
    offset: Ints
    label: Ints16
    state: Ints16
    field: Floats
    plain: int


class Clusters(NamedTuple):
    """Memory of a chain."""

    # (sites,): a site of the same cluster with a smaller number; the parent of the first site of a cluster is itself
    parent: Ints32
    # label, drawn: (sites,): labels of the sites in the current state, and in another one
    label: Ints16
    drawn: Ints16
    # (cells,): log-weights, then probabilities, of the labels of a cluster, at the cells of its first site
    weight: Floats
    odds: Floats  # (sites,): log-odds of the second label of a cluster of two states, at its first site
    # near, far: (pairs + 1,): bonds
    near: Ints32
    far: Ints32
    tally: Ints  # (2,): sweeps and clusters

    @property
    def stateless(self) -> bool:
        """True: a sweep does not depend on earlier ones; the tally is used for reports only."""
        return True


def lay_out_bonds(found: Agreements) -> Bonds:
    """Return agreements as rows of bonds."""
    sites = found.offset.size - 1
    order = np.argsort(found.pair[:, 0], kind="stable")
    pair = found.pair[order]
    return seal(
        Bonds(
            start=row_starts(np.bincount(pair[:, 0], minlength=sites), np.uint32),
            neighbour=pair[:, 1].astype(np.uint32),
            chance=-np.expm1(-found.strength[order]),
            offset=found.offset,
            label=found.label,
            state=found.state,
            field=found.field,
            plain=int(found.plain),
        )
    )


@register(methods={"swendsen-wang": ("MAR", "MAP")}, proof=[{}], recommend={"SwendsenWang": {}})
@dataclass(frozen=True)
class SwendsenWang(Kernel):
    """Cluster updates of Swendsen and Wang, for models whose pairs favour agreement.

    See Also
    --------
    Wolff : One cluster at a time.

    Notes
    -----
    Couplings may have any strength, and factors of single sites may be arbitrary. Two-state models with couplings
    of both signs are accepted if no cycle is frustrated; their states are relabelled. Marginals are averages of
    the exact conditional distributions of clusters given the bonds. Without fields, these give all labels equal
    probability, as the model does, from the first draw on.

    A step is a sweep: it draws bonds and clusters of all sites. Near a phase transition, chains decorrelate many times
    faster than with single-site updates; with strong fields of both signs they may not.

    References
    ----------
    Swendsen and Wang (1987), Nonuniversal critical dynamics in Monte Carlo simulations.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((8, 8), coupling=0.44, field=0.02, periodic=True)
    >>> result = gs.sample(model, gs.SwendsenWang(), sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["0"][1] - gs.solve_exact(model).marginals["0"][1]) < 0.02
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    joint: ClassVar[bool] = True

    def check(self, graph: Graph) -> None:
        """Refuse a model whose pairs do not all favour agreement."""
        super().check(graph)
        find_agreements(graph, type(self).__name__)

    def parameters(self, graph: Graph) -> Bonds:
        """Return the bonds."""
        return lay_out_bonds(find_agreements(graph, type(self).__name__))

    def memory(self, graph: Graph, stream: Words64) -> Clusters:
        """Allocate clusters."""
        n, pairs = graph.n_sites, len(find_agreements(graph, type(self).__name__).pair)
        return Clusters(
            parent=np.zeros(n, np.int32),
            label=np.zeros(n, np.int16),
            drawn=np.zeros(n, np.int16),
            weight=np.zeros(int(graph.cards.sum())),
            odds=np.zeros(n),
            near=np.zeros(pairs + 1, np.int32),
            far=np.zeros(pairs + 1, np.int32),
            tally=np.zeros(2, np.int64),
        )

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Return True: a sweep may draw no bonds except certain ones, and then every state is possible."""
        return True

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return the number of pairs, and the mean probability of a bond between sites that agree."""
        bonds = self.parameters(graph)
        mean = float(bonds.chance.mean()) if bonds.chance.size else 0.0
        return {"pairs": bonds.chance.size, "mean_bond_probability": round(mean, 4)}

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the mean number of sites of a cluster."""
        sweeps, clusters = (int(sum(memory.tally[k] for memory in memories)) for k in range(2))
        return {"sites_per_cluster": memories[0].parent.size * sweeps / max(clusters, 1)}


@inlined
def read_labels(bonds: Any, x: Array, label: Ints16) -> None:
    """Write the labels of all sites."""
    if bonds.plain:
        for i in range(x.size):
            label[i] = x[i]
    else:
        for i in range(x.size):
            label[i] = bonds.label[bonds.offset[i] + x[i]]


@inlined
def write_states(bonds: Any, label: Ints16, x: Array) -> None:
    """Write the states of all sites."""
    if bonds.plain:
        for i in range(x.size):
            x[i] = label[i]
    else:
        for i in range(x.size):
            x[i] = bonds.state[bonds.offset[i] + label[i]]


@inlined
def first_of(parent: Ints32, i: Integer) -> Integer:
    """Return the first site of the cluster of a site, and shorten the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = np.intp(parent[i])
    return i


@inlined
def join(parent: Ints32, i: Integer, j: Integer) -> None:
    """Merge the clusters of two sites."""
    one, other = first_of(parent, i), first_of(parent, j)
    if one < other:
        parent[other] = one
    else:
        parent[one] = other


@inlined
def draw_bonds(bonds: Bonds, memory: Clusters, rng: Words) -> Words:
    """Join sites that agree at random; afterwards, every site's parent is the first site of its cluster."""
    parent, label, near, far = memory.parent, memory.label, memory.near, memory.far
    n = parent.size
    for site in range(n):
        parent[site] = site
    number = np.intp(0)
    for site in range(n):
        i = np.intp(site)
        mine = label[i]
        for k in range(np.uintp(bonds.start[i]), np.uintp(bonds.start[i + 1])):
            j = np.intp(bonds.neighbour[k])
            rng, u = uniform(rng)
            # bonds are listed first and joined afterwards, which avoids branches that cannot be predicted
            near[number], far[number] = i, j
            number += np.intp((u < bonds.chance[k]) & (mine == label[j]))
    for b in range(number):
        join(parent, np.intp(near[b]), np.intp(far[b]))
    flatten(parent)
    return rng


@inlined
def flatten(parent: Ints32) -> None:
    """Make the first site of its cluster the parent of every site."""
    for i in range(parent.size):
        parent[i] = parent[parent[i]]


@inlined
def add_fields(bonds: Bonds, memory: Clusters) -> None:
    """Add up the log-weights of the labels of each cluster, at the cells of its first site."""
    parent, weight, offset = memory.parent, memory.weight, bonds.offset
    if bonds.field.size == 0:
        for c in range(weight.size):
            weight[c] = 0.0
        return
    for c in range(weight.size):
        weight[c] = bonds.field[c]
    for i in range(parent.size):
        if parent[i] != i:
            first, own = offset[parent[i]], offset[i]
            for a in range(offset[i + 1] - own):
                weight[first + a] += weight[own + a]


@inlined
def normalise(weight: Floats, first: Integer, size: Integer) -> bool:
    """Turn log-weights into probabilities; return whether any label is possible."""
    top = -np.inf
    for a in range(size):
        top = max(top, weight[first + a])
    if top == -np.inf:
        return False
    total = 0.0
    for a in range(size):
        weight[first + a] = math.exp(weight[first + a] - top)
        total += weight[first + a]
    for a in range(size):
        weight[first + a] /= total
    return True


@inlined
def draw_label(bonds: Bonds, memory: Clusters, i: Integer, rng: Words) -> Words:
    """Draw the label of the cluster whose first site is i."""
    first, size = bonds.offset[i], bonds.offset[i + 1] - bonds.offset[i]
    if bonds.field.size == 0:
        rng, new = below(rng, size)
        memory.label[i] = new
        return rng
    rng, u = uniform(rng)
    if normalise(memory.weight, first, size):
        new, passed = np.int64(-1), 0.0
        for a in range(size):
            p: Any = memory.weight[first + a]
            if p > 0.0 and (new < 0 or u >= passed):
                new = a
            passed += p
        memory.label[i] = new
    return rng


@generic
def put_conditional(arrays: Any, bonds: Bonds, memory: Clusters, i: Integer, cond: Floats) -> None:
    """Write the conditional distribution of a site given the bonds."""
    raise NotImplementedError


@implement(put_conditional)
def _put_cells(arrays: Any, bonds: Bonds, memory: Clusters, i: Integer, cond: Floats) -> None:
    first, own = bonds.offset[memory.parent[i]], bonds.offset[i]
    size = bonds.offset[i + 1] - own
    for a in range(size):
        if bonds.field.size == 0:
            cond[arrays.offset[i] + a] = 1.0 / size
        else:
            cond[arrays.offset[i] + a] = memory.weight[first + bonds.label[own + a]]


@implement(put_conditional, IsingGraph)
@implement(put_conditional, LatticeGraph)
def _put_odds(arrays: Any, bonds: Bonds, memory: Clusters, i: Integer, cond: Floats) -> None:
    odds = memory.odds[memory.parent[i]]
    cond[i] = odds if bonds.label[bonds.offset[i]] == 0 else -odds


@implement(step, Bonds)
def _step(
    parameters: Bonds, arrays: Any, memory: Clusters, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Draw bonds, then a label for every cluster."""
    bonds, parent, label = parameters, memory.parent, memory.label
    read_labels(bonds, x, label)
    rng = draw_bonds(bonds, memory, rng)
    if bonds.field.size > 0:
        add_fields(bonds, memory)
    number = np.int64(0)
    for site in range(x.size):  # the first site of a cluster comes before all others
        if parent[site] == site:
            number += 1
            first = bonds.offset[site]
            if bonds.field.size > 0 and bonds.offset[site + 1] - first == 2:
                memory.odds[site] = memory.weight[first + 1] - memory.weight[first]
            rng = draw_label(bonds, memory, site, rng)
        else:
            label[site] = label[parent[site]]
    write_states(bonds, label, x)
    memory.tally[0] += 1
    memory.tally[1] += number
    if keep:
        for site in range(x.size):
            put_conditional(arrays, bonds, memory, site, cond)
    return rng


@implement(transition, Bonds)
def _transition(parameters: Bonds, arrays: Any, memory: Clusters, x: Array, i: Integer, row: Floats) -> Integer:
    """Write the probabilities of all states after a step, the last site fastest, summed over all sets of bonds."""
    bonds, parent, label, offset = parameters, memory.parent, memory.label, parameters.offset
    n, states = x.size, np.int64(1)
    for site in range(n):
        states *= offset[site + 1] - offset[site]
    for number in range(states):
        row[number] = 0.0
    read_labels(bonds, x, label)
    for subset in range(np.int64(1) << count_agreeing(bonds, label)):
        chance = join_subset(bonds, memory, subset)
        add_fields(bonds, memory)
        for site in range(n):
            if parent[site] == site:
                normalise(memory.weight, offset[site], offset[site + 1] - offset[site])
        for number in range(states):
            row[number] += chance * _chance_of(bonds, memory, number)
    return states


@inlined
def count_agreeing(bonds: Any, label: Ints16) -> Integer:
    """Return the number of pairs that agree."""
    number = np.int64(0)
    for i in range(label.size):
        for k in range(np.int64(bonds.start[i]), np.int64(bonds.start[i + 1])):
            number += label[i] == label[np.int64(bonds.neighbour[k])]
    return number


@inlined
def join_subset(bonds: Any, memory: Any, subset: Integer) -> float:
    """Join the pairs of a numbered subset of the pairs that agree; return the probability of the subset."""
    parent, label = memory.parent, memory.label
    for i in range(parent.size):
        parent[i] = i
    chance, place = 1.0, np.int64(0)
    for i in range(parent.size):
        for k in range(np.int64(bonds.start[i]), np.int64(bonds.start[i + 1])):
            j = np.int64(bonds.neighbour[k])
            if label[i] == label[j]:
                if (subset >> place) & 1:
                    chance *= bonds.chance[k]
                    join(parent, i, j)
                else:
                    chance *= 1.0 - bonds.chance[k]
                place += 1
    flatten(parent)
    return chance


@inlined
def _chance_of(bonds: Bonds, memory: Clusters, number: Integer) -> float:
    """Return the probability of a numbered state given the clusters and their weights."""
    parent, offset, new = memory.parent, bonds.offset, memory.drawn
    rest = number
    for k in range(parent.size):
        site = parent.size - 1 - k
        size = offset[site + 1] - offset[site]
        new[site] = bonds.label[offset[site] + rest % size]
        rest //= size
    chance = 1.0
    for site in range(parent.size):
        if parent[site] == site:
            chance *= memory.weight[offset[site] + new[site]]
        elif new[site] != new[parent[site]]:
            chance = 0.0
    return chance
