"""The same model with its sites in another order."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Ints32
from gibbsite._common.cache import Cache
from gibbsite.models.distance import DistanceFactors
from gibbsite.models.domain import Domains, SiteNames, frozen
from gibbsite.models.factor import FactorGroup, TableFactors, store
from gibbsite.models.factorgraph import FactorGraph, _restore
from gibbsite.models.lattice import FieldFactors
from gibbsite.models.weighted import AgreementFactors, SpinFactors


class _Renumbered(NamedTuple):
    shared: Cache


def renumber(model: FactorGraph, order: Array) -> FactorGraph | None:
    """Return the model with site ``order[p]`` at position p, under names that are numbers.

    None: a group of its factors, such as a lattice, has an order of its own. What is found out about the
    structure of the one returned is kept with the model, for the same order.
    """
    position = np.empty(order.size, np.int32)
    position[order] = np.arange(order.size, dtype=np.int32)
    groups: list[FactorGroup] = []
    for group in model.groups:
        found = _renumbered(group, order, position)
        if found is None:
            return None
        groups.append(found)
    old = model.domains
    kind_of = old.kind_of if len(old.kinds) == 1 else old.kind_of[order]
    domains = Domains(SiteNames(old.n_sites), old.kinds, kind_of)
    shared = model.shared.find(_Renumbered, lambda: _Renumbered(Cache())).shared
    return _restore(domains, tuple(groups), model.log_offset, {}, {}, shared)


def _renumbered(group: FactorGroup, order: Array, position: Ints32) -> FactorGroup | None:
    if isinstance(group, DistanceFactors):
        return DistanceFactors(group.positions[order], group.gamma, group.weights, group.name, group.coupling)
    if isinstance(group, FieldFactors):
        each = len(group.weights) > 1
        weights = group.weights[order] if each else group.weights
        return FieldFactors(group.n_sites, weights, group.spin, group.name)
    if isinstance(group, TableFactors | SpinFactors | AgreementFactors):
        found = copy.copy(group)
        store(found, scopes=frozen(position[group.scopes], np.int32))
        return found
    return None
