"""The check of normal distributions, which have one mode: their means are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gibbsite.results.measure.agreement import Findings
from gibbsite.results.verdict.convergence import StartCheck
from gibbsite.results.wording import tell_apart

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording
    from gibbsite.sampling.setup import Setup

_SIGMAS = 6.0  # standard errors that a mean may be off, and a little for rounding
_ROUNDING = 1e-9


class KnownMean:
    """Compares the means of a run with those of its normal distribution."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def examine(self, recording: Recording, result: Result, stop: Callable[[float], bool]) -> StartCheck | str:
        """Return where the means of a run differ from the known ones."""
        model = self.setup.model
        cards = np.asarray(model.cards, np.intp)
        if result.totals.shape[1] < int(cards.sum()):
            return StartCheck(0, 0)  # only some sites were recorded
        cells = np.cumsum(cards) - cards
        numbers, known = result.numbers, self.setup.graph.arrays.mean
        gap = np.abs(numbers.mean[cells] - known)
        slack = _SIGMAS * numbers.error[cells] + _ROUNDING * (1.0 + np.abs(known))
        worst = int(np.argmax(gap - slack))
        if not gap[worst] > slack[worst]:
            return StartCheck(0, 0)
        here, there = tell_apart(float(numbers.mean[cells][worst]), float(known[worst]))
        said = (
            f"the mean of {model.domains.names[worst]} is {here} in the run, and {there} is right: its "
            "chains move so slowly that their standard errors do not show it; run longer."
        )
        return StartCheck(0, 0, Findings(said=said))
