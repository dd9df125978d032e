"""The ladder of inverse temperatures from 0 (the reference) to 1 (the model), and the search for it.

Swaps between neighbours are rejected with probability r(a, b). For close rungs, these probabilities add up: their sum
from 0 to beta is the communication barrier up to beta, for every ladder (Syed et al. 2022). Dividing the barrier evenly
gives equal rates of swaps; the number of rungs with the most round trips per unit of work is about twice the barrier.

The search makes a few runs of increasing length, each on the ladder that the run before suggests. The first ladder does
not depend on the model. After each run, rungs are placed again such that all swaps are equally likely, and their number
follows from the barrier. In the middle of the search, the reference takes the marginals estimated at the target: the
barrier is then that between the model and approximately its nearest product distribution (Surjanovic et al. 2022). The
last run measures the differences of log Z on the final ladder; if the time is used up early, the next run is the last.

Differences of log-partition functions of neighbouring rungs are estimated by Bennett's method (1976). With
d(x) = (beta' - beta) U(x), f(t) = 1 / (1 + exp(-t)) and any number c,

    log Z' - log Z = c + log E[f(d - c)] - log E'[f(c - d)],

where E is taken at beta and E' at beta'. The error is smallest if c is the difference itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import is_iterable
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.kernels.tempered.exchange import COUNTED, TAKEN
from gibbsite.kernels.tempered.rungs import fit_reference

if TYPE_CHECKING:
    from gibbsite.kernels.protocols import Pilot
    from gibbsite.kernels.tempered.tempered import Tempered

#: Least and largest number of rungs of a ladder that is found.
FEWEST, MOST = 4, 128
# The first ladder has this number of rungs: zero, and a geometric sequence from the second number to one.
_FIRST, _LOWEST = 12, 0.002
# Probabilities of rejection above this one do not show the distance of rungs.
_HOPELESS = 0.999


@dataclass(frozen=True, eq=False)
class Ladder:
    """A ladder, its reference, and the constants for differences of log Z."""

    betas: Floats  # (K,): inverse temperatures, rising to 1
    log_reference: Floats  # (cells,): logarithms of the probabilities of the states of all sites in the reference
    # (K - 1,): the constants c of Bennett's method, about log Z_{k+1} - log Z_k; estimates are correct for any numbers,
    # and these make the errors small
    cut: Floats


def check_ladder(ladder: Ladder) -> None:
    """Refuse an invalid ladder, which may come from a file."""
    betas = ladder.betas
    for one in (betas, ladder.log_reference, ladder.cut):
        if one.dtype != np.float64 or one.ndim != 1 or np.isnan(one).any():
            raise ValueError("the ladder is not made of numbers")
    if betas.size < 2 or betas[0] < 0.0 or betas[-1] != 1.0 or not (np.diff(betas) > 0.0).all():
        raise ValueError("inverse temperatures do not rise to 1")
    if ladder.cut.size != betas.size - 1 or not np.isfinite(ladder.cut).all():
        raise ValueError("there is no cut for each pair of rungs")


def first_betas() -> Floats:
    """Return the inverse temperatures that are tried first."""
    return np.concatenate([[0.0], np.geomspace(_LOWEST, 1.0, _FIRST - 1)])


def read_betas(ladder: Any) -> Floats:
    """Check inverse temperatures that were given; return them as an array."""
    name = argument("ladder")
    if isinstance(ladder, str) or not is_iterable(ladder):
        raise ArgumentError(
            f"{name} must be {argument('ladder', 'auto')} or a list of inverse temperatures, got {ladder!r}."
        )
    listed = list(ladder)
    if not all(isinstance(beta, Real) and math.isfinite(beta) for beta in listed):
        raise ArgumentError(f"{name} must contain numbers from 0 to 1, got {ladder!r}.")
    betas = np.array(listed, float)
    if len(betas) < 2:
        raise ArgumentError(f"{name} needs at least two inverse temperatures, got {len(betas)}.")
    if betas.min() < 0.0 or betas.max() > 1.0:
        worst = betas.min() if betas.min() < 0.0 else betas.max()
        raise ArgumentError(
            f"{name} has the inverse temperature {worst:g}, which is not from 0 (the reference) to 1 (the model)."
        )
    falls = np.flatnonzero(np.diff(betas) <= 0.0)
    if falls.size:
        a, b = betas[falls[0]], betas[falls[0] + 1]
        raise ArgumentError(f"{name} must rise from rung to rung, but {b:g} follows {a:g}; sort it.")
    if betas[-1] != 1.0:
        raise ArgumentError(f"{name} must end at 1, the model itself, not at {betas[-1]:g}.")
    return betas


def spread_rungs(betas: Floats, rejected: Floats, rungs: int | None = None) -> Floats:
    """Return a ladder of ``rungs`` rungs that divides the barrier evenly; their number is chosen by default.

    ``rejected`` are the probabilities with which swaps of neighbours were rejected on the ladder ``betas``.
    """
    distance = distances(rejected)
    passed = np.concatenate([[0.0], np.cumsum(distance)])
    many = rungs_for(passed[-1]) if rungs is None else rungs
    found = np.interp(np.linspace(0.0, passed[-1], many), passed, betas)
    found[0], found[-1] = betas[0], betas[-1]
    return found


def distances(rejected: Floats) -> Floats:
    """Return the distances of neighbours, such that those of a finer ladder add up to those of a coarser one.

    If U is normal on both rungs, a swap over the distance d is rejected with probability
    erf(d sqrt(pi) / 2), which is d for close rungs.
    """
    from scipy.special import erfinv

    found: Floats = 2.0 / math.sqrt(math.pi) * erfinv(np.clip(rejected, 0.0, _HOPELESS))
    return np.maximum(found, 1e-6)


def rungs_for(barrier: float) -> int:
    """Return the number of rungs for a barrier."""
    return int(np.clip(math.ceil(2.0 * barrier) + 1, FEWEST, MOST))


def log_ratio(low: Floats, high: Floats) -> float:
    """Return log Z' - log Z, given values of d at both rungs."""
    left = float(min(low.min(), high.min())) - 1.0
    right = float(max(low.max(), high.max())) + 1.0
    if not np.isfinite([left, right]).all():
        return 0.0
    for _ in range(60):  # bisection: the difference of both averages falls with c
        middle = 0.5 * (left + right)
        if _share(low - middle).mean() > _share(middle - high).mean():
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


