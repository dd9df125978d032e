"""``gibbsite.perfect_draws``: independent draws of a model, without bias."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import ConvergenceWarning
from gibbsite.kernel.perfect.perfect import Perfect
from gibbsite.run.budget import check_integer
from gibbsite.run.interrupt import whole_runs_only
from gibbsite.sampling import sample

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph


def perfect_draws(
    model: FactorGraph, n: int, *, sweeps: int | None = None, rng: Any = None
) -> NDArray[np.integer[Any]]:
    """Return independent draws from the law of a model itself, by coupling from the past.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    n : int
        Number of draws.
    sweeps : int, optional
        How far back a draw may go, see :class:`gibbsite.Perfect`.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    int array (n, sites)
        State codes of the free sites, in the order of ``model.sites``.

    Raises
    ------
    SamplingError
        If a draw does not come within so many sweeps; ``error.result`` has those before it, if any.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.3)
    >>> gs.perfect_draws(model, 3, rng=1).shape
    (3, 16)
    """
    count = check_integer("n", n, 1)
    with warnings.catch_warnings(), whole_runs_only():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a verdict on marginals, which nobody asked for
        result = sample(
            model,
            Perfect(sweeps),
            sweeps=count,
            warmup=0,
            chains=1,
            rng=rng,
            record="draws",
            progress=False,
        )
    found: NDArray[np.integer[Any]] = result.values[0]
    return found
