"""Versions on which numbers depend: workers must have the same as whoever sends them work."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from gibbsite.errors import ArgumentError

_NAMES = ("gibbsite", "numba", "llvmlite", "numpy")


def installed_versions() -> dict[str, str]:
    """Return the versions of this process.

    Examples
    --------
    >>> sorted(installed_versions())
    ['gibbsite', 'llvmlite', 'numba', 'numpy', 'python']
    """
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _NAMES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def differences(other: dict[str, str]) -> str:
    """Tell in which versions this process differs from another one; empty if in none.

    Examples
    --------
    >>> differences({**installed_versions(), "numba": "0.1"}).endswith("instead of 0.1")
    True
    """
    here = installed_versions()
    return ", ".join(
        f"{name} {here[name]} instead of {other.get(name)}" for name in here if other.get(name) != here[name]
    )


def refuse_others(worker: str, other: str) -> None:
    """Refuse to work for a process that has other versions.

    Examples
    --------
    >>> refuse_others("tcp://127.0.0.1:1", "")
    """
    if other:
        raise ArgumentError(
            f"Worker {worker} has other versions than who asks it, and might give other numbers: {other}. "
            "Install the same ones."
        )
