"""The posterior of a mixture given a million numbers by Metropolis-Hastings with Poisson minibatches.

The model of :mod:`.poisson_mixture`; both coordinates move at once, by normal steps of deviation 0.45. TunaMH
(Zhang, Cooper and De Sa, 2020) draws more factors for longer moves and needs no bounds, but slopes.
"""

from __future__ import annotations

from collections.abc import Mapping

import gibbsite as gs
from gibbsite.lab.experiment import Experiment, Meter
from gibbsite.lab.findings import Findings, Table, compare_claims
from gibbsite.lab.occupancy import Floats
from gibbsite.lab.poisson_mixture import (
    BATCH,
    NOTES,
    Trial,
    collect,
    draw,
    histogram,
    prepare,
    tell_trials,
    time_all_factors,
    try_all,
    variation,
)
from gibbsite.lab.sources import POISSON

STEP = 0.45
SIZES = (BATCH, 10.0 * BATCH)


def list_methods() -> dict[str, gs.Kernel]:
    """Return Poisson-MH with the lambda of the paper and with a larger one, and TunaMH, a later method.

    Examples
    --------
    >>> list(list_methods())
    ['Poisson-MH 500', 'Poisson-MH 5000', 'TunaMH']
    """
    found: dict[str, gs.Kernel] = {
        f"Poisson-MH {size:.0f}": gs.PoissonMH(scale=STEP, adapt=False, minibatch=size) for size in SIZES
    }
    return found | {"TunaMH": gs.TunaMH(scale=STEP, adapt=False)}


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Compute the truth, and sample."""
    sweeps, methods = 4_000 if quick else 50_000, list_methods()
    meter.expect(2 + len(methods))
    data, model, largest, truth = prepare(quick, rng)
    meter.tick()
    trials = try_all(model, methods, sweeps, rng, meter)
    each = time_all_factors(model, gs.Metropolis(scale=STEP, adapt=False), rng)
    meter.tick()
    return Findings(
        tables=[
            tell_trials(truth, trials, "Metropolis-Hastings, all factors", each),
            _claims(truth, trials, each),
        ],
        arrays=collect(truth, trials),
        notes=[*NOTES, "Psi is the L of single sites here, because every factor touches both."],
        settings={
            "numbers": data.size,
            "sweeps": sweeps,
            "L": largest,
            "scale": STEP,
            "report": {name: dict(trial.report) for name, trial in trials.items()},
        },
    )


def _claims(truth: Floats, trials: Mapping[str, Trial], each: float) -> Table:
    far = [variation(histogram(trial.draws), truth) for trial in trials.values()]
    first = next(iter(trials.values()))
    return compare_claims(
        [
            (
                "the estimated density is very close to the true one",
                f"variation {far[0]:.3f} from {len(first.draws):,} draws, {far[1]:.3f} with ten times lambda",
                far[0] < 0.1 or (None if far[0] < 0.3 else False),
            ),
            (
                "minibatches are faster than all data",
                f"a move is {each / first.each:.0f} times faster",
                bool(each > first.each),
            ),
        ]
    )


EXPERIMENT = Experiment(
    name="poisson-mh",
    title="The posterior of a mixture by Metropolis-Hastings with Poisson minibatches",
    source=f"{POISSON}; Figure 4",
    run=run,
    draw=draw,
    size=(10.0, 4.0),
)
