"""A model at another temperature, and models between a product distribution and a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.models.factor import FactorGroup, TableFactors
from gibbsite.models.factorgraph import FactorGraph, _restore
from gibbsite.models.lattice import FieldFactors, LatticeFactors


def temper(model: FactorGraph, beta: float) -> FactorGraph:
    """Return the model whose distribution is that of ``model`` to the power ``beta``, an inverse temperature.

    Zeros stay zeros. The structure, and with it the kind of graph, is that of the model.
    """
    groups = tuple(_scaled(group, beta) for group in model.groups)
    return _restore(model.domains, groups, beta * model.log_offset, model.evidence, model.evidence_labels, model.shared)


def _scaled(group: FactorGroup, beta: float) -> FactorGroup:
    if hasattr(group, "tempered"):  # a noisy node
        raised: FactorGroup = group.tempered(beta)
        return raised
    if isinstance(group, TableFactors):
        # a power of a conditional table is not one
        return TableFactors(group.scopes, _times(beta, group.weights), False, group.name)
    weights: Any = group.weights
    if isinstance(weights, tuple):
        return group.reweighted(tuple(_times(beta, part) for part in weights))
    return group.reweighted(_times(beta, weights))


def _times(beta: float, logs: Any) -> Floats:
    """Return log-weights times beta; zeros stay zeros, also times nothing."""
    given = np.asarray(logs)
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(given), -np.inf, beta * given)


#: A zero of a table is taken for exp(-20) of its largest entry, or for its smallest other one, on the way.
SOFT = 20.0


def blend(model: FactorGraph, scale: float, pull: float, log_reference: Floats) -> FactorGraph:
    """Return the model with log-potential ``scale`` times that of ``model`` plus ``pull`` times a reference.

    The reference is a product distribution of all sites. With ``scale`` beta and ``pull`` 1 - beta these models lead
    from the reference to the model. Zeros of factors of several sites are softened (:func:`soften`), so that
    all states are connected on the way; those of single sites stay, and count for nothing in the reference.
    The structure, and with it the kind of graph, is that of the model.
    """
    n, cards = model.n_sites, model.cards
    start = np.concatenate([[0], np.cumsum(cards, dtype=np.int64)])
    logs = pull * np.where(np.isfinite(log_reference), log_reference, 0.0)
    offset = scale * model.log_offset
    groups = [_scaled(soften(group), scale) for group in model.groups]
    lattice = any(isinstance(group, LatticeFactors) and group.spin for group in groups)
    others = [k for k, group in enumerate(groups) if not isinstance(group, LatticeFactors)]
    if lattice and all(isinstance(groups[k], FieldFactors) for k in others) and len(others) < 2:
        # a lattice is one only while it has nothing but one group of fields
        pairs = logs.reshape(n, 2)
        fields = 0.5 * (pairs[:, 1] - pairs[:, 0])
        offset += float(0.5 * pairs.sum())
        if others:
            own = groups.pop(others[0])
            tables = np.broadcast_to(own.log_tables(cards), (n, 2))
            fields = fields + 0.5 * (tables[:, 1] - tables[:, 0])
            offset += float(0.5 * tables.sum())
        groups.append(FieldFactors(n, fields))
    else:
        for card in np.unique(cards).tolist():
            sites = np.flatnonzero(cards == card)
            tables = logs[start[sites][:, None] + np.arange(card)]
            groups.append(TableFactors(sites[:, None], tables))
    return _restore(model.domains, tuple(groups), offset, model.evidence, model.evidence_labels, model.shared)


def soften(group: FactorGroup) -> FactorGroup:
    """Return the factors of several sites without zeros: see :data:`SOFT`."""
    if hasattr(group, "softened"):  # a noisy node
        soft_one: FactorGroup = group.softened()
        return soft_one
    if group.arity < 2 or not isinstance(group, TableFactors) or np.isfinite(group.weights).all():
        return group
    flat = group.weights.reshape(len(group.weights), -1)
    finite = np.isfinite(flat)
    least = np.where(finite, flat, np.inf).min(axis=1)
    low = np.minimum(least, flat.max(axis=1) - SOFT)
    soft = np.where(finite, flat, low[:, None]).reshape(group.weights.shape)
    return TableFactors(group.scopes, soft, False, group.name)


def has_soft_zeros(model: FactorGraph) -> bool:
    """Tell whether :func:`soften` changes anything."""
    return any(soften(group) is not group for group in model.groups)
