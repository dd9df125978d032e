"""Weighted draws: likelihood weighting against peers, and what forward draws know after five seconds.

Draws per second are by processor time, on one thread, of whole calls that end with the marginals of all sites
(pgmpy's end with the draws); pgmpy and pyAgrum draw in the same race where they are installed, and are named
where they are not. Errors are the largest of any marginal after five seconds, on networks of the data folder
(see `data.py`), which are left out without it; on a busy machine they are larger, because seconds are by the
clock.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gibbsite as gs
from benchmarks.data import DATA
from benchmarks.measure import Spread
from benchmarks.networks import Known, largest_error, networks
from benchmarks.report import Section, Target
from gibbsite.formats.files import example_path

EVIDENCE = {"HRBP": "HIGH", "EXPCO2": "LOW"}
FASTER, ERROR = 20.0, 0.005
NETWORKS = tuple(f"bif/{name}-posterior" for name in ("alarm", "insurance", "hailfinder", "win95pts"))
CASES = ("uai2008_bn/cpcs54", "uai2008_bn/cpcs360b", "uai2006_bn/BN_0", "uai2006_bn/BN_78", "uai2006_bn/BN_94")

Drawer = Callable[[int], int]  # draws approximately this many, returns the number


def ours(file: Path) -> Drawer:
    """Return our likelihood weighting."""
    model = gs.read_model(file).observe(EVIDENCE)

    def draw(draws: int) -> int:
        found = gs.sample_weighted(model, gs.importance.Forward("prior"), draws=draws, rng=1, threads=1, progress=False)
        return found.n_draws

    return draw


def pgmpy(file: Path) -> Drawer:
    """Return pgmpy's likelihood weighting."""
    from pgmpy.readwrite import BIFReader
    from pgmpy.sampling import BayesianModelSampling

    sampler = BayesianModelSampling(BIFReader(str(file)).get_model())
    seen = list(EVIDENCE.items())

    def draw(draws: int) -> int:
        return len(sampler.likelihood_weighted_sample(evidence=seen, size=draws, show_progress=False))

    return draw


def pyagrum(file: Path) -> Drawer:
    """Return pyAgrum's weighted sampling."""
    import pyagrum as gum

    network = gum.loadBN(str(file))

    def draw(draws: int) -> int:
        engine = gum.WeightedSampling(network)
        engine.setEvidence(EVIDENCE)
        engine.setEpsilon(1e-12)
        engine.setMinEpsilonRate(1e-12)
        engine.setMaxTime(600)
        engine.setMaxIter(draws)
        engine.setPeriodSize(draws)
        engine.makeInference()
        return int(engine.nbrIterations())

    return draw


def rate(draw: Drawer, seconds: float) -> float:
    """Return draws per second of processor time, of one call that takes about so long."""
    many = 256
    while True:
        begun = time.process_time()
        drawn = draw(many)
        taken = time.process_time() - begun
        if taken >= seconds:
            return drawn / taken
        many = int(many * min(max(1.2 * seconds / max(taken, 1e-3), 2.0), 16.0))


def measure(*, quick: bool = False) -> Section:
    """Measure rates, then errors."""
    rows: list[list[str]] = []
    targets: list[Target] = []
    data: dict[str, Any] = {}
    repetitions, seconds = (2, 0.2) if quick else (5, 1.0)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        file = Path(folder) / "alarm.bif"
        file.write_bytes(example_path("alarm").read_bytes())
        drawers, absent = {"gibbsite": ours(file)}, []
        for make in (pgmpy, pyagrum):
            try:
                drawers[make.__name__] = make(file)
            except ImportError:
                absent.append(make.__name__)
        for draw in drawers.values():
            draw(256)  # compiles
        turns = [{name: rate(draw, seconds) for name, draw in drawers.items()} for _ in range(repetitions)]
        for name in drawers:
            seen = Spread.of([turn[name] for turn in turns])
            ratio = Spread.of([turn["gibbsite"] / turn[name] for turn in turns])
            rows.append([f"alarm, {name}", f"{seen.median:,.0f} draws/s", f"{ratio.median:.3g}"])
            data[name] = {"draws per second": seen.to_dict(), "ours": ratio.to_dict()}
            if name != "gibbsite":
                targets.append(Target.of(f"likelihood weighting on alarm, in {name}'s draws", ratio, FASTER))
        rows += [[f"alarm, {name}", "is not installed", ""] for name in absent]
        for name, model, known in cases(quick):
            found = gs.sample_weighted(model, seconds=5.0, rng=1, threads=1, progress=False)
            error = largest_error(found.marginals, known)
            rows.append([f"{name}, 5 s", f"error {error:.4f}", found.diagnostics.word])
            data[name] = {"error": error, "draws": found.n_draws, "converged": found.converged}
            targets.append(Target(f"{name}: error after 5 s", error, ERROR, False))
    return Section("importance", targets, ["weighted draws", "seen", "ours in theirs, or verdict"], rows, data)


def cases(quick: bool) -> Iterator[tuple[str, gs.FactorGraph, Known]]:
    """Yield networks with evidence and their exact marginals."""
    known = dict(networks(DATA)) if (DATA / "uai/index.json").exists() else {}
    for names in (NETWORKS, CASES):
        for name in names[:1] if quick else names:
            if name in known:
                yield name.partition("/")[2].removesuffix("-posterior"), *known[name]()
