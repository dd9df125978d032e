"""Arguments of fits: settings, data, moments, and the pairs that may be coupled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number, checked_constructor, is_iterable
from gibbsite._common.arrays import Floats, Ints, Ints16, Ints32
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.learn.expectation import SCANS, Exact, Sampled
from gibbsite.learn.family import Family
from gibbsite.models import FactorGraph
from gibbsite.models.domain import MOST_STATES
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.scans.base import Scan

_STEPS, _EXACT_STEPS = 100, 20_000


@checked_constructor
@dataclass(frozen=True)
class Settings:
    """Keywords of :func:`fit_ising` and :func:`fit_pairwise`.

    Parameters
    ----------
    ridge : float, optional
        Penalty: half this number times the sum of the squares of all parameters is added to minus the mean
        log-likelihood. By default there is none, unless some statistic never changes in the data: then it is one over
        the number of draws, with a warning.
    box : float, optional
        Largest absolute coupling, or entry of a table of a pair.
    mixing : float, optional
        Largest total influence on a site (the row sum of the Dobrushin matrix), below 1, so that chains forget
        their start at a known rate. For spins it bounds the sum of absolute couplings of a site; entries of
        tables are kept small enough for it to hold.
    gradient : {"sampled", "exact"}
        Compute mean statistics from chains, or exactly from all states or a clique tree, for small models.
    scan : {"dogs", "systematic", "uniform", "shuffled", "chromatic"} or Scan
        Order of updates: "dogs" optimises it at every gradient step. If the bound that it optimises does not reach
        the accuracy, it cannot distinguish good orders from bad ones, and the systematic order is used.
    accuracy : float, optional
        Largest total variation distance between the distribution of a chain's state and the model, which determines
        the number of updates of each chain at each gradient step. If no number is known to suffice, an error is
        raised. By default 0.01 if a number is known to suffice, otherwise 30 sweeps, with a warning.
    updates : int, optional
        Number of updates of each chain at each gradient step, without a guarantee; ``Fit.variations`` has the bounds
        that hold.
    chains : int
        Number of independent chains, each of which gives one state per gradient step.
    persistent : bool
        Continue the chains of the previous step instead of restarting them; fewer updates may suffice, but no bounds
        are known.
    steps : int, optional
        Number of gradient steps, 100 by default; with exact gradients at most 20,000, until convergence.
    step_size : float, optional
        By default, one over the largest curvature according to the covariance of the data, or 0.1 for moments.
    start : array, optional
        First parameters, pairs first; zero by default.
    check : bool
        Whether to sample once more at the end to bound the error of the parameters; requires a ridge.
    confidence : float
        Confidence level of that bound.
    rng : int, Generator or SeedSequence, optional
        Seed.
    threads : int, optional
        All usable cores by default. The numbers do not depend on it.
    progress : optional
        None to show progress on stderr, False for none, or a function that is called with every status.

    Examples
    --------
    >>> Settings(ridge=1.0, scan="uniform", updates=561).scan
    'uniform'
    """

    ridge: float | None = None
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
        if self.ridge is not None:
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
        """Largest number of gradient steps."""
        usual = _EXACT_STEPS if self.exact else _STEPS
        return usual if self.steps is None else check_integer("steps", self.steps, 1)

    def oracle(self, family: Family) -> Exact | Sampled:
        """Return the object that computes mean statistics."""
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


def read_numbers(given: Any, what: str) -> Floats:
    """Return an array of finite numbers; refuse other arguments."""
    array = read_reals(given, what)
    if not np.isfinite(array).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ArgumentError(f"{argument(what)} must be finite, but entry {at} is {array[at]}.")
    return array


def read_codes(data: Any, states: int | None = None, spins: bool = False) -> Ints16:
    """Return data as state codes (draws, sites).

    ``data`` (draws, sites) has the codes 0, 1, ...; if ``spins`` is set, it may have -1 and 1 instead.
    """
    array = read_numbers(data, "data")
    if array.ndim != 2 or not array.size:
        raise ArgumentError(f"{argument('data')} must have shape (draws, sites), one row per draw, got {array.shape}.")
    if spins and (array == -1.0).any():
        array = np.where(array == -1.0, 0.0, np.where(array == 1.0, 1.0, np.nan))
    else:
        most = MOST_STATES if states is None else states
        array = np.where((array >= 0) & (array < most) & (array == np.floor(array)), array, np.nan)
    wrong = np.argwhere(np.isnan(array))
    if len(wrong):
        at = tuple(int(k) for k in wrong[0])
        allowed = "-1 and 1, or 0 and 1" if spins else f"whole numbers from 0 to {(states or MOST_STATES) - 1}"
        value = np.asarray(data)[at]
        raise ArgumentError(f"{argument('data')} must be {allowed}, but entry {at} is {value}.")
    return array.astype(np.int16)


def read_pairs(structure: Any, n: int, sites: Any = None) -> Ints32:
    """Return pairs i < j, in their given order.

    ``structure`` is "complete", a model whose pairs are taken, or a list of pairs of positions or names; ``n`` is the
    number of sites, and ``sites`` are their names.
    """
    if isinstance(structure, str):
        if structure != "complete":
            raise ArgumentError(
                f'structure must be "complete", "screened", a model or a list of pairs, got {structure!r}.'
            )
        found = np.stack(np.triu_indices(n, 1), axis=1)
    elif isinstance(structure, FactorGraph):
        if structure.n_sites != n:
            raise ArgumentError(f"The structure has {structure.n_sites} sites, the data {n}.")
        if any(group.size and group.arity > 2 for group in structure.groups):
            raise ArgumentError("The structure has factors of more than two sites; give a list of pairs.")
        scopes = [group.scopes for group in structure.groups if group.arity == 2 and group.size]
        found = np.concatenate([np.zeros((0, 2), np.int32), *scopes])
    else:
        found = _listed(structure, sites)
    if found.size and (found.min() < 0 or found.max() >= n):
        bad = next(pair for pair in found.tolist() if min(pair) < 0 or max(pair) >= n)
        raise ArgumentError(f"The pair {tuple(bad)} names a site outside 0..{n - 1}.")
    pairs = np.sort(found, axis=1).astype(np.int32)
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ArgumentError(f"The structure couples site {pairs[pairs[:, 0] == pairs[:, 1]][0, 0]} to itself.")
    unique, times = np.unique(pairs, axis=0, return_counts=True)
    if (times > 1).any():
        raise ArgumentError(f"The structure has the pair {tuple(unique[times > 1][0].tolist())} twice.")
    return pairs


def _listed(structure: Any, sites: Any) -> Ints:
    if not is_iterable(structure):
        raise ArgumentError(f"{argument('structure')} must be a list of pairs of sites, got {structure!r}.")
    names = {} if sites is None else {name: k for k, name in enumerate(sites)}
    listed = []
    for pair in structure:
        ends = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else ()
        if len(ends) != 2:
            raise ArgumentError(f"{argument('structure')} must be a list of pairs of sites, but one entry is {pair!r}.")
        for end in ends:
            if end not in names and (isinstance(end, bool) or not isinstance(end, int | np.integer)):
                raise ArgumentError(f"The pair {ends} names the unknown site {end!r}.")
        listed.append([names.get(end, end) for end in ends])
    return np.array(listed, np.int64).reshape(-1, 2)
