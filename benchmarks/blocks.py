"""Blocks against single sites: effective draws of the worst marginal per second, on one thread.

Each kernel samples for the same time. What is compared is how many independent draws would tell the worst
marginal as well, p (1 - p) over the squared standard error, divided by the time taken. Single-site chains
that never agree have next to none. Networks that are not in the repository are left out where the folder of
data is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gibbsite as gs
from benchmarks.data import DATA, ROOT
from benchmarks.measure import Spread
from benchmarks.report import Section, Target
from gibbsite.inference.sampling import try_out
from gibbsite.results.measure.measurement import MATERIAL

_ROUNDING = 1e-6  # of recorded probabilities: exact ones are as good as 10^12 draws at most
CRITICAL = 0.4406867935097715  # log(1 + sqrt(2)) / 2


def cases() -> Iterator[tuple[str, gs.FactorGraph, float]]:
    """Yield names, models, and how many times better blocks are to be."""
    yield "Ising 30 x 30, critical", gs.ising_grid((30, 30), coupling=CRITICAL), 3.0
    yield "chain of 10^4 sites", gs.ising_grid((10_000,), coupling=2.0), 1000.0
    yield "alarm", gs.read_model(ROOT / "src/gibbsite/formats/networks/alarm.bif"), 5.0
    if (DATA / "bif/insurance.bif.gz").exists():
        yield "insurance", gs.read_model(DATA / "bif/insurance.bif.gz"), 5.0
    for name in ("Grids_16", "Grids_18"):
        path = DATA / f"uai/grids/{name}"
        if path.with_name(f"{name}.uai.gz").exists():
            model = gs.read_model(path.with_name(f"{name}.uai.gz"))
            evidence = gs.read_evidence(path.with_name(f"{name}.uai.evid"), model)
            yield f"{name}, 20 x 20", model.observe(evidence) if evidence else model, 10.0


def rate(model: gs.FactorGraph, kernel: gs.kernels.Kernel, seconds: float, seed: int) -> float:
    """Return effective draws per second of the worst marginal."""
    found = try_out(model, kernel, seconds=seconds, rng=seed, threads=1)
    known = found.numbers
    p, error = known.mean, np.maximum(known.error, _ROUNDING)
    told = (p > MATERIAL) & (p < 1.0 - MATERIAL)
    return float((p * (1.0 - p) / error**2)[told].min()) / found.seconds


def measure(*, quick: bool = False) -> Section:
    """Compare the kernels in turn, several times."""
    seconds, repetitions = (1.0, 2) if quick else (5.0, 5)
    rows, targets, data = [], [], {}
    for name, model, bound in cases():
        blocks = gs.BlockGibbs()
        for kernel in (blocks, gs.Gibbs()):
            try_out(model, kernel, seconds=0.1, rng=0, threads=1)  # compiles, and plans
        turns = [[rate(model, k, seconds, 1 + r) for k in (blocks, gs.Gibbs())] for r in range(repetitions)]
        ratio = Spread.of([a / max(b, 1e-9) for a, b in turns])
        ours, plain = (Spread.of([turn[k] for turn in turns]).median for k in (0, 1))
        shown = f"{ratio.low:.3g} .. {ratio.high:.3g}"
        rows.append([name, f"{ours:.4g}", f"{plain:.4g}", f"{ratio.median:.3g}", shown])
        data[name] = {"blocks": ours, "single sites": plain, "in single sites": ratio.to_dict()}
        targets.append(Target.of(f"{name}: effective draws", ratio, bound, "single sites"))
    head = ["effective draws per second", "blocks", "single sites", "ratio", "range"]
    return Section("blocks", targets, head, rows, data)
