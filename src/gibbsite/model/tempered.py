"""A model at another temperature: every factor raised to the same power."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite.model.factor import FactorGroup, TableFactors
from gibbsite.model.factorgraph import FactorGraph, _restore


def temper(model: FactorGraph, beta: float) -> FactorGraph:
    """Return the model whose law is that of ``model`` to the power ``beta``, an inverse temperature.

    Zeros stay zeros. The structure, and with it the kind of graph, is that of the model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2}, [("a", [1, 16])])
    >>> round(gs.solve_exact(temper(model, 0.5)).marginals["a"][1], 3)
    0.8
    """
    groups = tuple(_scaled(group, beta) for group in model.groups)
    return _restore(
        model.domains, groups, beta * model.log_offset, model.evidence, model.evidence_labels, model.structure
    )


def _scaled(group: FactorGroup, beta: float) -> FactorGroup:
    if isinstance(group, TableFactors):
        # a power of a conditional table is none
        return TableFactors(group.scopes, beta * group.weights, False, group.name)
    weights: Any = group.weights
    if isinstance(weights, tuple):
        return group.reweighted(tuple(beta * np.asarray(part) for part in weights))
    return group.reweighted(beta * np.asarray(weights))
