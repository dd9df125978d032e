"""Herded Gibbs on a graph with missing edges: a floor, unless keys are full.

The edges 1-4 and 2-3 are missing, so the graph is a cycle. Unary and pairwise energies are drawn from N(0, 1)
and multiply products of zeros and ones. Weights for each configuration of the neighbours ("blanket")
are compared with weights for each configuration of all other sites ("full"), for which there is a theorem.
The paper has one model; five are drawn here, and the figure shows the first in full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.lab.chains import envelope, fit_slope, follow, space_lengths
from gibbsite.lab.drawing import COLORS, FAINT, INK, Axes, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Table, compare_claims

EDGES = ((0, 1), (0, 2), (1, 3), (2, 3))
MODELS = 5
_KERNELS = {"blanket": COLORS[5], "full": COLORS[0], "Gibbs": FAINT}


def make_model(rng: np.random.Generator) -> gs.FactorGraph:
    """Draw the energies of a model."""
    factors: list[tuple[Any, Any]] = [(edge, np.exp([[0.0, 0.0], [0.0, rng.normal()]])) for edge in EDGES]
    factors += [((i,), np.exp([0.0, rng.normal()])) for i in range(4)]
    return gs.FactorGraph(4, factors, states=2)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Measure errors of both kinds of keys, and of Gibbs, on five models."""
    sweeps = 1_000_000 if quick else 25_000_000
    lengths = space_lengths(sweeps)
    kernels = {"blanket": gs.HerdedGibbs(), "full": gs.HerdedGibbs(keys="full"), "Gibbs": gs.Gibbs()}
    meter.expect(2 * MODELS + 1)
    draw_energy = np.random.default_rng([rng, 4])
    arrays: dict[str, Array] = {"sweeps": lengths}
    errors: dict[str, list[Floats]] = {name: [] for name in kernels}
    rows: list[tuple[Any, ...]] = []
    for number in range(MODELS):
        model = make_model(draw_energy)
        exact = gs.exact.enumerate(model).law.ravel()
        for name, kernel in kernels.items():
            if number and name == "Gibbs":  # Gibbs is shown for the first model only
                continue
            everything = gs.recorders.Joint([(0, 1, 2, 3)])
            found = follow(model, kernel, lengths, everything, rng=rng, tick=meter.tick)[0]
            errors[name].append(np.abs(found - exact).sum(axis=1))
            if number == 0:
                arrays[f"joint {name}"] = found[-1]
        if number == 0:
            arrays["joint exact"] = exact
        rows.append(_row(number, lengths, {name: found[-1] for name, found in errors.items()}))
    arrays |= {f"error {name}": np.array(found) for name, found in errors.items()}
    title = f"L1 error of the joint after {4 * sweeps:.1e} steps, largest over the last decade, and slopes"
    head = ("model", "blanket", "blanket slope", "full", "full slope", "full x sweeps", "Gibbs")
    floors = [_last_decade(lengths, e).max() for e in errors["blanket"]]
    slopes = [float(row[4]) for row in rows]
    return Findings(
        tables=[
            Table(title, head, rows),
            compare_claims(
                Claim(
                    "the error does not tend to zero",
                    f"floors {min(floors):.1e} to {max(floors):.1e}",
                    all(float(row[2]) > -0.5 for row in rows) or (None if quick else False),
                ),
                Claim("the discrepancy is small", f"at most {max(floors):.1e}", max(floors) < 0.05),
                Claim(
                    "complete graphs converge like 1 / T",
                    f"full keys: slopes {min(slopes):.2f} to {max(slopes):.2f}",
                    max(slopes) < -0.8,
                ),
            ),
        ],
        arrays=arrays,
        notes=[
            "The paper does not give its energies, so floors can only be compared qualitatively.",
            "Steps are updates of one variable; a sweep has four. Slopes are fitted to the last two decades "
            "of the largest error at each length or any larger one.",
        ],
        settings={"sweeps": sweeps, "steps": 4 * sweeps, "models": MODELS},
    )


def _last_decade(lengths: Ints, errors: Floats) -> Floats:
    late: Floats = errors[lengths >= lengths[-1] / 10]
    return late


def _row(number: int, lengths: Ints, errors: dict[str, Floats]) -> tuple[Any, ...]:
    late = lengths >= lengths[-1] / 100
    slope = {name: fit_slope(lengths[late], envelope(found)[late]) for name, found in errors.items()}
    return (
        number + 1,
        f"{_last_decade(lengths, errors['blanket']).max():.1e}",
        f"{slope['blanket']:.2f}",
        f"{_last_decade(lengths, errors['full']).max():.1e}",
        f"{slope['full']:.2f}",
        f"{(lengths * errors['full']).max():.0f}",
        None if number else f"{_last_decade(lengths, errors['Gibbs']).max():.1e}",
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figures 6 and 7: the graph, the joint distribution of one model, and the errors of all models."""
    arrays = findings.arrays
    graph, joint, error = figure.subplots(1, 3, width_ratios=(0.6, 1.1, 1.3))
    _draw_graph(graph)
    at = np.arange(16)
    joint.bar(at - 0.2, arrays["joint exact"], 0.4, color=FAINT, label="exact")
    joint.bar(at + 0.2, arrays["joint blanket"], 0.4, color=_KERNELS["blanket"], label="herded, blanket")
    joint.set_xticks(at, [f"{code:04b}" for code in at], rotation=90)
    joint.tick_params(axis="x", labelsize=7)
    tidy(joint, "joint of the first model", xlabel="$x_1 x_2 x_3 x_4$", ylabel="probability")
    joint.legend(fontsize=8, frameon=False)
    for name in ("Gibbs", "full", "blanket"):
        for number, found in enumerate(arrays[f"error {name}"]):
            shown = found if name == "Gibbs" else envelope(found)
            label = ("Gibbs" if name == "Gibbs" else f"herded, {name}") if number == 0 else None
            width = 1.8 if number == 0 else 0.7
            error.plot(arrays["sweeps"], shown, color=_KERNELS[name], lw=width, label=label)
    error.loglog()
    tidy(error, "errors (thick: first model)", xlabel="sweeps", ylabel="$L_1$ error of the joint")
    error.legend(fontsize=8, frameon=False, loc="lower left")


def _draw_graph(axes: Axes) -> None:
    place = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    for i, j in EDGES:
        axes.plot(*place[[i, j]].T, color=INK, lw=1.2, zorder=1)
    for i, (x, y) in enumerate(place.tolist()):
        axes.plot(x, y, "o", ms=26, mfc="white", mec=INK, zorder=2)
        axes.text(x, y, f"$X_{i + 1}$", ha="center", va="center", fontsize=10, color=INK)
    tidy(axes, "the model")
    axes.set(xlim=(-0.35, 1.35), ylim=(-0.35, 1.35), aspect="equal")
    axes.set_axis_off()


EXPERIMENT = Experiment(f"{HERDED}; Figures 6 and 7", run, draw, (12.0, 3.8))
