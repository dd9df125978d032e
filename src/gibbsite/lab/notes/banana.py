"""The banana density: Metropolis, MALA and ULA compared with a grid.

Exact methods must agree with the grid within their standard errors; the bias of ULA grows with its step. The
gradient in the notes is misprinted and is refused before a run; ULA in NumPy shows its effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.lab.chains import refusal, sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import LANGEVIN_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.results.measure.diagnostics import ess, mcse

# functions whose means are compared
LOOKED_AT = ("x", "x^2", "y", "y^2", "y > 1")


def log_density(z: Any) -> Any:
    """Return the logarithm of the density, up to a constant."""
    return -(z[0] ** 2) / 10.0 - z[1] ** 4 / 10.0 - 2.0 * (z[1] - z[0] ** 2) ** 2


def gradient(z: Any) -> Any:
    """Return the gradient of the log-density."""
    bend = z[1] - z[0] ** 2
    return np.array([-z[0] / 5.0 + 8.0 * z[0] * bend, -0.4 * z[1] ** 3 - 4.0 * bend])


def printed_gradient(z: Any) -> Any:
    """Return the gradient as printed in the notes, which is not the gradient of any function."""
    bend = z[1] - z[0] ** 2
    return np.array([-2.0 * z[0] / 5.0 + 4.0 * z[0] * bend, -0.4 * z[1] ** 3 - 4.0 * bend])


@cache
def target() -> gs.LogDensity:
    """Return the banana with its gradient."""
    return gs.LogDensity(log_density, gradient, dim=2, names=["x", "y"])


def evaluate(x: Floats, y: Floats) -> Floats:
    """Return the functions that are compared, in a new last axis."""
    return np.stack([x, x**2, y, y**2, (y > 1.0).astype(float)], axis=-1)


def grid(half: float = 4.0, cells: int = 1600) -> tuple[Floats, Floats]:
    """Return the midpoints of a square grid, and the probabilities of its cells (x, y).

    The density decays so fast that the sum over midpoints is accurate to rounding.
    """
    middle = np.asarray((np.arange(cells) + 0.5) * (2.0 * half / cells) - half, np.float64)
    p: Floats = np.exp(log_density(np.stack(np.meshgrid(middle, middle, indexing="ij"))))
    return middle, p / p.sum()


@cache
def truth() -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of all functions, computed on the grid."""
    middle, p = grid()
    values = evaluate(*np.meshgrid(middle, middle, indexing="ij"))
    means = np.einsum("ij,ijk->k", p, values)
    squares = np.einsum("ij,ijk->k", p, values**2)
    sds = np.sqrt(squares - means**2)
    return {name: (float(m), float(s)) for name, m, s in zip(LOOKED_AT, means, sds, strict=True)}


METHODS: dict[str, gs.kernels.Kernel] = {
    "Metropolis, sd 0.5": gs.Metropolis(scale=0.5, adapt=False),
    "Metropolis, learned": gs.Metropolis(),
    "MALA": gs.MALA(),
    "slice": gs.Slice(),
    "ULA, 0.003": gs.kernels.ULA(0.003),
    "ULA, 0.01": gs.kernels.ULA(0.01),
    "ULA, 0.03": gs.kernels.ULA(0.03),
}
_TOO_LARGE = 0.3
_STEP = 0.01  # of ULA in NumPy
_CHAINS, _SHOWN = 8, 1500


def is_exact(name: str) -> bool:
    """Return whether a method leaves the target invariant."""
    return METHODS[name].exact


