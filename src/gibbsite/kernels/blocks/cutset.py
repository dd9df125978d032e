"""Cutset sampling: a few sites are drawn with all others summed out (Bidyuk and Dechter 2007).

A cutset is chosen so that the sites outside it have a junction tree of bounded width. A step draws every
cutset site from its exact conditional distribution given the rest of the cutset, with all other sites summed out,
and then the other sites given the cutset. Messages of the tree are kept from step to step (:mod:`.messages`).

A site that hardly moves while it is in the cutset may move freely with its neighbours while it is not, so
several cutsets with little in common take turns, one in each step. A step begins and ends with a state of all sites,
and leaves the target distribution invariant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints, Positions, Words64
from gibbsite._common.cache import Recent
from gibbsite._common.wording import argument
from gibbsite._numba.jit import Integer, compiled, implement, inlined, interpreted
from gibbsite._numba.pointer import call_pointer, point_at
from gibbsite._numba.random.generators import Words, load, store
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.graphs.elimination.order import EliminationOrder
from gibbsite.graphs.graph import KINDS, Graph, as_tables, seal
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.kernels.base import Kernel, step, transition
from gibbsite.kernels.blocks.cover import choose_rest, tie_sites
from gibbsite.kernels.blocks.message_tables import CutTree, CutWorkspace, lay_out_cutsets, make_messages
from gibbsite.kernels.blocks.messages import CHANCE, DRAW, MARGINALS, WEIGH, collapse
from gibbsite.kernels.blocks.plan import put_marginal
from gibbsite.kernels.blocks.tables import find_interactions, lay_out_blocks, order_block
from gibbsite.kernels.registry import register

# Largest number of entries of all tables together; a chain keeps three messages for every table.
_MOST = 2.0**29
# Two chains are run until they meet, within these limits: table entries (roughly) and sweeps.
_MEETING_ENTRIES, _MEETING_SWEEPS = 2.0**22, 100
# In larger models it takes long to find cutsets.
_FEW_SITES = 20_000


class CutsetParameters(NamedTuple):
    """The tree, the model as tables, and the address of :func:`.messages.collapse`."""

    tree: CutTree
    model: TableGraph
    collapse: Any


@dataclass(frozen=True, eq=False)
class CutsetPlan:
    """The cutsets of a model, with the clique tables of the other sites."""

    # orders of elimination of the sites outside each cutset, as positions among them, with their costs
    orders: list[EliminationOrder]
    tree: CutTree  # the clique tables of these sites, and the cutsets in the order in which they are visited
    model: TableGraph  # the model as tables

    @property
    def cutsets(self) -> list[Ints]:
        """The sites of each cutset."""
        return np.split(self.tree.site, self.tree.start[1:-1])

    @property
    def log2_largest(self) -> float:
        """log2 of the entries of the largest table."""
        return max(order.log2_largest for order in self.orders)


_PLANS = Recent[CutsetPlan]()
_ADDRESSES: list[Any] = []

_WIDEST = 60.0  # a table of 2**60 entries is as good as unlimited


@register(methods={"cutset": ("MAR", "MAP")}, proof=[{"width": 2}], recommend={"CutsetGibbs": {}})
@dataclass(frozen=True)
class CutsetGibbs(Kernel):
    """Cutset sampling, also known as collapsed Gibbs sampling: draw a few sites with the others summed out.

    Parameters
    ----------
    width : float
        A cutset is chosen so that the clique tables of the other sites have at most 2**width entries. If that
        suffices for all sites, the cutset is empty, and every draw is independent and exact.
    cutsets : int
        Number of cutsets that take turns; they have as little in common as possible. An empty cutset is the only one.

    See Also
    --------
    BlockGibbs : Draw blocks of sites jointly.
    solve_exact : Sum all sites out.

    Notes
    -----
    A step draws every site of a cutset once, then all other sites at once; scans order cutsets as they order
    sites. Draws are states of all sites. The marginals of other sites are exact given the cutset, those of a
    cutset site are exact given the rest of the cutset.

    References
    ----------
    Bidyuk and Dechter (2007), Cutset sampling for Bayesian networks.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.4, field=0.1)
    >>> result = gs.sample(model, gs.CutsetGibbs(width=3), sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["5"][1] - gs.solve_exact(model).marginals["5"][1]) < 0.01
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    reversible: ClassVar[bool] = False  # sites of a cutset are visited in a fixed order
    width: float = 12
    cutsets: int = 2

    def units(self, graph: Graph) -> int | None:
        """Return the number of cutsets."""
        return len(self.plan(graph).orders)

    def sites_of(self, graph: Graph, unit: int) -> Positions:
        """Return all sites, because those outside the cutset are drawn, too."""
        return np.arange(graph.n_sites)

    def plan(self, graph: Graph) -> CutsetPlan:
        """Return the cutsets of a graph and the tables of the other sites; the result is cached."""
        return _PLANS.find((graph.digest, *self._checked()), lambda: self._make_plan(graph))

    def _checked(self) -> tuple[float, int]:
        """Return width and number of cutsets, checked."""
        good = isinstance(self.width, Real) and not isinstance(self.width, bool)
        if not good or not 1 <= self.width < math.inf:
            raise ArgumentError(
                f"{argument('width')} must be a number of at least 1, log2 of the entries of a clique table, "
                f"got {self.width!r}."
            )
        if not isinstance(self.cutsets, int | np.integer) or self.cutsets < 1:
            raise ArgumentError(f"{argument('cutsets')} must be a whole number of at least 1, got {self.cutsets!r}.")
        return min(float(self.width), _WIDEST), int(self.cutsets)

    def _make_plan(self, graph: Graph) -> CutsetPlan:
        """Find the cutsets, and lay out the tables of the other sites."""
        arrays: TableGraph = as_tables(graph).arrays
        near, ties = find_interactions(arrays), tie_sites(arrays)
        width, cutsets = self._checked()
        before: Bools | None = None
        orders, listed = [], []
        with interpreted(math.inf):
            for _ in range(cutsets):
                known = choose_rest(near, arrays.card, width, ties, before)
                rest = np.sort(known)
                order = order_block(near, arrays.card, rest, known, width)
                orders.append(order)
                listed.append(rest[order.sites])
                if rest.size == graph.n_sites:
                    break
                before = np.zeros(graph.n_sites, bool)
                before[rest] = True
        total = sum(order.total for order in orders)
        if total > _MOST:
            raise TooLargeError(
                f"The clique tables of the sites outside the cutset would have 2^{math.log2(total):.0f} "
                f"entries in all, which is above the limit of 2^{math.log2(_MOST):.0f}; give a smaller "
                f"{argument('width', 12)}."
            )
        tables, _ = lay_out_blocks(arrays, listed)
        return CutsetPlan(orders, seal(lay_out_cutsets(arrays, tables)), arrays)

    def parameters(self, graph: Graph) -> CutsetParameters:
        """Return the tree."""
        plan = self.plan(graph)
        return CutsetParameters(plan.tree, plan.model, _address(plan))

    def memory(self, graph: Graph, stream: Words64) -> CutWorkspace:
        """Allocate all messages."""
        plan = self.plan(graph)
        return make_messages(plan.tree, plan.model)

    def quick(self, graph: Graph) -> bool:
        """Return whether the model is small enough to find cutsets quickly."""
        return graph.n_sites <= _FEW_SITES

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return the sizes of the cutsets, the width of the rest, and the entries of its tables."""
        plan = self.plan(graph)
        sizes = [cutset.size for cutset in plan.cutsets]
        return {
            "cutsets": len(plan.orders),
            "smallest": min(sizes, default=0),
            "largest": max(sizes, default=0),
            "log2_largest_table": round(plan.log2_largest, 2),
            "entries": float(sum(order.total for order in plan.orders)),
        }

    def independent(self, graph: Graph) -> bool:
        """Whether the cutset is empty."""
        return self.plan(graph).tree.site.size == 0

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Run chains from both states with the same random numbers until they meet.

        Each move of a cutset site can be reversed, so states from which chains meet are connected.
        """
        parameters, total = self.parameters(graph), sum(order.total for order in self.plan(graph).orders)
        sweeps = int(np.clip(_MEETING_ENTRIES / (total + 1.0), 2, _MEETING_SWEEPS))
        chains = [
            (self.memory(graph, np.zeros(4, np.uint64)), np.array(state, graph.state_dtype)) for state in (here, there)
        ]
        words = rng.integers(1, 2**63, 4).astype(np.uint64)
        for memory, _ in chains:
            memory.words[:] = words
        for _ in range(sweeps):
            for unit in range(parameters.tree.start.size - 1):
                for memory, x in chains:
                    ask_collapse(parameters, memory, x, DRAW, unit, 0)
            if np.array_equal(chains[0][1], chains[1][1]):
                return True
        return False


