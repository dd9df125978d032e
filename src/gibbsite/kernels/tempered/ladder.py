"""The ladder: inverse temperatures from 0, the reference, to 1, the model.

Swaps between neighbours are rejected with probability r(a, b), and for close rungs these add up: their sum
from 0 to beta is the communication barrier up to beta, whatever the ladder (Syed et al. 2022). Equal rates
are found by dividing the barrier evenly; the number of rungs at which states make most round trips per unit
of work is about twice the whole barrier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError

#: Rungs of a ladder that is found, at least and at most.
FEWEST, MOST = 4, 128
# Of the first ladder, about which nothing is known: zero, and powers from here to one.
_FIRST, _LOWEST = 12, 0.002
# Probabilities above this one do not show how far rungs are apart.
_HOPELESS = 0.999


@dataclass(frozen=True, eq=False)
class Ladder:
    """A ladder and what belongs to it."""

    betas: Floats  # (K,): inverse temperatures, rising to 1
    log_reference: Floats  # (cells,): logarithms of the probabilities of the states of all sites in the reference
    # (K - 1,): about log Z_{k+1} - log Z_k: where averages on both sides of a pair are compared. Any numbers are right,
    # these make the errors small.
    cut: Floats


def check_ladder(ladder: Ladder) -> None:
    """Refuse a ladder, which may come from a file, that is none."""
    betas = ladder.betas
    for one in (betas, ladder.log_reference, ladder.cut):
        if one.dtype != np.float64 or one.ndim != 1 or np.isnan(one).any():
            raise ValueError("the ladder is not made of numbers")
    if betas.size < 2 or betas[0] < 0.0 or betas[-1] != 1.0 or not (np.diff(betas) > 0.0).all():
        raise ValueError("inverse temperatures do not rise to 1")
    if ladder.cut.size != betas.size - 1 or not np.isfinite(ladder.cut).all():
        raise ValueError("there is no cut for each pair of rungs")


def first_betas() -> Floats:
    """Return the ladder that is tried first."""
    return np.concatenate([[0.0], np.geomspace(_LOWEST, 1.0, _FIRST - 1)])


def read_betas(ladder: Any) -> Floats:
    """Return a ladder that was given, checked."""
    name = argument("ladder")
    if isinstance(ladder, str) or not isinstance(ladder, Iterable):
        raise ArgumentError(
            f"{name} must be {argument('ladder', 'auto')} or a list of inverse temperatures, got {ladder!r}."
        )
    listed = list(ladder)
    if not all(isinstance(beta, Real) and math.isfinite(beta) for beta in listed):
        raise ArgumentError(f"{name} must hold numbers from 0 to 1, got {ladder!r}.")
    betas = np.array(listed, float)
    if len(betas) < 2:
        raise ArgumentError(f"{name} needs at least two inverse temperatures, got {len(betas)}.")
    if betas.min() < 0.0 or betas.max() > 1.0:
        worst = betas.min() if betas.min() < 0.0 else betas.max()
        raise ArgumentError(
            f"{name} has the inverse temperature {worst:g}, outside of 0 (the reference) to 1 (the model)."
        )
    falls = np.flatnonzero(np.diff(betas) <= 0.0)
    if falls.size:
        a, b = betas[falls[0]], betas[falls[0] + 1]
        raise ArgumentError(f"{name} must rise from rung to rung, but {b:g} follows {a:g}; sort it.")
    if betas[-1] != 1.0:
        raise ArgumentError(f"{name} must end at 1, the model itself, not at {betas[-1]:g}.")
    return betas


def spread_rungs(betas: Floats, rejected: Floats, rungs: int | None = None) -> Floats:
    """Return a ladder that divides the barrier evenly.

    Parameters
    ----------
    betas : float array (K,)
        The ladder that was tried.
    rejected : float array (K - 1,)
        Probabilities with which swaps of neighbours were rejected there.
    rungs : int, optional
        How many to place; by default as many as the barrier asks for.
    """
    distance = distances(rejected)
    passed = np.concatenate([[0.0], np.cumsum(distance)])
    many = rungs_for(passed[-1]) if rungs is None else rungs
    found = np.interp(np.linspace(0.0, passed[-1], many), passed, betas)
    found[0], found[-1] = betas[0], betas[-1]
    return found


def distances(rejected: Floats) -> Floats:
    """Return how far neighbours are apart: distances of finer ladders add up to those of coarser ones.

    If U is normal on both rungs, a swap over the distance d is rejected with probability
    erf(d sqrt(pi) / 2), which is d for close rungs.
    """
    from scipy.special import erfinv

    found: Floats = 2.0 / math.sqrt(math.pi) * erfinv(np.clip(rejected, 0.0, _HOPELESS))
    return np.maximum(found, 1e-6)


def rungs_for(barrier: float) -> int:
    """Return the number of rungs for a barrier."""
    return int(np.clip(math.ceil(2.0 * barrier) + 1, FEWEST, MOST))
