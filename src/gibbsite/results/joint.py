"""Joint probabilities of small sets of sites: what every method needs to answer for them.

Observed sites may be asked for like others: their axis has the whole probability at the observed state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.wording import site_name
from gibbsite.errors import ArgumentError
from gibbsite.results.measure.measurement import count_states, measure_cells

if TYPE_CHECKING:
    from gibbsite.models.domain import Domains
    from gibbsite.results.result import Result

MOST_CONFIGURATIONS = 1 << 16


def find_free(
    sites: Sequence[str | int], domains: Domains, evidence: Mapping[str, Any], most: int = MOST_CONFIGURATIONS
) -> list[int]:
    """Return the positions of those of the sites that are not observed; refuse what has no joint.

    ``most`` is the largest number of configurations.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2, "b": 2, "c": 2}).observe({"b": 1})
    >>> find_free(("c", "b"), model.domains, model.evidence)
    [1]
    """
    if not sites:
        raise ArgumentError("A joint is of named sites, such as joint('A', 'B'); none was given.")
    for site in sites:
        name = str(site_name(site))
        if isinstance(site, list | tuple) and name not in evidence and domains.names.find(name) is None:
            raise ArgumentError(f"Name sites one by one, such as joint('A', 'B'), got {site!r}.")
    names = map(site_name, sites)
    named = [name if isinstance(name, str) else domains.names[domains.position(name)] for name in names]
    twice = next((name for k, name in enumerate(named) if name in named[:k]), None)
    if twice is not None:
        raise ArgumentError(f"The site {twice!r} is asked for twice; name each site once.")
    free = [domains.position(name) for name in named if name not in evidence]
    for position in free:
        if domains.numbers[position]:
            raise ArgumentError(
                f"Joint probabilities are of states, and the site {domains.names[position]!r} is a number; "
                "record 'draws' and use them."
            )
    size = math.prod(int(domains.cards[position]) for position in free)
    if size > most:
        raise ArgumentError(
            f"The sites {', '.join(named)} have {size:,} configurations together, more than "
            f"{most:,}; ask for fewer sites."
        )
    return free


def add_observed(
    table: Floats, sites: Sequence[str | int], evidence: Mapping[str, Any], labels: Mapping[str, tuple[Any, ...]]
) -> Floats:
    """Give a table of the free sites among ``sites``, in their order, an axis for each observed one.

    Examples
    --------
    >>> add_observed(np.array([0.25, 0.75]), ("b", "a"), {"b": "y"}, {"b": ("x", "y")}).tolist()
    [[0.0, 0.0], [0.25, 0.75]]
    """
    for axis, site in enumerate(sites):
        if isinstance(name := site_name(site), str) and name in evidence:
            at = labels[name].index(evidence[name])
            wide = np.zeros((len(labels[name]), *table.shape))
            wide[at] = table
            table = np.moveaxis(wide, 0, axis)
    return table


def sampled_joint(result: Result, sites: Sequence[str | int], errors: bool = False) -> Floats:
    """Return joint probabilities of a run, or their standard errors, one axis per site as asked for.

    They come from the recorded set of these sites, from the marginal of a single one, or from draws.
    """
    free = find_free(sites, result.domains, result.evidence)
    table = _of_free_sites(result, free, errors)
    return add_observed(table, sites, result.evidence, result.evidence_labels)


def _of_free_sites(result: Result, free: list[int], errors: bool) -> Floats:
    for number in range(result._sets.start.size - 1):
        first, last = result._sets.start[number : number + 2]
        members = result._sets.member[first:last].tolist()
        if sorted(members) == sorted(free):
            shape = [int(result.domains.cards[i]) for i in members]
            cell = int(result._sets.cell[number])
            cells = slice(cell, cell + math.prod(shape))
            if errors:
                found = result.numbers.error[cells]
            else:  # without a look at all other cells
                found = result.totals[:, cells].sum(axis=0) / max(result.chains * result.n_draws, 1)
            return found.reshape(shape).transpose([members.index(i) for i in free])
    if not free:
        return np.zeros(()) if errors else np.ones(())
    if len(free) == 1 and result._n_marginal:
        return np.array(list((result.mcse if errors else result.marginals)[free[0]].values()))
    drawn = result.draw_sites.tolist()
    if all(site in drawn for site in free):
        return _of_draws(result, [drawn.index(site) for site in free], free, errors)
    asked = ", ".join(repr(result.domains.names[site]) for site in free)
    raise ArgumentError(
        f"The joint of {asked} was not recorded; add gs.recorders.Joint([({asked})]) or 'draws' to record=."
    )


def _of_draws(result: Result, columns: list[int], free: list[int], errors: bool) -> Floats:
    shape = tuple(int(result.domains.cards[site]) for site in free)
    codes = np.moveaxis(result.draws[:, :, columns].astype(np.int64), -1, 0)
    configuration = np.ravel_multi_index(tuple(codes), shape)
    if not errors:
        counts = np.bincount(configuration.ravel(), minlength=math.prod(shape))
        share: Floats = counts.reshape(shape) / max(configuration.size, 1)
        return share
    size = np.array([math.prod(shape)], np.int32)
    found, _ = count_states(configuration[:, :, None], size, np.full(1, np.nan))
    return measure_cells(*found, result.errors).error.reshape(shape)


def recorded_pairs(result: Result) -> Ints32:
    """Return the pairs (m, 2) of the recorder PairMoments."""
    first = result._sets.start[result._sets.n_joint : -1]
    pairs: Ints32 = result._sets.member[first[:, None] + np.arange(2)].reshape(-1, 2)
    return pairs


def pair_moments(result: Result) -> Floats:
    """Return the means of the products of the labels of recorded pairs."""
    return _products(result, result.totals.sum(axis=0) / max(result.chains * result.n_draws, 1))


def pair_moments_mcse(result: Result) -> Floats:
    """Return the standard errors of :func:`pair_moments`: a product is a number as any other."""
    totals, trace = _products(result, result.totals), _products(result, result._trace)
    return measure_cells(totals, trace, result.n_draws, result._length, result.errors).error


def _products(result: Result, cells: Array) -> Floats:
    """Turn probabilities of configurations (..., cells) into means of products (..., pairs)."""
    pairs, domains = recorded_pairs(result), result.domains
    start = result._sets.cell[result._sets.n_joint :]
    cards = np.asarray(domains.cards)
    values = label_values(domains)
    kind_of = np.broadcast_to(domains.kind_of, (domains.n_sites,))
    a, b = (values[kind_of[pairs[:, side]]] for side in range(2))
    products = np.zeros((*cells.shape[:-1], len(pairs)))
    for x in range(values.shape[1]):
        for y in range(values.shape[1]):
            has = np.flatnonzero((x < cards[pairs[:, 0]]) & (y < cards[pairs[:, 1]]))
            at = start[has] + x * cards[pairs[has, 1]] + y
            products[..., has] += cells[..., at] * (a[has, x] * b[has, y])
    return products


def label_values(domains: Domains) -> Floats:
    """Return the labels of each kind of site as numbers, or the codes 0, 1, ... of labels that are none.

    Examples
    --------
    >>> import gibbsite as gs
    >>> label_values(gs.FactorGraph({"a": [-1, 1], "b": ["no", "yes"]}).domains).tolist()
    [[-1.0, 1.0], [0.0, 1.0]]
    """
    values = np.zeros((len(domains.kinds), int(domains.cards.max(initial=1))))
    for kind, labels in enumerate(domains.kinds):
        if isinstance(labels, tuple):
            values[kind, : len(labels)] = labels if numeric(labels) else range(len(labels))
    return values


def numeric(labels: tuple[Any, ...]) -> bool:
    """Whether labels are numbers.

    Examples
    --------
    >>> numeric((-1, 1)), numeric(("1", "2"))
    (True, False)
    """
    return all(isinstance(label, int | float) for label in labels)
