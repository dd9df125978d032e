"""Interventions on Bayesian networks: what happens if a site is set, not merely seen, and whether data could tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.wording import escaped
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.inference.questions.cases import CaseSolver
from gibbsite.inference.questions.evidence import _make_solver, _read_hard
from gibbsite.inference.questions.identification import find_adjustment, is_identifiable
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph
from gibbsite.models.factor import TableFactors
from gibbsite.models.networks.conditionals import conditional_tables
from gibbsite.models.networks.relations import children_of, reach
from gibbsite.results.joint import numeric


@checked
def intervene(model: FactorGraph, settings: Mapping[str, Any]) -> FactorGraph:
    """Return a Bayesian network in which some sites are set to states, whatever their parents are.

    Parameters
    ----------
    model : FactorGraph
        A Bayesian network, before any evidence.
    settings : mapping
        Site -> state. The table of each is replaced by certainty; evidence about other sites is observed afterwards.

    Examples
    --------
    >>> import gibbsite as gs
    >>> asia = gs.example("asia")
    >>> seen, done = asia.observe({"dysp": "yes"}), gs.questions.intervene(asia, {"dysp": "yes"})
    >>> round(gs.solve_exact(seen).marginals["lung"]["yes"], 4), round(gs.solve_exact(done).marginals["lung"]["yes"], 4)
    (0.1028, 0.055)
    """
    observed = _read_hard(model, settings, 1)
    groups = []
    for site, (scope, logs) in enumerate(conditional_tables(model, _refuse)):
        name = model.sites[site]
        if name in observed:
            with np.errstate(divide="ignore"):
                logs = np.log((np.arange(int(model.cards[site])) == model.domains.code(site, observed[name])) * 1.0)
            scope = (site,)
        groups.append(TableFactors([list(scope)], logs[None], True))
    return FactorGraph({name: model.labels(k) for k, name in enumerate(model.sites)}, groups=groups)


def _refuse(reason: str) -> IncompatibleError:
    return IncompatibleError(f"Interventions are on Bayesian networks, but {reason}.")


@dataclass(frozen=True)
class Effect(Shown):
    """The effect of setting a site on another one.

    Attributes
    ----------
    cause, effect : str
        The two sites.
    probabilities : dict
        State of the cause -> probabilities of the states of the effect, if the cause is set to it.
    seen : dict
        The same if the cause is only seen to be in the state.
    means : dict or None
        State of the cause -> mean of the effect, if its labels are numbers.
    adjustment : tuple of str or None
        The smallest set found of observed sites whose adjustment gives the effect from data; None if there is none.
    identifiable : bool
        Whether the effect could be computed from data about the sites that are not hidden, without the tables.
    errors : dict
        State of the cause -> standard errors of ``probabilities``; zero if they are exact.
    reasons : tuple of str
        Why sampled numbers cannot be relied upon.
    causal : bool
        Whether arrows lead from the cause to the effect at all.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.estimate_effect(gs.example("asia"), "bronc", "dysp")
    >>> round(found.difference("yes", "no", "yes"), 4), found.adjustment
    (0.6676, ('smoke',))
    """

    cause: str
    effect: str
    probabilities: Mapping[Any, Mapping[Any, float]]
    seen: Mapping[Any, Mapping[Any, float]]
    means: Mapping[Any, float] | None
    adjustment: tuple[str, ...] | None
    identifiable: bool
    errors: Mapping[Any, Mapping[Any, float]]
    reasons: tuple[str, ...] = ()
    causal: bool = True

    def difference(self, state: Any, other: Any, of: Any) -> float:
        """Return how much more probable a state of the effect is with one setting of the cause than with another."""
        return self.probabilities[state][of] - self.probabilities[other][of]

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the answer line by line."""
        cause, effect = escaped(self.cause), escaped(self.effect)
        for state, law in self.probabilities.items():
            shown = "  ".join(f"{escaped(one)} {p:.4f}" for one, p in law.items())
            seen = " ".join(f"{p:.4f}" for p in self.seen[state].values())
            mean = "" if self.means is None else f"   mean {self.means[state]:.6g}"
            yield f"P({effect} | do({cause} = {escaped(state)}))  {shown}{mean}   (if only seen: {seen})"
        if not self.causal:
            yield f"no effect: no arrows lead from {cause} to {effect}"
        elif self.adjustment is not None:
            names = ", ".join(map(escaped, self.adjustment)) or "nothing"
            yield f"from data: adjust for {names}"
        elif self.identifiable:
            yield "from data: identifiable, but by no adjustment"
        else:
            yield "from data: not identifiable"


