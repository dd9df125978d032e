"""Factors that are functions: many of one form, each with its own sites and parameters.

A factor is ``weight * f(values of its sites, its parameters)``, a part of the log-density. Minibatch methods
need its lower and upper bound on the box of its sites, and use its height above the lower one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains, frozen
from gibbsite.models.factor import store

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Slopes = Callable[[Floats, Floats, Floats], npt.ArrayLike]
Bounds = Callable[[Floats, Floats, Floats], tuple[npt.ArrayLike, npt.ArrayLike]]
Growth = Callable[[Floats, Floats, Floats, float], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class FunctionFactors:
    """Many factors given by one function.

    Parameters
    ----------
    function : callable
        ``f(x, parameters) -> number``, both arrays, or ``f(x)``; Numba must be able to compile it.
    scopes : array (factors, sites) or (sites,)
        The sites of each factor, by name or position; a single row is for all factors.
    parameters : float array (factors, parameters), optional
        One row for each factor; by default one factor without any.
    bounds : (low, high) or callable, optional
        Smallest and largest value of f on the box of the sites, a number or an array (factors,) each; or a
        function that computes them from parameters, lower and upper bounds of the sites (factors, sites).
        By default they are found by interpolation. A value outside the bounds in a run is an error.
    weight : float
        A factor of all values, as one over a temperature.
    slopes : array (factors,), float or callable, optional
        The largest change of f per unit of (Euclidean) distance in the box; or a function as for
        ``bounds``. :class:`gibbsite.kernels.TunaMH` needs them.
    degree : int, optional
        If f is a polynomial of degree 1 or 2 in each of its sites (the others fixed), its degree: conditionals can
        then be drawn from without approximation.
    always : bool
        Minibatch methods evaluate these factors at every update; meant for a few important ones, such as priors.
    name : str, optional
        For messages.

    Examples
    --------
    >>> spring = FunctionFactors(lambda x, k: -k[0] * (x[0] - x[1]) ** 2, [[0, 1], [1, 2]], [[1.0], [2.0]])
    >>> spring.size, spring.arity
    (2, 2)
    """

    function: Any
    scopes: Array
    parameters: Floats
    bounds: Any
    slopes: Any
    weight: float
    degree: int | None
    growth: Any
    always: bool
    name: str

    @checked
    def __init__(
        self,
        function: Any,
        scopes: npt.ArrayLike,
        parameters: npt.ArrayLike | None = None,
        *,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike] | Bounds | None = None,
        slopes: npt.ArrayLike | Slopes | None = None,
        weight: float = 1.0,
        degree: int | None = None,
        growth: Growth | None = None,
        always: bool = False,
        name: str | None = None,
    ) -> None:
        name = name or getattr(function, "__name__", type(function).__name__)
        if not callable(function):
            raise ModelError(f"factors need a function f(x, parameters), got {function!r}.")
        try:
            found = frozen(np.zeros((1, 0)) if parameters is None else parameters, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"the factors {name!r} need numbers as parameters.") from None
        where = read_scopes(scopes)
        if found.ndim == 1:
            found = frozen(found[:, None], np.float64)
        if found.ndim != 2 or not len(found):
            raise ModelError(f"the factors {name!r} need parameters (factors, parameters), got {found.shape}.")
        if not np.isfinite(found).all():
            row = int(np.argwhere(~np.isfinite(found))[0, 0])
            raise ModelError(f"the factors {name!r} have a parameter that is not a number, in factor {row}.")
        if parameters is None and where.ndim == 2:
            found = frozen(np.zeros((len(where), 0)), np.float64)
        if where.ndim not in (1, 2) or not where.size or (where.ndim == 2 and len(where) != len(found)):
            raise ModelError(
                f"the factors {name!r} need scopes (factors, sites) for {len(found)} factors, or one scope "
                f"for all, got shape {where.shape}."
            )
        if not math.isfinite(weight) or weight <= 0:
            raise ModelError(f"the weight of the factors {name!r} must be a positive number, got {weight}.")
        if degree not in (None, 1, 2):
            raise ModelError(f"the degree of the factors {name!r} must be 1, 2 or None, got {degree!r}.")
        store(self, function=function, scopes=where, parameters=found, bounds=bounds, slopes=slopes)
        store(self, weight=float(weight), degree=degree, growth=growth, always=bool(always), name=name)

    @property
    def arguments(self) -> int:
        """Number of arguments of the function: the values alone, or parameters too."""
        function = getattr(self.function, "py_func", self.function)
        try:
            taken = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return 2
        return min(2, sum(one.default is one.empty and one.kind in _POSITIONAL for one in taken))

    @property
    def size(self) -> int:
        """Number of factors."""
        return len(self.parameters)

    @property
    def arity(self) -> int:
        """Number of sites of each."""
        return int(self.scopes.shape[-1])

    @property
    def common(self) -> bool:
        """Whether all factors have the same sites."""
        return self.scopes.ndim == 1

    def steepest(self, low: Floats, high: Floats) -> Floats | None:
        """Return the largest change of each factor per unit of distance, None if it is not known."""
        if self.slopes is None:
            return None
        scopes = np.broadcast_to(np.atleast_2d(self.scopes), (self.size, self.arity))
        given = self.slopes(self.parameters, low[scopes], high[scopes]) if callable(self.slopes) else self.slopes
        try:
            found = np.array(np.broadcast_to(np.asarray(given, float), (self.size,)))
        except (TypeError, ValueError):
            raise ModelError(f"the slopes of the factors {self.name!r} must be {self.size} numbers.") from None
        if not (np.isfinite(found).all() and (found >= 0).all()):
            raise ModelError(f"the slopes of the factors {self.name!r} must be finite and not negative.")
        return self.weight * found

    def grown(self, low: Floats, high: Floats, rho: float) -> Floats:
        """Return ``growth`` of each factor for each of its sites, times the weight."""
        scopes = np.broadcast_to(np.atleast_2d(self.scopes), (self.size, self.arity))
        try:
            given = np.asarray(self.growth(self.parameters, low[scopes], high[scopes], rho), float)
            found = np.array(np.broadcast_to(given, (self.size, self.arity)))
        except (TypeError, ValueError):
            raise ModelError(f"the growth of the factors {self.name!r} must be numbers (factors, sites).") from None
        if not (found >= 0).all():
            raise ModelError(f"the growth of the factors {self.name!r} must not be negative.")
        return self.weight * found

    def placed(self, domains: Domains) -> FunctionFactors:
        """Return the factors with positions for names; refuse unknown sites, and scopes with a site twice."""
        if self.scopes.dtype != object:
            self._check(domains)
            return self
        where = f"a factor of {self.name!r}"
        rows = [domains.positions(row, where) for row in np.atleast_2d(self.scopes).tolist()]
        return replace(self, scopes=np.array(rows).reshape(self.scopes.shape))

    def _check(self, domains: Domains) -> None:
        outside = (self.scopes < 0) | (self.scopes >= domains.n_sites)
        if outside.any():
            raise ModelError(
                f"the factors {self.name!r} name site {self.scopes[outside].flat[0]}, but positions run from "
                f"0 to {domains.n_sites - 1}."
            )
        ordered = np.sort(np.atleast_2d(self.scopes), axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if twice.any():
            where = domains.scope_text(np.atleast_2d(self.scopes)[int(np.argmax(twice))])
            raise ModelError(f"a factor of {self.name!r} names a site twice: {where}.")


def read_scopes(given: Any) -> Array:
    """Return scopes as a read-only array: of positions, or of names (and positions) as they were given."""
    try:
        if np.asarray(given).dtype.kind in "iu":
            if np.abs(given).max(initial=0) >= 2**31:
                raise ModelError("the scopes of factors hold positions of fewer than 2**31 sites.")
            return frozen(given, np.int32)
        found = np.array([given] if isinstance(given, str) else given, dtype=object)
    except ValueError:  # rows of different lengths
        found = np.array([None])
    if not all(isinstance(site, str | int | np.integer) for site in found.flat):
        raise ModelError(
            "the scopes of factors are names or positions of sites, the same number of them for each factor."
        )
    found.setflags(write=False)
    return found
