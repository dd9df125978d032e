"""The model of a network, and the nodes of a model that is one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import IncompatibleError
from gibbsite.models.domain import frozen, make_domains
from gibbsite.models.factor import gather_tables
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.causes import MOST_TABLE, CauseFactors, NoisyNodes, make_factors
from gibbsite.models.networks.conditionals import conditional_tables
from gibbsite.models.networks.noisy import Causes
from gibbsite.models.networks.structure import Node


def build_model(nodes: Mapping[str, Node]) -> FactorGraph:
    """Return the model of nodes that all have a table; small noisy nodes become tables."""
    sites = {name: node.states for name, node in nodes.items()}
    number = {name: k for k, name in enumerate(nodes)}
    noisy = NoisyNodes()
    wide: list[CauseFactors] = []
    proper: list[tuple[tuple[str, ...], Floats]] = []
    partial: list[tuple[tuple[str, ...], Floats]] = []
    for name, node in nodes.items():
        scope, table = (*node.parents, name), node.table
        if isinstance(table, Causes):
            noisy[name] = table
            group = make_factors([number[each] for each in scope], table)
            if group.n_entries > MOST_TABLE:
                wide.append(group)
                continue
            table = table.probabilities()
        assert table is not None
        rows = table.any(axis=-1).all()  # zero where the parents cannot be in these states
        (proper if rows else partial).append((scope, table))
    groups, _ = gather_tables(make_domains(sites), proper, (), directed=True)
    model = FactorGraph(sites, partial, groups=[*groups, *wide])
    model.cache.put(noisy)
    return model


def read_nodes(model: FactorGraph) -> dict[str, Node]:
    """Return the nodes of a model in which each site has one conditional table; refuse other models."""

    def refuse(reason: str) -> IncompatibleError:
        return IncompatibleError(f"this model is not a Bayesian network: {reason}.")

    if model.evidence:
        raise refuse(f"the site {next(iter(model.evidence))!r} is observed")
    known: dict[str, Causes] = model.cache.get(NoisyNodes) or {}
    wide: dict[int, CauseFactors] = {}
    nodes: dict[str, Node] = {}
    for site, (scope, logs) in enumerate(conditional_tables(model, refuse, wide)):
        name, parents = model.sites[site], tuple(model.sites[k] for k in scope[:-1])
        made = known.get(name) or (wide[site].causes() if site in wide else None)
        nodes[name] = Node(model.labels(name), parents, made or _probabilities(logs))
    return nodes


def _probabilities(logs: Floats) -> Floats:
    """Return the probabilities of a table of logarithms: short decimals, as they were written, if there are any."""
    exact = np.exp(logs)
    short = np.round(exact, 15)
    with np.errstate(divide="ignore"):
        return frozen(np.where(np.log(short) == logs, short, exact), np.float64)
