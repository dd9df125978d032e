"""A compiled model: read-only arrays, what kind they are, and a digest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gibbsite._common.arrays import Ints, Ints32
from gibbsite._common.cache import Cache
from gibbsite._common.wording import in_python, part
from gibbsite._numba.foreign import Foreign, take_raised
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.registry import FACTOR_KINDS

if TYPE_CHECKING:
    from gibbsite.graphs.functions.bounds import FunctionModel
    from gibbsite.models import FactorGraph

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def seal(arrays: Arrays) -> Arrays:
    """Make all arrays of a named tuple read-only, and return it.

    They are shared by chains, and compiled code is for one type of them.
    """
    for each in arrays:
        if isinstance(each, np.ndarray):
            each.setflags(write=False)
        elif isinstance(each, tuple):
            seal(each)
    return arrays


def count_bytes(arrays: tuple[Any, ...]) -> int:
    """Return the bytes of all arrays of nested tuples."""
    return sum(
        each.nbytes if isinstance(each, np.ndarray) else count_bytes(each) if isinstance(each, tuple) else 0
        for each in arrays
    )


@dataclass(frozen=True)
class Graph:
    """A compiled model: read-only arrays, their kind and a digest.

    Attributes
    ----------
    kind : str
        "lattice", "ising", "potts", "distance", "pairwise" or "table"; other words where sites are numbers.
    arrays : NamedTuple
        The arrays that compiled code reads.
    cards : array of int
        Number of states of each site.
    log_offset : float
        Constant to be added to log-potentials computed from the arrays.
    cache : Cache
        Values computed from the arrays.
    shared : Cache
        Values that do not depend on weights; copies of a model with other weights share them.
    units : int, optional
        Number of visits in a sweep, where it is not that of the sites: blocks of them, or one for all of them.
    model : FactorGraph, optional
        The model that was compiled, where all sites have states.
    on_disk : bool
        The arrays are mapped from files, and must not be copied or laid out anew.
    model_digest : str
        The digest of the model that was compiled, where there is no ``model``.
    functions : tuple of Foreign
        The functions of the user that the arrays refer to by address.
    factors : FunctionModel, optional
        The factors of a graph of kind "functions".
    n_sites, n_units, n_cells : int
        Number of free sites, of visits in a sweep, and of marginal probabilities that a run estimates.
    discrete, binary : bool
        Whether all sites have states (otherwise a state is an array of floats), and whether the kind is for
        two-state sites: one cell per site, the probability of state 1.
    offset : array of int
        Where the cells of each site start; empty for binary kinds, where cell i is site i.
    state_dtype : type
        Type of states: integers, unless some sites are numbers.

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
        """Identifies model and kind; computed at the first use, because hashing takes longer than a sweep."""
        return f"{self.kind}-{self.model_digest if self.model is None else self.model.digest}"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return count_bytes(self.arrays)

    def require_model(self) -> FactorGraph:
        """Return the model that was compiled, for code that reads more of it than the arrays.

        Raises
        ------
        IncompatibleError
            If it is not made of states, or stays in its files.
        """
        if self.model is not None:
            return self.model
        if self.on_disk:
            raise IncompatibleError(
                "This reads the whole model, and a stored one stays in its files; sample it with "
                f"{part('Gibbs')}, {part('HerdedGibbs')} or {part('AnnealedGibbs')}"
                f"{in_python(', or build it in memory with gs.ising or gs.potts')}."
            )
        raise IncompatibleError(f"A graph of kind {self.kind} cannot be represented by tables.")

    def take_raised(self) -> BaseException | None:
        """Return the first exception of functions of the user that were called back, and forget it."""
        return take_raised(self.functions)
