"""How well a kernel works on a model: effective draws per second, and per draw.

What is timed is a whole run on one thread, warmup included, after a short one that compiles. Effective draws
are the smallest over all means and standard deviations (of states: probabilities), from the diagnostics of
the run. They say nothing about a bias: where the truth is known, the largest deviation from it is told too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite.errors import ConvergenceWarning
from gibbsite.inference.sampling import sample
from gibbsite.sampling.progress import whole_runs_only

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model

_SHORT = 50  # sweeps of the run that compiles


@dataclass(frozen=True)
class Efficiency:
    """How well a kernel has worked on a model.

    Attributes
    ----------
    draws : int
        Draws of all chains, after the warmup.
    effective : float
        Number of independent draws that would tell the worst known mean or standard deviation as well.
    seconds : float
        Time of the run, warmup included.
    rhat : float
        Largest R-hat; above 1.01 ``effective`` is not to be trusted.
    exact : bool
        Whether the kernel has the model as its law.
    off : float or None
        Largest deviation of a mean from the truth, in standard errors, where the truth was given.
    bias : float or None
        The same in standard deviations of the target.
    report : dict
        What the kernel says about itself, as acceptance and what it has learned.
    """

    draws: int
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
        return self.effective / self.draws

    @property
    def converged(self) -> bool:
        """Whether the chains agree, so that the other numbers mean something."""
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
        As in :func:`gibbsite.sample`; a warmup of a fifth of the sweeps by default, in which kernels learn.
        With ``sweeps=None`` the run takes the ``seconds`` given, a tenth of them for the warmup.
    truth : mapping, optional
        Site, a number -> its mean and standard deviation.
    **how
        Passed to :func:`gibbsite.sample`, as ``scan`` or ``start``.

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
    with warnings.catch_warnings(), whole_runs_only():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that is what is measured
        sample(model, kernel, **{**how, "sweeps": _SHORT, "warmup": _SHORT})
        result = sample(model, kernel, sweeps=sweeps, warmup=warmup, **how)
    verdict, numbers = result.diagnostics, np.flatnonzero(model.domains.numbers)
    # chains that never moved agree with each other, and know nothing
    told = [result.marginals[model.sites[i]] for i in numbers.tolist()]
    stuck = any(each.get("sd") == 0.0 or each.get("resultant") == 1.0 for each in told)
    off = bias = None
    if truth is not None:
        gaps = {site: abs(result.marginals[site]["mean"] - mean) for site, (mean, _) in truth.items()}
        bias = max(gap / truth[site][1] for site, gap in gaps.items())
        off = np.inf if stuck else max(gap / result.mcse[site]["mean"] for site, gap in gaps.items())
    return Efficiency(
        draws=result.chains * result.draws,
        effective=0.0 if stuck or verdict.ess_min is None else float(verdict.ess_min),
        seconds=result.seconds,
        rhat=np.inf if stuck or verdict.rhat_max is None else float(verdict.rhat_max),
        exact=kernel.exact,
        off=off,
        bias=bias,
        report=dict(result.report),
    )
