"""Bounds on the spectral gap of minibatch samplers with interpolation: theorems 4 and 5 of Zhang and De Sa (2019).

The theorems are given in a corrected form. Let every factor be analytic in each of its numbers, and at most c M in
absolute value in the ellipse around the interval whose half axes sum to rho half widths. The minibatch does not change
if all bounds M are multiplied by c, so the theorems hold with c L in the place of L:

    PGDA:   gap >= (1 - 4 sqrt(F)) exp(-4 (c L)^2 / lambda) gap(Gibbs)   if lambda log 2 >= 4 c L,
            F = 4 exp(8 c L) rho^(-k/2) / (sqrt(rho) - 1) + exp(16 c L rho^(-m/2) / (sqrt(rho) - 1)) - 1
    PGITS:  gap >= (1 - G) exp(-4 (c L)^2 / lambda) gap(Gibbs)   if lambda >= 2 c L,
            G = 8 exp(c L) rho^(-m/2) / sqrt(rho - 1)

A polynomial of degree d that is bounded by M on the interval is bounded by rho^d M in the ellipse (Bernstein), so
c = rho^d. For other factors that declare how far they can be from their values on the interval, c is 1 plus the
largest ratio of this distance to M (:func:`growth_of`). The bound holds for every rho, and the best one is taken. The
constants are rough: almost all proposals are accepted at degrees far below those to which the theorems apply.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.graphs.functions.bounds import Bounds, FunctionModel

_ELLIPSES = 1.0 + np.geomspace(1e-3, 20.0, 400)  # rho
_APART = 16  # ellipses between two for which the growth of factors is computed
_ASSUMED = 2  # degree for which constants of other factors are stated
_MOST = 512  # largest degree that users can choose


def polynomial_growth(power: int) -> Floats:
    """Return c for each ellipse if all factors are polynomials of a degree."""
    found: Floats = _ELLIPSES**power
    return found


def growth_of(factors: FunctionModel, bounds: Bounds, most: float) -> Floats | None:
    """Return c for each ellipse, infinity where it is above ``most``; None if it is not known for some factors."""
    found, first = np.ones(_ELLIPSES.size), 0
    for group in factors.groups:
        height = bounds.bound[first : first + group.size]
        first += group.size
        if group.degree is not None:
            found = np.maximum(found, polynomial_growth(group.degree))
        elif group.growth is None:
            return None
        else:
            free = np.isin(np.arange(factors.domains.n_sites), factors.free) & factors.domains.numbers
            drawn = free[np.broadcast_to(np.atleast_2d(group.scopes), (group.size, group.arity))]
            drawn &= (height > 0.0)[:, None]
            begin = 0
            for last in range(_APART - 1, _ELLIPSES.size, _APART):  # what bounds a factor in an ellipse does so inside
                far = group.grown(*factors.box, float(_ELLIPSES[last]))
                c = 1.0 + np.divide(far, height[:, None], out=np.zeros(far.shape), where=drawn).max(initial=0.0)
                if c > most:
                    break
                found[begin : last + 1] = np.maximum(found[begin : last + 1], c)
                begin = last + 1
            found[begin:] = np.inf
    return found


def kept_double(size: float, largest: float, growth: Floats, energy: int, density: int) -> float:
    """Return a lower bound on the gap of PGDA divided by that of plain Gibbs; 0 if nothing is known.

    ``growth`` is c for each ellipse; ``energy`` (m) and ``density`` (k) are the degrees of the interpolants.
    """
    rho, bound, plain = _setting(size, largest, growth, 4.0 / math.log(2.0))
    root = np.sqrt(rho) - 1.0
    fits = 4.0 * rho ** (-energy / 2.0) <= root
    with np.errstate(over="ignore"):  # infinite errors keep nothing
        error = np.exp(np.log(4.0 / root) + 8.0 * bound - 0.5 * density * np.log(rho))
        error += np.expm1(16.0 * bound * rho ** (-energy / 2.0) / root)
    return float(np.max(np.where(fits, plain * (1.0 - 4.0 * np.sqrt(error)), 0.0), initial=0.0))


def kept_single(size: float, largest: float, growth: Floats, density: int) -> float:
    """Return a lower bound on the gap of PGITS, which has one interpolant, divided by that of plain Gibbs."""
    rho, bound, plain = _setting(size, largest, growth, 2.0)
    with np.errstate(over="ignore"):
        lost = np.exp(np.log(8.0) + bound - 0.5 * np.log(rho - 1.0) - 0.5 * density * np.log(rho))
    return float(np.max(plain * (1.0 - lost), initial=0.0))


def degrees_needed(size: float, largest: float, growth: Floats, double: bool) -> tuple[int, ...] | None:
    """Return degrees (m, k), or (m,), at which half of exp(-4 L^2 / lambda) is guaranteed; None if above 512."""
    rho, bound, _ = _setting(size, largest, growth, 4.0 / math.log(2.0) if double else 2.0)
    # the share of the gap of minibatches that interpolation may cost
    spare = 1.0 - 0.5 * np.exp(np.minimum(4.0 * (bound**2 - largest**2) / size, 1.0))
    rho, bound, spare = (each[spare > 0.0] for each in (rho, bound, spare))
    if not double:
        found = [2.0 * (np.log(8.0 / spare) + bound - 0.5 * np.log(rho - 1.0)) / np.log(rho)]
    else:
        root, share = np.sqrt(rho) - 1.0, 0.5 * (spare / 4.0) ** 2  # half of F for each of its terms
        energy = np.maximum(np.log(np.maximum(16.0 * bound / np.log1p(share), 1.0) / root), np.log(4.0 / root))
        found = [2.0 * each / np.log(rho) for each in (energy, np.log(4.0 / (root * share)) + 8.0 * bound)]
    degrees = np.ceil(np.maximum(found, 1.0))
    degrees = degrees[:, (degrees <= _MOST).all(axis=0)]
    if not degrees.size:
        return None
    return tuple(int(each) for each in degrees[:, degrees.sum(axis=0).argmin()])


def least_size(largest: float, double: bool) -> float:
    """Return the smallest lambda to which a theorem applies."""
    return largest * (4.0 / math.log(2.0) if double else 2.0)


def interpolant_warning(
    size: float, largest: float, growth: Floats | None, unknown: str, degrees: tuple[int, ...] | None, double: bool
) -> str:
    """Return what a theorem guarantees for interpolants of these degrees; None means that degrees adapt.

    ``unknown`` says why the theorem does not cover the model, if ``growth`` is None.
    """
    theorem, least = 4 if double else 5, least_size(largest, double)
    silent = f"Theorem {theorem} does not cover interpolants"
    corrected = "their error is corrected by rejecting proposals"
    if size < least:
        return f"{silent}, because lambda is below {least:.4g}; {corrected}."
    if growth is None:
        needed = degrees_needed(size, largest, polynomial_growth(_ASSUMED), double)
        half = f"{_spell(needed)} guarantees" if needed else f"no degree up to {_MOST} guarantees"
        return (
            f"{silent}, because {unknown}; {corrected}. For factors that grow outside their "
            f"interval no faster than polynomials of degree {_ASSUMED}, {half} half of that."
        )
    if degrees is not None:
        keeps = kept_double if double else kept_single
        kept = keeps(size, largest, growth, *degrees)
        if kept > 0.0:
            return f"With interpolants of {_spell(degrees)} it is at least {kept:.3g} times (theorem {theorem})."
        silent += f" of {_spell(degrees)}"
    needed = degrees_needed(size, largest, growth, double)
    half = f"{_spell(needed).capitalize()} guarantees" if needed else f"No degree up to {_MOST} guarantees"
    return f"{silent}{', whose degrees adapt' if degrees is None else ''}; {corrected}. {half} half of that."


def _spell(degrees: tuple[int, ...]) -> str:
    return "degree " + " and ".join(f"{name} = {value}" for name, value in zip("mk", degrees, strict=False))


def _setting(size: float, largest: float, growth: Floats, least: float) -> tuple[Floats, Floats, Floats]:
    """Return all rho with lambda >= least c L, c L for each, and the share of the gap that minibatches keep."""
    fits = np.isfinite(growth)
    fits[fits] &= size >= least * growth[fits] * largest
    bound = growth[fits] * largest
    return _ELLIPSES[fits], bound, np.exp(-4.0 * bound**2 / size)
