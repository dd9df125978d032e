"""Models whose pairs all favour agreement, possibly after the states of each site are relabelled.

The weight of such a model is

    prod_i w_i(x_i)  prod_(i,j) exp(strength_ij [label_i(x_i) == label_j(x_j)]),    strength_ij > 0,

where ``label_i`` is a permutation of the states of site i. Ferromagnetic Ising and Potts models have this
form with identical labels. Two-state models have it if no cycle of their pairs is frustrated, which is tested by
traversing a spanning tree (the gauge transformation of Mattis). Factors of single sites may be arbitrary.
"""

from __future__ import annotations

import math
from typing import NamedTuple, NoReturn

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints16, Ints32
from gibbsite._common.cache import Recent
from gibbsite._common.wording import part
from gibbsite._numba.jit import Integer, compiled, interpreted
from gibbsite.errors import IncompatibleError, TooLargeError
from gibbsite.graphs.graph import Graph, seal
from gibbsite.graphs.kinds.base import Cells, groups_of
from gibbsite.graphs.rows import Rows, build_rows
from gibbsite.kernels.registry import default_kernel
from gibbsite.models.distance import DistanceFactors
from gibbsite.models.factor import FactorGroup
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.lattice import LatticeFactors
from gibbsite.models.weighted import AgreementFactors, SpinFactors

# A table counts as an agreement if it differs from one by at most this fraction of its largest entry.
_ROUNDING = 1e-12
# Largest number of sites of a frustrated cycle that a message names.
_MOST_NAMED = 8
_IDENTITY, _SWAP = 0, 1


class Agreements(NamedTuple):
    """Pairs that favour agreement, and weights of single sites, in labels that all sites share."""

    pair: Ints32  # (pairs, 2): sites, the smaller one first; every pair once
    # (pairs,): the positive contribution of agreement to the log-potential; infinite if the pair has to agree
    strength: Floats
    offset: Ints  # (sites + 1,): where the cells of a site begin
    # label, state: (cells,): the label of each state of a site, and the state of each label
    label: Ints16
    state: Ints16
    field: Floats  # (cells,): log-weights of the labels of each site; empty where all are equal
    plain: bool  # labels are states


class _Pairs(NamedTuple):
    """Agreement of ``permutations[k][x_i]`` with ``x_j`` for pairs (i, j) of kind k."""

    pair: Ints32
    strength: Floats
    kind: Ints32
    permutations: Ints16


_FOUND = Recent[Agreements | str]()


def find_agreements(graph: Graph, name: str) -> Agreements:
    """Return a model as agreements of pairs; refuse other models with a message that names the kernel.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = find_agreements(gs.graphs.compile_graph(gs.ising_grid((1, 3), coupling=-0.5)), "Wolff")
    >>> found.pair.tolist(), found.strength.tolist(), found.label.tolist()
    ([[0, 1], [1, 2]], [1.0, 1.0], [0, 1, 1, 0, 0, 1])
    """
    found = _FOUND.find(graph.digest, lambda: _find_or_say_why(graph))
    if isinstance(found, str):
        raise IncompatibleError(
            f"{part(name, name)} joins sites that agree, and {found}; use {part(type(default_kernel(graph)).__name__)}."
        )
    return found


class _NoAgreementError(Exception):
    """The reason why a model is not a product of agreements."""


def _find_or_say_why(graph: Graph) -> Agreements | str:
    try:
        return _find(graph)
    except (_NoAgreementError, TooLargeError) as reason:
        return str(reason)


def _find(graph: Graph) -> Agreements:
    """Find agreements, relabel states so that all pairs agree, and collect the weights of single sites."""
    model = graph.require_model()
    cells = Cells.collect(model)
    pairs = _merge(_collect(model, cells), model)
    rows = build_rows(pairs.pair, model.n_sites)
    label = np.full(int(cells.offset[-1]), -1, np.int16)
    via = np.full(model.n_sites, -1, np.int64)
    with interpreted(4.0 * (model.n_sites + 2 * pairs.strength.size)):
        broken = _relabel(rows, pairs, cells.offset, label, via)
    if broken >= 0:
        _refuse_cycle(model, pairs, via, int(broken))
    if model.n_sites:  # subtract the largest log-weight of each site, to which tables of pairs have added
        cells.log_unary -= np.repeat(np.maximum.reduceat(cells.log_unary, cells.offset[:-1]), model.cards)
    field = np.zeros(label.size)
    site = np.repeat(np.arange(model.n_sites), model.cards)
    place = cells.offset[site] + label
    field[place] = cells.log_unary
    state = np.zeros(label.size, np.int16)
    codes = (np.arange(label.size) - cells.offset[site]).astype(np.int16)
    state[place] = codes
    plain = bool(np.array_equal(label, codes))
    if not field.any():
        field = np.zeros(0)
    return seal(Agreements(pairs.pair, pairs.strength, cells.offset, label, state, field, plain))


