"""Compiled models: read-only arrays, their kind and a digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gibbsite._common.arrays import Ints, Ints32
from gibbsite._common.cache import Cache
from gibbsite._common.wording import in_python, part
from gibbsite._numba.foreign import Foreign, take_raised
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.registry import FACTOR_KINDS
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
        "lattice", "ising", "potts", "distance", "pairwise" or "table"; other names if some sites are numbers.
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
