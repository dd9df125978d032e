"""Log-densities: what a step of each kernel costs, and what one of SGLD costs as the data grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.loop import mover
from benchmarks.measure import Contestant, Spread, race
from benchmarks.report import Section, Target

Floats = NDArray[np.float64]

DIM, RHO = 10, 0.9
REST = 1.0 - RHO * RHO
SCALE, STEP = 0.3, 0.05  # of Metropolis and of MALA, for all who take part
BATCH, COLUMNS = 100, 10


def log_chain(x: Floats) -> Any:
    """Return the log-density of a stationary autoregression: variances one, correlations 0.9, 0.81, ..."""
    total = x[0] * x[0]
    for k in range(1, x.size):
        off = x[k] - RHO * x[k - 1]
        total += off * off / REST
    return -0.5 * total


def slope_chain(x: Floats) -> Any:
    """Return its gradient."""
    out = np.zeros(x.size)
    out[0] = -x[0]
    for k in range(1, x.size):
        off = (x[k] - RHO * x[k - 1]) / REST
        out[k] -= off
        out[k - 1] += RHO * off
    return out


def chain_density() -> gs.LogDensity:
    """Return the target of the race: ten dimensions, compiled."""
    return gs.LogDensity(log_chain, slope_chain, dim=DIM)


def regression(rows: int) -> gs.DataDensity:
    """Return the posterior of a linear regression with known noise."""
    rng = np.random.default_rng(1)
    design = rng.standard_normal((rows, COLUMNS))
    answer = design @ np.linspace(-1.0, 1.0, COLUMNS) + rng.standard_normal(rows)
    return gs.DataDensity(
        lambda theta: -0.5 * (theta * theta).sum(),
        _log_row,
        np.column_stack([design, answer]),
        prior_grad=lambda theta: -theta,
        likelihood_grad=_slope_row,
        dim=COLUMNS,
    )


def _log_row(theta: Floats, row: Floats) -> Any:
    off = row[-1]
    for k in range(theta.size):
        off -= row[k] * theta[k]
    return -0.5 * off * off


def _slope_row(theta: Floats, row: Floats) -> Any:
    off = row[-1]
    for k in range(theta.size):
        off -= row[k] * theta[k]
    return off * row[: theta.size]


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    target = chain_density()
    kernels: dict[str, gs.kernels.Kernel] = {
        "Metropolis": gs.Metropolis(scale=SCALE, adapt=False),
        "Metropolis, one by one": gs.Metropolis(scale=0.8, one_by_one=True, adapt=False),
        "MALA": gs.MALA(STEP),
        "ULA": gs.kernels.ULA(STEP),
        "slice": gs.Slice(1.0),
    }
    jobs = {f"10 dimensions: {name}": mover(target, kernel, start=np.zeros(DIM)) for name, kernel in kernels.items()}
    sizes = (10**4, 10**5) if quick else (10**4, 10**5, 10**6)
    mode = np.linspace(-1.0, 1.0, COLUMNS)
    for rows in sizes:
        jobs[f"{rows:,} rows: SGLD"] = mover(regression(rows), gs.kernels.SGLD(0.1 / rows, BATCH), start=mode)
        jobs[f"{rows:,} rows: SGLD, without replacement"] = mover(
            regression(rows), gs.kernels.SGLD(0.1 / rows, BATCH, replace=False), start=mode
        )
    contestants = [Contestant(name, lambda k, move=move: move(100 * k), 100, least=1) for name, move in jobs.items()]  # type: ignore[misc]
    seen = race(contestants, repetitions=3 if quick else 9, seconds=0.05)
    times = {name: Spread.of([1e9 * t for t in seen[name].cpu]) for name in jobs}
    rows_ = [[name, f"{t.median:,.0f} ns", f"{t.low:,.0f} .. {t.high:,.0f}"] for name, t in times.items()]
    first, last = f"{sizes[0]:,} rows: SGLD", f"{sizes[-1]:,} rows: SGLD"
    name = f"a step of SGLD, {sizes[-1]:,} rows against {sizes[0]:,}"
    promise = Target.of(name, seen[first].against(seen[last]), 1.3, least=False)
    data = {name: t.to_dict() for name, t in times.items()}
    return Section("densities", [promise], ["log-densities", "a step", "range"], rows_, data)
