"""The posterior of a mixture of two normals given a million numbers, from minibatches of a few of them.

Numbers are drawn from N(x_1, 2) / 2 + N(x_1 + x_2, 2) / 2 at (0, 1); the priors are N(0, 10) and N(0, 1), cut
off outside [-6, 6]. The posterior of a million numbers is a point, and the L of the paper (1581) is ten
thousand times smaller than theirs: its figure is that of a hundred numbers. So the likelihood is taken to the
power of 1 / T with T = N / 100, which is nowhere said there. The prior is evaluated at every update.

The truth is summed up on a grid: numbers enter through counts in narrow cells, each at its mean.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.errors import SamplingError
from gibbsite.kernel.minibatch import local_energies
from gibbsite.lab.experiment import Experiment, Meter
from gibbsite.lab.findings import Findings, Table, compare_claims
from gibbsite.lab.occupancy import Floats, watch
from gibbsite.lab.sources import POISSON
from gibbsite.report._canvas import COLORS, FAINT, INK, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGE, VARIANCE, PRIORS, MODES = 6.0, 2.0, (10.0, 1.0), ((0.0, 1.0), (1.0, -1.0))
INFORMATION = 100  # N / T
BATCH, DEGREE, FINE = 500.0, 20, 25  # of the paper
CELLS, PARTS = 48, 6  # cells of histograms along an axis, and points of the grid along each of them
FREE = "PGDA, free degrees"


class Trial(NamedTuple):
    """What a method has found: draws (draws, 2), figures, milliseconds of an update, what stopped it."""

    draws: Floats
    report: Mapping[str, float]
    each: float
    failure: str


def list_methods() -> dict[str, gs.ContinuousGibbs]:
    """Return the methods: those of the paper, and PGDA with degrees that are raised until they suffice."""
    kernel = gs.ContinuousGibbs
    return {
        "PGITS": kernel("its", minibatch=BATCH, degree=DEGREE),
        "PGDA": kernel("double", minibatch=BATCH, degree=DEGREE, fine=FINE),
        FREE: kernel("double", minibatch=BATCH),
        "PG-rejection": kernel("rejection", minibatch=BATCH),
    }


def draw_data(size: int, rng: np.random.Generator) -> Floats:
    """Draw numbers from the mixture at (0, 1).

    Examples
    --------
    >>> bool(abs(draw_data(10_000, np.random.default_rng(1)).mean() - 0.5) < 0.1)
    True
    """
    return rng.normal(rng.integers(0, 2, size).astype(float), np.sqrt(VARIANCE))


def make_model(data: Floats) -> gs.ContinuousModel:
    """Return the posterior, its likelihood worth a hundred numbers.

    Examples
    --------
    >>> model = make_model(draw_data(10_000, np.random.default_rng(1)))
    >>> 1300 < local_energies(gs.compile_graph(model)).largest < 1500
    True
    """
    likelihood = gs.mixture_factors([0, 1], data, sd=np.sqrt(VARIANCE), weight=INFORMATION / data.size)
    prior = gs.normal_factors([0, 1], 0.0, np.sqrt(PRIORS), always=True)
    box = gs.Interval(-EDGE, EDGE)
    return gs.ContinuousModel({"x1": box, "x2": box}, [likelihood, prior])


def true_probabilities(data: Floats, cells: int = CELLS, parts: int = PARTS) -> Floats:
    """Return the probabilities of the cells of a square grid.

    Parameters
    ----------
    data : array
        The numbers.
    cells, parts : int
        Cells along an axis, and points along each of them.

    Returns
    -------
    array (cells, cells)
        By x_1 and x_2.

    Examples
    --------
    >>> p = true_probabilities(draw_data(10_000, np.random.default_rng(1)), 24)
    >>> p.shape, round(float(p.sum()), 12)
    ((24, 24), 1.0)
    """
    many, points = 500, cells * parts
    edges = np.linspace(data.min(), np.nextafter(data.max(), np.inf), many + 1)
    place = np.minimum(np.searchsorted(edges, data, side="right") - 1, many - 1)
    counts = np.bincount(place, minlength=many)
    means = np.bincount(place, data, many) / np.maximum(counts, 1)
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
    """Return the probability of x_2 > 0, where the first mode is.

    Examples
    --------
    >>> share_of_first_mode(np.array([[0.1, 0.2], [0.3, 0.4]]))
    0.6000000000000001
    """
    return float(p[:, p.shape[1] // 2 :].sum())


def histogram(draws: Floats) -> Floats:
    """Return the shares of draws in the cells of the grid.

    Examples
    --------
    >>> histogram(np.zeros((10, 2))).sum()
    np.float64(1.0)
    """
    found = np.histogramdd(draws, bins=CELLS, range=[(-EDGE, EDGE)] * 2)[0]
    shares: Floats = found / max(len(draws), 1)
    return shares


def try_method(model: gs.ContinuousModel, kernel: gs.Kernel, sweeps: int, rng: int) -> Trial:
    """Sample with a method; one that gives up keeps what it has drawn before."""
    failure, begun = "", time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        try:
            result: Any = gs.sample(
                model, kernel, sweeps=sweeps // 2, chains=2, rng=rng, record="draws", progress=False
            )
        except SamplingError as error:
            failure, result = str(error), getattr(error, "result", None)
    each = (time.process_time() - begun) / (2 * 1.1 * sweeps)  # two sites; a tenth is warmup
    if result is None:
        return Trial(np.zeros((0, 2)), {}, np.nan, failure)
    return Trial(result.values.reshape(-1, 2), result.report, 1e3 * each, failure)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Compute the truth, and sample with all methods."""
    size, sweeps = (20_000, 400) if quick else (1_000_000, 10_000)
    methods = list_methods()
    meter.expect(2 + len(methods))
    data = draw_data(size, np.random.default_rng([rng, size]))
    model = make_model(data)
    largest = local_energies(gs.compile_graph(model)).largest
    truth = true_probabilities(data)
    meter.tick()
    trials: dict[str, Trial] = {}
    for name, kernel in methods.items():
        try_method(model, kernel, 4, rng)  # compiles
        # rejection goes through so many proposals that it is not given more
        trials[name] = try_method(model, kernel, sweeps // 100 if "rejection" in name else sweeps, rng)
        meter.tick()
    everything = gs.ContinuousGibbs("double", degree=DEGREE, fine=FINE)
    box: dict[str, Any] = {"cells": 1, "low": -EDGE, "width": 2.0 * EDGE}
    full = watch(model, everything, np.array([4]), lambda counts: 0.0, rng=rng, **box)
    each = float(1e3 * full.seconds[0, -1] / 4)
    meter.tick()
    arrays: dict[str, NDArray[Any]] = {"truth": truth}
    arrays |= {name: histogram(trial.draws) for name, trial in trials.items()}
    return Findings(
        tables=[_found(truth, trials, each), _claims(truth, trials, largest, each)],
        arrays=arrays,
        notes=[
            "Milliseconds are time of the processor, and depend on the machine.",
            "The likelihood is that of a hundred numbers, each datum counting 100 / N. L = 1581.14 of the "
            "paper is not found with any bounds that were tried, nor with a million numbers as they are.",
            "Total variation is between shares of cells of 0.25 x 0.25; draws are not independent, so it "
            "is not zero for a method that is exact.",
        ],
        settings={
            "numbers": size,
            "sweeps": sweeps,
            "L": largest,
            "lambda": BATCH,
            "report": {name: dict(trial.report) for name, trial in trials.items()},
            "failures": {name: trial.failure for name, trial in trials.items() if trial.failure},
        },
    )


def variation(p: Floats, q: Floats) -> float:
    """Return the total variation between two laws.

    Examples
    --------
    >>> variation(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    0.25
    """
    return float(np.abs(p - q).sum() / 2.0)


def _found(truth: Floats, trials: Mapping[str, Trial], each: float) -> Table:
    centre = (np.arange(CELLS) + 0.5) * 2.0 * EDGE / CELLS - EDGE
    mean = f"({truth.sum(axis=1) @ centre:.2f}, {truth.sum(axis=0) @ centre:.2f})"
    rows: list[tuple[Any, ...]] = [
        ("truth", None, None, f"{share_of_first_mode(truth):.3f}", mean, *[None] * 4)
    ]
    for name, trial in trials.items():
        p, report = histogram(trial.draws), trial.report
        some = len(trial.draws) > 0
        rows.append(
            (
                name,
                len(trial.draws),
                f"{variation(p, truth):.3f}" if some else None,
                f"{share_of_first_mode(p):.3f}" if some else None,
                "({:.2f}, {:.2f})".format(*trial.draws.mean(axis=0)) if some else None,
                *(
                    f"{report[what]:.4g}" if what in report else None
                    for what in ("minibatch", "evaluations", "acceptance")
                ),
                f"{trial.each:.3g} ms" if some else None,
            )
        )
    rows.append(("Gibbs-DA, all factors", *[None] * 7, f"{each:.3g} ms"))
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
    return Table("Posterior, and what it took", head, rows)


def _claims(truth: Floats, trials: Mapping[str, Trial], largest: float, each: float) -> Table:
    far = {name: variation(histogram(trial.draws), truth) for name, trial in trials.items()}
    width = 2.0 * EDGE / CELLS
    heights = [truth[tuple(int((v + EDGE) / width) for v in mode)] / truth.max() for mode in MODES]
    batch, failed = trials["PGDA"].report.get("minibatch", np.nan), trials["PG-rejection"]
    return compare_claims(
        [
            ("L = 1581.14", f"{largest:.2f}", bool(abs(largest - 1581.14) < 0.01)),
            (
                "modes at (0, 1) and (1, -1)",
                f"density there {heights[0]:.2f} and {heights[1]:.2f} of its maximum; "
                f"{100 * share_of_first_mode(truth):.1f} % of the mass has x_2 > 0",
                bool(min(heights) > 0.5),
            ),
            (
                "1802 factors are evaluated on average",
                f"{batch:.0f}",
                bool(abs(batch / 1802 - 1) < 0.05),
            ),
            (
                "densities of PGITS and PGDA are very accurate",
                f"variation {far['PGITS']:.3f} and {far['PGDA']:.3f}, with free degrees {far[FREE]:.3f}",
                max(far["PGITS"], far["PGDA"]) < 0.1
                or (None if min(far["PGITS"], far["PGDA"]) < 0.1 else False),
            ),
            (
                "rejection sampling completely fails",
                failed.failure or f"variation {far['PG-rejection']:.3f} from {len(failed.draws):,} draws",
                bool(failed.failure or far["PG-rejection"] > 0.5),
            ),
            (
                "minibatches are faster than all data",
                f"an update of PGDA is {each / trials['PGDA'].each:.0f} times faster",
                bool(each > trials["PGDA"].each),
            ),
        ]
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figure 3: truth and estimates side by side."""
    arrays, failures = findings.arrays, findings.settings["failures"]
    panels = figure.subplots(1, len(arrays), sharex=True, sharey=True)
    top = arrays["truth"].max()
    for axes, (name, p) in zip(panels, arrays.items(), strict=True):
        box = (-EDGE, EDGE, -EDGE, EDGE)
        axes.imshow(p.T, origin="lower", extent=box, cmap="Blues", vmin=0.0, vmax=top, aspect="equal")
        for mode in MODES:
            axes.plot(*mode, "+", color=COLORS[5], ms=8)
        tidy(axes, name, "$x_1$")
        axes.set(xlim=(-2.5, 3.5), ylim=(-3.5, 3.5))
        if name in failures:
            axes.text(0.5, 0.05, "gave up", transform=axes.transAxes, ha="center", fontsize=9, color=INK)
        axes.spines[:].set(visible=True, color=FAINT)
    panels[0].set_ylabel("$x_2$", fontsize=8, color=INK)


EXPERIMENT = Experiment(
    name="poisson-mixture",
    title="The posterior of a mixture given a million numbers, from minibatches",
    source=f"{POISSON}; Figure 3",
    run=run,
    draw=draw,
    size=(13.0, 3.8),
)
