"""What a proposal is: it prepares sources of draws, and a source draws blocks.

The loop over draws is in ``run``, the sums that they add to are in ``tally``. A proposal is a frozen dataclass of its
parameters; a source is a proposal worked out for one model.
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

#: Draws of a block; it is part of what decides the random numbers.
BLOCK = 256


class WeightedSource(ABC):
    """A law that can be drawn from, and what each draw weighs.

    Attributes
    ----------
    name : str
        What it is, for messages and plans.
    log_bound : float
        Upper bound of every log-weight, infinite if none is known. The nearer it is to the estimate of log Z,
        the less can hide in what was not drawn.
    exact : bool
        All weights are equal: draws are independent draws from the model itself.
    """

    name: str = ""
    log_bound: float = math.inf
    exact: bool = False

    @abstractmethod
    def draw(self, tally: Tally, group: int, first: int, blocks: int, step: int) -> None:
        """Draw blocks number ``first``, ``first + step``, ..., ``blocks`` of them, and add them to a group.

        A block has :data:`BLOCK` draws, and depends on its number and the seed alone. Log-weights are
        log-potentials of the model, ``log_offset`` included, minus log-probabilities under the proposal. It
        is called on several threads at once, each with another group.
        """

    def make_tally(self, cards: Integers) -> Tally:
        """Return an empty tally for the sites asked for, which have so many states each."""
        return make_tally(cards)

    def describe(self) -> dict[str, Any]:
        """Return what it is as plain data."""
        return {"name": self.name}


@dataclass(frozen=True)
class SourceSettings:
    """What sources are made for.

    Attributes
    ----------
    entropy : int
        The seed of the run.
    query : bool array (sites,)
        Which sites are asked for; of the others nothing has to be recorded.
    seconds : float
        Time limit of the run, infinite if there is none.
    draws : int or None
        Draws asked for.
    elapsed : function
        Returns the seconds since the start, compilation left out.
    threads : int
        Threads that may be used.
    stopped : function
        Tells whether Ctrl-C was pressed.
    """

    entropy: int
    query: Bools
    seconds: float
    draws: int | None
    elapsed: Callable[[], float]
    threads: int
    stopped: Callable[[], bool]


class ImportanceProposal(ABC):
    """A way to make laws that are close to a model and can be drawn from."""

    #: Name of the method of :func:`gibbsite.infer`; set by :func:`gibbsite.inference.importance.registry.register`.
    method: ClassVar[str] = "weighted"

    @abstractmethod
    def sources(self, model: FactorGraph, setting: SourceSettings) -> Iterator[tuple[float, WeightedSource]]:
        """Yield sources, each with the share of the budget (draws, or time) to be used when it is done with.

        The last one has the share 1. What is done between two of them, such as learning from the draws so far
        or preparing a better law, counts as time of the run.
        """

    def describe(self) -> dict[str, Any]:
        """Return name and parameters as plain data."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {"name": type(self).__name__, **values}
