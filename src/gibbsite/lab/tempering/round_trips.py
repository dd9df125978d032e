"""Round trips, the barrier and log Z of tempered runs through the transition of the Ising model.

The model is a periodic square lattice, with couplings from 0 to far beyond the critical one; plain chains stay in one
of two modes. With rejection rates r_k of swaps between neighbouring rungs, states that are independent from swap to
swap make 1 / (2 + 2 sum r_k / (1 - r_k)) round trips per sweep, and the sum of the r_k hardly depends on the
number of rungs. Log Z is known exactly at every temperature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Floats
from gibbsite.kernels.tempered.ladder import rungs_for, spread_rungs
from gibbsite.lab.chains import sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, Figure, tidy
from gibbsite.lab.experiment import TEMPERING, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

COUPLING = 0.6
CRITICAL = 0.5 * np.log(1.0 + np.sqrt(2.0))
# Numbers of rungs of further ladders, besides the one that is found.
RUNGS = (4, 6, 8, 12, 16, 24)


def expected_rate(rejected: Floats) -> float:
    """Return the round trips per sweep if states are independent from swap to swap."""
    return float(1.0 / (2.0 + 2.0 * (rejected / (1.0 - rejected)).sum()))


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Find a ladder, then spread other numbers of rungs over the same barrier."""
    size, sweeps = (6, 4_000) if quick else (10, 40_000)
    model = gs.ising_grid((size, size), coupling=COUPLING, periodic=True)
    meter.expect(2 + len(RUNGS))
    found = sample_quietly(model, gs.Tempered(), sweeps=sweeps, rng=rng)
    tempering = found.tempering
    meter.tick()
    plain = sample_quietly(
        model, gs.Gibbs(), sweeps=sweeps, rng=rng, start="random", criteria=gs.Criteria(dispersed_starts=False)
    )
    meter.tick()
    arrays: dict[str, Any] = {"betas": tempering.betas, "rejected": 1.0 - tempering.swap_rates}
    rates = Rows()
    for number in RUNGS:
        betas = spread_rungs(tempering.betas, arrays["rejected"], number)
        one = sample_quietly(model, gs.Tempered(ladder=betas), sweeps=sweeps // 4, rng=rng).tempering
        measured = one.round_trips.sum() / one.sweeps
        rates.add(number, one.barrier, measured, expected_rate(1.0 - one.swap_rates))
        meter.tick()
    arrays["rates"] = np.array(rates)
    curve = Rows()
    for beta in np.linspace(0.05, 1.0, 20):
        known = gs.solve_exact(gs.ising_grid((size, size), coupling=COUPLING * beta, periodic=True)).log_z
        at = found.at(float(beta))
        curve.add(COUPLING * beta, (at.log_z - known) / at.log_z_error, at.log_z_error, at.energy)
    arrays["log_z"] = np.array(curve)
    marginals = np.array([[result.marginals[site][1] for site in model.sites] for result in (found, plain)])
    arrays["up"] = marginals.mean(axis=1)
    errors = [float(np.abs(row - 0.5).max()) for row in marginals]
    trips = tempering.round_trips.sum() / tempering.sweeps
    exact = gs.solve_exact(model).log_z
    table = Table(
        f"Numbers of rungs on the {size} x {size} lattice, coupling {COUPLING}",
        ("rungs", "barrier", "round trips per 1000 sweeps", "expected", "per 1000 sweeps of a replica"),
        [(int(k), f"{b:.2f}", f"{1e3 * m:.1f}", f"{1e3 * e:.1f}", f"{1e3 * m / k:.2f}") for k, b, m, e in rates],
    )
    best = max(rates, key=lambda row: row[2] / row[0])[0]
    barriers = np.array([row[1] for row in rates[2:]])
    claims = compare_claims(
        Claim(
            "the sum of rejection rates hardly depends on the number of rungs",
            f"{barriers.min():.2f} to {barriers.max():.2f} with 8 rungs or more",
            np.ptp(barriers) < 0.2 * barriers.mean(),
        ),
        Claim(
            "equal rates are found by dividing the barrier evenly",
            f"{tempering.swap_rates.min():.2f} to {tempering.swap_rates.max():.2f} on the ladder found",
            np.ptp(tempering.swap_rates) < 0.25,
        ),
        Claim(
            "round trips per sweep are 1 / (2 + 2 sum r / (1 - r)), if states are independent between swaps",
            f"{trips:.4f}, expected {expected_rate(arrays['rejected']):.4f}: one sweep is not enough",
            abs(trips / expected_rate(arrays["rejected"]) - 1.0) < 0.1,
        ),
        Claim(
            "most round trips for the work with about 2 barrier + 1 rungs",
            f"with {best}; the barrier suggests {rungs_for(tempering.barrier)}",
            0.5 < best / rungs_for(tempering.barrier) < 2.0,
        ),
        Claim(
            "log Z of the model",
            f"{found.log_z:.3f} ({found.log_z_error:.3f}), exactly {exact:.3f}",
            abs(tempering.log_z - exact) < 4.0 * tempering.log_z_error,
        ),
        Claim(
            "both modes are visited: every site is up half of the time",
            f"off by {errors[0]:.3f}; a plain run by {errors[1]:.3f}",
            errors[0] < 0.1,
        ),
    )
    return Findings(
        [claims, table],
        arrays,
        notes=["The lattice is small enough for exact answers; its two modes are far apart for plain chains."],
        settings={"size": size, "sweeps": sweeps, "coupling": COUPLING, "chains": found.chains},
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the barrier along the ladder, round trips by number of rungs, and errors of log Z."""
    first, second, third = figure.subplots(1, 3)
    betas, rejected = findings.arrays["betas"], findings.arrays["rejected"]
    couplings = COUPLING * betas
    first.plot(couplings, np.concatenate([[0.0], np.cumsum(rejected)]), "o-", ms=4, color=COLORS[0])
    first.axvline(CRITICAL, color=FAINT, lw=1.0)
    tidy(first, "barrier up to a coupling", xlabel="coupling", ylabel="sum of rejection rates")
    rungs, _, measured, expected = findings.arrays["rates"].T
    second.plot(rungs, 1e3 * measured, "o-", ms=4, color=COLORS[0], label="found")
    second.plot(rungs, 1e3 * expected, "--", color=COLORS[1], label="1 / (2 + 2 sum r / (1 - r))")
    second.plot(rungs, 1e4 * measured / rungs, "s-", ms=4, color=COLORS[2], label="found, per 10 replicas")
    tidy(second, "round trips", xlabel="rungs", ylabel="per 1000 sweeps")
    second.legend(fontsize=7, frameon=False)
    coupling, pull, _, _ = findings.arrays["log_z"].T
    third.axhspan(-2.0, 2.0, color=FAINT, alpha=0.3, lw=0)
    third.axhline(0.0, color=FAINT, lw=1.0)
    third.plot(coupling, pull, "o-", ms=4, color=COLORS[0])
    third.set_ylim(-4.5, 4.5)
    tidy(third, "error of log Z", xlabel="coupling", ylabel="in standard errors")


EXPERIMENT = Experiment(TEMPERING, run, draw, (12.0, 3.6))
