"""Error of beliefs against time on UAI models: ``python examples/belief_error.py DATA belief.png``.

DATA is a folder of UAI competition models with evidence and known marginals: FAMILY/NAME.uai.gz, .uai.evid
and .uai.MAR. The picture has one panel for each of six models: the largest error of any marginal after 1, 2,
4, ... messages for each edge, and that of Gibbs sampling. A table of all models goes to stdout.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

SHOWN = {
    "segmentation/Segmentation_14": "segmentation, pairs",
    "objectdetection/ObjectDetection_14": "object detection, 11 to 21 states",
    "uai2006_bn/BN_0": "network with evidence",
    "promedus/Promedus_14": "diagnosis, noisy-or",
    "pedigree/Pedigree_12": "pedigree, zeros",
    "grids/Grids_14": "lattice, strong couplings",
}
WAYS = {
    "sum": {"kind": "sum"},
    "sum, damping 0.5": {"kind": "sum", "damping": 0.5},
    "fractional, 0.5": {"kind": "fractional"},
    "tree-reweighted, damping 0.5": {"kind": "tree-reweighted", "damping": 0.5},
}


def read_case(case: Path) -> tuple[gs.FactorGraph, np.ndarray]:
    """Return the model with its evidence, and the probabilities of all states of the free sites."""
    model = gs.read_model(f"{case}.uai.gz")
    seen = model.observe(gs.read_evidence(f"{case}.uai.evid", model))
    numbers = Path(f"{case}.uai.MAR").read_text(encoding="utf-8").split()[1:]
    known, at = [], 1
    for site in model.sites:
        card = int(numbers[at])
        if site not in seen.evidence:
            known.append(np.array(numbers[at + 1 : at + 1 + card], float))
        at += card + 1
    return seen, np.concatenate(known)


def error_of(result: gs.inference.BeliefResult | gs.Result, model: gs.FactorGraph, known: np.ndarray) -> float:
    """Return the largest error of any probability."""
    cells = [p for site in model.sites for p in result.marginals[site].values()]
    return float(np.abs(np.array(cells) - known).max())


def trace(model: gs.FactorGraph, known: np.ndarray, **way: object) -> tuple[list[float], list[float]]:
    """Return seconds and errors of ever longer runs of messages."""
    seconds, errors = [], []
    gs.belief_propagation(model, max_iterations=1, progress=False, **way)
    for power in range(10):
        again = [gs.belief_propagation(model, max_iterations=2**power, progress=False, **way) for _ in range(3)]
        found = min(again, key=lambda one: one.seconds)  # a machine has other things to do
        seconds.append(found.seconds)
        errors.append(max(error_of(found, model, known), 1e-7))
        if found.settled:
            break
    return seconds, errors


def draw(data: Path, picture: str) -> None:
    """Draw the panels."""
    figure, panels = plt.subplots(2, 3, figsize=(12, 7), constrained_layout=True)
    for axes, (case, title) in zip(panels.flat, SHOWN.items(), strict=True):
        model, known = read_case(data / case)
        for name, way in WAYS.items():
            axes.loglog(*trace(model, known, **way), marker="o", markersize=3, label=name)
        gs.sample(model, max_iterations=10, rng=1, progress=False)
        runs = [gs.sample(model, seconds=s, chains=2, threads=1, rng=1, progress=False) for s in (0.1, 0.4, 1.6)]
        errors = [error_of(run, model, known) for run in runs]
        axes.loglog([run.seconds for run in runs], errors, color="gray", marker="s", markersize=3, label="Gibbs")
        axes.set_title(f"{Path(case).name}: {title}", fontsize=10)
        axes.set_ylim(1e-4, 1.5)
        axes.grid(alpha=0.3)
    for axes in panels[1]:
        axes.set_xlabel("seconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("largest error of a marginal")
    panels[0, 0].legend(fontsize=8)
    figure.savefig(picture, dpi=110)


def tabulate(data: Path) -> None:
    """Print one line for each model: errors, whether messages settled, seconds, and log Z."""
    print("| model | sites | error (sum) | settled | seconds | log Z: true | sum | tree-reweighted |")
    print("|---|---|---|---|---|---|---|---|")
    for path in sorted(data.glob("*/*.uai.MAR")):
        case = path.with_suffix("").with_suffix("")
        model, known = read_case(case)
        found = gs.belief_propagation(model, seconds=2, max_iterations=2000, progress=False)
        if not found.settled:
            found = gs.belief_propagation(model, damping=0.5, seconds=2, max_iterations=2000, progress=False)
        bound = gs.belief_propagation(model, kind="tree-reweighted", seconds=2, progress=False)
        log_z = float(Path(f"{case}.uai.PR").read_text(encoding="utf-8").split()[1]) * math.log(10)
        print(
            f"| {case.parent.name}/{case.name} | {model.n_sites} | {error_of(found, model, known):.4f} | "
            f"{'yes' if found.settled else 'no'} | {found.seconds:.3f} | {log_z:.2f} | {found.log_z:.2f} | "
            f"{bound.log_z:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore", gs.ConvergenceWarning)
    draw(Path(sys.argv[1]), sys.argv[2])
    tabulate(Path(sys.argv[1]))
