"""What a recorder is, and which there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32
from gibbsite._common.loading import load_modules
from gibbsite._numba.foreign import Foreign, adopt

if TYPE_CHECKING:
    from gibbsite.models import Model

__all__ = [
    "MeetingRecorder",
    "OpenRecorder",
    "Prepared",
    "Recorder",
    "adopt",
    "all_recorders",
    "labels_as_numbers",
    "named_recorders",
]


@dataclass(frozen=True)
class Recorder:
    """What a run records.

    Attributes
    ----------
    word : str
        What it is called in ``record=["..."]``; empty if it needs arguments.
    of_law : bool
        It estimates something of the distribution of the model, so kernels that search for the best state refuse it.
    """

    word: ClassVar[str] = ""
    of_law: ClassVar[bool] = True

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans."""
        return {"name": type(self).__name__, **vars(self)}


class Prepared(NamedTuple):
    """What compiled code needs of an open recorder.

    ``step`` is called after every draw with the state and the recorder's block, which begins as ``block``;
    ``inner`` is a function of the user that the step calls, where there is one.
    """

    step: Foreign
    block: Floats
    inner: Foreign | None = None


@dataclass(frozen=True)
class OpenRecorder(Recorder, ABC):
    """A recorder with a compiled step and a block of numbers of its own.

    The block of a chain is part of checkpoints and of saved results. See docs/new_recorder.md.
    """

    @property
    @abstractmethod
    def key(self) -> str:
        """Its name in results."""

    @abstractmethod
    def prepare(self, model: Model) -> Prepared:
        """Return step and first block."""

    @abstractmethod
    def conclude(self, blocks: Floats, draws: int) -> Any:
        """Return what the result gives, from the blocks of all chains (chains, numbers)."""

    def grow(self, block: Floats, draws: int) -> Floats:
        """Return the block with room for ``draws`` draws; by default it needs none."""
        return block

    def admits(self, fresh: Floats, block: Floats, draws: int) -> bool:
        """Return whether a run can be continued with a block from a file after ``draws`` draws.

        ``fresh`` is a block before the first draw. A recorder whose step uses numbers of its block as positions in it
        must check them here; by default every block is accepted that is not shorter than a fresh one.
        """
        return block.size >= fresh.size

    def concludes(self, block: Floats, draws: int) -> bool:
        """Whether :meth:`conclude` accepts a block from a file; by default it does."""
        return True

    def fault(self, block: Floats) -> int | None:
        """Return the number of the first draw at which the function failed; None if it did not."""
        return None

    def seen(self, block: Floats) -> Floats:
        """Return the part of the block that the function of the user gets; all of it by default."""
        return block

    def restore(self) -> dict[str, Any]:
        """Return what :meth:`conclude` of a loaded result needs, as plain data."""
        return {"class": type(self).__name__, "key": self.key}

    @classmethod
    def revive(cls, about: dict[str, Any]) -> OpenRecorder:
        """Return a recorder from the data of :meth:`restore`; it can conclude, but need not be able to run."""
        return cls()


@dataclass(frozen=True)
class MeetingRecorder(OpenRecorder, ABC):
    """A recorder that sees all chains together, between blocks of steps: called in Python, not compiled.

    Attributes
    ----------
    every : int
        Draws from one meeting to the next; each costs some tens of microseconds besides the function itself.
    """

    every: int = 1

    def prepare(self, model: Model) -> Prepared:
        """There is no compiled step."""
        raise NotImplementedError

    def check(self, model: Model) -> None:
        """Refuse models that the recorder cannot observe; by default it observes all."""
        return

    @abstractmethod
    def meet(self, states: Array, cards: Ints32) -> Floats:
        """Return the values (groups, values) of a meeting.

        ``states`` are the state codes of all chains (chains, sites), ``cards`` numbers of states.
        """


def all_recorders() -> dict[str, type[Recorder]]:
    """Return all recorders, those of users included, by class name.

    Examples
    --------
    >>> "Observable" in all_recorders()
    True
    """
    load_modules("gibbsite.sampling.recorders")
    found: dict[str, type[Recorder]] = {}
    todo: list[type[Recorder]] = [Recorder]
    while todo:
        each = todo.pop()
        todo += each.__subclasses__()
        if not getattr(each, "__abstractmethods__", None) and each is not Recorder:
            found[each.__name__] = each
    return dict(sorted(found.items()))


def named_recorders() -> dict[str, type[Recorder]]:
    """Return the recorders that need no arguments, by the words that stand for them."""
    return {each.word: each for each in all_recorders().values() if each.word}


def labels_as_numbers(model: Any) -> tuple[Floats, Ints]:
    """Return what states are as numbers, and where those of each site are; see ``ObservedCode``.

    Labels that are numbers are taken as they are (-1 and 1 in an Ising model), others by their codes.
    """
    domains = model.domains
    if domains.numbers.any():
        return np.zeros(0), np.zeros(0, np.int64)
    rows = [_as_numbers(kind) for kind in domains.kinds]
    if len(rows) == 1:
        return rows[0], np.zeros(0, np.int64)
    first = np.concatenate([[0], np.cumsum([row.size for row in rows])])[:-1]
    return np.concatenate(rows), first[np.asarray(domains.kind_of)].astype(np.int64)


def _as_numbers(labels: Sequence[Any]) -> Floats:
    if all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels):
        return np.array(labels, float)
    return np.arange(len(labels), dtype=float)
