"""The posterior of a mixture by Metropolis-Hastings with Poisson minibatches.

The model is that of :mod:`.mixture`; both coordinates move at once, by normal steps of standard deviation 0.45. TunaMH
(Zhang, Cooper and De Sa, 2020) draws more factors for longer moves, and needs slopes instead of bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import gibbsite as gs
from gibbsite._common.arrays import Floats
from gibbsite.lab.experiment import POISSON, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Table, compare_claims
from gibbsite.lab.poisson import mixture
from gibbsite.lab.timing import compare_times

STEP = 0.45
SWEEPS = {"quick": 4_000, "full": 20_000, "long": 1_000_000}


def list_methods() -> dict[str, gs.kernels.Kernel]:
    """Return Poisson-MH with the lambda of the paper, and TunaMH, a later method."""
    return {
        "Poisson-MH": gs.kernels.PoissonMH(scale=STEP, adapt=False, minibatch=mixture.BATCH),
        "TunaMH": gs.kernels.TunaMH(scale=STEP, adapt=False),
    }


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Compute the true posterior, and sample it."""
    sweeps, methods = SWEEPS["quick" if quick else "long" if meter.kept else "full"], list_methods()
    meter.expect(2 + len(methods))
    data, model, largest, truth = mixture.prepare(quick, rng)
    meter.tick()
    trials = mixture.try_all(model, methods, sweeps, rng, meter)
    each = mixture.time_all_factors(model, gs.Metropolis(scale=STEP, adapt=False), rng)
    meter.tick()
    return Findings(
        tables=[
            mixture.tell_trials(truth, trials, "Metropolis-Hastings, all factors", each),
            _claims(truth, trials, each, data.size >= mixture.PAPER_SIZE),
        ],
        arrays=mixture.collect(truth, trials),
        notes=[*mixture.NOTES, "Psi is the L of single sites here, because every factor touches both."],
        settings={
            "numbers": data.size,
            "sweeps": sweeps,
            "L": largest,
            "scale": STEP,
            "report": {name: dict(trial.report) for name, trial in trials.items()},
        },
    )


def _claims(truth: Floats, trials: Mapping[str, mixture.Trial], each: Floats, full: bool) -> Table:
    """Compare the claims of the source with the findings."""
    far = {name: mixture.variation(mixture.histogram(trial.draws), truth) for name, trial in trials.items()}
    first = trials["Poisson-MH"]
    slower = compare_times(each, [first.each])
    return compare_claims(
        Claim(
            "the estimated density is very close to the true one",
            f"variation {far['Poisson-MH']:.3f} from {len(first.draws):,} draws, TunaMH {far['TunaMH']:.3f}",
            far["Poisson-MH"] < 0.1 or (None if far["Poisson-MH"] < 0.3 else False),
        ),
        Claim(
            "minibatches are faster than all data",
            f"a move with all data takes {slower.text()} as long",
            slower.exceeds() if full else None,
        ),
    )


EXPERIMENT = Experiment(f"{POISSON}; Figure 4", run, mixture.draw, (10.0, 4.6), long="10^6 moves of each method")
