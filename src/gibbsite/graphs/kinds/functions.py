"""Models of functions as arrays: code, sites, parameters and bounds of each factor.

Factors are numbered group by group, and their common data are stored once for each group. Sites with the same factors
share one row of factor numbers, so a likelihood of a million rows needs memory for its parameters, its bounds and one
list of numbers, for any number of sites.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints8, Ints16, Ints32, Words64
from gibbsite._numba.foreign import ROOM, Foreign, adopt, call_at, stack_room
from gibbsite._numba.jit import Integer, compiled, implement, inlined
from gibbsite.errors import ModelError
from gibbsite.graphs.functions.bounds import FunctionModel, given_bounds
from gibbsite.graphs.graph import Graph, graph_of
from gibbsite.graphs.local import log_potential
from gibbsite.graphs.registry import register
from gibbsite.graphs.rows import row_starts
from gibbsite.models.continuous import ContinuousModel
from gibbsite.models.functions.factors import FunctionFactors


class Groups(NamedTuple):
    """The common data of the factors of each group.

    Factor f of group g has ``arity[g]`` members, from ``member_at[g] + member_step[g] * (f - first[g])`` on,
    and ``width[g]`` parameters; its value is ``weight[g]`` times that of the function at ``address[g]``.
    ``nothing`` replaces the random words, which factors do not use.
    """

    first: Ints
    address: Ints
    arity: Ints
    width: Ints
    member_at: Ints
    member_step: Ints
    parameter_at: Ints
    weight: Floats
    nothing: Words64


class ContinuousGraph(NamedTuple):
    """Numbers in intervals, and states, with factors that are functions.

    ``offset``, ``low``, ``high``, ``period`` (0 except for angles) and ``card`` (0 for numbers) describe the sites. The
    factors of site i are ``factor[start[row[i]] : start[row[i] + 1]]``; those before ``sure[row[i]]`` are evaluated at
    every update. ``group`` is the group of each factor, ``member`` has their sites: member -1 - k is the observed value
    ``known[k]``. The log-conditional of a site is a polynomial of its ``degree``, which is 0 if it is not a polynomial.
    """

    offset: Ints
    low: Floats
    high: Floats
    period: Floats
    card: Ints32
    row: Ints32
    start: Ints
    sure: Ints
    factor: Ints32
    group: Ints16
    degree: Ints8
    groups: Groups
    member: Ints32
    known: Floats
    parameter: Floats

    def call_of(self, f: int, x: Floats) -> tuple[Floats, Floats]:
        """Return the arrays that the function of a factor is called with at a place."""
        groups, g = self.groups, int(self.group[f])
        rank, arity, width = f - int(groups.first[g]), int(groups.arity[g]), int(groups.width[g])
        at = int(groups.member_at[g] + groups.member_step[g] * rank)
        spot = int(groups.parameter_at[g] + width * rank)
        everything = np.concatenate([x, self.known[::-1]])  # member -1 - k is observed value k
        return everything[self.member[at : at + arity]], self.parameter[spot : spot + width]

    def calls_of(self, g: int, x: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield the arrays that the function of a group is called with at a place, factor by factor."""
        for f in np.flatnonzero(self.group == g).tolist():
            yield self.call_of(f, x)

    def pairs(self) -> Ints:
        """Return all pairs of sites that share a factor, each once, the smaller one first."""
        found = [np.zeros((0, 2), np.int64)]
        table = self.groups
        for g in range(table.first.size):
            arity = int(table.arity[g])
            scopes = 1 if not table.member_step[g] else int((self.group == g).sum())
            at = int(table.member_at[g])
            scope = np.sort(self.member[at : at + scopes * arity].reshape(scopes, arity), axis=1)
            a, b = np.triu_indices(arity, 1)
            found.append(np.stack([scope[:, a].ravel(), scope[:, b].ravel()], axis=1).astype(np.int64))
        pairs = np.unique(np.concatenate(found), axis=0)
        return pairs[pairs[:, 0] >= 0]


@inlined
def factor_value(arrays: ContinuousGraph, f: Integer, x: Floats, i: Integer, v: float, work: Floats) -> float:
    """Return the value of factor f with x[i] replaced by v; ``work`` receives the values of its sites."""
    groups = arrays.groups
    g = arrays.group[f]
    rank = f - groups.first[g]
    arity, width = groups.arity[g], groups.width[g]
    at = groups.member_at[g] + groups.member_step[g] * rank
    for k in range(arity):
        j = arrays.member[at + k]
        work[k] = arrays.known[-1 - j] if j < 0 else v if j == i else x[j]
    spot = groups.parameter_at[g] + width * rank
    value = call_at(groups.address[g], work, 0, arity, arrays.parameter, spot, width, groups.nothing)
    return float(groups.weight[g] * value)


@implement(log_potential, ContinuousGraph)
def _log_potential_functions(arrays: ContinuousGraph, x: Array) -> float:
    total = 0.0
    work = stack_room()
    for f in range(arrays.group.size):
        total += factor_value(arrays, f, x, -1, 0.0, work)
    return total


@compiled
def evaluate_factors(arrays: ContinuousGraph, x: Floats, out: Floats) -> None:
    """Write the values of all factors to ``out``."""
    work = np.zeros(ROOM)
    for f in range(arrays.group.size):
        out[f] = factor_value(arrays, f, x, -1, 0.0, work)