def _collect(model: FactorGraph, cells: Cells) -> _Pairs:
    """Return the agreements in factors of pairs; add the parts that depend on one site to the weights of the sites."""
    scopes: list[Array] = []
    strengths: list[Floats] = []
    kinds: list[Ints32] = []
    most = int(model.cards.max(initial=2))
    known: dict[tuple[int, ...], int] = {}
    permutations = [np.arange(most), np.r_[1, 0, np.arange(2, most)]]
    for group in groups_of(model):
        if group.arity > 2:
            names = ", ".join(repr(model.sites[int(i)]) for i in group.scopes[0])
            raise _NoAgreementError(f"the factor of {names} has {group.arity} sites")
        if group.arity < 2:
            continue
        signed = _signed_strengths(group)
        if signed is None:
            signed, kind = _read_tables(model, group, cells, known, permutations)
        else:
            kind = np.zeros(group.size, np.int32)
        scopes.append(group.scopes)
        strengths.append(np.broadcast_to(signed, group.size))
        kinds.append(np.broadcast_to(kind, group.size))
    if not scopes:
        none = np.zeros(0, np.int32)
        return _Pairs(np.zeros((0, 2), np.int32), np.zeros(0), none, np.array(permutations, np.int16))
    return _Pairs(
        np.concatenate(scopes).astype(np.int32),
        np.concatenate(strengths),
        np.concatenate(kinds),
        np.array(permutations, np.int16),
    )


def _signed_strengths(group: FactorGroup) -> Floats | None:
    """Return what agreement adds to the log-potential, or None for factors that are not agreements by their class."""
    if isinstance(group, SpinFactors):
        return 2.0 * group.weights
    if isinstance(group, AgreementFactors):
        return group.weights
    if isinstance(group, LatticeFactors):
        return (2.0 if group.spin else 1.0) * group.edge_weights()
    if isinstance(group, DistanceFactors):
        return group.edge_weights()
    return None


def _read_tables(
    model: FactorGraph, group: FactorGroup, cells: Cells, known: dict[tuple[int, ...], int], permutations: list[Array]
) -> tuple[Floats, Ints32]:
    """Split tables into agreements up to a permutation, and weights of the two sites."""
    tables = np.asarray(group.log_tables(model.cards), float)
    first, second = np.zeros(tables.shape[:2]), np.zeros((len(tables), tables.shape[2]))
    strength, kind = np.zeros(len(tables)), np.zeros(len(tables), np.int32)
    two = tables.shape[1:] == (2, 2) and bool(np.isfinite(tables).all())
    if two:  # such tables are always agreements or disagreements; all at once, because there may be many
        first, second = tables.mean(axis=2), tables.mean(axis=1)
        strength = 0.5 * (tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0])
    for k, table in enumerate([] if two else tables):
        found = _split_table(table)
        if found is None:
            i, j = (repr(model.sites[int(site)]) for site in group.scopes[k])
            raise _NoAgreementError(f"the factor of {i} and {j} depends on more than whether their states agree")
        strength[k], permutation, first[k], second[k] = found
        if permutation is not None:
            if permutation not in known:
                known[permutation] = len(permutations)
                row = np.arange(permutations[0].size)
                row[: len(permutation)] = permutation
                permutations.append(row)
            kind[k] = known[permutation]
    for side, weights in enumerate((first, second)):
        at = cells.offset[group.scopes[:, side]][:, None] + np.arange(tables.shape[1 + side])
        np.add.at(cells.log_unary, at.ravel(), np.broadcast_to(weights, at.shape).ravel())
    return strength, kind


def _split_table(table: Floats) -> tuple[float, tuple[int, ...] | None, Floats, Floats] | None:
    """Return the signed strength, the permutation (None for the identity) and the weights of both sites.

    With two states, a negative strength is a disagreement, which relabelling can turn into an agreement. With more
    states, disagreements cannot be relabelled, but permutations other than the identity can.
    """
    rows, columns = table.shape
    if not np.isfinite(table).all():
        return _split_hard(table)
    first, second = table.mean(axis=1), table.mean(axis=0) - table.mean()
    rest = table - first[:, None] - second
    small = _ROUNDING * max(1.0, float(np.abs(table).max(initial=0.0)))
    if np.abs(rest).max(initial=0.0) <= small:
        return 0.0, None, first, second
    if rows != columns:
        return None
    part_of_all = 1.0 - 1.0 / rows
    for permutation in (np.arange(rows), rest.argmax(axis=1)):
        if np.unique(permutation).size < rows:
            continue
        strength = float(rest[np.arange(rows), permutation].mean()) / part_of_all
        asked = np.full(table.shape, -strength / rows)
        asked[np.arange(rows), permutation] += strength
        if np.abs(rest - asked).max() <= small:
            same = bool((permutation == np.arange(rows)).all())
            return strength, None if same else tuple(permutation.tolist()), first, second
    return None


