"""Quantiles of numbers, their standard errors, and highest-density intervals, from recorded draws.

The circle of an angle is cut opposite to the mean direction of its draws, so that quantiles are measured from
there; its highest-density interval is the shortest arc, wherever that is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import is_iterable
from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Angle
from gibbsite.results.measure.diagnostics import ess
from gibbsite.results.measure.measurement import SPREADS, source_of_errors, spread_error

if TYPE_CHECKING:
    from gibbsite.results.result import Result

Sites = Sequence[str | int] | str | int | None
Probabilities = Sequence[float] | float
QUARTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
# Between these percentiles a normal law has one standard deviation to both sides.
_ONE_SD = (0.15865525393145707, 0.8413447460685429)


def find_quantiles(
    result: Result, sites: Sites, probabilities: Sequence[float] | float
) -> dict[str, dict[float, float]]:
    """Return quantiles by site and probability; see ``Result.quantiles``."""
    names, draws = recorded_numbers(result, sites)
    at = read_probabilities(probabilities)
    return _by_name(names, at, np.quantile(_pooled(draws), at, axis=0))


def find_quantile_errors(
    result: Result, sites: Sites, probabilities: Sequence[float] | float
) -> dict[str, dict[float, float]]:
    """Return standard errors of quantiles; see ``Result.quantiles_mcse`` for the method."""
    names, draws = recorded_numbers(result, sites)
    at = read_probabilities(probabilities)
    source = source_of_errors(result.errors, result.chains)
    if source == "draws":
        errors = np.stack([error_of_quantile(draws, p) for p in at])
    elif source in SPREADS:
        errors = spread_error(np.moveaxis(np.quantile(draws, at, axis=1), 0, 1), source)
    else:
        errors = np.full((len(at), len(names)), np.nan)
    return _by_name(names, at, errors)


def find_hdi(result: Result, sites: Sites, probability: float) -> dict[str, tuple[float, float]]:
    """Return the shortest interval that holds a share of the draws, by site."""
    names, draws = recorded_numbers(result, sites)
    (share,) = read_probabilities(probability)
    found = {}
    for k, name in enumerate(names):
        kind = result.domains.kind(result.domains.position(name))
        values = _pooled(draws)[:, k]
        within = int(share * values.size)
        if isinstance(kind, Angle):
            values = np.sort(kind.low + np.mod(values - kind.low, kind.period))
            ordered = np.concatenate([values, values[:within] + kind.period])  # arcs go round
        else:
            ordered = np.sort(values)
        first = int((ordered[within:] - ordered[: ordered.size - within]).argmin())
        found[name] = float(ordered[first]), float(ordered[first + within])
    return found


def unroll(values: Array, kind: Angle) -> Floats:
    """Return angles as numbers on a line that is cut opposite to their mean direction.

    Examples
    --------
    >>> unroll(np.array([350.0, 10.0, 12.0]), Angle(360.0)).round(9).tolist()
    [-10.0, 10.0, 12.0]
    """
    rate = 2.0 * math.pi / kind.period
    center = math.atan2(np.sin(rate * values).mean(), np.cos(rate * values).mean()) / rate
    center = kind.low + (center - kind.low) % kind.period
    half = 0.5 * kind.period
    return np.asarray(center + np.mod(values - center + half, kind.period) - half, float)


def error_of_quantile(draws: Floats, p: float) -> Floats:
    """Return the standard error of a quantile of each column of random draws (chains, draws, columns)."""
    from scipy.special import betaincinv

    pooled = _pooled(draws)
    size = ess(draws <= np.quantile(pooled, p, axis=0))
    ends = [betaincinv(size * p + 1.0, size * (1.0 - p) + 1.0, share) for share in _ONE_SD]
    low, high = (np.array([np.quantile(pooled[:, k], end[k]) for k in range(pooled.shape[1])]) for end in ends)
    error: Floats = (high - low) / 2.0
    return error


def recorded_numbers(result: Result, sites: Sites) -> tuple[list[str], Floats]:
    """Return names and draws (chains, draws, sites) of numbers, of all by default."""
    domains = result.domains
    drawn = result.draw_sites.tolist()
    real = domains.numbers
    if sites is None:
        if domains.n_sites and not real.any():
            raise ArgumentError("Quantiles are of numbers, and all sites have states; see result.marginals.")
        wanted = [site for site in drawn if real[site]]
        if not wanted:
            raise ArgumentError("Draws of numbers were not recorded; add 'draws' to record=.")
    else:
        many: Any = sites
        listed = [sites] if isinstance(sites, str) or not is_iterable(sites) else list(many)
        if not listed:
            raise ArgumentError("Quantiles need at least one site; name some, or leave sites out.")
        wanted = [domains.position(site) for site in listed]
    for site in wanted:
        name = domains.names[site]
        if not real[site]:
            raise ArgumentError(f"Quantiles are of numbers, and the site {name!r} has states; see result.marginals.")
        if site not in drawn:
            raise ArgumentError(f"Draws of {name!r} were not recorded; add 'draws' or gs.Draws([{name!r}]) to record=.")
    if not result.n_draws:
        raise ArgumentError("No draw was made, so there are no quantiles; run longer.")
    columns = [drawn.index(site) for site in wanted]
    draws = result.draws[:, :, columns].astype(float)
    for k, site in enumerate(wanted):
        kind = domains.kind(site)
        if isinstance(kind, Angle):
            draws[:, :, k] = unroll(draws[:, :, k], kind)
    return [domains.names[site] for site in wanted], draws


def _pooled(draws: Floats) -> Floats:
    return draws.reshape(-1, draws.shape[-1])


def read_probabilities(given: Any) -> list[float]:
    """Return probabilities, each between 0 and 1."""
    listed = [given] if isinstance(given, Real) else given
    try:
        found = [float(p) for p in listed]
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"Probabilities must be numbers between 0 and 1, got {given!r}.") from None
    if not found or not all(0.0 < p < 1.0 for p in found):
        raise ArgumentError(f"Probabilities must be numbers between 0 and 1, got {given!r}.")
    return found


def _by_name(names: list[str], at: list[float], table: Floats) -> dict[str, dict[float, float]]:
    return {name: {p: float(value) for p, value in zip(at, table[:, k], strict=True)} for k, name in enumerate(names)}
