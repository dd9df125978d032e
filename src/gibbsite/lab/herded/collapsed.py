"""Variable selection and mixtures: random and herded collapsed Gibbs sampling against exact sums.

The paper names variable selection and Dirichlet processes as the next uses of herding with Rao-Blackwellisation. Here
are a regression with correlated columns, and points in a mixture whose number of components is given or free, small
enough that all subsets and partitions can be added up. Errors are the largest of all inclusion probabilities, or of all
probabilities that two points are in one component.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gibbsite.applications.collapsed import cluster_points, select_variables
from gibbsite.errors import ConvergenceWarning
from gibbsite.lab.chains import fit_slope
from gibbsite.lab.drawing import COLORS, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

CASES = ("selection, 10 columns", "mixture of 2, 8 points", "Dirichlet process, 8 points")
_METHODS = {"random": "gibbs", "herded": "herded"}


def make_data(rng: int) -> tuple[Any, Any, Any]:
    """Return the columns and the number of a regression, and the points of a mixture."""
    stream = np.random.default_rng(rng)
    x = stream.normal(size=(60, 10)) @ (np.eye(10) + 0.4 * stream.normal(size=(10, 10)))
    y = x @ [1.0, 0.0, -0.4, 0.0, 0.3, 0.0, 0.2, 0.0, 0.0, 0.1] + 2.0 * stream.normal(size=60)
    points = np.concatenate([stream.normal(-0.7, 0.8, (4, 1)), stream.normal(0.7, 0.8, (4, 1))])
    return x, y, points


def solve(case: str, data: tuple[Any, Any, Any], **how: Any) -> Any:
    """Return the probabilities of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of sweeps is given
        if case == CASES[0]:
            return select_variables(data[0], data[1], **how).inclusion
        return cluster_points(data[2], components=2 if case == CASES[1] else None, **how).together


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Sample every case with chains of growing length."""
    data = make_data(rng)
    lengths = np.array([100, 300, 1000, 3000, 10_000] if quick else [100, 300, 1000, 3000, 10_000, 30_000, 100_000])
    seeds = 5 if quick else 20
    meter.expect(len(CASES) * len(_METHODS))
    arrays: dict[str, Any] = {"sweeps": lengths}
    rows = Rows()
    for case in CASES:
        exact = solve(case, data, method="exact")
        for name, method in _METHODS.items():
            errors = np.array(
                [
                    [
                        np.abs(solve(case, data, method=method, sweeps=n, chains=1, rng=rng + s) - exact).max()
                        for s in range(seeds)
                    ]
                    for n in lengths.tolist()
                ]
            )
            arrays[f"{case}: {name}"] = errors
            middle = np.median(errors, axis=1)
            rows.add(
                case, name, *(float(middle[k]) for k in (0, 2, len(lengths) - 1)), f"{fit_slope(lengths, middle):.2f}"
            )
            meter.tick()
    columns = ("case", "choices", *(f"{lengths[k]} sweeps" for k in (0, 2, len(lengths) - 1)), "slope")
    gains = [
        float(np.median(arrays[f"{case}: random"][-1]) / np.median(arrays[f"{case}: herded"][-1])) for case in CASES
    ]
    return Findings(
        tables=[
            Table(f"Largest error of a probability, median of {seeds} seeds", columns, rows),
            compare_claims(
                Claim(
                    "herding with Rao-Blackwellisation suits variable selection",
                    f"errors {gains[0]:.0f} times smaller than by chance after {lengths[-1]:,} sweeps",
                    None if quick else gains[0] > 2.0,
                ),
                Claim(
                    "and Dirichlet processes",
                    f"errors {gains[2]:.1f} times smaller (mixture of two components: {gains[1]:.0f} times)",
                    None if quick else gains[2] > 2.0,
                ),
            ),
        ],
        arrays=arrays,
        notes=[
            "All three have weights for each state of all other choices, which for mixtures is a partition. With "
            "weights for each point alone, errors of the Dirichlet process stay at 0.2."
        ],
        settings={"seeds": seeds, "sweeps": lengths.tolist()},
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the errors of all seeds against sweeps, a panel for each case."""
    sweeps = findings.arrays["sweeps"]
    for panel, case in zip(figure.subplots(1, 3), CASES, strict=True):
        for name, color in (("random", COLORS[5]), ("herded", COLORS[0])):
            errors = findings.arrays[f"{case}: {name}"]
            panel.loglog(sweeps, np.median(errors, axis=1), "o-", color=color, label=name)
            panel.fill_between(sweeps, errors.min(axis=1), errors.max(axis=1), color=color, alpha=0.2, lw=0)
        tidy(panel, case, "sweeps", "largest error of a probability")
        panel.legend(frameon=False, fontsize=8)


EXPERIMENT = Experiment(f"{HERDED}, section 5 (beyond it)", run, draw, (11.0, 3.8))
