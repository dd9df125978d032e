"""The kernel of Wolff: one cluster after another grows from a random site and moves.

Consider the model's weight times the probability of growing a given cluster, as a function of the cluster's label.
It is proportional to the product of the weights that its sites give the label, because the couplings at the boundary
cancel against the bonds that failed there. So the new label is drawn from these weights, by Liu's rule, which always
leaves the old label if there are no fields. Fields are arbitrary, and no ghost spin is needed.

References
----------
.. [1] Wolff, U. (1989). Collective Monte Carlo updating for spin systems. PRL 62.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Array, Floats, Ints, Ints16, Ints32, Words32, Words64
from gibbsite._common.cache import Recent
from gibbsite._numba.jit import Integer, compiled_loop, implement, inlined
from gibbsite._numba.random.generators import Words, below, load, store, stream, uniform
from gibbsite.graphs.graph import KINDS, Graph, seal
from gibbsite.graphs.local import from_logs
from gibbsite.graphs.rows import build_rows
from gibbsite.kernels.base import Kernel, step, transition
from gibbsite.kernels.clusters.agreement import find_agreements
from gibbsite.kernels.clusters.swendsen_wang import Bonds, count_agreeing, join_subset, lay_out_bonds, read_labels
from gibbsite.kernels.registry import register
from gibbsite.kernels.rules import metropolised_row, pick

# Largest number of states for which exact transition probabilities are computed.
_FEW = 4096
# The mean size of clusters is measured once for a model. Clusters are grown until they have this multiple of the
# model's sites in total, first without counting and then counting; the total is kept between the other two numbers.
_MULTIPLES, _LEAST_SITES, _MOST_SITES = 30, 20_000, 20_000_000
_SIZES = Recent[int](64)


class WolffParameters(NamedTuple):
    """Bonds in the rows of both of their sites, and listed once; ``lazy`` means that the old label may be drawn again.

    ``clusters`` is the number of clusters of a sweep.
    """

    start: Words32
    neighbour: Words32
    chance: Floats
    once: Bonds
    lazy: int
    clusters: int


class WolffMemory(NamedTuple):
    """Memory of a chain."""

    todo: Ints32  # (sites,): the cluster, in the order in which sites were added
    mark: Ints  # (sites,): the number of the last cluster that a site was in
    work: Floats  # (labels,): weights of the labels
    # parent, label: (sites,): as in :class:`.swendsen_wang.Clusters`, for transition probabilities
    parent: Ints32
    label: Ints16
    scratch: Floats  # probabilities of all states of a small model
    tally: Ints  # (4,): clusters so far, their sites, clusters per sweep, and whether this is the warmup

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        n = max(cards.size, 1)
        tally = np.array([1 << 62, 1 << 62, n, 1])
        # a site is marked with the number of a cluster that was made
        return {"tally": (0, tally), "mark": (-1, int(self.tally[_MADE]) - 1), "parent": (0, n - 1)}

    @property
    def stateless(self) -> bool:
        """True: a cluster does not depend on earlier ones."""
        return True


_MADE, _SITES, _EACH, _WARMING = range(4)


@register(methods={"wolff": ("MAR", "MAP")}, proof=[{"clusters": 1}, {"clusters": 3}], recommend={"Wolff": {}})
@dataclass(frozen=True)
class Wolff(Kernel):
    """Cluster updates of Wolff, for models whose pairs favour agreement.

    Parameters
    ----------
    clusters : int, optional
        Number of clusters in a sweep, the same for all chains. By default it is measured once for each model, before a
        run, so that the clusters of a sweep have about as many sites in total as the model. In the warmup, a sweep also
        continues until its clusters have that many sites.

    See Also
    --------
    SwendsenWang : All clusters at once.

    Notes
    -----
    The kernel accepts the models of :class:`SwendsenWang`. Large clusters are chosen more often, so that fewer updates
    are needed. Marginals are counts of states, not averages of conditional distributions.

    References
    ----------
    Wolff (1989), Collective Monte Carlo updating for spin systems.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((8, 8), coupling=0.44, field=0.02, periodic=True)
    >>> result = gs.sample(model, gs.Wolff(), sweeps=4000, rng=1, progress=False)
    >>> abs(result.marginals["0"][1] - gs.solve_exact(model).marginals["0"][1]) < 0.03
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    joint: ClassVar[bool] = True
    conditional: ClassVar[bool] = False
    clusters: int | None = None

    def check(self, graph: Graph) -> None:
        """Refuse a model whose pairs do not all favour agreement."""
        super().check(graph)
        find_agreements(graph, type(self).__name__)

    def parameters(self, graph: Graph) -> WolffParameters:
        """Return the bonds, and the number of clusters."""
        return self._bonds(graph)._replace(clusters=self._each(graph))

    def _bonds(self, graph: Graph) -> WolffParameters:
        found = find_agreements(graph, type(self).__name__)
        rows = build_rows(found.pair, graph.n_sites)
        # if all bonds are certain, a rule that always leaves the old label would make the chain periodic
        lazy = not np.isfinite(found.strength).any()
        return seal(
            WolffParameters(
                rows.start, rows.neighbour, -np.expm1(-found.strength[rows.source]), lay_out_bonds(found), int(lazy), 1
            )
        )

    def _each(self, graph: Graph) -> int:
        """Return the number of clusters in a sweep, which is given or measured once."""
        given = self.clusters
        if given is not None or not graph.n_sites:
            return 1 if given is None else check_integer("clusters", given, 1)
        return _SIZES.find(graph.digest, lambda: self._measure(graph))

    def _measure(self, graph: Graph) -> int:
        """Return how many clusters have as many sites in total as the model, from a short run with a fixed seed.

        The number must not depend on the states of a recorded chain: if a sweep ended when its clusters had reached a
        size, its last state would not be a draw from the target.
        """
        parameters, n = self._bonds(graph), graph.n_sites
        bonds = parameters.once
        x = np.zeros(n, graph.state_dtype)
        if not bonds.plain:
            x[:] = bonds.state[bonds.offset[:-1]]
        for i in range(n) if bonds.field.size else ():
            own = bonds.field[bonds.offset[i] : bonds.offset[i + 1]]
            best = int(np.argmax(own))
            x[i] = best if bonds.plain else bonds.state[bonds.offset[i] + best]
        memory = self._room(graph)
        wanted = int(min(max(_MULTIPLES * n, _LEAST_SITES), max(_MOST_SITES, 4 * n)))
        words = stream(0, 1 << 43)
        _grow_until(parameters, memory, x, words, wanted)
        before = memory.tally.copy()
        _grow_until(parameters, memory, x, words, wanted)
        made, sites = (memory.tally - before)[[_MADE, _SITES]]
        return max(1, min(n, round(n * float(made) / float(sites))))

    def memory(self, graph: Graph, stream: Words64) -> WolffMemory:
        """Allocate the memory of a chain."""
        memory = self._room(graph)
        memory.tally[_EACH], memory.tally[_WARMING] = self._each(graph), self.clusters is None
        return memory

    def rung_memory(self, graph: Graph, stream: Words64) -> WolffMemory:
        """Allocate memory without a warmup: every sweep makes the same number of clusters."""
        memory = self.memory(graph, stream)
        self.freeze(memory)
        return memory

    def freeze(self, memory: WolffMemory) -> None:
        """Make the same number of clusters in every sweep from now on."""
        memory.tally[_WARMING] = 0

    def _room(self, graph: Graph) -> WolffMemory:
        n = graph.n_sites
        return WolffMemory(
            todo=np.zeros(n, np.int32),
            mark=np.full(n, -1, np.int64),
            work=np.zeros(int(graph.cards.max(initial=1))),
            parent=np.zeros(n, np.int32),
            label=np.zeros(n, np.int16),
            scratch=np.zeros(_states(graph)),
            tally=np.zeros(4, np.int64),
        )

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 18 * graph.n_sites + 8 * (int(graph.cards.max(initial=1)) + _states(graph)) + 32

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Return True: clusters of single sites, or of sites that must agree, reach any state."""
        return True

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the mean number of sites of a cluster, and the number of clusters in a sweep."""
        made, sites, each = (float(sum(memory.tally[k] for memory in memories)) for k in range(3))
        return {"sites_per_cluster": sites / max(made, 1.0), "clusters_per_sweep": each / len(memories)}


