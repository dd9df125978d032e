"""Sites without neighbours that herding moves in step, and the error of their joint distribution.

The weight of a site without neighbours advances by its probability p with every visit, modulo 1. The weights of two
such sites that are visited equally often sample the joint distribution of the sites if their probabilities p and q and
the number 1 are rationally independent (theorem 2 of Chen et al., 2016). If a p + b q is a whole number for whole
numbers a and b, then a u + b v is the same modulo 1 for the weights u and v after every sweep. The marginals are right,
but the joint distribution of the sites is not, however long the run is.

*The error.* Let D be the difference between the limit of the share of sweeps in which both sites are in state 1 and
p q; the L1 distance of the joint distribution from the true one is 4 |D|. It depends on the first weights through
c = a u + b v. If there are no other relations, the Fourier series of the intervals of the weights gives

    D = -(2 B(c) - B(c + a p) - B(c - a p)) / (2 a b),   B(t) = t^2 - t + 1/6 for t modulo 1,

whose largest absolute value, at c = 0, is s (1 - s) / |a b| with s = a p modulo 1. For equal probabilities this
is p (1 - p). If p and q are both fractions with small denominators, the weights return after a few sweeps, and
D is a finite sum. With more than two states, two sites are moved by the rule of the run for some thousand sweeps.

Relations with |a| and |b| up to 8 are searched. The weights of two states have a resolution of 2^-32, so a relation
that holds up to rounding takes about 10^9 sweeps to break. Relations among three or more sites are not searched.

References
----------
.. [1] Chen, Y., Bornn, L., de Freitas, N., Eskelin, M., Fang, J. and Welling, M. (2016). Herded Gibbs sampling. JMLR.
.. [2] Bach, F., Lacoste-Julien, S. and Obozinski, G. (2012). On the equivalence between herding and conditional
   gradient algorithms. ICML.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._common.wording import Text, part
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.graph import as_tables
from gibbsite.graphs.kinds.distance import DistanceGraph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.herded.keys import named

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import FactorGraph

_PARTS = 2**32  # probabilities are rounded to multiples of the inverse, the resolution of weights of two states
_ORDER = 8  # largest coefficient of a relation
_ENTRIES = 2_000_000  # largest number of multiples of probabilities that are compared
_LEAST = 0.02  # smaller errors are not reported
_TRIED = 8  # number of pairs whose errors are computed, those with the largest estimates first
_SWEEPS, _STARTS = 4096, 32  # sweeps and first weights of the simulation of two sites


class _Pair(NamedTuple):
    """Two entries of the list of probabilities that are related."""

    first: int
    second: int
    a: int
    b: int
    share: float  # the multiples of their probabilities modulo 1, up to the sign


class _Error(NamedTuple):
    """L1 distances of the joint distribution of two sites from the true one, over all first weights."""

    worst: float
    mean: float


def in_step_warning(
    model: FactorGraph, graph: Graph, rule: str = "argmax", bins: int | None = None
) -> tuple[KernelWarning, ...]:
    """Return a warning that names two sites that move in step, and the error of their joint distribution, if any do.

    With ``bins``, probabilities are rounded at random to multiples of 1 / bins, so that only sites whose probabilities
    are such multiples move in step.
    """
    alone = find_isolated(graph)
    if alone.size < 2:
        return ()
    law = _laws(graph, alone)
    free = np.rint(law[:, 1] * _PARTS) > 0  # a site with one possible state never moves
    if bins is not None:
        free &= (np.abs(law * bins - np.rint(law * bins)) < 1e-9).all(axis=1)
    alone, law = alone[free], law[free]
    pairs, partners = _related(law)
    found: tuple[_Error, _Pair, int, int] | None = None
    width = law.shape[1]
    for pair in pairs:
        i, j = sorted((pair.first // width, pair.second // width), key=lambda k: int(alone[k]))
        error = _error_of(law[i], law[j], pair, rule)
        if error.worst >= _LEAST and (found is None or error.worst > found[0].worst + 1e-9):
            found = error, pair, i, j
    if found is None:
        return ()
    error, pair, i, j = found
    names = [model.domains.names[int(alone[k])] for k in (i, j)]
    return (
        KernelWarning(
            Text(
                f"The sites {names[0]!r} and {names[1]!r} have no neighbours and {_describe(law, pair)}, so herding "
                "moves them in step: their marginals are right, but their joint distribution is wrong even in long "
                f"runs, in each chain by up to {error.worst:.3g} in L1 distance ({error.mean:.3g} on average over "
                f"first weights; {int(partners.sum()):,} sites have such a partner). Use {named(rule='bounded')}, or "
                f"{part('Gibbs')}, where joint probabilities matter."
            ),
            grave=True,
        ),
    )


def _describe(law: Floats, pair: _Pair) -> str:
    """Name a relation in words."""
    if pair.a == pair.b == 1:
        return "equal or complementary probabilities"
    p, q = law.ravel()[[pair.first, pair.second]]
    return (
        f"probabilities {p:.4g} and {q:.4g} of which {pair.a} and {pair.b} times have a whole number as sum or "
        "difference"
    )


def _related(law: Floats) -> tuple[list[_Pair], Bools]:
    """Return the pairs of sites with the largest estimated errors, and which sites have a partner.

    A multiple of a probability is folded to its distance from the nearest whole number. Two sites are related if such
    distances are equal. All of them are sorted, so that equal ones are neighbours in the list.
    """
    sites, width = law.shape
    order = int(np.clip(_ENTRIES // max(law.size, 1), 1, _ORDER))
    units = np.rint(law * _PARTS).astype(np.int64).ravel()
    used = np.arange(0, units.size, width) if width == 2 else np.flatnonzero(units)  # one state of two says all
    entry = np.repeat(used, order)
    times = np.tile(np.arange(1, order + 1), used.size)
    folded = units[entry] * times % _PARTS
    folded = np.minimum(folded, _PARTS - folded)
    moving = folded > order  # the multiple of a single probability is whole: no relation between two
    entry, times, folded = entry[moving], times[moving], folded[moving]
    by_size = np.argsort(folded, kind="stable")
    entry, times, folded = entry[by_size], times[by_size], folded[by_size]
    group = np.cumsum(np.concatenate([[0], np.diff(folded) > order + 1])) if folded.size else folded
    # the smallest multiplier of each site is the strongest relation that it has in a group
    low = np.lexsort((times, entry // width, group))
    low = low[_changes(group[low], entry[low] // width)]
    low = low[np.lexsort((times[low], group[low]))]
    entry, times, share, group = entry[low], times[low], folded[low] / _PARTS, group[low]
    head = np.flatnonzero(_changes(group))
    many = np.diff(np.append(head, group.size))
    first = np.repeat(head, many)
    partner = np.where(np.arange(group.size) == first, first + (np.repeat(many, many) > 1), first)
    size = np.where(np.repeat(many, many) > 1, 4.0 * share * (1.0 - share) / (times * times[partner]), 0.0)
    partners = np.zeros(sites, np.bool_)
    partners[entry[size >= _LEAST] // width] = True
    pairs: dict[frozenset[int], _Pair] = {}
    strong = head[size[head] >= _LEAST]
    for k in strong[np.argsort(-size[strong], kind="stable")].tolist():
        ends = int(entry[k]), int(entry[k + 1])
        pair = _Pair(*ends, int(times[k]), int(times[k + 1]), float(share[k]))
        pairs.setdefault(frozenset(end // width for end in ends), pair)
        if len(pairs) == _TRIED:
            break
    return list(pairs.values()), partners


def _changes(*keys: Ints) -> Bools:
    """Return which rows of sorted keys differ from the row before."""
    new = np.ones(keys[0].size, np.bool_)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return new


def _error_of(p: Floats, q: Floats, pair: _Pair, rule: str) -> _Error:
    """Return the error of the joint distribution of two sites."""
    p, q = p[p * _PARTS >= 0.5], q[q * _PARTS >= 0.5]
    if p.size > 2 or q.size > 2:
        return _simulate(p, q, rule)
    first, second = _denominator(float(p[0])), _denominator(float(q[0]))
    if first and second:
        return _count(round(float(p[0]) * first), first, round(float(q[0]) * second), second)
    return _average(pair)


def _denominator(p: float) -> int:
    """Return the smallest denominator of a fraction that a probability is, if that is small, otherwise 0."""
    times = np.arange(1, _ORDER * _ORDER * 2 + 1)
    whole = np.abs(times * p - np.rint(times * p)) * _PARTS <= 0.5 * times + 0.5
    return int(times[whole.argmax()]) if whole.any() else 0


def _count(i: int, m: int, j: int, n: int) -> _Error:
    """Return the error for the probabilities i / m and j / n: one period of the weights is counted."""
    common = math.gcd(m, n)
    one = (np.arange(m) * i % m < i).reshape(-1, common).mean(axis=0)
    two = (np.arange(n) * j % n < j).reshape(-1, common).mean(axis=0)
    both = np.array([(one * np.roll(two, k)).mean() for k in range(common)])
    errors = 4.0 * np.abs(both - one.mean() * two.mean())
    return _Error(float(errors.max()), float(errors.mean()))


def _average(pair: _Pair) -> _Error:
    """Return the error for one relation: the largest, and the average over the constant of the relation."""
    c = np.linspace(0.0, 1.0, 4097)
    errors = np.abs(2.0 * _bernoulli(c) - _bernoulli(c + pair.share) - _bernoulli(c - pair.share))
    errors *= 2.0 / (pair.a * pair.b)
    return _Error(float(errors.max()), float(errors.mean()))


def _bernoulli(t: Floats) -> Floats:
    """Return the second Bernoulli polynomial of t modulo 1."""
    t = t % 1.0
    return t * t - t + 1.0 / 6.0


def _simulate(p: Floats, q: Floats, rule: str) -> _Error:
    """Return the error of two sites with more states, found by moving them with many first weights."""
    rng = np.random.default_rng(0)
    joint = np.zeros((_STARTS, p.size, q.size))
    rows = np.arange(_STARTS)
    weights = []
    for law in (p, q):
        first = rng.random((_STARTS, law.size))
        weights.append(first - first.mean(axis=1, keepdims=True))
    for _ in range(_SWEEPS):
        chosen = []
        for weight, law in zip(weights, (p, q), strict=True):
            weight += law
            at = _choose(weight, law, rule)
            weight[rows, at] -= 1.0
            chosen.append(at)
        joint[rows, chosen[0], chosen[1]] += 1.0 / _SWEEPS
    errors = np.abs(joint - np.outer(p, q)).sum(axis=(1, 2))
    return _Error(float(errors.max()), float(errors.mean()))


def _choose(weight: Floats, law: Floats, rule: str) -> Ints:
    """Return the states that a rule chooses, one for each row of weights."""
    if rule != "tijdeman":
        return np.asarray(weight.argmax(axis=1))
    slack = 1.0 / (2.0 * law.size - 2.0)
    due = np.where(weight >= slack, (1.0 - slack - weight) / law, np.inf)
    chosen: Ints = np.where(np.isfinite(due).any(axis=1), due.argmin(axis=1), weight.argmax(axis=1))
    return chosen


def find_isolated(graph: Graph) -> Ints:
    """Return the sites that share a factor with no other."""
    arrays = graph.arrays
    if isinstance(arrays, LatticeGraph | DistanceGraph):
        return np.arange(graph.n_sites if graph.n_sites < 2 else 0)
    if isinstance(arrays, TableGraph):
        width = row_lengths(arrays.member_start)
        alone = np.ones(graph.n_sites, np.bool_)
        alone[arrays.member[np.repeat(width > 1, width)]] = False
        return np.flatnonzero(alone)
    return np.flatnonzero(row_lengths(markov_graph(graph)[0]) == 0)


def _laws(graph: Graph, alone: Ints) -> Floats:
    """Return the probabilities of sites without neighbours in descending order, because state names do not matter."""
    arrays = graph.arrays
    if not isinstance(arrays, IsingGraph | LatticeGraph) and not hasattr(arrays, "log_unary"):
        arrays = as_tables(graph).arrays
    if isinstance(arrays, IsingGraph | LatticeGraph):
        logs = np.stack([np.zeros(alone.size), -np.abs(arrays.field[alone])], axis=1)
    else:
        cards = graph.cards[alone]
        state = np.arange(max(int(cards.max()), 2))
        has = state < cards[:, None]
        at = np.where(has, arrays.offset[alone][:, None] + state, 0)
        logs = -np.sort(-np.where(has, arrays.log_unary[at], -np.inf), axis=1)
    weights: Floats = np.exp(logs - logs[:, :1])
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
