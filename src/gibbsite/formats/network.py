"""Bayesian networks among factor graphs: one conditional table per site, no cycle, nothing else.

The formats that hold nothing but networks read and write through this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import IncompatibleError
from gibbsite.models.domain import Label, make_domains
from gibbsite.models.factor import find_cycle, gather_tables
from gibbsite.models.factorgraph import FactorGraph

ROW_TOLERANCE = 1e-2 - 1e-9
"""How far a row may be from the sum one: published tables are rounded."""


# NumPy arrays have at most 32 dimensions in its older versions, one of which counts the factors.
MOST_MEMBERS = 31
"""Most sites of one table."""


class Table(NamedTuple):
    """The conditional table of a site: its parents and it, and log-potentials of that shape."""

    scope: tuple[int, ...]
    logs: Floats


def build_network(sites: Mapping[str, Sequence[Label]], tables: Iterable[tuple[Sequence[int], Floats]]) -> FactorGraph:
    """Return the model of conditional tables, given as positions of the parents and, last, of the child.

    Rows sum to one, or are zero where the parents cannot be in these states; tables without such rows are directed.
    """
    proper: list[tuple[Sequence[int], Floats]] = []
    partial: list[tuple[Sequence[int], Floats]] = []
    for scope, table in tables:
        (proper if table.any(axis=-1).all() else partial).append((scope, table))
    groups, _ = gather_tables(make_domains(sites), proper, (), directed=True)
    return FactorGraph(sites, partial, groups=groups)


def network_tables(model: FactorGraph, wanted: str) -> list[Table]:
    """Return the conditional table of every site, in site order; refuse models that are not Bayesian networks."""
    found: list[Table | None] = [None] * model.n_sites

    def refuse(reason: str) -> IncompatibleError:
        return IncompatibleError(f"{wanted} holds Bayesian networks, but {reason}; write UAI instead.")

    if model.log_offset:
        raise refuse("the model has a constant factor, as observed sites leave behind")
    for group in model.groups:
        if group.size == 0:
            continue
        tables = group.log_tables(model.cards)
        sums = np.exp(tables).sum(axis=-1)
        fits = ((np.abs(sums - 1.0) <= ROW_TOLERANCE) | (sums == 0.0)).reshape(len(tables), -1).all(axis=1)
        for k, scope in enumerate(group.scopes.tolist()):
            which = k if len(tables) > 1 else 0
            text = model.domains.scope_text(scope)
            if not fits[which]:
                raise refuse(f"the factor over {text} is not a conditional table of its last site")
            if found[scope[-1]] is not None:
                raise refuse(f"two factors end in the site {model.sites[scope[-1]]!r}")
            found[scope[-1]] = Table(tuple(scope), tables[which])
    missing = [name for name, table in zip(model.sites, found, strict=True) if table is None]
    if missing:
        raise refuse(f"the site {missing[0]!r} has no conditional table")
    complete = [table for table in found if table is not None]
    cycle = find_cycle([table.scope[:-1] for table in complete])
    if cycle is not None:
        raise refuse(f"the site {model.sites[cycle[-1]]!r} is its own ancestor")
    return complete
