"""Registry of proposals, each of which is a method of :func:`gibbsite.infer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gibbsite._common.loading import load_modules
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError
from gibbsite.inference.importance.base import ImportanceProposal

P = TypeVar("P", bound=type[ImportanceProposal])
_REGISTERED: dict[str, type[ImportanceProposal]] = {}


def register(*, method: str, tasks: tuple[str, ...]) -> Callable[[P], P]:
    """Register a class of proposals as a method for some of the tasks "MAR" and "PR".

    The class without parameters is used. Give literals only, which are read without loading the module.
    """

    def add(proposal: P) -> P:
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
