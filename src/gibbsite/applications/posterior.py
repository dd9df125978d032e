"""The posterior of a clean image given a noisy one, and averages over it.

Two levels, x in {-1, +1}: log p(x | y) = J sum_(i~j) x_i x_j + sum_i h_i x_i, so the log-odds of x_i = +1 are 2 J sum_j
x_j + 2 h_i. Gaussian noise around -1 and +1 gives h = y / sigma^2, flips with probability P give h = y log((1 - P) / P)
/ 2.

More levels l: the unary term is -(y_i - l)^2 / (2 sigma^2), and neighbours that are d levels apart get
2 J (1 - min(d, T) / T). T = 1 is the Potts prior, the same for two levels as above.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints16
from gibbsite._numba.jit import announcing
from gibbsite.errors import ArgumentError, ConvergenceWarning
from gibbsite.inference.sampling import record_chains
from gibbsite.results.verdict.judge import make_result
from gibbsite.sampling.climb import climb
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.progress import choose_progress, name_kernel
from gibbsite.sampling.setup import prepare, read_length

#: With centred weights, the first visit to a conditional takes its more probable state, which is best for few sweeps.
_KERNELS: dict[str, gs.kernels.Kernel] = {
    "herded-shared": gs.HerdedGibbs(keys="shared", start="centred"),
    "herded": gs.HerdedGibbs(keys="blanket", start="centred"),
    "herded-site": gs.HerdedGibbs(keys="site", start="centred"),
    "gibbs": gs.Gibbs(),
}


def two_level_model(spins: Floats, coupling: float, strength: float) -> gs.FactorGraph:
    """Return the posterior of a two-level image; the field is ``strength`` times the pixels (-1 to +1)."""
    return gs.ising_grid(spins.shape, coupling=coupling, field=spins * strength)


def grey_model(image: Floats, levels: Floats, coupling: float, sigma: float, reach: int) -> gs.FactorGraph:
    """Return the posterior of a grey image; ``reach`` is the truncation T of the prior."""
    states, n = levels.size, image.size
    # in place, because this array of (pixels, levels) is the largest one
    unary = image[..., None] - levels
    unary *= unary
    unary *= -0.5 / sigma**2
    unary -= unary.max(axis=-1, keepdims=True)
    if reach == 1:
        return gs.potts_grid(image.shape, states, 2.0 * coupling, unary)
    apart = np.abs(np.subtract.outer(np.arange(states), np.arange(states)))
    table = 2.0 * coupling * (1.0 - np.minimum(apart, reach) / reach)
    pairs = gs.factors.LatticeFactors(image.shape, (False, False), 0.0, spin=False).scopes
    groups = (
        gs.factors.TableFactors(pairs, table[None], name="couplings"),
        gs.factors.FieldFactors(n, unary, spin=False, name="fields"),
    )
    return gs.FactorGraph(n, groups=groups, states=states)


def average(
    model: gs.FactorGraph,
    method: str | gs.kernels.Kernel,
    *,
    sweeps: int,
    start: Ints16 | None,
    scan: gs.scans.Scan | None,
    damping: float,
    states: bool,
    rng: Any,
    progress: Any,
) -> tuple[Floats, Any]:
    """Return probabilities of all states (of state 1 if there are two), and the result of the run.

    If ``start`` is None, it is random. ``states`` averages the states after every sweep instead of their conditional
    probabilities. A method that searches for the best state gives that state.
    """
    if isinstance(method, str) and method.startswith("mean-field"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of sweeps is given
            field = gs.mean_field(
                model,
                parallel=method.endswith("parallel"),
                damping=damping,
                start="unary" if start is not None else "random",
                max_iterations=sweeps,
                rng=rng,
                progress=progress,
            )
        return field.cells, field
    if method == "icm":
        if start is None:
            raise ArgumentError("icm starts from the noisy image or a given one, not from a random image.")
        return _indicators(model, climb(model, start.ravel())), None
    kernel = _kernel(method, sweeps) if isinstance(method, str) else method
    averages = gs.Marginals(rao_blackwell=False if states else None, batches=False)
    show = choose_progress(progress)
    with announcing(show.say, name_kernel(kernel)):
        setup = prepare(
            model,
            kernel,
            scan,
            averages if kernel.estimates else gs.recorders.BestState(),
            rng=rng,
            start="random" if start is None else start.ravel(),
            length=read_length(sweeps=sweeps, warmup=0),
        )
        recording = record_chains(setup, threads=read_threads(None), progress=show)
    # without a verdict, which would take longer than the few sweeps
    result = make_result(recording)
    if not kernel.estimates:
        return _indicators(model, result._best_x), result
    cells: Floats = recording.tapes[0].total + recording.tapes[0].open_batch
    return cells / result.n_draws, result


def _kernel(method: str, sweeps: int) -> gs.kernels.Kernel:
    """Return the kernel of a method; annealing takes all sweeps."""
    return gs.AnnealedGibbs(sweeps=sweeps, start=1.0) if method == "annealed" else _KERNELS[method]


def _indicators(model: gs.FactorGraph, codes: Array) -> Floats:
    """Return a state as probabilities in the layout of marginals."""
    states = int(model.domains.cards[0])
    if states == 2:
        return codes.astype(np.float64)
    indicators: Floats = (codes[:, None] == np.arange(states)).astype(np.float64)
    return indicators.ravel()


def flip_strength(flip: float) -> float:
    """Return the field of flip noise."""
    return 0.5 * math.log((1.0 - flip) / flip)
