"""Compiled models: read-only arrays, their kind and a digest. Only here are names turned into integers.

``compile_graph`` tries the kinds of factor graphs from the most to the least special; models of other types have one
kind each (:mod:`gibbsite.graphs.kinds`). The arrays are kept with the model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Ints, Ints32
from gibbsite._common.cache import Cache
from gibbsite._common.wording import in_python, part, unknown
from gibbsite._numba.foreign import Foreign, take_raised
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.graphs.registry import FACTOR_KINDS, builder_of, kind_of
from gibbsite.models.base import Model
from gibbsite.models.factorgraph import FactorGraph

if TYPE_CHECKING:
    from gibbsite.graphs.functions.bounds import FunctionModel

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def seal(arrays: Arrays) -> Arrays:
    """Make all arrays of a named tuple read-only, because chains share them, and return it."""
    for each in arrays:
        if isinstance(each, np.ndarray):
            each.setflags(write=False)
        elif isinstance(each, tuple):
            seal(each)
    return arrays


def count_bytes(arrays: tuple[Any, ...], own: bool = False) -> int:
    """Return the bytes of all arrays of nested tuples; ``own`` leaves out read-only arrays."""
    found = 0
    for each in arrays:
        if isinstance(each, tuple):
            found += count_bytes(each, own)
        elif isinstance(each, np.ndarray) and not (own and not each.flags.writeable):
            found += each.nbytes
    return found


def graph_of(
    model: Model, kind: str, arrays: Any, functions: Sequence[Foreign] = (), log_offset: float = 0.0, **about: Any
) -> Graph:
    """Return the graph of a model other than a FactorGraph."""
    functions, digest = tuple(functions), model.digest
    return Graph(kind, seal(arrays), model.cards, log_offset, functions=functions, model_digest=digest, **about)


@dataclass(frozen=True)
class Graph:
    """A compiled model: read-only arrays, their kind and a digest.

    Attributes
    ----------
    kind : str
        "lattice", "ising", "potts", "distance", "pairwise", "causes" or "table"; other names if some sites are numbers.
    arrays : NamedTuple
        The arrays that compiled code reads.
    cards : array of int
        Number of states of each site.
    log_offset : float
        Constant to be added to log-potentials computed from the arrays.
    cache, shared : Cache
        Values computed from the arrays; values that do not depend on weights, shared by reweighted copies of a model.
    units, n_units : int
        Number of visits in a sweep; ``units`` is None if every visit is to a single site.
    model, model_digest : FactorGraph, str
        The compiled model, if all its sites have states; otherwise its digest.
    on_disk : bool
        The arrays are mapped from files, and must not be copied or rearranged.
    functions, factors
        The user's functions that the arrays refer to by address, and the factors that they define.
    n_sites, n_cells : int
        Number of free sites, and of marginal probabilities that a run estimates.
    discrete : bool
        All sites have states; otherwise a state is an array of floats (see ``state_dtype``).
    binary : bool
        The kind is for two-state sites; each site has one cell, the probability of state 1.
    offset : array of int
        Start of the cells of each site; empty for binary kinds, where cell i is site i.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((3, 3), coupling=0.5))
    >>> graph.kind, graph.n_sites
    ('lattice', 9)
    """

    kind: str
    arrays: Any
    cards: Ints32
    log_offset: float
    cache: Cache = field(repr=False, compare=False, default_factory=Cache)
    shared: Cache = field(repr=False, compare=False, default_factory=Cache)
    units: int | None = None
    model: FactorGraph | None = field(repr=False, compare=False, default=None)
    on_disk: bool = False
    model_digest: str = ""
    functions: tuple[Foreign, ...] = field(repr=False, compare=False, default=())
    factors: FunctionModel | None = field(repr=False, compare=False, default=None)
    n_sites: int = field(init=False, repr=False)
    n_units: int = field(init=False, repr=False)
    n_cells: int = field(init=False, repr=False)
    discrete: bool = field(init=False, repr=False)
    binary: bool = field(init=False, repr=False)
    offset: Ints = field(init=False, repr=False, compare=False)
    state_dtype: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        declared = FACTOR_KINDS.get(self.kind)
        n, binary = int(self.cards.size), declared is not None and declared.binary
        offset = np.zeros(0, np.int64) if binary else self.arrays.offset
        vars(self).update(
            n_sites=n,
            n_units=n if self.units is None else self.units,
            n_cells=n if binary else int(offset[-1]),
            discrete=declared is not None,
            binary=binary,
            offset=offset,
            state_dtype=np.float64 if declared is None else np.int8 if binary else np.int16,
        )

    @property
    def digest(self) -> str:
        """Hash of model and kind, computed at the first use because hashing takes longer than a sweep."""
        return f"{self.kind}-{self.model_digest if self.model is None else self.model.digest}"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return count_bytes(self.arrays)

    def require_model(self) -> FactorGraph:
        """Return the compiled model, for code that needs more than the arrays; refuse other graphs."""
        if self.model is not None:
            return self.model
        if self.on_disk:
            raise IncompatibleError(
                "This method needs the whole model in memory, and a stored one stays in its files; sample it with "
                f"{part('Gibbs')}, {part('HerdedGibbs')} or {part('AnnealedGibbs')}"
                f"{in_python(', or build it in memory with gs.ising or gs.potts')}."
            )
        raise IncompatibleError(f"A graph of kind {self.kind} cannot be represented by tables.")

    def take_raised(self) -> BaseException | None:
        """Return the first exception that the user's functions raised when they were called back, and clear it."""
        return take_raised(self.functions)


