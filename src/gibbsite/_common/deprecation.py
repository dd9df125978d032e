"""Names that will go away: they work until a version that the warning names.

A function, a class or an argument is deprecated for at least one minor version. ``tests/common/test_deprecation.py``
fails as soon as the version of the package has reached the version of a removal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from gibbsite._common.notice import warn_user
from gibbsite.errors import ArgumentError

Part = TypeVar("Part", bound=Callable[..., Any])


class Deprecation(NamedTuple):
    """What is deprecated, since which version, the version that removes it, and what to use."""

    what: str
    since: str
    removed: str
    instead: str

    def message(self) -> str:
        """Return the text of the warning."""
        return (
            f"{self.what} is deprecated since gibbsite {self.since} and will be removed in {self.removed}; "
            f"use {self.instead}."
        )

    def warn(self) -> None:
        """Warn the user's code, which is two calls above."""
        warn_user(self.message(), DeprecationWarning)


#: All deprecations of modules that have been loaded.
DEPRECATIONS: list[Deprecation] = []


def _declare(what: str, since: str, removed: str, instead: str) -> Deprecation:
    found = Deprecation(what, since, removed, instead)
    DEPRECATIONS.append(found)
    return found


def deprecated(*, since: str, removed: str, instead: str) -> Callable[[Part], Part]:
    """Deprecate a function or a method, or a class when its constructor is decorated.

    Parameters
    ----------
    since, removed : str
        Versions: the first that warns, and the first that does not have it any more.
    instead : str
        What to use.

    Examples
    --------
    >>> import warnings
    >>> @deprecated(since="1.2", removed="1.4", instead="gs.sample")
    ... def draw():
    ...     return 1
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     print(draw(), found[0].message)
    1 draw() is deprecated since gibbsite 1.2 and will be removed in 1.4; use gs.sample.
    """

    def decorate(function: Part) -> Part:
        name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
        found = _declare(f"{name}()", since, removed, instead)

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            found.warn()
            return function(*args, **given)

        return cast(Part, call)

    return decorate


def renamed_argument(old: str, new: str, *, since: str, removed: str) -> Callable[[Part], Part]:
    """Let a function take an argument by its old name, too.

    Examples
    --------
    >>> import warnings
    >>> @renamed_argument("seed", "rng", since="1.2", removed="1.4")
    ... def draw(rng=None):
    ...     return rng
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     print(draw(seed=3), found[0].message)
    3 The argument 'seed' of draw() is deprecated since gibbsite 1.2 and will be removed in 1.4; use 'rng'.
    """

    def decorate(function: Part) -> Part:
        name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
        found = _declare(f"The argument {old!r} of {name}()", since, removed, repr(new))

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            if old in given:
                if new in given:
                    raise ArgumentError(f"{name}() got both {new!r} and its old name {old!r}; leave out {old!r}.")
                found.warn()
                given[new] = given.pop(old)
            return function(*args, **given)

        return cast(Part, call)

    return decorate
