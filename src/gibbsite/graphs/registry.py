"""The kinds of graphs: how each is declared and found.

A kind of factor graphs is a named tuple of flat arrays and a builder that makes them from a model, or returns None
if the model does not fit. A model of another type has one kind. Each kind is a file of
:mod:`gibbsite.graphs.kinds`. The declarations are read from the text, and a file is loaded when it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from gibbsite._common.loading import read_declarations
from gibbsite.models.factorgraph import FactorGraph

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Kind:
    """The declaration of a kind: the arguments of ``@register(...)``, which must be literals.

    Attributes
    ----------
    name : str
        As in ``Graph.kind``.
    rank : int
        Kinds of factor graphs are tried in this order, the most specialised ones first.
    binary : bool
        For two-state sites, all of whose states are possible: one cell per site, the probability of state 1.
    arity, group : int, str, optional
        Largest number of sites of a factor; the class of a group of factors that a model must have.
    model, module : str
        The class of the models if they are not factor graphs; the module of the builder.

    Notes
    -----
    A named tuple may have the methods ``pairs()``, the pairs of sites that share a factor, and ``colors()``, a
    coloring or None. Without them the model is also compiled to kind "table" when they are needed.
    """

    name: str
    rank: int = 0
    binary: bool = False
    arity: int | None = None
    group: str | None = None
    model: str | None = None
    module: str = ""

    def may_fit(self, model: FactorGraph) -> bool:
        """Return whether the kind may fit a model, judged by sizes and types alone."""
        if self.binary and not (model.cards == 2).all():
            return False
        if self.arity is not None and any(group.arity > self.arity for group in model.groups if group.size):
            return False
        return self.group is None or any(self.group == kind.__name__ for g in model.groups for kind in type(g).__mro__)


#: The kinds of factor graphs by name, from the most to the least specialised.
FACTOR_KINDS: dict[str, Kind] = {}
_OTHERS: dict[str, Kind] = {}  # by the class of the model
_BUILDERS: dict[Kind, Callable[[Any], Any]] = {}


def _declare(kind: Kind) -> None:
    if kind.model is not None:
        _OTHERS[kind.model] = kind
    else:
        kinds = sorted({**FACTOR_KINDS, kind.name: kind}.values(), key=lambda one: one.rank)
        FACTOR_KINDS.clear()
        FACTOR_KINDS.update((one.name, one) for one in kinds)


def register(**declaration: Any) -> Callable[[F], F]:
    """Register the function that makes the arrays of a kind; the arguments are those of :class:`Kind`."""

    def keep(function: F) -> F:
        kind = Kind(**declaration, module=function.__module__)
        _declare(kind)
        _BUILDERS[kind] = function
        return function

    return keep


for _given in read_declarations("graphs/kinds"):
    _declare(Kind(**{name: value for name, value in _given.items() if name != "class"}))


def kind_of(model: type) -> Kind | None:
    """Return the kind of the models of a type other than FactorGraph."""
    return _OTHERS.get(model.__name__)


def builder_of(kind: Kind) -> Callable[[Any], Any]:
    """Return the function that makes the arrays of a kind; its module is loaded at the first call."""
    if kind not in _BUILDERS:
        importlib.import_module(kind.module)
    return _BUILDERS[kind]
