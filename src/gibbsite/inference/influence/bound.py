"""``gibbsite.influence.bound_influence``, the best known bound on influence for every pair of sites of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked, describe, is_iterable
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.potts import PottsGraph
from gibbsite.inference.influence.agreements import bound_agreements, table_agreements
from gibbsite.inference.influence.matrix import Influence, read_influence
from gibbsite.inference.influence.tables import binary_rows, enumerate_blankets, potts_rows, table_rows

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import FactorGraph


METHODS = ("best", "bound", "exact")
_LIMIT = 4096  # largest number of configurations of a Markov blanket that are enumerated
_WORK = 4e7  # configurations of all blankets together


@checked
def bound_influence(model: FactorGraph, method: str = "best", *, limit: int | None = None) -> Influence:
    """Bound the influence of every site on every other.

    Parameters
    ----------
    model : FactorGraph
        A discrete model; observed sites are folded in and have no influence.
    method : {"best", "bound", "exact"}
        "best": the exact influence on sites whose neighbours have few configurations, otherwise the best known bound
        (theorems 10 to 12 of Mitliagkas and Mackey 2017, one for repulsion between equal states, and a general one for
        tables with or without zeros); "bound": the bounds alone; "exact": refuse sites with too many configurations.
    limit : int, optional
        Largest number of configurations to enumerate; 4096 by default, fewer for large models. If factors depend on
        whether states agree, as in Potts models and colorings, numbers of neighbours in each state are enumerated, and
        configurations that differ in the order of neighbours or of states count once.

    Returns
    -------
    Influence

    References
    ----------
    Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS.

    Examples
    --------
    >>> import gibbsite as gs
    >>> influence = gs.influence.bound_influence(gs.ising_grid((100, 100), coupling=0.2), method="bound")
    >>> round(influence.norms.row_sum, 4), round(4 * float(np.tanh(0.2)), 4)
    (0.7895, 0.7895)
    """
    if method not in METHODS:
        raise ArgumentError(unknown("method", method, METHODS))
    graph = compile_graph(model)
    if limit is None:
        few = float(_LIMIT) if method == "exact" else min(_LIMIT, max(16.0, _WORK / max(model.n_sites, 1)))
        limit = int(few)
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
        raise ArgumentError(f"{argument('limit')} must be a whole number of at least 1, got {limit!r}.")
    most = 0 if method == "bound" else int(limit)
    if isinstance(graph.arrays, IsingGraph | LatticeGraph):
        # only signs of the other neighbours are enumerated, which allows one neighbour more than log2(limit)
        found = Influence(*binary_rows(graph.arrays, graph.n_sites, min(most.bit_length(), 40)))
    else:
        found = _from_tables(model, graph, most)
    if method == "exact" and not found.exact.all():
        site = model.sites[int(np.argmin(found.exact))]
        raise ArgumentError(
            f"The neighbours of site {site!r} have more than {limit} configurations; raise limit, or take "
            'method="best".'
        )
    return found


def _from_tables(model: FactorGraph, graph: Graph, most: int) -> Influence:
    exact = np.zeros(graph.n_sites, bool)
    if isinstance(graph.arrays, PottsGraph):
        start, neighbour, weight, value = potts_rows(graph.arrays)
        bound_agreements(start, weight, graph.arrays.offset, graph.arrays.log_unary, most, value, exact)
        return Influence(start, neighbour, value, exact)
    tabled = compile_graph(model, "table")
    tables: Any = tabled.arrays
    start, neighbour = markov_graph(tabled)
    value, weight = table_rows(tables, start, neighbour), np.empty(neighbour.size)
    table_agreements(tables, start, neighbour, weight)
    bound_agreements(start, weight, tables.offset, tables.log_unary, most, value, exact)
    if most > 0:
        enumerate_blankets(tables, start, neighbour, most, value, exact)
    return Influence(start, neighbour, value, exact)


def choose_influence(model: FactorGraph, given: Any) -> Influence:
    """Return the influence that the user gave, checked, or bounds computed from the model."""
    return bound_influence(model) if given is None else read_influence(given, model.n_sites)


def read_target(model: FactorGraph, target: Any = None, weights: Any = None) -> Floats:
    """Return the weight of every site.

    The target is a site or a list of sites; weights are given by site, or one for each target, or without a target one
    for each site.
    """
    check_model(model)
    if isinstance(weights, Mapping):
        if target is not None:
            raise ArgumentError("Give weights by site, or a target with one weight each, not both.")
        target, weights = list(weights), list(weights.values())
    sites = np.arange(model.n_sites) if target is None else _positions(model, target)
    found = np.zeros(model.n_sites)
    if weights is None:
        found[sites] = 1.0
        return found
    try:
        given = np.asarray(weights, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"Weights must be numbers, got {describe(weights)}.") from None
    if given.shape != sites.shape:
        raise ArgumentError(f"There are {sites.size} sites to weigh, but weights of shape {given.shape}.")
    bad = np.flatnonzero(~np.isfinite(given) | (given < 0))
    if bad.size:
        raise ArgumentError(
            f"Weights must be finite and not negative, but site {model.sites[int(sites[bad[0]])]!r} has "
            f"{given[bad[0]]}."
        )
    if not given.any():
        raise ArgumentError("All weights are zero; give at least one site a positive one.")
    found[sites] = given
    return found


def check_model(model: Any) -> None:
    """Refuse anything but models with sites to sample."""
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph):
        raise ArgumentError(f"A model is needed, got {type(model).__name__}; see gs.FactorGraph or gs.ising_grid.")
    if model.n_sites == 0:
        raise ArgumentError("The model has no free site to sample, because all sites are observed.")


def _positions(model: FactorGraph, target: Any) -> Ints:
    if isinstance(target, str | int | np.integer):
        target = [target]
    if not is_iterable(target):
        raise ArgumentError(f"The target must be a site or a list of sites, got {target!r}.")
    sites = np.array([model.index(site) for site in target], np.int64)
    if sites.size == 0:
        raise ArgumentError("The target is empty; name at least one site, or leave it out for all.")
    if np.unique(sites).size != sites.size:
        twice = int(np.flatnonzero(np.bincount(sites) > 1)[0])
        raise ArgumentError(f"The target names site {model.sites[twice]!r} twice.")
    return sites
