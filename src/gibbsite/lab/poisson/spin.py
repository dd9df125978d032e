"""Continuous spins: six methods of drawing from conditionals, with all factors and with minibatches.

The model is a 20 x 20 grid with couplings exp(-0.4 d^2) between all pairs. The methods are interpolation of the density
(ITS), interpolation of the energy and then of the density (DA), and rejection, each with all factors of a site and with
Poisson minibatches (PG) with lambda = L^2. Estimated marginals, in 50 cells of [0, 1] with half a count added to each,
are compared with true ones by the symmetric Kullback-Leibler divergence, averaged over sites.

True marginals come from an exact sampler: given the others, a spin has the density c exp(c v) / (exp(c) - 1), where c
is the sum of neighbours times couplings. Spins are drawn from it exactly, and the probabilities of cells are averaged
over draws of c.

Factors of the paper are coupling * (x y + 1), between 0 and twice the coupling. Only their height above the
minimum matters: with x y alone, L is halved and L^2 is a quarter. PGDA is run with both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.lab import occupancy
from gibbsite.lab.chains import sample_quietly, space_lengths
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import POISSON, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, all_hold, compare_claims
from gibbsite.lab.occupancy import Trajectory, watch
from gibbsite.lab.timing import compare_times

SIDE, GAMMA, CELLS = 20, 0.4, 50
DEGREE, FINE = 3, 10  # of the paper
EXACT, UNSHIFTED = "Gibbs, exact", "PGDA, bounds of the paper"


class Method(NamedTuple):
    """A kernel, its number of updates relative to the others, and colour and dashes."""

    kernel: gs.kernels.Kernel
    share: float
    look: tuple[str, str]


def couplings(side: int = SIDE) -> Floats:
    """Return exp(-gamma d^2) between all pairs of sites of a grid, and zeros on the diagonal."""
    at = np.argwhere(np.ones((side, side)))
    found: Floats = np.exp(-GAMMA * ((at[:, None] - at) ** 2).sum(axis=-1))
    np.fill_diagonal(found, 0.0)
    return found


def raised_product(value: Floats, parameters: Floats) -> Any:
    """Return w (x y + 1), the factor of the paper."""
    return parameters[0] * (value[0] * value[1] + 1.0)


def unshifted_model(side: int = SIDE) -> gs.ContinuousModel:
    """Return the model with factors and bounds of the paper."""
    weights = couplings(side)
    pairs = np.argwhere(np.triu(weights, 1))
    each = weights[tuple(pairs.T)]
    factors = gs.factors.FunctionFactors(raised_product, pairs, each, bounds=(np.zeros(each.size), 2.0 * each))
    return gs.ContinuousModel(side * side, [factors], states=gs.Interval(0.0, 1.0))


def list_methods(size: float, unshifted: float) -> dict[str, Method]:
    """Return the methods, given lambda for the model and for the model with the factors of the paper."""
    kernel = gs.kernels.ContinuousGibbs
    double: dict[str, Any] = {"method": "double", "degree": DEGREE, "fine": FINE}
    return {
        EXACT: Method(kernel("exact-inverse"), 1.0, (FAINT, "--")),
        "Gibbs-ITS": Method(kernel("its", degree=DEGREE), 1.0, (COLORS[4], "--")),
        "Gibbs-DA": Method(kernel(**double), 1.0, (COLORS[1], "--")),
        "Gibbs-rejection": Method(kernel("rejection"), 0.1, (COLORS[2], "--")),
        "PGITS": Method(kernel("its", minibatch=size, degree=DEGREE), 1.0, (COLORS[0], "-")),
        "PGDA": Method(kernel(minibatch=size, **double), 1.0, (COLORS[5], "-")),
        "PG-rejection": Method(kernel("rejection", minibatch=size), 0.1, (COLORS[3], "-")),
        UNSHIFTED: Method(kernel(minibatch=unshifted, **double), 1.0, (COLORS[5], ":")),
    }


def cell_probabilities(slopes: Floats, cells: int = CELLS) -> Floats:
    """Return the probabilities of equal cells of [0, 1] for densities ~ exp(c v), averaged over draws of c.

    ``slopes`` (draws, sites) are positive values of c. The result has the shape (sites, cells).
    """
    total = np.zeros((slopes.shape[1], cells))
    edges = np.linspace(0.0, 1.0, cells + 1)
    for c in slopes:
        below = np.expm1(c[:, None] * edges) / np.expm1(c)[:, None]
        total += np.diff(below, axis=1)
    return total / len(slopes)


def true_marginals(model: gs.ContinuousModel, weights: Floats, draws: int, rng: int) -> tuple[Floats, Floats]:
    """Return the probabilities of cells (sites, cells), and the draws of c over which they are averaged."""
    how: dict[str, Any] = {"sweeps": gs.Sweeps(2 * draws, thin=4), "chains": 2, "rng": rng, "record": "draws"}
    result = sample_quietly(model, gs.kernels.ContinuousGibbs("exact-inverse"), **how)
    slopes = result.draws.reshape(-1, model.n_sites) @ weights
    return cell_probabilities(slopes), slopes


def symmetric_divergence(counts: Ints, truth: Floats) -> float:
    """Return KL(p, q) + KL(q, p) for counts plus 1/2 and true probabilities, averaged over sites."""
    p = counts + 0.5
    p /= p.sum(axis=1, keepdims=True)
    return float(((p - truth) * np.log(p / truth)).sum(axis=1).mean())


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Estimate the true marginals, and run all methods."""
    updates, chains, draws = (10_000, 2, 200) if quick else (100_000, 3, 2_000)
    weights = couplings()
    models = {False: gs.models.continuous_spins(weights), True: unshifted_model()}
    largest = {
        kind: gs.kernels.local_energies(gs.graphs.compile_graph(model)).largest for kind, model in models.items()
    }
    methods = list_methods(*(energy**2 for energy in largest.values()))
    meter.expect(1 + chains * len(methods))
    truth, slopes = true_marginals(models[False], weights, draws, rng)
    meter.tick()

    def follow(name: str) -> tuple[Ints, Trajectory]:
        method = methods[name]
        lengths = space_lengths(int(method.share * updates), updates // 100, 10)
        how: dict[str, Any] = {"cells": CELLS, "width": 1.0 / CELLS, "rng": rng, "chains": chains, "tick": meter.tick}
        model = models[name == UNSHIFTED]
        return lengths, watch(model, method.kernel, lengths, lambda counts: symmetric_divergence(counts, truth), **how)

    found, reports = occupancy.follow_methods(methods, follow)
    arrays: dict[str, Array] = {"truth": truth, **found}
    shown = [t for t in (100, 1_000, 10_000, 100_000) if t in arrays[f"{EXACT}: updates"]]
    title = "Symmetric divergence from the truth, mean and standard deviation of chains"
    # a proposal from all factors is accepted with probability (e^c - 1) / c exp(-sum of couplings)
    tries = float(np.mean(slopes / np.expm1(slopes) * np.exp(weights.sum(axis=1))))
    known = {"mean": float(truth @ ((np.arange(CELLS) + 0.5) / CELLS) @ np.full(len(truth), 1 / len(truth)))}
    known |= {"slope": float(slopes.mean()), "tries": tries}
    return Findings(
        tables=[
            occupancy.tabulate_errors(title, arrays, methods, shown, 3),
            _costs(arrays, reports),
            _claims(arrays, reports, largest, tries),
        ],
        arrays=arrays,
        notes=[
            occupancy.NOTE,
            "'From zero on' means that factors are x y times a coupling, which does not change the model.",
            "The paper does not state how densities were compared; the cells and the half count are choices made "
            "here. All spins start at 0.",
            "An interpolant of the density is truncated where it is negative, which is frequent with degree 3, "
            "and proposals are corrected for that.",
        ],
        settings={
            "chains": chains,
            "updates": updates,
            "L": largest[False],
            "L of the paper": largest[True],
            "known": known,
            "report": reports,
        },
    )


def _costs(arrays: occupancy.Arrays, reports: Mapping[str, Mapping[str, float]]) -> Table:
    rows = Rows()
    for name, report in reports.items():
        figures = [report.get(what) for what in ("minibatch", "factors", "evaluations", "acceptance")]
        cells = [None if value is None else f"{value:.5g}" for value in figures]
        rows.add(name, *cells, f"{1e6 * occupancy.seconds_of_update(arrays, name):.3g} us")
    head = ("method", "drawn and kept", "different factors", "evaluations", "acceptance", "an update takes")
    return Table("Factors of an update, and its time", head, rows)


def _claims(
    arrays: occupancy.Arrays, reports: Mapping[str, Mapping[str, float]], largest: Mapping[bool, float], tries: float
) -> Table:
    """Compare the claims of the source with the findings."""
    last = {name: occupancy.last_error(arrays, name) for name in reports}
    each = {name: occupancy.seconds_of_update(arrays, name) for name in reports}
    kept = {name: reports[name]["minibatch"] for name in ("PGDA", UNSHIFTED)}
    accepted = {name: reports[name]["acceptance"] for name in ("PGITS", "PGDA")}
    ratios = [last["PGDA"] / last["Gibbs-DA"], last["PGITS"] / last["Gibbs-ITS"]]
    times = {name: occupancy.times_of_update(arrays, name) for name in reports}
    faster = [compare_times(times[f"Gibbs-{kind}"], times[f"PG{kind}"]) for kind in ("DA", "ITS")]
    return compare_claims(
        Claim(
            "L = 13.71",
            f"{largest[True]:.3f} with the bounds of the paper, {largest[False]:.3f} from zero on",
            round(largest[True], 2) == 13.71,
        ),
        Claim(
            "190 factors are evaluated on average",
            f"{kept[UNSHIFTED]:.0f} draws with the bounds of the paper, {kept['PGDA']:.0f} from zero on",
            abs(kept[UNSHIFTED] / 190 - 1) < 0.1,
        ),
        Claim(
            "PGDA and PGITS perform comparably with Gibbs sampling",
            f"divergence {ratios[0]:.2f} (DA) and {ratios[1]:.2f} times (ITS) that from all factors",
            max(ratios) < 1.2,
        ),
        Claim(
            "PGDA converges faster than PGITS with equal degrees",
            f"divergences {last['PGDA']:.3f} and {last['PGITS']:.3f}, {100 * accepted['PGDA']:.2f} and "
            f"{100 * accepted['PGITS']:.1f} % of proposals accepted",
            last["PGDA"] < last["PGITS"],
        ),
        Claim(
            "rejection takes more than 300 steps",
            f"{tries:.0f} with all factors, where the bound is that of the site; an update takes "
            f"{each['Gibbs-rejection'] / each['Gibbs-DA']:.2f} times as long as Gibbs-DA, with "
            f"minibatches {each['PG-rejection'] / each['PGDA']:.2f} times as long as PGDA",
            tries > 300,
        ),
        Claim(
            "both Poisson-Gibbs methods are faster than plain Gibbs",
            f"an update of plain Gibbs takes {faster[0].text()} (DA) and {faster[1].text()} (ITS) as long",
            all_hold(ratio.exceeds() for ratio in faster),
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figures 1c and 2c: divergence against updates and against time."""
    methods = list_methods(1.0, 1.0)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, what, title in zip(panels, ("updates", "seconds"), ("1c", "2c"), strict=True):
        occupancy.draw_courses(axes, findings.arrays, {name: method.look for name, method in methods.items()}, what)
        axes.set_ylim(0.0, None)
        label = "updates" if what == "updates" else "seconds of updates"
        tidy(axes, f"Figure {title}: divergence against {label}", label)
    panels[0].legend(fontsize=7, frameon=False, loc="lower left")
    panels[0].set_ylabel("symmetric Kullback-Leibler divergence", fontsize=8, color=INK)


EXPERIMENT = Experiment(f"{POISSON}; Figures 1c and 2c", run, draw, (11.0, 4.6))
