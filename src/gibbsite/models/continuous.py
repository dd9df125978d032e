"""Models of numbers in intervals, and possibly of states, with factors that are functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import is_iterable
from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.base import Model
from gibbsite.models.domain import Domains, Interval, Label, SiteKey, make_domains
from gibbsite.models.functions.factors import FunctionFactors
from gibbsite.models.functions.forms import product_factors


class ContinuousModel(Model):
    """A density over numbers in intervals, and states: the exponential of a sum of factors; immutable.

    Parameters
    ----------
    sites : mapping or int
        Name -> ``gs.Interval(low, high)`` with finite bounds, ``gs.Angle()``, state labels, or a number of
        states; or only the number of sites, whose values are then given as ``states``.
    factors : iterable
        Groups of factors (:class:`FunctionFactors`, :func:`product_factors` and so on); or single ones as
        (function, sites), where the function takes the array of their values.
    states : Interval, labels or int, optional
        The values of all sites, when ``sites`` is a number.

    See Also
    --------
    LogDensity : A density given by one function.
    Gaussian : A normal distribution.
    Conditionals : A model given by its full conditionals.

    Notes
    -----
    A site that has states is seen by functions as its code 0, 1, ... . Factors may be minus infinity where
    the density is zero.

    Examples
    --------
    >>> model = ContinuousModel(
    ...     {"position": Interval(-2.0, 2.0), "side": ["left", "right"]},
    ...     [(lambda x: -8.0 * (x[0] - 2.0 * x[1] + 1.0) ** 2, ("position", "side"))],
    ... )
    >>> model
    ContinuousModel(2 sites, 1 of them numbers, 1 factor)
    """

    __slots__ = ("_groups", "_observed", "_whole")

    def __init__(
        self,
        sites: Mapping[str, Any] | int,
        factors: Iterable[FunctionFactors | tuple[Any, Any]] = (),
        *,
        states: Interval | Sequence[Label] | int | None = None,
    ) -> None:
        super().__init__(make_domains(sites, states))
        self._whole = self._domains
        self._observed: Floats = np.full(self._whole.n_sites, np.nan)
        low, high = self._domains.bounds
        unbounded = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
        if unbounded.size:
            name = self._domains.names[int(unbounded[0])]
            raise ModelError(f"the site {name!r} has an interval without bounds; factors need finite ones.")
        if not is_iterable(factors):
            raise ModelError(f"factors must be a list of groups or of (function, sites), got {factors!r}.")
        self._groups = tuple(self._read_group(group, number) for number, group in enumerate(factors))

    def _read_group(self, given: Any, number: int) -> FunctionFactors:
        if isinstance(given, FunctionFactors):
            return given.placed(self._domains)
        if not isinstance(given, tuple) or len(given) != 2:
            raise ModelError(
                f"factor {number} must be a group such as gs.factors.FunctionFactors(...), or (function, sites), "
                f"got {given!r}."
            )
        function, scope = given
        return FunctionFactors(function, [self._domains.positions(scope, f"factor {number}")])

    @property
    def whole(self) -> Domains:
        """Names, intervals and labels of all sites, observed ones included; scopes of factors refer to them."""
        return self._whole

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Smallest and largest value of all sites; of an observed site both are the observed value."""
        low, high = self._whole.bounds
        free = np.isnan(self._observed)
        return np.where(free, low, self._observed), np.where(free, high, self._observed)

    @property
    def places(self) -> tuple[Ints32, Floats]:
        """Position of all sites among the free ones, -1 - k for observed ones; the observed values."""
        free = np.isnan(self._observed)
        place = np.where(free, np.cumsum(free) - 1, -np.cumsum(~free)).astype(np.int32)
        return place, self._observed[~free]

    @property
    def evidence(self) -> dict[str, Any]:
        """The observed values: numbers, and labels of states."""
        return {
            self._whole.names[i]: self._observed[i].item()
            if self._whole.numbers[i]
            else self._whole.labels(i)[int(self._observed[i])]
            for i in np.flatnonzero(~np.isnan(self._observed)).tolist()
        }

    @property
    def evidence_labels(self) -> dict[str, tuple[Label, ...]]:
        """State labels of the observed sites, or the moments reported of numbers."""
        seen = np.flatnonzero(~np.isnan(self._observed)).tolist()
        return {self._whole.names[i]: self._whole.labels(i) for i in seen}

    def observe(self, evidence: Mapping[Any, Any]) -> ContinuousModel:
        """Return the model given the values of some sites, which are no longer free.

        Parameters
        ----------
        evidence : mapping
            Site -> number, or label of its state.

        Raises
        ------
        ModelError
            For an unknown site, a site observed before, or a value that the site cannot have.

        Examples
        --------
        >>> pair = ContinuousModel(
        ...     {"a": Interval(-2.0, 2.0), "b": ["low", "high"]}, [(lambda x: x[0] * x[1], ("a", "b"))]
        ... )
        >>> pair.observe({"b": "high"})
        ContinuousModel(1 site, 1 of them numbers, 1 factor, 1 observed)
        """
        if not isinstance(evidence, Mapping):
            raise ModelError(f"evidence must be a mapping site -> value, got {type(evidence).__name__}.")
        observed, known = self._observed.copy(), self.evidence
        for site, value in evidence.items():
            if site in known:
                raise ModelError(
                    f"the site {site!r} is already observed as {known[site]!r}; start from the model before "
                    "that evidence to change it."
                )
            i = self._whole.position(self._domains.names[self._domains.position(site, "the evidence")])
            if not np.isnan(observed[i]):
                raise ModelError(f"the evidence has the site {self._whole.names[i]!r} twice, by name and by position.")
            observed[i] = self._read_value(i, value)
        if not evidence:
            return self
        found = ContinuousModel.__new__(ContinuousModel)
        Model.__init__(found, self._whole.keep(np.isnan(observed)))
        found._whole, found._groups, found._observed = self._whole, self._groups, observed
        return found

    def _read_value(self, i: int, value: Any) -> float:
        """Return the value of a site as functions see it; refuse impossible values."""
        if not self._whole.numbers[i]:
            if np.ndim(value) or isinstance(value, Mapping):
                raise ModelError(
                    f"the evidence for {self._whole.names[i]!r} must be one of its states; likelihoods of "
                    "all of them are a factor: add (function, sites) to the model."
                )
            return float(self._whole.code(i, value))
        low, high = (bound[i] for bound in self._whole.bounds)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if self._whole.periods[i] and np.isfinite(number):
            number = low + (number - low) % self._whole.periods[i]
        if not low <= number <= high:
            raise ModelError(
                f"the site {self._whole.names[i]!r} cannot be observed as {value!r}; its values are numbers "
                f"from {low:g} to {high:g}."
            )
        return number

    @property
    def groups(self) -> tuple[FunctionFactors, ...]:
        """All factors."""
        return self._groups

    def _content(self) -> Iterator[Any]:
        from gibbsite._numba.foreign import digest_of

        yield from self._domains.content()
        if self._domains is not self._whole:
            yield repr(self._whole.names.identity()).encode() + self._observed.tobytes()
        for group in self._groups:
            yield f"{digest_of(group.function)}{group.weight}{group.always}".encode()
            yield f"{group.scopes.shape}{group.parameters.shape}".encode()
            yield from (group.scopes.tobytes(), group.parameters.tobytes())

    def index(self, site: SiteKey) -> int:
        """Return the position of a free site given by name or position."""
        if isinstance(site, str) and self._domains.names.find(site) is None and site in self.evidence:
            raise ModelError(f"the site {site!r} is observed as {self.evidence[site]!r} and no longer free.")
        return self._domains.position(site)

    def __repr__(self) -> str:
        many = sum(group.size for group in self._groups)
        numbers, observed = int(self._domains.numbers.sum()), self._whole.n_sites - self.n_sites
        return (
            f"ContinuousModel({self.n_sites:,} site{'s' * (self.n_sites != 1)}, {numbers:,} of them numbers, "
            f"{many:,} factor{'s' * (many != 1)}{f', {observed:,} observed' if observed else ''})"
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
