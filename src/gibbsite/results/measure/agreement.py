"""Whether many short chains from dispersed starts agree with a run.

If the run is right and short chains have forgotten their starts, the state of each is a draw from the law of
the run. Four questions follow, none of which needs the short chains to be long:

* *Strangers.* A chain spends at least half of its time in a state of probability q with probability at most
  2 q (Markov's inequality), whatever its dynamics. Chains that do so at states which are rare in the run are
  counted and compared with that bound.
* *Spread.* The mean of a site over a short chain should scatter about the mean of the run as the run's own
  standard error predicts for that length. Chains that stay in different modes scatter more.
* *Mean.* The average over all short chains should be that of the run.
* *Energy.* The log-potentials at the ends of the chains should have the mean of the run's, and should not
  leave its range more often than chance permits.

Thresholds are such that a run that is right, and whose short chains have settled, fails with a probability of
about 0.5 %: a wrong "converged" is worse than a wrong "not converged". Differences of means below 0.01, and
spreads below 0.05, are let pass however significant they are: in a large model something always is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Bools, Floats
from gibbsite.results.wording import tell_apart

_ROUNDING = 1e-9  # log-potentials closer than this, relatively, are equal
_SEGMENTS = 4  # of each chain, to see how far values depend on each other
_HALF = 0.5  # share of its time a chain spends in a state to be called a stranger there
_RARITIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)  # probabilities below which states of the run are rare
_ALARM = 1e-3  # probability at which strangers, or log-potentials out of range, are too many
_SHIFT, _SCATTER = 0.01, 0.05  # differences of means, and spreads, that matter
_SIGMAS = 6.0  # standard errors by which means of log-potentials may differ
_FEWEST_EVENTS = 20.0  # visits of a state in all short chains below which their mean is not compared
_FEW_CHAINS = 64
_LISTED = 3  # cells that are named


@dataclass(frozen=True)
class Findings:
    """How short chains differ from a run.

    Attributes
    ----------
    cells : tuple of int
        Cells that differ most, of different sites as far as possible, the worst first.
    here, there : tuple of float
        Their mean in the run and in the chains that differ.
    strangers : int
        Number of chains that differ there.
    energy : str
        How log-potentials differ; empty if they do not.
    said : str
        A difference that another comparison found, as a sentence; empty if there is none.
    """

    cells: tuple[int, ...] = ()
    here: tuple[float, ...] = ()
    there: tuple[float, ...] = ()
    strangers: int = 0
    energy: str = ""
    said: str = ""

    @property
    def agree(self) -> bool:
        """Whether no difference was found."""
        return not self.cells and not self.energy and not self.said


def compare_chains(
    mean: Floats,
    error: Floats,
    variance: Floats,
    sweeps: float,
    short: NDArray[np.floating],
    window: int,
    batches: int,
    number: Bools | None = None,
) -> Findings:
    """Compare the marginals of short chains with those of a run.

    Parameters
    ----------
    mean, error, variance : float array (cells,)
        Of the run: means, their standard errors, and variances of single draws.
    sweeps : float
        Length of the run, all chains together.
    short : float array (chains, cells)
        Means of the short chains.
    window : int
        Sweeps these are taken over.
    batches : int
        Number of batches the standard errors come from; 0 if they do not tell how short chains scatter,
        because these move in another way.
    number : bool array (cells,), optional
        Cells that are means of numbers, not probabilities.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> short = rng.binomial(16, 0.3, (64, 1)) / 16
    >>> run = (np.array([0.3]), np.array([0.001]), np.array([0.21]), 210_000.0)
    >>> compare_chains(*run, short, 16, batches=2000).agree
    True
    >>> short[:8] = 1.0  # eight chains stay in another mode
    >>> compare_chains(*run, short, 16, batches=2000).strangers
    8
    """
    if not mean.size:
        return Findings()
    chains, plain_mean, plain_short = len(short), mean, short
    if number is not None and number.any():
        # numbers in units of their standard deviation
        unit = np.where(number, np.sqrt(np.maximum(variance, 1e-300)), 1.0)
        short = np.where(number, (short - mean) / unit, short)
        mean, error, variance = np.where(number, 0.0, mean), error / unit, np.where(number, 1.0, variance)
    else:
        number = np.zeros(mean.size, np.bool_)
    suspicious = _find_strangers(mean, short) & ~number
    gap = short - mean
    predicted = np.minimum(np.square(error) * sweeps / window, variance)
    rare = np.where(number, 0.5, np.minimum(mean, 1.0 - mean))
    looks = np.maximum(predicted, 1e-300) / np.maximum(variance, 1e-300)  # 1 / independent draws of a window
    tails = looks / np.maximum(rare, 1e-12)  # excess kurtosis of the mean of a few rare visits
    seen = rare * chains / looks > _FEWEST_EVENTS
    tail = _ALARM / max(mean.size, 1)
    if batches:
        spread = np.square(gap).mean(axis=0)
        # such quantiles are above 1.6 for 64 chains (and more for fewer): most cells need no exact one
        least = 1.5 if chains <= _FEW_CHAINS else 1.0
        wide = np.flatnonzero((spread - predicted > _SCATTER**2) & (spread > least * predicted) & seen)
        if wide.size:
            from scipy import special  # takes longer than all the rest, and is needed rarely

            # both variances are estimates: the limit is a quantile of the ratio of two
            limit = special.fdtri(2.0 * chains / (2.0 + tails[wide]), float(batches), 1.0 - tail)
            suspicious[wide] |= spread[wide] > limit * predicted[wide]
    scatter = short.var(axis=0, ddof=1) / chains + np.square(error)
    shift = np.abs(gap.mean(axis=0))
    # quantiles of t are larger than those of a normal law, which are larger than 3 for such tails
    far_off = (shift > _SHIFT) & seen & (shift > 3.0 * np.sqrt(scatter))
    if far_off.any():
        from scipy import special

        limit = special.stdtrit(chains - 1, 1.0 - 0.5 * tail) * np.sqrt(scatter)
        suspicious |= far_off & (shift > limit)
    found = np.flatnonzero(suspicious)
    if not found.size:
        return Findings()
    # the worst is where chains are furthest from the run
    distance = np.sqrt(np.square(gap[:, found]).mean(axis=0))
    worst = found[np.argsort(-distance, kind="stable")]
    far = np.abs(gap[:, worst[0]]) > max(0.5 * float(np.abs(gap[:, worst[0]]).max()), 1e-12)
    listed = tuple(int(cell) for cell in worst[:_LISTED])
    there = plain_short[far].mean(axis=0) if far.any() else plain_short.mean(axis=0)
    return Findings(
        listed,
        tuple(float(plain_mean[cell]) for cell in listed),
        tuple(float(there[cell]) for cell in listed),
        int(far.sum()),
    )


def _find_strangers(mean: Floats, short: NDArray[np.floating]) -> Bools:
    """Return the cells at which more chains stay in a state that is rare in the run than chance permits."""
    chains = len(short)
    flip = mean > 0.5
    rare = np.clip(np.where(flip, 1.0 - mean, mean), 0.0, 1.0)
    stays = np.where(flip, 1.0 - short, short) >= _HALF
    found = np.zeros(mean.size, np.bool_)
    for rarity in _RARITIES:
        cells = rare < rarity
        if not stays[:, cells].any():
            continue
        strangers = int(stays[:, cells].any(axis=1).sum())
        expected = min(float(rare[cells].sum()) / _HALF, 1.0)
        if expected**strangers >= 2.0 * _ALARM:  # the probability is larger than this
            continue
        from scipy import special

        if special.bdtrc(strangers - 1, chains, expected) < _ALARM:
            found |= cells & stays.any(axis=0)
    # a single cell may stand out where all rare ones together do not
    count = stays.sum(axis=0)
    bound = np.minimum(rare / _HALF, 1.0)
    # the probability is larger than that of the first ``count`` chains alone
    some = np.flatnonzero((count > 0) & (bound < 1.0) & (bound**count < 2.0 * _ALARM / mean.size))
    if some.size:
        from scipy import special

        found[some] |= special.bdtrc(count[some] - 1, chains, bound[some]) < _ALARM / mean.size
    return found


def compare_energies(run: Floats, short: Floats) -> str:
    """Say how the log-potentials of short chains differ from those of a run; empty if they do not.

    Parameters
    ----------
    run : float array (chains, values)
        Of the run, in the order of time.
    short : float array (chains,)
        At the ends of the short chains.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> run = rng.normal(size=(4, 64))
    >>> compare_energies(run, rng.normal(size=64)), compare_energies(run, rng.normal(3.0, 1.0, 64))
    ('', 'their log-potential is 3 on average, that of the run -0.099')
    """
    if not run.size or short.size < 2:
        return ""
    worth = count_effective(run)
    mean, apart = float(run.mean()), float(short.mean() - run.mean())
    error = np.sqrt(short.var(ddof=1) / short.size + run.var() / worth)
    # energies of large models are so sharp that the last trace of a start would show: half a deviation may
    if abs(apart) > max(_SIGMAS * error, 0.5 * run.std()) + _ROUNDING * (1.0 + abs(mean)):
        theirs, own = tell_apart(float(short.mean()), mean)
        return f"their log-potential is {theirs} on average, that of the run {own}"
    # of equally distributed values, each of the largest is as likely to be among the one as the other
    share = short.size / (short.size + worth)
    slack = _ROUNDING * (1.0 + np.abs(run).max())
    for side, beyond in (
        ("above", int((short > run.max() + slack).sum())),
        ("below", int((short < run.min() - slack).sum())),
    ):
        if beyond and share**beyond < _ALARM:
            return f"{beyond} of {short.size} end {side} every log-potential of the run"
    return ""


def count_round_trips(series: Floats) -> int | None:
    """Return how often chains went from low to high log-potentials and back, all chains together.

    Parameters
    ----------
    series : float array (chains, values)
        Log-potentials of each chain in the order of time.

    Returns
    -------
    int or None
        Low is the lowest quarter of all values, high the highest; None if these are the same.

    Examples
    --------
    >>> count_round_trips(np.array([[0.0, 3.0, 1.0, 0.0, 2.0, 3.0, 0.0]]))
    2
    """
    if not series.size:
        return None
    low, high = np.quantile(series, (0.25, 0.75))
    if high - low <= _ROUNDING * (1.0 + max(abs(low), abs(high))):
        return None
    trips = 0
    for chain in series:
        side = np.where(chain <= low, -1, np.where(chain >= high, 1, 0))
        ends = side[side != 0]
        trips += int((np.diff(ends) != 0).sum()) // 2
    return trips


def count_effective(series: Floats) -> float:
    """Return the effective number of independent values of a series: at least one, at most its length.

    From means of segments: where values depend on each other these scatter more than they would otherwise.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(4, 64))
    >>> 100 < count_effective(noise) <= 256 and count_effective(np.cumsum(noise, axis=1)) < 32
    True
    """
    chains, values = series.shape
    length = values // _SEGMENTS
    variance = float(series.var())
    if length < 1 or variance == 0.0:
        return float(max(series.size, 1))
    means = series[:, : length * _SEGMENTS].reshape(chains * _SEGMENTS, length).mean(axis=1)
    scatter = float(means.var(ddof=1))
    worth = series.size if scatter == 0.0 else variance / scatter * means.size
    return float(np.clip(worth, 1.0, series.size))
