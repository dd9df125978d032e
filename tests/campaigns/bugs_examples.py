"""All tests of the classic BUGS examples: distance from the reference means, and verdicts.

``python -m tests.campaigns.bugs_examples [NAME ...] [--jags]`` runs each test with two chains and the updates that came
with it, and prints the largest distance of a posterior mean from its reference, in reference standard deviations, the
quantity, and the verdict. With ``--jags``, JAGS runs the same files with the same updates, for references in doubt.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jags
from gibbsite import Sweeps
from gibbsite.applications.bugs import read_bugs
from gibbsite.results.measure.diagnostics import rhat
from tests.data import DATA

MODELS = Path(__file__).parent.parent / "applications" / "bugs" / "models"
BOUND = 0.15
#: Tests whose files do not say what is run: model, data, initial values, updates, thinning.
UNTOLD: dict[tuple[str, str], tuple[str, str, str | None, list[int], int]] = {
    ("air", "test1"): ("air", "air-data", "air-inits", [1000, 10_000], 1),
    ("kidney", "test1"): ("kidney", "kidney-data", "kidney-init", [1000, 10_000], 1),
    ("blocker", "test2"): ("blockert", "blocker-data", "blockert-init", [3000, 30_000], 10),
    ("blocker", "test3"): ("blockht", "blockht-data", "blockert-init", [3000, 30_000], 10),
}
#: The deviance of the reference leaves out a constant of the density.
ANOTHER_CONSTANT = ("jaw-constant", "jaw-linear", "jaw-quadratic")


@dataclass(frozen=True)
class Case:
    """A test of an example: a model with data, and the reference means and standard deviations."""

    model: str
    data: dict[str, Any]
    inits: dict[str, Any]
    warmup: int
    updates: int
    thin: int
    reference: dict[str, dict[str, float]]

    @property
    def path(self) -> Path:
        return MODELS / f"{self.model}.bug"

    def distance(self, means: dict[str, float]) -> tuple[float, str]:
        """Return the largest distance from a reference mean, in its standard deviations, and of which quantity."""
        return max((abs(means[name] - one["mean"]) / one["sd"], name) for name, one in self.reference.items())


def cases() -> Iterator[Case]:
    """Read all tests of all examples that have a reference."""
    for path in sorted((DATA / "bugs").glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            kept = json.load(file)
        for name, test in kept["tests"].items():
            chosen = UNTOLD.get((kept["name"], name)) or tuple(
                test[each] for each in ("model", "data", "inits", "updates", "thin")
            )
            model, data, inits, (warmup, updates), thin = chosen
            reference = dict(test["reference"])
            if "?" in reference:  # one quantity, whose name was left out
                reference = {"beta": dict(zip(("mean", "sd"), reference["?"], strict=True))}
            if model in ANOTHER_CONSTANT:
                reference.pop("deviance", None)
            start = kept["inits"][inits] if inits else {}
            yield Case(model, kept["data"][data], start, warmup, updates, thin, reference)


def ours(case: Case) -> tuple[float, str, bool, str]:
    """Run a test: largest distance, its quantity, whether the run is called converged, and why not."""
    model = read_bugs(case.path, case.data, list(case.reference))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.sample(
            sweeps=Sweeps(case.updates, thin=case.thin),
            warmup=case.warmup,
            chains=2,
            rng=1,
            inits=case.inits or None,
            progress=False,
        )
    far, which = case.distance({name: float(result.marginals[name]["mean"]) for name in case.reference})
    diagnostics = result.diagnostics
    return far, which, diagnostics.converged, "; ".join(diagnostics.reasons)


def theirs(case: Case) -> tuple[float, str, float]:
    """Run a test with JAGS: largest distance, its quantity, and the largest R-hat."""
    names = sorted({each.split("[")[0] for each in case.reference} - {"deviance"})
    run = jags.run(
        case.path,
        case.data,
        names,
        inits=case.inits,
        warmup=case.warmup,
        updates=case.updates,
        thin=case.thin,
        modules=(),
    )
    draws = {name: np.asarray(run.draws[name]) for name in case.reference if name in run.draws}
    far, which = max(
        (abs(float(draws[name].mean()) - one["mean"]) / one["sd"], name)
        for name, one in case.reference.items()
        if name in draws
    )
    return far, which, max(float(rhat(each)) for each in draws.values() if np.ptp(each) > 0)


def main(arguments: list[str]) -> None:
    compare = "--jags" in arguments
    wanted = [each for each in arguments if not each.startswith("--")]
    failed = 0
    for case in cases():
        if wanted and case.model not in wanted:
            continue
        begin = time.process_time()
        far, which, converged, why = ours(case)
        failed += far >= BOUND or not converged
        line = f"{case.model:15} {far:6.3f} {which:14} {'converged' if converged else 'refused: ' + why}"
        line += f"  {time.process_time() - begin:.0f} s"
        if compare:
            distance, quantity, worst = theirs(case)
            line += f"; JAGS {distance:.3f} {quantity}, R-hat {worst:.3f}"
        print(line, flush=True)
    print(f"{failed} tests are not within {BOUND} or not called converged.")


if __name__ == "__main__":
    main(sys.argv[1:])
