"""Counts of herded variables against the bounds of their rules.

Many independent variables with K values and random probabilities are herded separately. The experiment measures the
discrepancy: the largest |N_k - T p_k| over all values k and all T up to the end. For two values it is at most 1 for any
first weight. With weights that start at zero, Tijdeman's rule keeps it within 1 - 1 / (2 K - 2), the best possible
bound; for the rule of the largest weight, no sharp bound is known. For random draws it grows like the square root of T.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.lab.chains import sample_quietly, space_lengths
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import HERDED, TIJDEMAN, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Table, compare_claims

VALUES = (2, 3, 5, 10, 20)
_SHOWN = 5  # number of values in the panel over time
KERNELS = {
    "tijdeman": gs.HerdedGibbs(rule="tijdeman", start="centred"),
    "argmax": gs.HerdedGibbs(rule="argmax", start="centred"),
    "argmax, random start": gs.HerdedGibbs(rule="argmax", start="random"),
    "Gibbs": gs.Gibbs(),
}
_LOOKS = dict(zip(KERNELS, (COLORS[0], COLORS[5], COLORS[1], FAINT), strict=True))


def bound(values: int) -> float:
    """Return Tijdeman's bound."""
    return 1.0 - 1.0 / (2.0 * values - 2.0)


def measure(kernel: gs.kernels.Kernel, p: Floats, lengths: Ints, rng: int) -> Floats:
    """Return the largest discrepancy so far of each variable, after each number of draws.

    ``p`` has the probabilities (variables, values), and ``lengths`` are increasing numbers of draws. The result has the
    shape (lengths, variables).
    """
    variables, values = p.shape
    model = gs.FactorGraph(variables, [((i,), p[i]) for i in range(variables)], states=values)
    result = sample_quietly(model, kernel, sweeps=int(lengths[-1]), warmup=0, chains=1, record="draws", rng=rng)
    counts, found, largest = np.zeros((variables, values)), [], np.zeros(variables)
    for begin, end in pairwise([0, *lengths.tolist()]):
        drawn, times = result.draws[0, begin:end], np.arange(begin + 1, end + 1)[:, None]
        for k in range(values):
            running = counts[:, k] + np.cumsum(drawn == k, axis=0)
            largest = np.maximum(largest, np.abs(running - times * p[:, k]).max(axis=0))
            counts[:, k] = running[-1]
        found.append(largest.copy())
    return np.array(found)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Measure all rules for every number of values."""
    variables, draws = (20, 20_000) if quick else (100, 100_000)
    lengths = space_lengths(draws, 10)
    meter.expect(len(VALUES) * len(KERNELS))
    chance = np.random.default_rng([rng, 42])
    arrays: dict[str, Array] = {
        "values": np.array(VALUES),
        "bound": np.array([bound(k) for k in VALUES]),
        "draws": lengths,
    }
    worst: dict[str, list[float]] = {name: [] for name in KERNELS}
    laws = {values: chance.dirichlet(np.ones(values), size=variables) for values in VALUES}
    cases = [(values, name) for values in VALUES for name in KERNELS]

    def measure_case(case: tuple[int, str]) -> Floats:
        return measure(KERNELS[case[1]], laws[case[0]], lengths, rng)

    for (values, name), found in zip(cases, meter.map(measure_case, cases), strict=True):
        worst[name].append(float(found[-1].max()))
        if values == _SHOWN:
            arrays[f"over time, {name}"] = found.max(axis=1)
    arrays |= {name: np.array(found) for name, found in worst.items()}
    rows = [(values, bound(values), *(worst[name][k] for name in KERNELS)) for k, values in enumerate(VALUES)]
    # weights of two states have 32 bits
    slack = 2.0**-32 * draws
    kept = [found <= bound(k) + slack for found, k in zip(worst["tijdeman"], VALUES, strict=True)]
    two = worst["argmax, random start"][0]
    return Findings(
        tables=[
            Table(
                f"Largest |N - T p| over {variables} variables and {draws:,} draws", ("values", "bound", *KERNELS), rows
            ),
            compare_claims(
                Claim("two values: |N - T p| <= 1 for any start (Chen et al.)", f"{two:.3f}", two <= 1.0 + slack),
                Claim(
                    "1 - 1 / (2 K - 2) for Tijdeman's rule (Tijdeman)",
                    f"kept for {sum(kept)} of {len(kept)} numbers of values",
                    all(kept),
                ),
            ),
        ],
        arrays=arrays,
        notes=[
            "Probabilities are drawn uniformly from all distributions. Weights start at zero unless the name has "
            "'random start'; Tijdeman's bound is for a start at zero.",
            "With two values, the rules are equivalent.",
        ],
        settings={"variables": variables, "draws": draws, "values": list(VALUES)},
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw discrepancies against the number of values, and over time."""
    arrays = findings.arrays
    by_values, over_time = figure.subplots(1, 2)
    at = np.arange(len(VALUES))
    by_values.plot(at, arrays["bound"], "_", ms=22, mew=1.5, color=INK, label="Tijdeman's bound")
    for name in KERNELS:
        if name != "Gibbs":
            by_values.plot(at, arrays[name], "o-", ms=5, lw=0.8, color=_LOOKS[name], label=name)
        over_time.plot(arrays["draws"], arrays[f"over time, {name}"], color=_LOOKS[name], lw=1.5, label=name)
    by_values.set_xticks(at, [str(k) for k in VALUES])
    by_values.set_ylim(0.0, None)
    over_time.axhline(bound(_SHOWN), color=INK, lw=0.8, ls=(0, (4, 3)), label="Tijdeman's bound")
    over_time.loglog()
    tidy(by_values, "largest discrepancy", xlabel="number of values", ylabel="largest $|N_k - T p_k|$")
    by_values.legend(fontsize=8, frameon=False, loc="lower right")
    tidy(over_time, f"largest so far, {_SHOWN} values", xlabel="draws T")
    over_time.legend(fontsize=8, frameon=False, loc="upper left")


EXPERIMENT = Experiment(f"{HERDED}; section 3.1. {TIJDEMAN}", run, draw, (10.0, 4.2))