def _share(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


def log_ratios(betas: Floats, gains: Floats) -> Floats:
    """Return the differences of log Z between all neighbours, given values of U (samples, rungs)."""
    gap = np.diff(betas)
    pairs = range(gap.size)
    return np.array([log_ratio(gap[k] * gains[:, k], gap[k] * gains[:, k + 1]) for k in pairs])


# Shares of the time of the search for each run, and the runs after which the reference is fitted.
_SHARES, _FITTED = (0.04, 0.08, 0.16, 0.28, 0.44), (1, 2)
# Weight of equal probabilities in a fitted reference, so that every state keeps a positive probability.
_EVEN = 0.2


def find_ladder(kernel: Tempered, pilot: Pilot) -> Ladder:
    """Return the ladder for a model, with its reference and constants.

    Inverse temperatures that were given are kept; only the differences of log Z are measured.
    """
    ladder = kernel.start_ladder(pilot.graph)
    given = not isinstance(kernel.ladder, str)
    for turn, share in enumerate(_SHARES):
        last = given or pilot.late or turn == len(_SHARES) - 1
        trial = pilot.run(replace(kernel, found=ladder), _SHARES[-1] if last else share)
        counts = [memory.counts for memory in trial.memories]
        if last:
            gains = np.concatenate(
                [memory.samples[: count[TAKEN]] for memory, count in zip(trial.memories, counts, strict=True)]
            )
            return Ladder(ladder.betas, ladder.log_reference, log_ratios(ladder.betas, gains))
        sweeps = sum(int(count[COUNTED]) for count in counts)
        rates = sum(memory.accepted for memory in trial.memories) / max(sweeps, 1)
        betas, logs = spread_rungs(ladder.betas, 1.0 - rates), ladder.log_reference
        if kernel.reference == "fitted" and turn in _FITTED:
            logs = fit_reference(pilot.graph, trial.marginals, _EVEN)
        ladder = Ladder(betas, logs, np.zeros(betas.size - 1))
    raise AssertionError
