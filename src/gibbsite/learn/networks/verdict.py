"""How far to trust draws of tables and of edges: R-hat, effective sizes and standard errors of their means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.results.answer import Diagnostics
from gibbsite.results.measure.diagnostics import ess, mcse, rhat
from gibbsite.results.verdict.convergence import ESS_LIMIT, RHAT_LIMIT
from gibbsite.results.wording import rhat_text

_FEWEST = 4  # draws of a chain, with fewer of which nothing can be judged


def judge_draws(
    trace: Floats, name: Callable[[int], str], figures: dict[str, Any], reasons: tuple[str, ...] = ()
) -> tuple[Diagnostics, Floats]:
    """Judge draws (chains, draws, quantities); return the verdict, and standard errors of means.

    ``name`` turns the number of a quantity into words; ``figures`` and ``reasons`` are added to those of the draws.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(4, 500, 2))
    >>> judge_draws(noise, str, {})[0].converged
    True
    """
    chains, draws, width = trace.shape
    errors = np.full(width, np.nan)
    found = list(reasons)
    figures = {"chains": chains, "n_draws": draws, **figures}
    if draws < _FEWEST:
        found.insert(0, "the run is too short to tell whether chains agree; run longer.")
        return _conclude(None, None, found, {**figures, "rhat_max": None, "ess_min": None}), errors
    worst, least = 1.0, float(chains * draws)
    worst_at = least_at = ""
    if width:
        errors = np.asarray(mcse(trace))
        ratios, sizes = np.asarray(rhat(trace)), np.asarray(ess(trace))
        at, low = int(np.argmax(ratios)), int(np.argmin(sizes))
        worst, least, worst_at, least_at = float(ratios[at]), float(sizes[low]), name(at), name(low)
    if worst > RHAT_LIMIT:
        who = "chains disagree" if chains > 1 else "the two halves of the chain disagree"
        found.append(f"{who}: R-hat is {rhat_text(worst)} at {worst_at}, more than {RHAT_LIMIT}; run longer.")
    if least < ESS_LIMIT:
        found.append(f"too few effective draws: {least:.0f} at {least_at}, fewer than {ESS_LIMIT:.0f}; run longer.")
    figures |= {
        "rhat_max": worst,
        "rhat_at": worst_at,
        "ess_min": least,
        "ess_at": least_at,
        "mcse_max": float(np.nanmax(errors, initial=0.0)),
    }
    return _conclude(worst, least, found, figures), errors


def _conclude(worst: float | None, least: float | None, reasons: list[str], figures: dict[str, Any]) -> Diagnostics:
    word = "not converged" if reasons else "converged"
    size = f"{figures['chains']} chains of {figures['n_draws']:,} draws"
    numbers = "" if worst is None or least is None else f"R-hat {rhat_text(worst)}, {least:.0f} effective draws, "
    return Diagnostics("estimate", not reasons, tuple(reasons), figures, f"{word}: {numbers}{size}")
