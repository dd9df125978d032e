"""Answers as lines of text for people, in Python and on the command line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite._common.wording import escaped
from gibbsite.errors import GibbsiteError
from gibbsite.results.rows import site_lines
from gibbsite.results.wording import with_sign

if TYPE_CHECKING:
    from gibbsite.inference.answer import Inference
    from gibbsite.models import Model
    from gibbsite.results.table import SiteTable

_QUICK = 2.0  # seconds that the marginals before evidence may take
_LEAST = 1e-300  # probabilities below are shown by their logarithms


def answer_lines(
    answer: Inference,
    sites: Sequence[str] | None = None,
    *,
    before: Model | None = None,
    most: int | None = None,
    more: str = "",
    all_states: bool = False,
) -> Iterator[str]:
    """Yield an answer line by line.

    Parameters
    ----------
    answer : Inference
        The answer.
    sites : sequence of str, optional
        Only these sites; by default all that are free, in a MAP state also those that are observed.
    before : Model, optional
        The model before evidence: where it can be solved exactly in a moment, sites whose probabilities the
        evidence has changed most come first, with the probabilities before it.
    most : int, optional
        Number of sites to show.
    more : str
        Where to find the others.
    all_states : bool
        Show all states of every site.
    """
    if answer.task == "PR":
        yield from _log_z_lines(answer, before)
    elif answer.task in ("MAP", "MMAP"):
        yield from _state_lines(answer, sites, most, more)
    else:
        yield from _marginal_lines(answer, sites, before, most, more, all_states)


def _marginal_lines(
    answer: Inference, sites: Sequence[str] | None, before: Model | None, most: int | None, more: str, all_states: bool
) -> Iterator[str]:
    evidence, marginals = answer.model.evidence, answer.marginals
    prior = None if before is None or before is answer.model else _prior(before)
    ordered = sites
    if prior is not None and sites is None and marginals is not None:
        free = [name for name in answer.model.sites if name not in evidence]
        ordered = sorted(free, key=lambda name: -_change(marginals[name], prior[name]))
    many = answer.model.n_sites if sites is None else len(sites)
    shown = many if most is None else min(many, most)

    def names() -> Iterator[str]:
        return islice(ordered if ordered is not None else answer.model.domains.names, shown)

    drawn = answer.kind == "estimate"
    yield from site_lines(
        ((name, states, errors if drawn else None) for name, states, errors in answer.rows(names())),
        observed=evidence,
        before=prior,
        width=max((len(escaped(name)) for name in names()), default=0),
        all_states=all_states,
    )
    if many > shown:
        yield f"... and {many - shown:,} more sites{more}"


def _log_z_lines(answer: Inference, before: Model | None) -> Iterator[str]:
    """Yield the log-partition function, and bounds of it that are certain."""
    log_z = answer.log_z
    if log_z is None or not math.isfinite(log_z):
        yield f"log Z   no {answer.kind} known"
        return
    signs = {"exact": "=", "estimate": "=", "lower bound": ">=", "upper bound": "<="}
    sign, note = signs.get(answer.kind, "~"), "" if answer.kind == "exact" else f"   {answer.kind}"
    error = with_sign(answer.log_z_error or math.nan)
    log10 = f"{log_z / math.log(10):.10g}"
    yield f"log Z {sign} {log_z:.10g}{error}   (log10 {log10}){note}"
    known = answer.log_z_bounds if answer.kind in ("estimate", "approximation") else None
    for way, one in zip((">=", "<="), known or (), strict=False):
        if math.isfinite(one):
            yield f"log Z {way} {one:.10g}   certain"
    if before is not None and before is not answer.model and is_network(before):
        yield f"P(evidence) {sign} {_probability(log_z)}"


def is_network(model: Any) -> bool:
    """Whether a model without evidence is a Bayesian network: then Z is the probability of evidence.

    Examples
    --------
    >>> import gibbsite as gs
    >>> is_network(gs.example("asia")), is_network(gs.ising_grid((2, 2)))
    (True, False)
    """
    groups = [group for group in model.groups if group.size]
    return (
        not model.evidence
        and all(group.directed for group in groups)
        and sum(group.size for group in groups) == model.n_sites
        and abs(model.log_offset) < 1e-9
    )


def _state_lines(answer: Inference, sites: Sequence[str] | None, most: int | None, more: str) -> Iterator[str]:
    """Yield the best states side by side, the best one first, with log-potentials and how often found."""
    evidence = answer.model.evidence
    whole = list(sites or answer.ranked[0].assignment)
    names = whole if most is None else whole[:most]
    what, state = "log of the sum" if answer.task == "MMAP" else "log-potential", "state"
    if sites is not None and len(set(sites)) < len(answer.ranked[0].assignment):
        what, state = f"{what} of the best state of all sites", "that state"
    widths = [max((len(escaped(one.assignment[name])) for name in names), default=0) for one in answer.ranked]
    width = max((len(escaped(name)) for name in names), default=0)
    for name in names:
        states = zip(answer.ranked, widths, strict=True)
        row = "  ".join(f"{escaped(one.assignment[name]):<{each}}" for one, each in states)
        seen = "   (observed)" if name in evidence else ""
        yield f"{escaped(name):<{width}}  {row.rstrip()}{seen}"
    if len(whole) > len(names):
        yield f"... and {len(whole) - len(names):,} more sites{more}"
    for number, one in enumerate(answer.ranked, 1):
        which = f"{number}. " if len(answer.ranked) > 1 else ""
        chance = answer.log_probability_of(one.log_potential)
        given = f"{state} | evidence" if evidence else state
        known = "" if chance is None else f"   P({given}) = {_probability(chance)}"
        yield f"{which}{what} {one.log_potential:.10g}{known}{_finders(answer, one.found)}"
    if answer.ties is not None and answer.ties["count"] > 1:
        most_ties = "" if answer.ties["how"] == "counted" and answer.ties["complete"] else "at least "
        yield f"{most_ties}{answer.ties['count']:,} states are as good ({answer.ties['how']})"


def _finders(answer: Inference, found: int | None) -> str:
    """Return how many chains have found a state; a search may put it together from states of several."""
    if found is None:
        return ""
    if found == 0:
        return "   put together from the states of several chains"
    return f"   found by {found} of {int(answer.diagnostics.chains)} chains"


def _probability(log: float) -> str:
    """Return a probability, which may be too small for a float, from its logarithm."""
    return f"{math.exp(log):.6g}" if log > math.log(_LEAST) else f"exp({log:.6g})"


def _prior(model: Any) -> SiteTable | None:
    """Return the marginals without evidence where they are cheap to have."""
    from gibbsite.inference.exact import predict_exact, solve_exact

    try:
        if predict_exact(model).seconds > _QUICK:
            return None
        return solve_exact(model).marginals
    except GibbsiteError:
        return None


def _change(after: dict[Any, float], before: dict[Any, float]) -> float:
    """Return the total variation between two distributions."""
    return 0.5 * sum(abs(p - before[state]) for state, p in after.items())
