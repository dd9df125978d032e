"""The conditional tables of a factor graph that is a Bayesian network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.acyclic import find_cycle

if TYPE_CHECKING:
    from gibbsite.models.networks.causes import CauseFactors

ROW_TOLERANCE = 1e-2 - 1e-9
"""How far a row of a published table may be from the sum one: such tables are rounded."""


class Table(NamedTuple):
    """The conditional table of a site: its parents and it, and log-potentials of that shape."""

    scope: tuple[int, ...]
    logs: Floats


def conditional_tables(
    model: FactorGraph, refuse: Callable[[str], Exception], noisy: dict[int, CauseFactors] | None = None
) -> list[Table]:
    """Return the conditional table of every site, in site order.

    ``refuse`` makes an error of the reason why a model is no Bayesian network. Noisy nodes that are not stored as
    tables are put into ``noisy``, and their table is empty; by default, tables are made of them.
    """
    found: list[Table | None] = [None] * model.n_sites
    if model.log_offset:
        raise refuse("the model has a constant factor, as observed sites leave behind")
    for group in model.groups:
        if group.size == 0:
            continue
        if noisy is not None and group.directed and type(group).__name__ == "CauseFactors":
            scope = tuple(group.scopes[0].tolist())
            noisy[scope[-1]], found[scope[-1]] = cast("CauseFactors", group), Table(scope, np.zeros(0))
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
