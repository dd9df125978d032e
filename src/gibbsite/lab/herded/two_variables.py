"""Gibbs, MCQMC and herded Gibbs on two variables: 1 / T against 1 / sqrt(T).

P(0, 0) = 1/4 - e, P(0, 1) = P(1, 0) = e, P(1, 1) = 3/4 - e. Chains start at (0, 0). Gibbs and MCQMC are run many times;
herded Gibbs is shown once, and run from ten different first weights to estimate the constant c of an error c / T.
Errors of herded Gibbs oscillate, so the largest error at a length or any larger one is taken, from runs twice as long.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Bools, Floats, Ints
from gibbsite.lab.chains import envelope, fit_slope, follow, space_lengths
from gibbsite.lab.drawing import COLORS, INK, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Table, compare_claims

EPSILONS = (0.1, 0.01, 0.001, 0.0001)
MARGINAL = 0.75
STARTS = 10
_QUARTILES = (0.25, 0.5, 0.75)
_LOOKS = {"Gibbs": COLORS[0], "MCQMC": COLORS[2], "herded": COLORS[5]}


def make_model(epsilon: float) -> gs.FactorGraph:
    """Return the model of Table 1."""
    table = [[0.25 - epsilon, epsilon], [epsilon, 0.75 - epsilon]]
    return gs.FactorGraph(2, [((0, 1), table)], states=2)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Run all samplers for every epsilon."""
    m, runs = (14, 20) if quick else (18, 100)
    lengths = space_lengths(2**m, 10, per_decade=50)
    # runs twice as long, because the largest error from 2^m sweeps on may exceed the error at 2^m
    longer = np.append(lengths, space_lengths(2 ** (m + 1), 2**m, per_decade=400)[1:])
    random = {"Gibbs": gs.Gibbs(), "MCQMC": gs.kernels.QuasiGibbs(m=m, table="chen", visits=2)}
    meter.expect(len(EPSILONS) * (STARTS + len(random) * runs))
    arrays: dict[str, Array] = {"sweeps": lengths, "epsilon": np.array(EPSILONS)}
    rows: list[tuple[Any, ...]] = []
    for epsilon in EPSILONS:
        model, label = make_model(epsilon), f"{epsilon:g}"
        exact = np.array([0.25 - epsilon, epsilon, epsilon, 0.75 - epsilon])
        both = gs.recorders.Joint([(0, 1)])
        herded = follow(model, gs.HerdedGibbs(), longer, both, rng=rng, chains=STARTS, tick=meter.tick)
        joint = np.abs(herded - exact).sum(axis=2)
        arrays[f"marginal herded {label}"] = _marginal(herded)[0, : lengths.size]
        tops = np.array([envelope(found)[: lengths.size] for found in joint])
        arrays[f"joint herded {label}"] = tops[0]
        late = _is_late(lengths)
        arrays[f"constants herded {label}"] = np.exp(np.log(tops * lengths)[:, late].mean(axis=1))
        for name, kernel in random.items():
            many = follow(model, kernel, lengths, both, rng=rng, chains=runs, tick=meter.tick)
            errors = np.abs(many - exact).sum(axis=2)
            arrays[f"marginal {name} {label}"] = np.quantile(_marginal(many), _QUARTILES, axis=0)
            arrays[f"joint {name} {label}"] = np.quantile(errors, _QUARTILES, axis=0)
        rows.append(_row(arrays, label, lengths))
    return Findings(
        tables=[
            Table(f"L1 error of the joint after 2^{m} sweeps: median (25 %, 75 %) of {runs} runs", _HEAD, rows),
            compare_claims(*_claims(arrays, lengths, quick)),
        ],
        arrays=arrays,
        notes=_NOTES,
        settings={"sweeps": 2**m, "runs": runs, "epsilon": list(EPSILONS)},
    )


_HEAD = ("epsilon", "herded", "c", "herded slope", "Gibbs", "Gibbs slope", "MCQMC", "Gibbs / herded", "Gibbs / MCQMC")


def _marginal(joint: Floats) -> Floats:
    """Return P(X_1 = 1), given joint probabilities."""
    return joint[..., 2] + joint[..., 3]


def _row(arrays: dict[str, Array], label: str, lengths: Ints) -> tuple[Any, ...]:
    herded, gibbs = arrays[f"joint herded {label}"], arrays[f"joint Gibbs {label}"]
    quasi, constants = arrays[f"joint MCQMC {label}"], arrays[f"constants herded {label}"]
    return (
        label,
        f"{herded[-1]:.1e}",
        f"{np.median(constants):.3g} ({constants.min():.3g}, {constants.max():.3g})",
        f"{_late_slope(lengths, herded):.2f}",
        _band(gibbs[:, -1]),
        f"{_late_slope(lengths, gibbs[1]):.2f}",
        _band(quasi[:, -1]),
        float(gibbs[1, -1] / herded[-1]),
        float(gibbs[1, -1] / quasi[1, -1]),
    )


