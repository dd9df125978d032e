"""Averages of conditional probabilities over chains: standard errors, and how far to trust them."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._common.notice import warn_user
from gibbsite.errors import ConvergenceWarning
from gibbsite.results.answer import Diagnostics
from gibbsite.results.measure.diagnostics import ess, mcse, rhat

MOST_BATCHES = 500  # batches of sweeps whose means are kept
_RHAT, _ESS = 1.01, 400.0


def judge_averages(trace: Floats, ranks: bool = True) -> tuple[Floats, Diagnostics]:
    """Return standard errors and a verdict of traces (chains, draws, cells) of random chains.

    Without ``ranks``, R-hat is that of the values, which suits numbers with many ties.
    """
    agreement = float(rhat(trace, "rank" if ranks else "split").max(initial=1.0))
    size = float(ess(trace).min(initial=np.inf))
    reasons = []
    if agreement > _RHAT:
        reasons.append(f"The chains disagree: R-hat is {agreement:.3g}, more than {_RHAT:g}; run more sweeps.")
    if size < _ESS:
        reasons.append(f"The effective sample size is {size:.0f}, less than {_ESS:.0f}; run more sweeps.")
    text = f"R-hat {agreement:.4g}, effective sample size {size:.0f}"
    figures = {"rhat_max": agreement, "ess_min": size, "errors": "draws"}
    return mcse(trace), Diagnostics("estimate", not reasons, tuple(reasons), figures, text)


def unjudged(cells: int) -> tuple[Floats, Diagnostics]:
    """Return unknown errors and no verdict: the chains of herded runs have an error in common."""
    reason = "Herded runs have no standard errors and are not judged."
    return np.full(cells, np.nan), Diagnostics("estimate", None, (reason,), {"errors": "none"}, "not judged")


def exact_verdict(cells: int) -> tuple[Floats, Diagnostics]:
    """Return no errors and a verdict for sums over all states."""
    return np.zeros(cells), Diagnostics("exact", True, (), {"errors": "exact"}, "exact: a sum over all states")


def warn_unless_converged(diagnostics: Diagnostics) -> None:
    """Warn if random chains have not converged."""
    if diagnostics.converged is False:
        warn_user(f"The run has not converged: {' '.join(diagnostics.reasons)}", ConvergenceWarning)


def describe_verdict(method: str, diagnostics: Diagnostics) -> str:
    """Return method and verdict in one line."""
    return diagnostics.line() if method == "exact" else f"{method}, {diagnostics.line()}"
