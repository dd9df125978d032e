"""``gibbsite.couple``, which runs many pairs of coupled chains, each with its own random stream.

References
----------
.. [1] Jacob, P. E., O'Leary, J. and Atchadé, Y. F. (2020). Unbiased Markov chain Monte Carlo methods with couplings.
   JRSS B 82.
.. [2] Biswas, N., Jacob, P. E. and Vanetti, P. (2019). Estimating convergence of Markov chains with L-lag couplings.
   NeurIPS 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer, checked, read_integers
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import Text, argument, part
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ConvergenceWarning, IncompatibleError
from gibbsite.graphs.rows import row_starts
from gibbsite.graphs.support.start import start_states
from gibbsite.inference.coupling.pair import Pair, Times, move_pair
from gibbsite.kernels.base import Kernel, transition, units_of
from gibbsite.models import FactorGraph
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.table import SiteTable
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.setup import Setup, lay_out_plainly
from gibbsite.scans.base import Scan, period

_UNSEEN = 2.0  # standard error of a count of zero, as for states that were never visited
_PILOTS = 16  # pilot pairs, which show how long chains take to meet
_LENGTH = 4  # sweeps over which estimates average, in units of the warmup
_UPDATES, _LEAST, _MOST = 2.0**31, 1000, 10**6  # default limits: updates of sites in all, sweeps of each pair
_BLOCK = 2.0**22  # updates between two checks for Ctrl-C


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Answer):
    """Independent pairs of coupled chains, and unbiased estimates of marginals, which may lie outside of 0 to 1.

    If some pairs have not met, there are no marginals: an average over the others would be biased.

    Attributes
    ----------
    lag : int
        How many sweeps one chain of a pair is ahead.
    warmup, sweeps : int
        Marginals are corrected averages over this number of sweeps after the warmup.
    times : int array (pairs,)
        Sweeps of the chain ahead after which the chains of a pair met; -1 if they did not.
    most : int
        Sweeps after which a pair was abandoned.
    total, square : float arrays (cells,)
        Sums over pairs of estimates, and of their squares.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.couple(gs.ising_grid((6, 6), coupling=0.2), pairs=50, rng=1)
    >>> found.met, bool(found.bound(0) >= found.bound(10) >= 0.0)
    (50, True)
    """

    model: FactorGraph
    lag: int
    warmup: int
    sweeps: int
    times: Ints
    most: int
    total: Floats
    square: Floats

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.times.size)

    @property
    def met(self) -> int:
        """Number of pairs that have met."""
        return int((self.times >= 0).sum())

    def bound(self, sweeps: Any = 0) -> Any:
        """Return an estimated upper bound of the distance to stationarity after some sweeps from the start.

        That is the total variation distance between the distribution of a chain's state and the model, of which E
        max(0, ceil((time - lag - sweeps) / lag)) is an upper bound (Biswas, Jacob and Vanetti). It is one, and
        therefore uninformative, if some pairs have not met.

        Parameters
        ----------
        sweeps : int or int array
            Numbers of sweeps.

        Returns
        -------
        float, or array
        """
        found = np.minimum(self._terms(sweeps).mean(axis=0), 1.0)
        return float(found) if np.ndim(sweeps) == 0 else found

    def bound_mcse(self, sweeps: Any = 0) -> Any:
        """Return the standard error of :meth:`bound`, from the spread of the pairs; NaN if some have not met.

        It is at least 2 / pairs, because an event that no pair has shown may still have positive probability.
        """
        spread = self._terms(sweeps).std(axis=0, ddof=1) / np.sqrt(self.pairs)
        spread = np.maximum(spread, _UNSEEN / self.pairs)
        found = np.where(self.met == self.pairs, spread, np.nan)
        return float(found) if np.ndim(sweeps) == 0 else found

    def safe_bound(self, sweeps: int = 0) -> float:
        """Return :meth:`bound` plus its standard error, at most one; one if some pairs have not met.

        Examples
        --------
        The distance to stationarity after the warmup of a run, from 100 pairs that start as its chains do:

        >>> import gibbsite as gs
        >>> model = gs.ising_grid((5, 5), coupling=0.2, field=0.1)
        >>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
        >>> pairs = gs.couple(model, gs.Gibbs(), pairs=100, rng=result.plan.entropy)
        >>> pairs.safe_bound(result.warmup)
        0.02
        """
        if self.met < self.pairs:
            return 1.0
        return min(1.0, float(self.bound(sweeps) + self.bound_mcse(sweeps)))

    def _terms(self, sweeps: Any) -> Floats:
        """Return the term of every pair in the bound (pairs, ...)."""
        after = read_integers("sweeps", sweeps)
        if self.met < self.pairs:
            return np.ones((self.pairs, *after.shape))
        late = self.times.reshape(-1, *(1,) * after.ndim) - self.lag - after
        return np.asarray(np.maximum(-(-late // self.lag), 0), float)

    def mixing_time(self, distance: float = 0.25) -> int | None:
        """Return the number of sweeps after which the bound is at most a distance; None if it is not known.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.couple(gs.ising_grid((3, 3), coupling=0.1), pairs=20, rng=1).mixing_time() < 10
        True
        """
        if not 0 < distance < 1:
            raise ArgumentError(f"{argument('distance')} must be between 0 and 1, got {distance!r}.")
        if self.met < self.pairs:
            return None
        after = np.arange(max(int(self.times.max()) - self.lag, 0) + 1)
        return int(after[self.bound(after) <= distance][0])

    @property
    def marginals(self) -> SiteTable | None:
        """Estimates of marginals without bias; None if some pairs have not met."""
        return self._site_table(self.total / self.pairs, False, 1.0) if self.met == self.pairs else None

    @property
    def mcse(self) -> SiteTable | None:
        """Standard errors of the marginals, from the spread of independent pairs."""
        if self.met < self.pairs:
            return None
        mean = self.total / self.pairs
        variance = np.maximum(self.square / self.pairs - mean**2, 0.0) / max(self.pairs - 1, 1)
        return self._site_table(np.sqrt(variance), False, 0.0)

    @property
    def diagnostics(self) -> Diagnostics:
        """Whether all pairs have met, how long that took, and how soon chains come close to stationarity."""
        figures = {"pairs": self.pairs, "met": self.met, "lag": self.lag, "mixing_time": self.mixing_time()}
        if self.met < self.pairs:
            reason = (
                f"{self.pairs - self.met:,} of {self.pairs:,} pairs of chains had not met after {self.most:,} sweeps, "
                f"so there are no estimates without bias; allow more sweeps with {argument('most')}."
            )
            text = f"{self.met:,} of {self.pairs:,} pairs of chains met within {self.most:,} sweeps"
            return Diagnostics("estimate", False, (Text(reason),), figures, text)
        late = self.times - self.lag
        text = (
            f"{self.pairs:,} pairs of chains, lag {self.lag:,}, met after {np.median(late):,.0f} sweeps "
            f"(at most {late.max():,}); distance to stationarity below 0.25 after {self.mixing_time():,}"
        )
        return Diagnostics("estimate", True, (), figures, text)

    def __repr__(self) -> str:
        return f"Coupling({self.line()})"


def _prepare(model: Any, kernel: Kernel | None, scan: Scan | None) -> Setup:
    """Set up the chains of pairs; refuse models, kernels and scans that cannot be coupled."""
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
            f"Chains are coupled site by site, by kernels that give the transition probabilities of a site, and "
            f"{part(name, name)} does not; use {part('Gibbs')}."
        )
    if period(setup.schedule) != graph.n_units:
        raise IncompatibleError(
            f"Chains are coupled sweep by sweep, and the order of {type(setup.scan).__name__} begins again after "
            f"{period(setup.schedule):,} visits, not {graph.n_units:,}; use {part('Systematic')}."
        )
    return setup


@checked
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
        A kernel that moves single sites and gives their transition probabilities: ``Gibbs()``, with any rule.
    scan : Scan, optional
        The order of visits, which must begin again after every sweep; ``Systematic()`` by default.
    pairs : int
        Independent pairs.
    lag : int, optional
        Sweeps that one chain of a pair is ahead. By default the time that the slowest of 16 pairs took to meet, which
        makes the bound sharp.
    warmup, sweeps : int, optional
        Number of sweeps before those that are averaged, ``lag`` by default, and of these, ``4 * lag`` by default.
    most : int, optional
        Sweeps after which a pair that has not met is abandoned; by default the number for 2^31 updates of sites in all,
        between 1000 and a million.
    start : optional
        Where chains begin, as in :func:`gibbsite.sample`; independently for both chains of a pair.
    rng : int, Generator or SeedSequence, optional
        Seed.
    threads : int, optional
        Number of threads; the numbers do not depend on it.

    Returns
    -------
    Coupling

    Warns
    -----
    ConvergenceWarning
        If some pairs have not met; then the bound is one, and there are no marginals.

    See Also
    --------
    certify : A bound that needs no simulation.
    perfect_draws : Draws without bias.

    References
    ----------
    Biswas, Jacob and Vanetti (2019), Estimating convergence of Markov chains with L-lag couplings.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((5, 5), coupling=0.3, field=0.1)
    >>> found = gs.couple(model, pairs=400, rng=1)
    >>> error = found.marginals["12"][1] - gs.solve_exact(model).marginals["12"][1]
    >>> bool(abs(error) < 5 * found.mcse["12"][1]), found.bound(40) < 0.01
    (True, True)
    """
    setup, entropy, threads = _prepare(model, kernel, scan), read_entropy(rng), read_threads(threads)
    given = {"lag": lag, "warmup": warmup, "sweeps": sweeps, "most": most}
    for name, value in given.items():
        if value is not None:
            check_integer(name, value, 1)
    pairs = check_integer("pairs", pairs, 2)
    if most is None:
        most = int(np.clip(_UPDATES / max(setup.graph.n_sites * pairs, 1), _LEAST, _MOST))
    if lag is None:
        # pilots use separate streams, so that the pairs below are independent of the chosen lag
        pilots = _run(setup, start, Times(1, 1, 1), _PILOTS, int(most), (entropy, 1), threads)
        if pilots.met < pilots.pairs:
            return _warned(pilots)
        lag = max(int(pilots.times.max()) - 1, 1)
    elif lag > most:
        raise ArgumentError(f"{argument('most')} must be at least {argument('lag', lag)}, got {most}.")
    begin = lag if warmup is None else int(warmup)
    length = _LENGTH * lag if sweeps is None else int(sweeps)
    times = Times(int(lag), begin, begin + length - 1)
    return _warned(_run(setup, start, times, pairs, max(int(most), int(lag)), (entropy, 0), threads))


