"""Discrete Bayesian and Markov networks of pgmpy, read from their objects and made from models."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import site_name
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats.network import network_tables
from gibbsite.formats.objects.bqm import import_extra
from gibbsite.models.domain import Label
from gibbsite.models.factorgraph import FactorGraph


@checked
def from_pgmpy(model: Any) -> FactorGraph:
    """Build a model from a pgmpy network.

    Parameters
    ----------
    model : pgmpy DiscreteBayesianNetwork, BayesianNetwork or MarkovNetwork
        Anything with ``nodes`` and either ``get_cpds()`` or ``get_factors()``.

    Returns
    -------
    FactorGraph
        Sites in the order of ``model.nodes()``, named by the texts of the nodes, with pgmpy's state names.
        The tables of a Bayesian network are directed: parents first, the child last.

    Raises
    ------
    ModelError
        When a node has no table, or two tables disagree about its states.

    Examples
    --------
    >>> from types import SimpleNamespace as Thing
    >>> coin = Thing(variables=["coin"], values=[0.5, 0.5], state_names={"coin": ["head", "tail"]})
    >>> from_pgmpy(Thing(nodes=lambda: ["coin"], get_cpds=lambda: [coin])).labels("coin")
    ('head', 'tail')
    """
    directed = hasattr(model, "get_cpds")
    if directed:
        tables = list(model.get_cpds())
    elif hasattr(model, "get_factors"):
        tables = list(model.get_factors())
    else:
        raise IncompatibleError(
            f"{type(model).__name__} has neither get_cpds() nor get_factors(); pass a discrete "
            "Bayesian or Markov network."
        )
    states: dict[Any, list[Any]] = {}
    if directed:
        # A node's own table decides the order of its states; its children may list another.
        for table in tables:
            child = table.variables[0]
            states[child] = list(table.state_names[child])
    for table in tables:
        for variable in table.variables:
            states.setdefault(variable, list(table.state_names[variable]))
    nodes = list(model.nodes())
    owners = {table.variables[0] for table in tables} if directed else set(states)
    for node in nodes:
        if node not in owners:
            raise ModelError(f"the node {str(node)!r} has no table; add one to the network.")
    sites = {str(site_name(node)): [_label(state) for state in states[node]] for node in nodes}
    if len(sites) < len(nodes):
        raise ModelError("two nodes have the same name as text; rename one of them.")
    factors = [
        (
            [str(site_name(variable)) for variable in _child_last(table.variables, directed)],
            _aligned(table, states, directed),
        )
        for table in tables
    ]
    return FactorGraph(sites, factors, directed=directed)


@checked
def to_pgmpy(model: FactorGraph) -> Any:
    """Return a Bayesian network as one of pgmpy.

    Parameters
    ----------
    model : FactorGraph
        One conditional table per site and no other factors.

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork
        Nodes are the names of the sites; ``BayesianNetwork`` in versions of pgmpy that have no other class.

    Raises
    ------
    IncompatibleError
        When the model is not a Bayesian network.

    See Also
    --------
    from_pgmpy : The other direction.

    Examples
    --------
    >>> import gibbsite as gs
    >>> to_pgmpy(gs.example("asia")).get_cpds("lung").get_evidence()  # doctest: +SKIP
    ['smoke']
    """
    tables = network_tables(model, "pgmpy")
    models, factors = import_extra("pgmpy.models"), import_extra("pgmpy.factors.discrete")
    found = getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork
    network = found()
    network.add_nodes_from(model.sites)
    for scope, logs in tables:
        *parents, child = (model.sites[k] for k in scope)
        network.add_edges_from((parent, child) for parent in parents)
        rows = np.exp(logs).reshape(-1, logs.shape[-1])
        network.add_cpds(
            factors.TabularCPD(
                child,
                logs.shape[-1],
                rows.T / rows.sum(axis=1),
                evidence=parents or None,
                evidence_card=list(logs.shape[:-1]) or None,
                state_names={model.sites[k]: list(model.labels(k)) for k in scope},
            )
        )
    return network


def _child_last(items: Any, directed: bool) -> list[Any]:
    return [*items[1:], items[0]] if directed else list(items)


def _aligned(table: Any, states: dict[Any, list[Any]], directed: bool) -> Floats:
    """Return the values with every axis in the order of ``states``."""
    values: Floats = np.asarray(table.values, np.float64)
    for axis, variable in enumerate(table.variables):
        own = list(table.state_names[variable])
        if own == states[variable]:
            continue
        if len(own) != len(states[variable]) or any(s not in own for s in states[variable]):
            raise ModelError(
                f"two tables disagree about the states of the node {str(variable)!r}: {own} and {states[variable]}."
            )
        values = np.take(values, [own.index(state) for state in states[variable]], axis)
    return np.moveaxis(values, 0, -1) if directed else values


def _label(state: Any) -> Label:
    if isinstance(state, (str, int)):
        return state
    return int(state) if isinstance(state, np.integer) else str(state)
