"""``gibbsite.recommend``, which tries every method that applies to a target for a short time.

Methods are compared by effective draws per second, measured on the target itself. A whole run on one thread is timed,
warmup included, after a short run that compiles. The number of effective draws is the smallest one over all means and
standard deviations (for states, probabilities), from the diagnostics of the run. It does not show a bias, so the
largest deviation from the truth is given, too, if the truth is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked, is_number
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.inference.sampling import sample
from gibbsite.kernels.base import Kernel, is_quick
from gibbsite.kernels.registry import default_kernel, registered_kernels
from gibbsite.results.wording import in_words
from gibbsite.sampling.progress import inner_runs
from gibbsite.scans.base import Scan
from gibbsite.scans.chromatic import Chromatic

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model


_SHORT = 50  # sweeps of the run that compiles


@dataclass(frozen=True)
class Efficiency:
    """The efficiency of a kernel on a model.

    Attributes
    ----------
    n_draws, effective : int, float
        Draws of all chains after the warmup, and the number of independent draws that would give the same error of the
        least accurate mean or standard deviation.
    seconds : float
        Time of the run, warmup included.
    rhat : float
        Largest R-hat; above 1.01 ``effective`` is not reliable.
    exact : bool
        Whether the kernel has the model as its stationary distribution.
    off, bias : float or None
        Largest deviation of a mean from the truth, in standard errors and in standard deviations of the target.
    report : dict
        Figures of the kernel, such as acceptance and what it has learned.
    """

    n_draws: int
    effective: float
    seconds: float
    rhat: float
    exact: bool
    off: float | None = None
    bias: float | None = None
    report: Mapping[str, float] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        """Effective draws per second."""
        return self.effective / self.seconds

    @property
    def per_draw(self) -> float:
        """Effective draws per draw."""
        return self.effective / self.n_draws

    @property
    def converged(self) -> bool:
        """Whether the chains agree; the other numbers are valid only if they do."""
        return self.rhat <= 1.01


def measure_efficiency(
    model: Model,
    kernel: Kernel,
    *,
    sweeps: int | None = 2000,
    warmup: int | None = None,
    chains: int = 4,
    rng: Any = 1,
    truth: Mapping[str, tuple[float, float]] | None = None,
    **how: Any,
) -> Efficiency:
    """Measure how many effective draws per second a kernel makes.

    Parameters
    ----------
    model, kernel
        What to measure.
    sweeps, warmup, chains, rng
        As in :func:`gibbsite.sample`; a warmup of a fifth of the sweeps by default, in which kernels learn. With
        ``sweeps=None`` the run takes ``seconds``, a tenth of them for the warmup.
    truth : mapping, optional
        Mapping from sites that are numbers to their mean and standard deviation.
    **how
        Passed to :func:`gibbsite.sample`, such as ``scan`` or ``start``.

    Returns
    -------
    Efficiency

    Examples
    --------
    >>> import gibbsite as gs
    >>> pair = gs.Gaussian(covariance=[[1.0, 0.8], [0.8, 2.0]])
    >>> found = measure_efficiency(pair, gs.kernels.GaussianGibbs(), truth={"0": (0.0, 1.0)})
    >>> 0.2 < found.per_draw < 0.9, found.off < 5.0  # 0.51 for the mean of the first site
    (True, True)
    """
    if warmup is None and sweeps is not None:
        warmup = max(200, sweeps // 5)
    how = {"chains": chains, "rng": rng, "threads": 1, "progress": False, **how}
    with inner_runs():
        sample(model, kernel, **{**how, "sweeps": _SHORT, "warmup": _SHORT})
        result = sample(model, kernel, sweeps=sweeps, warmup=warmup, **how)
    verdict, numbers = result.diagnostics, np.flatnonzero(model.domains.numbers)
    # chains that never moved agree with each other, but carry no information
    means = [result.marginals[model.sites[i]] for i in numbers.tolist()]
    stuck = any(each.get("sd") == 0.0 or each.get("resultant") == 1.0 for each in means)
    off = bias = None
    if truth is not None:
        gaps = {site: abs(result.marginals[site]["mean"] - mean) for site, (mean, _) in truth.items()}
        bias = max(gap / truth[site][1] for site, gap in gaps.items())
        off = np.inf if stuck else max(gap / result.mcse[site]["mean"] for site, gap in gaps.items())
    return Efficiency(
        n_draws=result.chains * result.n_draws,
        effective=0.0 if stuck or verdict.ess_min is None else float(verdict.ess_min),
        seconds=result.seconds,
        rhat=np.inf if stuck or verdict.rhat_max is None else float(verdict.rhat_max),
        exact=kernel.exact,
        off=off,
        bias=bias,
        report=dict(result.report),
    )


_AGREE = 1.1  # chains disagree if R-hat is larger


@dataclass(frozen=True)
class Candidate:
    """A method that was tried.

    Attributes
    ----------
    name : str
        Name of the method.
    kernel, scan
        Arguments of :func:`gibbsite.sample`.
    rate : float
        Effective draws per second, at most the number of draws; NaN if the method failed.
    note : str
        Why it failed, or a remark.
    """

    name: str
    kernel: Kernel
    scan: Scan | None = None
    rate: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Advice:
    """Methods for a target, the best first.

    Examples
    --------
    >>> import gibbsite as gs
    >>> advice = gs.recommend(gs.Gaussian(covariance=[[1.0, 0.9], [0.9, 1.0]]), seconds=0.6)
    >>> advice.best.name
    'ExactGaussian'
    """

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The method with most effective draws per second."""
        return self.candidates[0]

    @property
    def kernel(self) -> Kernel:
        """The kernel of the best method."""
        return self.best.kernel

    def table(self) -> str:
        """Return all methods as text."""
        width = max(len(candidate.name) for candidate in self.candidates)
        lines = [f"{'method':<{width}}  effective draws a second"]
        for candidate in self.candidates:
            rate = "failed" if math.isnan(candidate.rate) else f"{candidate.rate:,.0f}"
            lines.append(f"{candidate.name:<{width}}  {rate:>12}  {candidate.note}".rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        rows = [(c.name, "failed" if math.isnan(c.rate) else f"{c.rate:,.0f}", c.note) for c in self.candidates]
        heads = ("method", "effective draws a second", "note")
        return card("Advice", ["the best method first"], table=grid(heads, rows))


@checked
def recommend(model: Model, *, seconds: float = 5.0, chains: int = 2, rng: Any = None) -> Advice:
    """Try the methods that apply to a target, and return them by effective draws a second.

    Biased methods (ULA, SGLD) are left out: no number of draws makes up for a bias.

    Parameters
    ----------
    model : Model
        The target.
    seconds : float
        Time for all methods together, without compiling.
    chains : int
        Chains of every method.
    rng : int, optional
        Seed of every method; by default a fixed one.

    Returns
    -------
    Advice

    See Also
    --------
    infer : Choose a method by rules.
    exact.predict_exact : Time and memory of an exact solution.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + x[1] ** 2), lambda x: -x, dim=2)
    >>> len(gs.recommend(target, seconds=0.5).candidates)
    4
    """
    if not (is_number(seconds) and 0 < seconds < math.inf):
        raise ArgumentError(f"{argument('seconds')} must be a positive number, got {seconds!r}.")
    graph = compile_graph(model)
    candidates = _candidates(graph)
    share, seed = seconds / len(candidates), 0 if rng is None else rng
    tried = [_try(model, candidate, share, chains, seed) for candidate in candidates]
    ranked = sorted(tried, key=lambda candidate: -math.inf if math.isnan(candidate.rate) else candidate.rate)
    return Advice(tuple(reversed(ranked)))


def _try(model: Model, candidate: Candidate, seconds: float, chains: int, rng: Any) -> Candidate:
    try:
        found = measure_efficiency(
            model, candidate.kernel, scan=candidate.scan, sweeps=None, seconds=seconds, chains=chains, rng=rng
        )
    except GibbsiteError as reason:
        return replace(candidate, note=str(reason))
    if found.rhat <= _AGREE:
        # conditionals that are equal in all draws, such as one half by symmetry, have infinite effective size, which
        # says nothing about mixing; so no draw counts for more than one
        return replace(candidate, rate=min(found.effective, found.n_draws) / found.seconds)
    # if chains disagree, each of them counts as one draw
    return replace(candidate, rate=chains / found.seconds, note=f"R-hat {in_words(found.rhat, '.2f')}")


def _candidates(graph: Graph) -> list[Candidate]:
    """Return the kernels that are registered for recommendations and accept the graph."""
    found = [
        Candidate(name, kernel)
        for one in registered_kernels()
        for name, given in one.recommend.items()
        if (kernel := one.kernel(**given)).accepts(graph) and is_quick(kernel, graph)
    ]
    if graph.discrete:
        default = default_kernel(graph)
        found.append(Candidate(f"{type(default).__name__} by color", default, Chromatic()))
    return found
