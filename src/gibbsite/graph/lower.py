"""Model to arrays: choose a graph kind and build it. The only place where names become integers.

``compile_graph`` tries the kinds from the most to the least special: a lattice without stored indices,
binary pairwise rows, agreements of pairs, couplings computed from positions, pairwise tables, general tables.
Whatever does not depend on
weights (row pointers, neighbours) is kept in ``model.structure``, which reweighted copies of a model share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gibbsite._foreign import Foreign, take_raised
from gibbsite.errors import IncompatibleError, ModelError, SupportError
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
from gibbsite.model import FactorGraph, Model

if TYPE_CHECKING:
    from gibbsite.model import FactorGroup
    from gibbsite.model.lattice import LatticeFactors

KINDS = ("lattice", "ising", "potts", "kernel", "pairwise", "table")


@dataclass(frozen=True)
class Graph:
    """A compiled model: read-only arrays, their kind and a digest.

    Attributes
    ----------
    kind : str
        "lattice", "ising", "potts", "kernel", "pairwise" or "table"; other words where sites are numbers.
    arrays : NamedTuple
        What compiled code sees.
    cards : array of int
        Number of states of each site.
    log_offset : float
        Constant to be added to log-potentials computed from the arrays.
    digest : str
        Identifies model and kind.
    units : int, optional
        How many things a sweep visits one by one, where they are not the sites: blocks of them, or one that
        is all of them.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.compile_graph(gs.ising_grid((3, 3), coupling=0.5))
    >>> graph.kind, graph.n_sites
    ('lattice', 9)
    """

    kind: str
    arrays: Any
    cards: NDArray[np.int32]
    log_offset: float
    digest: str
    structure: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)
    units: int | None = None

    @property
    def n_sites(self) -> int:
        """Number of free sites."""
        return int(self.cards.size)

    @property
    def n_units(self) -> int:
        """Number of visits in a sweep."""
        return self.n_sites if self.units is None else self.units

    @property
    def discrete(self) -> bool:
        """Whether all sites have states; otherwise some are numbers, and a state is an array of floats."""
        return self.kind in KINDS

    @property
    def binary(self) -> bool:
        """Whether the kind is for two-state sites: one cell per site, the probability of state 1."""
        return self.kind in ("lattice", "ising")

    @property
    def offset(self) -> NDArray[np.int64]:
        """Where the cells of each site start; empty for binary kinds, where cell i is site i."""
        if isinstance(self.arrays, IsingGraph | LatticeGraph):
            return np.zeros(0, np.int64)
        offset: NDArray[np.int64] = self.arrays.offset
        return offset

    @property
    def n_cells(self) -> int:
        """Number of marginal probabilities a run estimates."""
        return self.n_sites if self.binary else int(self.offset[-1])

    @property
    def state_dtype(self) -> Any:
        """Type of states: integers, unless some sites are numbers."""
        if not self.discrete:
            return np.float64
        return np.int8 if self.binary else np.int16

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(part.nbytes for part in self.arrays if isinstance(part, np.ndarray))

    def take_raised(self) -> BaseException | None:
        """Return the first exception of functions of the user that were called back, and forget it."""
        return take_raised(self.structure.get("functions", ()))

    def check_state(self, x: NDArray[Any]) -> None:
        """Refuse a state of the wrong length or with codes outside the domains."""
        if x.shape != (self.n_sites,):
            raise ModelError(f"A state needs {self.n_sites} entries, got shape {x.shape}.")
        bad = np.flatnonzero((x < 0) | (x >= self.cards))
        if bad.size:
            i = int(bad[0])
            raise ModelError(f"State code {x[i]} at site {i} is not in 0..{self.cards[i] - 1}.")


class Lowered(NamedTuple):
    """What a model other than a FactorGraph becomes; units: of a sweep, when not the sites."""

    kind: str
    arrays: Any
    functions: Sequence[Foreign] = ()
    units: int | None = None


Lowering = Callable[[Any], Lowered]
_OTHERS: dict[type[Model], Lowering] = {}


def lowers(model: type[Model]) -> Callable[[Lowering], Lowering]:
    """Register the function that turns models of a type other than FactorGraph into arrays."""

    def register(function: Lowering) -> Lowering:
        _OTHERS[model] = function
        return function

    return register


def _lower_other(model: Any, kind: str | None) -> Graph:
    """Return the graph of a model other than a FactorGraph, made once."""
    function = _OTHERS.get(type(model))
    if function is None:
        raise ModelError(
            f"There is no model here, but {type(model).__name__}; make one with gs.FactorGraph, gs.ising and "
            "so on."
        )
    graph: Graph | None = model.structure.get("graph")
    if graph is None:
        found = function(model)
        _seal(found.arrays)
        model.structure["functions"] = list(found.functions)  # their machine code lives as long as these
        digest = f"{found.kind}-{model.digest}"
        graph = Graph(found.kind, found.arrays, model.cards, 0.0, digest, model.structure, found.units)
        model.structure["graph"] = graph
    if kind not in (None, graph.kind):
        raise IncompatibleError(f"A {type(model).__name__} cannot be represented as a {kind} graph.")
    return graph


def _seal(arrays: Any) -> None:
    """Make all arrays read-only: they are shared by chains, and compiled code is for one type of them."""
    for part in arrays:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
        elif isinstance(part, tuple):
            _seal(part)


def compile_graph(model: Model, kind: str | None = None, among: Collection[str] = ()) -> Graph:
    """Turn a model into a graph.

    Parameters
    ----------
    model : Model
        The model.
    kind : str, optional
        Demand this kind instead of the most special one that fits.
    among : collection of str
        Prefer these kinds, as those that a kernel accepts; if none of them fits, others are taken.

    Returns
    -------
    Graph

    Raises
    ------
    IncompatibleError
        If the demanded kind cannot represent the model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 0, 1]])])
    >>> compile_graph(model).kind
    'pairwise'
    """
    if not isinstance(model, FactorGraph):
        return _lower_other(model, kind)
    if kind is not None and kind not in KINDS:
        raise ModelError(f"Graph kind {kind!r} is unknown; choose one of {', '.join(KINDS)}.")
    if model.n_sites >= 2**31:
        raise ModelError(f"A graph can have at most 2^31 - 1 sites, this model has {model.n_sites}.")
    wanted = sorted(KINDS, key=lambda name: name not in among)  # stable: special ones first
    for name in wanted if kind is None else (kind,):
        built = _BUILDERS[name](model)
        if built is not None:
            arrays, constant = built
            _seal(arrays)
            return Graph(
                kind=name,
                arrays=arrays,
                cards=model.cards,
                log_offset=model.log_offset + constant,
                digest=f"{name}-{model.digest}",
                structure=model.structure,
            )
    raise IncompatibleError(f"This model cannot be represented as a {kind} graph.")


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
        if int(model.cards.max(initial=1)) > np.iinfo(np.int16).max:
            raise ModelError("A site can have at most 32767 states.")
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


_BUILDERS: dict[str, Any] = {
    "lattice": _build_lattice,
    "ising": _build_ising,
    "potts": _build_potts,
    "kernel": _build_kernel,
    "pairwise": _build_pairwise,
    "table": _build_table,
}
