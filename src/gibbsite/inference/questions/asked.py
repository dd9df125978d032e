"""Probabilities of events, and joint probabilities of sites, exactly or from any method that samples.

Where a model is sampled, each event becomes a site of its own: a noisy indicator, which is "yes" with probability 3/4
if the event holds and with probability 1/4 otherwise. It leaves the distribution of the other sites as it is, so that
every method, its standard errors and its verdict are about what was asked.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked, describe, is_iterable
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument, escaped, unknown
from gibbsite.errors import ArgumentError
from gibbsite.inference.asking import choose, infer
from gibbsite.inference.questions.events import Event, add_event, read_event, truth_table
from gibbsite.models import FactorGraph
from gibbsite.models.domain import Label, make_domains
from gibbsite.models.extension import extend_model, fresh_name
from gibbsite.results.answer import Diagnostics, StoredAnswer
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.table import SiteTable
from gibbsite.results.verdict.criteria import DEFAULT_ACCURACY, STANDARD_ERRORS, Criteria
from gibbsite.results.wording import in_words

_SURE, _SHARE = 0.75, 0.25  # probabilities of an indicator where its event holds, and where it does not
_MOST_SAMPLED = 256  # configurations of a joint that is sampled


@dataclass(frozen=True, eq=False, repr=False)
class EventAnswer(StoredAnswer):
    """Probabilities of events and joint probabilities of sites.

    Each event is a row of ``marginals``, with the states "no" and "yes"; each joint is one, with a state for each
    configuration, such as "yes, low".

    Attributes
    ----------
    method, reason : str
        The method, and why it was chosen.
    joints : mapping
        Sites of a joint -> the labels of each of them.
    seconds : float
        How long it took.

    Examples
    --------
    >>> import gibbsite as gs
    >>> answer = gs.questions.ask(gs.example("asia"), joints=[("lung", "tub")])
    >>> answer.joint("lung", "tub").round(6).tolist()
    [[0.000572, 0.054428], [0.009828, 0.935172]]
    """

    method: str = "exact"
    reason: str = ""
    joints: Mapping[tuple[str, ...], tuple[tuple[Label, ...], ...]] = field(default_factory=dict)
    seconds: float = 0.0

    def probability(self, event: Any) -> float:
        """Return the probability of an event, named by the text with which it was asked for, or by its number."""
        return self._row(self.marginals, event)["yes"]

    def error(self, event: Any) -> float:
        """Return the standard error of the probability of an event; zero if it is exact."""
        return self._row(self.mcse, event)["yes"]

    def joint(self, *sites: str) -> Floats:
        """Return the joint probabilities of sites, one axis for each."""
        return self._joint(self.marginals, sites)

    def joint_errors(self, *sites: str) -> Floats:
        """Return the standard errors of :meth:`joint`."""
        return self._joint(self.mcse, sites)

    def _joint(self, table: Any, sites: tuple[str, ...]) -> Floats:
        for known, labels in self.joints.items():
            if sorted(known) == sorted(sites):
                cells = np.array(list(table[", ".join(known)].values()))
                shape = [len(each) for each in labels]
                return cells.reshape(shape).transpose([known.index(site) for site in sites])
        raise ArgumentError(unknown("joint", ", ".join(sites), [", ".join(known) for known in self.joints]))

    def _row(self, table: Any, event: Any) -> dict[Any, float]:
        names = [name for name in self.domains.names.all() if name not in {", ".join(one) for one in self.joints}]
        if isinstance(event, int) and not isinstance(event, bool) and 0 <= event < len(names):
            event = names[event]
        text = event.text if isinstance(event, Event) else str(event).strip()
        if text not in names:
            raise ArgumentError(unknown("event", text, names))
        found: dict[Any, float] = table[text]
        return found

    def line(self) -> str:
        """Return method, reason and verdict in one line."""
        return f"{self.method} ({self.reason})" + (f"; {self.diagnostics.text}" if self.diagnostics.text else "")

    def _lines(self, most: int) -> Iterator[str]:
        assert self.marginals is not None and self.mcse is not None
        exact = self.diagnostics.kind == "exact"
        names = {", ".join(one) for one in self.joints}
        for name in self.domains.names.all():
            texts = self.marginals.texts(name, None if exact else self.mcse)
            if name not in names:
                yield f"P({escaped(name)}) = {texts['yes']}"
        for sites in self.joints:
            name = ", ".join(sites)
            yield f"P({escaped(name)})"
            for state, text in itertools.islice(self.marginals.texts(name, None if exact else self.mcse).items(), most):
                yield f"  {escaped(state)}  {text}"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values; the schema of ``gibbsite infer --event --json``."""
        assert self.marginals is not None and self.mcse is not None
        joints = {", ".join(sites) for sites in self.joints}
        found: dict[str, Any] = {"task": "MAR", "method": self.method, "reason": self.reason}
        found["kind"] = self.diagnostics.kind
        found["events"] = {
            name: {"probability": self.marginals[name]["yes"], "mcse": _finite(self.mcse[name]["yes"])}
            for name in self.domains.names.all()
            if name not in joints
        }
        found["joints"] = {}
        for sites, labels in self.joints.items():
            errors = self.joint_errors(*sites)
            found["joints"][", ".join(sites)] = {
                "sites": list(sites),
                "states": [[str(label) for label in each] for each in labels],
                "probabilities": self.joint(*sites).tolist(),
                "mcse": errors.tolist() if np.isfinite(errors).all() else None,
            }
        found["diagnostics"] = self.diagnostics.to_dict()
        found["remarks"] = list(self.remarks)
        found["seconds"] = self.seconds
        return found

    def __repr__(self) -> str:
        return f"EventAnswer({self.domains.n_sites} questions; {self.line()})"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


