"""Model to arrays: choose a graph kind and build it. The only place where names become integers.

Of a factor graph ``compile_graph`` tries the kinds from the most to the least special (:mod:`.build`); models
of other types have one kind each, and register how they are lowered (:func:`lowers`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._foreign import Foreign, take_raised
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.graph.build import BUILDERS
from gibbsite.graph.kinds import IsingGraph, LatticeGraph
from gibbsite.model import FactorGraph, Model

KINDS = tuple(BUILDERS)


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
        built = BUILDERS[name](model)
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
