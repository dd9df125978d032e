"""Bayesian networks: each site has one conditional table, and no site is its own ancestor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains
from gibbsite.models.factor import FactorGroup

_MOST_NAMES = 8  # of a cycle, in a message


def check_network(domains: Domains, groups: Sequence[FactorGroup], *, complete: bool) -> None:
    """Refuse two conditional tables of one site, cycles, and, if ``complete``, sites without a table."""
    found: dict[int, list[int]] = {}
    ended = np.zeros(domains.n_sites, np.bool_)
    for group in groups:
        ended[group.scopes[:, -1]] = True
        for scope in group.scopes.tolist() if group.directed else ():
            if scope[-1] in found:
                raise ModelError(
                    f"the site {domains.names[scope[-1]]!r} has two conditional tables, over "
                    f"{domains.scope_text(found[scope[-1]])} and over {domains.scope_text(scope)}; "
                    "each site of a Bayesian network has one table, in which it is the last site."
                )
            found[scope[-1]] = scope
    if complete and not ended.all():
        raise ModelError(
            f"the site {domains.names[int(np.argmin(ended))]!r} has no conditional table; each site of a "
            "Bayesian network has one table, in which it is the last site."
        )
    cycle = find_cycle([found[site][:-1] if site in found else [] for site in range(domains.n_sites)])
    if cycle is not None:
        names = [repr(domains.names[site]) for site in [*cycle[:_MOST_NAMES], cycle[0]]]
        if len(cycle) > _MOST_NAMES:
            names.insert(_MOST_NAMES, "...")
        raise ModelError(
            f"the conditional tables form a cycle, {' -> '.join(names)}; no site of a Bayesian network is "
            "its own ancestor."
        )


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int] | None:
    """Return a cycle, in which each site is a parent of the next and the last one of the first, or None."""
    children: list[list[int]] = [[] for _ in parents]
    missing = [len(each) for each in parents]
    for site, each in enumerate(parents):
        for parent in each:
            children[parent].append(site)
    ready = [site for site, count in enumerate(missing) if count == 0]
    for site in ready:  # the list grows during the loop
        for child in children[site]:
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
    if len(ready) == len(parents):
        return None
    # Every remaining site has a remaining parent, so a walk from parent to parent ends in a cycle.
    site = next(site for site, count in enumerate(missing) if count)
    path: dict[int, None] = {}
    while site not in path:
        path[site] = None
        site = next(parent for parent in parents[site] if missing[parent])
    walked = list(path)
    return walked[walked.index(site) :][::-1]
