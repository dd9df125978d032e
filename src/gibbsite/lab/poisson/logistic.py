"""Logistic regression of a million rows by minibatches, compared with evaluating all rows.

There are two data sets: one drawn from the model (:func:`draw_data`: a million rows), and the RAND health insurance
experiment from statsmodels (20,190 people; whether a person saw a doctor at all in a year). Priors are
uniform on a box. The posterior means of all minibatch kernels are compared with those of Metropolis-Hastings
that evaluates every row at every move, relative to the standard error of the difference.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Bools, Floats
from gibbsite.applications.logistic import LogisticRegression, logistic_regression
from gibbsite.lab.drawing import COLORS, INK, Figure, tidy
from gibbsite.lab.experiment import POISSON, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

COEFFICIENTS = 6
CHAINS = 4
REFERENCE = "Metropolis, all rows"
APART = "largest difference, standard errors"


class Job(NamedTuple):
    """A kernel, its model, and its number of sweeps."""

    kernel: gs.kernels.Kernel
    model: gs.ContinuousModel
    sweeps: int


class Seen(NamedTuple):
    """Means and their errors by coefficient, and the cost of a run."""

    means: Floats
    errors: Floats
    seconds: float
    ess: float
    evaluations: float


def draw_data(rows: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Draw rows and labels, with an intercept, five normal columns, and coefficients of size about a half."""
    data = rng.normal(size=(rows, COEFFICIENTS))
    data[:, 0] = 1.0
    truth = 0.5 * rng.normal(size=COEFFICIENTS)
    return data, rng.random(rows) < 1.0 / (1.0 + np.exp(-data @ truth))


def read_health() -> tuple[Floats, Bools, list[str]] | None:
    """Return the standardised columns of the RAND experiment with an intercept; None without statsmodels."""
    if importlib.util.find_spec("statsmodels") is None:
        return None
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data
    names = [name for name in table.columns if name != "mdvis"]
    columns = table[names].to_numpy(float)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    rows = np.concatenate([np.ones((len(columns), 1)), columns], axis=1)
    return rows, table["mdvis"].to_numpy() > 0, ["intercept", *names]


def list_jobs(regression: LogisticRegression, quick: bool, rows: int) -> dict[str, Job]:
    """Return the kernels; the first one evaluates all rows."""
    shape = regression.covariance
    large = rows >= 100_000
    few, many = (200, 3_000) if quick else (1_000, 20_000)
    return {
        REFERENCE: Job(gs.Metropolis(covariance=shape), regression.plain, 2_500 if large else many),
        "PGDA": Job(gs.kernels.ContinuousGibbs("double", minibatch="auto"), regression.model, few),
        "PoissonMH": Job(gs.kernels.PoissonMH(covariance=shape), regression.model, many),
        "TunaMH": Job(gs.kernels.TunaMH(covariance=shape, chi=1e-2), regression.model, many),
    }