def _states(graph: Graph) -> int:
    """Return the number of states of a small model, otherwise one."""
    states = 1
    for card in graph.cards.tolist():
        states *= card
        if states > _FEW:
            return 1
    return states


@inlined
def _label_at(bonds: Bonds, x: Array, i: Integer) -> Integer:
    return np.int64(x[i]) if bonds.plain else np.int64(bonds.label[bonds.offset[i] + x[i]])


@inlined
def _draw_label(parameters: WolffParameters, work: Floats, size: Integer, now: Integer, u: float) -> Integer:
    """Return the next label of a cluster, from the logarithms of its weights."""
    total = from_logs(work, size)
    if not parameters.lazy:
        metropolised_row(work, size, total, now)
        total = 1.0
    return pick(work, size, u * total)


@implement(step, WolffParameters)
def _step(
    params: Any, arrays: Any, memory: WolffMemory, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    if x.size == 0:
        return rng
    goal = memory.tally[_SITES] + np.int64(x.size)
    for _ in range(params.clusters):
        rng = _move_cluster(params, memory, x, rng)
    # Far from equilibrium clusters are small, so sweeps of the warmup, which are not recorded, make more of them.
    while memory.tally[_WARMING] and memory.tally[_SITES] < goal:
        rng = _move_cluster(params, memory, x, rng)
    return rng


@compiled_loop
def _grow_until(parameters: WolffParameters, memory: WolffMemory, x: Array, words: Words64, sites: int) -> None:
    """Move clusters until they have ``sites`` sites in total."""
    rng = load(words)
    goal = memory.tally[_SITES] + sites
    while memory.tally[_SITES] < goal:
        rng = _move_cluster(parameters, memory, x, rng)
    store(words, rng)


@inlined
def _move_cluster(parameters: WolffParameters, memory: WolffMemory, x: Array, rng: Words) -> Words:
    """Grow a cluster from a random site, and draw its label."""
    bonds, todo, mark, work = parameters.once, memory.todo, memory.mark, memory.work
    number = memory.tally[_MADE]
    rng, seed = below(rng, x.size)
    now = _label_at(bonds, x, seed)
    size = bonds.offset[seed + 1] - bonds.offset[seed]
    for a in range(size):
        work[a] = 0.0
    todo[0], mark[seed] = seed, number
    done, known = np.int64(0), np.int64(1)
    while done < known:
        i = np.intp(todo[done])
        done += 1
        if bonds.field.size > 0:
            for a in range(size):
                work[a] += bonds.field[bonds.offset[i] + a]
        for k in range(np.uintp(parameters.start[i]), np.uintp(parameters.start[i + 1])):
            j = np.intp(parameters.neighbour[k])
            if mark[j] != number and _label_at(bonds, x, j) == now:
                rng, u = uniform(rng)
                if u < parameters.chance[k]:
                    mark[j] = number
                    todo[known] = j
                    known += 1
    rng, u = uniform(rng)
    new = _draw_label(parameters, work, size, now, u)
    if new != now:
        for k in range(known):
            i = np.intp(todo[k])
            x[i] = new if bonds.plain else bonds.state[bonds.offset[i] + new]
    memory.tally[_MADE] += 1
    memory.tally[_SITES] += known
    return rng


@implement(transition, WolffParameters)
def _transition(
    parameters: WolffParameters, arrays: Any, memory: WolffMemory, x: Array, i: Integer, row: Floats
) -> Integer:
    """Write the probabilities of all states after a sweep, the last site fastest."""
    bonds, scratch, n = parameters.once, memory.scratch, x.size
    states, now = np.int64(1), np.int64(0)
    for site in range(n):
        size = bonds.offset[site + 1] - bonds.offset[site]
        states *= size
        now = now * size + np.int64(x[site])
    for number in range(states):
        row[number] = 0.0
    row[now] = 1.0
    for _ in range(parameters.clusters):
        for number in range(states):
            scratch[number] = row[number]
            row[number] = 0.0
        for number in range(states):
            if scratch[number] > 0.0:
                _spread(parameters, memory, x, number, scratch[number], row)
    return states


@inlined
def _spread(
    parameters: WolffParameters, memory: WolffMemory, x: Array, number: Integer, mass: float, row: Floats
) -> None:
    """Add the probabilities of all states after one cluster update from a numbered state."""
    bonds, label, parent, work = parameters.once, memory.label, memory.parent, memory.work
    offset, n, rest = bonds.offset, x.size, number
    for k in range(n):
        site = n - 1 - k
        size = offset[site + 1] - offset[site]
        x[site] = rest % size
        rest //= size
    read_labels(bonds, x, label)
    for subset in range(np.int64(1) << count_agreeing(bonds, label)):
        chance = mass * join_subset(bonds, memory, subset) / n
        for seed in range(n):
            size = offset[seed + 1] - offset[seed]
            for a in range(size):
                work[a] = 0.0
            for site in range(n):
                if parent[site] == parent[seed] and bonds.field.size > 0:
                    for a in range(size):
                        work[a] += bonds.field[offset[site] + a]
            total = from_logs(work, size)
            if parameters.lazy:
                for a in range(size):
                    work[a] /= total
            else:
                metropolised_row(work, size, total, np.int64(label[seed]))
            for a in range(size):
                other = np.int64(0)
                for site in range(n):
                    moved = np.int64(x[site])
                    if parent[site] == parent[seed]:
                        moved = np.int64(bonds.state[offset[site] + a])
                    other = other * (offset[site + 1] - offset[site]) + moved
                row[other] += chance * work[a]
