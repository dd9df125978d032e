"""Bayesian networks of pyAgrum, read from their objects and made from models."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.errors import IncompatibleError
from gibbsite.formats.network import network_tables
from gibbsite.models.factorgraph import FactorGraph


@checked
def from_pyagrum(network: Any) -> FactorGraph:
    """Build a model from a Bayesian network of pyAgrum.

    Parameters
    ----------
    network : pyagrum.BayesNet
        Variables of any discrete kind.

    Returns
    -------
    FactorGraph
        Sites in the order of ``network.nodes()``, states with the labels of pyAgrum, which are text; directed tables.

    Raises
    ------
    IncompatibleError
        For anything but a Bayesian network.

    See Also
    --------
    to_pyagrum : The other direction.

    Examples
    --------
    >>> import pyagrum as gum  # doctest: +SKIP
    >>> from_pyagrum(gum.fastBN("A{no|yes}->B[3]")).sites  # doctest: +SKIP
    ('A', 'B')
    """
    if not all(hasattr(network, name) for name in ("nodes", "variable", "cpt")):
        raise IncompatibleError(f"from_pyagrum takes a BayesNet of pyAgrum, got {type(network).__name__}.")
    sites, tables = {}, []
    for node in network.nodes():
        variable, table = network.variable(node), network.cpt(node)
        sites[variable.name()] = list(variable.labels())
        # the axes are in the opposite order of the names, of which the child is the first
        tables.append(([*reversed(table.names)], _as_array(table)))
    return FactorGraph(sites, tables, directed=True)


def _as_array(table: Any) -> Floats:
    """Return a table with the node last; those of noisy nodes are read row by row, because their arrays differ."""
    values = np.asarray(table.toarray(), np.float64)
    parents = [*reversed(table.names)][:-1]
    last = [size - 1 for size in values.shape[:-1]]
    corners = [[end * (k == axis) for k, end in enumerate(last)] for axis in range(len(last))]
    if all(np.array_equal(values[tuple(codes)], _row(table, parents, codes)) for codes in (*corners, last)):
        return values
    rows = [_row(table, parents, codes) for codes in np.ndindex(*values.shape[:-1])]
    return np.array(rows).reshape(values.shape)


def _row(table: Any, parents: Sequence[str], codes: Sequence[int]) -> Floats:
    return np.asarray(table[dict(zip(parents, map(int, codes), strict=True))] if parents else table.toarray(), float)


@checked
def to_pyagrum(model: FactorGraph) -> Any:
    """Return a Bayesian network as one of pyAgrum.

    Parameters
    ----------
    model : FactorGraph
        One conditional table per site and no other factors.

    Returns
    -------
    pyagrum.BayesNet
        Variables with the names of the sites, and the labels of their states as text.

    Raises
    ------
    IncompatibleError
        When the model is not a Bayesian network.

    See Also
    --------
    from_pyagrum : The other direction.

    Examples
    --------
    >>> import gibbsite as gs
    >>> to_pyagrum(gs.example("asia")).size()  # doctest: +SKIP
    8
    """
    tables = network_tables(model, "pyAgrum")
    try:
        pyagrum: Any = import_module("pyagrum")
    except ImportError:
        raise IncompatibleError("this needs pyagrum, which is not installed; run: pip install pyagrum") from None
    network = pyagrum.BayesNet()
    for k, name in enumerate(model.sites):
        network.add(pyagrum.LabelizedVariable(name, name, [str(label) for label in model.labels(k)]))
    for scope, logs in tables:
        *parents, child = (model.sites[k] for k in scope)
        for parent in parents:
            network.addArc(parent, child)
        table = network.cpt(child)
        order = [[*parents, child].index(name) for name in reversed(table.names)]
        table[:] = np.ascontiguousarray(np.exp(logs).transpose(order))
    return network