def _address(plan: CutsetPlan) -> Any:
    """Return the address of the compiled function that does all tasks."""
    if not _ADDRESSES:
        work = CutWorkspace(*(np.zeros(1, part) for part in "dddqqqddddqqqqdqQqq"))
        _ADDRESSES.append(point_at(collapse, plan.tree, plan.model, work, work.codes))
    return _ADDRESSES[0]


@compiled
def ask_collapse(parameters: CutsetParameters, memory: CutWorkspace, x: Array, what: int, u: int, j: int) -> None:
    """Do one of the tasks of :func:`.messages.collapse`."""
    memory.what[0], memory.what[1], memory.what[2] = what, u, j
    _collapse(parameters, memory, x)


@inlined
def _collapse(parameters: CutsetParameters, memory: CutWorkspace, x: Array) -> None:
    """Do a task on a copy of the states of a fixed type, so that the task is compiled only once."""
    codes = memory.codes
    for k in range(x.size):
        codes[k] = x[k]
    call_pointer(parameters.collapse, parameters.tree, parameters.model, memory, codes)
    for k in range(x.size):
        x[k] = codes[k]


@implement(step, CutsetParameters)
def _step(
    params: Any, arrays: Any, memory: CutWorkspace, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    model, work, what = params.model, memory, memory.what
    what[0], what[1] = MARGINALS if keep else DRAW, i
    store(work.words, rng)
    _collapse(params, memory, x)
    if keep and what[3] == 1:
        for number in range(model.card.size):
            site = np.uintp(number)
            size = np.int64(model.card[site])
            put_marginal(arrays, work.marginal, np.int64(model.offset[site]), size, site, cond)
    return load(work.words)


@implement(transition, CutsetParameters)
def _transition(
    parameters: CutsetParameters, arrays: Any, memory: CutWorkspace, x: Array, i: Integer, row: Floats
) -> Integer:
    """Write the probabilities of all states after a step.

    While cutset sites are drawn, the probability of a state of the cutset is stored at the state of all sites in which
    the other sites have their first value.
    """
    tree, model, work, what = parameters.tree, parameters.model, memory, memory.what
    n, count = x.size, np.int64(1)
    for k in range(n):
        count *= np.int64(model.card[k])
    begin, end = tree.tables.start[i], tree.tables.start[i + np.uintp(1)]
    for t in range(begin, end):
        x[tree.tables.site[t]] = 0
    for number in range(count):
        row[number] = 0.0
    row[_number(model, x)] = 1.0
    for j in range(tree.start[i], tree.start[i + np.uintp(1)]):
        site = tree.site[j]
        stride = np.int64(1)
        for k in range(site + 1, n):
            stride *= np.int64(model.card[k])
        size = np.int64(model.card[site])
        for number in range(count):
            # all states of the site are handled together, at its first state
            if (number // stride) % size == 0:
                total = 0.0
                for a in range(size):
                    total += row[number + stride * a]
                if total > 0.0:
                    best = 0
                    for a in range(size):  # a possible state to start from
                        best = a if row[number + stride * a] > 0.0 else best
                    _decode(model, x, number + stride * best)
                    what[0], what[1], what[2] = WEIGH, i, j
                    _collapse(parameters, memory, x)
                    for a in range(size):
                        row[number + stride * a] = total * work.chance[a]
    for number in range(count - 1, -1, -1):
        _decode(model, x, number)
        for t in range(begin, end):
            x[tree.tables.site[t]] = 0
        mass = row[_number(model, x)]
        _decode(model, x, number)
        row[number] = 0.0
        if mass > 0.0:
            what[0], what[1] = CHANCE, i
            _collapse(parameters, memory, x)
            row[number] = mass * work.chance[0]
    return count


@inlined
def _number(model: TableGraph, x: Array) -> Integer:
    """Return the number of a state, the last site fastest."""
    number = np.int64(0)
    for k in range(x.size):
        number = number * np.int64(model.card[k]) + np.int64(x[k])
    return number


@inlined
def _decode(model: TableGraph, x: Array, number: Integer) -> None:
    """Set a state by its number."""
    for k in range(x.size - 1, -1, -1):
        x[k] = number % np.int64(model.card[k])
        number //= np.int64(model.card[k])
