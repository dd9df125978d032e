"""Proposals of weighted draws, and the registry that makes them methods of infer.

The loop over draws is in ``run``, and the sums over draws are in ``tally``. A proposal is a frozen dataclass of its
parameters; a source is a proposal prepared for one model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from gibbsite._common.arguments import checked_constructor
from gibbsite._common.arrays import Bools, Integers
from gibbsite._common.loading import load_modules
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError
from gibbsite.inference.importance.tally import Tally, make_tally

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


#: Draws of a block; the random numbers depend on it.
BLOCK = 256


class WeightedSource(ABC):
    """A distribution to draw from, and the weights of the draws.

    Attributes
    ----------
    name : str
        Name in messages and plans.
    log_bound : float
        Upper bound of every log-weight, infinite if none is known. The closer it is to the estimate of log Z, the less
        probability can be hidden in states that were not drawn.
    exact : bool
        All weights are equal: draws are independent draws from the model itself.
    """

    name: str = ""
    log_bound: float = math.inf
    exact: bool = False

    @abstractmethod
    def draw(self, tally: Tally, group: int, first: int, blocks: int, step: int) -> None:
        """Draw ``blocks`` blocks with the numbers ``first``, ``first + step``, ..., and add them to a group.

        A block has :data:`BLOCK` draws, and depends on its number and the seed alone. Log-weights are log-potentials
        of the model, ``log_offset`` included, minus log-probabilities under the proposal. This method is called on
        several threads at once, each with another group.
        """

    def make_tally(self, cards: Integers) -> Tally:
        """Return an empty tally for the queried sites, which have these numbers of states."""
        return make_tally(cards)

    def describe(self) -> dict[str, Any]:
        """Return a description as plain data."""
        return {"name": self.name}


@dataclass(frozen=True)
class SourceSettings:
    """The run for which sources are prepared.

    ``entropy`` is the seed of the run, ``query`` (sites,) marks the sites to record; ``seconds`` is the time limit,
    infinite if there is none, and ``draws`` the number of draws asked for, if any. ``elapsed()`` gives the seconds
    since the start, without compilation, and ``stopped()`` whether Ctrl-C was pressed.
    """

    entropy: int
    query: Bools
    seconds: float
    draws: int | None
    elapsed: Callable[[], float]
    threads: int
    stopped: Callable[[], bool]


class ImportanceProposal(ABC):
    """A rule that constructs distributions close to a model from which one can draw."""

    #: Name of the method of :func:`gibbsite.infer`; set by :func:`gibbsite.inference.importance.base.register`.
    method: ClassVar[str] = "weighted"

    @abstractmethod
    def sources(self, model: FactorGraph, setting: SourceSettings) -> Iterator[tuple[float, WeightedSource]]:
        """Yield sources, each with the share of the budget (draws, or time) that is used up when it ends.

        The last one has the share 1. Work between two of them, such as learning from the draws so far or preparing a
        better proposal, counts as time of the run.
        """

    def describe(self) -> dict[str, Any]:
        """Return name and parameters as plain data."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {"name": type(self).__name__, **values}


P = TypeVar("P", bound=type[ImportanceProposal])
_REGISTERED: dict[str, type[ImportanceProposal]] = {}


def register(*, method: str, tasks: tuple[str, ...]) -> Callable[[P], P]:
    """Register a class of proposals as a method for some of the tasks "MAR" and "PR".

    The class without parameters is used. The arguments must be literals, which are read without loading the module.
    """

    def add(proposal: P) -> P:
        checked_constructor(proposal)
        proposal.method = method
        _REGISTERED[method] = proposal
        return proposal

    return add


def make_proposal(method: str) -> ImportanceProposal:
    """Return the proposal of a method."""
    load_modules("gibbsite.inference.importance")
    if method not in _REGISTERED:
        raise ArgumentError(unknown("method", method, sorted(_REGISTERED)))
    return _REGISTERED[method]()
