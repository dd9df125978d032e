"""Bayesian networks: one conditional table per site, no cycle and no other factors.

Formats that hold only Bayesian networks read and write through this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import FormatError, IncompatibleError, ModelError
from gibbsite.models.domain import Label, make_domains
from gibbsite.models.factor import gather_tables
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.acyclic import find_cycle
from gibbsite.models.networks.conditionals import ROW_TOLERANCE, Table, conditional_tables

if TYPE_CHECKING:
    from gibbsite.models.networks.causes import CauseFactors
    from gibbsite.models.networks.noisy import Causes

MOST_MEMBERS = 31
"""Most sites of one table; older versions of NumPy allow 32 dimensions, one of which counts the factors."""


def build_network(
    sites: Mapping[str, Sequence[Label]],
    tables: Sequence[tuple[Sequence[int], Floats]],
    fail: Callable[[str, str | None], FormatError],
    noisy: Sequence[tuple[Sequence[int], Causes]] = (),
) -> FactorGraph:
    """Return the model of conditional tables, given as positions of the parents and, last, of the child.

    Rows sum to one, or are zero where the parents cannot be in these states; tables without such rows are directed.
    ``fail`` makes an error of a message and the name of the variable that it is about, if there is one.
    """
    scopes = {scope[-1]: scope[:-1] for scope, _ in (*tables, *noisy)}
    cycle = find_cycle([scopes.get(site, ()) for site in range(len(sites))])
    if cycle is not None:
        name = list(sites)[cycle[-1]]
        raise fail(f"the variable {name!r} is its own ancestor.", name)
    proper: list[tuple[Sequence[int], Floats]] = []
    partial: list[tuple[Sequence[int], Floats]] = []
    for scope, table in tables:
        (proper if table.any(axis=-1).all() else partial).append((scope, table))
    wide: list[CauseFactors] = []
    if noisy:
        from gibbsite.models.networks.causes import NoisyNodes, make_factors

        made = [make_factors(scope, causes) for scope, causes in noisy]
        wide = [group for group in made if not group.is_small]
        small = [one for group, one in zip(made, noisy, strict=True) if group.is_small]
        proper += [(scope, causes.probabilities()) for scope, causes in small]
    try:
        groups, _ = gather_tables(make_domains(sites), proper, (), directed=True)
        model = FactorGraph(sites, partial, groups=[*groups, *wide])
    except ModelError as error:
        raise fail(str(error), None) from None
    if noisy:
        model.cache.put(NoisyNodes((model.sites[scope[-1]], causes) for scope, causes in noisy))
    return model


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


def network_tables(model: FactorGraph, wanted: str, noisy: dict[int, CauseFactors] | None = None) -> list[Table]:
    """Return the conditional table of every site, in site order; refuse models that are not Bayesian networks."""

    def refuse(reason: str) -> IncompatibleError:
        return IncompatibleError(f"{wanted} holds Bayesian networks, but {reason}; write UAI instead.")

    return conditional_tables(model, refuse, noisy)
