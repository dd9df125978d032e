"""The stationary variance of unadjusted Langevin against two formulas.

The iteration x' = (1 - g / s^2) x + g mu / s^2 + sqrt(2 g) z is autoregressive with a = 1 - g / s^2. Its
variance is 2 g / (1 - a^2) = 2 s^4 / (2 s^2 - g) for 0 < g < 2 s^2. The notes print 2 s^4 / (s^2 - g), which
tends to 2 s^2 instead of s^2 for small steps. The standard error of a variance v from N draws is

    v sqrt(2 (1 + a^2) / ((1 - a^2) N)),

because the squares of such a chain have the autocorrelations a^(2 k).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.lab.chains import refusal, sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import LANGEVIN_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

MEAN, VARIANCE = 1.0, 2.0
STEPS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
_TOO_LARGE = 4.5  # above 2 s^2
_CHAINS = 4
# measurements of others at some of the steps
KNOWN = {0.1: 2.049, 0.5: 2.292, 1.0: 2.661, 3.0: 7.983}


def corrected(g: Any) -> Any:
    """Return the stationary variance of ULA with step g."""
    return 2.0 * VARIANCE**2 / (2.0 * VARIANCE - g)


def printed(g: Any) -> Any:
    """Return the variance by the printed formula, which is infinite for g = s^2 and negative above."""
    with np.errstate(divide="ignore"):
        return np.divide(2.0 * VARIANCE**2, VARIANCE - g)


def doubt(g: Any, draws: int) -> Any:
    """Return the standard error of the variance of a number of draws of ULA."""
    a = 1.0 - g / VARIANCE
    return corrected(g) * np.sqrt(2.0 * (1.0 + a**2) / ((1.0 - a**2) * draws))


@cache
def normal_target(power: float = 1.0) -> gs.LogDensity:
    """Return the target with its log-density times ``power``: 2 halves the variance, and -1 gives no density."""
    return gs.LogDensity(
        lambda x: -0.5 * power * (x[0] - MEAN) ** 2 / VARIANCE,
        lambda x: -power * (x - MEAN) / VARIANCE,
        dim=1,
        names=["x"],
    )


def measure(
    kernel: gs.kernels.Kernel, draws: int, rng: int, target: gs.LogDensity | None = None
) -> tuple[float, float]:
    """Return mean and variance of the draws of all chains together."""
    result = sample_quietly(
        normal_target() if target is None else target,
        kernel,
        sweeps=draws // _CHAINS,
        warmup=1000,
        chains=_CHAINS,
        start=[MEAN],
        rng=rng,
    )
    found = result.marginals["x"]
    return found["mean"], found["sd"] ** 2


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Measure the variance of ULA, and of MALA, for every step."""
    draws = 400_000 if quick else 4_000_000
    meter.expect(2 * len(STEPS) + 2)
    steps = np.array(STEPS)
    moments: dict[str, list[tuple[float, float]]] = {"ULA": [], "MALA": []}
    for k, g in enumerate(STEPS):
        for name, kernel in (("ULA", gs.kernels.ULA(g)), ("MALA", gs.MALA(g))):
            moments[name].append(measure(kernel, draws, rng + k))
            meter.tick()
    # noise dB instead of sqrt(2) dB: ULA in p^2 with half the step
    halved = measure(gs.kernels.ULA(0.05), draws, rng, normal_target(2.0))[1]
    meter.tick()
    exploded = refusal(lambda: measure(gs.kernels.ULA(_TOO_LARGE), draws, rng))
    backward = refusal(lambda: measure(gs.kernels.ULA(0.1), draws, rng, normal_target(-1.0)))
    meter.tick()
    arrays: dict[str, Array] = {
        "step": steps,
        "variance": np.array(moments["ULA"])[:, 1],
        "error": doubt(steps, draws),
        "corrected": corrected(steps),
        "printed": printed(steps),
        "mean": np.array(moments["ULA"])[:, 0],
        "variance of MALA": np.array(moments["MALA"])[:, 1],
    }
    return Findings(
        tables=[
            _table(arrays, draws),
            _claims(arrays, halved, draws),
            Table(
                "Messages of runs that must fail",
                ("run", "answer"),
                [
                    (f"step {_TOO_LARGE:g}, above 2 s^2", exploded or "nothing"),
                    ("the printed SDE (5.5), drift away from the mode", backward or "nothing"),
                ],
            ),
        ],
        arrays=arrays,
        notes=[
            f"Normal target with mean {MEAN:g} and variance s^2 = {VARIANCE:g}; {draws:,} draws of each "
            "method and step, in four chains.",
            "Standard errors are computed for the autoregressive chain, not estimated.",
        ],
        settings={"mean": MEAN, "variance": VARIANCE, "draws": draws, "refused step": exploded},
    )