@checked
def estimate_effect(
    model: FactorGraph,
    cause: str,
    effect: str,
    evidence: Mapping[str, Any] | None = None,
    hidden: Iterable[str] = (),
    **how: Any,
) -> Effect:
    """Return the probabilities of a site if another one is set to each of its states.

    Parameters
    ----------
    model : FactorGraph
        A Bayesian network whose edges are causes, before any evidence.
    cause, effect : site
        What is set, and what is asked for.
    evidence : mapping, optional
        Site -> state, observed after the cause has been set.
    hidden : iterable of sites
        Sites that are not recorded in the data from which the effect could be estimated. The numbers do not depend on
        it; whether there is a set to adjust for, and whether the effect is identifiable at all, does.
    **how
        ``method``, ``exact``, ``seconds`` and further arguments of :func:`gibbsite.infer`, for models that are sampled.

    Returns
    -------
    Effect

    References
    ----------
    Shpitser and Pearl (2006), Identification of joint interventional distributions in recursive semi-Markovian causal
    models. van der Zander, Liskiewicz and Textor (2014), Constructing separators and adjustment sets in ancestral
    graphs.

    Examples
    --------
    >>> import gibbsite as gs
    >>> print(gs.questions.estimate_effect(gs.example("asia"), "smoke", "lung"))
    P(lung | do(smoke = yes))  yes 0.1000  no 0.9000   (if only seen: 0.1000 0.9000)
    P(lung | do(smoke = no))  yes 0.0100  no 0.9900   (if only seen: 0.0100 0.9900)
    from data: adjust for nothing
    """
    first, last = model.index(cause), model.index(effect)
    if first == last:
        raise ArgumentError(f"Cause and effect are the same site, {cause!r}; name two sites.")
    tables = conditional_tables(model, _refuse)
    seen = _read_hard(model, evidence or {}, 0)
    name, target = model.sites[first], model.sites[last]
    if name in seen or target in seen:
        raise ArgumentError(f"{name if name in seen else target!r} is cause or effect, and observed; leave it out.")
    unseen = {model.sites[model.index(site)] for site in hidden}
    if name in unseen or target in unseen:
        raise ArgumentError("Cause and effect must be in the data; leave them out of the hidden sites.")
    states = model.labels(first)
    reasons: list[str] = []
    solver: CaseSolver = _make_solver(model, how)
    plain = solver.solve([{**seen, name: state} for state in states], query=[target], log_z=False)
    reasons += plain.reasons
    laws, errors = {}, {}
    cells = solver.cells_of(target)
    for state in states:
        done = _make_solver(intervene(model, {name: state}), how).solve([seen], query=[target], log_z=False)
        laws[state] = dict(zip(model.labels(last), done.cells[0, cells].tolist(), strict=True))
        errors[state] = dict(zip(model.labels(last), done.errors[0, cells].tolist(), strict=True))
        reasons += done.reasons
    labels = model.labels(last)
    means = None
    if numeric(labels):
        means = {state: sum(float(label) * p for label, p in law.items()) for state, law in laws.items()}
    parents = {model.sites[table.scope[-1]]: [model.sites[site] for site in table.scope[:-1]] for table in tables}
    adjustment = find_adjustment(parents, name, target, unseen)
    return Effect(
        name,
        target,
        laws,
        {
            state: dict(zip(labels, row[cells].tolist(), strict=True))
            for state, row in zip(states, plain.cells, strict=True)
        },
        means,
        None if adjustment is None else tuple(site for site in model.sites if site in adjustment),
        adjustment is not None or is_identifiable(parents, name, target, unseen),
        errors,
        tuple(dict.fromkeys(reasons)),
        target in reach([name], children_of(parents)),
    )
