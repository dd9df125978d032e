"""What observations say about each other and about a conclusion: conflict, contradictions, support."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked, describe
from gibbsite._common.wording import argument, escaped
from gibbsite.errors import ArgumentError
from gibbsite.inference.questions.cases import CaseSolver
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph

_LEAST = 1e-9  # a conflict that is not rounding
_MOST_TRIED = 20_000  # sets of observations that are tried for a contradiction of the smallest size


@dataclass(frozen=True)
class Conflict(Shown):
    """How far observations contradict each other.

    Attributes
    ----------
    value : float
        log(P(e1) P(e2) ... / P(e1, e2, ...)), natural logarithm. Below zero the observations support each other; above
        it they are less probable together than if they had nothing to do with each other. Infinite if they are
        impossible together.
    error : float
        Standard error of ``value``; zero if it is exact.
    log_probability : float
        log P(e1, e2, ...).
    pairs : dict
        The same measure for each pair of observations, the largest first.
    contradiction : tuple of str
        The smallest set of observations that are in conflict: impossible together, or, if all are possible, a pair
        or triple with a positive value. Empty if there is none.
    reasons : tuple of str
        Why sampled numbers cannot be relied upon.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.measure_conflict(gs.example("asia"), {"tub": "yes", "lung": "yes", "either": "no"})
    >>> found.value, found.contradiction
    (inf, ('tub', 'either'))
    """

    value: float
    error: float
    log_probability: float
    pairs: Mapping[tuple[str, str], float]
    contradiction: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the answer line by line."""
        if math.isinf(self.value):
            yield "conflict: the observations are impossible together"
        else:
            word = "in conflict" if self.value > _LEAST else "in agreement"
            sign = f" +- {self.error:.2g}" if self.error > 0 else ""
            yield f"conflict {self.value:.4g}{sign} ({word}); log P(evidence) = {self.log_probability:.6g}"
        if self.contradiction:
            what = "impossible together" if math.isinf(self.value) else "in conflict"
            yield f"smallest set {what}: {', '.join(map(escaped, self.contradiction))}"
        for (one, other), value in list(self.pairs.items())[:5]:
            if value > _LEAST and not math.isinf(value):
                yield f"  {escaped(one)}, {escaped(other)}: {value:.4g}"


@checked
def measure_conflict(model: FactorGraph, evidence: Mapping[str, Any], **how: Any) -> Conflict:
    """Return how far observations contradict each other, and the smallest set that does.

    Parameters
    ----------
    model : FactorGraph
        A Bayesian network, or another model, before the evidence.
    evidence : mapping
        Site -> state of two observations or more.
    **how
        ``method``, ``exact``, ``seconds`` and further arguments of :func:`gibbsite.infer`, for models that are sampled.

    References
    ----------
    Jensen, Chamberlain, Nordahl and Jensen (1991), Analysis in HUGIN of data conflict.

    Examples
    --------
    >>> import gibbsite as gs
    >>> print(gs.questions.measure_conflict(gs.example("asia"), {"xray": "yes", "lung": "no", "tub": "no"}))
    conflict 0.7911 (in conflict); log P(evidence) = -3.06276
    smallest set in conflict: xray, lung
      xray, lung: 0.6143
      xray, tub: 0.08651
    """
    observed = _read_hard(model, evidence, 2)
    solver = _make_solver(model, how)
    names = list(observed)
    pairs = list(itertools.combinations(names, 2)) if solver.is_exact else []
    cases = [{}, observed, *({name: observed[name]} for name in names)]
    solved = solver.solve([*cases, *({one: observed[one], two: observed[two]} for one, two in pairs)], query=[])
    logs = solved.log_z - solved.log_z[0]
    single = dict(zip(names, logs[2 : 2 + len(names)].tolist(), strict=True))
    together = float(logs[1])
    value = math.inf if np.isneginf(together) else sum(single.values()) - together
    error = float(np.sqrt(np.square(solved.log_z_error).sum())) if not solver.is_exact else 0.0
    of_pairs = {
        pair: math.inf if np.isneginf(log) else single[pair[0]] + single[pair[1]] - float(log)
        for pair, log in zip(pairs, logs[len(cases) :], strict=True)
    }
    ranked = dict(sorted(of_pairs.items(), key=lambda item: -item[1]))
    found: tuple[str, ...] = ()
    if solver.is_exact and value > _LEAST:
        found = _smallest_conflict(solver, observed, single, ranked, math.isinf(value))
    return Conflict(value, error, together, ranked, found, solved.reasons)


def _smallest_conflict(
    solver: CaseSolver,
    observed: Mapping[str, Any],
    single: Mapping[str, float],
    pairs: Mapping[tuple[str, str], float],
    impossible: bool,
) -> tuple[str, ...]:
    """Return a smallest set of observations that are impossible together, or otherwise in conflict."""
    names = list(observed)
    alone = next((name for name in names if np.isneginf(single[name])), None)
    if alone is not None:
        return (alone,)
    worst = next(iter(pairs.items()))
    if math.isinf(worst[1]) if impossible else worst[1] > _LEAST:
        return worst[0]
    whole = float(solver.solve([{}], query=[]).log_z[0])
    size = 3
    while math.comb(len(names), size) <= _MOST_TRIED and size < len(names):
        sets = list(itertools.combinations(names, size))
        logs = solver.solve([{name: observed[name] for name in each} for each in sets], query=[]).log_z - whole
        if impossible:
            bad = np.flatnonzero(np.isneginf(logs))
            if bad.size:
                return sets[int(bad[0])]
        else:
            values = np.array([sum(single[name] for name in each) for each in sets]) - logs
            if values.max() > _LEAST:
                return sets[int(np.argmax(values))]
            if size == 3:
                return tuple(names)
        size += 1
    if not impossible:
        return tuple(names)
    # too many sets: leave one observation out after another, as long as what remains is impossible
    kept = names
    for name in names:
        fewer = [each for each in kept if each != name]
        if np.isneginf(solver.solve([{each: observed[each] for each in fewer}], query=[]).log_z[0]):
            kept = fewer
    return tuple(kept)


