"""Posterior means and standard deviations by JAGS: ``python -m examples.bugs.reference`` in the root of the repository.

Every model of this folder runs with four chains; all of them take a few minutes. ``reference.json`` has, for each
quantity, the mean, the standard deviation, the Monte Carlo standard error of the mean and R-hat.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks import jags
from gibbsite.results.measure.diagnostics import mcse, rhat

FOLDER = Path(__file__).parent
WARMUP, UPDATES, THIN, CHAINS = 2000, 20_000, 4, 4

#: The variables that are monitored.
MONITORED = {
    "capture": ["phi", "p"],
    "change-point": ["change", "rate", "ratio"],
    "hidden-markov": ["rate", "move"],
    "item-response": ["a", "b"],
    "local-level": ["sigma.y", "sigma.level", "level"],
    "meta-analysis": ["mu", "sigma", "theta", "theta.new"],
    "missing-data": ["b", "c", "sigma"],
    "mixture": ["weight", "mean.of", "sigma"],
    "occupancy": ["a0", "a1", "p", "occupied"],
    "survival": ["b0", "b1", "shape", "median.control", "median.treated"],
}


def reference(name: str) -> dict[str, dict[str, float]]:
    """Run a model and return the summary of its quantities."""
    data = json.loads((FOLDER / f"{name}-data.json").read_text(encoding="utf-8"))
    seen = jags.run(
        FOLDER / f"{name}.bug",
        data,
        MONITORED[name],
        warmup=WARMUP,
        updates=UPDATES,
        thin=THIN,
        chains=CHAINS,
        modules=("dic",),  # without glm, whose auxiliary mixtures are an approximation
    )
    return {
        quantity: {
            "mean": float(f"{draws.mean():.6g}"),
            "sd": float(f"{draws.std(ddof=1):.6g}"),
            "mcse": float(f"{float(mcse(draws)):.3g}"),
            "rhat": float(f"{float(rhat(draws)):.4f}"),
        }
        for quantity, draws in seen.draws.items()
    }


def main() -> int:
    """Run all models, or those named, and write the file."""
    if not jags.installed():
        print("JAGS is not installed, so there is nothing to compare with.", file=sys.stderr)
        return 2
    path = FOLDER / "reference.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in sys.argv[1:] or MONITORED:
        found[name] = reference(name)
        worst = max(found[name].values(), key=lambda each: each["rhat"])["rhat"]
        print(f"{name}: {len(found[name])} quantities, largest R-hat {worst}", flush=True)
        path.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