def _warned(found: Coupling) -> Coupling:
    if found.met < found.pairs:
        warn_user(
            f"{found.line()}: the chains are coupled too weakly, or forget their start slowly; there is no "
            "bound below one.",
            ConvergenceWarning,
        )
    return found


class _Done(NamedTuple):
    time: int
    estimate: Floats


def _run(
    setup: Setup, start: Any, times: Times, pairs: int, most: int, entropy: tuple[int, int], threads: int
) -> Coupling:
    graph = setup.graph
    offset = row_starts(graph.cards)
    block = max(1, int(_BLOCK / max(graph.n_sites, 1)))

    def run(number: int) -> _Done:
        seeds = np.random.SeedSequence(entropy[0], spawn_key=(number, entropy[1]))
        first, second, own = (int(word) for word in seeds.generate_state(3, np.uint64))
        words = stream(own, 0)
        # a separate call for each start, because starts of one call avoid each other and are not independent
        ahead, behind = (
            start_states(setup.model, graph, 1, start, seed)[0].astype(graph.state_dtype) for seed in (first, second)
        )
        rows, sums = np.zeros((2, int(graph.cards.max(initial=1)))), np.zeros((2, int(offset[-1])))
        pair = Pair(
            ahead, behind, setup.scan.buffer(graph), words, rows[0], rows[1], np.array([0, -1]), sums[0], sums[1]
        )
        memories = setup.kernel.memory(graph, words), setup.kernel.memory(graph, words)
        # a pair that has met continues to the last sweep that is averaged
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
