"""Exact inference by a clique tree: marginals, partition function, most probable states, independent draws."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import unknown
from gibbsite._numba.jit import interpreted
from gibbsite.errors import ArgumentError, SupportError
from gibbsite.graphs.elimination.rings import LogSum, Max, Ring, Sum
from gibbsite.inference.exact.cost import MOST_BYTES, ExactCost, Limits
from gibbsite.inference.exact.memory import usable_memory
from gibbsite.inference.exact.plan import MOST_OWN, EliminationPlan, Loaded, Outline, make_plan, outline
from gibbsite.inference.exact.propagate import propagate
from gibbsite.inference.exact.result import ExactResult
from gibbsite.inference.exact.states import make_slate, rank_states, trace_draws
from gibbsite.models import FactorGraph
from gibbsite.models.extension import extend_model, fresh_name
from gibbsite.models.networks.expansion import expand, has_causes, tabulate
from gibbsite.results.table import SiteTable

TASKS = ("MAR", "MAP", "PR")
_NEGLIGIBLE = 1e-20  # relative error of plain arithmetic above which logarithms are used; far below rounding
# Steps of plain Python per entry of the cliques, for two passes, and the least number charged: a process that solves a
# third model is likely to solve more, and compiled code is faster for these.
_STEPS_PER_ENTRY, _LEAST_STEPS = 80.0, 1e6
_FEW_OWN = 16.0  # own states of a clique for draws, which enumerate them


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Elimination(ExactResult):
    """Exact answers from passes over a clique tree, each made when it is first needed."""

    model: FactorGraph
    outline: Outline
    limits: Limits

    @cached_property
    def cost(self) -> ExactCost:
        """Predicted cost of all marginals."""
        return self.outline.cost()

    @cached_property
    def log_z(self) -> float:
        """Natural logarithm of the partition function, evidence included."""
        return self._calibrated[0] if "_calibrated" in self.__dict__ else self._pass(False)[0]

    @cached_property
    def marginals(self) -> SiteTable:
        """Exact probabilities of the states of all sites, observed ones included."""
        reduction = self.outline.reduction
        cells = reduction.alive.astype(np.float64)  # correct for determined sites
        cards = expand(self.model).cards
        free = np.zeros(cards.size, np.bool_)
        free[reduction.problem.origin] = True
        cells[np.repeat(free, cards) & reduction.alive] = self._calibrated[1]
        return self._site_table(cells[: int(self.model.cards.sum())], False, 1.0)

    @cached_property
    def assignment_codes(self) -> Ints:
        """State codes of a most probable state of the free sites."""
        codes: Ints = self._rank(1, MOST_OWN)[0]
        return codes

    def _joint(self, free: list[int]) -> Floats:
        if len(free) == 1:
            return np.array(list(self.marginals[free[0]].values()))
        wide = add_configuration(self.model, free)
        cells = self._solve(wide).marginals[wide.n_sites - 1]
        shape = [int(self.model.cards[site]) for site in free]
        return np.array(list(cells.values())).reshape(shape)

    def _solve(self, model: FactorGraph) -> Elimination:
        return Elimination(model, outline(expand(model)), self.limits)

    def rank(self, many: int) -> Ints:
        """Return the most probable states of the free sites in order, as codes; fewer if fewer states are possible."""
        return self._rank(check_integer("many", many, 0), _FEW_OWN)

    def _rank(self, many: int, most_own: float) -> Ints:
        """Pass maxima towards the roots of a clique tree, and read off the best states."""
        if has_causes(self.model):  # the most probable state of hidden sites, too, would be another one
            return self._solve(tabulate(self.model))._rank(many, most_own)
        with self._interpreted(many):
            plan, ring = make_plan(self.outline, self.limits, most_own=most_own), Max()
            loaded = plan.load(ring)
            if propagate(ring, plan.tree, plan.operands, loaded.workspace, loaded.pool).log_sum == -np.inf:
                raise _impossible()
            return self._codes(rank_states(plan, loaded.pool, many))

    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """Draw independent states of the free sites, as codes (size, sites); later calls reuse the messages."""
        size = check_integer("size", size, 0)
        plan, ring, pool = self._sampler
        words = rng.integers(0, 2**64, 4, dtype=np.uint64)
        found = np.zeros((size, plan.tree.card.size), np.int64)
        trace_draws(ring, plan.tree, plan.operands, pool, make_slate(plan.tree), words, found)
        return self._codes(found)

    @cached_property
    def _sampler(self) -> tuple[EliminationPlan, Ring, Floats]:
        """Messages towards the roots of a tree with few own states per clique, which makes draws cheap."""
        plan = make_plan(self.outline, self.limits, most_own=_FEW_OWN)
        ring, loaded, _ = self._carry_out(plan)
        return plan, ring, loaded.pool

    @cached_property
    def _calibrated(self) -> tuple[float, Floats]:
        """Logarithm of the partition function, and the marginals of the undetermined sites."""
        return self._pass(True)

    def _pass(self, marginals: bool) -> tuple[float, Floats]:
        """Pass once or twice over the tree, in plain numbers if these do not underflow, otherwise in logarithms."""
        with self._interpreted():
            plan = make_plan(self.outline, self.limits)
            problem = plan.reduction.problem
            cells = np.zeros(problem.code.size)
            where = (cells, problem.code_start) if marginals else ()
            _, loaded, log_sum = self._carry_out(plan, *where)
        return loaded.log_constant + log_sum, cells

    def _interpreted(self, passes: int = 1) -> AbstractContextManager[None]:
        """Allow some passes over small trees without the compiler."""
        return interpreted(passes * max(_LEAST_STEPS, _STEPS_PER_ENTRY * self.outline.order.total))

    def _carry_out(self, plan: EliminationPlan, *where: Any) -> tuple[Ring, Loaded, float]:
        """Propagate sums, in plain numbers if they do not underflow, otherwise in logarithms."""
        for ring in (Sum(), LogSum()):
            loaded = plan.load(ring)
            if loaded.plain or isinstance(ring, LogSum):
                found = propagate(ring, plan.tree, plan.operands, loaded.workspace, loaded.pool, *where)
                if found.log_sum > -np.inf and (found.loss < _NEGLIGIBLE or isinstance(ring, LogSum)):
                    return ring, loaded, found.log_sum
            del loaded  # free the memory before the next load
        raise _impossible()

    def _codes(self, found: Ints) -> Ints:
        """Turn states of the undetermined sites into codes of all free sites of the model."""
        reduction = self.outline.reduction
        problem = reduction.problem
        codes = np.repeat(reduction.codes[None], len(found), axis=0)
        codes[:, problem.origin] = problem.code[problem.code_start[:-1] + found]
        return codes[:, : self.model.n_sites]


def add_configuration(model: FactorGraph, sites: Sequence[int]) -> FactorGraph:
    """Return the model with one more site, the last, whose state is the configuration of the given sites.

    The last of these varies fastest. A factor ties each of them to the configuration, so the largest table is
    configurations times states.
    """
    cards = [int(model.cards[site]) for site in sites]
    codes = np.indices(cards).reshape(len(cards), -1)
    name = fresh_name(model, "configuration")
    ties = [
        ((model.sites[site], name), (np.arange(card)[:, None] == codes[k]).astype(float))
        for k, (site, card) in enumerate(zip(sites, cards, strict=True))
    ]
    return extend_model(model, {name: codes.shape[1]}, ties)


def _impossible() -> SupportError:
    return SupportError("No state has positive probability; check the zeros and the evidence.")


@checked
def solve_exact(
    model: FactorGraph,
    *,
    task: str = "MAR",
    limit_bytes: float | None = None,
    limit_entries: float = Limits.entries,
    seconds: float | None = None,
    rng: int | None = None,
) -> ExactResult:
    """Solve a model exactly if the predicted cost is within the limits.

    Parameters
    ----------
    model : FactorGraph
        The model, with any evidence folded in.
    task : {"MAR", "PR", "MAP"}
        What to compute at once: marginals and the partition function, the partition function alone, or a most
        probable state. Everything else that the result offers is computed when it is first used.
    limit_bytes : float, optional
        Memory for the tables; by default 8 GB, or what this process may still use if that is less.
    limit_entries : float
        Entries of the largest clique, which is processed but never stored.
    seconds : float, optional
        Refuse computations that are predicted to take longer.
    rng : int, optional
        Seed of the search for an elimination order, by default a fixed one: the answer does not depend on it.

    Returns
    -------
    ExactResult

    Raises
    ------
    TooLargeError
        If a limit would be exceeded, before any table is allocated; the message has the predicted size.
    SupportError
        If no state is possible.

    See Also
    --------
    exact.predict_exact : Time and memory of an exact solution.
    infer : Choose a method and use it.
    exact.enumerate : Enumerate all states of a small model.

    Notes
    -----
    States that can never occur are removed first (generalised arc consistency). The elimination order is the best
    of several greedy tries. The clique tree is passed twice in scaled arithmetic, and again in logarithms if
    floating-point numbers could have underflowed.

    References
    ----------
    Lauritzen and Spiegelhalter (1988), Local computations with probabilities on graphical structures and their
    application to expert systems.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.solve_exact(gs.ising_grid((200,), coupling=0.4))
    >>> bool(np.isclose(exact.log_z, np.log(2) + 199 * np.log(2 * np.cosh(0.4))))
    True
    """
    if task not in TASKS:
        raise ArgumentError(unknown("Task", task, TASKS))
    most = min(MOST_BYTES, usable_memory()) if limit_bytes is None else limit_bytes
    result = Elimination(model, outline(expand(model), rng), Limits(float(most), float(limit_entries), seconds))
    _ = result.marginals if task == "MAR" else result.log_z if task == "PR" else result.assignment_codes
    return result


@checked
def predict_exact(model: FactorGraph, rng: int | None = None) -> ExactCost:
    """Predict the cost of :func:`solve_exact` without solving anything.

    Parameters
    ----------
    model : FactorGraph
        The model, with any evidence folded in.
    rng : int, optional
        Seed of the search for an elimination order; `solve_exact` uses the same order for the same seed.

    Returns
    -------
    ExactCost

    Examples
    --------
    >>> import gibbsite as gs
    >>> predict_exact(gs.ising_grid((100,))).largest
    4.0
    """
    return outline(expand(model), rng).cost()
