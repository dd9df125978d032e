"""``gibbsite.couple``: many pairs of coupled chains, each with its own stream.

References
----------
.. [1] Jacob, P. E., O'Leary, J. and Atchadé, Y. F. (2020). Unbiased Markov chain Monte Carlo methods with
       couplings. JRSS B 82.
.. [2] Biswas, N., Jacob, P. E. and Vanetti, P. (2019). Estimating convergence of Markov chains with L-lag
       couplings. NeurIPS 32.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument, part
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ConvergenceWarning, IncompatibleError
from gibbsite.graphs.rows import row_starts
from gibbsite.graphs.support.start import start_states
from gibbsite.inference.coupling.pair import Pair, Times, move_pair
from gibbsite.inference.coupling.result import Coupling
from gibbsite.kernels.base import Kernel, transition, units_of
from gibbsite.models import FactorGraph
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.setup import Setup, lay_out_plainly
from gibbsite.scans.base import Scan, period

# Pairs that are tried first, to find out how long it takes until chains meet.
_PILOTS = 16
# Estimates average over so many times the warmup.
_LENGTH = 4
# Unless it is said, pairs are given up after so many updates of sites in all, and so many sweeps each.
_UPDATES, _LEAST, _MOST = 2.0**31, 1000, 10**6
# Updates between which Ctrl-C is heard.
_BLOCK = 2.0**22


class CoupledSetup(NamedTuple):
    """What is coupled, checked, and where chains start."""

    setup: Setup
    start: Any = None


def prepare_couple(
    model: Any, kernel: Kernel | None = None, scan: Scan | None = None, start: Any = None
) -> CoupledSetup:
    """Set up the chains of pairs; refuse what cannot be coupled."""
    if not isinstance(model, FactorGraph):
        raise IncompatibleError(
            f"Chains are coupled in models of states (gs.FactorGraph, gs.ising and so on), got {type(model).__name__}."
        )
    setup = lay_out_plainly(model, kernel, scan)
    kernel, graph = setup.kernel, setup.graph
    types = type(setup.parameters), type(graph.arrays)
    single = units_of(kernel, graph) is None and transition.__dict__["registry"].find(types) is not None
    if not (single and kernel.exact and kernel.estimates and kernel.error_source == "draws"):
        name = type(kernel).__name__
        raise IncompatibleError(
            f"Chains are coupled site by site, by kernels that say how a site moves, and "
            f"{part(name, name)} does not; use {part('Gibbs')}."
        )
    if period(setup.schedule) != graph.n_units:
        raise IncompatibleError(
            f"Chains are coupled sweep by sweep, and the order of {type(setup.scan).__name__} begins again after "
            f"{period(setup.schedule):,} visits, not {graph.n_units:,}; use {part('Systematic')}."
        )
    return CoupledSetup(setup, start)


def couple(
    model: FactorGraph,
    kernel: Kernel | None = None,
    *,
    scan: Scan | None = None,
    pairs: int = 200,
    lag: int | None = None,
    warmup: int | None = None,
    sweeps: int | None = None,
    most: int | None = None,
    start: Any = None,
    rng: Any = None,
    threads: int | None = None,
) -> Coupling:
    """Run pairs of chains that meet: a bound on the distance to stationarity, and marginals without bias.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    kernel : Kernel, optional
        A kernel that moves one site and says with which probabilities: ``Gibbs()``, with any rule.
    scan : Scan, optional
        In which order; it has to begin again after every sweep. ``Systematic()`` by default.
    pairs : int
        Independent pairs.
    lag : int, optional
        Sweeps that one chain of a pair is ahead. By default what the slowest of 16 pairs took to meet, so
        that the bound is sharp.
    warmup, sweeps : int, optional
        The sweeps that are averaged, after how many; by default after ``lag``, and four times as many.
    most : int, optional
        Sweeps after which a pair that has not met is given up; by default as many as make 2^31 updates of
        sites in all, between 1000 and a million.
    start : optional
        Where chains begin, as in :func:`gibbsite.sample`; both chains of a pair, independently.
    rng : int, Generator or SeedSequence, optional
        Seed.
    threads : int, optional
        Threads; the numbers do not depend on it.

    Returns
    -------
    Coupling

    Warns
    -----
    ConvergenceWarning
        If some pairs have not met; there is a bound of one then, and there are no marginals.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((5, 5), coupling=0.3, field=0.1)
    >>> found = gs.couple(model, pairs=400, rng=1)
    >>> error = found.marginals["12"][1] - gs.solve_exact(model).marginals["12"][1]
    >>> bool(abs(error) < 5 * found.mcse["12"][1]), found.bound(40) < 0.01
    (True, True)
    """
    return run_couple(
        prepare_couple(model, kernel, scan, start),
        pairs=pairs,
        lag=lag,
        warmup=warmup,
        sweeps=sweeps,
        most=most,
        entropy=read_entropy(rng),
        threads=read_threads(threads),
    )


def run_couple(
    what: CoupledSetup,
    *,
    pairs: int,
    lag: int | None = None,
    warmup: int | None = None,
    sweeps: int | None = None,
    most: int | None = None,
    entropy: int,
    threads: int,
) -> Coupling:
    """Run pairs of chains, see :func:`couple`."""
    given = {"lag": lag, "warmup": warmup, "sweeps": sweeps, "most": most}
    for name, value in given.items():
        if value is not None:
            check_integer(name, value, 1)
    pairs = check_integer("pairs", pairs, 2)
    if most is None:
        most = int(np.clip(_UPDATES / max(what.setup.graph.n_sites * pairs, 1), _LEAST, _MOST))
    if lag is None:
        # other streams than those of the pairs below, which therefore know nothing of the choice
        pilots = _run(what, Times(1, 1, 1), _PILOTS, int(most), (entropy, 1), threads)
        if pilots.met < pilots.pairs:
            return _warned(pilots)
        lag = max(int(pilots.times.max()) - 1, 1)
    elif lag > most:
        raise ArgumentError(f"{argument('most')} must be at least {argument('lag', lag)}, got {most}.")
    begin = lag if warmup is None else int(warmup)
    length = _LENGTH * lag if sweeps is None else int(sweeps)
    times = Times(int(lag), begin, begin + length - 1)
    return _warned(_run(what, times, pairs, max(int(most), int(lag)), (entropy, 0), threads))


def _warned(found: Coupling) -> Coupling:
    if found.met < found.pairs:
        warnings.warn(
            f"{found.line()}: the chains are coupled too weakly, or forget their start slowly; there is no "
            "bound below one.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return found


class _Done(NamedTuple):
    time: int
    estimate: Floats


def _run(what: CoupledSetup, times: Times, pairs: int, most: int, entropy: tuple[int, int], threads: int) -> Coupling:
    setup, graph = what.setup, what.setup.graph
    offset = row_starts(graph.cards)
    block = max(1, int(_BLOCK / max(graph.n_sites, 1)))

    def run(number: int) -> _Done:
        seeds = np.random.SeedSequence(entropy[0], spawn_key=(number, entropy[1]))
        first, second, own = (int(word) for word in seeds.generate_state(3, np.uint64))
        words = stream(own, 0)
        # each start by itself: those of one call avoid each other, and would not have the same law
        ahead, behind = (
            start_states(setup.model, graph, 1, what.start, seed)[0].astype(graph.state_dtype)
            for seed in (first, second)
        )
        most_states = int(graph.cards.max(initial=1))
        pair = Pair(
            ahead,
            behind,
            setup.scan.buffer(graph),
            words,
            np.zeros(most_states),
            np.zeros(most_states),
            np.array([0, -1]),
            np.zeros(int(offset[-1])),
            np.zeros(int(offset[-1])),
        )
        memories = setup.kernel.memory(graph, words), setup.kernel.memory(graph, words)
        # a pair that has met goes on to the last sweep that is averaged
        end = max(most, times.last)
        done = False
        while not done and pair.clock[0] < end and not (pair.clock[1] < 0 and pair.clock[0] >= most):
            until = min(int(pair.clock[0]) + block, most if pair.clock[1] < 0 else end)
            done = move_pair(setup.parameters, graph.arrays, setup.schedule, *memories, pair, offset, times, until)
        span = times.last - times.first + 1
        return _Done(int(pair.clock[1]), (pair.average + pair.correction) / span)

    total, square = np.zeros(int(offset[-1])), np.zeros(int(offset[-1]))
    met = np.full(pairs, -1, np.int64)
    group = max(64, threads)
    with Threads(min(threads, pairs)) as executor:
        for begin in range(0, pairs, group):
            numbers = range(begin, min(begin + group, pairs))
            for number, one in zip(numbers, executor.map(run, numbers), strict=True):
                met[number] = one.time
                total += one.estimate
                square += one.estimate**2
    span = times.last - times.first + 1
    return Coupling(setup.model, times.lag, times.first, span, met, most, total, square)
