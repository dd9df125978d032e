"""Annealed importance sampling, forwards and backwards (Neal 2001; Grosse, Ancha and Roy 2016)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_share, checked
from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ConvergenceWarning
from gibbsite.inference.log_z.path import AnnealingPath, bound_log_mean, log_mean, streams
from gibbsite.inference.sampling import sample
from gibbsite.kernels.tempered.tempered import Tempered
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import whole_runs_only

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


@dataclass(frozen=True, eq=False, repr=False)
class AnnealedEstimate:
    """An interval of a log-partition function by annealed importance sampling.

    Attributes
    ----------
    lower, upper : float
        An interval that holds log Z with a probability of at least ``confidence``; each bound fails with at most half
        of the remaining probability. ``lower`` comes from particles that moved to the model and needs no assumption.
        ``upper`` comes from draws of the model that moved back, and is right if these were independent draws, which
        they nearly are if the tempered run has converged.
    log_z : float
        Estimate: the logarithm of the mean weight of the particles that moved to the model.
    confidence : float
        That probability.
    forward, backward : float arrays
        Log-weights of the particles; their exponentials have the means Z and 1 / Z.
    converged : bool
        Whether the tempered run that the draws come from has converged.
    betas : float array
        Inverse temperatures of the path.

    Notes
    -----
    The bounds are Markov's inequality for means of groups of particles, see
    :func:`gibbsite.inference.log_z.path.bound_log_mean`. If they cross, one of them has failed, and both are given in
    rising order.
    """

    lower: float
    upper: float
    log_z: float
    confidence: float
    forward: Floats
    backward: Floats
    converged: bool
    betas: Floats

    @property
    def gap(self) -> float:
        """Width of the interval."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        note = "" if self.converged else "; the tempered run for the upper bound has not converged"
        return (
            f"AnnealedEstimate(log Z about {self.log_z:.6g}, with probability {self.confidence:g} between "
            f"{self.lower:.6g} and {self.upper:.6g}{note})"
        )


@checked
def annealed_importance(
    model: FactorGraph,
    *,
    steps: int = 200,
    particles: int = 64,
    sweeps: int = 2000,
    confidence: float = 0.95,
    rng: Any = None,
) -> AnnealedEstimate:
    """Find an interval of the log-partition function by annealed importance sampling, forwards and backwards.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    steps : int
        Temperatures from a product distribution to the model, with a sweep at each.
    particles : int
        Number of states that move to the model, and of those that move back.
    sweeps : int
        Sweeps of the tempered run whose draws move back.
    confidence : float
        Probability with which the interval holds log Z.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    AnnealedEstimate

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.6)
    >>> found = gs.log_z.annealed_importance(model, steps=50, rng=1)
    >>> found.lower < gs.solve_exact(model).log_z < found.upper, found.gap < 2.0
    (True, True)
    """
    steps, particles = check_integer("steps", steps, 1), check_integer("particles", particles, 2)
    confidence = check_share("confidence", confidence)
    entropy = read_entropy(rng)
    path = AnnealingPath(model, steps)
    states = path.draw_reference(particles, np.random.default_rng([entropy, 1]))
    words = streams(entropy, 0, particles)
    forward = np.zeros(particles)
    for k in range(steps):
        forward += path.step_weights(k, states)
        if k + 1 < steps:
            path.sweep(path.at(k + 1), states, words)
    states, converged = _draw_model(path, particles, check_integer("sweeps", sweeps, particles), entropy)
    words = streams(entropy, 1 << 20, particles)
    backward = np.zeros(particles)
    for k in range(steps - 1, -1, -1):
        backward -= path.step_weights(k, states)
        if k:
            path.sweep(path.at(k), states, words)
    fails = 0.5 * (1.0 - confidence)
    lower, upper = sorted((bound_log_mean(forward, fails), -bound_log_mean(backward, fails)))
    return AnnealedEstimate(lower, upper, log_mean(forward), confidence, forward, backward, converged, path.betas)


def _draw_model(path: AnnealingPath, count: int, sweeps: int, entropy: int) -> tuple[Array, bool]:
    """Return draws of the model, evenly spread over a tempered run, and whether that run has converged."""
    with warnings.catch_warnings(), whole_runs_only():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = sample(path.model, Tempered(), sweeps=sweeps, rng=entropy, record="draws", progress=False)
    draws = run.values.reshape(-1, path.graph.n_sites)
    pick = np.linspace(0, len(draws) - 1, count).astype(np.intp)
    return np.ascontiguousarray(draws[pick], path.graph.state_dtype), bool(run.converged)
