"""Error messages about values of factors that make a chain wrong."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from gibbsite._common.arrays import Floats
from gibbsite.errors import SamplingError
from gibbsite.graphs.functions.bounds import Bounds
from gibbsite.graphs.functions.failure import cause_text
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.kernels.continuous.energy import EMPTY, FACTOR, FULL, HOPELESS, VALUE, VALUES
from gibbsite.kernels.continuous.methods import MOST_TRIES

_DEMAND = {True: "it must be a number wherever the sites can be", False: "it must be finite there"}


def raise_fault(model: Any, graph: Graph, bounds: Bounds, fault: Floats) -> NoReturn:
    """Raise the error that a record of a fault describes."""
    number = int(fault[FACTOR])
    if fault[0] == HOPELESS:
        name = model.domains.names[number]
        raise SamplingError(
            f"{MOST_TRIES:,} proposals for the site {name!r} were rejected; its factors differ by "
            "too much for method='rejection', use 'double'."
        )
    if fault[0] == EMPTY:
        raise SamplingError(
            f"the density is zero in a part of the interval of the site {model.domains.names[number]!r}, "
            "where no interpolant of its logarithm exists; use method='slice'."
        )
    if fault[0] == FULL:
        raise SamplingError("A minibatch was larger than any that has a chance to come up; please report this.")
    arrays: ContinuousGraph = graph.arrays
    g = int(arrays.group[number])
    group, rank = model.groups[g], number - int(arrays.groups.first[g])
    scope = group.scopes if group.common else group.scopes[rank]
    where = ", ".join(
        f"{model.whole.names[int(site)]}={_value_text(model.whole, int(site), float(value))}"
        for site, value in zip(scope, fault[VALUES:], strict=False)
    )
    value = float(fault[VALUE]) / group.weight
    text = f"factor {rank} of {group.name!r} is {value:.10g} at {where}"
    if not math.isfinite(value):
        raised = graph.functions[g].cause_at(fault[VALUES:][: scope.size], group.parameters[rank])
        raise SamplingError(f"{text}; {_DEMAND[math.isnan(value)]}.{cause_text(raised)}") from raised
    low, width = float(bounds.floor[number]) / group.weight, float(bounds.bound[number]) / group.weight
    # not the digits by which bounds were widened for rounding
    low, high = (round(bound, 9 - math.floor(math.log10(width or 1.0))) + 0.0 for bound in (low, low + width))
    raise SamplingError(
        f"{text}: a bound that is violated, because it was declared or found to be between {low:g} and "
        f"{high:g}; give wider bounds=(low, high) for {group.name!r}."
    )


def _value_text(domains: Any, site: int, value: float) -> str:
    return f"{value:.10g}" if domains.numbers[site] else repr(domains.labels(site)[int(value)])
