"""``gibbsite.influence.short_runs``, marginals from independent short runs with intervals that include the bias."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_share, checked
from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.wording import unknown
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.support.possible import has_zeros
from gibbsite.graphs.support.start import start_states
from gibbsite.inference.influence.blocks import BlockOrder
from gibbsite.inference.influence.bound import choose_influence, read_target
from gibbsite.inference.influence.certificate import make_decay, needs_states, read_length, read_scan
from gibbsite.inference.influence.optimise import DogsScan
from gibbsite.kernels.base import units_of
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.results.table import SiteTable
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.repeat import Sums, make_short_run
from gibbsite.scans.base import Scan

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

INTERVALS = ("bernstein", "student")


_SHOWN = 10  # sites in a notebook


@dataclass(frozen=True, eq=False)
class ShortRuns:
    """Marginals of some sites from independent short runs.

    Attributes
    ----------
    marginals, mcse : SiteTable
        Means over runs of the conditional probabilities at the last visit of each site, and their standard errors,
        which do not include the bias.
    low, high : SiteTable
        Ends of the confidence interval of each probability, which covers sampling error and bias together.
    bias : dict
        Site -> the largest bias of its probabilities, from any start.
    runs, steps : int
        Number of runs, and of steps of each.
    confidence : float
        The probability that a single interval covers the true value.
    interval : str
        How sampling errors were bounded.
    """

    marginals: SiteTable
    mcse: SiteTable
    low: SiteTable
    high: SiteTable
    bias: dict[str, float]
    runs: int
    steps: int
    confidence: float
    interval: str

    @property
    def statement(self) -> str:
        """The results as text, for up to five sites."""
        text = [f"{self.runs} runs of {self.steps} steps, {self.confidence:.3g} confidence:"]
        for name, _ in zip(self.marginals, range(5), strict=False):
            label, p = list(self.marginals[name].items())[-1]
            within = f"[{self.low[name][label]:.4f}, {self.high[name][label]:.4f}]"
            text.append(f"P({name}={label}) = {p:.4f}, in {within} (bias at most {self.bias[name]:.2g}).")
        more = len(self.marginals) - 5
        return " ".join(text) + (f" And {more} sites more." if more > 0 else "")

    def __repr__(self) -> str:
        return f"ShortRuns({self.statement})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        names = list(islice(self.marginals, _SHOWN))
        rows = [
            (name, label, f"{p:.4f}", f"{self.low[name][label]:.4f} to {self.high[name][label]:.4f}", f"{bias:.2g}")
            for name in names
            for label, p in self.marginals[name].items()
            for bias in [self.bias[name]]
        ]
        heads = ("site", "state", "probability", "interval", "bias at most")
        about = f"{self.runs:,} runs of {self.steps:,} steps, {self.confidence:.3g} confidence"
        return card("ShortRuns", [about], table=grid(heads, rows, len(self.marginals) - len(names), "sites"))


@checked
def short_runs(
    model: FactorGraph,
    *,
    scan: Any = None,
    target: Any = None,
    runs: int = 10_000,
    steps: int | None = None,
    sweeps: int | None = None,
    start: Any = None,
    rng: Any = None,
    confidence: float = 0.95,
    interval: str = "bernstein",
    influence: Any = None,
    threads: int | None = None,
) -> ShortRuns:
    """Estimate marginals by independent short runs whose bias is bounded beforehand.

    Parameters
    ----------
    model : FactorGraph
        A discrete model, evidence folded in.
    scan : Scan or sequence of sites
        The scan of each run, preferably made by :func:`gibbsite.dogs` for the target.
    target : site or sequence of sites, optional
        The sites to estimate; by default the target of an optimised scan, otherwise all sites.
    runs : int
        Number of runs.
    steps, sweeps : int, optional
        Length of a run; by default once through a given sequence.
    start : optional
        None: a fresh random state for every run; if the model has zeros, one possible state for all.
        Otherwise one state for all runs: a mapping from names to labels, or state codes of shape (sites,).
    rng : int, Generator or SeedSequence, optional
        Seed.
    confidence : float
        The least probability that an interval covers the true value.
    interval : {"bernstein", "student"}
        How sampling errors are bounded: by the empirical Bernstein inequality, which holds for any number of runs, or
        by Student's t distribution, which is narrower by a third but approximate: for probabilities near 0 or 1 its
        coverage is a little lower.
    influence : Influence, array or sparse matrix, optional
        Bounds on influence; computed from the model by default.
    threads : int, optional
        All usable cores by default. The numbers do not depend on it.

    Returns
    -------
    ShortRuns

    Notes
    -----
    A run makes the steps of the scan with the heat bath and keeps, for each target, the conditional
    probabilities at its last visit; these have the same mean as indicators of the state, and smaller variance. Runs are
    independent, so the standard error of their mean does not depend on mixing. The bound of :func:`gibbsite.certify` is
    added on both sides of the interval. Where it is vacuous, the interval is [0, 1].

    References
    ----------
    Mitliagkas and Mackey (2017), section 5. Maurer and Pontil (2009), Empirical Bernstein bounds, theorem 4.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((100, 100), coupling=0.15, field=0.1)
    >>> scan = gs.dogs(model, target="5050", accuracy=0.01)
    >>> found = gs.influence.short_runs(model, scan=scan, runs=2000, rng=1)
    >>> found.bias["5050"] <= 0.01, found.low["5050"][1] < found.marginals["5050"][1] < found.high["5050"][1]
    (True, True)
    """
    chosen, steps, targets = _read_parts(model, scan, target, steps, sweeps)
    runs, threads = check_integer("runs", runs, 2), read_threads(threads)
    confidence = check_share("confidence", confidence)
    if interval not in INTERVALS:
        raise ArgumentError(unknown("interval", interval, INTERVALS))
    bias = _bound_sites(model, chosen, steps, targets, influence)
    sums = _make_runs(model, chosen, steps, targets, runs, start, read_entropy(rng), threads)
    mean = sums.total / runs
    variance = np.maximum(sums.square - runs * mean**2, 0.0) / (runs - 1)
    half = _half_width(variance, runs, 1.0 - confidence, interval) + np.repeat(
        bias, np.bincount(sums.site, minlength=model.n_sites)[targets]
    )
    mask = np.zeros(model.n_sites, bool)
    mask[targets] = True
    domains = model.domains.keep(mask)
    binary = compile_graph(model).binary

    def table(cells: Floats, complement: bool = True) -> SiteTable:
        return SiteTable(domains, cells, binary, complement)

    low, high = np.clip(mean - half, 0.0, 1.0), np.clip(mean + half, 0.0, 1.0)
    if binary:  # the interval of state 0 is the mirror image, so give both states their own cells
        low, high = (np.stack([1.0 - a, b], axis=1).ravel() for a, b in ((high, low), (low, high)))
    return ShortRuns(
        marginals=table(mean),
        mcse=table(np.sqrt(variance / runs), False),
        low=SiteTable(domains, low),
        high=SiteTable(domains, high),
        bias=dict(zip(domains.names.all(), bias.tolist(), strict=True)),
        runs=runs,
        steps=steps,
        confidence=float(confidence),
        interval=interval,
    )


def _read_parts(
    model: FactorGraph, scan: Any, target: Any, steps: int | None, sweeps: int | None
) -> tuple[Scan, int, Ints32]:
    """Return the scan, its number of steps, and the targets in ascending order."""
    if target is None and isinstance(scan, DogsScan) and scan.n_sites == model.n_sites:
        target = scan.targets.tolist()
    targets = np.flatnonzero(read_target(model, target)).astype(np.int32)
    needs_states(model, "short runs")
    chosen = read_scan(scan)
    per_sweep = len(chosen.blocks) if isinstance(chosen, BlockOrder) else model.n_sites
    return chosen, read_length(chosen, per_sweep, steps, sweeps, None), targets


def _bound_sites(model: FactorGraph, scan: Scan, steps: int, targets: Ints32, influence: Any) -> Floats:
    """Bound the bias of each target."""
    if (
        isinstance(scan, DogsScan)
        and influence is None
        and steps == len(scan.order)
        and scan.targets.tolist() == targets.tolist()
        and targets.size == 1
        and scan.model == model.digest
    ):  # the scan was certified for exactly these steps and targets
        return np.minimum(scan.variation / scan.target_weights, 1.0)
    bounds = choose_influence(model, influence)
    decay = make_decay(model, scan, read_target(model, targets.tolist()), bounds)
    return np.minimum(decay.bounds(steps)[targets], 1.0)


def _make_runs(
    model: FactorGraph, scan: Scan, steps: int, targets: Ints32, runs: int, start: Any, entropy: int, threads: int
) -> Sums:
    graph, kernel = compile_graph(model), scan.kernel() or Gibbs()
    graph = replace(graph, units=units_of(kernel, graph))
    run = make_short_run(model, graph, kernel, scan, steps, targets)
    fresh = start is None and not has_zeros(graph)
    x = None if fresh else start_states(model, graph, 1, start, entropy)[0]

    def make(part: int) -> Sums:
        many = min(run.part, runs - part * run.part)
        if x is None:
            rows = run.draw_starts(many, entropy, part)
        else:
            rows = np.repeat(x[run.sites][None], many, axis=0)
        return run.make(rows, stream(entropy, part), x)

    with Threads(threads) as executor:
        parts = executor.map(make, range(-(-runs // run.part)))
    total, square = (np.sum([getattr(each, what) for each in parts], axis=0) for what in ("total", "square"))
    return parts[0]._replace(total=total, square=square)


def _half_width(variance: Floats, runs: int, risk: float, interval: str) -> Floats:
    """Return the half-width of the confidence interval of the mean over runs."""
    if interval == "student":
        from scipy.special import stdtrit

        width: Floats = stdtrit(runs - 1, 1.0 - risk / 2.0) * np.sqrt(variance / runs)
        return width
    log = np.log(4.0 / risk)  # each side gets half the risk
    bound: Floats = np.sqrt(2.0 * variance * log / runs) + 7.0 * log / (3.0 * (runs - 1))
    return bound
