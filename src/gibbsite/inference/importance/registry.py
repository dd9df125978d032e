"""Which proposals there are: each registers itself, as a method of :func:`gibbsite.infer`."""

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
    """Register a class of proposals as a method; literals only, they are read without being loaded.

    Parameters
    ----------
    method : str
        Name of the method; the class without parameters is what it uses.
    tasks : tuple of str
        What it answers, of "MAR" and "PR".
    """

    def add(proposal: P) -> P:
        proposal.method = method
        _REGISTERED[method] = proposal
        return proposal

    return add


def make_proposal(method: str) -> ImportanceProposal:
    """Return the proposal of a method.

    Examples
    --------
    >>> make_proposal("forward")
    Forward(proposal='auto', entries=16384)
    """
    load_modules("gibbsite.inference.importance")
    if method not in _REGISTERED:
        raise ArgumentError(unknown("method", method, sorted(_REGISTERED)))
    return _REGISTERED[method]()
