"""The scans of the library, each of which is registered in its own module.

The public names of :mod:`gibbsite.scans`, the choices of the command line, the scans that ``warmup`` compiles and the
scans with which kernels are verified are derived from the registrations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from gibbsite._common.arguments import check_integer, checked_constructor
from gibbsite._common.loading import import_downwards, load_modules, read_declarations

if TYPE_CHECKING:
    from gibbsite.scans.base import Scan

Proof = Callable[[int], Sequence[Mapping[str, Any]]]
S = TypeVar("S", bound="type[Scan]")


@dataclass(frozen=True)
class Registration:
    """The declaration of a scan.

    ``name`` is its name on the command line, None for scans that need arguments. ``proof`` maps a number of units to
    the arguments of the instances with which kernels are verified.
    """

    scan: type[Scan]
    name: str | None
    proof: Proof
    default: bool = False


_REGISTERED: dict[str, Registration] = {}


def register(*, name: str | None = None, proof: Proof | None = None, default: bool = False) -> Callable[[S], S]:
    """Register a scan; the arguments are the attributes of :class:`Registration`.

    By default kernels are verified with the scan without arguments. ``name`` must be a literal, because it is read from
    the source.
    """

    def add(scan: S) -> S:
        checked_constructor(scan)
        key = f"{scan.__module__}.{scan.__name__}"
        _REGISTERED[key] = Registration(scan, name, proof or (lambda n: [{}]), default)
        return scan

    return add


def registered_scans() -> tuple[Registration, ...]:
    """Return all registrations, the default first, then by the name of the class."""
    load_modules("gibbsite.scans")
    return tuple(sorted(_REGISTERED.values(), key=lambda one: (not one.default, one.scan.__name__)))


def proof_scans(n_units: int) -> tuple[Scan, ...]:
    """Return instances of every scan, for a model of ``n_units`` sites or blocks."""
    many = check_integer("n_units", n_units, 1, 1_000_000)
    return tuple(one.scan(**given) for one in registered_scans() for given in one.proof(many))


def make_scan(name: str) -> Scan:
    """Return a scan by its name on the command line."""
    for given in read_declarations("scans"):
        if given.get("name") == name:
            import_downwards(given["module"])
    return next(one.scan() for one in _REGISTERED.values() if one.name == name)
