"""Two sites without neighbours: herding finds their joint distribution unless their probabilities are related.

Theorem 2: on a graph without edges, herded Gibbs converges to the joint distribution if the probabilities and 1 are
rationally independent. The remark of a run names pairs of sites with a p + b q whole for small whole numbers a and b,
and the L1 error of their joint distribution, which depends on the first weights; it is compared with long runs.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite.lab.chains import envelope, follow, space_lengths
from gibbsite.lab.drawing import COLORS, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

_ROOT = float(np.sqrt(0.5))
PAIRS = {
    "1/4, 1/2": (0.25, 0.5),
    "1/2, 1/2": (0.5, 0.5),
    "0.7071, 0.2929": (_ROOT, 1.0 - _ROOT),
    "0.3536, 0.7071": (_ROOT / 2, _ROOT),
    "0.7071, 0.5690": (_ROOT, (1.0 + _ROOT) / 3.0),
    "1/3, 1/4": (1.0 / 3.0, 0.25),
    "0.7071, 0.3679": (_ROOT, float(np.exp(-1.0))),
}
_CHAINS = 32  # with different first weights


def make_model(p: float, q: float) -> gs.FactorGraph:
    """Return two sites without neighbours, given the probabilities of state 1."""
    return gs.FactorGraph({"a": 2, "b": 2}, [(("a",), [1.0 - p, p]), (("b",), [1.0 - q, q])])


def stated_error(model: gs.FactorGraph) -> tuple[float, float]:
    """Return the largest and the mean error that the remark of a herded run states; 0 without a remark."""
    remarks = gs.HerdedGibbs().warnings(model, gs.graphs.compile_graph(model), gs.Systematic())
    for remark in remarks:
        if found := re.search(r"by up to ([\d.e-]+) in L1 distance \(([\d.e-]+) on average", remark.text):
            return float(found[1]), float(found[2])
    return 0.0, 0.0


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Follow herded runs of all pairs."""
    sweeps = space_lengths(20_000 if quick else 1_000_000)
    meter.expect(len(PAIRS) * _CHAINS)
    arrays: dict[str, Any] = {"sweeps": sweeps}
    rows = Rows()
    agree, free = [], []
    for name, (p, q) in PAIRS.items():
        model = make_model(p, q)
        record = gs.recorders.Joint([("a", "b")])
        found = follow(model, gs.HerdedGibbs(), sweeps, record, rng=rng, chains=_CHAINS, tick=meter.tick)
        truth = np.outer([1.0 - p, p], [1.0 - q, q]).ravel()
        errors = np.abs(found - truth).sum(axis=2)
        arrays[name] = errors
        worst, mean = stated_error(model)
        last = errors[:, -1]
        rows.add(name, worst or None, float(last.max()), mean or None, float(last.mean()))
        if worst:
            near = abs(last.mean() - mean) < 4.0 * last.std() / np.sqrt(_CHAINS) + 0.005
            agree.append(bool(near and last.max() < worst + 0.005))
        else:
            free.append(float(last.max()))
    return Findings(
        tables=[
            Table(
                f"L1 error of the joint distribution after {sweeps[-1]:,} sweeps, {_CHAINS} chains",
                ("p, q", "largest, stated", "largest, found", "mean, stated", "mean, found"),
                rows,
            ),
            compare_claims(
                Claim(
                    "rationally independent probabilities: the joint distribution is found",
                    f"errors of unrelated pairs at most {max(free):.2g}",
                    max(free) < 0.01,
                ),
                Claim(
                    "otherwise convergence is not guaranteed",
                    f"related pairs are wrong, as the remark states for {sum(agree)} of {len(agree)}",
                    all(agree),
                ),
            ),
        ],
        arrays=arrays,
        notes=["1/3 and 1/4 are rational, but their weights meet in all combinations: the theorem is sufficient only."],
        settings={"sweeps": int(sweeps[-1]), "chains": _CHAINS},
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the mean errors of all pairs, the largest from a length on, against sweeps."""
    axes = figure.subplots(1, 1)
    for k, name in enumerate(PAIRS):
        style = "-" if stated_error(make_model(*PAIRS[name]))[0] else "--"
        errors = envelope(findings.arrays[name].mean(axis=0))
        axes.loglog(findings.arrays["sweeps"], np.maximum(errors, 1e-7), style, color=COLORS[k], label=name)
    tidy(axes, "related probabilities: solid; others: dashed", "sweeps", "L1 error of the joint distribution")
    axes.legend(frameon=False, fontsize=8, title="p, q")


EXPERIMENT = Experiment(f"{HERDED}, Theorem 2", run, draw, (7.0, 4.5))
