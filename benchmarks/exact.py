"""Files and exact answers: reading real models, solving them, and pyAgrum beside it where it is installed.

Models come from the data folder (see `data.py`); without it, only what is generated is measured.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.data import DATA
from benchmarks.measure import Contestant, race
from benchmarks.report import Section, Target
from gibbsite._numba.jit import compile_always

NETWORKS = ("alarm", "insurance", "hailfinder", "win95pts")
LARGEST_CLIQUE = 2.0**24


def _seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _best(work: Callable[[], Any], repetitions: int = 5) -> float:
    return min(_seconds(work) for _ in range(repetitions))


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    targets: list[Target] = []
    rows: list[list[str]] = []
    data: dict[str, Any] = {}

    def keep(name: str, seconds: float, remark: str = "") -> None:
        rows.append([name, f"{seconds:.4f}", remark])
        data[name] = {"seconds": seconds, "remark": remark}

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.uai"
        coupling = np.random.default_rng(1).normal(size=(2, 100, 100))
        gs.write_model(gs.ising_grid((100, 100), coupling=coupling, field=0.1), file)
        seconds = _best(lambda: gs.read_model(file))
        keep("read a 100 x 100 grid", seconds, f"{file.stat().st_size / 1e6:.1f} MB UAI")
        targets.append(Target("read a UAI grid of 100 x 100", seconds, 0.3, False, "s"))
    if DATA.is_dir():
        files = sorted(DATA.glob("uai/*/*.uai.gz")) + sorted(DATA.glob("bif/*.bif.gz"))
        seconds = _seconds(lambda: [gs.read_model(file) for file in files])
        keep(f"read all {len(files)} model files", seconds)
        targets.append(Target(f"read all {len(files)} model files", seconds, 20.0, False, "s"))
        for name in NETWORKS:
            _against_pyagrum(DATA / "bif" / f"{name}.bif.gz", keep, targets)
        if not quick:
            _uai_cases(keep, targets)
    return Section("exact", targets, ["seconds", "ours", ""], rows, data)


def _against_pyagrum(file: Path, keep: Callable[..., None], targets: list[Target]) -> None:
    """Time the exact marginals of all sites of a network, warm, without reading the file."""
    model = gs.read_model(file)
    name = f"marginals of {file.name.partition('.')[0]}"
    compile_always()  # small models are interpreted at first
    gs.solve_exact(model)
    ours = Contestant("ours", lambda rounds: [gs.solve_exact(model) for _ in range(rounds)], 1, least=2)
    try:
        import pyagrum
    except ImportError:
        times = race([ours], repetitions=5, seconds=0.1)
        keep(name, 1.0 / times["ours"].rate.median, "pyagrum is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "network.bif"
        gs.write_model(model, plain)
        network = pyagrum.loadBN(str(plain))

    def theirs(rounds: int) -> None:
        for _ in range(rounds):
            engine = pyagrum.LazyPropagation(network)
            engine.makeInference()
            for node in network.nodes():
                engine.posterior(node).tolist()

    times = race([ours, Contestant("pyagrum", theirs, 1, least=2)], repetitions=9, seconds=0.1)
    ratio = times["pyagrum"].against(times["ours"])  # how many times their time ours is
    keep(name, 1.0 / times["ours"].rate.median, f"pyagrum {1.0 / times['pyagrum'].rate.median:.4f}")
    spread = f"{ratio.low:.2f} to {ratio.high:.2f}"
    targets.append(Target(f"{name}, in pyAgrum's time", ratio.median, 5.0, False, "pyAgrum", spread))


def _uai_cases(keep: Callable[..., None], targets: list[Target]) -> None:
    """Solve every case whose largest clique is small enough."""
    slowest, solved = 0.0, 0
    for file in sorted(DATA.glob("uai/*/*.uai.gz")):
        model = gs.read_model(file)
        evidence = gs.formats.read_uai_evidence(Path(str(file)[:-3] + ".evid"), model)
        model = model.observe(evidence) if evidence else model
        try:
            if gs.exact.predict_exact(model).largest > LARGEST_CLIQUE:
                continue
            seconds = _seconds(lambda model=model: gs.solve_exact(model))  # type: ignore[misc]
        except gs.errors.TooLargeError:
            continue
        solved += 1
        if seconds > slowest:
            slowest = seconds
            slowest_name = file.name.partition(".")[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    keep(f"slowest of {solved} UAI cases with cliques up to 2^24", slowest, slowest_name)
    targets.append(Target("slowest UAI case with cliques up to 2^24", slowest, 60.0, False, "s"))
    targets.append(Target("memory after all of them", peak, 8.0, False, "GB"))