@checked
def ask(
    model: FactorGraph,
    events: Iterable[Any] = (),
    joints: Iterable[Sequence[str | int]] = (),
    *,
    method: Any = "auto",
    exact: bool = True,
    criteria: Criteria | None = None,
    seconds: float | None = None,
    **run: Any,
) -> EventAnswer:
    """Return the probabilities of events, and the joint probabilities of sets of sites, given the evidence.

    Parameters
    ----------
    model : FactorGraph
        The model, with any evidence folded in.
    events : iterable of str or mapping
        Statements such as ``"A = yes and (B = low or C != 3)"``, or mappings of sites to states, all of which have to
        hold. Labels that are numbers can be compared by ``<``, ``<=``, ``>`` and ``>=``; ``A in {x, y}`` lists states.
    joints : iterable of sequences of sites
        Sets of sites, observed ones included.
    method, exact, seconds
        As in :func:`gibbsite.infer`.
    criteria : Criteria, optional
        The accuracy is that of the probabilities asked for; there is no ``query``.
    **run
        Further arguments of :func:`gibbsite.infer`.

    Returns
    -------
    EventAnswer

    See Also
    --------
    infer : Marginals of single sites.

    Examples
    --------
    >>> import gibbsite as gs
    >>> asia = gs.example("asia").observe({"dysp": "yes"})
    >>> answer = gs.questions.ask(asia, ["lung = yes or tub = yes", {"smoke": "yes", "bronc": "no"}])
    >>> round(answer.probability("lung = yes or tub = yes"), 4), round(answer.probability(1), 4)
    (0.1205, 0.076)
    >>> drawn = gs.questions.ask(asia, ["lung = yes"], method="forward", draws=400_000, rng=1, progress=False)
    >>> drawn.diagnostics.converged, abs(drawn.probability(0) - 0.1028) < 4 * drawn.error(0)
    (True, True)
    """
    begun = time.monotonic()
    if not is_iterable(events) or isinstance(events, str | Mapping):
        raise ArgumentError(f"{argument('events')} must be a list of events, got {describe(events)}.")
    asked = [read_event(model, event) for event in events]
    sets = [_read_set(sites) for sites in joints]
    if not asked and not sets:
        raise ArgumentError("Ask for at least one event or joint, such as gs.questions.ask(model, ['A = yes']).")
    criteria = Criteria(accuracy=DEFAULT_ACCURACY) if criteria is None else criteria
    if criteria.query is not None:
        raise ArgumentError(f"{argument('query')} has no effect here: the events and joints are what is asked for.")
    texts = [event.text for event in asked]
    repeated = next((text for k, text in enumerate(texts) if text in texts[:k]), None)
    if repeated is not None:
        raise ArgumentError(f"The event {repeated!r} is asked for twice; name each event once.")
    wider = model
    deciding: list[tuple[str | None, Any]] = []
    for event in asked:
        if isinstance(event.tree, bool):
            deciding.append((None, np.array([event.tree])))
        else:
            wider, name, yes = add_event(wider, event)
            deciding.append((name, yes))
    chosen, reason = choose(wider, "MAR", method, seconds, exact)
    how = {"method": method, "seconds": seconds, **run}
    if chosen == "exact":
        rows, errors, seen = _solve(wider, model, deciding, sets)
    else:
        how["exact"] = {"exact": False} if method == "auto" else {}
        how.update(how.pop("exact"))
        rows, errors, seen = _estimate(model, asked, sets, criteria, how)
        chosen, reason = seen.method, seen.reason
    named = [tuple(_names(model, sites)) for sites in sets]
    labels = {sites: tuple(_labels(model, site) for site in sites) for sites in named}
    states: dict[str, Any] = {text: ["no", "yes"] for text in texts}
    for sites, each in labels.items():
        states[", ".join(sites)] = [", ".join(map(str, one)) for one in itertools.product(*each)]
    domains = make_domains(states)
    return EventAnswer(
        domains,
        {},
        {},
        seen.diagnostics,
        SiteTable(domains, np.concatenate(rows)),
        SiteTable(domains, np.concatenate(errors), complement=False),
        remarks=tuple(seen.remarks),
        interrupted=seen.interrupted,
        method=chosen if isinstance(chosen, str) else type(chosen).__name__,
        reason=str(reason),
        joints=labels,
        seconds=time.monotonic() - begun,
    )


