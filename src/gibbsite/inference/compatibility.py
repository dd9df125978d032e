"""Tests of whether conditionals, given as functions that draw, are those of a joint log-density.

At random places each block is drawn many times. Given the rest of such a draw, a coordinate of the block should follow
the density along its own axis. Its distribution function, found by integration, then maps it to a uniform number for
any values of the other coordinates (states are spread over the step of their code), whose normal score is standard
normal. Five tests of every site, all of exact or bounded level, check this:

* the sum over places of squared means of scores, times the number of draws: chi-squared;
* the sum of all squared scores: chi-squared, against widths that are too large or too small;
* the same for every place separately, against widths whose errors cancel between places;
* the largest distance of the empirical from the uniform distribution function, over all draws, and at each
  place: at most 2 exp(-2 n distance^2), by the inequality of Dvoretzky, Kiefer and Wolfowitz [1]_.

The smallest deviations that these tests would detect are computed, too: passing excludes larger deviations, but not
smaller ones.

References
----------
.. [1] Massart, P. (1990). The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Annals of
   Probability 18.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing
from gibbsite.errors import ArgumentError
from gibbsite.inference.examination import Examination, Scores
from gibbsite.models.conditionals import Conditionals
from gibbsite.sampling.progress import choose_progress

_TESTS = 5  # of every site
_MOST_DRAWS = 10**7
_QUIET_SECONDS = 2.0  # before the first line about progress


class Deviations(NamedTuple):
    """Deviations of a conditional from the one that belongs to the density.

    Attributes
    ----------
    mean : float
        Deviation of the mean, in standard deviations (root mean square over places).
    sd : float
        Relative deviation of the standard deviation.
    distance : float
        Largest difference of distribution functions; for states, of their cumulative probabilities.
    """

    mean: float
    sd: float
    distance: float


@dataclass(frozen=True)
class Compatibility:
    """How well conditionals agree with a joint density.

    Attributes
    ----------
    verdict : {"compatible", "incompatible", "undecided"}
        Whether deviations as large as ``tolerance`` are excluded, a deviation was found, or more draws are needed.
    p_values : dict
        Smallest p-value of each site, times the number of all tests (Bonferroni).
    worst : str
        The site that agrees least.
    evidence : str
        What is wrong with it, empty if nothing was found.
    detects : Deviations
        The smallest deviations that would have been found with probability ``power``. Those of mean and standard
        deviation are exact for normal conditionals, and otherwise refer to normal scores.
    tolerance, power, false_alarm : float
        As asked for.
    n_draws, needed : int
        Draws of every site, and how many are needed for a decision.
    """

    verdict: Literal["compatible", "incompatible", "undecided"]
    p_values: dict[str, float]
    worst: str
    evidence: str
    detects: Deviations
    tolerance: float
    power: float
    false_alarm: float
    n_draws: int
    needed: int

    @property
    def compatible(self) -> bool:
        """Whether deviations as large as the tolerance are excluded."""
        return self.verdict == "compatible"

    def __bool__(self) -> bool:
        return self.compatible

    def __str__(self) -> str:
        found = self.detects
        able = (
            f"standard deviations off by {found.sd:.1%}, means off by {found.mean:.2g} of them, or "
            f"distribution functions off by {found.distance:.2g} would have been found with probability "
            f"{self.power:.4g} ({self.n_draws:,} draws of every site)"
        )
        if self.verdict == "incompatible":
            return f"incompatible: {self.evidence} (p = {self.p_values[self.worst]:.2g})."
        if self.verdict == "undecided":
            return f"undecided: {able}; for {self.tolerance:g} take {self.needed:,} draws of every site."
        return f"compatible: {able}."

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        rows = [(name, f"{p:.2g}") for name, p in self.p_values.items()]
        about = str(self).removeprefix(f"{self.verdict}: ")
        return card(self.verdict, [about], good=self.compatible, table=grid(("site", "p-value"), rows))


@checked
def check_conditionals(
    model: Conditionals,
    *,
    tolerance: float = 0.1,
    places: int = 10,
    draws: int | None = None,
    false_alarm: float = 1e-6,
    power: float = 0.999,
    start: npt.ArrayLike | None = None,
    rng: Any = 0,
    progress: Any = None,
) -> Compatibility:
    """Check that the conditionals of a model are those of its joint log-density.

    Parameters
    ----------
    model : Conditionals
        With ``log_density``.
    tolerance : float
        The deviation that must be detected, of a mean (in standard deviations), of a standard deviation (relative) and
        of a distribution function; see :class:`Deviations`.
    places : int
        Number of random places, which are reached from the start by the conditionals themselves.
    draws : int, optional
        Draws of every block at each place; by default the number that the tolerance requires.
    false_alarm : float
        Largest probability of calling correct conditionals incompatible.
    power : float
        Smallest probability of detecting a deviation as large as the tolerance.
    start : array (n,), optional
        A place to begin at.
    rng : int or Generator
        Seed.
    progress : optional
        None or True: a line on stderr if the check takes longer than two seconds; False: silent; a function: called
        with a ``Status``.

    Returns
    -------
    Compatibility
        Its truth value is whether it is "compatible"; ``print`` shows the verdict in a sentence.

    Raises
    ------
    ModelError
        If there is no joint density, it is not a number somewhere, or a conditional fails.

    Notes
    -----
    For a site that is a number and is drawn alone, the density is computed at about 300 points at each place, more
    where it has kinks or heavy tails. Details narrower than about a hundredth of the range of the draws may be missed.

    Examples
    --------
    >>> import gibbsite as gs
    >>> density = lambda x: -0.5 * (x[0] ** 2 - 1.6 * x[0] * x[1] + x[1] ** 2) / 0.36
    >>> right = lambda k: lambda x, rng: rng.normal(0.8 * x[k], 0.6)
    >>> check_conditionals(gs.Conditionals({"a": right(1), "b": right(0)}, log_density=density)).verdict
    'compatible'
    >>> wrong = lambda x, rng: rng.normal(0.8 * x[0], 0.5)
    >>> found = check_conditionals(gs.Conditionals({"a": right(1), "b": wrong}, log_density=density))
    >>> found.verdict, found.evidence
    ('incompatible', "the standard deviation of 'b' is 0.84 times that of the density")
    """
    if not isinstance(model, Conditionals) or model.log_density is None:
        raise ArgumentError("check_conditionals needs gs.Conditionals(..., log_density=...), the joint density.")
    _check_numbers(tolerance, places, draws, false_alarm, power)
    tested = [name for block, draw in zip(model.blocks, model.draws, strict=True) if draw for name in block]
    level = false_alarm / (_TESTS * max(len(tested), 1))
    needed = _draws_needed(tolerance, places, level, power)
    many = needed if draws is None else int(draws)
    show = choose_progress(progress, first=_QUIET_SECONDS)
    with closing(show), announcing(show.say, "your functions"):
        scores = Examination(model, rng, start).scores(places, many, show)
    findings = {name: _judge(each) for name, each in scores.items()}
    p_values = {name: min(min(p for p, _ in found) * _TESTS * len(findings), 1.0) for name, found in findings.items()}
    worst = min(p_values, key=lambda name: p_values[name], default="")
    detects = _detectable(places, many, level, power)
    evidence = ""
    verdict: Literal["compatible", "incompatible", "undecided"] = "undecided"
    if worst and p_values[worst] < false_alarm:
        verdict = "incompatible"
        evidence = min(findings[worst])[1].format(repr(worst))
    elif max(detects) <= tolerance or not findings:
        verdict = "compatible"
    return Compatibility(
        verdict,
        p_values,
        worst,
        evidence,
        detects,
        float(tolerance),
        float(power),
        float(false_alarm),
        places * many,
        places * needed,
    )


def _check_numbers(tolerance: Any, places: Any, draws: Any, false_alarm: Any, power: Any) -> None:
    for name, value in (("tolerance", tolerance), ("false_alarm", false_alarm), ("power", power)):
        if not isinstance(value, int | float | np.number) or not 0 < value < 1:
            raise ArgumentError(f"{argument(name)} must be a number between 0 and 1, got {value!r}.")
    for name, count in (("places", places), ("draws", 2 if draws is None else draws)):
        check_integer(name, count, 1)


# ---- tests and the deviations that they detect


def _judge(found: Scores) -> list[tuple[float, str]]:
    """Return the p-value and the message of every test of a site; messages are formats for the name of the site."""
    from scipy import special, stats

    z = found.score
    places, draws = z.shape
    shift, squares = z.mean(axis=1), np.square(z).sum(axis=1)
    each = special.ndtri(stats.chi2.cdf(squares, draws))
    below = float(stats.chi2.cdf(squares.sum(), z.size))
    above = float(stats.chi2.sf(squares.sum(), z.size))
    distance = _distance(z.ravel())
    apart = [_distance(row) for row in z]
    far, wide, off = (int(np.argmax(np.abs(part))) for part in (shift, each, apart))
    width = math.sqrt(float(np.square(z).mean()))
    said = "the distribution function of {} is off by "
    wrong = [
        f"given {found.places[far]}, the mean of {{}} is off by {shift[far]:.3g} standard deviations",
        f"the standard deviation of {{}} is {width:.3g} times that of the density",
        f"given {found.places[wide]}, the standard deviation of {{}} is "
        f"{math.sqrt(squares[wide] / draws):.3g} times that of the density",
        f"{said}{distance:.3g}",
        f"{said}{apart[off]:.3g} given {found.places[off]}",
    ]
    if found.discrete:
        wrong[:3] = [f"the probabilities of {{}} are off by {max(apart):.3g} given {found.places[off]}"] * 3
    if found.impossible:
        return [(0.0, found.impossible)] * _TESTS
    chances = [
        float(stats.chi2.sf(draws * np.square(shift).sum(), places)),
        2.0 * min(below, above),
        float(stats.chi2.sf(np.square(each).sum(), places)),
        2.0 * math.exp(-2.0 * z.size * distance**2),
        2.0 * places * math.exp(-2.0 * draws * max(apart) ** 2),
    ]
    return list(zip(chances, wrong, strict=True))


def _distance(z: Floats) -> float:
    """Return the largest difference between the empirical and the normal distribution function."""
    from scipy import special

    u = np.sort(special.ndtr(z))
    steps = np.arange(u.size + 1) / u.size
    return float(max((steps[1:] - u).max(), (u - steps[:-1]).max()))


def _detectable(places: int, draws: int, level: float, power: float) -> Deviations:
    """Return the deviations that tests of a given level detect with a given probability."""
    from scipy import optimize, stats

    total = places * draws
    limit = float(stats.chi2.isf(level, places))
    most = 4.0 * limit + 100.0
    shift = optimize.brentq(lambda nc: stats.ncx2.sf(limit, places, nc) - power, 1e-9, most)
    wide = math.sqrt(stats.chi2.isf(0.5 * level, total) / stats.chi2.isf(power, total)) - 1.0
    narrow = 1.0 - math.sqrt(stats.chi2.ppf(0.5 * level, total) / stats.chi2.ppf(power, total))
    apart = math.sqrt(math.log(2.0 / level)) + math.sqrt(math.log(2.0 / (1.0 - power)))
    return Deviations(math.sqrt(shift / total), max(wide, narrow), apart / math.sqrt(2.0 * total))


def _draws_needed(tolerance: float, places: int, level: float, power: float) -> int:
    """Return the number of draws at each place that suffices to detect deviations as large as the tolerance."""
    low, high = 1, 2
    while max(_detectable(places, high, level, power)) > tolerance:
        low, high = high, 2 * high
        if high > _MOST_DRAWS:
            raise ArgumentError(
                f"a tolerance of {tolerance:g} needs more than {_MOST_DRAWS:,} draws at a place; raise it."
            )
    while high - low > 1:
        middle = (low + high) // 2
        if max(_detectable(places, middle, level, power)) > tolerance:
            low = middle
        else:
            high = middle
    return high
