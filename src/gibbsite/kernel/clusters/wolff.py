"""Wolff's kernel: one cluster grows from a random site, and moves; again and again.

Given a cluster, the law's weight times the probability that it grew is the same for all of its labels, up to
the weights that its sites give the labels together: bonds that failed at the boundary make up for it. So a
new label is drawn from those weights, by Liu's rule, which always leaves the old label where there are no
fields. No ghost spin is needed, fields may be any.

References
----------
.. [1] Wolff, U. (1989). Collective Monte Carlo updating for spin systems. PRL 62.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import Integer, implement, inlined
from gibbsite._random.generators import Words, below, uniform
from gibbsite._wording import argument
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graph.compile import KINDS
from gibbsite.graph.graph import Graph, seal
from gibbsite.graph.local import from_logs
from gibbsite.graph.rows import build_rows
from gibbsite.kernel.base import Kernel, step, transition
from gibbsite.kernel.clusters.agreement import Codes, Floats, Longs, find_agreements
from gibbsite.kernel.clusters.swendsen_wang import (
    Bonds,
    count_agreeing,
    join_subset,
    lay_out_bonds,
    read_labels,
)
from gibbsite.kernel.registry import register
from gibbsite.kernel.rules import metropolised_row, pick

Index = NDArray[np.uint32]
# Of all states, so many at most are listed for exact transition probabilities.
_FEW = 4096
# Weight of the clusters seen before, when a chain learns how large they are.
_MEMORY = 0.9


class WolffParameters(NamedTuple):
    """Bonds in the rows of both sites, and once; ``lazy``: the old label may be drawn again.

    ``clusters`` of a sweep are 0 where their number is learned.
    """

    start: Index
    neighbour: Index
    chance: Floats
    once: Bonds
    lazy: int
    clusters: int


class WolffMemory(NamedTuple):
    """What a chain carries.

    Attributes
    ----------
    todo : int array (sites,)
        The cluster; those from some place on have not been looked at yet.
    mark : int array (sites,)
        The number of the last cluster that a site was in.
    work : float array (labels,)
        Weights of the labels.
    parent, label : int array (sites,)
        As in :class:`.swendsen_wang.Clusters`, for transition probabilities.
    scratch : float array
        Probabilities of all states, where there are few.
    tally : int array (4,)
        Clusters so far, their sites, clusters of a sweep, and whether that is still learned.
    recent : float array (2,)
        Clusters and their sites, earlier ones with less weight.
    """

    todo: NDArray[np.int32]
    mark: Longs
    work: Floats
    parent: NDArray[np.int32]
    label: Codes
    scratch: Floats
    tally: Longs
    recent: Floats

    @property
    def stateless(self) -> bool:
        """Every cluster begins anew."""
        return True


_MADE, _SITES, _EACH, _LEARNING = range(4)


@register(
    methods={"wolff": ("MAR", "MAP")},
    proof=[{"clusters": 1}, {"clusters": 3}],
    recommend={"Wolff": {}},
)
@dataclass(frozen=True)
class Wolff(Kernel):
    """Wolff's cluster moves, for models whose pairs ask for agreement.

    Parameters
    ----------
    clusters : int, optional
        Clusters of a sweep. By default chains learn in the warmup how many have about as many sites together
        as the model.

    Notes
    -----
    Models are those of :class:`SwendsenWang`. Large clusters are chosen more often, so that fewer moves are
    needed; marginals are counts of states, not averages of conditional distributions.

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
        """Refuse a model whose pairs do not all ask for agreement."""
        super().check(graph)
        find_agreements(graph, type(self).__name__)

    def parameters(self, graph: Graph) -> WolffParameters:
        """Return the bonds."""
        given = self.clusters
        if given is not None and (not isinstance(given, int | np.integer) or given < 1):
            raise ArgumentError(
                f"{argument('clusters')} must be a whole number of at least 1, got {given!r}."
            )
        found = find_agreements(graph, type(self).__name__)
        rows = build_rows(found.pair, graph.n_sites)
        # where clusters are always the same, moves that always leave a label would go to and fro
        lazy = not np.isfinite(found.strength).any()
        return seal(
            WolffParameters(
                rows.start,
                rows.neighbour,
                -np.expm1(-found.strength[rows.source]),
                lay_out_bonds(found),
                int(lazy),
                int(given or 0),
            )
        )

    def memory(self, graph: Graph, stream: NDArray[np.uint64]) -> WolffMemory:
        """Allocate room for a cluster."""
        n = graph.n_sites
        return WolffMemory(
            todo=np.zeros(n, np.int32),
            mark=np.full(n, -1, np.int64),
            work=np.zeros(int(graph.cards.max(initial=1))),
            parent=np.zeros(n, np.int32),
            label=np.zeros(n, np.int16),
            scratch=np.zeros(_states(graph)),
            tally=np.array([0, 0, 1, 1]),
            recent=np.zeros(2),
        )

    def rung_memory(self, graph: Graph, stream: NDArray[np.uint64]) -> WolffMemory:
        """Refuse to learn how many clusters make a sweep: that would follow the states of other rungs."""
        if self.clusters is None:
            raise IncompatibleError(
                "Tempered cannot be around Wolff() while it learns how many clusters make a sweep; give "
                "their number, as gs.Wolff(clusters=10), or use gs.SwendsenWang()."
            )
        return self.memory(graph, stream)

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 18 * graph.n_sites + 8 * (int(graph.cards.max(initial=1)) + _states(graph)) + 48

    def freeze(self, memory: WolffMemory) -> None:
        """Keep the number of clusters of a sweep from now on."""
        memory.tally[_LEARNING] = 0

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Clusters of single sites, or of sites that have to agree, lead anywhere one by one."""
        return True

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the mean number of sites of a cluster, and how many clusters make a sweep."""
        made, sites, each = (float(sum(memory.tally[k] for memory in memories)) for k in range(3))
        return {"sites_per_cluster": sites / max(made, 1.0), "clusters_per_sweep": each / len(memories)}


