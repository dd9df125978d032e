"""Search for a Bayesian network in a model: an order of the sites in which each has its conditional distribution.

Models of Bayesian networks mark which factors are conditional tables (``directed``). In other models, such as UAI files
of type MARKOV, factors that sum to one over one of their sites are found: whenever all but one of the sites of such a
factor have a place in the order, it can be the conditional distribution of the last one. Placing a site never prevents
another from being placed, so an order is found if there is one. Any choice of conditional tables is correct, because
all other factors count as weights. The conditional tables of observed sites, reduced by the evidence, are such factors.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Bools, Floats
from gibbsite.errors import ModelError, TooLargeError

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


#: Largest deviation of rows of conditional tables from one; the deviation is part of the weights.
_TOLERANCE = 1e-2
_MOST_ENTRIES = 1 << 28


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor over sites: the last axis of ``logs`` belongs to the last of ``sites``."""

    sites: tuple[int, ...]
    logs: Floats


@dataclass(frozen=True, eq=False)
class BayesNetwork:
    """A model as a Bayesian network.

    ``order`` lists the sites, parents before children, and ``laws`` their conditional tables, each with the site last;
    rows sum to one, or nearly. ``likelihoods`` are all other factors.
    """

    order: list[int]
    laws: list[Factor]
    likelihoods: list[Factor]

    def keep(self, wanted: Bools) -> BayesNetwork:
        """Drop barren sites: those with no wanted site and no likelihood among their descendants."""
        needed = wanted.copy()
        for factor in self.likelihoods:
            needed[list(factor.sites)] = True
        for law in reversed(self.laws):
            off = np.abs(np.exp(law.logs).sum(axis=-1) - 1.0) > EXACT
            if needed[law.sites[-1]] or off.any():  # rows that are not one are weights of the parents
                needed[list(law.sites)] = True
        kept = [k for k, site in enumerate(self.order) if needed[site]]
        return BayesNetwork([self.order[k] for k in kept], [self.laws[k] for k in kept], self.likelihoods)


#: Rows of conditional tables this close to one count as normalised.
EXACT = 1e-9


def find_network(model: FactorGraph) -> BayesNetwork:
    """Return a model as a Bayesian network; raise :class:`ModelError` if a site has no conditional table."""
    factors, children = _list_factors(model, directed=True)
    found = _order(model.n_sites, factors, children)
    if len(found) < model.n_sites:
        factors, any_child = _list_factors(model, directed=False)
        if children != any_child:
            found = _order(model.n_sites, factors, any_child)
    if len(found) < model.n_sites:
        raise ModelError(_no_network(model, found))
    used = {f for f, _ in found.values()}
    laws = [_with_last(factors[f], site) for site, (f, _) in found.items()]
    rest = [factor for f, factor in enumerate(factors) if f not in used]
    return BayesNetwork(list(found), laws, rest)


def _list_factors(model: FactorGraph, directed: bool) -> tuple[list[Factor], list[tuple[int, ...]]]:
    """Return the factors, and for each the sites that it may be the conditional table of.

    These are the last sites of ``directed`` tables, or otherwise all sites over which the factor sums to one.
    """
    factors: list[Factor] = []
    children: list[tuple[int, ...]] = []
    for group in model.groups:
        tables: Any = group.log_tables(model.cards)
        if tables.size > _MOST_ENTRIES:
            raise TooLargeError(
                f"The tables of the model have {tables.size:,} entries, more than {_MOST_ENTRIES:,}, too "
                "many for forward draws."
            )
        arity = group.scopes.shape[1]
        if directed:
            axes = np.zeros((len(tables), arity), np.bool_)
            axes[:, -1] = getattr(group, "directed", False)
        else:
            entries = np.exp(tables)
            axes = np.stack(
                [
                    (np.abs(entries.sum(axis=1 + a) - 1.0) <= _TOLERANCE).reshape(len(tables), -1).all(axis=1)
                    for a in range(arity)
                ],
                axis=1,
            )
        for k, scope in enumerate(group.scopes.tolist()):
            table = k if len(tables) > 1 else 0
            factors.append(Factor(tuple(scope), tables[table]))
            children.append(tuple(site for site, may in zip(scope, axes[table], strict=True) if may))
    return factors, children


def _order(n_sites: int, factors: list[Factor], children: list[tuple[int, ...]]) -> dict[int, tuple[int, int]]:
    """Place sites one after another; return factor and number of members by site, in order."""
    missing = [len(factor.sites) for factor in factors]
    of_site: list[list[int]] = [[] for _ in range(n_sites)]
    for f, factor in enumerate(factors):
        for site in factor.sites:
            of_site[site].append(f)
    placed: dict[int, tuple[int, int]] = {}
    ready = deque(f for f, count in enumerate(missing) if count == 1)
    while ready:
        f = ready.popleft()
        free = [site for site in factors[f].sites if site not in placed]
        if not free or free[0] not in children[f]:
            continue
        placed[free[0]] = f, len(factors[f].sites)
        for other in of_site[free[0]]:
            missing[other] -= 1
            if missing[other] == 1:
                ready.append(other)
    return placed


def _with_last(factor: Factor, site: int) -> Factor:
    """Return a factor with the axis of a site last."""
    at = factor.sites.index(site)
    others = factor.sites[:at] + factor.sites[at + 1 :]
    return Factor((*others, site), np.ascontiguousarray(np.moveaxis(factor.logs, at, -1)))


def _no_network(model: FactorGraph, found: dict[int, Any]) -> str:
    """Name a site that has no conditional table."""
    without = next(site for site in range(model.n_sites) if site not in found)
    return (
        f"the model is not a Bayesian network: no factor is the conditional table of the site "
        f"{model.sites[without]!r}, or none given sites that have one; forward draws need a distribution of "
        "each site given its parents, so choose another method."
    )
