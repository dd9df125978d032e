"""Stochastic gradient Langevin dynamics in a regression: bias, cost and variance.

The model is y = X b + e with normal noise of known variance 1 and a normal prior, so the posterior is normal, with
precision A and mean m. A step g of SGLD with K of N rows (with replacement) is

    d' = (I - g A) d + sqrt(2 g) z + g u,    d = b - m,

where the noise u of the gradient has mean zero and covariance (N^2 / K) (S + T(C)). Here S is the covariance of the
rows' gradients at m, and T(C) is the covariance of x x^T d, which comes from the covariance C of the chain. So the
covariance of the chain solves the linear equation

    C = (I - g A) C (I - g A) + 2 g I + g^2 (N^2 / K) (S + T(C)).

With control variates at m, only T(C) remains; S, by far the larger part, vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.lab.chains import sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import LANGEVIN_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.timing import compare_times

TRUE = np.array([1.0, -0.5, 0.25])
PRIOR = 100.0  # variance
SAME, SHARE, CONTROLLED, FULL = 0.01, 0.25, 0.1, 0.5
_CHAINS = 4
_KINDS = ("same step", "small step", "control variates")


def log_prior(theta: Any) -> Any:
    """Return the log-density of the prior."""
    return -0.5 * (theta[0] ** 2 + theta[1] ** 2 + theta[2] ** 2) / PRIOR


def prior_gradient(theta: Any) -> Any:
    """Return the gradient of the log-density of the prior."""
    return -theta / PRIOR


def log_likelihood(theta: Any, row: Any) -> Any:
    """Return the log-likelihood of a row: three inputs and the output."""
    return -0.5 * (row[3] - theta[0] * row[0] - theta[1] * row[1] - theta[2] * row[2]) ** 2


def likelihood_gradient(theta: Any, row: Any) -> Any:
    """Return the gradient of the log-likelihood of a row."""
    left = row[3] - theta[0] * row[0] - theta[1] * row[1] - theta[2] * row[2]
    return np.array([left * row[0], left * row[1], left * row[2]])


@dataclass(frozen=True)
class Regression:
    """A regression with its exact posterior."""

    model: gs.DataDensity  # the posterior as a target
    # mean, precision: (3,), (3, 3): of the posterior
    mean: Floats
    precision: Floats
    inputs: Floats  # (rows, 3): inputs of the rows
    scatter: Floats  # (3, 3): covariance S of the rows' gradients at the mean

    @classmethod
    def make(cls, rows: int, rng: np.random.Generator) -> Regression:
        """Draw data and solve for the posterior."""
        x = rng.standard_normal((rows, TRUE.size))
        y = x @ TRUE + rng.standard_normal(rows)
        precision = x.T @ x + np.eye(TRUE.size) / PRIOR
        mean = np.linalg.solve(precision, x.T @ y)
        slopes = x * (y - x @ mean)[:, None]
        model = gs.DataDensity(
            log_prior,
            log_likelihood,
            np.column_stack([x, y]),
            prior_grad=prior_gradient,
            likelihood_grad=likelihood_gradient,
            dim=TRUE.size,
        )
        return cls(model, mean, precision, x, np.cov(slopes.T, bias=True))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.inputs)

    @property
    def covariance(self) -> Floats:
        """Covariance of the posterior."""
        return np.asarray(np.linalg.inv(self.precision))

    def added(self, c: Floats) -> Floats:
        """Return T(C), the covariance of x x^T d over rows if d has covariance C."""
        weights = ((self.inputs @ c) * self.inputs).sum(axis=1)
        mean = self.inputs.T @ self.inputs / self.rows
        found: Floats = (self.inputs * weights[:, None]).T @ self.inputs / self.rows - mean @ c @ mean
        return found

    def predict(self, step: float, batch: float, controlled: bool = False) -> Floats:
        """Return the stationary covariance of SGLD; a batch of infinity is ULA."""
        d = TRUE.size
        keep = np.eye(d) - step * self.precision
        noisy = step**2 * self.rows**2 / batch
        columns = []
        for unit in np.eye(d * d).reshape(-1, d, d):
            even = 0.5 * (unit + unit.T)
            moved = keep @ even @ keep + (noisy * self.added(even) if noisy else 0.0)
            columns.append((unit - moved).ravel())
        right = 2.0 * step * np.eye(d) + (0.0 if controlled else noisy) * self.scatter
        found = np.linalg.solve(np.array(columns).T, right.ravel()).reshape(d, d)
        return np.asarray(0.5 * (found + found.T))


class Case(NamedTuple):
    """A run: its kind, the rows of a step, the step times the number of rows, and the number of steps."""

    kind: str
    batch: int
    pace: float
    steps: int


def cases(rows: int, budget: int) -> list[Case]:
    """Return runs that read about equally many rows."""
    batches = [rows // 10_000, rows // 1_000, rows // 100]
    found = [Case("same step", k, SAME, budget // k) for k in batches]
    # g V / 2 = pace rows / (2 batch), because the rows' gradients have variance 1
    found += [Case("small step", k, 2.0 * SHARE * k / rows, budget // k) for k in batches]
    found += [Case("control variates", k, CONTROLLED, min(budget // (2 * k), 200_000)) for k in batches]
    found += [Case("ULA, all rows", rows, FULL, max(budget // rows, 40))]
    return [*found, Case("MALA, all rows", rows, FULL, max(budget // (2 * rows), 40))]


def kernel_of(case: Case, made: Regression) -> gs.kernels.Kernel:
    """Return the kernel of a run."""
    step = case.pace / made.rows
    if case.batch == made.rows:
        return gs.kernels.ULA(step) if case.kind.startswith("ULA") else gs.MALA(step)
    controls = made.mean if case.kind == "control variates" else None
    return gs.kernels.SGLD(step, batch=case.batch, control_variates=controls)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Sample the posterior with every batch and rule for the step; time steps with different numbers of rows."""
    rows, budget = (100_000, 2_000_000) if quick else (1_000_000, 40_000_000)
    chance = np.random.default_rng([rng, 513])
    made = Regression.make(rows, chance)
    listed = cases(rows, budget)
    meter.expect(len(listed) + 2)
    arrays: dict[str, list[float]] = {
        name: [] for name in ("predicted", "measured", "error", "bias", "error of bias", "seconds", "cost")
    }
    for case in listed:
        for name, number in _measure(case, made, rng, chance).items():
            arrays[name].append(number)
        meter.tick()
    sizes = [rows // 100, rows]
    costs = []
    for size in sizes:
        part = made if size == rows else Regression.make(size, chance)
        costs.append(_time_step(part, 20_000 if quick else 100_000, rng))
        meter.tick()
    found: dict[str, Array] = {name: np.array(numbers) for name, numbers in arrays.items()}
    found |= {
        "batch": np.array([case.batch for case in listed]),
        "pace": np.array([case.pace for case in listed]),
        "rows": np.array(sizes),
        "seconds of a step by rows": np.array(costs),
    }
    return Findings(
        tables=[
            _table(listed, found, rows),
            _claims(listed, found, rows),
            Table(
                "Time of a step with a batch of 100, by the number of rows of the data",
                ("rows", "microseconds"),
                [(f"{n:,}", f"{1e6 * min(s):.2f}") for n, s in zip(sizes, costs, strict=True)],
            ),
        ],
        arrays=found,
        notes=[
            "Ratios are variances of the chain divided by those of the posterior, averaged over three coefficients; "
            "predicted ones solve the equation of the chain's covariance. Biases of the mean are the largest "
            "of three, in posterior standard deviations. Chains start from their predicted distribution.",
            f"Same step: g N = {SAME:g}. Small step: g V / 2 = {SHARE:g}. Control variates: at the posterior "
            f"mean, g N = {CONTROLLED:g}. A step with control variates, or of MALA, reads rows twice.",
            "Standard errors are those of an autoregressive chain. Cost is the time for one effective draw "
            "of a mean, on a single thread; for MALA, it ignores rejected moves.",
        ],
        settings={"rows": rows, "budget": budget, "chains": _CHAINS, "runs": [list(case) for case in listed]},
    )


def _measure(case: Case, made: Regression, rng: int, chance: np.random.Generator) -> dict[str, float]:
    """Run a case; return its variance, bias and cost, with standard errors."""
    step, all_rows = case.pace / made.rows, case.batch == made.rows
    exact, mala = made.covariance, case.kind.startswith("MALA")
    law = exact
    if not mala:
        law = made.predict(step, np.inf if all_rows else case.batch, case.kind == "control variates")
    start = chance.multivariate_normal(made.mean, law, size=_CHAINS)
    how = {"warmup": 0, "start": start, "chains": _CHAINS, "record": "draws", "threads": 1, "rng": rng}
    kernel = kernel_of(case, made)
    sample_quietly(made.model, kernel, sweeps=1, **how)  # compiles
    result = sample_quietly(made.model, kernel, sweeps=max(case.steps // _CHAINS, 5), **how)
    d = np.asarray(result.draws, float) - made.mean
    draws = d.shape[0] * d.shape[1]
    ratio = np.square(d).mean(axis=(0, 1)) / exact.diagonal()
    predicted = float((law.diagonal() / exact.diagonal()).mean())
    a = 1.0 - case.pace
    independent = draws * (1.0 - a) / (1.0 + a)
    squares = draws * (1.0 - a**2) / (1.0 + a**2)
    sds = np.sqrt(exact.diagonal())
    bias = np.abs(d.mean(axis=(0, 1)) / sds).max()
    return {
        "predicted": predicted,
        "measured": float(ratio.mean()),
        "error": predicted * float(np.sqrt(2.0 / (squares * TRUE.size))),
        "bias": float(bias),
        "error of bias": float(np.sqrt(predicted / independent)),
        "seconds": result.seconds / draws,
        "cost": result.seconds / independent,
    }


#: Rows from which on data are large.
_MANY = 1_000_000


def _time_step(made: Regression, steps: int, rng: int) -> list[float]:
    """Return the seconds of a step of SGLD with a batch of 100, in three runs."""
    kernel = gs.kernels.SGLD(SAME / made.rows, batch=100)
    taken = []
    for sweeps in (10, steps, steps, steps):  # the first one compiles
        result = sample_quietly(
            made.model, kernel, sweeps=sweeps, warmup=0, chains=1, start=made.mean, threads=1, rng=rng
        )
        taken.append(result.seconds / sweeps)
    return taken[1:]


def _table(listed: list[Case], found: dict[str, Array], rows: int) -> Table:
    lines = Rows()
    for k, case in enumerate(listed):
        lines.add(
            case.kind,
            f"{case.batch:,}",
            f"{case.pace:.2g}",
            f"{found['predicted'][k]:.3f}",
            f"{found['measured'][k]:.3f} ({found['error'][k]:.3f})",
            f"{found['bias'][k]:.2f} ({found['error of bias'][k]:.2f})",
            f"{1e6 * found['seconds'][k]:.3g}",
            f"{1e3 * found['cost'][k]:.3g}",
        )
    head = ("rule", "K", "g N", "variance, predicted", "found", "bias of mean", "us / step", "ms / effective")
    return Table(f"Draws against the exact posterior of {rows:,} rows", head, lines)


def _claims(listed: list[Case], found: dict[str, Array], rows: int) -> Table:
    """Compare the claims of the source with the findings."""
    sgld = np.array([case.kind in _KINDS for case in listed])
    off = np.abs(found["measured"] - found["predicted"]) / found["error"]
    means = found["bias"] / found["error of bias"]
    same = [k for k, case in enumerate(listed) if case.kind == "same step"]
    small = [k for k, case in enumerate(listed) if case.kind == "small step"]
    control = [k for k, case in enumerate(listed) if case.kind == "control variates"]
    plain = min(found["cost"][k] for k in small)
    whole = [found["cost"][k] for k, case in enumerate(listed) if case.kind.endswith("all rows")]
    times = found["seconds of a step by rows"]
    cheap = compare_times(times[-1], times[0])
    gain = compare_times(whole, [found["cost"][k] for k in small])
    return compare_claims(
        Claim(
            "the estimate of the gradient is unbiased",
            f"means {means[sgld].max():.1f} standard errors off at most",
            means[sgld].max() < 5.0,
        ),
        Claim(
            "the noise of gradients adds g^2 V to that of a step (corrected)",
            f"variances {off[sgld].max():.1f} standard errors off the equation at most; "
            f"{found['measured'][same[0]]:.3g} times too large at K = {listed[same[0]].batch}",
            off[sgld].max() < 5.0,
        ),
        Claim(
            "every iteration is cheap: only K terms",
            f"a step with {rows:,} rows takes {cheap.text()} as long as with {found['rows'][0]:,}, for K = 100",
            None if cheap.exceeds(3.0) is None else not cheap.exceeds(3.0),
        ),
        Claim(
            "with many rows ULA and MALA are infeasible, and SGLD is the solution",
            f"for a small bias g must fall with K: an effective draw of ULA or MALA takes {gain.text()} as long as "
            f"one of SGLD, which takes {plain / min(found['cost'][k] for k in control):.3g} times as long as one with "
            "control variates",
            None if rows < _MANY else gain.exceeds(),
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw variances and costs of all rules against the batch."""
    arrays, kinds = findings.arrays, [run[0] for run in findings.settings["runs"]]
    left, right = figure.subplots(1, 2)
    for k, kind in enumerate(_KINDS):
        chosen = np.array([name == kind for name in kinds])
        batch = arrays["batch"][chosen]
        left.plot(batch, arrays["predicted"][chosen], color=COLORS[k], lw=1.2)
        left.errorbar(
            batch,
            arrays["measured"][chosen],
            2.0 * arrays["error"][chosen],
            fmt="o",
            ms=4,
            lw=1.0,
            color=COLORS[k],
            label=kind,
        )
        right.plot(batch, 1e3 * arrays["cost"][chosen], "o-", ms=4, lw=1.2, color=COLORS[k], label=kind)
    for k, name in enumerate(("ULA, all rows", "MALA, all rows")):
        cost = 1e3 * arrays["cost"][kinds.index(name)]
        right.axhline(cost, color=INK, lw=1.0, ls=("--", ":")[k], label=name)
    left.axhline(1.0, color=FAINT, lw=0.8)
    left.loglog()
    right.loglog()
    tidy(left, "variance over that of the posterior: predicted (lines), measured", xlabel="batch K")
    left.legend(fontsize=8, frameon=False)
    tidy(right, "milliseconds for an effective draw", xlabel="batch K")
    right.legend(fontsize=8, frameon=False)


EXPERIMENT = Experiment(f"{LANGEVIN_NOTES} (Examples 5.12 and 5.13)", run, draw, (10.0, 4.2))
