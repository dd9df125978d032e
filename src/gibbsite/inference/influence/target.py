"""The target of a bound: one weight per site, from names, positions or weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import describe, is_iterable
from gibbsite._common.arrays import Floats, Ints
from gibbsite.errors import ArgumentError

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


def read_target(model: FactorGraph, target: Any = None, weights: Any = None) -> Floats:
    """Return the weight of every site.

    The target is a site or a list of sites, by name or position, all by default. Weights are given by site, one for
    each target, or without a target one for each site; 1 by default.
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
        raise ArgumentError("The model has no free site: all are observed, nothing is left to sample.")


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
