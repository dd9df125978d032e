"""Models of numbers in intervals, and of states beside them: products of factors that are functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite.errors import ModelError
from gibbsite.model.base import Model
from gibbsite.model.domain import Domains, Interval, Label, SiteKey, make_domains
from gibbsite.model.functions import FunctionFactors, product_factors
from gibbsite.model.reals import read_reals


class ContinuousModel(Model):
    """A density over numbers in intervals, and states: the exponential of a sum of factors; immutable.

    Parameters
    ----------
    sites : mapping or int
        Name -> ``gs.Interval(low, high)`` with finite bounds, or state labels, or a number of states; or only
        how many sites there are, all of the interval given as ``states``.
    factors : iterable
        Groups of factors (:class:`FunctionFactors`, :func:`product_factors` and so on); or single ones as
        (function, sites), where the function takes the array of their values.
    states : Interval, labels or int, optional
        What all sites are, when ``sites`` is a number.

    Notes
    -----
    A site that has states is seen by functions as its code 0, 1, ... .

    Examples
    --------
    >>> model = ContinuousModel(
    ...     {"position": Interval(-2.0, 2.0), "side": ["left", "right"]},
    ...     [(lambda x: -8.0 * (x[0] - 2.0 * x[1] + 1.0) ** 2, ("position", "side"))],
    ... )
    >>> model
    ContinuousModel(2 sites, 1 of them numbers, 1 factor)
    """

    __slots__ = ("_digest", "_domains", "_groups", "_structure")

    def __init__(
        self,
        sites: Mapping[str, Any] | int,
        factors: Iterable[FunctionFactors | tuple[Any, Any]] = (),
        *,
        states: Interval | Sequence[Label] | int | None = None,
    ) -> None:
        self._domains = make_domains(sites, states)
        low, high = self._domains.bounds
        unbounded = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
        if unbounded.size:
            name = self._domains.names[int(unbounded[0])]
            raise ModelError(f"the site {name!r} has an interval without bounds; factors need finite ones.")
        if not isinstance(factors, Iterable):
            raise ModelError(f"factors must be a list of groups or of (function, sites), got {factors!r}.")
        self._groups = tuple(self._read_group(group, number) for number, group in enumerate(factors))
        self._structure: dict[str, Any] = {}
        self._digest: str | None = None

    def _read_group(self, given: Any, number: int) -> FunctionFactors:
        if isinstance(given, FunctionFactors):
            given.check(self._domains)
            return given
        if not isinstance(given, tuple) or len(given) != 2:
            raise ModelError(
                f"factor {number} must be a group such as gs.FunctionFactors(...), or (function, sites), got "
                f"{given!r}."
            )
        function, scope = given
        return FunctionFactors(function, [self._domains.positions(scope, f"factor {number}")])

    @property
    def domains(self) -> Domains:
        """Names, intervals and labels of the sites."""
        return self._domains

    @property
    def groups(self) -> tuple[FunctionFactors, ...]:
        """All factors."""
        return self._groups

    @property
    def structure(self) -> dict[str, Any]:
        """Cache of what was found out about the model: bounds, colors."""
        return self._structure

    @property
    def digest(self) -> str:
        """Hash of the whole content."""
        if self._digest is None:
            from gibbsite._foreign import digest_of

            digest = hashlib.blake2b(digest_size=16)
            digest.update(repr((self._domains.names.identity(), self._domains.kinds)).encode())
            digest.update(np.ascontiguousarray(self._domains.kind_of).tobytes())
            for group in self._groups:
                digest.update(f"{digest_of(group.function)}{group.weight}{group.always}".encode())
                digest.update(f"{group.scopes.shape}{group.parameters.shape}".encode())
                digest.update(group.scopes.tobytes())
                digest.update(group.parameters.tobytes())
            self._digest = digest.hexdigest()
        return self._digest

    def index(self, site: SiteKey) -> int:
        """Return the position of a site given by name or position."""
        return self._domains.position(site)

    def __repr__(self) -> str:
        many = sum(group.size for group in self._groups)
        numbers = int(self._domains.numbers.sum())
        return (
            f"ContinuousModel({self.n_sites:,} sites, {numbers:,} of them numbers, "
            f"{many:,} factor{'s' * (many != 1)})"
        )


def continuous_spins(
    couplings: npt.ArrayLike, *, interval: Interval | None = None, weight: float = 1.0
) -> ContinuousModel:
    """Return continuous spins: density exp(sum over pairs of coupling * x_i * x_j), each x in an interval.

    Parameters
    ----------
    couplings : float array (n, n)
        Symmetric; the diagonal is not read, zeros are no factors.
    interval : Interval, optional
        From 0 to 1 by default.
    weight : float
        Multiplies all couplings.

    Examples
    --------
    >>> continuous_spins([[0.0, 1.0], [1.0, 0.0]])
    ContinuousModel(2 sites, 2 of them numbers, 1 factor)
    """
    matrix = read_reals(couplings, "couplings")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
        raise ModelError("couplings must be a symmetric matrix.")
    above = np.triu(matrix, 1)
    pairs = np.argwhere(above != 0.0)
    factors = [product_factors(pairs, above[tuple(pairs.T)], weight=weight)] if len(pairs) else []
    return ContinuousModel(len(matrix), factors, states=Interval(0.0, 1.0) if interval is None else interval)
