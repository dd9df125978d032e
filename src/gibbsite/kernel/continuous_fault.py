"""What a chain met that makes its numbers wrong, told to users."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from gibbsite.errors import SamplingError
from gibbsite.graph.continuous import ContinuousGraph
from gibbsite.kernel.continuous_energy import FACTOR, FULL, HOPELESS, VALUE, VALUES, Floats
from gibbsite.kernel.continuous_rejection import MOST_TRIES


def raise_fault(model: Any, graph: ContinuousGraph, fault: Floats) -> NoReturn:
    """Raise the error that a record of a fault tells of."""
    names = model.domains.names
    number = int(fault[FACTOR])
    if fault[0] == HOPELESS:
        raise SamplingError(
            f"{MOST_TRIES:,} proposals for the site {names[number]!r} were rejected; its factors differ by "
            "too much for method='rejection', use 'double'."
        )
    if fault[0] == FULL:
        raise SamplingError(
            "A minibatch was larger than any that has a chance to come up; please report this."
        )
    g = int(graph.group[number])
    group, rank = model.groups[g], number - int(graph.groups.first[g])
    scope = group.scopes if group.common else group.scopes[rank]
    where = ", ".join(
        f"{names[int(site)]}={_value_text(model.domains, int(site), float(value))}"
        for site, value in zip(scope, fault[VALUES:], strict=False)
    )
    value = float(fault[VALUE]) / group.weight
    low, width = float(graph.floor[number]) / group.weight, float(graph.bound[number]) / group.weight
    # not the digits by which bounds were widened for rounding
    low, high = (round(bound, 9 - math.floor(math.log10(width or 1.0))) + 0.0 for bound in (low, low + width))
    told = f"factor {rank} of {group.name!r} is {value:.10g} at {where}"
    if not math.isfinite(value):
        raise SamplingError(f"{told}; it must be finite wherever the sites can be.")
    raise SamplingError(
        f"{told}: a bound that is violated, because it was said or found to be between {low:g} and "
        f"{high:g}; give wider bounds=(low, high) for {group.name!r}."
    )


def _value_text(domains: Any, site: int, value: float) -> str:
    return f"{value:.10g}" if domains.numbers[site] else repr(domains.labels(site)[int(value)])
