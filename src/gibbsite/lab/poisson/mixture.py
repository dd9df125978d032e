"""The posterior of a mixture given a million numbers, from minibatches.

Numbers are drawn from N(x_1, 2) / 2 + N(x_1 + x_2, 2) / 2 at (0, 1); the priors are N(0, 10) and N(0, 1), truncated
to [-6, 6]. The posterior given a million numbers would be almost a point, and its L is ten thousand times larger than
that of the paper (1581), whose figure is that of a hundred numbers. So the likelihood is taken to the
power of 1 / T with T = N / 100, which the paper does not mention. The prior is evaluated at every update.

The true posterior is computed on a grid, with numbers binned into narrow cells and replaced by the means of the cells.

Rejection by the bound of a minibatch is not run, but its acceptance rate is computed. Uniform proposals are accepted
with probability exp(U - bound), where the bound is log(1 + L / lambda) for each draw; the mean of this probability over
the interval is the acceptance rate. The paper runs rejection with all numbers instead, with a constant bound that was
chosen so that an update takes a thousand proposals. This is run for a thousand updates, the first of which take as
many evaluations of factors as all of PGDA. Energies are those of binned numbers: it would take hours to compute them
from a million numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.graphs.functions.bounds import known_bounds
from gibbsite.lab.chains import sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import POISSON, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.occupancy import watch
from gibbsite.lab.timing import compare_times

EDGE, VARIANCE, PRIORS, MODES = 6.0, 2.0, (10.0, 1.0), ((0.0, 1.0), (1.0, -1.0))
INFORMATION = 100  # N / T
BATCH, DEGREE, FINE = 500.0, 20, 25  # of the paper
CELLS, PARTS = 48, 6  # cells of histograms along an axis, and points of the grid along a cell
SWEEPS = {"quick": 400, "full": 6_000, "long": 1_000_000}
TRIES, REJECTED = 1_000, 1_000  # proposals of an update by rejection in the paper, and updates here
FREE = "PGDA, free degrees"
EQUAL, REJECTION = "rejection, equal work", "rejection, 1000 updates"
NOTES = (
    "Milliseconds are processor time and depend on the machine.",
    "The likelihood is that of a hundred numbers: each datum has the weight 100 / N. The L = 1581.14 of the "
    "paper was not reproduced with any bounds that were tried, nor with a million numbers of full weight.",
    "Total variation is between shares of cells of 0.25 x 0.25; because the number of draws is finite, it is "
    "not zero for an exact method.",
)


class Trial(NamedTuple):
    """Results of a method."""

    draws: Floats  # (draws, 2)
    report: Mapping[str, float]
    each: float  # milliseconds of an update


def list_methods() -> dict[str, gs.kernels.ContinuousGibbs]:
    """Return the methods: those of the paper, and PGDA with adaptive degrees."""
    kernel = gs.kernels.ContinuousGibbs
    return {
        "PGITS": kernel("its", minibatch=BATCH, degree=DEGREE),
        "PGDA": kernel("double", minibatch=BATCH, degree=DEGREE, fine=FINE),
        FREE: kernel("double", minibatch=BATCH),
    }


#: How many numbers the paper has.
PAPER_SIZE = 1_000_000


def draw_data(size: int, rng: np.random.Generator) -> Floats:
    """Draw numbers from the mixture at (0, 1)."""
    return rng.normal(rng.integers(0, 2, size).astype(float), np.sqrt(VARIANCE))


def make_model(data: Floats) -> gs.ContinuousModel:
    """Return the posterior, with a likelihood that has the weight of a hundred numbers."""
    likelihood = gs.factors.mixture_factors([0, 1], data, sd=np.sqrt(VARIANCE), weight=INFORMATION / data.size)
    prior = gs.factors.normal_factors([0, 1], 0.0, np.sqrt(PRIORS), always=True)
    box = gs.Interval(-EDGE, EDGE)
    return gs.ContinuousModel({"x1": box, "x2": box}, [likelihood, prior])


def bin_data(data: Floats) -> tuple[Floats, Floats]:
    """Return the means of the numbers in 500 narrow cells, and how many there are in each."""
    many = 500
    edges = np.linspace(data.min(), np.nextafter(data.max(), np.inf), many + 1)
    place = np.minimum(np.searchsorted(edges, data, side="right") - 1, many - 1)
    counts = np.bincount(place, minlength=many).astype(float)
    return np.bincount(place, data, many) / np.maximum(counts, 1.0), counts


def true_probabilities(data: Floats, cells: int = CELLS, parts: int = PARTS) -> Floats:
    """Return the probabilities of the cells of a square grid, by x_1 and x_2, with ``parts`` points along each cell."""
    points, (means, counts) = cells * parts, bin_data(data)
    x = -EDGE + 2.0 * EDGE * (np.arange(points) + 0.5) / points
    at = np.linspace(-2.0 * EDGE, 2.0 * EDGE, 2 * points + 1)[1:-1]  # all sums x_1 + x_2 of two points
    first, second = (-((means - mean[:, None]) ** 2) / (2.0 * VARIANCE) for mean in (x, at))
    log_p = np.empty((points, points))
    for k in range(points):
        sums = np.logaddexp(first[k], second[k : k + points])
        log_p[k] = INFORMATION / data.size * sums @ counts
    log_p -= x[:, None] ** 2 / (2.0 * PRIORS[0]) + x**2 / (2.0 * PRIORS[1])
    p = np.exp(log_p - log_p.max()).reshape(cells, parts, cells, parts).sum(axis=(1, 3))
    found: Floats = p / p.sum()
    return found


def share_of_first_mode(p: Floats) -> float:
    """Return the probability of x_2 > 0, where the first mode is."""
    return float(p[:, p.shape[1] // 2 :].sum())


def histogram(draws: Floats) -> Floats:
    """Return the shares of draws (draws, 2) in the cells."""
    found = np.histogramdd(draws, bins=CELLS, range=[(-EDGE, EDGE)] * 2)[0]
    return found / len(draws)


def try_method(model: gs.ContinuousModel, kernel: gs.kernels.Kernel, sweeps: int, rng: int, **how: Any) -> Trial:
    """Sample with a method."""
    begun = time.process_time()
    result = sample_quietly(model, kernel, sweeps=sweeps // 2, chains=2, rng=rng, record="draws", **how)
    updates = 1.1 * sweeps * (1 if kernel.joint else 2)  # a tenth is warmup
    return Trial(result.draws.reshape(-1, 2), result.report, 1e3 * (time.process_time() - begun) / updates)


def energy_of(data: Floats) -> Callable[[Floats, Floats], Floats]:
    """Return the log-density, up to a constant, as a function of x_1 and x_2; numbers are binned."""
    means, counts = bin_data(data)

    def energy(first: Floats, second: Floats) -> Floats:
        near, far = (-((means - at[:, None]) ** 2) / (2.0 * VARIANCE) for at in (first, first + second))
        likelihood = INFORMATION / data.size * np.logaddexp(near, far) @ counts
        found: Floats = likelihood - first**2 / (2.0 * PRIORS[0]) - second**2 / (2.0 * PRIORS[1])
        return found

    return energy


def try_rejection(data: Floats, updates: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Return draws of Gibbs sampling by rejection of uniform proposals, and the mean number of proposals.

    The bound is constant, and such that an update takes ``TRIES`` proposals at the first mode.
    """
    energy, x = energy_of(data), np.array(MODES[0])
    grid = np.linspace(-EDGE, EDGE, 1001)
    level = energy(grid, np.full(grid.size, x[1]))
    bound = float(np.logaddexp.reduce(level)) - np.log(grid.size) + np.log(TRIES)
    draws, tried = np.empty((updates, 2)), 0
    for k in range(updates):
        site, accepted = k % 2, np.zeros(0, np.int64)
        while not accepted.size:
            proposals = rng.uniform(-EDGE, EDGE, 256)
            other = np.full(proposals.size, x[1 - site])
            heights = energy(proposals, other) if site == 0 else energy(other, proposals)
            accepted = np.flatnonzero(np.log(rng.random(proposals.size)) < heights - bound)
            tried += int(accepted[0]) + 1 if accepted.size else proposals.size
        x[site] = proposals[accepted[0]]
        draws[k] = x
    return draws, tried / updates


