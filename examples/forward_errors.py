"""Error against time of weighted draws: ``python examples/forward_errors.py importance.png``.

Largest error of any marginal of the alarm network given improbable evidence, and of Promedus_24, a medical
network with many findings, where that is at hand (``tests/networks`` of the repository): likelihood
weighting, proposals that know of the evidence, learnt ones, and the mixture that is the default. Dots are
runs that the verdict calls converged; rings are all others.
"""

import sys
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

PROPOSALS = {"prior": "likelihood weighting", "evidence": "evidence", "adaptive": "adaptive", "auto": "mixture (auto)"}
UNLIKELY = {"HRBP": "LOW", "BP": "HIGH", "HREKG": "HIGH", "PRESS": "ZERO", "EXPCO2": "HIGH"}


def models() -> dict[str, gs.FactorGraph]:
    """Return the models."""
    found = {"alarm, improbable evidence": gs.example("alarm").observe(UNLIKELY)}
    path = Path(__file__).parent.parent / "tests/networks/Promedus_24.uai.gz"
    if path.exists():
        model = gs.read_model(path)
        found["Promedus_24"] = model.observe(gs.read_evidence(path.with_suffix(".evid"), model))
    return found


def main(target: str, largest: int = 22) -> None:
    """Draw more and more, and plot."""
    warnings.simplefilter("ignore", gs.ConvergenceWarning)
    known = models()
    figure, axes = plt.subplots(1, len(known), figsize=(5.2 * len(known), 4.0), squeeze=False)
    for axis, (name, model) in zip(axes[0], known.items(), strict=True):
        exact = gs.solve_exact(model)
        for color, (proposal, label) in enumerate(PROPOSALS.items()):
            seconds, errors, sure = [], [], []
            for power in range(12, largest + 1):
                taken = np.inf
                for _ in range(2 if power < 19 else 1):  # the first call may compile
                    begun = time.process_time()
                    found = gs.sample_weighted(
                        model, gs.importance.Forward(proposal), draws=2**power, rng=power, threads=1, progress=False
                    )
                    taken = min(taken, time.process_time() - begun)
                seconds.append(taken)
                errors.append(gs.compare(found, exact).max_abs)
                sure.append(found.converged)
            axis.loglog(seconds, errors, color=f"C{color}", lw=1, label=label)
            face = [f"C{color}" if each else "white" for each in sure]
            axis.scatter(seconds, errors, c=face, edgecolors=f"C{color}", s=28, zorder=3)
        axis.set_title(f"{name} (probability of the evidence {np.exp(exact.log_z):.1g})", fontsize=9)
        axis.set_xlabel("seconds of processor time, one thread")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("largest error of a marginal")
    axes[0][0].legend(fontsize=8, title="filled: converged", title_fontsize=8)
    figure.tight_layout()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "importance.png")
