"""Models without noisy nodes of many parents: hidden sites pass the effects on, so that all tables are small.

The largest of n independent effects is the last of a chain of maxima: hidden site k is the largest effect of the first
k parents. Summed over the hidden sites, the model is the same. They come after the sites of the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.models.domain import Domains, SiteNames
from gibbsite.models.evidence import merge_tables
from gibbsite.models.factor import FactorGroup, TableFactors
from gibbsite.models.factorgraph import FactorGraph, _restore
from gibbsite.models.networks.causes import CauseFactors
from gibbsite.models.networks.noisy import difference


class _Expanded(list[FactorGraph]):
    """The model with hidden sites, as the cache of the other one keeps it."""


def without_powers(model: FactorGraph) -> FactorGraph:
    """Return a model with the same possible states whose noisy nodes are not tempered."""
    groups = tuple(
        replace(group, power=1.0) if isinstance(group, CauseFactors) and group.power != 1.0 else group
        for group in model.groups
    )
    if all(new is old for new, old in zip(groups, model.groups, strict=True)):
        return model
    return _restore(model.domains, groups, model.log_offset, model.evidence, model.evidence_labels)


def has_causes(model: FactorGraph) -> bool:
    """Return whether some noisy node of a model has no table."""
    return any(isinstance(group, CauseFactors) for group in model.groups)


def fits_tables(model: FactorGraph) -> bool:
    """Return whether no noisy node is too large for a table."""
    return all(group.fits_table for group in model.groups if isinstance(group, CauseFactors))


def expand(model: FactorGraph) -> FactorGraph:
    """Return a model in which noisy nodes are tables, with the same distribution of the sites that both have.

    Its further sites, which come last, are hidden. Logistic nodes become whole tables; those that are too large are
    refused. A model without noisy nodes is returned as it is.

    Examples
    --------
    >>> import gibbsite as gs
    >>> net = gs.BayesianNetwork()
    >>> for k in range(40):
    ...     net.add(f"cause {k}", 2, table=[0.9, 0.1])
    >>> net.add("effect", 2, table=gs.factors.NoisyOr({name: 0.3 for name in net}))
    >>> expand(net.to_model()).n_sites
    80
    """
    if not has_causes(model):
        return model
    kept = model.cache.get(_Expanded)
    if kept is None:
        kept = model.cache.put(_Expanded([_expand(model)]))
    return kept[0]


def tabulate(model: FactorGraph) -> FactorGraph:
    """Return a model in which noisy nodes are whole tables; refuse those that are too large."""
    groups = [
        TableFactors(group.scopes, group.log_tables(model.cards), group.directed)
        if isinstance(group, CauseFactors)
        else group
        for group in model.groups
    ]
    whole = tuple(merge_tables(groups))
    return _restore(model.domains, whole, model.log_offset, model.evidence, model.evidence_labels)


def _expand(model: FactorGraph) -> FactorGraph:
    groups: list[FactorGroup] = []
    hidden: list[int] = []  # numbers of states
    for group in model.groups:
        if not isinstance(group, CauseFactors):
            groups.append(group)
        elif group.kind == "logistic" or group.power != 1.0:
            groups.append(TableFactors(group.scopes, group.log_tables(model.cards), group.directed))
        else:
            groups += _chain(group, model.n_sites + len(hidden), hidden)
    domains = model.domains
    names, taken = list(domains.names.all()), set(domains.names.all())
    for k in range(len(hidden)):
        name = f"hidden {k}"
        while name in taken:
            name += "_"
        names.append(name)
    widths = sorted(set(hidden))
    kinds = (*domains.kinds, *(tuple(range(width)) for width in widths))
    more = [len(domains.kinds) + widths.index(width) for width in hidden]
    kind_of = np.concatenate([domains.kind_of, np.array(more, np.int32)])
    wide = Domains(SiteNames(len(names), tuple(names)), kinds, kind_of.astype(np.int32))
    return _restore(wide, tuple(merge_tables(groups)), model.log_offset, model.evidence, model.evidence_labels)


def _chain(group: CauseFactors, first: int, hidden: list[int]) -> list[TableFactors]:
    """Return the tables of a chain of maxima, whose hidden sites are numbered from ``first`` on."""
    scope, levels = group.scopes[0].tolist(), group.levels
    last = len(group.effects) - 1
    found = []
    below = np.where(np.tri(levels, dtype=bool).T, 0.0, -np.inf)  # [z, r]: z is at most r
    for k, effect in enumerate(group.effects):
        total: Floats = effect + group.leak if k == 0 else below[:, None, :] + effect[None]
        logs, sites = difference(total), [scope[k]] if k == 0 else [first + k - 1, scope[k]]
        if k < last:
            hidden.append(levels)
            found.append(TableFactors([[*sites, first + k]], logs[None], True))
        elif group.seen < 0:
            turned = logs[..., ::-1] if group.descending else logs
            found.append(TableFactors([[*sites, scope[-1]]], turned[None], True))
        else:
            found.append(TableFactors([sites], logs[None, ..., group.seen]))
    return found