@dataclass(frozen=True)
class Support(Shown):
    """What each observation contributes to a conclusion.

    Attributes
    ----------
    target, state : str and label
        The conclusion.
    probability, before : float
        Its probability with all observations, and with none.
    without : dict
        Observation -> probability of the conclusion without it.
    bits : dict
        Observation -> log2 of the ratio of the odds with it and without it: positive if it speaks for the conclusion.
    errors : dict
        Observation -> standard error of ``without``; zero if it is exact.
    reasons : tuple of str
        Why sampled numbers cannot be relied upon.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.weigh_evidence(gs.example("asia"), {"xray": "yes", "smoke": "no"}, "lung", "yes")
    >>> round(found.probability, 4), round(found.without["xray"], 4), found.bits["smoke"] < 0 < found.bits["xray"]
    (0.1423, 0.01, True)
    """

    target: str
    state: Any
    probability: float
    before: float
    without: Mapping[str, float]
    bits: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the answer line by line."""
        name = f"{escaped(self.target)} = {escaped(self.state)}"
        yield f"P({name}) = {self.probability:.4f}, {self.before:.4f} without any observation"
        width = max(len(escaped(site)) for site in self.bits)
        for site, bits in sorted(self.bits.items(), key=lambda item: -item[1]):
            word = "for" if bits > 0 else "against"
            said = f"{abs(bits):.2f} bits {word} it" if math.isfinite(bits) else f"decides {word} it"
            if abs(bits) < 5e-3:
                said = "no matter"
            yield f"  {escaped(site):<{width}}  {said}; without it {self.without[site]:.4f}"


@checked
def weigh_evidence(model: FactorGraph, evidence: Mapping[str, Any], target: str, state: Any, **how: Any) -> Support:
    """Return which observations support a conclusion, and which speak against it: each is left out in turn.

    Parameters
    ----------
    model : FactorGraph
        The model before the evidence.
    evidence : mapping
        Site -> state of the observations.
    target, state : site and label
        The conclusion.
    **how
        ``method``, ``exact``, ``seconds`` and further arguments of :func:`gibbsite.infer`, for models that are sampled.

    Examples
    --------
    >>> import gibbsite as gs
    >>> print(gs.questions.weigh_evidence(gs.example("asia"), {"xray": "yes", "smoke": "no"}, "lung", "yes"))
    P(lung = yes) = 0.1423, 0.0550 without any observation
      xray   4.04 bits for it; without it 0.0100
      smoke  2.53 bits against it; without it 0.4887
    """
    observed = _read_hard(model, evidence, 1)
    if target in observed:
        raise ArgumentError(f"The conclusion is about {target!r}, which is itself observed; ask about another site.")
    solver = _make_solver(model, how)
    cell = solver.cell(target, state)
    cases = [{}, observed, *({k: v for k, v in observed.items() if k != name} for name in observed)]
    solved = solver.solve(cases, query=[target], log_z=False)
    p, errors = solved.cells[:, cell], solved.errors[:, cell]
    if np.isnan(p[1]):
        raise ArgumentError("The observations are impossible together.")
    without = dict(zip(observed, p[2:].tolist(), strict=True))
    bits = {name: _log_odds(float(p[1])) - _log_odds(value) for name, value in without.items()}
    known = dict(zip(observed, errors[2:].tolist(), strict=True))
    label = model.labels(target)[model.domains.code(model.index(target), state)]
    return Support(str(target), label, float(p[1]), float(p[0]), without, bits, known, solved.reasons)


def _log_odds(p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return math.inf if p >= 1.0 else -math.inf
    return math.log2(p) - math.log2(1.0 - p)


def _read_hard(model: FactorGraph, evidence: Mapping[str, Any], least: int) -> dict[str, Any]:
    """Return observations of states by name; refuse others, and too few."""
    found: dict[str, Any] = {}
    for site, state in evidence.items():
        at = model.index(site)
        if isinstance(state, list | tuple | dict | np.ndarray):
            raise ArgumentError(
                f"The evidence about {site!r} is {describe(state)}; name one state of each site, and fold likelihoods "
                "into the model first, with model.observe(...)."
            )
        found[model.sites[at]] = model.labels(at)[model.domains.code(at, state)]
    if len(found) < least:
        raise ArgumentError(f"{argument('evidence')} needs at least {least} observation{'s' * (least > 1)}.")
    return found


def _make_solver(model: FactorGraph, how: Mapping[str, Any]) -> CaseSolver:
    own = {name: how[name] for name in ("method", "exact", "seconds") if name in how}
    run = {name: value for name, value in how.items() if name not in own and value is not None}
    return CaseSolver(model, **own, run=run)
