"""An additional site that stands for the joint configuration of several others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite.models import FactorGraph
from gibbsite.models.factor import TableFactors

if TYPE_CHECKING:
    from collections.abc import Sequence


def add_configuration(model: FactorGraph, sites: Sequence[int]) -> FactorGraph:
    """Return the model with one more site, the last, whose state is the configuration of the given sites.

    The last of these varies fastest. A factor of two sites ties each of them to its part of the configuration, so that
    the largest table is configurations times states.
    """
    cards = [int(model.cards[site]) for site in sites]
    codes = np.indices(cards).reshape(len(cards), -1)
    name = "configuration"
    while name in model.domains.names.all():
        name += "_"
    domains = {each: model.labels(k) for k, each in enumerate(model.sites)}
    ties = [
        ((site, name), (np.arange(card)[:, None] == codes[k]).astype(float))
        for k, (site, card) in enumerate(zip(sites, cards, strict=True))
    ]
    # as tables, because lattices want all sites of a model for themselves
    tables = [TableFactors(group.scopes, group.log_tables(model.cards)) for group in model.groups if group.size]
    return FactorGraph({**domains, name: codes.shape[1]}, ties, groups=tables)
