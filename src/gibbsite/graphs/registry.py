"""The kinds of graphs: how each is registered, and found.

A kind of factor graphs is a named tuple of flat arrays, and a builder that makes them of a model, or
returns None where the model does not fit. Models of other types have one kind each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gibbsite._numba.foreign import Foreign

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model

Builder = Callable[["FactorGraph"], "tuple[Any, float] | None"]


@dataclass(frozen=True)
class Kind:
    """A way to represent factor graphs.

    Attributes
    ----------
    name : str
        As in ``Graph.kind``.
    arrays : type
        The named tuple that compiled code sees.
    build : function
        From a model to arrays and the constant that they leave out of log-potentials; None where it does
        not fit.
    rank : int
        Kinds are tried in this order, the most special ones first.
    binary : bool
        For two-state sites, all of whose states are possible: one cell per site, the probability of state 1.

    Notes
    -----
    A named tuple may have methods that others ask for: ``pairs()``, the pairs of sites that share a factor,
    and ``colors()``, a coloring or None. Without them the model is also compiled to kind "table" when they
    are needed.
    """

    name: str
    arrays: type
    build: Builder
    rank: int
    binary: bool = False


_REGISTERED: dict[str, Kind] = {}


def builds(name: str, arrays: type, rank: int, *, binary: bool = False) -> Callable[[Builder], Builder]:
    """Register the builder of a kind."""

    def register(function: Builder) -> Builder:
        kinds = {**_REGISTERED, name: Kind(name, arrays, function, rank, binary)}
        _REGISTERED.clear()
        _REGISTERED.update(sorted(kinds.items(), key=lambda item: item[1].rank))
        return function

    return register


def registered_kinds() -> dict[str, Kind]:
    """Return all kinds of factor graphs by name, from the most to the least special."""
    return dict(_REGISTERED)


class CompiledModel(NamedTuple):
    """What a model other than a FactorGraph becomes; units: of a sweep, when not the sites.

    ``on_disk``: the arrays are mapped from files, and not to be copied.
    """

    kind: str
    arrays: Any
    functions: Sequence[Foreign] = ()
    units: int | None = None
    log_offset: float = 0.0
    on_disk: bool = False


ModelCompiler = Callable[[Any], CompiledModel]
_OTHERS: dict[type, ModelCompiler] = {}


def compiles(model: type[Model]) -> Callable[[ModelCompiler], ModelCompiler]:
    """Register the function that turns models of a type other than FactorGraph into arrays."""

    def register(function: ModelCompiler) -> ModelCompiler:
        _OTHERS[model] = function
        return function

    return register


def compiler_of(model: type) -> ModelCompiler | None:
    """Return the function that turns models of a type other than FactorGraph into arrays."""
    return _OTHERS.get(model)
