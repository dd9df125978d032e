"""The search for a ladder: short runs, each on a ladder that the last one suggests.

The first ladder knows nothing of the model. After each of a few runs, every one longer than the last, rungs
are spread anew such that swaps are equally likely everywhere, and their number follows from the barrier. In
the middle of the search the reference takes over the marginals that were seen at the target: the barrier then
is that between the model and its nearest product law, as far as it is known (Surjanovic et al. 2022). The
last run measures the differences of log Z on the ladder that is taken; where runs are so slow that the time
for all of them is used up before, it comes at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gibbsite.kernels.tempered.exchange import COUNTED, TAKEN
from gibbsite.kernels.tempered.free_energy import log_ratios
from gibbsite.kernels.tempered.ladder import Ladder, spread_rungs
from gibbsite.kernels.tempered.rungs import fit_reference

if TYPE_CHECKING:
    from gibbsite.kernels.protocols import Pilot
    from gibbsite.kernels.tempered.tempered import Tempered

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
