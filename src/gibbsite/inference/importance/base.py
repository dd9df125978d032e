"""What a proposal is: it prepares sources of draws, and a source draws blocks.

The loop over draws is in ``run``, and the sums that they are added to are in ``tally``. A proposal is a frozen
dataclass of its parameters; a source is a proposal prepared for one model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from gibbsite._common.arrays import Bools, Integers
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
    """What sources are prepared for.

    Attributes
    ----------
    entropy : int
        The seed of the run.
    query : bool array (sites,)
        Which sites are queried; nothing has to be recorded of the others.
    seconds : float
        Time limit of the run, infinite if there is none.
    draws : int or None
        Draws asked for.
    elapsed : function
        Returns the seconds since the start, without compilation.
    threads : int
        Threads that may be used.
    stopped : function
        Returns whether Ctrl-C was pressed.
    """

    entropy: int
    query: Bools
    seconds: float
    draws: int | None
    elapsed: Callable[[], float]
    threads: int
    stopped: Callable[[], bool]


class ImportanceProposal(ABC):
    """A rule that makes distributions close to a model that can be drawn from."""

    #: Name of the method of :func:`gibbsite.infer`; set by :func:`gibbsite.inference.importance.registry.register`.
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
