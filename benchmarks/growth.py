"""How time and memory grow with the number of sites, from 10^3 to 10^7; each size in a process of its own."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.forms import Bundle, Case, make_form
from benchmarks.measure import Contestant, race
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from benchmarks.workloads import Spins, grid, regular3

MANNERS = ("bare", "marginals")


def _bare_square(name: str, side: int) -> Spins:
    """A square that only has a shape: a uniform lattice is made from that alone."""
    nothing = np.zeros((0, 2), np.int32), np.zeros(0)
    return Spins(name, *nothing, np.broadcast_to(0.0, side * side), (side, side))


@dataclass(frozen=True)
class Family:
    """Models of one kind and any size."""

    kind: str
    make: Callable[[str, int], Spins]
    uniform: bool = False
    most: int = 10**7

    def case(self, name: str, sites: int) -> Case:
        """Return the case with approximately ``sites`` sites."""
        size = sites if self.kind == "ising" else round(sites**0.5)
        return Case(name, lambda: self.make(name, size), self.kind, 0.0, uniform=self.uniform)


FAMILIES = {
    "uniform lattice": Family("lattice", _bare_square, uniform=True),
    "lattice, couplings of each edge": Family("lattice", grid),
    "random 3-regular graph": Family("ising", regular3, most=10**6),
}


def grow(name: str, sites: int, repetitions: int, seconds: float) -> dict[str, Any]:
    """Measure one family at one size, here; return bytes per site and seconds per sweep by manner."""
    family = FAMILIES[name]
    for manner in MANNERS:  # what is loaded or compiled once is not the model's weight
        _bundle(family.case(name, 1000), manner).run(1)
    case = family.case(name, sites)
    bundles: dict[str, Bundle] = {}
    found: dict[str, dict[str, float]] = {}
    for manner in MANNERS:
        gc.collect()
        tracemalloc.start()
        bundles[manner] = _bundle(case, manner)
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        found[manner] = {"bytes": held, "peak": peak}
    n = bundles["bare"].form.graph.n_sites
    field = [Contestant(manner, bundle.run, n, least=2) for manner, bundle in bundles.items()]
    for manner, times in race(field, repetitions=repetitions, seconds=seconds).items():
        weight = {key: amount / n for key, amount in found[manner].items()}
        found[manner] = {**weight, "seconds": n / times.rate.median}
    return {"sites": n, **found}


def _bundle(case: Case, manner: str) -> Bundle:
    keep = manner == "marginals"
    return Bundle(make_form(case, case.workload(), None if keep else []), 1, keep)


def measure(*, quick: bool = False) -> Section:
    """Measure every family at every size."""
    rows: list[list[str]] = []
    data: dict[str, Any] = {}
    how = (3, 0.05) if quick else (5, 0.2)
    for name, family in FAMILIES.items():
        for exponent in range(3, 6 if quick else 8):
            if 10**exponent > family.most:
                continue
            arguments = ", ".join(map(repr, (name, 10**exponent, *how)))
            code = f"import json; from benchmarks.growth import grow; print(json.dumps(grow({arguments})))"
            seen = run_fresh(code)
            data.setdefault(name, []).append(seen)
            rows.append(_row(f"{name}, 10^{exponent} sites", seen))
    head = ["size", *(f"{what}: {manner}" for what in ("ms per sweep", "ns per site") for manner in MANNERS)]
    targets = [target for name, sizes in data.items() for target in promises(name, sizes)]
    return Section("growth", targets, [*head, *(f"bytes per site: {manner}" for manner in MANNERS)], rows, data)


def promises(name: str, sizes: list[dict[str, Any]]) -> list[Target]:
    """Compare the largest size with one of a hundredth: what a site costs may hardly grow."""
    small, large = sizes[-3], sizes[-1]
    weight = large["bare"]["bytes"] / small["bare"]["bytes"]
    pace = (large["bare"]["seconds"] / large["sites"]) / (small["bare"]["seconds"] / small["sites"])
    return [
        Target(f"{name}: bytes per site, hundredfold sites", weight, 1.1, False, "times"),
        Target(f"{name}: time per site, hundredfold sites", pace, 3.0, False, "times"),
    ]


def _row(name: str, seen: dict[str, Any]) -> list[str]:
    seconds, held = ([seen[manner][key] for manner in MANNERS] for key in ("seconds", "bytes"))
    return [
        name,
        *(f"{1e3 * time:.3f}" for time in seconds),
        *(f"{1e9 * time / seen['sites']:.2f}" for time in seconds),
        *(f"{weight:.1f}" for weight in held),
    ]
