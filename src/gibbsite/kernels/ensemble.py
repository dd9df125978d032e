"""Replicas of one chain on several processes: each moves some of them, and all meet after every sweep.

What one process sends to the others, and which states change places, is given as views of arrays that all of them
have: a message fills with the sender's numbers the view of the same name at the receiver. How messages travel
is not defined here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from gibbsite._common.arrays import Array, Ints32, Words64

Arrays = dict[str, Array]


class Chain(NamedTuple):
    """A chain of replicas: what it carries; state and conditionals of its target; order and generator."""

    memory: Any
    x: Array
    cond: Array
    order: Ints32
    words: Words64


class Place(NamedTuple):
    """Where one of several processes is: what all of them have, where shares begin, and which one it is.

    ``parameters``, ``arrays`` and ``schedule`` are those of the run, as compiled code sees them.
    """

    parameters: Any
    arrays: Any
    schedule: Any
    bounds: Sequence[int]
    host: int


class Message(NamedTuple):
    """Numbers that a process has, and another one needs."""

    sender: int
    receiver: int
    view: Array


def to_all(sender: int, hosts: int, view: Array) -> list[Message]:
    """Return messages from one of some processes to all others."""
    return [Message(sender, other, view) for other in range(hosts) if other != sender]


class Share(ABC):
    """What one of several processes does with a chain of replicas.

    Attributes
    ----------
    host, hosts : int
        Which of the processes this is, and how many there are.
    chain : Chain
        The chain, as far as this process knows it.
    recorder : int
        The process that has the state of the target, and its conditionals, where it is asked to show them.
    """

    host: int
    hosts: int
    chain: Chain
    recorder: int

    @abstractmethod
    def refresh(self) -> None:
        """Draw a new order for the next sweep, where the scan is random."""

    @abstractmethod
    def sweep(self, turn: int, put: bool, members: int, member: int) -> None:
        """Move those of the own replicas that a member of a team of threads has, by sweep number ``turn``.

        With ``put``, conditionals of the target are kept.
        """

    @abstractmethod
    def tell(self) -> list[Message]:
        """Return what all processes must know before they can meet."""

    @abstractmethod
    def meet(self, put: bool, show: bool) -> list[Message]:
        """Exchange replicas as all other processes do; return the states that change places.

        With ``show``, state and conditionals of the target are with the recorder afterwards.
        """

    @abstractmethod
    def own(self) -> Arrays:
        """Return what this process knows better than the others: see :meth:`Ensemble.cut`."""


class Ensemble(ABC):
    """How the replicas of a chain are shared out.

    Attributes
    ----------
    most : int
        How many processes can have a share.
    """

    most: int

    def bounds(self, hosts: int) -> list[int]:
        """Return where the share of each of some processes begins, and where the last one ends."""
        return [self.most * host // hosts for host in range(hosts + 1)]

    @abstractmethod
    def bare(self, memory: Any) -> Any:
        """Return what the memory of a chain has that all processes need."""

    @abstractmethod
    def cut(self, memory: Any, low: int, high: int) -> Arrays:
        """Return what a share needs of the memory of a chain besides."""

    @abstractmethod
    def join(self, memory: Any, before: Any, bounds: Sequence[int], owned: Sequence[Arrays]) -> Any:
        """Return the memory of a chain, given the bare one, the one before, and what all shares have."""

    @abstractmethod
    def share(self, place: Place, chain: Chain, own: Arrays) -> Share:
        """Return the share of a process, given the bare memory of a chain and what :meth:`cut` returned."""
