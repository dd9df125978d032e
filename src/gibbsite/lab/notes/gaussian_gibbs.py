"""Gibbs sampling of a pair of normal variables: conditionals, path and autocorrelation.

z1 given z2 is N(0.4 z2, 0.68) and z2 given z1 is N(0.8 z1, 1.36) for the covariance [[1, 0.8], [0.8, 2]]. A
sweep draws one and then the other, so the autocorrelation of z1 at lag 1 is the squared correlation: 0.8^2 / 2 = 0.32
for this covariance, and 0.81 for the other one of the notes, with correlation 0.9. Three samplers are run: the kernel
for normal targets, the same kernel with over-relaxation, and the two functions of the notes as a user's conditionals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.lab.chains import autocorrelations, mean_and_error, sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, INK, Axes, Figure, tidy
from gibbsite.lab.experiment import GIBBS_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.models.random import normal


def step_map(covariance: Floats, i: int, relax: float = 0.0) -> Floats:
    """Return the matrix of a step at site i."""
    precision = np.linalg.inv(covariance)
    found = np.eye(len(covariance))
    found[i] = -(1.0 + relax) * precision[i] / precision[i, i]
    found[i, i] = 0.0 - relax  # not -0
    return found


def sweep_map(covariance: Floats, order: Sequence[int], relax: float = 0.0) -> Floats:
    """Return the matrix of steps at some sites, one after another."""
    found = np.eye(len(covariance))
    for i in order:
        found = step_map(covariance, i, relax) @ found
    return found


def random_map(covariance: Floats, steps: int) -> Floats:
    """Return the mean matrix of a number of steps at random sites."""
    n = len(covariance)
    mean = sum(step_map(covariance, i) for i in range(n)) / n
    return np.linalg.matrix_power(mean, steps)


def autocorrelation(covariance: Floats, sweep: Floats, lags: int) -> Floats:
    """Return the autocorrelations of the first site at lags 1, 2, ...."""
    powers = [np.linalg.matrix_power(sweep, k) for k in range(1, lags + 1)]
    return np.array([(power @ covariance)[0, 0] / covariance[0, 0] for power in powers])


TARGETS = {"page 6": np.array([[1.0, 0.8], [0.8, 2.0]]), "page 2": np.array([[1.0, 0.9], [0.9, 1.0]])}
RELAX = 0.5
LAGS = 20
_CHAINS, _PATH = 16, 40
_SD = math.sqrt(0.68), math.sqrt(1.36)


def draw_first(x: Any, rng: Any) -> float:
    """Draw z1 given z2, as in the notes."""
    return normal(rng, 0.4 * x[1], _SD[0])


def draw_second(x: Any, rng: Any) -> float:
    """Draw z2 given z1, as in the notes."""
    return normal(rng, 0.8 * x[0], _SD[1])


def samplers(name: str) -> dict[str, tuple[gs.Model, gs.kernels.Kernel, float]]:
    """Return models and kernels for one of the targets, with their over-relaxation."""
    target = gs.Gaussian(covariance=TARGETS[name], names=["z1", "z2"])
    found: dict[str, tuple[gs.Model, gs.kernels.Kernel, float]] = {
        "Gibbs": (target, gs.kernels.GaussianGibbs(), 0.0),
        "over-relaxed": (target, gs.kernels.GaussianGibbs(RELAX), RELAX),
    }
    if name == "page 6":
        pair = gs.Conditionals({"z1": draw_first, "z2": draw_second})
        found["conditionals"] = (pair, gs.kernels.ConditionalGibbs(), 0.0)
    return found


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Sample both targets from (0, 0), and compare moments and autocorrelations with exact values."""
    sweeps = 5_000 if quick else 100_000
    arrays: dict[str, Array] = {}
    rows = Rows()
    farthest = 0.0
    runs = {(name, how): what for name in TARGETS for how, what in samplers(name).items()}
    meter.expect(len(runs))
    for (name, how), (model, kernel, relax) in runs.items():
        covariance = TARGETS[name]
        result = sample_quietly(
            model,
            kernel,
            scan=gs.Systematic(),
            sweeps=sweeps,
            warmup=0,
            chains=_CHAINS,
            start=[0.0, 0.0],
            record="draws",
            rng=rng,
        )
        z = np.asarray(result.draws, float)
        exact = autocorrelation(covariance, sweep_map(covariance, [0, 1], relax), LAGS)
        of_chains = autocorrelations(z[:, :, 0], LAGS)
        found, error = mean_and_error(of_chains)
        moments = np.einsum("cti,ctj->cij", z, z) / sweeps
        spread, its_error = mean_and_error(moments)
        off = np.abs(spread - covariance) / its_error
        farthest = max(farthest, float(off.max()), float(np.abs((found - exact) / error)[:3].max()))
        arrays |= {
            f"{name}, {how}: path": z[0, :_PATH],
            f"{name}, {how}: autocorrelation": found,
            f"{name}, {how}: its error": error,
            f"{name}, {how}: exact": exact,
        }
        rows.add(
            name,
            how,
            _show(spread[0, 0], its_error[0, 0]),
            _show(spread[0, 1], its_error[0, 1]),
            _show(spread[1, 1], its_error[1, 1]),
            f"{exact[0]:.4f}",
            _show(found[0], error[0]),
            _show(found[1], error[1]),
        )
        meter.tick()
    arrays["farthest"] = np.array(farthest)
    head = ("covariance", "sampler", "Var z1", "Cov", "Var z2", "lag 1, exact", "lag 1", "lag 2")
    return Findings(
        tables=[
            Table(f"Draws of {_CHAINS} chains of {sweeps:,} sweeps (standard errors)", head, rows),
            _claims(arrays, farthest),
        ],
        arrays=arrays,
        notes=[
            "Standard errors are from the spread of the chains, which start at (0, 0); nothing is discarded.",
            f"Over-relaxed: the mean of a new value lies on the other side of the conditional mean, {RELAX:g} times "
            "as far as the old value. Conditionals, which are functions of a user, make the same draws as the "
            "kernel for normal targets.",
        ],
        settings={"sweeps": sweeps, "chains": _CHAINS, "relax": RELAX},
    )


