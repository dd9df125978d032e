"""``gibbsite.perfect_draws``, which makes independent draws from a model without bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Integers
from gibbsite.errors import SamplingError
from gibbsite.inference.sampling import check_parts, record_chains
from gibbsite.kernels.perfect.perfect import Perfect
from gibbsite.results.verdict.judge import make_result
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.progress import choose_progress, whole_runs_only
from gibbsite.sampling.record import keep_marginals
from gibbsite.sampling.setup import prepare, read_length

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


@checked
def perfect_draws(model: FactorGraph, n: int, *, sweeps: int | None = None, rng: Any = None) -> Integers:
    """Return independent draws from a model itself, by coupling from the past.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    n : int
        Number of draws.
    sweeps : int, optional
        How far back a draw may start, see :class:`gibbsite.kernels.Perfect`.
    rng : int, Generator or SeedSequence, optional
        Seed.

    Returns
    -------
    int array (n, sites)
        State codes of the free sites, in the order of ``model.sites``.

    Raises
    ------
    SamplingError
        If a draw takes more sweeps; ``error.result`` has the earlier draws, if any.

    See Also
    --------
    couple : Bounds from pairs of chains that meet.
    sample : Many dependent draws.

    References
    ----------
    Propp and Wilson (1996), Exact sampling with coupled Markov chains and applications to statistical mechanics.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.3)
    >>> gs.perfect_draws(model, 3, rng=1).shape
    (3, 16)
    """
    count = check_integer("n", n, 1)
    kernel = Perfect(sweeps)
    check_parts(model, kernel, None)
    setup = prepare(
        model, kernel, None, keep_marginals("draws", kernel), rng=rng, length=read_length(sweeps=count, warmup=0)
    )
    try:
        with whole_runs_only():  # without a verdict, which would be about marginals
            recording = record_chains(setup, threads=read_threads(None), progress=choose_progress(False))
    except SamplingError as wrong:
        wrong.result = None if wrong.recording is None else make_result(wrong.recording)
        raise
    found: Integers = make_result(recording).draws[0]
    return found