def sample_one(job: Job, regression: LogisticRegression, rows: int, rng: int) -> Seen:
    """Run a kernel from the mode."""
    result = gs.sample(
        job.model, job.kernel, sweeps=job.sweeps, chains=CHAINS, rng=rng, start=regression.mode, progress=False
    )
    names = job.model.sites
    means = np.array([result.marginals[name]["mean"] for name in names])
    errors = np.array([result.mcse[name]["mean"] for name in names])
    units = 1 if job.kernel.joint else len(names)
    evaluations = result.report.get("evaluations", float(rows)) * units
    ess = min(result.ess[name]["mean"] for name in names)
    return Seen(means, errors, result.seconds, ess, evaluations * job.sweeps * CHAINS)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Sample both posteriors with all kernels."""
    rows, labels = draw_data(3_000 if quick else 1_000_000, np.random.default_rng(rng))
    sets: dict[str, tuple[Floats, Any, Any]] = {"drawn": (rows, labels, None)}
    health = None if quick else read_health()
    if health is not None:
        sets["health"] = health
    meter.expect(4 * len(sets))
    tables, arrays, settings = [], {}, {}
    for name, (data, outcome, called) in sets.items():
        regression = logistic_regression(data, outcome, names=called)
        largest = gs.kernels.local_energies(gs.graphs.compile_graph(regression.model)).largest
        settings[name] = {"rows": len(data), "coefficients": data.shape[1], "L": largest}
        seen: dict[str, Seen] = {}
        for method, job in list_jobs(regression, quick, len(data)).items():
            seen[method] = sample_one(job, regression, len(data), rng)
            meter.tick()
        tables.append(_table(name, len(data), seen, largest))
        sd = np.sqrt(np.diag(regression.covariance))
        arrays[f"{name}: means"] = np.stack([(s.means - regression.mode) / sd for s in seen.values()])
        arrays[f"{name}: errors"] = np.stack([s.errors / sd for s in seen.values()])
    tables.append(_claims(tables))
    notes = [
        "Seconds depend on the machine. Evaluations are those of the likelihood of a row, or of its difference "
        "from its quadratic expansion at the mode; the passes over all rows that find the mode are not counted.",
        "An update of PGDA moves one coefficient; updates of the other kernels move all of them. The number of "
        "effective draws is the smallest over coefficients.",
    ]
    if health is None:
        notes.append(
            "Quick: a small data set of the same kind, and not the real one."
            if quick
            else "Without statsmodels (pip install statsmodels) there is no real data set."
        )
    return Findings(tables, arrays, notes, settings)


def _table(name: str, rows: int, seen: dict[str, Seen], largest: float) -> Table:
    truth = seen[REFERENCE]
    lines = Rows()
    for method, s in seen.items():
        apart = np.abs(s.means - truth.means) / np.sqrt(s.errors**2 + truth.errors**2)
        lines.add(
            method,
            None if method == REFERENCE else float(apart.max()),
            s.ess,
            s.seconds,
            s.evaluations / s.ess,
            s.ess / s.seconds,
        )
    columns = ("kernel", APART, "effective draws", "seconds", "evaluations each", "draws a second")
    return Table(f"Posterior of {name} data, {rows:,} rows, L = {largest:.3g}", columns, lines)


def _claims(tables: list[Table]) -> Table:
    """Compare the claims of the source with the findings."""
    apart = [value for table in tables for value in table.column(APART) if isinstance(value, float)]
    cost = {str(row[0]): float(str(row[4])) for row in tables[0].rows}
    best = min(cost, key=lambda name: cost[name])
    return compare_claims(
        Claim(
            "minibatches keep the target",
            f"posterior means at most {max(apart):.1f} standard errors from those of all rows",
            max(apart) < 4.0,
        ),
        Claim(
            "an update evaluates few of very many factors",
            f"an effective draw takes {cost[REFERENCE]:.3g} evaluations with all rows, {cost[best]:.3g} with {best}",
            cost[best] < cost[REFERENCE],
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw posterior means of all kernels, in posterior standard deviations from the mode."""
    names = list(findings.settings)
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        means, errors = findings.arrays[f"{name}: means"], findings.arrays[f"{name}: errors"]
        methods = findings.table(f"Posterior of {name}").column("kernel")
        for k, method in enumerate(methods):
            at = np.arange(means.shape[1]) + 0.15 * (k - 1.5)
            color = INK if k == 0 else COLORS[k - 1]
            ax.errorbar(at, means[k], 2 * errors[k], fmt="o", ms=3, lw=1, color=color, label=str(method))
        ax.axhline(0.0, lw=0.5, color=INK)
        what = "posterior mean - mode, standard deviations" if ax is axes[0] else ""
        tidy(ax, f"{name}, {findings.settings[name]['rows']:,} rows", "coefficient", what)
    axes[-1].legend(fontsize=8, frameon=False)


EXPERIMENT = Experiment(f"{POISSON}; a use of its kernels", run, draw, (10.0, 4.0))
