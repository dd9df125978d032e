"""Which observation to make next: the one that is expected to tell most about a target, for its cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked, is_number
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument, escaped
from gibbsite.errors import ArgumentError
from gibbsite.inference.questions.cases import Case, CaseSolver
from gibbsite.inference.questions.evidence import _make_solver, _read_hard
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph

_BATCHES = 20  # of draws, whose spread gives the standard errors of information
_TOLD = 1e-9  # bits below which an observation says nothing


@dataclass(frozen=True)
class Candidate:
    """An observation that could be made.

    Attributes
    ----------
    site : str
        What would be observed.
    bits : float
        By how many bits it is expected to reduce the entropy of the target, which is their mutual information.
    error : float
        Standard error of ``bits``; zero if it is exact, NaN if the run it comes from has not converged.
    cost : float
        What it costs.
    probabilities : dict
        Probability of each of its states.

    Examples
    --------
    >>> Candidate("xray", 0.25, 0.0, 2.0, {"yes": 0.1, "no": 0.9}).per_cost
    0.125
    """

    site: str
    bits: float
    error: float
    cost: float
    probabilities: Mapping[Any, float] = field(default_factory=dict)

    @property
    def per_cost(self) -> float:
        """Bits for a unit of cost."""
        return self.bits / self.cost


@dataclass(frozen=True)
class NextObservations(Shown):
    """Observations that could be made next, the most informative for its cost first.

    Attributes
    ----------
    target : str
        What is to be learnt about.
    entropy : float
        Entropy of the target now, in bits.
    probabilities : dict
        Probability of each of its states now.
    candidates : tuple of Candidate
    reasons : tuple of str
        Why sampled numbers cannot be relied upon.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.rank_observations(gs.example("asia"), "lung")
    >>> [one.site for one in found.candidates[:2]], round(found.candidates[1].bits, 4)
    (['either', 'xray'], 0.1848)
    """

    target: str
    entropy: float
    probabilities: Mapping[Any, float]
    candidates: tuple[Candidate, ...]
    reasons: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate | None:
        """The first of the candidates, None if no observation tells anything."""
        return self.candidates[0] if self.candidates and self.candidates[0].bits > _TOLD else None

    def lines(self, most: int = 10) -> Iterator[str]:
        """Yield the best candidates line by line."""
        yield f"{escaped(self.target)}: entropy {self.entropy:.4f} bits"
        width = max((len(escaped(one.site)) for one in self.candidates[:most]), default=0)
        for one in self.candidates[:most]:
            sign = " +- not known" if math.isnan(one.error) else f" +- {one.error:.2g}" if one.error > 0 else ""
            price = "" if one.cost == 1.0 else f"  {one.per_cost:.4f} for a unit of cost {one.cost:g}"
            yield f"  {escaped(one.site):<{width}}  {one.bits:.4f} bits{sign}{price}"


@checked
def rank_observations(
    model: FactorGraph,
    target: str,
    evidence: Mapping[str, Any] | None = None,
    candidates: Sequence[str] | None = None,
    costs: Mapping[str, float] | None = None,
    **how: Any,
) -> NextObservations:
    """Rank the sites that could be observed next by what they are expected to tell about a target.

    Parameters
    ----------
    model : FactorGraph
        The model.
    target : str
        The site to learn about.
    evidence : mapping, optional
        Site -> state of what is observed already.
    candidates : sequence of sites, optional
        What could be observed; by default all sites but the target and those observed.
    costs : mapping, optional
        Site -> cost of observing it, 1 by default. Candidates are ranked by bits for a unit of cost.
    **how
        ``method``, ``exact``, ``seconds`` and further arguments of :func:`gibbsite.infer`. A model that is sampled is
        sampled once, by single-site Gibbs sampling or the ``method``, and the information is computed from the draws.

    Returns
    -------
    NextObservations

    Examples
    --------
    >>> import gibbsite as gs
    >>> tests = {"xray": 5.0, "dysp": 1.0, "bronc": 20.0}
    >>> print(gs.questions.rank_observations(gs.example("asia"), "lung", {"smoke": "yes"}, list(tests), tests))
    lung: entropy 0.4690 bits
      xray   0.3064 bits  0.0613 for a unit of cost 5
      dysp   0.0253 bits
      bronc  0.0000 bits  0.0000 for a unit of cost 20
    """
    seen, offered, prices = _read_question(model, target, evidence, candidates, costs)
    solver = _make_solver(model, how)
    if not solver.is_exact:
        return _from_draws(model, target, seen, offered, prices, how)
    return _exactly(solver, target, seen, offered, prices)[0]


def _read_question(
    model: FactorGraph,
    target: str,
    evidence: Mapping[str, Any] | None,
    candidates: Sequence[str] | None,
    costs: Mapping[str, float] | None,
) -> tuple[dict[str, Any], list[str], dict[str, float]]:
    seen = _read_hard(model, evidence or {}, 0)
    target = model.sites[model.index(target)]
    if target in seen:
        raise ArgumentError(f"The target {target!r} is observed already; name another one.")
    names = model.sites if candidates is None else [model.sites[model.index(site)] for site in candidates]
    offered = [name for name in dict.fromkeys(names) if name != target and name not in seen]
    if not offered:
        raise ArgumentError("There is nothing left to observe; name candidates that are not observed yet.")
    prices = {}
    for site, cost in (costs or {}).items():
        if not is_number(cost) or not 0 < cost < math.inf:
            raise ArgumentError(f"The cost of observing {site!r} must be a positive number, got {cost!r}.")
        prices[model.sites[model.index(site)]] = float(cost)
    return seen, offered, prices


def _exactly(
    solver: CaseSolver, target: str, seen: Case, offered: Sequence[str], prices: Mapping[str, float]
) -> tuple[NextObservations, dict[tuple[str, Any], Floats]]:
    """Return the ranking, and the probabilities of the target after each observation."""
    model = solver.model
    cells = solver.cells_of(target)
    options = [(site, state) for site in offered for state in model.labels(site)]
    solved = solver.solve([seen, *({**seen, site: state} for site, state in options)])
    now = solved.cells[0, cells]
    if np.isnan(now).any():
        raise ArgumentError("The observations are impossible together.")
    chances = np.exp(solved.log_z[1:] - solved.log_z[0]).tolist()
    laws = dict(zip(options, solved.cells[1:, cells], strict=True))
    chance = dict(zip(options, chances, strict=True))
    entropy, found = _entropy(now), []
    for site in offered:
        states = {state: chance[site, state] for state in model.labels(site)}
        after = sum(p * _entropy(laws[site, state]) for state, p in states.items() if p > 0)
        found.append(Candidate(site, max(entropy - after, 0.0), 0.0, prices.get(site, 1.0), states))
    probabilities = dict(zip(model.labels(target), now.tolist(), strict=True))
    return NextObservations(target, entropy, probabilities, _ranked(found)), laws


def _from_draws(
    model: FactorGraph,
    target: str,
    seen: Case,
    offered: Sequence[str],
    prices: Mapping[str, float],
    how: Mapping[str, Any],
) -> NextObservations:
    """Estimate the information from draws of the model given what is observed; errors come from batches of draws."""
    from gibbsite.inference.methods import DEFAULT_SECONDS
    from gibbsite.inference.sampling import sample
    from gibbsite.kernels.registry import make_kernel

    observed = model.observe(seen) if seen else model
    method = how.get("method", "auto")
    kernel: Any = make_kernel("gibbs" if method == "auto" else method) if isinstance(method, str) else method
    run = {name: value for name, value in how.items() if name not in ("method", "exact", "seconds")}
    if "sweeps" not in run:
        run["seconds"] = how.get("seconds", DEFAULT_SECONDS)
    result = sample(observed, kernel, record=["marginals", "draws"], **{"progress": False, **run})
    drawn = result.draws
    where = {name: k for k, name in enumerate(observed.sites)}
    pieces = np.array_split(drawn.reshape(-1, drawn.shape[-1]), _BATCHES)
    cards = observed.cards
    at = where[target]
    found = []
    for site in offered:
        tables = [_counts(piece[:, [at, where[site]]], cards[[at, where[site]]]) for piece in pieces]
        whole = sum(tables[1:], tables[0])
        p = (whole.sum(axis=0) / max(whole.sum(), 1.0)).tolist()
        left_out = np.array([_information(whole - table) for table in tables])
        bits = _BATCHES * _information(whole) - (_BATCHES - 1) * float(left_out.mean())  # the jackknife
        spread = math.sqrt((_BATCHES - 1) / _BATCHES * float(np.square(left_out - left_out.mean()).sum()))
        if not result.diagnostics.converged:  # batches of chains that are stuck say nothing about the error
            spread = math.nan
        states = dict(zip(observed.labels(site), p, strict=True))
        found.append(Candidate(site, max(bits, 0.0), spread, prices.get(site, 1.0), states))
    laws = result.marginals[target]
    return NextObservations(
        target, _entropy(np.array(list(laws.values()))), laws, _ranked(found), tuple(result.diagnostics.reasons)
    )


def _counts(codes: Any, cards: Any) -> Floats:
    table = np.zeros(tuple(int(card) for card in cards))
    np.add.at(table, (codes[:, 0].astype(np.int64), codes[:, 1].astype(np.int64)), 1.0)
    return table


def _information(table: Floats) -> float:
    """Return the mutual information of counts, in bits."""
    return _entropy(table.sum(axis=0)) + _entropy(table.sum(axis=1)) - _entropy(table.ravel())


def _entropy(weights: Floats) -> float:
    p = weights[weights > 0] / max(float(weights.sum()), 1e-300)
    return float(-(p * np.log2(p)).sum()) + 0.0


def _ranked(found: list[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(found, key=lambda one: -one.per_cost))


@dataclass(frozen=True)
class ObservationPlan(Shown):
    """What to observe first, and what then, depending on what is seen.

    Attributes
    ----------
    site : str or None
        What to observe; None if nothing more tells anything, or the plan ends.
    entropy : float
        Entropy of the target before the observation, in bits.
    expected : float
        Entropy of the target that is expected at the end of the plan.
    cost : float
        Cost that is expected.
    target : dict
        Probability of each state of the target at this point.
    probability : float
        Probability of arriving here.
    branches : dict
        State of ``site`` -> the rest of the plan.

    Examples
    --------
    >>> import gibbsite as gs
    >>> plan = gs.questions.plan_observations(gs.example("asia"), "lung", candidates=["xray", "dysp", "smoke"], depth=2)
    >>> plan.site, plan.branches["yes"].site
    ('xray', 'smoke')
    """

    site: str | None
    entropy: float
    expected: float
    cost: float
    target: Mapping[Any, float]
    probability: float = 1.0
    branches: Mapping[Any, ObservationPlan] = field(default_factory=dict)

    def lines(self, most: int = 1000) -> Iterator[str]:
        """Yield the plan as an indented tree."""
        yield (
            f"entropy {self.entropy:.4f} bits; {self.expected:.4f} expected after the plan, "
            f"at a cost of {self.cost:.4g}"
        )
        yield from itertools.islice(self._tree(""), most)

    def _tree(self, indent: str) -> Iterator[str]:
        if self.site is None:
            likely = max(self.target, key=lambda state: self.target[state])
            yield f"{indent}stop: {escaped(likely)} {self.target[likely]:.4f}"
            return
        yield f"{indent}observe {escaped(self.site)}"
        for state, branch in self.branches.items():
            yield f"{indent}  {escaped(state)} ({branch.probability / max(self.probability, 1e-300):.4f}):"
            yield from branch._tree(indent + "    ")


@checked
def plan_observations(
    model: FactorGraph,
    target: str,
    evidence: Mapping[str, Any] | None = None,
    candidates: Sequence[str] | None = None,
    costs: Mapping[str, float] | None = None,
    *,
    depth: int = 3,
    beam: int = 6,
    least: float = 0.001,
) -> ObservationPlan:
    """Plan up to three observations, each chosen by what was seen before; for models that are solved exactly.

    Parameters
    ----------
    model, target, evidence, candidates, costs
        As in :func:`rank_observations`.
    depth : int
        Number of observations on a path, 1 to 3.
    beam : int
        Number of candidates that are followed to the end of the plan at each point, the best first; the one with the
        largest expected number of bits for a unit of cost is chosen.
    least : float
        Observations that are expected to tell fewer bits are not made.

    Returns
    -------
    ObservationPlan

    Examples
    --------
    >>> import gibbsite as gs
    >>> asia = gs.example("asia")
    >>> print(gs.questions.plan_observations(asia, "lung", candidates=["xray", "bronc"], depth=1))
    entropy 0.3073 bits; 0.1225 expected after the plan, at a cost of 1
    observe xray
      yes (0.1103):
        stop: no 0.5113
      no (0.8897):
        stop: no 0.9988
    """
    depth, beam = check_integer("depth", depth, 1), check_integer("beam", beam, 1)
    if depth > 3:
        raise ArgumentError(f"{argument('depth')} must be 1, 2 or 3, got {depth}.")
    seen, offered, prices = _read_question(model, target, evidence, candidates, costs)
    solver = CaseSolver(model)
    if not solver.is_exact:
        raise ArgumentError(
            f"A plan needs a model that can be solved exactly ({solver.chosen[1]}); rank the next observation instead."
        )
    law = solver.solve([seen]).cells[0, solver.cells_of(target)]
    return _Planner(solver, target, prices, beam, least).plan(seen, offered, depth, 1.0, law)


@dataclass(frozen=True)
class _Planner:
    """Looks for the best plan by following the best candidates at each point."""

    solver: CaseSolver
    target: str
    prices: Mapping[str, float]
    beam: int
    least: float

    def plan(self, seen: Case, offered: Sequence[str], depth: int, chance: float, law: Floats) -> ObservationPlan:
        """Return the best plan of some depth after what is seen; ``law`` are the probabilities of the target."""
        entropy = _entropy(law)
        laws = dict(zip(self.solver.model.labels(self.target), law.tolist(), strict=True))
        best, value = ObservationPlan(None, entropy, entropy, 0.0, laws, chance), 0.0
        if not offered or depth == 0 or entropy < self.least:
            return best
        options, after = _exactly(self.solver, self.target, seen, offered, self.prices)
        for one in options.candidates[: self.beam if depth > 1 else 1]:
            if one.bits < self.least:
                continue
            rest = [name for name in offered if name != one.site]
            possible = {state: p for state, p in one.probabilities.items() if p > 0}
            branches = {
                state: self.plan({**seen, one.site: state}, rest, depth - 1, chance * p, after[one.site, state])
                for state, p in possible.items()
            }
            expected = sum(p * branches[state].expected for state, p in possible.items())
            cost = one.cost + sum(p * branches[state].cost for state, p in possible.items())
            gain = (entropy - expected) / cost
            if gain > value * (1 + 1e-12):
                value = gain
                best = ObservationPlan(one.site, entropy, expected, cost, laws, chance, branches)
        return best
