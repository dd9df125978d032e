"""What the checks of a verdict cost, beside the run that they judge.

The checks of a run that has converged may take 15 % of its time, or half a second where that is more. A run without
them is a run with ``gs.Criteria(dispersed_starts=False)``, which makes the same draws. Both are whole calls, in turns;
the cost is the difference inside a turn.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.report import Section, Target

SHARE, SECONDS = 0.15, 0.5  # of the time of a run, and of a clock: the larger of both is allowed
LONG = 10_000  # sweeps, beside the number that a run has by default


@dataclass(frozen=True)
class Case:
    """A name, what is sampled, and how many runs a call makes."""

    name: str
    run: Callable[..., Any]
    runs: int = 1


def _network(name: str) -> gs.FactorGraph:
    return gs.read_model(Path(gs.__file__).parent / "formats" / "networks" / f"{name}.bif")


def _gate(side: int, causes: int) -> gs.FactorGraph:
    """Return a grid with a gate: a table of many sites, each tied to a site of the grid."""
    grid = gs.ising_grid((side, side), coupling=0.2)
    names = [f"cause{k}" for k in range(causes)]
    alarm = np.full((2,) * causes, 0.5)
    alarm[(1,) * causes] = 1.0
    tie = np.exp([[0.2, -0.2], [-0.2, 0.2]])
    pairs = [
        (tuple(grid.sites[i] for i in scope), np.exp([[0.2, -0.2], [-0.2, 0.2]]))
        for scope in grid.group("couplings").scopes
    ]
    ties = [((name, grid.sites[2 * k * side + k]), tie) for k, name in enumerate(names)]
    single = [(name, [0.7, 0.3]) for name in names]
    return gs.FactorGraph(dict.fromkeys([*names, *grid.sites], 2), [*pairs, *single, (tuple(names), alarm), *ties])


def _log_normal(x: Any) -> float:
    return -0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0]) ** 2 + (x[2] - 0.5 * x[1]) ** 2)  # type: ignore[no-any-return]


def cases(quick: bool) -> list[Case]:
    """Return what is sampled."""
    models = {
        "alarm": _network("alarm"),
        "child": _network("child"),
        "Ising 8 x 8": gs.ising_grid((8, 8), coupling=0.2, field=0.1),
        "Ising 64 x 64": gs.ising_grid((64, 64), coupling=0.2, field=0.1),
        "Ising 72 x 72": gs.ising_grid((72, 72), coupling=0.2, field=0.1),
        "Ising 316 x 316": gs.ising_grid((316, 316), coupling=0.2, field=0.1),
        "Potts 30 x 30 of 8 states": gs.potts_grid((30, 30), 8, coupling=0.2),
        "grid 17 x 17 with a gate": _gate(17, 8),
        "LogDensity of 3 numbers": gs.LogDensity(_log_normal, dim=3),
    }
    found = [
        Case(name, lambda model=model, **how: gs.sample(model, rng=1, progress=False, **how))
        for name, model in models.items()
    ]
    many = 10 if quick else 100
    small = gs.ising_grid((4, 4), coupling=0.2)
    fields = np.random.default_rng(1).normal(0.0, 0.3, (many, small.n_sites))
    found.append(
        Case(f"{many} models of 4 x 4", lambda **how: gs.sample_batch(small, fields=fields, rng=1, **how), many)
    )
    return found


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    without = gs.Criteria(dispersed_starts=False)
    targets, rows, data = [], [], {}
    for case in cases(quick):
        for sweeps in (None, LONG) if not quick else (None,):
            how: dict[str, Any] = {} if sweeps is None else {"sweeps": sweeps}
            plain, checks = [], []
            converged = None
            for turn in range(2 if quick else 4):
                seconds = []
                for criteria in (without, None):
                    begun = time.perf_counter()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a run that has not converged says so
                        found = case.run(criteria=criteria, **how)
                    seconds.append(time.perf_counter() - begun)
                if turn:  # the first one compiles and loads
                    plain.append(seconds[0])
                    checks.append(seconds[1] - seconds[0])
                results = found if isinstance(found, list) else [found]
                converged = sum(bool(one.diagnostics.converged) for one in results) / len(results)
            run, cost = statistics.median(plain), max(statistics.median(checks), 0.0)
            allowed = max(SHARE * run, SECONDS)
            name = f"{case.name}, {'default' if sweeps is None else f'{sweeps:,}'} sweeps"
            targets.append(Target(f"checks: {name}, share of what is allowed", cost / allowed, 1.0, False))
            share = f"{100.0 * cost / run:.0f} %"
            rows.append([name, f"{run:.3f}", f"{run + cost:.3f}", f"{cost:.3f}", share, f"{converged:.0%}"])
            data[name] = {"seconds": run, "checks": cost, "converged": converged}
    head = ["run", "seconds without checks", "with checks", "checks", "of the run", "converged"]
    return Section("checks", targets, head, rows, data)
