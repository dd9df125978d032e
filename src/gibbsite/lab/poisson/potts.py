"""Minibatch methods on a fully connected Potts model: errors, factors and time.

Ten states on a 20 x 20 grid, couplings 4.6 exp(-1.5 d^2) between all pairs. All marginals are uniform by
symmetry; the error is the mean over sites of the Euclidean distance between the shares of its states so far
and 1 / 10. Chains start with all sites in the same state, and sites are visited at random.

Time is that of updates. In the paper, plain Gibbs reads the factors of a site at every visit; the kernel of this
library keeps running log-weights (:mod:`gibbsite.kernels.gibbs.running_weights`). Both are measured. Likewise,
MIN-Gibbs and DoubleMIN-Gibbs draw the factors of their estimates in the paper, while the kernels of this library keep
the energy and draw one Poisson number, which is the same chain in law (:mod:`gibbsite.kernels.minibatch.estimates`).
Errors are those of the latter; the former is run for a few updates to measure its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Ints, Words64
from gibbsite.kernels.base import Buffer
from gibbsite.lab import occupancy
from gibbsite.lab.chains import space_lengths
from gibbsite.lab.drawing import COLORS, FAINT, INK, Axes, Figure, tidy
from gibbsite.lab.experiment import MINIBATCH, POISSON, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.occupancy import Trajectory, error_at, watch
from gibbsite.lab.timing import compare_times

SIDE, STATES, GAMMA, BETA = 20, 10, 1.5, 4.6
#: Methods that draw the factors of every estimate, as in the paper; they are run only to measure their time.
DRAWING = ("DoubleMIN L^2, 1e4 L^2, drawing", "MIN-Gibbs 1e4 L^2, drawing")
LOOKED_AT = (1_000, 10_000, 100_000, 1_000_000)


class Method(NamedTuple):
    """A kernel, its numbers of updates (quick and full version), colour and dashes, and the paper's factors."""

    kernel: gs.kernels.Kernel
    quick: int
    full: int
    look: tuple[str, str]
    paper: int | None = None


@dataclass(frozen=True)
class ReadingGibbs(gs.Gibbs):
    """Plain Gibbs that reads all factors of a site at every visit."""

    def memory(self, graph: gs.graphs.Graph, stream: Words64) -> Buffer:
        """Allocate a scratch array only."""
        return Buffer(np.zeros(int(graph.cards.max(initial=1))))


@dataclass(frozen=True)
class DrawingDoubleMin(gs.kernels.DoubleMinGibbs):
    """DoubleMIN-Gibbs that draws the factors of every estimate."""

    tracks: ClassVar[bool] = False


@dataclass(frozen=True)
class DrawingMinGibbs(gs.kernels.MinGibbs):
    """MIN-Gibbs that draws the factors of every estimate."""

    tracks: ClassVar[bool] = False


def make_model(side: int = SIDE) -> gs.FactorGraph:
    """Return the model."""
    return gs.models.distance_potts(np.argwhere(np.ones((side, side))), STATES, GAMMA, BETA)


def list_methods(largest: float) -> dict[str, Method]:
    """Return the methods, with minibatches in terms of L."""
    square = largest**2
    return {
        "Gibbs": Method(gs.Gibbs(), 100_000, 1_000_000, (INK, "--")),
        "Gibbs, reading": Method(ReadingGibbs(), 100_000, 1_000_000, (FAINT, "--")),
        "Poisson-Gibbs 0.1 L^2": Method(gs.PoissonGibbs(0.1 * square), 100_000, 1_000_000, (COLORS[4], "-"), 7),
        "Poisson-Gibbs L^2": Method(gs.PoissonGibbs(square), 100_000, 1_000_000, (COLORS[5], "-"), 28),
        "Poisson-Gibbs 5 L^2": Method(gs.PoissonGibbs(5 * square), 100_000, 1_000_000, (COLORS[1], "-"), 132),
        "MGPMH L^2": Method(gs.kernels.MGPMH(square), 100_000, 1_000_000, (COLORS[2], "-")),
        "DoubleMIN L^2, L^2": Method(gs.kernels.DoubleMinGibbs(square, square), 100_000, 1_000_000, (COLORS[0], "-")),
        "DoubleMIN L^2, 1e4 L^2": Method(
            gs.kernels.DoubleMinGibbs(square, 1e4 * square), 100_000, 1_000_000, (COLORS[0], ":")
        ),
        "MIN-Gibbs 1e4 L^2": Method(gs.kernels.MinGibbs(1e4 * square), 100_000, 1_000_000, (COLORS[3], "-")),
        DRAWING[0]: Method(DrawingDoubleMin(square, 1e4 * square), 100, 1_000, (COLORS[0], "-.")),
        DRAWING[1]: Method(DrawingMinGibbs(1e4 * square), 10, 100, (COLORS[3], "-.")),
    }


