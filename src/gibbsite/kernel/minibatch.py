"""Factors of a site drawn at random: what all minibatch kernels share.

A factor phi of two sites is shifted to minimum zero; M is its maximum then, and phi / M, between 0 and 1, its
*share*. L_i is the sum of M over the factors of site i, L the largest of them, Psi the sum over all factors
(each once), Delta the largest number of factors of a site. Factors of single sites are not shifted, drawn or
counted: they are cheap and always taken in full, so they may have zeros.

Kernels see factors through *rows*, a named tuple with one alias table per site, and a few functions:

* :func:`draw_factor`: one of a site, with probability M / L_i; or none, where L_i is but a bound;
* :func:`share_of`: its share at two states;
* :func:`add_gain`: add what it is worth to the log-weights of all states of a site, given that of the
  neighbour: ``log(1 + share / tau)`` or ``share / tau``, as :func:`gains` was asked for;
* :func:`factor_at` and :func:`add_factor`: a factor by its number, and its own log-potentials.

Here tau = lambda / L: a factor is drawn ``tau * M`` times on average in a minibatch that ignores the state.
Pairs that ask whether their states agree (Potts and binary models) add a constant to one state, and so the
whole minibatch is a histogram.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, generic, implement
from gibbsite._random import Words, below, uniform
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.graph.decay import Decay
from gibbsite.graph.kinds import PairwiseGraph, PottsGraph
from gibbsite.graph.lower import Graph
from gibbsite.graph.tree import build_tree, list_nodes
from gibbsite.kernel._local import coupling_at
from gibbsite.scan.alias import build_alias_rows, draw_column

Floats = NDArray[np.float64]
Index = NDArray[np.uint32]
Longs = NDArray[np.int64]
State = NDArray[np.signedinteger[Any]]

_ONE = np.uintp(1)
#: Graph kinds whose factors can be drawn.
DRAWN_KINDS = frozenset({"ising", "potts", "kernel", "pairwise"})


class AgreementRows(NamedTuple):
    """Pairs with a weight for equal states: positive ones reward them, negative ones all others.

    ``table`` are the alias tables of the rows, empty if all weights are equal; ``local`` is L_i. Where all
    weights have one sign, ``sign`` is that; otherwise it is 0 and ``weight[step * k]`` tells. ``complete``:
    every row lists all other sites in order, so that a column tells the neighbour.
    """

    start: Index
    neighbour: Index
    table: NDArray[np.uint64]
    sign: float
    weight: Floats
    step: int
    complete: bool
    local: Floats
    offset: Longs
    log_unary: Floats


class TableRows(NamedTuple):
    """Pairs with tables: ``share[place[k] + b * card[i] + a]`` is that of slot k at states a of i, b of j."""

    start: Index
    neighbour: Index
    table: NDArray[np.uint64]
    place: Longs
    card: NDArray[np.int32]
    bound: Floats
    share: Floats
    local: Floats
    offset: Longs
    log_unary: Floats


class KernelRows(NamedTuple):
    """Agreements of all pairs whose weights are a function of positions, drawn without a table of pairs.

    A site draws a node of a tree over the positions (:mod:`gibbsite.graph.tree`) by a bound of the weights in
    it, then one of its points, which stays with probability weight / bound: thinning, so that the law of what
    stays is exact. ``rate`` is the sum of these bounds, ``local`` a closer bound of the sum of weights L_i.
    """

    start: Longs
    node: Index
    table: NDArray[np.uint64]
    bound: Floats
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    order: NDArray[np.int32]
    positions: Floats
    decay: Decay
    beta: float
    local: Floats
    rate: Floats
    offset: Longs
    log_unary: Floats


Rows = AgreementRows | TableRows | KernelRows


@dataclass(frozen=True)
class Energies:
    """The constants that minibatch sizes are made of.

    Attributes
    ----------
    local : float array (sites,)
        L_i, the sum of the bounds M of the factors of site i.
    largest : float
        L, the largest of them.
    total : float
        Psi, the sum of the bounds of all factors.
    degree : int
        Delta, the largest number of factors of a site.
    """

    local: Floats
    largest: float
    total: float
    degree: int


def local_energies(graph: Graph) -> Energies:
    """Compute L_i, L, Psi and Delta of a graph of pairs, or of functions.

    Examples
    --------
    >>> import gibbsite as gs
    >>> weights = 0.5 * (np.ones((4, 4)) - np.eye(4))
    >>> seen = local_energies(gs.compile_graph(gs.potts(weights, 3)))
    >>> seen.largest, seen.total, seen.degree
    (1.5, 3.0, 3)
    """
    rows = drawn_rows(graph)
    # a pair is counted by both of its sites; factors of other numbers of sites bring their sum along
    total = float(getattr(rows, "total", rows.local.sum() / 2.0))
    largest = float(rows.local.max(initial=0.0))
    return Energies(rows.local, largest, total, int(degrees(rows).max(initial=0)))


def check_drawn(graph: Graph, name: str) -> None:
    """Refuse a graph whose factors have no bounds."""
    if isinstance(graph.arrays, PairwiseGraph) and not np.isfinite(graph.arrays.log_value).all():
        raise IncompatibleError(
            f"{name} needs bounded energies, but some factor of two sites has a zero, an infinite energy; "
            "use gs.Gibbs(), or replace zeros by small numbers."
        )


def drawn_rows(graph: Graph) -> Any:
    """Return the rows of a graph; those of the last one asked for are kept with it."""
    key = "rows of minibatches"
    kept = graph.structure.get(key)
    if kept is None or kept[0] != graph.digest:
        kept = graph.structure[key] = graph.digest, sealed(BUILDERS[graph.kind](graph))
    return kept[1]


def sealed(rows: Any) -> Any:
    """Make all arrays of rows read-only, so that compiled code is of one type."""
    for part in rows:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
    return rows


def _agreements(graph: Graph) -> AgreementRows:
    arrays: Any = graph.arrays
    if isinstance(arrays, PottsGraph):
        weight, step = arrays.coupling, arrays.step
        log_unary, offset = arrays.log_unary, arrays.offset
    else:
        # w x y = (w / 2) ([x = y] + x + y - 1) for x, y in {0, 1}: half the bound of w x y itself
        weight, step = 0.5 * arrays.coupling, 1
        offset = 2 * np.arange(graph.n_sites + 1, dtype=np.int64)
        log_unary = np.zeros(2 * graph.n_sites)
        log_unary[1::2] = arrays.field + row_sums(arrays.start, weight, 1)
    bound = np.abs(weight)
    signs = np.sign(weight)
    low, high = float(signs.min(initial=1.0)), float(signs.max(initial=-1.0))
    return AgreementRows(
        start=arrays.start,
        neighbour=arrays.neighbour,
        table=build_alias_rows(arrays.start, bound) if step else np.zeros(0, np.uint64),
        sign=1.0 if low >= 0.0 else -1.0 if high <= 0.0 else 0.0,
        weight=weight,
        step=step,
        complete=_lists_all(arrays.start, arrays.neighbour),
        local=row_sums(arrays.start, bound, step),
        offset=offset,
        log_unary=log_unary,
    )


def _lists_all(start: Index, neighbour: Index) -> bool:
    """Tell whether every row has all other sites in ascending order."""
    n = start.size - 1
    if neighbour.size != n * (n - 1) or not (np.diff(start.astype(np.int64)) == n - 1).all():
        return False
    others = np.arange(n - 1)
    return all(
        np.array_equal(neighbour[i * (n - 1) : (i + 1) * (n - 1)], others + (others >= i)) for i in range(n)
    )


def _tables(graph: Graph) -> TableRows:
    arrays: Any = graph.arrays
    degree = np.diff(arrays.start.astype(np.int64))
    site = np.repeat(np.arange(graph.n_sites), degree)
    size = arrays.card[site].astype(np.int64) * arrays.card[arrays.neighbour]
    share = np.zeros(arrays.log_value.size)
    bound = np.zeros(site.size)
    places, first, which = np.unique(arrays.table, return_index=True, return_inverse=True)
    each = np.zeros(places.size)
    for number, (place, length) in enumerate(zip(places.tolist(), size[first].tolist(), strict=True)):
        values = arrays.log_value[place : place + length]
        low = values.min()
        each[number] = values.max() - low
        if each[number] > 0.0:
            share[place : place + length] = (values - low) / each[number]
    bound = each[which]
    return TableRows(
        start=arrays.start,
        neighbour=arrays.neighbour,
        table=build_alias_rows(arrays.start, bound),
        place=arrays.table,
        card=arrays.card,
        bound=bound,
        share=share,
        local=row_sums(arrays.start, bound, 1),
        offset=arrays.offset,
        log_unary=arrays.log_unary,
    )


def _kernels(graph: Graph) -> KernelRows:
    arrays: Any = graph.arrays
    tree = build_tree(arrays.positions)
    nodes = list_nodes(tree, arrays.positions, arrays.decay)
    size = (tree.last - tree.first)[nodes.node]
    weight, strength = size * nodes.bound, abs(arrays.beta)
    return KernelRows(
        start=nodes.start,
        node=nodes.node,
        table=build_alias_rows(nodes.start, weight),
        bound=nodes.bound,
        first=tree.first,
        last=tree.last,
        order=tree.order,
        positions=arrays.positions,
        decay=arrays.decay,
        beta=arrays.beta,
        local=strength * nodes.sums,
        rate=strength * row_sums(nodes.start, weight, 1),
        offset=arrays.offset,
        log_unary=arrays.log_unary,
    )


#: How the rows of a kind of graph are made.
BUILDERS: dict[str, Any] = {
    "ising": _agreements,
    "potts": _agreements,
    "kernel": _kernels,
    "pairwise": _tables,
}


def row_sums(start: NDArray[Any], values: Floats, step: int) -> Floats:
    """Return the sums over compressed rows."""
    ends = start.astype(np.int64)
    if not step:
        return np.diff(ends) * float(values[0] if values.size else 0.0)
    # sums of pieces, not differences of running sums, which would cancel; empty rows are left out
    sums, full = np.zeros(ends.size - 1), np.flatnonzero(np.diff(ends))
    if full.size:
        sums[full] = np.add.reduceat(values, ends[full])
    return sums


def degrees(rows: Any) -> Longs:
    """Return the number of factors of each site."""
    if isinstance(rows, KernelRows):
        return np.full(rows.local.size, max(rows.local.size - 1, 0))
    if hasattr(rows, "degree"):  # sites share rows, whose alias tables may be left out
        found: Longs = rows.degree
        return found
    many: Longs = np.diff(rows.start.astype(np.int64))
    return many


def draw_rates(rows: Rows) -> Floats:
    """Return how often a site draws per unit of tau: L_i, or more where some draws come to nothing."""
    return rows.rate if isinstance(rows, KernelRows) else rows.local


def gains(rows: Rows, tau: float, log: bool) -> Floats:
    """Return what a factor of share 1, or each entry of its table, adds to the log-weight of a state."""
    share = rows.share if isinstance(rows, TableRows) else np.ones(1)
    found: Floats = np.log1p(share / tau) if log else share / tau
    return found


def read_batch(name: str, given: Any, automatic: float) -> float:
    """Return a mean minibatch size lambda: a number, or that of ``"auto"``."""
    if isinstance(given, str) and given == "auto":
        return automatic
    if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 < given < math.inf:
        raise ModelError(f"{name} must be a positive number or 'auto', got {given!r}.")
    return float(given)


def batch_rate(size: float, energy: float) -> float:
    """Return tau, the mean number of draws per unit of energy; any will do where there is no energy."""
    return size / energy if energy > 0.0 else 1.0


def guarantee(size: float, largest: float) -> str:
    """Say what theorem 1 of Zhang and De Sa (2019) tells of Poisson minibatches."""
    sizes = f"lambda = {size:.4g} and L = {largest:.4g}"
    if size < 2.0 * largest:
        return (
            f"With {sizes} no spectral gap is guaranteed, because lambda is below 2 L; the target is exact "
            "all the same."
        )
    factor = math.exp(-4.0 * largest**2 / size) if size > 0.0 else 1.0
    return (
        f"With {sizes} the spectral gap of random scans is at least exp(-4 L^2 / lambda) = {factor:.3g} "
        "times that of plain Gibbs."
    )


@generic
def draw_factor(rows: Any, i: Integer, rng: Words) -> tuple[Words, Integer, Integer]:
    """Draw a factor of site i; return its slot and the neighbour, i itself if none was drawn."""
    raise NotImplementedError


@generic
def share_of(rows: Any, k: Integer, i: Integer, a: Integer, b: Integer) -> float:
    """Return phi / M of slot k of site i, which is in state a, its neighbour in state b."""
    raise NotImplementedError


@generic
def add_gain(rows: Any, gain: Floats, k: Integer, i: Integer, b: Integer, w: Floats) -> None:
    """Add the gains of slot k of site i to the log-weights of its states, up to a common constant."""
    raise NotImplementedError


@generic
def factor_at(rows: Any, i: Integer, number: Integer) -> tuple[Integer, Integer]:
    """Return slot and neighbour of the factor of site i with this number, from 0 on."""
    raise NotImplementedError


@generic
def add_factor(rows: Any, k: Integer, i: Integer, b: Integer, scale: float, w: Floats) -> None:
    """Add a multiple of slot k of site i to the log-weights of its states, up to a common constant."""
    raise NotImplementedError


@implement(draw_factor, AgreementRows)
def _draw_agreement(rows: AgreementRows, i: Integer, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    many = np.uintp(rows.start[i + _ONE]) - first
    if rows.table.size > 0:
        rng, column = draw_column(rows.table, first, many, rng)
    else:
        rng, drawn = below(rng, many)
        column = np.uintp(drawn)
    k = first + column
    return rng, k, column + np.uintp(column >= i) if rows.complete else np.uintp(rows.neighbour[k])


@implement(draw_factor)
def _draw_from_row(rows: Any, i: Integer, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    rng, column = draw_column(rows.table, first, np.uintp(rows.start[i + _ONE]) - first, rng)
    k = first + column
    return rng, k, np.uintp(rows.neighbour[k])


@implement(draw_factor, KernelRows)
def _draw_kernel(rows: KernelRows, i: Integer, rng: Words) -> tuple[Words, Integer, Integer]:
    first = np.uintp(rows.start[i])
    rng, column = draw_column(rows.table, first, np.uintp(rows.start[i + _ONE]) - first, rng)
    k = first + column
    node = np.uintp(rows.node[k])
    begin = np.uintp(rows.first[node])
    many = np.uintp(rows.last[node]) - begin
    j = np.uintp(rows.order[begin])
    if many > _ONE:
        rng, which = below(rng, many)
        j = np.uintp(rows.order[begin + np.uintp(which)])
        rng, u = uniform(rng)
        if u * rows.bound[k] >= coupling_at(rows.positions, rows.decay, i, j):
            j = np.uintp(i)
    return rng, k, j


@implement(factor_at, KernelRows)
def _at_kernel(rows: KernelRows, i: Integer, number: Integer) -> tuple[Integer, Integer]:
    j = np.uintp(number) + np.uintp(np.uintp(number) >= i)
    return j, j


@implement(share_of, KernelRows)
def _share_kernel(rows: KernelRows, k: Integer, i: Integer, a: Integer, b: Integer) -> float:
    return 1.0 if (a == b) == (rows.beta > 0.0) else 0.0


@implement(add_gain, KernelRows)
def _add_kernel(rows: KernelRows, gain: Floats, k: Integer, i: Integer, b: Integer, w: Floats) -> None:
    w[np.uintp(b)] += gain[0] if rows.beta > 0.0 else -gain[0]


@implement(add_factor, KernelRows)
def _add_coupling(rows: KernelRows, k: Integer, i: Integer, b: Integer, scale: float, w: Floats) -> None:
    w[np.uintp(b)] += scale * rows.beta * coupling_at(rows.positions, rows.decay, i, k)


@implement(factor_at)
def _at_row(rows: Any, i: Integer, number: Integer) -> tuple[Integer, Integer]:
    k = np.uintp(rows.start[i]) + np.uintp(number)
    return k, np.uintp(rows.neighbour[k])


@implement(share_of, AgreementRows)
def _share_agreement(rows: AgreementRows, k: Integer, i: Integer, a: Integer, b: Integer) -> float:
    sign = rows.sign
    if sign == 0.0:
        sign = rows.weight[np.uintp(rows.step) * k]
    return 1.0 if (a == b) == (sign > 0.0) else 0.0


@implement(add_gain, AgreementRows)
def _add_agreement(rows: AgreementRows, gain: Floats, k: Integer, i: Integer, b: Integer, w: Floats) -> None:
    sign = rows.sign
    if sign == 0.0:
        sign = rows.weight[np.uintp(rows.step) * k]
    # a penalty rewards every state but b: the same as a loss of b
    w[np.uintp(b)] += gain[0] if sign > 0.0 else -gain[0]


@implement(share_of, TableRows)
def _share_table(rows: TableRows, k: Integer, i: Integer, a: Integer, b: Integer) -> float:
    at = np.uintp(rows.place[k]) + np.uintp(b) * np.uintp(rows.card[i]) + np.uintp(a)
    return rows.share[at]  # type: ignore[no-any-return]


@implement(add_gain, TableRows)
def _add_table(rows: TableRows, gain: Floats, k: Integer, i: Integer, b: Integer, w: Floats) -> None:
    size = np.uintp(rows.card[i])
    at = np.uintp(rows.place[k]) + np.uintp(b) * size
    for a in range(size):
        w[a] += gain[at + a]


@implement(add_factor, AgreementRows)
def _add_weight(rows: AgreementRows, k: Integer, i: Integer, b: Integer, scale: float, w: Floats) -> None:
    w[np.uintp(b)] += scale * rows.weight[np.uintp(rows.step) * k]


@implement(add_factor, TableRows)
def _add_values(rows: TableRows, k: Integer, i: Integer, b: Integer, scale: float, w: Floats) -> None:
    size = np.uintp(rows.card[i])
    at = np.uintp(rows.place[k]) + np.uintp(b) * size
    for a in range(size):
        w[a] += scale * rows.bound[k] * rows.share[at + a]
