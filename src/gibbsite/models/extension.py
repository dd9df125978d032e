"""A model with more sites, which tables tie to those it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gibbsite.models.domain import Label, Scope
from gibbsite.models.factor import FactorGroup, TableFactors
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.causes import CauseFactors


def extend_model(
    model: FactorGraph,
    sites: Mapping[str, Sequence[Label] | int],
    factors: Iterable[tuple[Scope, Any]],
    *,
    directed: bool = False,
) -> FactorGraph:
    """Return a model with further sites, the last ones, and further factors; the constant factor is left out.

    Factors of the model become tables, because lattices require all sites of a model. With ``directed`` the new factors
    are conditional tables of their last sites.

    Examples
    --------
    >>> coin = FactorGraph({"a": 2}, [("a", [1, 3])])
    >>> extend_model(coin, {"b": 2}, [(("a", "b"), [[1, 0], [0, 1]])])
    FactorGraph(2 sites of 2 states, 2 factors in 2 groups)
    """
    domains = {name: model.labels(k) for k, name in enumerate(model.sites)}
    groups: list[FactorGroup] = []
    for group in model.groups:
        if isinstance(group, CauseFactors):
            groups.append(group)
        elif isinstance(group, TableFactors):
            groups.append(TableFactors(group.scopes, group.weights, group.directed))
        elif group.size:
            groups.append(TableFactors(group.scopes, group.log_tables(model.cards)))
    if directed:
        more = [TableFactors(*_as_arrays(domains, sites, scope, table)) for scope, table in factors]
        return FactorGraph({**domains, **sites}, groups=[*groups, *more])
    return FactorGraph({**domains, **sites}, factors, groups=groups)


def _as_arrays(
    domains: Mapping[str, Any], sites: Mapping[str, Any], scope: Any, table: Any
) -> tuple[list[list[int]], Any, bool]:
    """Return the arguments of a group with one conditional table."""
    place = {name: k for k, name in enumerate([*domains, *sites])}
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(table, float))[None]
    return [[place[name] for name in ([scope] if isinstance(scope, str) else scope)]], logs, True


def fresh_name(model: FactorGraph, wanted: str) -> str:
    """Return a name that no site of a model has.

    Examples
    --------
    >>> fresh_name(FactorGraph({"event": 2}), "event")
    'event_'
    """
    taken = {*model.sites, *model.evidence}
    while wanted in taken:
        wanted += "_"
    return wanted
