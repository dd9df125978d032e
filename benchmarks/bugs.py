"""Models in BUGS language against JAGS: effective draws a second, and the time from the command to the first draw."""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import jags
from benchmarks.data import DATA
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from gibbsite.results.measure.diagnostics import ess

MODELS = Path("tests/applications/bugs/models")

#: Model, data, initial values, updates (first those that are thrown away) and thinning, where the files do not say.
UNTOLD: dict[str, tuple[str, str, str | None, tuple[int, int], int]] = {
    "air": ("air", "air-data", "air-inits", (1000, 10_000), 1),
    "kidney": ("kidney", "kidney-data", "kidney-init", (1000, 10_000), 1),
}


@dataclass(frozen=True)
class Example:
    """One of the classic examples: what is run and which quantities are monitored."""

    name: str
    path: Path
    data: dict[str, Any]
    inits: dict[str, Any]
    warmup: int
    updates: int
    thin: int
    quantities: tuple[str, ...]
    #: whether it has discrete unknowns or a chain of states
    discrete: bool

    @property
    def monitored(self) -> list[str]:
        """Names of the variables whose elements are monitored."""
        return sorted({each.split("[")[0] for each in self.quantities} - {"deviance"})


#: Of each example the test that is run: the first, but of `beetles` and `jaw` all variants are alike.
EXAMPLES = {
    "air": False,
    "asia": True,
    "beetles": False,
    "birats": False,
    "blocker": False,
    "bones": False,
    "cervix": True,
    "epil": False,
    "eyes": True,
    "inhaler": False,
    "jaw": False,
    "kidney": False,
    "leuk": False,
    "line": False,
    "lsat": False,
    "pigs": True,
    "pump": False,
    "rats": False,
    "seeds": False,
    "stagnant": False,
}


