"""Error against time for mini-buckets of several sizes: ``python examples/mini_bucket_errors.py errors.png``.

Left, the largest error of any marginal of a spin glass with zeros, against processor time, the pass over the
tables included; right, what is known about log Z meanwhile. Single-site Gibbs sampling for comparison.
"""

from __future__ import annotations

import sys
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import gibbsite as gs

SIDE, LARGEST = 14, 18
SIZES = (4, 6, 8, 10, 12)


def spin_glass() -> gs.FactorGraph:
    """Make a lattice with random couplings, a tenth of which forbid a pair of states."""
    rng = np.random.default_rng(2)
    sites = {f"{r},{c}": 2 for r in range(SIDE) for c in range(SIDE)}
    factors = []
    for r in range(SIDE):
        for c in range(SIDE):
            for there in ((r, c + 1), (r + 1, c)):
                if max(there) < SIDE:
                    coupling = rng.normal(0.0, 1.5)
                    table = np.exp([[coupling, 0.0], [0.0, coupling]])
                    if rng.random() < 0.1:
                        table[tuple(rng.integers(0, 2, 2))] = 0.0
                    factors.append(((f"{r},{c}", f"{there[0]},{there[1]}"), table))
    return gs.FactorGraph(sites, factors)


def draw_weighted(model: gs.FactorGraph, exact: gs.exact.ExactResult, entries: int) -> np.ndarray:
    """Return rows of processor time, largest error, bound of log Z, estimate of it, and its error."""
    rows = []
    for log2 in range(9, LARGEST + 1):
        begun = time.process_time()
        found = gs.sample_weighted(
            model, gs.importance.MiniBucket(entries=entries), draws=2**log2, rng=1, threads=1, progress=False
        )
        taken = time.process_time() - begun
        worst = gs.compare(found, exact).max_abs
        bound = found.sources[-1]["log_bound"]
        rows.append([taken, worst, bound, found.log_z, found.log_z_error])
    return np.array(rows)


def draw_gibbs(model: gs.FactorGraph, exact: gs.exact.ExactResult) -> np.ndarray:
    """Return rows of processor time and largest error."""
    rows = []
    for log2 in range(5, 15):
        begun = time.process_time()
        found = gs.sample(
            model,
            sweeps=2**log2,
            rng=1,
            threads=1,
            chains=4,
            progress=False,
            criteria=gs.Criteria(dispersed_starts=False),
        )
        rows.append([time.process_time() - begun, gs.compare(found, exact).max_abs])
    return np.array(rows)


def show(errors: Axes, bounds: Axes) -> None:
    """Measure and draw."""
    model = spin_glass()
    exact = gs.solve_exact(model)
    draw_weighted(model, exact, 16)  # compiles
    draw_gibbs(model, exact)
    for log2 in SIZES:
        rows = draw_weighted(model, exact, 2**log2)
        (line,) = errors.loglog(rows[:, 0], rows[:, 1], "o-", label=f"mini-buckets, 2^{log2} entries")
        bounds.errorbar(log2, rows[-1, 3] - exact.log_z, 4 * rows[-1, 4], fmt="o", color=line.get_color(), capsize=4)
        bounds.plot(log2, rows[-1, 2] - exact.log_z, "v", color=line.get_color())
    rows = draw_gibbs(model, exact)
    errors.loglog(rows[:, 0], rows[:, 1], "s--", color="tab:gray", label="single-site Gibbs")
    errors.axhline(0.01, color="black", linewidth=0.5)
    errors.set_xlabel("processor time in seconds")
    errors.set_ylabel("largest error of a marginal")
    errors.set_title(f"Spin glass with zeros, {SIDE} x {SIDE}")
    errors.legend(fontsize=8)
    bounds.set_yscale("symlog", linthresh=0.1)
    bounds.axhline(0.0, color="black", linewidth=0.5)
    bounds.set_xlabel("log2 of the entries of a table")
    bounds.set_ylabel("log Z minus the truth")
    bounds.set_title("Upper bound (triangles), estimate with 4 standard errors")


def main(path: str = "mini_buckets.png") -> None:
    """Draw both pictures."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        show(left, right)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
