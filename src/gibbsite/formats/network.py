"""Bayesian networks: one conditional table per site, no cycle and no other factors.

Formats that hold only Bayesian networks read and write through this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import FormatError, IncompatibleError, ModelError
from gibbsite.models.domain import Label, make_domains
from gibbsite.models.factor import gather_tables
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.network import find_cycle

ROW_TOLERANCE = 1e-2 - 1e-9
"""How far a row may be from the sum one: published tables are rounded."""


MOST_MEMBERS = 31
"""Most sites of one table; older versions of NumPy allow 32 dimensions, one of which counts the factors."""


class Table(NamedTuple):
    """The conditional table of a site: its parents and it, and log-potentials of that shape."""

    scope: tuple[int, ...]
    logs: Floats


def build_network(
    sites: Mapping[str, Sequence[Label]],
    tables: Sequence[tuple[Sequence[int], Floats]],
    fail: Callable[[str, str | None], FormatError],
) -> FactorGraph:
    """Return the model of conditional tables, given as positions of the parents and, last, of the child.

    Rows sum to one, or are zero where the parents cannot be in these states; tables without such rows are directed.
    ``fail`` makes an error of a message and the name of the variable that it is about, if there is one.
    """
    cycle = find_cycle([scope[:-1] for scope, _ in tables])
    if cycle is not None:
        name = list(sites)[cycle[-1]]
        raise fail(f"the variable {name!r} is its own ancestor.", name)
    proper: list[tuple[Sequence[int], Floats]] = []
    partial: list[tuple[Sequence[int], Floats]] = []
    for scope, table in tables:
        (proper if table.any(axis=-1).all() else partial).append((scope, table))
    try:
        groups, _ = gather_tables(make_domains(sites), proper, (), directed=True)
        return FactorGraph(sites, partial, groups=groups)
    except ModelError as error:
        raise fail(str(error), None) from None


def find_wrong_row(rows: Floats) -> tuple[int, float] | None:
    """Return the number and the sum of the first row whose sum is neither one nor zero."""
    sums = rows.sum(axis=1)
    wrong = (np.abs(sums - 1.0) > ROW_TOLERANCE) & (sums != 0.0)
    k = int(np.argmax(wrong))
    return (k, float(sums[k])) if wrong.any() else None


def read_table(values: Floats, shape: Sequence[int], fail: Callable[[str], FormatError]) -> Floats:
    """Return the numbers of a file, the child fastest, as a conditional table of a shape; refuse what is none."""
    if values.size != math.prod(shape):
        raise fail(f"expected {math.prod(shape)} numbers, found {values.size}.")
    if not (values.min() >= 0 and values.max() < np.inf):
        worst = values[np.argmin((values >= 0) & (values < np.inf))]
        raise fail(f"expected probabilities, found {worst:g}.")
    wrong = find_wrong_row(values.reshape(-1, shape[-1]))
    if wrong is not None:
        raise fail(f"row {wrong[0]} of the table sums to {wrong[1]:.6g}; expected 1.")
    if not values.any():
        raise fail("all probabilities of this table are zero.")
    return values.reshape(shape)


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
