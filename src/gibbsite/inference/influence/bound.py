"""``gibbsite.influence.bound_influence``, the best known bound on influence for every pair of sites of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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
from gibbsite.inference.influence.numbers import (
    choose_numbers,
    has_numbers,
    in_units,
    need_normal,
    normal_influence,
    read_distance,
)
from gibbsite.inference.influence.tables import binary_rows, enumerate_blankets, potts_rows, table_rows

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import FactorGraph, Gaussian, Model


METHODS = ("best", "bound", "exact")
_LIMIT = 4096  # largest number of configurations of a Markov blanket that are enumerated
_WORK = 4e7  # configurations of all blankets together


@checked
def bound_influence(model: FactorGraph | Gaussian, method: str = "best", *, limit: int | None = None) -> Influence:
    """Bound the influence of every site on every other.

    Parameters
    ----------
    model : FactorGraph or Gaussian
        A discrete model; observed sites are folded in and have no influence. Of a normal distribution the influence is
        exact, in Wasserstein distance.
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
    if not isinstance(model, _factor_graph()):
        return normal_influence(need_normal(model))
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


class Question(NamedTuple):
    """Influence and weights of sites, in units in which a chain starts at distance 1 of every site."""

    influence: Influence
    weights: Floats
    given: Influence  # the influence in the units of the model


def read_question(model: Model, target: Any, weights: Any, influence: Any, distance: Any) -> Question:
    """Read what is asked about a model: sites and weights, bounds on influence, and the distance of starts."""
    weight = read_target(model, target, weights)
    if isinstance(model, _factor_graph()):
        if distance is not None:
            raise ArgumentError(f"{argument('distance')} is for models of numbers; starts of this model may be any.")
        bounds = choose_influence(model, influence)
        return Question(bounds, weight, bounds)
    bounds, apart = choose_numbers(model, influence), read_distance(model, distance)
    return Question(in_units(bounds, apart), weight * apart, bounds)


def _factor_graph() -> type[FactorGraph]:
    from gibbsite.models import FactorGraph

    return FactorGraph


def read_target(model: Model, target: Any = None, weights: Any = None) -> Floats:
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
    """Refuse anything but models with sites to sample, all of them with states or all of them numbers."""
    from gibbsite.models import Model

    if not isinstance(model, Model):
        raise ArgumentError(f"A model is needed, got {type(model).__name__}; see gs.FactorGraph or gs.ising_grid.")
    if not isinstance(model, _factor_graph()) and not has_numbers(model):
        raise ArgumentError(
            f"No bound is known for {type(model).__name__} with these sites; all of them must have states, in a "
            "FactorGraph, or be numbers."
        )
    if model.n_sites == 0:
        raise ArgumentError("The model has no free site to sample, because all sites are observed.")


def _positions(model: Model, target: Any) -> Ints:
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
