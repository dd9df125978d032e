"""Arrays of factor graphs, one builder for each kind, from the most to the least special.

A lattice without stored indices, binary pairwise rows, agreements of pairs, couplings computed from
positions, pairwise tables, general tables. A builder returns arrays and the constant that they leave out of
log-potentials, or None if the model is not of its kind. Whatever does not depend on weights (row pointers,
neighbours) is kept in ``model.structure``, which reweighted copies of a model share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import SupportError
from gibbsite.graph.decay import make_decay
from gibbsite.graph.kinds import (
    IsingGraph,
    KernelGraph,
    LatticeGraph,
    PairwiseGraph,
    PottsGraph,
    TableGraph,
)
from gibbsite.graph.rows import Rows, build_rows

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph, FactorGroup
    from gibbsite.model.lattice import LatticeFactors


def _groups(model: FactorGraph) -> list[FactorGroup]:
    """Return the groups that have any factor; folding evidence may leave empty ones."""
    return [group for group in model.groups if group.size]


def _all_binary(model: FactorGraph) -> bool:
    return bool((model.cards == 2).all())


def _build_lattice(model: FactorGraph) -> tuple[LatticeGraph, float] | None:
    from gibbsite.model.lattice import FieldFactors, LatticeFactors

    lattices = [g for g in model.groups if isinstance(g, LatticeFactors)]
    fields = [g for g in model.groups if isinstance(g, FieldFactors)]
    if len(lattices) != 1 or len(fields) > 1 or len(lattices) + len(fields) != len(model.groups):
        return None
    lattice = lattices[0]
    if not lattice.spin or len(lattice.shape) > 3 or not _all_binary(model):
        return None
    shape, wrap, axes = three_axes(lattice)
    bias = np.ascontiguousarray(fields[0].weights).ravel() if fields else np.zeros(1)
    steps = [int(a.size > 1) for a in (*axes, bias)]
    parts: tuple[Any, ...] = (*shape, *wrap, *steps, *axes, bias)
    return LatticeGraph(*parts), 0.0


Triple = tuple[int, int, int]


def three_axes(lattice: LatticeFactors) -> tuple[Triple, Triple, list[NDArray[np.float64]]]:
    """Return sizes, periodic or not, and couplings of a lattice as one of three axes, the first ones short.

    Examples
    --------
    >>> from gibbsite.model import LatticeFactors
    >>> shape, wraps, couplings = three_axes(LatticeFactors((4,), (True,), 0.5))
    >>> shape, wraps, [w.tolist() for w in couplings]
    ((1, 1, 4), (0, 0, 1), [[0.0], [0.0], [0.5]])
    """
    spare = 3 - len(lattice.shape)
    shape = (1,) * spare + tuple(int(size) for size in lattice.shape)
    wraps = (0,) * spare + tuple(int(flag) for flag in lattice.periodic)
    couplings = [np.zeros(1)] * spare + [np.ascontiguousarray(w).ravel() for w in lattice.weights]
    return cast("Triple", shape), cast("Triple", wraps), couplings


@dataclass
class _BinaryForm:
    """Fields, pair weights and a constant: log-potentials of binary factors as polynomials in x."""

    n: int
    constant: float = 0.0
    fields: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.fields = np.zeros(self.n)

    def add(self, sites: NDArray[np.integer[Any]], values: NDArray[np.float64]) -> None:
        if values.size == 1 and sites.size == self.n:
            self.fields += float(values[0])
        else:
            self.fields += np.bincount(sites, np.broadcast_to(values, sites.shape), self.n)


def _build_ising(model: FactorGraph) -> tuple[IsingGraph, float] | None:
    """Binary sites, factors of at most two sites, no zeros."""
    if not _all_binary(model) or any(group.arity > 2 for group in _groups(model)) or _too_many(model):
        return None
    form = _BinaryForm(model.n_sites)
    pair_weights: list[NDArray[np.float64]] = []
    for group in _groups(model):
        tables = group.log_tables(model.cards)
        if not np.isfinite(tables).all():
            return None
        base = tables.reshape(len(tables), -1)[:, 0]
        form.constant += float(base.sum()) * (group.size if len(tables) == 1 else 1)
        if group.arity == 1:
            form.add(group.scopes[:, 0], tables[:, 1] - tables[:, 0])
        elif group.arity == 2:
            first, second = tables[:, 1, 0] - base, tables[:, 0, 1] - base
            form.add(group.scopes[:, 0], first)
            form.add(group.scopes[:, 1], second)
            pair = tables[:, 1, 1] - base - first - second
            pair_weights.append(np.broadcast_to(pair, (group.size,)))
    rows = _pair_rows(model)
    joined = np.concatenate(pair_weights) if pair_weights else np.zeros(0)
    coupling = joined[rows.source]
    return IsingGraph(rows.start, rows.neighbour, coupling, form.fields), form.constant


def _pair_rows(model: FactorGraph) -> Rows:
    """Return the rows of all two-site factors; they depend on scopes only and are shared when reweighting.

    Where each entry stems from is kept from the second use on: a model that is compiled once needs only
    the rows themselves.
    """
    kept = cast("Rows | None", model.structure.get("pair_rows"))
    if kept is not None and kept.source.size == kept.neighbour.size:
        return kept
    pairs = [group.scopes for group in _groups(model) if group.arity == 2]
    joined = np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int32)
    rows = build_rows(joined, model.n_sites)
    if kept is None:
        model.structure["pair_rows"] = rows._replace(source=rows.source[:0].copy(), side=rows.side[:0].copy())
        return rows
    rows = rows._replace(start=kept.start, neighbour=kept.neighbour)
    model.structure["pair_rows"] = rows
    return rows


@dataclass
class _Cells:
    """Unary log-potentials of all sites, one entry per (site, state)."""

    offset: NDArray[np.int64]
    log_unary: NDArray[np.float64]
    constant: float

    @classmethod
    def collect(cls, model: FactorGraph) -> _Cells:
        offset = np.zeros(model.n_sites + 1, np.int64)
        np.cumsum(model.cards, out=offset[1:])
        logs = np.zeros(int(offset[-1]))
        constant = 0.0
        for group in _groups(model):
            if group.arity == 1:
                tables = np.broadcast_to(
                    group.log_tables(model.cards), (group.size, *group.log_tables(model.cards).shape[1:])
                )
                cells = offset[group.scopes[:, 0]][:, None] + np.arange(tables.shape[1])
                np.add.at(logs, cells.ravel(), tables.ravel())
        if model.n_sites:
            top = np.maximum.reduceat(logs, offset[:-1])
            bad = np.flatnonzero(np.isneginf(top))
            if bad.size:
                raise SupportError(
                    f"Site {model.sites[int(bad[0])]!r} has no possible state: its factors and evidence "
                    "exclude every one; check the evidence."
                )
            logs -= np.repeat(top, model.cards)
            constant = float(top.sum())
        return cls(offset, logs, constant)


# Products of factors stay between exp(-300) and exp(300) unless a site is steep.
_STEEP = 300.0
# Sites up to which couplings of all pairs are stored where a kind has room for them.
_MOST_STORED = 2048
_DENSE = 0.25  # share of coupled pairs from which on the couplings are kept as a matrix, too


def _build_potts(model: FactorGraph) -> tuple[PottsGraph, float] | None:
    """Equal cardinalities, pairs that reward or punish agreement, any factors of single sites."""
    from gibbsite.model import AgreementFactors, KernelFactors, LatticeFactors

    if _too_many(model) or (model.n_sites and (model.cards != model.cards[0]).any()):
        return None
    weights: list[NDArray[np.float64]] = []
    constant = 0.0
    for group in _groups(model):
        if group.arity == 0:
            constant += float(np.broadcast_to(group.log_tables(model.cards), group.size).sum())
        elif isinstance(group, AgreementFactors):
            weights.append(group.weights)
        elif isinstance(group, KernelFactors) or (isinstance(group, LatticeFactors) and not group.spin):
            weights.append(group.edge_weights())
        elif group.arity != 1:
            return None
    cells, rows = _Cells.collect(model), _pair_rows(model)
    joined = np.concatenate(weights) if weights else np.zeros(0)
    uniform = bool((joined == joined[:1]).all())
    coupling = joined[:1].copy() if uniform else joined[rows.source]
    n, each = model.n_sites, np.broadcast_to(coupling, rows.neighbour.shape)
    degree = rows.start[1:].astype(np.int64) - rows.start[:-1]
    site = np.repeat(np.arange(n), degree)
    dense = np.zeros(n * n if each.size and each.size >= _DENSE * n * n else 0)
    if dense.size:
        np.add.at(dense, site * n + rows.neighbour, each)
    arrays = PottsGraph(
        start=rows.start,
        neighbour=rows.neighbour,
        step=int(not uniform),
        coupling=coupling,
        factor=np.exp(np.clip(coupling, -_STEEP, _STEEP)),
        steep=np.bincount(site, np.abs(each), n) > _STEEP,
        dense=dense,
        card=np.ascontiguousarray(model.cards),
        offset=cells.offset,
        unary=np.exp(cells.log_unary),
        log_unary=cells.log_unary,
    )
    return arrays, cells.constant + constant


def _too_many(model: FactorGraph) -> bool:
    """Whether couplings of all pairs are given by a function, and are too many to be stored."""
    from gibbsite.model import KernelFactors

    return model.n_sites > _MOST_STORED and any(isinstance(g, KernelFactors) for g in model.groups)


def _build_kernel(model: FactorGraph) -> tuple[KernelGraph, float] | None:
    """Couplings of all pairs that are a function of positions, any factors of single sites."""
    from gibbsite.model import KernelFactors

    kernels = [group for group in model.groups if isinstance(group, KernelFactors)]
    others = [group for group in _groups(model) if not isinstance(group, KernelFactors)]
    if len(kernels) != 1 or any(group.arity > 1 for group in others):
        return None
    constant = sum(
        float(np.broadcast_to(group.log_tables(model.cards), group.size).sum())
        for group in others
        if group.arity == 0
    )
    cells, pairs = _Cells.collect(model), kernels[0]
    arrays = KernelGraph(
        positions=pairs.positions,
        decay=make_decay(pairs.gamma, pairs.coupling),
        beta=pairs.beta,
        card=np.ascontiguousarray(model.cards),
        offset=cells.offset,
        unary=np.exp(cells.log_unary),
        log_unary=cells.log_unary,
    )
    return arrays, cells.constant + constant


@dataclass
class _Tables:
    """Tables of all larger factors, shifted to maximum one, one after another."""

    logs: list[NDArray[np.float64]] = field(default_factory=list)
    size: int = 0
    constant: float = 0.0

    def add(self, group: FactorGroup, cards: NDArray[np.int32]) -> NDArray[np.float64]:
        tables = group.log_tables(cards)
        flat = tables.reshape(len(tables), -1)
        top = flat.max(axis=1)
        self.constant += float(top.sum()) * (group.size if len(tables) == 1 else 1)
        shifted: NDArray[np.float64] = (flat - top[:, None]).reshape(tables.shape)
        return shifted

    def keep(self, tables: NDArray[np.float64], size: int) -> NDArray[np.int64]:
        """Append tables; return where the table of each of ``size`` factors starts."""
        each = math.prod(tables.shape[1:])
        start = self.size + each * np.arange(len(tables), dtype=np.int64)
        self.logs.append(np.ascontiguousarray(tables).ravel())
        self.size += tables.size
        return np.broadcast_to(start, (size,)) if len(tables) == 1 else start

    def joined(self) -> NDArray[np.float64]:
        return np.concatenate(self.logs) if self.logs else np.zeros(0)


def _build_pairwise(model: FactorGraph) -> tuple[PairwiseGraph, float] | None:
    """Any cardinalities, factors of at most two sites, zeros allowed."""
    if any(group.arity > 2 for group in _groups(model)):
        return None
    cells, tables = _Cells.collect(model), _Tables()
    forward: list[NDArray[np.int64]] = []
    backward: list[NDArray[np.int64]] = []
    for group in _groups(model):
        if group.arity == 0:
            tables.constant += float(np.broadcast_to(group.log_tables(model.cards), group.size).sum())
        elif group.arity == 2:
            shifted = tables.add(group, model.cards)
            # seen from the first site the second is the row, so its states must be the outer axis
            forward.append(tables.keep(shifted.swapaxes(1, 2), group.size))
            backward.append(tables.keep(shifted, group.size))
    rows = _pair_rows(model)
    both = np.stack([np.concatenate(f) if f else np.zeros(0, np.int64) for f in (forward, backward)])
    logs = tables.joined()
    arrays = PairwiseGraph(
        start=rows.start,
        neighbour=rows.neighbour,
        table=both[rows.side, rows.source],
        card=np.ascontiguousarray(model.cards),
        offset=cells.offset,
        unary=np.exp(cells.log_unary),
        log_unary=cells.log_unary,
        value=np.exp(logs),
        log_value=logs,
    )
    return arrays, cells.constant + tables.constant


def _build_table(model: FactorGraph) -> tuple[TableGraph, float]:
    """Anything discrete."""
    cells, tables = _Cells.collect(model), _Tables()
    starts: list[NDArray[np.int64]] = []
    members: list[NDArray[np.int32]] = []
    strides: list[NDArray[np.int64]] = []
    widths: list[NDArray[np.int64]] = []
    for group in _groups(model):
        if group.arity == 0:
            tables.constant += float(np.broadcast_to(group.log_tables(model.cards), group.size).sum())
        elif group.arity >= 2:
            shifted = tables.add(group, model.cards)
            starts.append(tables.keep(shifted, group.size))
            members.append(group.scopes.ravel())
            stride = np.ones(group.arity, np.int64)
            stride[:-1] = np.cumprod(np.array(shifted.shape[:1:-1], np.int64))[::-1]
            strides.append(np.tile(stride, group.size))
            widths.append(np.full(group.size, group.arity, np.int64))
    width = np.concatenate(widths) if widths else np.zeros(0, np.int64)
    member = np.concatenate(members) if members else np.zeros(0, np.int32)
    stride = np.concatenate(strides) if strides else np.zeros(0, np.int64)
    factor = np.repeat(np.arange(width.size, dtype=np.int64), width)
    # rows of sites: a stable sort of (site, factor) pairs by site
    by_site = np.argsort(member, kind="stable")
    start = np.zeros(model.n_sites + 1, np.uint32)
    np.cumsum(np.bincount(member, minlength=model.n_sites), out=start[1:])
    member_start = np.zeros(width.size + 1, np.uint32)
    np.cumsum(width, out=member_start[1:])
    logs = tables.joined()
    arrays = TableGraph(
        start=start,
        factor=factor[by_site].astype(np.uint32),
        own_stride=stride[by_site],
        member_start=member_start,
        member=member.astype(np.uint32),
        stride=stride,
        table=np.concatenate(starts) if starts else np.zeros(0, np.int64),
        card=np.ascontiguousarray(model.cards),
        offset=cells.offset,
        unary=np.exp(cells.log_unary),
        log_unary=cells.log_unary,
        value=np.exp(logs),
        log_value=logs,
    )
    return arrays, cells.constant + tables.constant


#: How arrays of each kind are made, from the most to the least special; None where a model does not fit.
BUILDERS: dict[str, Callable[[FactorGraph], tuple[Any, float] | None]] = {
    "lattice": _build_lattice,
    "ising": _build_ising,
    "potts": _build_potts,
    "kernel": _build_kernel,
    "pairwise": _build_pairwise,
    "table": _build_table,
}