def time_all_factors(model: gs.ContinuousModel, kernel: gs.kernels.Kernel, rng: int) -> Floats:
    """Return the milliseconds of an update that evaluates all factors, in three runs."""
    cells: dict[str, Any] = {"cells": 1, "low": -EDGE, "width": 2.0 * EDGE}
    seen = watch(model, kernel, np.array([4]), lambda counts: 0.0, rng=rng, chains=3, **cells)
    times: Floats = 1e3 * seen.seconds[:, -1] / 4
    return times


def log_acceptance(model: gs.ContinuousModel, data: Floats, largest: float, rng: np.random.Generator) -> float:
    """Return the logarithm (base 10) of the acceptance rate of uniform proposals for x_1 by rejection.

    The rate is conditional on a minibatch at the first mode.
    """
    floor, bound = (part[: data.size] for part in known_bounds(gs.graphs.compile_graph(model)))
    tau, (x, shift) = BATCH / largest, MODES[0]

    def height(v: float, of: Any) -> Floats:
        value = np.logaddexp(*(-((data[of] - mean) ** 2) / (2.0 * VARIANCE) for mean in (v, v + shift)))
        raised: Floats = INFORMATION / data.size * (value - 0.5 * np.log(8.0 * np.pi * VARIANCE)) - floor[of]
        return raised

    times = rng.poisson(tau * bound + height(x, slice(None)))
    drawn = np.flatnonzero(times)
    most = times.sum() * np.log1p(1.0 / tau)
    proposals = np.linspace(-EDGE, EDGE, 1001)
    energies = [times[drawn] @ np.log1p(height(v, drawn) / (tau * bound[drawn])) for v in proposals]
    missing = np.array(energies) - most - proposals**2 / (2.0 * PRIORS[0])
    top = missing.max()
    return float((top + np.log(np.exp(missing - top).mean())) / np.log(10.0))