def _read_set(sites: Any) -> tuple[str | int, ...]:
    """Return the sites of a joint; refuse what is no list of them."""
    if isinstance(sites, str | Mapping) or not is_iterable(sites):
        raise ArgumentError(f"A joint is a list of sites, such as ('A', 'B'), got {describe(sites)}.")
    return tuple(sites)


def _names(model: FactorGraph, sites: Sequence[str | int]) -> list[str]:
    return [site if isinstance(site, str) else model.sites[model.index(site)] for site in sites]


def _labels(model: FactorGraph, site: str) -> tuple[Label, ...]:
    return model.evidence_labels[site] if site in model.evidence else model.labels(site)


class _Seen:
    """The verdict on an answer and how it was found."""

    def __init__(self, diagnostics: Diagnostics, remarks: Any = (), interrupted: bool = False) -> None:
        self.diagnostics, self.remarks, self.interrupted = diagnostics, remarks, interrupted
        self.method, self.reason = "exact", ""


def _solve(
    wider: FactorGraph, model: FactorGraph, deciding: list[tuple[str | None, Any]], sets: list[tuple[str | int, ...]]
) -> tuple[list[Floats], list[Floats], Any]:
    """Return exact probabilities of events and joints."""
    from gibbsite.inference.exact import solve_exact

    solved = solve_exact(wider)
    rows: list[Floats] = []
    for name, yes in deciding:
        if name is None:
            p = float(yes[0])
        else:
            p = float(np.array(list(solved.marginals[name].values()))[yes].sum())
        rows.append(np.array([max(1.0 - p, 0.0), min(p, 1.0)]))
    own = solved if wider is model or not sets else solve_exact(model, task="PR")
    rows += [own.joint(*sites).ravel() for sites in sets]
    return rows, [np.zeros(row.size) for row in rows], _Seen(solved.diagnostics)


