"""How a model is fitted: penalty, bounds, gradients, and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.learn.expectation import SCANS, Exact, Sampled
from gibbsite.learn.family import Family
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.scans.base import Scan

_STEPS, _EXACT_STEPS = 100, 20_000


@dataclass(frozen=True)
class Settings:
    """Keywords of :func:`fit_ising` and :func:`fit_pairwise`.

    Parameters
    ----------
    ridge : float
        Penalty: half this number times the sum of the squares of all parameters is added to minus the mean
        log-likelihood.
    box : float, optional
        Largest absolute coupling, or entry of a table of a pair.
    mixing : float, optional
        Largest total influence on a site (its row of the Dobrushin matrix), below 1, so that chains forget
        their start at a known rate. For spins it bounds the sum of absolute couplings of a site; entries of
        tables are kept so small that it holds.
    gradient : {"sampled", "exact"}
        Where mean statistics come from: chains, or all states (or a clique tree), for small models.
    scan : {"dogs", "systematic", "uniform", "shuffled", "chromatic"} or Scan
        Order of updates: "dogs" optimises it anew at every gradient step. Where the bound that it optimises
        does not reach the accuracy, it cannot tell good orders from bad ones, and updates are systematic.
    accuracy : float, optional
        How far the law of a chain's state may be from the model, in total variation; it decides how many
        updates each chain makes at each gradient step. If no number is known to suffice, an error is raised.
        By default 0.01 where a number is known to suffice, otherwise 30 sweeps, with a warning.
    updates : int, optional
        That number; nothing is guaranteed then, but what can be said is in ``Fit.variations``.
    chains : int
        Independent chains; each gives one state per gradient step.
    persistent : bool
        Chains go on where they were, instead of starting afresh; fewer updates may do, but no bounds are known.
    steps : int, optional
        Gradient steps; 100 by default. Exact gradients: at most 20 000, until nothing moves.
    step_size : float, optional
        By default one over the largest curvature that the covariance of the data suggests; 0.1 with moments.
    start : array, optional
        First parameters, pairs first; zero by default.
    check : bool
        Whether to sample once more at the end to bound the error of the parameters; needs a ridge.
    confidence : float
        Of that bound.
    rng : int, Generator or SeedSequence, optional
        Seed.
    threads : int, optional
        All usable cores by default. The numbers do not depend on it.
    progress : optional
        None: shown on stderr; False: silent; a function: called with every status.

    Examples
    --------
    >>> Settings(ridge=1.0, scan="uniform", updates=561).scan
    'uniform'
    """

    ridge: float = 0.0
    box: float | None = None
    mixing: float | None = None
    gradient: str = "sampled"
    scan: Scan | str = "dogs"
    accuracy: float | None = None
    updates: int | None = None
    chains: int = 1000
    persistent: bool = False
    steps: int | None = None
    step_size: float | None = None
    start: Any = None
    check: bool = True
    confidence: float = 0.9
    rng: Any = None
    threads: int | None = None
    progress: Any = None

    def __post_init__(self) -> None:
        if self.gradient not in ("sampled", "exact"):
            raise ArgumentError(f"{argument('gradient')} must be sampled or exact, got {self.gradient!r}.")
        check_number("ridge", self.ridge, zero=True)
        limits = {"box": np.inf, "mixing": 1.0, "accuracy": 1.0, "step_size": np.inf, "confidence": 1.0}
        for name, most in limits.items():
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), below=most)
        if isinstance(self.scan, str):
            if self.scan != "dogs" and self.scan not in SCANS:
                raise ArgumentError(unknown("scan", self.scan, ("dogs", *SCANS)))
        elif not isinstance(self.scan, Scan):
            raise ArgumentError(
                f"{argument('scan')} must be a name or a scan such as gs.Systematic(), got {self.scan!r}."
            )

    @property
    def exact(self) -> bool:
        """Whether gradients are exact."""
        return self.gradient == "exact"

    @property
    def most_steps(self) -> int:
        """Gradient steps, at most."""
        usual = _EXACT_STEPS if self.exact else _STEPS
        return usual if self.steps is None else check_integer("steps", self.steps, 1)

    def oracle(self, family: Family) -> Exact | Sampled:
        """Return what computes mean statistics."""
        if self.exact:
            return Exact(family)
        return Sampled(
            family,
            SCANS.get(self.scan, "dogs") if isinstance(self.scan, str) else self.scan,
            self.accuracy,
            None if self.updates is None else check_integer("updates", self.updates, 1),
            check_integer("chains", self.chains, 1),
            self.persistent,
            read_entropy(self.rng),
            read_threads(self.threads),
        )
