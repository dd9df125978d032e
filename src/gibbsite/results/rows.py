"""Marginals as lines of text, a line for each site."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gibbsite._common.wording import escaped
from gibbsite.results.wording import with_sign

#: Sites with more states than the first are shown with their most probable states, as many as the second.
MOST_STATES, SHOWN_STATES = 12, 10
_WIDTH = 100  # of a line, where all of many states are shown


def site_lines(
    rows: Iterable[tuple[str, Mapping[Any, float], Mapping[Any, float] | None]],
    *,
    observed: Iterable[str] = (),
    before: Mapping[str, Mapping[Any, float]] | None = None,
    width: int = 0,
    all_states: bool = False,
) -> Iterator[str]:
    """Yield what is known of each site as a line.

    Parameters
    ----------
    rows : iterable of (name, probabilities, errors)
        Probabilities of the states, and their standard errors, None where nothing was drawn.
    observed : iterable of str
        Sites to mark as observed.
    before : mapping, optional
        Site -> probabilities before evidence, which are shown, too.
    width : int
        Of the column of names.
    all_states : bool
        Show all states of every site, on several lines if there are many.

    Examples
    --------
    >>> list(site_lines([("a", {"no": 0.25, "yes": 0.75}, None)], before={"a": {"no": 0.5, "yes": 0.5}}))
    ['a  no 0.2500  yes 0.7500   (before: 0.5000 0.5000)']
    """
    seen = set(observed)
    for name, states, errors in rows:
        signs = {} if errors is None else {state: with_sign(error) for state, error in errors.items()}
        shown, more = [*states], ""
        if len(shown) > MOST_STATES and not all_states:
            shown = sorted(shown, key=lambda state: -states[state])[:SHOWN_STATES]
            left = max(1.0 - sum(states[state] for state in shown), 0.0)
            more = f"  and {len(states) - len(shown)} rarer states, together {left:.4f}{_summed(states)}"
        parts = [f"{escaped(state)} {states[state]:.4f}{signs.get(state, '')}" for state in shown]
        notes = "   (observed)" if name in seen else ""
        if before is not None and name not in seen:
            notes = "   (before: " + " ".join(f"{before[name][state]:.4f}" for state in shown) + ")"
        yield f"{escaped(name):<{width}}  {_folded(parts, width + 2)}{more}{notes}"


def mean_and_sd(states: Mapping[Any, float]) -> tuple[float, float] | None:
    """Return mean and standard deviation of labels that are numbers, None if they are not.

    Examples
    --------
    >>> mean_and_sd({1: 0.5, 3: 0.5}), mean_and_sd({"low": 0.5, "high": 0.5})
    ((2.0, 1.0), None)
    """
    try:
        numbers = [float(label) for label in states]
    except (TypeError, ValueError):
        return None
    if not all(map(math.isfinite, numbers)) or any(isinstance(label, bool) for label in states):
        return None
    total = math.fsum(states.values())
    if not total > 0.0:
        return None
    mean = math.fsum(number * p for number, p in zip(numbers, states.values(), strict=True)) / total
    square = math.fsum((number - mean) ** 2 * p for number, p in zip(numbers, states.values(), strict=True))
    return mean, math.sqrt(max(square / total, 0.0))


def _summed(states: Mapping[Any, float]) -> str:
    found = mean_and_sd(states)
    return "" if found is None else f"; mean {found[0]:.6g}, standard deviation {found[1]:.6g}"


def _folded(parts: list[str], margin: int) -> str:
    """Return the states of a site side by side, on further lines if there are many."""
    if len(parts) <= MOST_STATES:
        return "  ".join(parts)
    lines: list[list[str]] = [[]]
    for part in parts:
        if lines[-1] and margin + sum(len(one) + 2 for one in lines[-1]) + len(part) > _WIDTH:
            lines.append([])
        lines[-1].append(part)
    return f"\n{'':<{margin}}".join("  ".join(line) for line in lines)