def _estimate(
    model: FactorGraph, events: list[Event], sets: list[tuple[str | int, ...]], criteria: Criteria, how: dict[str, Any]
) -> tuple[list[Floats], list[Floats], Any]:
    """Return estimates of the probabilities of events and joints, and their standard errors."""
    wider = model
    names: list[str | None] = []
    groups: list[tuple[int, int]] = []  # sites of a set: the first and the number of their indicators
    for event in events:
        if isinstance(event.tree, bool):
            names.append(None)
        else:
            wider, name = _indicate(wider, event.text, event.sites, truth_table(model, event))
            names.append(name)
    for sites in sets:
        free = find_free(sites, model.domains, model.evidence, _MOST_SAMPLED)
        cards = [int(model.cards[site]) for site in free]
        groups.append((len(names), math.prod(cards)))
        for k in range(math.prod(cards)):
            if not free:
                names.append(None)
                continue
            table = np.zeros(cards, np.bool_)
            table.ravel()[k] = True
            at = np.unravel_index(k, cards)
            text = model.domains.entry_text(free, at).replace(", ", " and ")
            wider, name = _indicate(wider, text, free, table)
            names.append(name)
    asked = [name for name in names if name is not None]
    if not asked:
        found = [np.array([float(not event.tree), float(event.tree)]) for event in events]
        found += [_with_observed(model, sites, np.ones(1)).ravel() for sites in sets]
        return found, [np.zeros(row.size) for row in found], _Seen(Diagnostics("exact", True))
    scale = _SURE - _SHARE
    accuracy = DEFAULT_ACCURACY if criteria.accuracy is None else criteria.accuracy
    narrowed = replace(criteria, accuracy=accuracy * scale, query=asked)
    answer = infer(wider, criteria=narrowed, **{name: value for name, value in how.items() if value is not None})
    assert answer.marginals is not None and answer.mcse is not None

    def of(name: str | None, certain: float) -> tuple[float, float]:
        if name is None:
            return certain, 0.0
        p = (answer.marginals[name]["yes"] - _SHARE) / scale  # type: ignore[index]
        return min(max(p, 0.0), 1.0), answer.mcse[name]["yes"] / scale  # type: ignore[index]

    rows, errors = [], []
    for event, indicator in zip(events, names, strict=False):
        p, error = of(indicator, float(event.tree is True))
        rows.append(np.array([1.0 - p, p]))
        errors.append(np.array([error, error]))
    for sites, (first, many) in zip(sets, groups, strict=True):
        both = np.array([of(name, 1.0) for name in names[first : first + many]])
        rows.append(_with_observed(model, sites, both[:, 0]).ravel())
        errors.append(_with_observed(model, sites, both[:, 1]).ravel())
    seen = _Seen(_rescaled(answer.diagnostics, errors, accuracy), answer.remarks, answer.interrupted)
    seen.method, seen.reason = answer.method, str(answer.reason)
    return rows, errors, seen


def _indicate(model: FactorGraph, text: str, sites: list[int], holds: Any) -> tuple[FactorGraph, str]:
    """Return the model with a noisy indicator of an event, and its name; positions of other sites stay."""
    name = fresh_name(model, f"({text})")
    p = np.where(holds, _SURE, _SHARE)
    scope = (*(model.sites[site] for site in sites), name)
    return extend_model(model, {name: ["no", "yes"]}, [(scope, np.stack([1.0 - p, p], axis=-1))], directed=True), name


def _with_observed(model: FactorGraph, sites: Sequence[str | int], cells: Floats) -> Floats:
    """Return a joint of free sites with an axis for each observed one."""
    free = find_free(sites, model.domains, model.evidence, 1 << 62)
    table = cells.reshape([int(model.cards[site]) for site in free])
    return add_observed(table, sites, model.evidence, model.evidence_labels)


def _rescaled(found: Diagnostics, errors: list[Floats], accuracy: float) -> Diagnostics:
    """Return the verdict on indicators as one on what they indicate."""
    known = np.concatenate([np.zeros(1), *errors])
    largest = float(known.max()) if np.isfinite(known).all() else math.nan
    figures = {**found.figures}
    if "mcse_max" in figures:
        figures["mcse_max"] = None if math.isnan(largest) else largest
    reasons = [reason for reason in found.reasons if "four standard errors" not in reason]
    if math.isnan(largest):
        said = "standard errors are not known"
    else:
        said = f"four standard errors are at most {in_words(STANDARD_ERRORS * largest)}"
        if STANDARD_ERRORS * largest > accuracy:
            reasons.append(f"{said}, more than the accuracy of {accuracy:g}.")
    return Diagnostics(found.kind, found.converged, tuple(reasons), figures, f"{found.word}: {said}")
