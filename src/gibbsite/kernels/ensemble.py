"""Chains of replicas on several processes: each process moves some replicas, and all exchange states after each sweep.

A message is a view of an array that all processes have: the numbers of the sender are copied to the same view of the
receiver. The executor sends the messages.
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
    """The parameters of a run for compiled code, the bounds of the processes' shares, and a process."""

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
    """Return messages from one process to all others."""
    return [Message(sender, other, view) for other in range(hosts) if other != sender]


class Share(ABC):
    """The share of one process in a chain of replicas.

    Attributes
    ----------
    host, hosts : int
        The number of this process, and the number of processes.
    chain : Chain
        The chain, as far as this process knows it.
    recorder : int
        The process that has the state and the conditionals of the target when they are recorded.
    """

    host: int
    hosts: int
    chain: Chain
    recorder: int

    @abstractmethod
    def refresh(self) -> None:
        """Draw a new order for the next sweep if the scan is random."""

    @abstractmethod
    def sweep(self, turn: int, put: bool, members: int, member: int) -> None:
        """Make sweep number ``turn`` of the replicas of one member of a team of threads.

        If ``put`` is set, conditionals of the target are kept.
        """

    @abstractmethod
    def tell(self) -> list[Message]:
        """Return the messages that all processes need before they can exchange states."""

    @abstractmethod
    def meet(self, put: bool, show: bool) -> list[Message]:
        """Make the same exchanges of replicas as all other processes; return messages with the states that move.

        If ``show`` is set, the recorder has state and conditionals of the target afterwards.
        """

    @abstractmethod
    def own(self) -> Arrays:
        """Return the arrays of which only this process has the current values (:meth:`Ensemble.cut`)."""


class Ensemble(ABC):
    """The distribution of the replicas of a chain to processes.

    Attributes
    ----------
    most : int
        Largest number of processes.
    """

    most: int

    def bounds(self, hosts: int) -> list[int]:
        """Return the beginning of each process's share, and the end of the last one."""
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