def _states(graph: Graph) -> int:
    """Return the number of states if there are few, otherwise one."""
    states = 1
    for card in graph.cards.tolist():
        states *= card
        if states > _FEW:
            return 1
    return states


@inlined
def _label_at(bonds: Bonds, x: NDArray[Any], i: Integer) -> Integer:
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
    parameters: WolffParameters,
    arrays: Any,
    memory: WolffMemory,
    x: NDArray[Any],
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    tally, recent, n = memory.tally, memory.recent, x.size
    each = parameters.clusters if parameters.clusters > 0 else tally[_EACH]
    if n == 0:
        return rng
    before = tally[_SITES]
    for _ in range(each):
        rng = _move_cluster(parameters, memory, x, rng)
    if tally[_LEARNING] and parameters.clusters == 0:
        recent[0] = _MEMORY * recent[0] + each
        recent[1] = _MEMORY * recent[1] + (tally[_SITES] - before)
        asked = np.int64(n * recent[0] / recent[1])
        tally[_EACH] = 1 if asked < 1 else n if asked > n else asked
    return rng


@inlined
def _move_cluster(parameters: WolffParameters, memory: WolffMemory, x: NDArray[Any], rng: Words) -> Words:
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
    parameters: WolffParameters, arrays: Any, memory: WolffMemory, x: NDArray[Any], i: Integer, row: Floats
) -> Integer:
    """Write the probabilities of all states after a sweep of so many clusters, the last site fastest."""
    bonds, scratch, n = parameters.once, memory.scratch, x.size
    states, now = np.int64(1), np.int64(0)
    for site in range(n):
        size = bonds.offset[site + 1] - bonds.offset[site]
        states *= size
        now = now * size + np.int64(x[site])
    for number in range(states):
        row[number] = 0.0
    row[now] = 1.0
    for _ in range(max(parameters.clusters, 1)):
        for number in range(states):
            scratch[number] = row[number]
            row[number] = 0.0
        for number in range(states):
            if scratch[number] > 0.0:
                _spread(parameters, memory, x, number, scratch[number], row)
    return states


@inlined
def _spread(
    parameters: WolffParameters,
    memory: WolffMemory,
    x: NDArray[Any],
    number: Integer,
    mass: float,
    row: Floats,
) -> None:
    """Add the probabilities of all states after one cluster, from a state by its number."""
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
