"""Cutset sampling: few sites are drawn, with all others summed out (Bidyuk and Dechter 2007).

A cutset is chosen so that the sites outside it have a junction tree of bounded width. A sweep draws every
cutset site from its exact conditional distribution given the rest of the cutset, everything else summed out,
and then everything else given the cutset. Messages of the tree are kept from step to step (:mod:`.messages`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._compile.jit import Integer, compiled, implement, inlined, interpreted
from gibbsite._compile.pointer import call_pointer, point_at
from gibbsite._random.generators import Words, load, store
from gibbsite._wording import argument
from gibbsite.elimination.order import Order
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.graph.compile import KINDS, as_tables
from gibbsite.graph.graph import Graph, seal
from gibbsite.graph.kinds.table import TableGraph
from gibbsite.kernel.base import Kernel, step, transition
from gibbsite.kernel.blocks.collapsed import CHANCE, DRAW, MARGINALS, WEIGH, collapse
from gibbsite.kernel.blocks.cut import choose_rest, lay_out_cutset
from gibbsite.kernel.blocks.gibbs import put_marginal
from gibbsite.kernel.blocks.messages import CutTree, CutWorkspace, workspace_sizes
from gibbsite.kernel.blocks.tables import find_interactions, lay_out_blocks, order_block
from gibbsite.kernel.blocks.ties import tie_sites
from gibbsite.kernel.registry import register

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# A chain keeps three messages for every table, of 4 GiB at most.
_MOST = 2.0**29
# How often all cutset sites are tried on the way from one state to another.
_ROUNDS = 10
# Plans that are kept for later.
_KEPT_PLANS = 8


class CutsetParameters(NamedTuple):
    """The tree, the model as tables, and the address of :func:`.collapsed.collapse`."""

    tree: CutTree
    model: TableGraph
    collapse: Any


class CutsetMemory(NamedTuple):
    """The messages of a chain, and what is asked."""

    work: CutWorkspace
    what: Longs

    @property
    def rebuildable(self) -> bool:
        """Messages that are computed again are the same bit by bit."""
        return True


@dataclass(frozen=True, eq=False)
class CutsetPlan:
    """A cutset, ready to be drawn.

    Attributes
    ----------
    order : Order
        In which the sites outside the cutset are eliminated, as positions among them, and what that costs.
    tree : CutTree
        Their clique tables, and the cutset in the order in which it is visited (``tree.site``).
    model : TableGraph
        The model as tables.
    """

    order: Order
    tree: CutTree
    model: TableGraph


_PLANS: dict[tuple[Any, ...], CutsetPlan] = {}
_ADDRESSES: dict[Any, Any] = {}


@register(
    methods={"cutset": ("MAR", "MAP")},
    proof=[{"width": 1}, {"width": 2}, {"width": 12}],
    recommend={"CutsetGibbs": {}},
)
@dataclass(frozen=True)
class CutsetGibbs(Kernel):
    """Cutset sampling, also known as collapsed Gibbs sampling.

    Parameters
    ----------
    width : float
        A cutset is chosen so that the clique tables of the other sites have at most 2**width entries. Where
        that is enough for all sites, the cutset is empty, and every draw is independent and exact.

    Notes
    -----
    A step is a sweep: every site of the cutset is drawn once, then all other sites at once. Draws are states
    of all sites. The marginals of other sites are exact given the cutset, those of a cutset site are exact
    given the rest of the cutset.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.4, field=0.1)
    >>> result = gs.sample(model, gs.CutsetGibbs(width=3), sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["5"][1] - gs.solve_exact(model).marginals["5"][1]) < 0.01
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    joint: ClassVar[bool] = True
    width: float = 12

    @property
    def reversible(self) -> bool:
        """Cutset sites are visited in a fixed order."""
        return False

    def plan(self, graph: Graph) -> CutsetPlan:
        """Return the cutset of a graph and the tables of the other sites; found once and kept."""
        key = (graph.digest, self._width())
        found = _PLANS.get(key)
        if found is None:
            while len(_PLANS) >= _KEPT_PLANS:
                _PLANS.pop(next(iter(_PLANS)))
            found = _PLANS[key] = self._make_plan(graph)
        return found

    def _width(self) -> float:
        """Return the width, checked."""
        good = isinstance(self.width, Real) and not isinstance(self.width, bool)
        if not good or not 1 <= self.width < math.inf:
            raise ArgumentError(
                f"{argument('width')} must be a number of at least 1, log2 of the entries of a clique table, "
                f"got {self.width!r}."
            )
        return float(self.width)

    def _make_plan(self, graph: Graph) -> CutsetPlan:
        arrays: TableGraph = as_tables(graph).arrays
        near, width = find_interactions(arrays), self._width()
        with interpreted(math.inf):
            known = choose_rest(near, arrays.card, width, tie_sites(arrays))
            rest = np.sort(known)
            order = order_block(near, arrays.card, rest, known, width)
        if order.total > _MOST:
            raise TooLargeError(
                f"The clique tables of the {rest.size} sites outside the cutset would have "
                f"2^{math.log2(order.total):.0f} entries in all, of 2^{math.log2(_MOST):.0f} that are "
                f"possible; give a smaller {argument('width', 12)}."
            )
        tables, _ = lay_out_blocks(arrays, [rest[order.sites]])
        return CutsetPlan(order, seal(lay_out_cutset(arrays, tables)), arrays)

    def parameters(self, graph: Graph) -> CutsetParameters:
        """Return the tree."""
        plan = self.plan(graph)
        return CutsetParameters(plan.tree, plan.model, _address(plan, graph))

    def memory(self, graph: Graph, stream: NDArray[np.uint64]) -> CutsetMemory:
        """Allocate room for all messages."""
        plan = self.plan(graph)
        sizes = workspace_sizes(plan.tree, plan.model)
        return CutsetMemory(CutWorkspace(*(np.zeros(n, kind) for n, kind in sizes)), np.zeros(3, np.int64))

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        plan = self.plan(graph)
        return 8 * (3 + sum(n for n, _ in workspace_sizes(plan.tree, plan.model)))

    def forget(self, memory: Any) -> None:
        """Compute all messages anew."""
        memory.work.valid[:] = 0
        memory.work.fresh[:] = 0

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Give cutset sites the states they are to have, as long as others can be found for all other sites.

        Where the cutset is as it is to be, all other sites can be drawn as they are to be.
        """
        parameters, goal = self.parameters(graph), np.asarray(there)
        memory = self.memory(graph, np.zeros(4, np.uint64))
        x = np.array(here, graph.state_dtype)
        sites = parameters.tree.site
        for _ in range(_ROUNDS):
            before = x.copy()
            for j in rng.permutation(np.flatnonzero(x[sites] != goal[sites])).tolist():
                _ask(parameters, memory, x, WEIGH, j)
                if memory.what[2] == 1 and memory.work.chance[goal[sites[j]]] > 0.0:
                    x[sites[j]] = goal[sites[j]]
                    self.forget(memory)
            if np.array_equal(x[sites], goal[sites]):
                return True
            if np.array_equal(x, before):
                break
        return super().connects(graph, here, there, rng)


def _address(plan: CutsetPlan, graph: Graph) -> Any:
    """Return the address of the function that makes a sweep, compiled for the states of a graph."""
    found = _ADDRESSES.get(graph.state_dtype)
    if found is None:
        work = CutWorkspace(*(np.zeros(1, part) for part in "dddqqddddqqqqdqQ"))
        x, what = np.zeros(1, graph.state_dtype), np.zeros(3, np.int64)
        found = _ADDRESSES[graph.state_dtype] = point_at(collapse, plan.tree, plan.model, work, x, what)
    return found


@compiled
def _ask(parameters: CutsetParameters, memory: CutsetMemory, x: NDArray[Any], what: int, j: int) -> None:
    """Ask for something that moves nothing, see :func:`.collapsed.collapse`."""
    memory.what[0], memory.what[1] = what, j
    call_pointer(parameters.collapse, parameters.tree, parameters.model, memory.work, x, memory.what)


@implement(step, CutsetParameters)
def _step(
    parameters: CutsetParameters,
    arrays: Any,
    memory: CutsetMemory,
    x: NDArray[Any],
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    tree, model, work, what = parameters.tree, parameters.model, memory.work, memory.what
    what[0] = MARGINALS if keep else DRAW
    store(work.words, rng)
    call_pointer(parameters.collapse, tree, model, work, x, what)
    if keep and what[2] == 1:
        for number in range(model.card.size):
            site = np.uintp(number)
            size = np.int64(model.card[site])
            put_marginal(arrays, work.marginal, np.int64(model.offset[site]), size, site, cond)
    return load(work.words)


@implement(transition, CutsetParameters)
def _transition(
    parameters: CutsetParameters,
    arrays: Any,
    memory: CutsetMemory,
    x: NDArray[Any],
    i: Integer,
    row: Floats,
) -> Integer:
    """Write the probabilities of all states after a sweep.

    While the cutset moves, the probability of a state of the cutset is kept where all other sites are in
    their first states.
    """
    tree, model, work, what = parameters.tree, parameters.model, memory.work, memory.what
    n, count = x.size, np.int64(1)
    for k in range(n):
        count *= np.int64(model.card[k])
    for t in range(tree.tables.site.size):
        x[tree.tables.site[t]] = 0
    for number in range(count):
        row[number] = 0.0
    row[_number(model, x)] = 1.0
    for j in range(tree.site.size):
        site = tree.site[j]
        stride = np.int64(1)
        for k in range(site + 1, n):
            stride *= np.int64(model.card[k])
        size = np.int64(model.card[site])
        for number in range(count):
            # all states of the site are treated together, at the first one
            if (number // stride) % size == 0:
                total = 0.0
                for a in range(size):
                    total += row[number + stride * a]
                if total > 0.0:
                    best = np.int64(0)
                    for a in range(size):  # a possible state to start from
                        best = a if row[number + stride * a] > 0.0 else best
                    _decode(model, x, number + stride * best)
                    for s in range(work.valid.size):
                        work.valid[s] = 0
                    what[0], what[1] = WEIGH, j
                    call_pointer(parameters.collapse, tree, model, work, x, what)
                    for a in range(size):
                        row[number + stride * a] = total * work.chance[a]
    for number in range(count - 1, -1, -1):
        _decode(model, x, number)
        for t in range(tree.tables.site.size):
            x[tree.tables.site[t]] = 0
        mass = row[_number(model, x)]
        _decode(model, x, number)
        row[number] = 0.0
        if mass > 0.0:
            for s in range(work.valid.size):
                work.valid[s] = 0
            what[0] = CHANCE
            call_pointer(parameters.collapse, tree, model, work, x, what)
            row[number] = mass * work.chance[0]
    return count


@inlined
def _number(model: TableGraph, x: NDArray[Any]) -> Integer:
    """Return the number of a state, the last site fastest."""
    number = np.int64(0)
    for k in range(x.size):
        number = number * np.int64(model.card[k]) + np.int64(x[k])
    return number


@inlined
def _decode(model: TableGraph, x: NDArray[Any], number: Integer) -> None:
    """Set a state by its number."""
    for k in range(x.size - 1, -1, -1):
        x[k] = number % np.int64(model.card[k])
        number //= np.int64(model.card[k])
