"""Which method for a target? Asked of the target itself: every method that applies has a short turn.

Methods are compared by effective draws a second, of the site or state that has fewest, after a warmup of
their own; a rate that was measured on the target at hand says more than any table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import is_number
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph
from gibbsite.inference.efficiency import measure_efficiency
from gibbsite.kernels.base import Kernel, is_quick
from gibbsite.kernels.registry import default_kernel, registered_kernels
from gibbsite.results.wording import in_words
from gibbsite.scans.base import Scan
from gibbsite.scans.chromatic import Chromatic

if TYPE_CHECKING:
    from gibbsite.models import Model


_AGREE = 1.1  # R-hat above which chains are taken to disagree


@dataclass(frozen=True)
class Candidate:
    """A method, and how it did.

    Attributes
    ----------
    name : str
        What it is called.
    kernel, scan
        To be given to :func:`gibbsite.sample`.
    rate : float
        Effective draws a second, at most as many as there were draws; NaN if it failed.
    note : str
        Why it failed, or what to know.
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
        """The method with most effective draws a second."""
        return self.candidates[0]

    @property
    def kernel(self) -> Kernel:
        """Its kernel."""
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
        # conditionals that are the same in every draw, as one half by symmetry, tell their marginals at once
        # and nothing about how the chain moves: no draw counts for more than one
        return replace(candidate, rate=min(found.effective, found.draws) / found.seconds)
    # a rate from chains that disagree is no rate: each of them is worth a draw
    return replace(candidate, rate=chains / found.seconds, note=f"R-hat {in_words(found.rhat, '.2f')}")


def _candidates(graph: Graph) -> list[Candidate]:
    """Return the kernels that are registered to be tried, as far as they take the graph."""
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