def _table(arrays: dict[str, Array], draws: int) -> Table:
    rows = Rows()
    for k, g in enumerate(STEPS):
        off = (arrays["variance"][k] - arrays["corrected"][k]) / arrays["error"][k]
        rows.add(
            g,
            f"{arrays['printed'][k]:.4g}",
            f"{arrays['corrected'][k]:.4f}",
            f"{arrays['variance'][k]:.4f} ({arrays['error'][k]:.4f})",
            f"{off:+.1f}",
            KNOWN.get(g),
            f"{arrays['mean'][k]:.4f}",
            f"{arrays['variance of MALA'][k]:.4f}",
        )
    head = ("step", "printed", "corrected", "ULA", "errors off", "known", "mean of ULA", "MALA")
    return Table(f"Variance of draws for a target of variance {VARIANCE:g}, {draws:,} draws", head, rows)


def _claims(arrays: dict[str, Array], halved: float, draws: int) -> Table:
    """Compare the claims of the source with the findings."""
    off = np.abs(arrays["variance"] - arrays["corrected"]) / arrays["error"]
    wrong = np.abs(arrays["variance"] - arrays["printed"]) / arrays["error"]
    g, s2 = STEPS[0], VARIANCE
    # the mean of an autoregressive chain has the standard error sqrt(v (1 + a) / ((1 - a) N))
    a = 1.0 - arrays["step"] / s2
    errors = np.sqrt(arrays["corrected"] * (1.0 + a) / ((1.0 - a) * draws))
    means = np.abs(arrays["mean"] - MEAN) / errors
    half = s2 / 2.0 / (1.0 - 0.05 / s2)  # ULA with step 0.05 in variance s^2 / 2
    return compare_claims(
        Claim(
            "the variance is 2 s^4 / (s^2 - g) (as printed)",
            f"off by {wrong.min():.0f} standard errors or more at every step",
            wrong.max() < 5.0,
        ),
        Claim(
            "the variance is 2 s^4 / (2 s^2 - g) (corrected)",
            f"off by {off.max():.1f} standard errors at most, for {len(STEPS)} steps",
            off.max() < 5.0,
        ),
        Claim(
            "the bias vanishes for small steps",
            f"{arrays['variance'][0] / s2 - 1.0:+.1%} at g = {g:g} "
            f"(formula {corrected(g) / s2 - 1.0:+.1%}; printed formula {printed(g) / s2 - 1.0:+.0%})",
            off[0] < 5.0 and arrays["variance"][0] - s2 < 0.1 * (arrays["variance"][-1] - s2),
        ),
        Claim(
            "means of ULA and of the target agree",
            f"off by {means.max():.1f} standard errors at most",
            means.max() < 5.0,
        ),
        Claim(
            "steps with 0 < a < 1, that is g < s^2, are needed",
            f"the formula holds up to 2 s^2 = {2 * s2:g}: also for {sum(s >= s2 for s in STEPS)} steps with a <= 0",
            bool((off[arrays["step"] >= s2] > 5.0).any()),
        ),
        Claim(
            "dX = grad log p dt + dB has the law p (5.5, with its sign corrected)",
            f"variance {halved:.4f}, that of p^2: {half:.4f}",
            abs(halved - s2) < abs(halved - half),
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw measured variances with both formulas, and their differences in standard errors."""
    arrays = findings.arrays
    left, right = figure.subplots(1, 2)
    g = np.linspace(0.01, 3.7, 300)
    left.axhline(VARIANCE, color=FAINT, lw=1.0, label="the target")
    left.plot(g, corrected(g), color=COLORS[0], lw=1.5, label="$2 s^4 / (2 s^2 - g)$")
    below = g < VARIANCE - 0.05
    left.plot(g[below], printed(g[below]), color=COLORS[5], lw=1.2, ls="--", label="printed")
    left.plot(arrays["step"], arrays["variance"], "o", color=INK, ms=4, label="ULA, measured")
    left.plot(arrays["step"], arrays["variance of MALA"], "s", color=COLORS[2], ms=4, label="MALA, measured")
    left.set_ylim(0.0, 20.0)
    off: Floats = (arrays["variance"] - arrays["corrected"]) / arrays["error"]
    right.axhspan(-2.0, 2.0, color=FAINT, alpha=0.3, lw=0)
    right.axhline(0.0, color=FAINT, lw=0.8)
    right.plot(arrays["step"], off, "o", color=INK, ms=4)
    right.set_ylim(-5.0, 5.0)
    tidy(right, "measured - corrected formula", xlabel="step g", ylabel="standard errors")
    tidy(left, "stationary variance", xlabel="step g", ylabel="variance")
    left.legend(fontsize=8, frameon=False, loc="upper left")


EXPERIMENT = Experiment(f"{LANGEVIN_NOTES} (Example 5.10)", run, draw, (10.0, 4.0))
