"""The verdict on a run: how far its numbers can be trusted.

A run is called converged when all of these hold:

* R-hat of every state indicator, over the halves of all chains, is at most 1.01;
* every probability is known as well as from 400 independent draws;
* the log-potentials of the chains agree;
* no state that the factors allow was impossible all along (single-site moves that cannot cross the zeros of a
  model show up here, or in chains that disagree);
* many short chains from dispersed starts come to agree with the run (:mod:`gibbsite.second_look`).

A run that recorded nothing but the best state is judged by it: converged when two chains have found states
equally good, which is agreement, not a proof.

R-hat and effective size are judged where a probability is between 0.001 and 0.999; outside, chains must
agree within 0.005. A site that is a number is judged by its mean and standard deviation, measured in units
of the latter. All numbers come from half-chain and batch means, so they exist for millions of sites.

Standard errors count visits. Of a state of probability q with standard error e about r = (q / e)^2
independent visits were seen, and a Poisson count of r is taken to be uncertain by sqrt(r + 4), not sqrt(r):
counts of 0, 1, 2, ... then miss their expectation by more than four standard errors with a probability below
0.1 %. A state that was never entered gets the standard error 2 / n, where n is the effective number of draws
of its own cell or, where its probability is too small to tell, of the slowest cell of the run; four standard
errors are then a rule of three with 0.03 % in place of 5 %. Averages of conditional probabilities
(Rao-Blackwell) have the same floor, because n draws cannot tell what the conditionals would be in
configurations of the neighbours that were never seen.

Draws that are not random tell nothing about their error. Where kernels say so (``Kernel.errors``), all
numbers come from the means of whole chains; where there is one chain only, or where chains are no
replicates, there are none, and the run is not judged.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite.result._directions import Directions
from gibbsite.result.agreement import Findings
from gibbsite.result.diagnostics import mcse
from gibbsite.result.energies import measure_disagreement
from gibbsite.result.wording import in_words

MOST_JUDGED = 1 << 18  # cells; of a larger model so many evenly spaced ones are judged
RHAT_LIMIT = 1.01
ESS_LIMIT = 400.0
MATERIAL = 0.001
_AGREEMENT = 0.005
_ROUNDING = 1e-9  # log-potentials closer than this, relatively, are equal
_FEW_BATCHES, _MOST_BATCHES = 10, 512
_UNSEEN = 2.0  # standard error of a count of zero, see above
_ENERGY_LIMIT = 1.1  # of R-hat of the log-potentials, of which there are a few dozen for each chain
_FEWEST_DRAWS = 4  # with fewer there is no R-hat


@dataclass(frozen=True)
class Doubt:
    """A state that the factors allow but that no chain may have been able to enter.

    ``proved`` tells whether a full state of positive probability that contains it is known. ``why`` is
    "state" (it was never possible), "region" (it belongs to states that are not seen to be connected with the
    chains), or "scan" (its site is never visited).
    """

    site: str
    state: Any
    proved: bool
    why: str = "state"


@dataclass(frozen=True)
class Look:
    """What a second look at a run has found: many short chains from dispersed starts beside it.

    Attributes
    ----------
    chains, sweeps : int
        Number of short chains, and their length; none, if there was nothing to compare.
    findings : Findings
        Where they differ from the run.
    complete : bool
        Whether they had the time to come to agree.
    """

    chains: int
    sweeps: int
    findings: Findings = field(default_factory=Findings)
    complete: bool = True


@dataclass(frozen=True)
class Diagnostics:
    """How good a run is.

    Attributes
    ----------
    converged : bool
        The verdict.
    reasons : tuple of str
        Why not, one sentence each.
    rhat_max, ess_min : float or None
        Worst R-hat and effective number of independent draws, with the site and state they belong to.
    mcse_max : float or None
        Largest standard error of a probability; that of a mean is counted in standard deviations of its site.
        These are None where nothing is known about errors.
    disagreement : float
        Largest difference between the probability of a chain, or half of one, and the pooled one.
    frozen : tuple of str
        Sites that kept one state in every chain although the factors allow others.
    unreached : tuple of Doubt
        States no chain could enter.
    chains, draws : int
        Number of chains, and of draws in each.
    found : int, optional
        Number of chains that have seen a state as good as the best, where a run is judged by it.
    errors : {"draws", "chains", "none"}
        What standard errors are taken from: the dependence of draws, the spread of chains, or nothing.
    second_look : {"agrees", "differs", "off", "no time", "not needed"}
        What short chains from dispersed starts say: they agree with the run or not, were turned off, or had
        no time; they are not needed where the run has not converged anyway.
    look_chains, look_sweeps : int
        Their number and length.
    energy_rhat : float or None
        R-hat of the log-potentials of the chains, where they are known.
    judged, cells : int
        Number of probabilities the verdict is about, and of all; of very large models an even selection.
    mcse_in_sds : bool
        Whether ``mcse_max`` is that of a number, counted in standard deviations of its site.
    """

    converged: bool
    reasons: tuple[str, ...]
    rhat_max: float | None
    rhat_at: str
    ess_min: float | None
    ess_at: str
    mcse_max: float | None
    disagreement: float
    frozen: tuple[str, ...]
    unreached: tuple[Doubt, ...]
    chains: int
    draws: int
    errors: str
    found: int | None = None
    second_look: str = "not needed"
    look_chains: int = 0
    look_sweeps: int = 0
    energy_rhat: float | None = None
    judged: int = 0
    cells: int = 0
    mcse_in_sds: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        return asdict(self)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        if self.converged:
            return "converged"
        return "NOT JUDGED" if self.errors == "none" else "NOT CONVERGED"

    def line(self) -> str:
        """Return the verdict in one line."""
        return f"{self.word}: {self.figures()}"

    def figures(self) -> str:
        """Return the numbers behind the verdict in one line."""
        if self.found is not None:
            return f"the best state found by {self.found} of {self.chains} chains x {self.draws:,} draws"
        size = f"{self.chains} chain{'s' * (self.chains != 1)} x {self.draws:,} draw{'s' * (self.draws != 1)}"
        if self.rhat_max is None or self.ess_min is None or self.mcse_max is None:
            return f"no standard errors ({size})"
        spread = "spread of " if self.errors == "chains" else ""
        looked = {
            "agrees": f"; second look: {self.look_chains} short chains agree" if self.look_chains else "",
            "off": "; no second look, as asked" if self.converged else "",
        }
        part = f"; judged at {self.judged:,} of {self.cells:,} sites" if self.judged < self.cells else ""
        error = f"at most {self.mcse_max:.2g}" if np.isfinite(self.mcse_max) else "not known"
        unit = " standard deviations" * (self.mcse_in_sds and bool(np.isfinite(self.mcse_max)))
        rhat = "not known" if self.draws < _FEWEST_DRAWS else "infinite"
        rhat = f"at most {self.rhat_max:.4f}" if np.isfinite(self.rhat_max) else rhat
        return (
            f"R-hat {rhat}, effective draws at least {self.ess_min:,.0f}, "
            f"standard error {error}{unit} ({spread}{size})"
            f"{looked.get(self.second_look, '')}{part}"
        )


@dataclass(frozen=True)
class CellNumbers:
    """Pooled mean, standard error, effective size, R-hat and chain disagreement of every cell.

    Standard error, effective size and R-hat are NaN where nothing is known about errors. The two cells of a
    number (``numbers`` has both) are its mean and its standard deviation; ``scale`` is the latter, for
    probabilities 1.
    """

    mean: NDArray[np.float64]
    error: NDArray[np.float64]
    ess: NDArray[np.float64]
    rhat: NDArray[np.float64]
    spread: NDArray[np.float64]
    scale: NDArray[np.float64]
    numbers: NDArray[np.intp]

    def of(self, cells: NDArray[np.intp]) -> CellNumbers:
        """Return the numbers of some cells."""
        return CellNumbers(
            self.mean[cells],
            self.error[cells],
            self.ess[cells],
            self.rhat[cells],
            self.spread[cells],
            self.scale[cells],
            np.flatnonzero(np.isin(cells, self.numbers)),
        )


def source_of_errors(errors: str, chains: int) -> str:
    """Return what standard errors are taken from in a run of so many chains.

    Examples
    --------
    >>> source_of_errors("chains", 1)
    'none'
    """
    return "none" if errors == "chains" and chains < 2 else errors


def measure_cells(
    totals: NDArray[np.float64],
    trace: NDArray[Any],
    draws: int,
    length: int,
    errors: str = "draws",
    numbers: NDArray[np.intp] | None = None,
    angular: NDArray[np.float64] | None = None,
    low: NDArray[np.float64] | None = None,
) -> CellNumbers:
    """Compute what is known of every cell.

    Parameters
    ----------
    totals : float array (chains, cells)
        Sums over all draws.
    trace : float array (chains, batches, cells)
        Means of closed batches.
    draws, length : int
        Draws per chain, and per batch.
    errors : {"draws", "chains", "none"}
        What standard errors can be taken from, see ``Kernel.errors``.
    numbers : int array, optional
        Cells that are values of a number; the cell that follows each is the square of it.
    angular, low : float arrays, optional
        Of these numbers: radians per unit of angles, whose cells are cosine and sine, 0 for others; the
        smallest values.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> trace = (rng.random((4, 100, 1)) < 0.3).astype(np.float32)
    >>> numbers = measure_cells(trace.sum(axis=1).astype(float), trace, 100, 1)
    >>> bool(numbers.rhat[0] < 1.05), bool(0.01 < numbers.error[0] < 0.04)
    (True, True)
    """
    means = totals / max(draws, 1)
    mean = means.mean(axis=0)
    moments = Moments(mean, np.zeros(0, np.intp) if numbers is None else numbers, angular, low)
    mean, means, trace = moments.sds(mean), moments.unrolled(means), moments.unrolled(trace)
    variance, scale = moments.variance(mean), moments.scale
    spread = np.abs(means - mean).max(axis=0) / scale
    source = source_of_errors(errors, len(means))
    if source == "none":
        unknown = np.full(mean.size, np.nan)
        return CellNumbers(mean, unknown, unknown, unknown, spread, scale, moments.cells)
    if source == "chains":
        error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        rhat = _ratio(means, draws, moments)
    else:
        error = _error_of_draws(trace)
        rhat, within = _halves(trace, length, moments)
        spread = np.maximum(spread, within / scale)
    n_draws = float(len(totals) * draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(error > 0, variance / np.square(error), n_draws)
    if source == "draws":
        error = _count_visits(mean, error, ess, n_draws, moments.cells)
        with np.errstate(divide="ignore", invalid="ignore"):
            ess = np.where(error > 0, variance / np.square(error), n_draws)
    return CellNumbers(mean, error, ess, rhat, spread, scale, moments.cells)


class Moments:
    """Cells of numbers among cells of probabilities: a value and its square, or mean and standard deviation.

    Those of angles are told by :class:`gibbsite.result._directions.Directions`.

    The standard deviation s of a value of mean m is, up to terms of second order, the mean of
    s + ((x - m)^2 - s^2) / (2 s): so parts of a run have one each, and its error is that of a mean. Its own
    variance within a part is taken to be s^2 / 2, that of a normal distribution.
    """

    def __init__(
        self,
        mean: NDArray[np.float64],
        numbers: NDArray[np.intp],
        angular: NDArray[np.float64] | None = None,
        low: NDArray[np.float64] | None = None,
    ) -> None:
        rate = np.zeros(numbers.size) if angular is None else angular
        lowest = np.zeros(numbers.size) if low is None else low
        turns = rate > 0
        self.angles = Directions(mean, numbers[turns], rate[turns], lowest[turns])
        self.first, self.second = numbers[~turns], numbers[~turns] + 1
        self.cells = np.concatenate([numbers, numbers + 1])
        self.center = mean[self.first]
        square = np.square(self.center)
        variance = mean[self.second] - square
        # differences that small are rounding
        self.sd = np.sqrt(np.where(variance > 1e-14 * square, variance, 0.0))
        self.scale = np.ones(mean.size)
        self.scale[self.first] = self.scale[self.second] = np.where(self.sd > 0, self.sd, 1.0)
        spreads = self.angles.variance(self.angles.told(mean))
        for cells, spread in zip((self.angles.first, self.angles.second), spreads, strict=True):
            self.scale[cells] = np.sqrt(np.where(spread > 0, spread, 1.0))

    def sds(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the pooled means with standard deviations in place of squares."""
        mean = self.angles.told(mean)
        mean[self.second] = self.sd
        return mean

    def unrolled(self, parts: NDArray[Any]) -> NDArray[Any]:
        """Return the means of parts with standard deviations in place of squares."""
        if not self.cells.size:
            return parts
        parts = self.angles.unrolled(parts.astype(float))
        half = 0.5 / self.scale[self.first]
        value = parts[..., self.first] - self.center
        squares = parts[..., self.second] - 2.0 * self.center * value - np.square(self.center)
        parts[..., self.second] = self.sd + half * (squares - np.square(self.sd))
        return parts

    def variance(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of a draw of each cell, from pooled means or from those of parts."""
        found: NDArray[np.float64] = np.clip(mean, 0.0, 1.0)
        found = found * (1.0 - found)
        # back from what stands for the standard deviation to squares about the center
        rise = 2.0 * self.scale[self.first] * (mean[..., self.second] - self.sd)
        squares = np.square(self.sd) + rise - np.square(mean[..., self.first] - self.center)
        found[..., self.first] = np.clip(squares, 0.0, None)
        found[..., self.second] = 0.5 * found[..., self.first]
        found[..., self.angles.first], found[..., self.angles.second] = self.angles.variance(mean)
        return found

    def clipped(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the means of parts, probabilities between 0 and 1."""
        found = np.clip(parts, 0.0, 1.0)
        found[..., self.cells] = parts[..., self.cells]
        return found


def _error_of_draws(trace: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return standard errors from batch means and their dependence."""
    error = mcse(trace)
    if trace.shape[1] < _FEW_BATCHES:
        # Too short for a sum of autocorrelations, which then takes the batches for antithetic.
        count = max(trace.shape[0] * trace.shape[1], 1)
        error = np.maximum(error, trace.std(axis=(0, 1), dtype=float) / np.sqrt(max(count - 1, 1)))
    return error


def _count_visits(
    mean: NDArray[np.float64],
    error: NDArray[np.float64],
    ess: NDArray[np.float64],
    n_draws: float,
    numbers: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return standard errors of probabilities that account for how few visits they may come from."""
    rare = np.clip(np.minimum(mean, 1.0 - mean), 0.0, None)
    known = _is_material(mean, numbers)
    slowest = float(ess[known].min(initial=n_draws))
    looks = np.clip(np.where(known, ess, slowest), 1.0, n_draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        few = np.where(rare > 0.0, np.square(_UNSEEN * np.square(error) / rare), 0.0)
    counted: NDArray[np.float64] = np.sqrt(np.square(error) + few + np.square(_UNSEEN / looks))
    counted[numbers] = error[numbers]
    return counted


def _is_material(mean: NDArray[np.float64], numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which cells are judged by R-hat and effective size: numbers, and probabilities not too small."""
    material: NDArray[np.bool_] = (mean > MATERIAL) & (mean < 1.0 - MATERIAL)
    material[numbers] = True
    return material


def count_states(
    values: NDArray[Any], cards: NDArray[np.int32], angular: NDArray[np.float64]
) -> tuple[tuple[NDArray[np.float64], NDArray[Any], int, int], NDArray[np.intp]]:
    """Turn recorded draws into what :func:`measure_cells` takes, one cell per state of each site.

    Parameters
    ----------
    values : array (chains, draws, sites)
        State codes, or numbers.
    cards : int array (sites,)
        Numbers of cells: of states, or 2 for the moments of numbers.
    angular : float array (sites,)
        What is recorded of numbers, see ``Domains.angular``; NaN for states.

    Returns
    -------
    tuple
        Sums, means of batches, draws, draws per batch.
    int array
        Cells that are values of numbers.

    Examples
    --------
    >>> draws = np.array([[[0], [1], [1]]], np.int16)
    >>> (totals, trace, draws, length), _ = count_states(draws, np.array([2]), np.array([np.nan]))
    >>> totals.tolist(), trace.shape, draws, length
    ([[1.0, 2.0]], (1, 3, 2), 3, 1)
    """
    chains, draws, _ = values.shape
    numbers = ~np.isnan(angular)
    length = max(1, -(-draws // _MOST_BATCHES))
    batches = draws // length
    offset = np.cumsum(cards) - cards
    totals = np.zeros((chains, int(cards.sum())))
    trace = np.zeros((chains, batches, totals.shape[1]), np.float64 if numbers.any() else np.float32)
    for code in range(int(cards.max(initial=0))):
        for real in (False, True):
            has = np.flatnonzero((cards > code) & (numbers == real))
            seen = _moment(values[:, :, has], angular[has], code) if real else values[:, :, has] == code
            totals[:, offset[has] + code] = seen.sum(axis=1)
            parts = seen[:, : batches * length].reshape(chains, batches, length, has.size)
            trace[:, :, offset[has] + code] = parts.mean(axis=2, dtype=trace.dtype)
    return (totals, trace, draws, length), offset[numbers].astype(np.intp)


def _moment(values: NDArray[Any], angular: NDArray[np.float64], code: int) -> NDArray[Any]:
    """Return what is recorded of numbers as their first or second cell."""
    turned = np.cos(angular * values) if code == 0 else np.sin(angular * values)
    return np.where(angular > 0, turned, values ** (code + 1))


def _halves(
    trace: NDArray[Any], length: int, moments: Moments
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """R-hat of state indicators from the means of half chains, and their largest deviation."""
    half = trace.shape[1] // 2
    cells = trace.shape[2]
    if half < 2:
        return np.full(cells, np.inf), np.zeros(cells)
    parts = np.concatenate(
        [trace[:, :half].mean(axis=1, dtype=float), trace[:, -half:].mean(axis=1, dtype=float)]
    )
    parts = moments.clipped(parts)
    return _ratio(parts, half * length, moments), np.abs(parts - parts.mean(axis=0)).max(axis=0)


def _ratio(parts: NDArray[np.float64], n: int, moments: Moments) -> NDArray[np.float64]:
    """R-hat of state indicators and numbers from the means of parts of ``n`` draws.

    The variance of an indicator within a part follows from its mean p as p (1 - p), so no draw is needed.
    """
    if n < 2:
        return np.full(parts.shape[1], np.inf)
    parts = moments.clipped(parts)
    within = moments.variance(parts).mean(axis=0) * n / (n - 1)
    between = parts.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt(((n - 1) / n * within + between) / within)
    return np.where(within > 0, rhat, np.where(between > 0, np.inf, 1.0))


def _doubtful(doubts: tuple[Doubt, ...]) -> list[str]:
    """Put doubts into words, one sentence for each kind."""
    words = {
        "state": "{n} states were never possible for any chain, the first {site} = {state} ({known}): "
        "single-site moves may not reach all of the support.",
        "region": "single-site moves are not seen to connect the chains with all of the support, for example "
        "with states where {site} = {state}: zeros may cut it into regions.",
        "scan": "the scan never visits {n} sites, the first {site}: they keep their start.",
    }
    said = []
    for why, sentence in words.items():
        mine = [doubt for doubt in doubts if doubt.why == why]
        if mine:
            known = "a state of positive probability contains it" if mine[0].proved else "not ruled out"
            first = {"site": mine[0].site, "state": mine[0].state, "known": known}
            said.append(sentence.format(n=len(mine), **first))
    return said


def judge(
    cells: CellNumbers,
    chains: int,
    draws: int,
    doubts: tuple[Doubt, ...],
    name: Any,
    blind: bool = False,
    errors: str = "draws",
    period: int | None = None,
    bests: NDArray[np.float64] | None = None,
    pulse: NDArray[np.float64] | None = None,
    look: Look | str = "not needed",
    n_cells: int | None = None,
) -> Diagnostics:
    """Pronounce the verdict.

    ``name`` turns a cell number into words; ``blind``: no probability was recorded by which to judge;
    ``errors``: what standard errors can be taken from; ``period``: how many draws averages are meant to be
    taken over; ``bests``: largest log-potential of each chain, if they are known; ``pulse``: log-potentials
    of each chain over its length, if they are known; ``look``: the second look, or why there is none;
    ``n_cells``: number of cells of the run, where not all of them are judged.
    """
    reasons: list[str] = []
    found = None
    something = bool(cells.mean.size) or blind  # without free sites there is nothing to estimate
    source = source_of_errors(errors, chains) if something else "draws"
    if something and source != errors:
        reasons.append(
            "one chain has no standard error, because its draws are more even than random ones; take two "
            "chains or more."
        )
    if period is not None and draws != period and not blind:
        reasons.append(
            f"averages are meant to be taken over {period:,} draws, and {draws:,} were made; there is no "
            "gain before the period is complete."
        )
    if blind and bests is not None and bests.size:
        top = float(bests.max())
        found = int((bests >= top - _ROUNDING * (1.0 + abs(top))).sum())
        if found < 2:
            reasons.append(
                f"the best state was found by one chain of {chains}: there may be better ones; run longer, "
                "or use more chains."
            )
    elif blind:
        reasons.append(
            "no probabilities were recorded, so nothing shows whether the chains agree; add "
            "gs.Marginals() to record=."
        )
    worst = _find_worst(cells, chains, draws, name) if source != "none" else _Worst()
    if worst.rhat == np.inf and draws < _FEWEST_DRAWS:
        reasons.append("the run is too short to tell whether chains agree; run longer.")
    elif worst.rhat is not None and worst.rhat > RHAT_LIMIT:
        parts = "chains disagree" if chains > 1 else "the two halves of the chain disagree"
        reasons.append(
            f"{parts}: R-hat is {in_words(worst.rhat, '.3f')} at {worst.rhat_at}, more than {RHAT_LIMIT}; "
            "run longer."
        )
    if worst.ess is not None and worst.ess < ESS_LIMIT and cells.mean.size:
        place = f" at {worst.ess_at}" if worst.ess_at else ""
        reasons.append(
            f"too few effective draws: {worst.ess:.0f}{place}, fewer than {ESS_LIMIT:.0f}; run longer."
        )
    energy_rhat = None if pulse is None or not pulse.size else measure_disagreement(pulse)
    if energy_rhat is not None and energy_rhat > _ENERGY_LIMIT and chains > 1:
        size = in_words(energy_rhat, ".3f")
        reasons.append(
            f"chains disagree in energy: R-hat of the log-potential is {size}, more than "
            f"{_ENERGY_LIMIT}; they may be in different modes, or still settling; run longer."
        )
    reasons += _doubtful(doubts)
    if isinstance(look, Look):
        reasons += _describe_look(look, cells, name)
    elif look == "no time" and not reasons:
        reasons.append(
            "there was no time for a second look from other starts, so other modes may have been missed; "
            "allow more time."
        )
    doubted: dict[str, int] = {}
    for doubt in doubts:
        doubted[doubt.site] = doubted.get(doubt.site, 0) + 1
    return Diagnostics(
        converged=not reasons and source != "none",
        reasons=tuple(reasons),
        rhat_max=worst.rhat,
        rhat_at=worst.rhat_at,
        ess_min=worst.ess,
        ess_at=worst.ess_at,
        mcse_max=worst.error,
        disagreement=float(cells.spread.max(initial=0.0)),
        frozen=tuple(doubted),
        unreached=doubts,
        chains=chains,
        draws=draws,
        errors=source,
        found=found,
        second_look=_look_word(look),
        look_chains=look.chains if isinstance(look, Look) else 0,
        look_sweeps=look.sweeps if isinstance(look, Look) else 0,
        energy_rhat=energy_rhat,
        judged=cells.mean.size,
        cells=cells.mean.size if n_cells is None else max(n_cells, cells.mean.size),
        mcse_in_sds=worst.in_sds,
    )


def _look_word(look: Look | str) -> str:
    return look if isinstance(look, str) else "agrees" if look.findings.agree else "differs"


def _describe_look(look: Look, cells: CellNumbers, name: Any) -> list[str]:
    """Put what a second look has found into words."""
    found = look.findings
    if found.agree:
        return []
    said = f"a second look with {look.chains} short chains from other starts ({look.sweeps} sweeps each) "
    if found.cells:
        places = ", ".join(name(cell) for cell in found.cells)
        said += (
            f"finds two groups of chains: {found.strangers} of them differ from the run at {places} "
            f"(the first is {found.there[0]:.3g} in these chains, {found.here[0]:.3g} in the run)"
        )
        said += f", and {found.energy}" if found.energy else ""
        said += "; there may be several modes, whose weights are not known"
    else:
        said += f"does not agree with it in energy: {found.energy}; there may be modes that it has not seen"
    if not look.complete:
        said += ", or the short chains had too little time to settle"
    return [f"{said}."]


class _Worst(NamedTuple):
    """The worst numbers of a run and where they are; None where nothing is known."""

    rhat: float | None = None
    rhat_at: str = ""
    ess: float | None = None
    ess_at: str = ""
    error: float | None = None
    in_sds: bool = False


def _find_worst(cells: CellNumbers, chains: int, draws: int, name: Any) -> _Worst:
    material = _is_material(cells.mean, cells.numbers)
    minor = ~material & (cells.spread > _AGREEMENT)
    judged = np.flatnonzero(material | minor)
    errors = cells.error / cells.scale
    error = float(errors.max(initial=0.0))
    in_sds = bool(cells.numbers.size) and int(np.argmax(errors)) in cells.numbers
    if not judged.size:
        return _Worst(1.0, "", float(chains * draws), "", error, in_sds)
    most = int(judged[np.argmax(cells.rhat[judged])])
    least = int(judged[np.argmin(cells.ess[judged])])
    return _Worst(float(cells.rhat[most]), name(most), float(cells.ess[least]), name(least), error, in_sds)