def _show(value: float, error: float) -> str:
    """Return a value with its standard error as text."""
    digits = max(2, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ({error:.{digits}f})"


def _claims(arrays: dict[str, Array], farthest: float) -> Table:
    """Compare the claims of the source with the findings."""
    target = gs.Gaussian(covariance=TARGETS["page 6"], names=["z1", "z2"])
    listed = []
    known = True
    for given, (slope, variance) in {"z2": (0.4, 0.68), "z1": (0.8, 1.36)}.items():
        law = target.condition({given: 1.0})
        found = float(law.mean[0]), float(law.covariance[0, 0])
        known &= bool(np.allclose(found, (slope, variance), rtol=0.0, atol=1e-12))
        listed.append(f"N({found[0]:.6g} {given}, {found[1]:.6g})")
    rows: list[Claim] = [Claim("z1 | z2 is N(0.4 z2, 0.68), z2 | z1 is N(0.8 z1, 1.36)", ", ".join(listed), known)]
    for name, square in (("page 6", 0.32), ("page 2", 0.81)):
        found, error = (arrays[f"{name}, Gibbs: {what}"][0] for what in ("autocorrelation", "its error"))
        rows.append(
            Claim(
                f"{name}: lag-1 autocorrelation of z1 is the squared correlation, {square:g}",
                f"{found:.4f} ({error:.4f})",
                abs(found - square) < 5.0 * error,
            )
        )
    rows.append(
        Claim(
            "the chain has the target as its law",
            f"moments and autocorrelations at most {farthest:.1f} standard errors off, of 16 chains",
            farthest < 7.0,
        )
    )
    return compare_claims(*rows)


def draw(findings: Findings, figure: Figure) -> None:
    """Draw, for each covariance, the path of the first sweeps and autocorrelations."""
    panels = figure.subplots(2, 2, width_ratios=(1.0, 1.3))
    looks = dict(zip(("Gibbs", "over-relaxed", "conditionals"), (0, 1, 2), strict=True))
    for (name, covariance), (left, right) in zip(TARGETS.items(), panels, strict=True):
        _draw_path(left, covariance, findings.arrays[f"{name}, Gibbs: path"])
        tidy(left, f"{name}: {_PATH} sweeps from (0, 0)", xlabel="$z_1$", ylabel="$z_2$")
        lags = np.arange(1, LAGS + 1)
        for how, k in looks.items():
            prefix = f"{name}, {how}"
            if f"{prefix}: exact" not in findings.arrays:
                continue
            exact, found, error = (
                findings.arrays[f"{prefix}: {what}"] for what in ("exact", "autocorrelation", "its error")
            )
            shift = 0.12 * (k - 1)
            right.plot(lags, exact, color=COLORS[k], lw=1.0)
            right.errorbar(lags + shift, found, 2.0 * error, fmt="o", ms=3, lw=0.8, color=COLORS[k], label=how)
        right.axhline(0.0, color=FAINT, lw=0.8)
        tidy(right, "autocorrelation of $z_1$: exact (lines), measured", xlabel="sweeps apart")
        right.legend(fontsize=8, frameon=False)


def _draw_path(axes: Axes, covariance: Floats, path: Floats) -> None:
    """Draw the staircase of single steps over the ellipses of one and two standard deviations."""
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.linalg.cholesky(covariance) @ np.stack([np.cos(turn), np.sin(turn)])
    for radius in (1.0, 2.0):
        axes.plot(*(radius * circle), color=FAINT, lw=1.0)
    ends = np.concatenate([np.zeros((1, 2)), path])
    first, second = np.repeat(ends[:, 0], 2)[1:], np.repeat(ends[:, 1], 2)[:-1]
    axes.plot(first, second, color=COLORS[0], lw=0.8)
    axes.plot(*ends.T, "o", ms=3, color=INK)
    axes.plot(0.0, 0.0, "o", ms=6, color=COLORS[5])
    axes.set_aspect("equal")


EXPERIMENT = Experiment(f"{GIBBS_NOTES} (pages 2 and 6)", run, draw, (9.0, 7.5))
