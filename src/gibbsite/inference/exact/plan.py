"""The plan of an exact computation: the reduced model, the clique tree, and the places of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import interpreted
from gibbsite.graphs.elimination.order import EliminationOrder, find_order, interaction_graph
from gibbsite.graphs.elimination.rings import Ring, Sum
from gibbsite.inference.exact.cost import ExactCost, Limits, cost_of_order, cost_of_tree
from gibbsite.inference.exact.potentials import Operands, Potentials, fill_potentials, plan_tables
from gibbsite.inference.exact.reduce import Reduction, reduce_model
from gibbsite.inference.exact.sweep import SweepWorkspace, make_workspace
from gibbsite.inference.exact.tree import MOST_AXES, CliqueTree, build_tree

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


# Own states up to which cliques within others are merged: messages are then at most a little larger than needed, and
# the states of own sites can be enumerated.
MOST_OWN = 4096.0
_LOWEST = -700.0  # exponentials of smaller numbers lose precision


@dataclass(frozen=True, eq=False)
class Outline:
    """A reduced model, its interaction graph in compressed rows, and the elimination order."""

    reduction: Reduction
    start: Ints
    neighbour: Ints
    order: EliminationOrder

    def tree(self, most_own: float = MOST_OWN) -> CliqueTree | None:
        """Build the clique tree; None if cliques have too many axes to be represented."""
        if self.order.log2_largest > MOST_AXES:
            return None
        cards = self.reduction.problem.cards
        with interpreted(10.0 * self.order.members):
            return build_tree(self.order, self.start, self.neighbour, cards, most_own=most_own)

    def cost(self) -> ExactCost:
        """Predict the cost of all marginals."""
        tree = self.tree()
        return cost_of_order(self.order) if tree is None else cost_of_tree(tree)


class _Orders(dict[int, tuple[Any, Any, Any, Any]]):
    """Living states, neighbours and elimination order by seed."""


def outline(model: FactorGraph, rng: int | None = None) -> Outline:
    """Reduce a model and find an elimination order; models of the same structure share the order."""
    reduction = reduce_model(model)
    rng = 0 if rng is None else check_integer("rng", rng, 0)
    kept = model.shared[_Orders]
    known = kept.get(rng)
    if known is not None and np.array_equal(known[0], reduction.alive):
        return Outline(reduction, *known[1:])
    found = _find(reduction, _lattice_width(model), rng)
    kept[rng] = (reduction.alive, found.start, found.neighbour, found.order)
    return found


def _find(reduction: Reduction, width: int, rng: int) -> Outline:
    problem = reduction.problem
    n = problem.cards.size
    if width > MOST_AXES and n == reduction.codes.size:
        nothing = np.zeros(0, np.int64)
        return Outline(reduction, nothing, nothing, EliminationOrder(np.arange(n), 0, width + 1.0, np.inf, 0))
    start, neighbour = interaction_graph(problem.member_start, problem.member, n)
    with interpreted(n**3 / 4):
        order = find_order(start, neighbour, problem.cards, seed=check_integer("rng", rng, 0))
    return Outline(reduction, start, neighbour, order)


def _lattice_width(model: FactorGraph) -> int:
    """Return a lower bound of the treewidth: that of the largest plane of a lattice, its shorter side."""
    from gibbsite.models import LatticeFactors

    sides = [sorted(group.shape) for group in model.groups if isinstance(group, LatticeFactors)]
    return max((shape[-2] for shape in sides if len(shape) > 1), default=0)


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """A reduced model, its clique tree, the potentials that combine its factors, and the tables of each clique."""

    reduction: Reduction
    tree: CliqueTree
    potentials: Potentials
    operands: Operands

    def load(self, ring: Ring) -> Loaded:
        """Allocate the arrays for passes over the tree, and write the potentials."""
        pool = np.empty(int(self.operands.message[-1]))
        shift, lowest = fill_potentials(self.reduction.problem, self.potentials, pool)
        if isinstance(ring, Sum):
            head = pool[: self.potentials.table[-1]]
            np.exp(head, out=head)
        constant = self.reduction.log_constant + shift
        return Loaded(make_workspace(self.tree, self.operands), pool, constant, lowest > _LOWEST)


class Loaded(NamedTuple):
    """A plan ready for execution: workspace, all tables, and the constant taken out of them.

    ``plain`` is True if all potentials are large enough for plain numbers.
    """

    workspace: SweepWorkspace
    pool: Floats
    log_constant: float
    plain: bool


def make_plan(found: Outline, limits: Limits, most_own: float = MOST_OWN) -> EliminationPlan:
    """Return a plan with at most ``most_own`` own states of a clique; raise TooLargeError before allocating."""
    tree = found.tree(most_own)
    limits.check(cost_of_order(found.order) if tree is None else cost_of_tree(tree))
    if tree is None:  # a table of 2^60 entries is impossible whatever the given limits
        Limits().check(cost_of_order(found.order))
        raise AssertionError("unreachable")
    potentials, operands = plan_tables(tree, found.reduction.problem)
    limits.check(cost_of_tree(tree, float(potentials.table[-1])))
    return EliminationPlan(found.reduction, tree, potentials, operands)