def walk(slope: Callable[[Any], Any], walkers: int, steps: int, rng: np.random.Generator) -> Floats:
    """Run many walkers by ULA with a given gradient; return their means over the second half of the steps."""
    z = rng.normal(scale=0.5, size=(2, walkers))
    total = np.zeros((walkers, len(LOOKED_AT)))
    for t in range(steps):
        z = z + _STEP * slope(z) + np.sqrt(2.0 * _STEP) * rng.standard_normal(z.shape)
        if 2 * t >= steps:
            total += evaluate(z[0], z[1])
    return total / (steps - (steps + 1) // 2)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Sample the banana with every method, and try runs that must be refused."""
    sweeps, walkers, steps = (20_000, 1_000, 2_000) if quick else (200_000, 4_000, 10_000)
    meter.expect(len(METHODS) + 2)
    means, sds = (np.array([truth()[name][k] for name in LOOKED_AT]) for k in range(2))
    arrays: dict[str, Array] = {"truth": means, "sd": sds}
    rows = Rows([("grid", *(f"{m + 0.0:.4f}" for m in means.round(12)), None, None, None)])
    for name, kernel in METHODS.items():
        result = sample_quietly(
            target(), kernel, sweeps=sweeps, warmup=max(2_000, sweeps // 20), chains=_CHAINS, record="draws", rng=rng
        )
        z = np.asarray(result.draws, float)
        values = evaluate(z[..., 0], z[..., 1])
        found, error, size = values.mean(axis=(0, 1)), mcse(values), ess(values)
        off = (found - means) / error
        arrays |= {
            f"{name}: means": found,
            f"{name}: errors": error,
            f"{name}: effective": size / (_CHAINS * sweeps),
            f"{name}: draws": z[0, :: max(1, sweeps // _SHOWN)],
        }
        rows.add(
            name,
            *(f"{m:.4f} ({e:.4f})" for m, e in zip(found, error, strict=True)),
            f"{np.abs(off).max():.1f}",
            f"{size.min() / (_CHAINS * sweeps):.4f}",
            f"{result.report['acceptance']:.2f}" if "acceptance" in result.report else None,
        )
        meter.tick()
    chance = np.random.default_rng([rng, 58])
    for name, slope in (("corrected", gradient), ("printed", printed_gradient)):
        of_walkers = walk(slope, walkers, steps, chance)
        arrays[f"{name} gradient: means"] = of_walkers.mean(axis=0)
        arrays[f"{name} gradient: errors"] = of_walkers.std(axis=0, ddof=1) / np.sqrt(walkers)
    meter.tick()
    refused = refusal(
        lambda: sample_quietly(
            gs.LogDensity(log_density, printed_gradient, dim=2, names=["x", "y"]), gs.MALA(), rng=rng
        )
    )
    exploded = refusal(lambda: sample_quietly(target(), gs.kernels.ULA(_TOO_LARGE), sweeps=sweeps, rng=rng))
    meter.tick()
    head = ("method", *(f"E[{name}]" for name in LOOKED_AT), "errors off", "effective", "accepted")
    return Findings(
        tables=[
            Table(
                f"Means (standard errors) from {_CHAINS} chains of {sweeps:,} draws, largest deviation in "
                "standard errors, smallest effective share of draws, acceptance",
                head,
                rows,
            ),
            _claims(arrays, refused),
            Table(
                "Messages of runs that must fail",
                ("run", "answer"),
                [
                    ("MALA with the printed gradient", refused or "nothing"),
                    (f"ULA with step {_TOO_LARGE:g}", exploded or "nothing"),
                ],
            ),
        ],
        arrays=arrays,
        notes=[
            "ULA has no accept step: its deviation from the grid is a bias that longer runs do not remove.",
            f"The misprinted gradient was tried with ULA in NumPy, with step {_STEP:g}, {walkers:,} walkers and "
            f"{steps:,} steps, of which the second half is averaged.",
        ],
        settings={"sweeps": sweeps, "chains": _CHAINS, "refused": refused, "exploded": exploded},
    )


def _claims(arrays: dict[str, Array], refused: str | None) -> Table:
    """Compare the claims of the source with the findings."""

    def off(name: str) -> float:
        gap = arrays[f"{name}: means"] - arrays["truth"]
        return float(np.abs(gap / arrays[f"{name}: errors"]).max())

    exact = {name: off(name) for name in METHODS if is_exact(name)}
    steps = [name for name in METHODS if not is_exact(name)]
    k = LOOKED_AT.index("y^2")
    gaps = [arrays["truth"][k] - arrays[f"{name}: means"][k] for name in steps]
    errors = [arrays[f"{name}: errors"][k] for name in steps]
    biases = [f"{g:.3f} ({e:.3f}) for {n[5:]}" for g, e, n in zip(gaps, errors, steps, strict=True)]
    k = LOOKED_AT.index("x^2")
    right, wrong = (arrays[f"{name} gradient: means"][k] for name in ("corrected", "printed"))
    error = arrays["printed gradient: errors"][k]
    return compare_claims(
        Claim(
            "Metropolis has the banana as its law",
            f"{exact['Metropolis, learned']:.1f} standard errors off at most",
            exact["Metropolis, learned"] < 5.0,
        ),
        Claim(
            "the Metropolis step corrects the bias of Langevin (MALA)",
            f"{exact['MALA']:.1f} standard errors off at most",
            exact["MALA"] < 5.0,
        ),
        Claim(
            "the law of ULA comes close to p for small steps",
            f"E[y^2] too small by {', '.join(biases)}",
            gaps[0] < gaps[-1] if gaps[-1] > 5.0 * errors[-1] else None,
        ),
        Claim(
            "the gradient has the first entry -2x/5 + 4x(y - x^2)",
            "refused before the run, see below" if refused else "not refused",
            refused is None,
        ),
        Claim(
            "ULA with that gradient samples the banana",
            f"E[x^2] = {wrong:.3f} ({error:.3f}); with the corrected gradient {right:.3f}, "
            f"on the grid {arrays['truth'][k]:.3f}",
            abs(wrong - arrays["truth"][k]) < 3.0 * error,
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw samples over contours of the density, and the errors of all methods."""
    middle, p = grid(cells=300)
    shown = ("Metropolis, learned", "MALA", "ULA, 0.03")
    *pictures, errors = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.4))
    levels = p.max() * np.exp(-np.array([4.5, 2.0, 0.5]))
    for name, axes in zip(shown, pictures, strict=True):
        color = COLORS[0 if is_exact(name) else 5]
        axes.plot(*findings.arrays[f"{name}: draws"].T, ".", ms=2, color=color)
        axes.contour(middle, middle, p.T, levels=levels, colors="black", linewidths=0.7)
        axes.set(xlim=(-2.6, 2.6), ylim=(-2.2, 3.2))
        tidy(axes, name, xlabel="x", ylabel="y")
    at = np.arange(len(LOOKED_AT))
    for k, name in enumerate(METHODS):
        gap = (findings.arrays[f"{name}: means"] - findings.arrays["truth"]) / findings.arrays["sd"]
        error = 2.0 * findings.arrays[f"{name}: errors"] / findings.arrays["sd"]
        color = INK if k == len(METHODS) - 1 else COLORS[k]
        errors.errorbar(at + 0.1 * (k - 3), gap, error, fmt="o", ms=3, lw=1.0, color=color, label=name)
    errors.axhline(0.0, color=FAINT, lw=0.8)
    errors.set_xticks(at, LOOKED_AT)
    tidy(errors, "mean - grid, in standard deviations (two standard errors)")
    low, high = errors.get_ylim()
    errors.set_ylim(bottom=low - 0.4 * (high - low))  # room for the legend
    errors.legend(fontsize=7, frameon=False, loc="lower center", ncols=3)


EXPERIMENT = Experiment(f"{LANGEVIN_NOTES} (Examples 5.8 and 5.11, Figure 5.4)", run, draw, (15.0, 3.8))
