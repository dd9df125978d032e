"""Metropolis-Hastings with minibatches on the mixture of :mod:`.poisson_mixture`: Poisson-MH, and TunaMH.

All coordinates move at once, by N(0, 0.45^2) each as in the paper. TunaMH needs no bounds on the whole box;
how many factors it draws follows the length of a move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import gibbsite as gs
from gibbsite.kernel.minibatch import local_energies
from gibbsite.lab.experiment import Experiment, Meter
from gibbsite.lab.findings import Findings, Table, compare_claims
from gibbsite.lab.poisson_mixture import (
    BATCH,
    EDGE,
    MODES,
    Trial,
    draw_data,
    histogram,
    make_model,
    share_of_first_mode,
    true_probabilities,
    try_method,
    variation,
)
from gibbsite.lab.sources import POISSON
from gibbsite.report._canvas import COLORS, FAINT, INK, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALE = 0.45
FEW = "Metropolis, all factors"


def list_methods() -> dict[str, gs.Kernel]:
    """Return the methods; the one that evaluates all factors is only timed."""
    return {
        "Poisson-MH": gs.PoissonMH(scale=SCALE, adapt=False, minibatch=BATCH),
        "TunaMH": gs.TunaMH(scale=SCALE, adapt=False, chi=1e-3),
        FEW: gs.Metropolis(scale=SCALE, adapt=False),
    }


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Compute the truth, and sample with all methods."""
    size, sweeps = (5_000, 3_000) if quick else (1_000_000, 100_000)
    methods = list_methods()
    meter.expect(1 + len(methods))
    data = draw_data(size, np.random.default_rng([rng, size]))
    model, truth = make_model(data), true_probabilities(data)
    total = local_energies(gs.compile_graph(model)).total
    meter.tick()
    trials: dict[str, Trial] = {}
    for name, kernel in methods.items():
        try_method(model, kernel, 4, rng)  # compiles
        trials[name] = try_method(model, kernel, 100 if name == FEW else sweeps, rng)
        meter.tick()
    sampled = {name: histogram(trial.draws) for name, trial in trials.items() if name != FEW}
    far = {name: variation(p, truth) for name, p in sampled.items()}
    each = {name: 2 * trial.each for name, trial in trials.items()}  # a move is of both sites
    rows = [
        (
            name,
            len(trial.draws),
            far.get(name),
            share_of_first_mode(sampled[name]) if name in sampled else None,
            trial.report.get("minibatch"),
            trial.report.get("evaluations"),
            trial.report.get("acceptance"),
            each[name],
        )
        for name, trial in trials.items()
    ]
    head = (
        "method",
        "draws",
        "variation from truth",
        "x_2 > 0",
        "minibatch",
        "evaluations",
        "acceptance",
        "milliseconds of a move",
    )
    claims = [
        (
            "the estimated density of Poisson-MH is very close to the true density",
            f"variation {far['Poisson-MH']:.3f}",
            bool(far["Poisson-MH"] < 0.15),
        ),
        (
            "(not in the paper) TunaMH finds the same density",
            f"variation {far['TunaMH']:.3f}",
            bool(far["TunaMH"] < 0.15),
        ),
    ]
    return Findings(
        tables=[Table("Posterior, and what it took", head, rows), compare_claims(claims)],
        arrays={"truth": truth, **sampled},
        notes=[
            "Milliseconds are time of the processor, and depend on the machine.",
            "The likelihood is that of a hundred numbers, as in poisson-mixture. Total variation is between "
            "shares of cells of 0.25 x 0.25, and of dependent draws not zero even if the method is exact.",
        ],
        settings={"numbers": size, "moves": sweeps, "Psi": total, "lambda": BATCH, "scale": SCALE},
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figure 4 beside the truth."""
    panels = figure.subplots(1, len(findings.arrays), sharex=True, sharey=True)
    top = findings.arrays["truth"].max()
    for axes, (name, p) in zip(panels, findings.arrays.items(), strict=True):
        box = (-EDGE, EDGE, -EDGE, EDGE)
        axes.imshow(p.T, origin="lower", extent=box, cmap="Blues", vmin=0.0, vmax=top, aspect="equal")
        for mode in MODES:
            axes.plot(*mode, "+", color=COLORS[5], ms=8)
        tidy(axes, name, "$x_1$")
        axes.set(xlim=(-2.5, 3.5), ylim=(-3.5, 3.5))
        axes.spines[:].set(visible=True, color=FAINT)
    panels[0].set_ylabel("$x_2$", fontsize=8, color=INK)


EXPERIMENT = Experiment(
    name="poisson-mh",
    title="The same posterior by Metropolis-Hastings with minibatches",
    source=f"{POISSON}; Figure 4",
    run=run,
    draw=draw,
    size=(9.0, 3.8),
)
