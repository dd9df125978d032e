"""What users give to learn from: data, moments, and which pairs may be coupled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints16, Ints32
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.models import FactorGraph
from gibbsite.models.domain import MOST_STATES
from gibbsite.models.reals import read_reals


def read_numbers(given: Any, what: str) -> Floats:
    """Return an array of finite numbers; refuse anything else."""
    array = read_reals(given, what)
    if not np.isfinite(array).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ArgumentError(f"{argument(what)} must be finite, but entry {at} is {array[at]}.")
    return array


def read_codes(data: Any, states: int | None = None, spins: bool = False) -> Ints16:
    """Return data as state codes (draws, sites).

    ``data`` (draws, sites): codes 0, 1, ...; with ``spins`` alternatively -1 and 1; ``states``: number of states;
    ``spins``: whether the two states may be -1 and 1.
    """
    array = read_numbers(data, "data")
    if array.ndim != 2 or not array.size:
        raise ArgumentError(f"{argument('data')} must have shape (draws, sites), one row per draw, got {array.shape}.")
    if spins and (array == -1.0).any():
        array = np.where(array == -1.0, 0.0, np.where(array == 1.0, 1.0, np.nan))
    else:
        most = MOST_STATES if states is None else states
        array = np.where((array >= 0) & (array < most) & (array == np.floor(array)), array, np.nan)
    wrong = np.argwhere(np.isnan(array))
    if len(wrong):
        at = tuple(int(k) for k in wrong[0])
        allowed = "-1 and 1, or 0 and 1" if spins else f"whole numbers from 0 to {(states or MOST_STATES) - 1}"
        value = np.asarray(data)[at]
        raise ArgumentError(f"{argument('data')} must be {allowed}, but entry {at} is {value}.")
    return array.astype(np.int16)


def read_pairs(structure: Any, n: int, sites: Any = None) -> Ints32:
    """Return pairs i < j in the order they are given.

    ``structure``: all pairs; those of a model's factors; positions, or names if there are ``sites``; ``n``: number of
    sites; ``sites``: their names.
    """
    if isinstance(structure, str):
        if structure != "complete":
            raise ArgumentError(
                f'structure must be "complete", "screened", a model or a list of pairs, got {structure!r}.'
            )
        found = np.stack(np.triu_indices(n, 1), axis=1)
    elif isinstance(structure, FactorGraph):
        if structure.n_sites != n:
            raise ArgumentError(f"The structure has {structure.n_sites} sites, the data {n}.")
        if any(group.size and group.arity > 2 for group in structure.groups):
            raise ArgumentError("The structure has factors of more than two sites; give a list of pairs.")
        scopes = [group.scopes for group in structure.groups if group.arity == 2 and group.size]
        found = np.concatenate([np.zeros((0, 2), np.int32), *scopes])
    else:
        found = _listed(structure, sites)
    if found.size and (found.min() < 0 or found.max() >= n):
        bad = next(pair for pair in found.tolist() if min(pair) < 0 or max(pair) >= n)
        raise ArgumentError(f"The pair {tuple(bad)} names a site outside 0..{n - 1}.")
    pairs = np.sort(found, axis=1).astype(np.int32)
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ArgumentError(f"The structure couples site {pairs[pairs[:, 0] == pairs[:, 1]][0, 0]} to itself.")
    unique, times = np.unique(pairs, axis=0, return_counts=True)
    if (times > 1).any():
        raise ArgumentError(f"The structure has the pair {tuple(unique[times > 1][0].tolist())} twice.")
    return pairs


def _listed(structure: Any, sites: Any) -> Ints:
    if not isinstance(structure, Iterable):
        raise ArgumentError(f"{argument('structure')} must be a list of pairs of sites, got {structure!r}.")
    names = {} if sites is None else {name: k for k, name in enumerate(sites)}
    listed = []
    for pair in structure:
        ends = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
        if len(ends) != 2:
            raise ArgumentError(f"{argument('structure')} must be a list of pairs of sites, but one entry is {pair!r}.")
        for end in ends:
            if end not in names and (isinstance(end, bool) or not isinstance(end, int | np.integer)):
                raise ArgumentError(f"The pair {ends} names the unknown site {end!r}.")
        listed.append([names.get(end, end) for end in ends])
    return np.array(listed, np.int64).reshape(-1, 2)