def _late_slope(lengths: Ints, errors: Floats) -> float:
    """Return the slope over the last two decades."""
    late = _is_late(lengths)
    return fit_slope(lengths[late], errors[late])


def _is_late(lengths: Ints) -> Bools:
    """Return which lengths are in the last two decades."""
    return np.asarray(lengths >= lengths[-1] / 100)


def _band(quartiles: Floats) -> str:
    low, middle, high = quartiles.tolist()
    return f"{middle:.1e} ({low:.1e}, {high:.1e})"


def _claims(arrays: dict[str, Array], lengths: Ints, quick: bool) -> list[Claim]:
    """Compare the claims of the source with the findings; short runs do not refute claims about long ones."""
    labels = [f"{epsilon:g}" for epsilon in EPSILONS]
    herded = [arrays[f"joint herded {label}"] for label in labels]
    gibbs = [arrays[f"joint Gibbs {label}"] for label in labels]
    slopes = [_late_slope(lengths, h) for h in herded]
    better = [bool(h[-1] < g[0, -1]) for h, g in zip(herded, gibbs, strict=True)]
    easy = [bool(a[-1] < b[-1]) for a, b in pairwise(herded)]
    listed = ", ".join(f"{slope:.2f}" for slope in slopes)
    gains = [float(g[1, -1] / arrays[f"joint MCQMC {label}"][1, -1]) for g, label in zip(gibbs, labels, strict=True)]
    better_quasi = f"errors {min(gains):.1f} to {max(gains):.1f} times smaller"
    return [
        Claim(
            "herded Gibbs converges like 1 / T",
            f"slopes {listed}",
            all(s < -0.9 for s in slopes) or (None if quick else False),
        ),
        Claim("herded Gibbs clearly beats Gibbs", f"for {sum(better)} of 4 epsilons", all(better)),
        Claim("smaller epsilons need more sweeps", f"for {sum(easy)} of 3 steps", all(easy)),
        Claim("MCQMC is no better than Gibbs", better_quasi, all(gain < 1.3 for gain in gains)),
    ]


_NOTES = (
    "The table of the model is missing in the available copy of the paper; it follows from the text except for "
    "the marginal, 3/4.",
    "Slopes, and the constant c of an error c / T, are fitted to the last two decades of lengths; for "
    "herded Gibbs, to the largest error at each length or any larger one. c is the median (least, most) of "
    f"{STARTS} random first weights. With the smallest epsilon, the fit begins before the chain has moved "
    "often.",
    "MCQMC is driven by the generators of Chen et al. (2012) as in the paper, with a random digital "
    "shift of each coordinate. It is more accurate only at the full period; before, it is as accurate as random "
    "sampling.",
)


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figure 5: the rows show marginals, joint errors and their inverses, and the columns are epsilons."""
    arrays = findings.arrays
    sweeps = arrays["sweeps"]
    axes = figure.subplots(3, len(EPSILONS), sharex="row")
    for column, epsilon in enumerate(EPSILONS):
        label = f"{epsilon:g}"
        marginal, joint, inverse = axes[:, column]
        for name, color in _LOOKS.items():
            value, error = arrays[f"marginal {name} {label}"], arrays[f"joint {name} {label}"]
            if value.ndim == 2:  # runs: quartiles
                marginal.fill_between(sweeps, value[0], value[2], color=color, alpha=0.2, lw=0)
                joint.fill_between(sweeps, error[0], error[2], color=color, alpha=0.2, lw=0)
                inverse.fill_between(sweeps, 1 / error[2], 1 / error[0], color=color, alpha=0.2, lw=0)
                value, error = value[1], error[1]
            marginal.plot(sweeps, value, color=color, lw=1.3, label=name)
            joint.plot(sweeps, error, color=color, lw=1.3)
            inverse.plot(sweeps, 1 / error, color=color, lw=1.3)
        marginal.axhline(MARGINAL, color=INK, lw=0.7, ls=(0, (4, 3)))
        marginal.set_xscale("log")
        joint.loglog()
        inverse.ticklabel_format(style="sci", scilimits=(0, 3), useMathText=True)
        inverse.xaxis.offsetText.set_fontsize(7)
        inverse.yaxis.offsetText.set_fontsize(7)
        first = column == 0
        tidy(marginal, f"ε = {label}", ylabel="average of $X_1$" if first else "")
        tidy(joint, ylabel="$L_1$ error of the joint" if first else "")
        tidy(inverse, xlabel="sweeps", ylabel="1 / error" if first else "")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=9, frameon=False
    )


EXPERIMENT = Experiment(f"{HERDED}; Figure 5", run, draw, (12.0, 7.5))