@register(name="functions", model="ContinuousModel")
def compile_functions(model: ContinuousModel) -> Graph:
    """Turn a model of functions into arrays, and compile its functions."""
    groups = model.groups
    for group in groups:
        if group.arity > ROOM:
            raise ModelError(f"a factor of {group.name!r} has {group.arity} sites; at most {ROOM} are possible.")
    codes = [_adopted(model, group) for group in groups]
    sizes = np.array([group.size for group in groups], np.int64)
    first = row_starts(sizes)
    arity = np.array([group.arity for group in groups], np.int64)
    width = np.array([group.parameters.shape[1] for group in groups], np.int64)
    place, known = model.places
    members = [place[group.scopes.ravel()] for group in groups]
    parameters = [group.parameters.ravel() for group in groups]
    table = Groups(
        first=first[:-1].copy() if len(groups) else np.zeros(1, np.int64),
        address=np.array([code.address for code in codes] or [0], np.int64),
        arity=arity if len(groups) else np.zeros(1, np.int64),
        width=width if len(groups) else np.zeros(1, np.int64),
        member_at=_begins(members),
        member_step=np.array([0 if group.common else group.arity for group in groups] or [0], np.int64),
        parameter_at=_begins(parameters),
        weight=np.array([group.weight for group in groups] or [1.0]),
        nothing=np.zeros(4, np.uint64),
    )
    domains = model.domains
    low, high = domains.bounds
    row, start, sure, factor = _rows(model, place, first)
    cards = np.asarray(domains.cards, np.int64)
    arrays = ContinuousGraph(
        offset=domains.offset,
        low=low,
        high=high,
        period=domains.periods,
        card=np.where(domains.numbers, 0, cards).astype(np.int32),
        row=row,
        start=start,
        sure=sure,
        factor=factor,
        group=np.repeat(np.arange(len(groups)), sizes).astype(np.int16),
        degree=_degrees(model, place),
        groups=table,
        member=np.concatenate([np.zeros(0, np.int32), *members]).astype(np.int32),
        known=known,
        parameter=np.concatenate([np.zeros(0), *parameters]),
    )
    bounds = given_bounds(groups, *model.box)
    factors = FunctionModel(model.whole, groups, model.box, np.flatnonzero(place >= 0), bounds)
    return graph_of(model, "functions", arrays, codes, factors=factors)


def _adopted(model: ContinuousModel, group: FunctionFactors) -> Foreign:
    try:
        return adopt(group.function, "value", arguments=group.arguments, must_compile=True)
    except ModelError as reason:
        raise ModelError(f"the factors {group.name!r}: {reason}") from None


def _begins(parts: list[Any]) -> Ints:
    return row_starts([part.size for part in parts])[:-1] if parts else np.zeros(1, np.int64)


def _rows(model: ContinuousModel, place: Ints32, first: Ints) -> tuple[Ints32, Ints, Ints, Ints32]:
    """Return the row of each site, and the rows, which list the factors that are always evaluated first.

    Sites share a row if they have the same factors: whole groups whose factors all have one scope.
    """
    groups, n = model.groups, model.n_sites
    shared: list[list[int]] = [[] for _ in range(n)]  # groups of common scope, by site
    own_site, own_factor = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    order = sorted(range(len(groups)), key=lambda g: not groups[g].always)
    for g in order:
        scopes = place[groups[g].scopes]
        if groups[g].common:
            for site in scopes[scopes >= 0].tolist():
                shared[site].append(g)
        else:
            free = scopes.ravel() >= 0
            own_site.append(scopes.ravel()[free].astype(np.int64))
            own_factor.append(np.repeat(np.arange(len(scopes)) + first[g], scopes.shape[1])[free])
    site, factor = np.concatenate(own_site), np.concatenate(own_factor)
    always = np.repeat([group.always for group in groups], [group.size for group in groups])
    ranked = np.lexsort((factor, ~always[factor] if factor.size else factor, site))
    site, factor = site[ranked], factor[ranked]
    begin = np.searchsorted(site, np.arange(n + 1))
    row = np.zeros(n, np.int32)
    known: dict[tuple[int, ...], int] = {}
    parts: list[Array] = []
    sure: list[int] = []
    for i in range(n):
        mine = factor[begin[i] : begin[i + 1]]
        key = tuple(shared[i])
        if not mine.size and key in known:
            row[i] = known[key]
            continue
        whole = [np.arange(first[g], first[g + 1]) for g in key]
        everything = np.concatenate([np.zeros(0, np.int64), mine, *whole])
        if key and everything.size:
            everything = everything[np.argsort(~always[everything], kind="stable")]
        row[i] = len(parts)
        if not mine.size:
            known[key] = len(parts)
        parts.append(everything.astype(np.int32))
        sure.append(int(always[everything].sum()) if everything.size else 0)
    start = row_starts([part.size for part in parts])
    joined = np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32)
    return row, start, start[:-1] + np.array(sure, np.int64), joined


def _degrees(model: ContinuousModel, place: Ints32) -> Ints8:
    """Return the degree of the sum of the factors of each site as a polynomial in it, 0 if it is not one."""
    degree = np.ones(model.n_sites, np.int8)
    for group in model.groups:
        sites = np.unique(place[group.scopes])
        sites = sites[sites >= 0]
        if group.degree is None:
            degree[sites] = 0
        else:
            mine = degree[sites]
            degree[sites] = np.where(mine == 0, 0, np.maximum(mine, group.degree))
    degree[~model.domains.numbers] = 0
    return degree
