"""The list of proposals: what each is called as a method of :func:`gibbsite.infer`, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from gibbsite.importance.base import Proposal

P = TypeVar("P", bound=type[Proposal])

_REGISTERED: dict[str, type[Proposal]] = {}


def register(*, methods: Mapping[str, tuple[str, ...]]) -> Callable[[P], P]:
    """Register a proposal with the methods it stands for, and the tasks each of them answers.

    What is given must be literals: lists of methods are made without loading any proposal.
    """

    def add(proposal: P) -> P:
        for name in methods:
            _REGISTERED[name] = proposal
        return proposal

    return add


def make_proposal(method: str) -> Proposal:
    """Return the proposal of a method with its default parameters.

    Examples
    --------
    >>> make_proposal("mini-bucket")
    MiniBucket(entries=None)
    """
    import gibbsite.importance  # noqa: F401  (registers all of them)

    return _REGISTERED[method]()