#: Names of the kinds of factor graphs, from the most to the least specialised.
KINDS = tuple(FACTOR_KINDS)


class _Built(dict[str, "tuple[Any, float, Cache] | None"]):
    """Arrays, constant and cache of a factor graph by kind; None where the model does not fit the kind."""


def _compile_other(model: Any, kind: str | None) -> Graph:
    """Return the graph of a model other than a FactorGraph, made once."""
    declared = kind_of(type(model))
    if declared is None:
        raise ArgumentError(
            f"Expected a model, got {type(model).__name__}; make one with gs.FactorGraph, gs.ising and so on."
        )
    graph: Graph | None = model.cache.get(Graph)
    if graph is None:
        built: Graph = builder_of(declared)(model)
        graph = model.cache.put(built)
    if kind not in (None, graph.kind):
        raise IncompatibleError(f"A {type(model).__name__} cannot be represented as a {kind} graph.")
    return graph


@checked
def compile_graph(model: Model, kind: str | None = None, among: Collection[str] = ()) -> Graph:
    """Turn a model into a graph.

    Parameters
    ----------
    model : Model
        The model.
    kind : str, optional
        The kind to build. By default, it is the most specialised one that fits.
    among : collection of str
        Kinds to prefer, such as those that a kernel accepts; if none of them fits, others are tried.

    Returns
    -------
    Graph

    Raises
    ------
    IncompatibleError
        If the requested kind cannot represent the model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[1, 2, 3], [3, 0, 1]])])
    >>> compile_graph(model).kind
    'pairwise'
    """
    if not isinstance(model, FactorGraph):
        return _compile_other(model, kind)
    if kind is not None and kind not in FACTOR_KINDS:
        raise ArgumentError(unknown("Graph kind", kind, FACTOR_KINDS))
    domains = model.domains
    if domains.n_sites >= 2**31:
        raise ModelError(f"A graph can have at most 2^31 - 1 sites, this model has {domains.n_sites}.")
    # only an automatically chosen kind is cached; a requested one is often large and used once
    known = model.cache[_Built] if kind is None else _Built()
    preferred = filter(set(map(str, among)).__contains__, FACTOR_KINDS)
    wanted = dict.fromkeys((*preferred, *FACTOR_KINDS))
    for name in wanted if kind is None else (kind,):
        if name not in known:
            declared = FACTOR_KINDS[name]
            built = builder_of(declared)(model) if declared.may_fit(model) else None
            known[name] = None if built is None else (seal(built[0]), built[1], Cache())
        found = known[name]
        if found is not None:
            offset = model.log_offset + found[1]
            return Graph(name, found[0], domains.cards, offset, found[2], model.shared, model=model)
    raise IncompatibleError(f"This model cannot be represented as a {kind} graph.")


def as_tables(graph: Graph) -> Graph:
    """Return a graph as one of kind "table", which can represent any model of states.

    Code that distinguishes kinds uses this for all kinds that it does not know.
    """
    return graph if graph.kind == "table" else compile_graph(graph.require_model(), "table")