#: Updates after which the figure of the paper ends.
ENOUGH = 1_000_000


def distance_from_uniform(counts: Ints) -> float:
    """Return the mean over sites of the Euclidean distance between shares of states and the uniform distribution."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(np.linalg.norm(shares - 1.0 / counts.shape[1], axis=1).mean())


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Run all methods."""
    chains = 4 if quick else 10
    model = make_model()
    energies = gs.kernels.local_energies(gs.graphs.compile_graph(model))
    methods = list_methods(energies.largest)
    meter.expect(chains * len(methods))

    def follow(name: str) -> tuple[Ints, Trajectory]:
        method = methods[name]
        lengths = space_lengths(method.quick if quick else method.full, 1, 10)
        how: dict[str, Any] = {"cells": STATES, "rng": rng, "chains": chains, "tick": meter.tick}
        return lengths, watch(model, method.kernel, lengths, distance_from_uniform, **how)

    arrays, reports = occupancy.follow_methods(methods, follow)
    title = f"Mean errors of {chains} chains, and their standard deviation"
    return Findings(
        tables=[
            occupancy.tabulate_errors(title, arrays, methods, LOOKED_AT, 4),
            _costs(arrays, reports, methods),
            _claims(arrays, reports, energies.largest),
        ],
        arrays=arrays,
        notes=[
            occupancy.NOTE,
            "Factors are counted as often as they are drawn: a minibatch of Poisson-Gibbs has only a few "
            "different factors, because most couplings are almost zero.",
            "DoubleMIN with the large minibatch and MIN-Gibbs keep their energy up to date and draw each estimate as "
            'one Poisson number. The rows "drawing" draw its factors, as in the paper: the same chain in law, '
            "which would take hours, and is run only for as many updates as show its time.",
        ],
        settings={
            "chains": chains,
            "L": energies.largest,
            "Psi": energies.total,
            "updates": {name: int(arrays[f"{name}: updates"][-1]) for name in methods},
            "report": reports,
        },
    )


def seconds_to(arrays: occupancy.Arrays, name: str, error: float) -> Array:
    """Return the time of each chain until the mean error of chains is below a value, or infinity if it never is."""
    seconds, below = arrays[f"{name}: seconds"], np.flatnonzero(arrays[f"{name}: errors"].mean(axis=0) < error)
    return seconds[:, below[0]] if below.size else np.full(len(seconds), np.inf)