def prepare(quick: bool, rng: int) -> tuple[Floats, gs.ContinuousModel, float, Floats]:
    """Return the numbers, the posterior with its L, and the true probabilities of cells."""
    size = 20_000 if quick else 1_000_000
    data = draw_data(size, np.random.default_rng([rng, size]))
    model = make_model(data)
    return data, model, gs.kernels.local_energies(gs.graphs.compile_graph(model)).largest, true_probabilities(data)


def try_all(
    model: gs.ContinuousModel, methods: Mapping[str, gs.kernels.Kernel], sweeps: int, rng: int, meter: Meter
) -> dict[str, Trial]:
    """Sample with all methods; a long run is timed by a short one, because it may be continued from a file."""
    trials = {}
    for name, kernel in methods.items():
        try_method(model, kernel, 4, rng)  # compiles
        if meter.kept is None:
            trials[name] = try_method(model, kernel, sweeps, rng)
        else:
            each = try_method(model, kernel, SWEEPS["quick"], rng).each
            file = gs.Checkpoint(meter.kept / f"{name}.checkpoint", resume=True)
            trials[name] = try_method(model, kernel, sweeps, rng, checkpoint=file, progress=meter.display.show)
            trials[name] = trials[name]._replace(each=each)
        meter.tick()
    return trials