def _split_hard(table: Floats) -> tuple[float, tuple[int, ...] | None, Floats, Floats] | None:
    """Split a table with zeros in the same way, which is possible only if each state has one partner."""
    possible = ~np.isneginf(table)
    rows, columns = table.shape
    if rows != columns or (possible.sum(axis=0) != 1).any() or (possible.sum(axis=1) != 1).any():
        return None
    partner = possible.argmax(axis=1)
    weights = table[np.arange(rows), partner]
    if (partner == np.arange(rows)).all():
        return math.inf, None, weights, np.zeros(rows)
    if rows == 2:
        return -math.inf, None, weights, np.zeros(rows)
    return math.inf, tuple(partner.tolist()), weights, np.zeros(rows)


def _merge(pairs: _Pairs, model: FactorGraph) -> _Pairs:
    """Add up factors of the same two sites, drop those that cancel, and make all strengths positive."""
    swapped = pairs.pair[:, 0] > pairs.pair[:, 1]
    pair = np.sort(pairs.pair, axis=1)
    kind, permutations = pairs.kind.copy(), [*pairs.permutations]
    for k in np.unique(kind[swapped & (kind > _SWAP)]).tolist():
        kind[swapped & (kind == k)] = len(permutations)
        permutations.append(np.argsort(permutations[k]).astype(np.int16))
    key = (pair[:, 0].astype(np.int64) * model.n_sites + pair[:, 1]) * len(permutations) + kind
    each, where = np.unique(key, return_inverse=True)
    with np.errstate(invalid="ignore"):
        strength = np.bincount(where, pairs.strength, each.size) if each.size else np.zeros(0)
    each, kind = np.divmod(each, len(permutations))
    merged = np.stack(np.divmod(each, max(model.n_sites, 1)), axis=1).astype(np.int32)
    negative = strength < 0
    for bad, what in (
        (negative & (model.cards[merged[:, 0]] > 2), "of more than two states each, are to disagree"),
        (np.isnan(strength), "have to agree and to disagree"),
    ):
        if bad.any():
            i, j = (repr(model.sites[int(site)]) for site in merged[int(bad.argmax())])
            raise _NoAgreementError(f"{i} and {j}{',' if 'more' in what else ''} {what}")
    kind = np.where(negative, _SWAP, kind)
    keep = strength != 0
    return _Pairs(merged[keep], np.abs(strength[keep]), kind[keep].astype(np.int32), np.array(permutations, np.int16))


@compiled
def _relabel(rows: Rows, pairs: _Pairs, offset: Ints, label: Ints16, via: Ints) -> Integer:
    """Label the states of all sites so that every pair agrees in labels; return a pair that does not, or -1.

    Sites are reached from the first of their component, breadth first, each by the pair ``via``.
    """
    n = via.size
    queue = np.empty(n, np.int64)
    for root in range(n):
        if offset[root] < offset[root + 1] and label[offset[root]] >= 0:
            continue
        for a in range(offset[root + 1] - offset[root]):
            label[offset[root] + a] = a
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(rows.start[i], rows.start[i + 1]):
                j, e = np.int64(rows.neighbour[k]), np.int64(rows.source[k])
                permutation = pairs.permutations[pairs.kind[e]]
                new = label[offset[j]] < 0
                for a in range(offset[i + 1] - offset[i]):
                    # state a of the first site of the pair, and its partner at the second site
                    b = np.int64(permutation[a])
                    mine, other = (a, b) if rows.side[k] == 0 else (b, a)
                    if new:
                        label[offset[j] + other] = label[offset[i] + mine]
                    elif label[offset[j] + other] != label[offset[i] + mine]:
                        return e
                if new:
                    via[j] = e
                    queue[tail] = j
                    tail += 1
    return -1


def _refuse_cycle(model: FactorGraph, pairs: _Pairs, via: Ints, broken: int) -> NoReturn:
    """Name a frustrated cycle: the pair, and the paths of the tree that join its sites."""

    def way(site: int) -> list[int]:
        found = [site]
        while via[found[-1]] >= 0:
            i, j = pairs.pair[int(via[found[-1]])].tolist()
            found.append(j if i == found[-1] else i)
        return found

    one, other = (way(int(site)) for site in pairs.pair[broken])
    while len(one) > 1 and len(other) > 1 and one[-2] == other[-2]:
        one.pop()
        other.pop()
    cycle = [repr(model.sites[i]) for i in [*one, *reversed(other[:-1])]]
    if len(cycle) > _MOST_NAMED:
        cycle = [*cycle[: _MOST_NAMED // 2], f"{len(cycle) - _MOST_NAMED} more", *cycle[-_MOST_NAMED // 2 :]]
    raise _NoAgreementError(
        f"no relabelling of states makes all couplings around the cycle {', '.join(cycle)} positive: it is frustrated"
    )
