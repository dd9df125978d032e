"""Annealed importance sampling, forwards and backwards (Neal 2001; Grosse, Ancha and Roy 2016)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import ConvergenceWarning
from gibbsite.kernel.tempered.tempered import Tempered
from gibbsite.partition.path import Floats, Path, log_mean, streams
from gibbsite.run.budget import check_integer
from gibbsite.run.interrupt import whole_runs_only
from gibbsite.run.plan import read_entropy
from gibbsite.sampling import sample

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph


@dataclass(frozen=True, eq=False)
class AnnealedEstimate:
    """A bracket of a log-partition function.

    Attributes
    ----------
    lower, upper : float
        From particles that went to the model, and from draws of the model that went back. ``lower`` exceeds
        log Z by t with probability exp(-t) at most; so does log Z exceed ``upper``, if the draws that went
        back were draws of the model.
    forward, backward : float arrays
        Log-weights of the particles, of which these are logarithms of means.
    converged : bool
        Whether the tempered run that the draws come from has converged.
    betas : float array
        Inverse temperatures of the path.
    """

    lower: float
    upper: float
    forward: Floats
    backward: Floats
    converged: bool
    betas: Floats

    @property
    def gap(self) -> float:
        """Width of the bracket."""
        return self.upper - self.lower


def annealed_importance(
    model: FactorGraph, *, steps: int = 200, particles: int = 64, sweeps: int = 2000, rng: Any = None
) -> AnnealedEstimate:
    """Bracket the log-partition function of a model by annealed importance sampling, there and back.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    steps : int
        Temperatures on the way from a product law to the model, a sweep at each.
    particles : int
        How many states go there, and how many go back.
    sweeps : int
        Of the tempered run whose draws go back.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    AnnealedEstimate

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.6)
    >>> found = gs.annealed_importance(model, steps=50, rng=1)
    >>> found.lower - 1.0 < gs.solve_exact(model).log_z < found.upper + 1.0
    True
    """
    steps, particles = check_integer("steps", steps, 1), check_integer("particles", particles, 2)
    entropy = read_entropy(rng)
    path = Path(model, steps)
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
    return AnnealedEstimate(log_mean(forward), -log_mean(backward), forward, backward, converged, path.betas)


def _draw_model(path: Path, count: int, sweeps: int, entropy: int) -> tuple[NDArray[Any], bool]:
    """Return draws of the model, evenly spread over a tempered run, and whether that has converged."""
    with warnings.catch_warnings(), whole_runs_only():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = sample(path.model, Tempered(), sweeps=sweeps, rng=entropy, record="draws", progress=False)
    draws = run.values.reshape(-1, path.graph.n_sites)
    pick = np.linspace(0, len(draws) - 1, count).astype(np.intp)
    return np.ascontiguousarray(draws[pick], path.graph.state_dtype), run.diagnostics.converged
