"""Replicas of one chain on several processes: each moves some of them, and all exchange states after every sweep.

A message is a view of an array that all processes have: the numbers of the sender are copied to the same view at the
receiver. How messages are sent is left to the executor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from gibbsite._common.arrays import Array, Ints32, Words64

Arrays = dict[str, Array]


class Chain(NamedTuple):
    """A chain of replicas: its memory, the state and conditionals of its target, its order and its generator."""

    memory: Any
    x: Array
    cond: Array
    order: Ints32
    words: Words64


class Place(NamedTuple):
    """The parameters of a run as compiled code sees them, where the shares of processes begin, and a process."""

    parameters: Any
    arrays: Any
    schedule: Any
    bounds: Sequence[int]
    host: int


class Message(NamedTuple):
    """Numbers that one process sends to another."""

    sender: int
    receiver: int
    view: Array


def to_all(sender: int, hosts: int, view: Array) -> list[Message]:
    """Return messages from one of some processes to all others."""
    return [Message(sender, other, view) for other in range(hosts) if other != sender]


class Share(ABC):
    """The share of one process in a chain of replicas.

    Attributes
    ----------
    host, hosts : int
        Which of the processes this is, and how many there are.
    chain : Chain
        The chain, as far as this process knows it.
    recorder : int
        The process that has the state and the conditionals of the target when they are to be recorded.
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
        """Move the replicas of a member of a team of threads by sweep number ``turn``.

        With ``put``, conditionals of the target are kept.
        """

    @abstractmethod
    def tell(self) -> list[Message]:
        """Return what all processes need before they can exchange states."""

    @abstractmethod
    def meet(self, put: bool, show: bool) -> list[Message]:
        """Exchange replicas as all other processes do; return the states that change places.

        With ``show``, state and conditionals of the target are with the recorder afterwards.
        """

    @abstractmethod
    def own(self) -> Arrays:
        """Return the arrays that only this process has up to date: see :meth:`Ensemble.cut`."""


class Ensemble(ABC):
    """How the replicas of a chain are distributed to processes.

    Attributes
    ----------
    most : int
        Largest number of processes.
    """

    most: int

    def bounds(self, hosts: int) -> list[int]:
        """Return where the share of each process begins, and where the last one ends."""
        return [self.most * host // hosts for host in range(hosts + 1)]

    @abstractmethod
    def bare(self, memory: Any) -> Any:
        """Return the part of the memory of a chain that all processes need."""

    @abstractmethod
    def cut(self, memory: Any, low: int, high: int) -> Arrays:
        """Return the part of the memory of a chain that only one share needs."""

    @abstractmethod
    def join(self, memory: Any, before: Any, bounds: Sequence[int], owned: Sequence[Arrays]) -> Any:
        """Return the memory of a chain, given the bare one, the one before, and the arrays of all shares."""

    @abstractmethod
    def share(self, place: Place, chain: Chain, own: Arrays) -> Share:
        """Return the share of a process, given the bare memory of a chain and the result of :meth:`cut`."""
