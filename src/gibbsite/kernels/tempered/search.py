"""The search for a ladder: short runs, each on a ladder that the last one suggests.

The first ladder does not depend on the model. After each of a few runs, every one longer than the last, rungs are
spread anew such that swaps are equally likely everywhere, and their number follows from the barrier. In the middle of
the search the reference takes over the marginals that were seen at the target: the barrier then is that between the
model and its nearest product distribution, as far as it is known (Surjanovic et al. 2022). The last run measures the
differences of log Z on the final ladder; if runs are so slow that the time is used up early, the next run is the last.

Differences of log-partition functions of neighbouring rungs are those of Bennett (1976). With
d(x) = (beta' - beta) U(x), f(t) = 1 / (1 + exp(-t)) and any number c,

    log Z' - log Z = c + log E[f(d - c)] - log E'[f(c - d)],

where E is taken at beta and E' at beta'. The error is smallest where c is the difference itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.kernels.tempered.exchange import COUNTED, TAKEN
from gibbsite.kernels.tempered.ladder import Ladder, spread_rungs
from gibbsite.kernels.tempered.rungs import fit_reference

if TYPE_CHECKING:
    from gibbsite.kernels.protocols import Pilot
    from gibbsite.kernels.tempered.tempered import Tempered


def log_ratio(low: Floats, high: Floats) -> float:
    """Return log Z' - log Z from values of d at both rungs."""
    left = float(min(low.min(), high.min())) - 1.0
    right = float(max(low.max(), high.max())) + 1.0
    if not np.isfinite([left, right]).all():
        return 0.0
    for _ in range(60):  # the sum falls with c
        middle = 0.5 * (left + right)
        if _share(low - middle).mean() > _share(middle - high).mean():
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


def _share(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


def log_ratios(betas: Floats, gains: Floats) -> Floats:
    """Return the differences between all neighbours, from values of U (samples, rungs)."""
    gap = np.diff(betas)
    pairs = range(gap.size)
    return np.array([log_ratio(gap[k] * gains[:, k], gap[k] * gains[:, k + 1]) for k in pairs])


# Shares of the search for its runs, and after which of them the reference is fitted.
_SHARES, _FITTED = (0.04, 0.08, 0.16, 0.28, 0.44), (1, 2)
# Part of equal probabilities in a reference that is fitted: no state may be lost on the way to it.
_EVEN = 0.2


def find_ladder(kernel: Tempered, pilot: Pilot) -> Ladder:
    """Return the ladder for a model, and what goes with it.

    A ladder that was given is kept as it is, and only measured.
    """
    ladder = kernel.start_ladder(pilot.graph)
    given = not isinstance(kernel.ladder, str)
    for turn, share in enumerate(_SHARES):
        last = given or pilot.late or turn == len(_SHARES) - 1
        trial = pilot.run(replace(kernel, found=ladder), _SHARES[-1] if last else share)
        counts = [memory.counts for memory in trial.memories]
        if last:
            gains = np.concatenate(
                [memory.samples[: count[TAKEN]] for memory, count in zip(trial.memories, counts, strict=True)]
            )
            return Ladder(ladder.betas, ladder.log_reference, log_ratios(ladder.betas, gains))
        sweeps = sum(int(count[COUNTED]) for count in counts)
        rates = sum(memory.accepted for memory in trial.memories) / max(sweeps, 1)
        betas, logs = spread_rungs(ladder.betas, 1.0 - rates), ladder.log_reference
        if kernel.reference == "fitted" and turn in _FITTED:
            logs = fit_reference(pilot.graph, trial.marginals, _EVEN)
        ladder = Ladder(betas, logs, np.zeros(betas.size - 1))
    raise AssertionError