def collect(truth: Floats, trials: Mapping[str, Trial]) -> dict[str, Array]:
    """Return the histograms of a figure: truth, and shares of cells of every method."""
    return {"truth": truth} | {name: histogram(trial.draws) for name, trial in trials.items()}


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Compute the true posterior, and sample it with all methods."""
    sweeps, methods = SWEEPS["quick" if quick else "long" if meter.kept else "full"], list_methods()
    meter.expect(3 + len(methods))
    data, model, largest, truth = prepare(quick, rng)
    meter.tick()
    trials = try_all(model, methods, sweeps, rng, meter)
    each = time_all_factors(model, gs.kernels.ContinuousGibbs("double", degree=DEGREE, fine=FINE), rng)
    draws, tries = try_rejection(data, REJECTED, np.random.default_rng([rng, 2]))
    work = trials["PGDA"].report["evaluations"] * 2 * sweeps / (tries * data.size)
    report = {"evaluations": tries * data.size, "acceptance": 1.0 / tries}
    trials[EQUAL] = Trial(draws[: max(1, round(work))], report, np.nan)
    trials[REJECTION] = Trial(draws, report, np.nan)
    meter.tick()
    share = log_acceptance(model, data, largest, np.random.default_rng([rng, 1]))
    meter.tick()
    return Findings(
        tables=[
            tell_trials(truth, trials, "Gibbs-DA, all factors", each),
            _claims(truth, trials, largest, each, share, data.size >= PAPER_SIZE),
        ],
        arrays=collect(truth, trials),
        notes=[
            *NOTES,
            "The paper has 10^6 draws of each method, as a long run has. Draws by rejection are single updates.",
        ],
        settings={
            "numbers": data.size,
            "sweeps": sweeps,
            "L": largest,
            "lambda": BATCH,
            "acceptance of rejection, log 10": share,
            "report": {name: dict(trial.report) for name, trial in trials.items()},
        },
    )


def variation(p: Floats, q: Floats) -> float:
    """Return the total variation between two laws."""
    return float(np.abs(p - q).sum() / 2.0)


def tell_trials(truth: Floats, trials: Mapping[str, Trial], everything: str, each: Floats) -> Table:
    """Return the table of results; its last row is a method that evaluates all factors, which is only timed."""
    centre = (np.arange(CELLS) + 0.5) * 2.0 * EDGE / CELLS - EDGE
    mean = f"({truth.sum(axis=1) @ centre:.2f}, {truth.sum(axis=0) @ centre:.2f})"
    rows = Rows([("truth", None, None, f"{share_of_first_mode(truth):.3f}", mean, *[None] * 4)])
    for name, trial in trials.items():
        p = histogram(trial.draws)
        rows.add(
            name,
            len(trial.draws),
            f"{variation(p, truth):.3f}",
            f"{share_of_first_mode(p):.3f}",
            "({:.2f}, {:.2f})".format(*trial.draws.mean(axis=0)),
            *(_number(trial.report.get(what)) for what in ("minibatch", "evaluations", "acceptance")),
            f"{trial.each:.3g} ms" if np.isfinite(trial.each) else None,
        )
    rows.add(everything, *[None] * 7, f"{np.median(each):.3g} ms")
    head = (
        "method",
        "draws",
        "variation from truth",
        "x_2 > 0",
        "mean",
        "minibatch",
        "evaluations",
        "acceptance",
        "an update takes",
    )
    return Table("Estimates of the posterior, and their cost", head, rows)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _claims(
    truth: Floats, trials: Mapping[str, Trial], largest: float, each: Floats, share: float, full: bool
) -> Table:
    """Compare the claims of the source with the findings, given whether there are as many numbers as in the paper."""
    slower = compare_times(each, [trials["PGDA"].each])
    far = {name: variation(histogram(trial.draws), truth) for name, trial in trials.items()}
    centre, half = (np.arange(CELLS) + 0.5) * 2.0 * EDGE / CELLS - EDGE, CELLS // 2
    tops = [np.unravel_index(part.argmax(), part.shape) for part in (truth[:, half:], truth[:, :half])]
    peaks = [(centre[i], centre[j + shift]) for (i, j), shift in zip(tops, (half, 0), strict=True)]
    batch = trials["PGDA"].report["minibatch"]
    return compare_claims(
        Claim("L = 1581.14", f"{largest:.2f}", abs(largest - 1581.14) < 0.01 if full else None),
        Claim(
            "modes at (0, 1) and (1, -1)",
            "two, with maxima near " + " and ".join(f"({a:.1f}, {b:.1f})" for a, b in peaks) + "; "
            f"{100 * share_of_first_mode(truth):.1f} % of the mass has x_2 > 0",
            np.abs(np.array(peaks) - MODES).max() < 0.25,
        ),
        Claim("1802 factors are evaluated on average", f"{batch:.0f}", abs(batch / 1802 - 1) < 0.05 if full else None),
        Claim(
            "densities of PGITS and PGDA are very accurate",
            f"variation {far['PGITS']:.3f} and {far['PGDA']:.3f}, with free degrees {far[FREE]:.3f}",
            max(far["PGITS"], far["PGDA"]) < 0.1 or None,  # the number of draws is too small to refute it
        ),
        Claim(
            "rejection sampling completely fails, given the budget",
            f"variation {far[EQUAL]:.2f} after {len(trials[EQUAL].draws)} updates, for the work of PGDA, and "
            f"{far[REJECTION]:.2f} after {REJECTED}; with minibatches, one of 10^{-share:.0f} proposals is accepted",
            far[EQUAL] > 0.5 and share < -6,
        ),
        Claim(
            "minibatches are faster than all data",
            f"an update with all data takes {slower.text()} as long as one of PGDA",
            slower.exceeds() if full else None,
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figure 3: truth and estimates side by side."""
    arrays = findings.arrays
    panels = figure.subplots(1, len(arrays), sharex=True, sharey=True)
    top = arrays["truth"].max()
    for axes, (name, p) in zip(panels, arrays.items(), strict=True):
        box = (-EDGE, EDGE, -EDGE, EDGE)
        axes.imshow(p.T, origin="lower", extent=box, cmap="Blues", vmin=0.0, vmax=top, aspect="equal")
        for mode in MODES:
            axes.plot(*mode, "+", color=COLORS[5], ms=8)
        tidy(axes, name, "$x_1$")
        axes.set(xlim=(-2.5, 3.5), ylim=(-3.5, 3.5))
        axes.spines[:].set(visible=True, color=FAINT)
    panels[0].set_ylabel("$x_2$", fontsize=8, color=INK)


EXPERIMENT = Experiment(f"{POISSON}; Figure 3", run, draw, (15.0, 3.8), long="10^6 draws of each method")
