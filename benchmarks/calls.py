"""What a call costs beside its updates: chains that are moved on step by step, and many small models.

A training loop calls for a few sweeps at a time, so the milliseconds around them count.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.report import Section, Target

SITES, CHAINS = 20, 64


def _model() -> gs.FactorGraph:
    couplings = np.triu(0.1 * np.random.default_rng(1).normal(size=(SITES, SITES)), 1)
    return gs.ising(couplings, np.zeros(SITES))


def _median(work: Callable[[], Any], repetitions: int) -> float:
    """Return the median time of some work that has been done once before."""
    work()
    seen = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        work()
        seen.append(time.perf_counter() - begun)
    return float(np.median(seen))


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    model, targets, rows, data = _model(), [], [], {}
    weights = np.asarray(model.group("couplings").weights)
    repetitions = 100 if quick else 1000

    def keep(name: str, seconds: float, bound: float) -> None:
        targets.append(Target(name, 1e3 * seconds, bound, False, "ms"))
        rows.append([name, f"{1e3 * seconds:.3f}", ""])
        data[name] = {"seconds": seconds}

    chains = gs.PersistentChains(model, gs.Gibbs(), chains=CHAINS, rng=1)
    keep(f"move {CHAINS} chains of {SITES} spins by a sweep", _median(chains.run, repetitions), 1.0)
    potts = gs.potts(0.1 * (1.0 - np.eye(10)), states=3)
    few = gs.PersistentChains(potts, gs.Gibbs(), chains=16, rng=1)
    keep("move 16 Potts chains of 10 sites by a sweep", _median(few.run, repetitions), 1.0)
    change = _median(lambda: chains.reweight(couplings=weights).run(), repetitions // 10)
    keep("the same spins, with new couplings before", change, 3.0)
    layers = gs.rbm(0.05 * np.random.default_rng(3).normal(size=(784, 64)))
    steps = gs.PersistentChains(layers, gs.Gibbs(), chains=100, rng=1)
    dense = np.asarray(layers.group("couplings").weights)
    trained = _median(lambda: steps.run(model=layers.reweight(couplings=dense)), repetitions // 10)
    keep("move 100 chains of 784 x 64 units by a sweep, with new couplings before", trained, 2.5)

    many = 50 if quick else 300
    fields = np.random.default_rng(2).normal(size=(many, SITES))
    given: dict[str, Any] = {"sweeps": 100, "chains": 2, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run this short warns that it has not converged
        batch = _median(lambda: gs.sample_batch(model, fields=fields, rng=1, **given), 3)
        loop = _median(lambda: [gs.sample(model.reweight(fields=row), rng=1, **given) for row in fields], 3)
    targets.append(Target(f"a batch of {many} small models against a loop", loop / batch, 1.5, True, "times"))
    rows.append([f"{many} models in one call", f"{1e3 * batch:.1f}", f"a loop {1e3 * loop:.1f}"])
    data["batch"] = {"seconds": batch, "loop": loop}
    return Section("calls", targets, ["milliseconds", "ours", ""], rows, data)
