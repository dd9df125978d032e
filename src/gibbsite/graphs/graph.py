"""A compiled model: read-only arrays, what kind they are, and a digest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gibbsite._common.arrays import Ints, Ints32
from gibbsite._common.wording import in_python, part
from gibbsite._numba.foreign import take_raised
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.registry import registered_kinds

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def seal(arrays: Arrays) -> Arrays:
    """Make all arrays of a named tuple read-only, and return it.

    They are shared by chains, and compiled code is for one type of them.

    Examples
    --------
    >>> seal((np.zeros(2), (np.zeros(2),)))[1][0].flags.writeable
    False
    """
    for each in arrays:
        if isinstance(each, np.ndarray):
            each.setflags(write=False)
        elif isinstance(each, tuple):
            seal(each)
    return arrays


def _count_bytes(arrays: tuple[Any, ...]) -> int:
    return sum(
        each.nbytes if isinstance(each, np.ndarray) else _count_bytes(each) if isinstance(each, tuple) else 0
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
        What compiled code sees.
    cards : array of int
        Number of states of each site.
    log_offset : float
        Constant to be added to log-potentials computed from the arrays.
    model : FactorGraph, optional
        What was compiled, where all sites have states.
    model_digest : str
        The digest of what was compiled, where there is no ``model``.
    units : int, optional
        How many things a sweep visits one by one, where they are not the sites: blocks of them, or one that
        is all of them.
    on_disk : bool
        The arrays are mapped from files, and are not to be copied or laid out anew.

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
    structure: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)
    units: int | None = None
    model: FactorGraph | None = field(repr=False, compare=False, default=None)
    on_disk: bool = False
    model_digest: str = ""

    @property
    def digest(self) -> str:
        """Identifies model and kind; computed at the first use, because hashing takes longer than a sweep."""
        return f"{self.kind}-{self.model_digest if self.model is None else self.model.digest}"

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
        return self.kind in registered_kinds()

    @property
    def binary(self) -> bool:
        """Whether the kind is for two-state sites: one cell per site, the probability of state 1."""
        kind = registered_kinds().get(self.kind)
        return kind is not None and kind.binary

    @property
    def offset(self) -> Ints:
        """Where the cells of each site start; empty for binary kinds, where cell i is site i."""
        if self.binary:
            return np.zeros(0, np.int64)
        offset: Ints = self.arrays.offset
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
        return _count_bytes(self.arrays)

    def require_model(self) -> FactorGraph:
        """Return the model that was compiled, for whoever reads more of it than the arrays.

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
        return take_raised(self.structure.get("functions", ()))