def example(name: str) -> Example:
    """Read one of the examples."""
    with gzip.open(DATA / "bugs" / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        kept = json.load(file)
    if name == "cervix":
        chosen: tuple[Any, ...] = ("cervix", "cervix-data", "cervix-inits", (1000, 2000), 1)
        quantities = ("beta0", "beta", "q", "phi[1,1]", "phi[1,2]", "phi[2,1]", "phi[2,2]")
    else:
        test = kept["tests"]["test1"]
        chosen = UNTOLD.get(name) or (test["model"], test["data"], test["inits"], test["updates"], test["thin"])
        quantities = tuple("beta" if each == "?" else each for each in test["reference"])
    model, data, inits, (warmup, updates), thin = chosen
    return Example(
        name,
        MODELS / f"{model}.bug",
        kept["data"][data],
        kept["inits"][inits] if inits else {},
        warmup,
        updates,
        thin,
        quantities,
        EXAMPLES[name],
    )


def run_jags(of: Example, modules: tuple[str, ...], updates: int | None = None) -> jags.JagsRun:
    """Run JAGS with two chains; with a single update, the time to the first draw."""
    plain = updates is None
    return jags.run(
        of.path,
        of.data,
        of.monitored,
        inits=of.inits,
        warmup=of.warmup if plain else 0,
        updates=of.updates if updates is None else updates,
        thin=of.thin if plain else 1,
        modules=modules,
    )


def run_ours(of: Example) -> tuple[jags.JagsRun, float]:
    """Run gibbsite in a fresh process with the same data, initial values and updates.

    Returns the run with the processor time of the run itself, and that of the process up to the first draw, which includes
    starting Python and importing the package. Start and run are measured in one process, because the former is much the
    larger for small models, and varies.
    """
    given = {
        "path": str(of.path),
        "data": of.data,
        "inits": of.inits,
        "sweeps": of.updates,
        "warmup": of.warmup,
        "thin": of.thin,
        "monitor": of.monitored,
    }
    found = run_fresh(f"from benchmarks.bugs import ours; ours({json.dumps(json.dumps(given))})")
    draws = {name: np.array(each) for name, each in found["draws"].items()}
    return jags.JagsRun(draws, found["seconds"] + found["first"]), found["first"]


def ours(given: str) -> None:
    """Sample in this process and print draws and seconds as JSON."""
    import time
    import warnings

    import gibbsite as gs

    warnings.simplefilter("ignore")
    job = json.loads(given)
    model = gs.bugs(job["path"], job["data"], job["monitor"])
    same = {"chains": 2, "rng": 1, "inits": job["inits"] or None, "progress": False}
    # JAGS gives no verdict
    same["criteria"] = gs.Criteria(dispersed_starts=False)
    model.sample(sweeps=1, warmup=0, **same)
    first = time.process_time()
    result = model.sample(sweeps=gs.Sweeps(job["sweeps"], thin=job["thin"]), warmup=job["warmup"], **same)
    seconds = time.process_time() - first
    names = [result.domains.names[site] for site in result.draw_sites.tolist()]
    draws = {name: result.draws[:, :, k].tolist() for k, name in enumerate(names)}
    json.dump({"draws": draws, "seconds": seconds, "first": first}, sys.stdout)


def slowest(of: Example, draws: Mapping[str, NDArray[np.float64]]) -> float:
    """Return the effective size of the quantity that mixes worst; constants do not count."""
    sizes = [float(ess(draws[name])) for name in of.quantities if name in draws and np.ptp(draws[name]) > 0]
    return min(sizes)


def pace(of: Example, run: jags.JagsRun, start: float) -> float:
    """Return effective draws per second of processor time beyond that of the start, which is a figure of its own."""
    return slowest(of, run.draws) / max(run.seconds - start, 0.01)


def measure(*, quick: bool = False) -> Section:
    """Measure all examples; without JAGS or the folder of data, say so and measure nothing."""
    head = ["example", "JAGS, draws/s", "gibbsite, draws/s", "times", "JAGS, first draw", "gibbsite, first draw"]
    for missing, sentence in (
        (not jags.installed(), "JAGS is not installed, so models in BUGS language are not compared with it."),
        (not (DATA / "bugs").exists(), "The folder of data is missing, so models in BUGS language are not compared."),
    ):
        if missing:
            print(sentence)
            return Section("bugs", [], head, [], {})
    rows, data, ratios = [], {}, {}
    for name in ("line", "pump", "seeds", "asia") if quick else EXAMPLES:
        of = example(name)
        # JAGS with and without its module glm, of which the better counts
        choices: tuple[tuple[str, ...], ...] = ((), ("glm",))
        starts = [run_jags(of, modules, updates=1).seconds for modules in choices]
        runs = [run_jags(of, modules) for modules in choices]
        rates = [pace(of, run, start) for run, start in zip(runs, starts, strict=True)]
        better = int(np.argmax(rates))
        theirs, first, modules = rates[better], starts[better], choices[better]
        mine, start = run_ours(of)
        rate = pace(of, mine, start)
        ratios[name] = rate / theirs
        rows.append([name, f"{theirs:,.0f}", f"{rate:,.0f}", f"{ratios[name]:.2f}", f"{first:.2f} s", f"{start:.2f} s"])
        data[name] = {"jags": theirs, "ours": rate, "jags first": first, "ours first": start, "modules": list(modules)}
        data[name]["without glm"], data[name]["with glm"] = rates
    discrete = [ratio for name, ratio in ratios.items() if EXAMPLES[name]]
    targets = [
        Target("effective draws a second against JAGS, geometric mean", _mean(ratios.values()), 3.0, True, "times"),
        Target("the same, the worst example", min(ratios.values()), 0.7, True, "times"),
        Target("the same, the worst with discrete unknowns", min(discrete), 5.0, True, "times"),
        Target(
            "from the start to the first draw, longest",
            max(each["ours first"] for each in data.values()),
            2.0,
            False,
            "s",
        ),
    ]
    return Section("bugs", targets, head, rows, data)


def _mean(values: Any) -> float:
    return math.exp(float(np.mean(np.log(list(values)))))