def _converges(arrays: occupancy.Arrays, name: str) -> bool:
    """Return whether errors are small after 10^6 updates, and fall like 1 / sqrt(updates) from 10^5 on."""
    early, late = error_at(arrays, name, ENOUGH // 10), error_at(arrays, name, ENOUGH)
    if early is None or late is None:
        return False
    return bool(late.mean() < 0.1 and late.mean() < 2.0 * early.mean() / np.sqrt(10.0))


def _costs(
    arrays: occupancy.Arrays, reports: Mapping[str, Mapping[str, float]], methods: Mapping[str, Method]
) -> Table:
    rows = Rows()
    for name, method in methods.items():
        figures = [reports[name].get(what) for what in ("factors", "minibatch", "acceptance")]
        cells = [None if v is None else round(v, digits) for v, digits in zip(figures, (1, 1, 4), strict=True)]
        rows.add(name, method.paper, *cells, f"{1e6 * occupancy.seconds_of_update(arrays, name):.3g} us")
    head = ("method", "factors, paper", "ours, drawn", "ours, kept", "acceptance", "an update takes")
    return Table("Factors of an update, and its time", head, rows)


def _claims(arrays: occupancy.Arrays, reports: Mapping[str, Mapping[str, float]], largest: float) -> Table:
    """Compare the claims of the source with the findings."""
    end = int(arrays["Gibbs: updates"][-1])
    last = {name: occupancy.last_error(arrays, name) for name in reports}
    poisson = [f"Poisson-Gibbs {size}" for size in ("0.1 L^2", "L^2", "5 L^2")]
    ratios = [float(last[name] / last["Gibbs"]) for name in poisson]
    small, large = (f"DoubleMIN L^2, {second}" for second in ("L^2", "1e4 L^2"))
    accepted = [reports[name]["acceptance"] for name in (small, large)]
    still = float(arrays[f"{small}: errors"].min())
    spread = arrays[f"{large}: errors"][:, -1].std(ddof=1)
    goal = 1.05 * max(last["Gibbs"], last[poisson[1]])
    times = {name: seconds_to(arrays, name, goal) for name in (poisson[1], "Gibbs", "Gibbs, reading")}
    reading, keeping = (compare_times(times[name], times[poisson[1]]) for name in ("Gibbs, reading", "Gibbs"))
    each = {name: occupancy.times_of_update(arrays, name) for name in (DRAWING[0], large, poisson[1])}
    drawing, update = (compare_times(each[name], each[poisson[1]]) for name in (DRAWING[0], large))
    return compare_claims(
        Claim("L = 5.09", f"{largest:.4f}", round(largest, 2) == 5.09),
        Claim(
            "Poisson-Gibbs with L^2 performs comparably with plain Gibbs",
            f"{ratios[1]:.2f} times its error after {end:,} updates",
            ratios[1] < 1.2,
        ),
        Claim(
            "the larger lambda, the closer to plain Gibbs",
            "errors of 0.1, 1 and 5 L^2: " + ", ".join(f"{r:.2f}" for r in ratios) + " times its own",
            ratios[0] > max(ratios[1:]) and abs(ratios[2] - 1) < 0.1,
        ),
        Claim(
            "DoubleMIN fails with a second minibatch of L^2",
            f"accepts {100 * accepted[0]:.2f} %; the error stays above {still:.3f} for {end:,} updates",
            still > 0.9,
        ),
        Claim(
            "it takes 10^4 L^2 to make it converge",
            f"accepts {100 * accepted[1]:.0f} %; error {last[large]:.4f} ({spread:.4f}) after {end:,} updates, "
            f"{last[large] / last[poisson[1]]:.2f} times that of Poisson-Gibbs",
            _converges(arrays, large) if end >= ENOUGH else None,
        ),
        Claim(
            "Poisson-Gibbs is significantly faster than plain Gibbs",
            f"Gibbs reading all factors takes {reading.text()} as long to an error of {goal:.3f}",
            reading.exceeds(),
        ),
        Claim("the same, where Gibbs keeps log-weights", f"it takes {keeping.text()} as long", keeping.exceeds()),
        Claim(
            "Poisson-Gibbs is faster than DoubleMIN",
            f"an update with 10^4 L^2 takes {drawing.text()} as long where it draws factors",
            drawing.exceeds(),
        ),
        Claim(
            "the same, where DoubleMIN keeps its energy", f"an update takes {update.text()} as long", update.exceeds()
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figures 1a, 1b, 2a and 2b: errors against updates and against time."""
    methods = list_methods(findings.settings["L"])
    sizes = [name for name in methods if name.startswith("Poisson")]
    others = [name for name in methods if name not in (sizes[0], sizes[2])]
    unseen = {"Gibbs, reading", *DRAWING}  # these make the same chains as others, or chains that are the same in law
    panels = figure.subplots(2, 2, sharey=True)
    for column, names in enumerate((others, ["Gibbs", "Gibbs, reading", *sizes])):
        for row, (what, label) in enumerate((("updates", "updates"), ("seconds", "seconds of updates"))):
            axes: Axes = panels[row, column]
            looks = {name: methods[name].look for name in names if what == "seconds" or name not in unseen}
            occupancy.draw_courses(axes, findings.arrays, looks, what, band=True)
            axes.set_ylim(0.0, 1.0)
            tidy(axes, f"Figure {row + 1}{'ab'[column]}: error against {label}", label)
            axes.legend(fontsize=7, frameon=False, loc="lower left")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean distance of marginals from uniform", fontsize=8, color=INK)


EXPERIMENT = Experiment(f"{POISSON}; Figures 1a, 1b, 2a and 2b. {MINIBATCH}", run, draw, (11.0, 8.0))
