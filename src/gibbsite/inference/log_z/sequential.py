"""Sequential Monte Carlo: particles move from a product distribution to a model and are resampled on the way.

Particles are weighted at every step, moved by a sweep, and resampled in proportion to their weights when these have
become uneven (Del Moral, Doucet and Jasra 2006). The product of the mean weights is an unbiased estimate of Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Floats, Ints, Positions
from gibbsite.inference.log_z.path import AnnealingPath, log_mean, streams
from gibbsite.sampling.plan import read_entropy

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

# Effective share of the particles below which they are resampled.
_EVEN_ENOUGH = 0.5


@dataclass(frozen=True, eq=False)
class ParticleEstimate:
    """An estimate of a log-partition function by particles.

    Attributes
    ----------
    log_z, log_z_error : float
        Logarithm of the mean of several independent estimates of Z, and its standard error, from their spread.
    estimates : float array
        Logarithms of the single estimates.
    resampled : int array
        Number of times that the particles of each were resampled.
    betas : float array
        Inverse temperatures of the path.
    """

    log_z: float
    log_z_error: float
    estimates: Floats
    resampled: Ints
    betas: Floats


def particle_log_z(
    model: FactorGraph, *, steps: int = 200, particles: int = 128, repeats: int = 4, rng: Any = None
) -> ParticleEstimate:
    """Estimate the log-partition function of a model by sequential Monte Carlo.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    steps : int
        Temperatures from a product distribution to the model, with a sweep at each.
    particles : int
        Particles of each repeat.
    repeats : int
        Independent estimates.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    ParticleEstimate

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.6)
    >>> found = gs.log_z.particle_log_z(model, steps=50, particles=64, rng=1)
    >>> abs(found.log_z - gs.solve_exact(model).log_z) < 1.0
    True
    """
    steps, particles = check_integer("steps", steps, 1), check_integer("particles", particles, 2)
    repeats, entropy = check_integer("repeats", repeats, 2), read_entropy(rng)
    path = AnnealingPath(model, steps)
    graphs = [path.at(k) for k in range(1, steps)]
    estimates, resampled = np.zeros(repeats), np.zeros(repeats, np.int64)
    for repeat in range(repeats):
        draws = np.random.default_rng([entropy, 2, repeat])
        states, words = path.draw_reference(particles, draws), streams(entropy, (2 + repeat) << 20, particles)
        logs = np.zeros(particles)
        for k in range(steps):
            logs += path.step_weights(k, states)
            if k + 1 == steps or np.isneginf(logs).all():
                break
            weights = np.exp(logs - logs.max())
            if weights.sum() ** 2 < _EVEN_ENOUGH * particles * np.square(weights).sum():
                estimates[repeat] += log_mean(logs)
                resampled[repeat] += 1
                states, logs = states[choose_evenly(weights, draws)].copy(), np.zeros(particles)
            path.sweep(graphs[k], states, words)
        estimates[repeat] += log_mean(logs)
    shares = np.exp(estimates - estimates.max()) if np.isfinite(estimates).any() else np.full(repeats, np.nan)
    error = float(shares.std(ddof=1) / shares.mean() / math.sqrt(repeats))
    return ParticleEstimate(log_mean(estimates), error, estimates, resampled, path.betas)


def choose_evenly(weights: Floats, rng: np.random.Generator) -> Positions:
    """Resample systematically: each particle is chosen as often as its share of the weight, rounded up or down."""
    levels = np.cumsum(weights) / weights.sum()
    levels[-1] = 1.0
    points = (np.arange(weights.size) + rng.random()) / weights.size
    return np.searchsorted(levels, points, side="right")
