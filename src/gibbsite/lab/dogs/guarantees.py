"""Bounds on the bias of scans for all variables of a 10 x 10 Ising model.

Fields are 0 or 1, couplings are drawn from U(0, 0.25), and the weights d are 1, so the bound is for the total
variation of the joint distribution. The paper has ten draws of the model, one in Figure 1 and nine in Figure 9. A scan
is optimised for each number of steps separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.lab.dogs.dobrushin import LOOKS, guarantee, paper_influence, random_grid
from gibbsite.lab.drawing import INK, Figure, tidy
from gibbsite.lab.experiment import DOGS, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

SIDE = 10
SHOWN = (500, 1000, 2000, 3000)  # numbers of steps in the table


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Bound all scans on every draw of the model."""
    draws, every = (5, 250) if quick else (10, 50)
    lengths = np.arange(every, 3001, every)
    meter.expect(draws)

    def bound(draw: int) -> tuple[float, dict[str, Floats]]:
        """Return total influence and bounds of all scans on a draw of the model."""
        model = random_grid(SIDE, np.random.default_rng([rng, 10, draw]))
        influence = paper_influence(model)
        return influence.norms.spectral, guarantee(model, lengths, influence)[0]

    found = meter.map(bound, range(draws))
    norms = [norm for norm, _ in found]
    bounds = {name: np.array([curves[name] for _, curves in found]) for name in LOOKS}
    return Findings(
        tables=[_table(lengths, bounds), _claims(lengths, bounds)],
        arrays={"steps": lengths, "spectral norm": np.array(norms), **bounds},
        notes=[_useful(bounds), f"Total influence (spectral norm) is {min(norms):.2f} to {max(norms):.2f}."],
        settings={"side": SIDE, "draws": draws, "steps": int(lengths[-1])},
    )


def _span(values: Floats, digits: int = 1) -> str:
    return f"{values.min():.{digits}e} .. {values.max():.{digits}e}"


def _table(lengths: Any, bounds: dict[str, Floats]) -> Table:
    rows = Rows()
    for steps in SHOWN:
        at = int(np.flatnonzero(lengths == steps)[0])
        here = {name: curves[:, at] for name, curves in bounds.items()}
        gains = [here["systematic"] / here["DoGS"], here["DoGS"] / here["iterated DoGS"]]
        spans = [_span(values) for values in here.values()]
        rows.add(steps, *spans, *(f"{gain.min():.2g} .. {gain.max():.2g}" for gain in gains))
    head = ("steps", *bounds, "systematic / DoGS", "DoGS / iterated")
    count = len(bounds["DoGS"])
    return Table(f"Bounds on the total variation of all variables, smallest and largest of {count} draws", head, rows)


def _claims(lengths: Any, bounds: dict[str, Floats]) -> Table:
    """Compare the claims of the source with the findings."""
    uniform, systematic, once, often = (bounds[name] for name in LOOKS)
    gain = np.median(systematic / once, axis=0)
    hundred = lengths[gain >= 100.0]
    useful = (systematic / once)[(systematic >= 1e-3) & (systematic <= 1.0)]
    # the share of the first pass in the gain of all passes, in orders of magnitude, from five sweeps on
    late = lengths >= 500
    share = np.log((systematic / once)[:, late]) / np.log((systematic / often)[:, late])
    sweep = lengths >= SIDE * SIDE
    return compare_claims(
        Claim(
            "systematic is better than uniform for all T",
            f"at {int((systematic < uniform).sum())} of {systematic.size} points",
            (systematic < uniform)[:, sweep].all(),
        ),
        Claim(
            f"DoGS gains two orders of magnitude at T = {lengths[-1]}",
            f"median {gain[lengths == 500][0]:.2g} at T = 500, {gain[lengths == 1000][0]:.2g} at 1000, "
            + (f"100 from T = {hundred[0]} on" if hundred.size else f"{gain.max():.0f} at most"),
            gain[-1] >= 100.0,
        ),
        Claim(
            "and where the systematic bound says something, between 0.001 and 1",
            f"{useful.min():.1f} to {useful.max():.1f} times",
            useful.max() >= 100.0,
        ),
        Claim(
            "iterating improves it further",
            f"by {np.median((once / often)[:, -1]):.2g} at T = {lengths[-1]} (median)",
            (often <= once).all() and (often < once)[:, late].all(),
        ),
        Claim(
            "one pass gains the bulk",
            f"{100 * share.min():.0f} to {100 * share.max():.0f} % of the orders of magnitude",
            share.min() > 0.5,
        ),
    )


def _useful(bounds: dict[str, Floats]) -> str:
    """Return a note on the gains at lengths for which the systematic bound is useful."""
    systematic = bounds["systematic"]
    gain = systematic / bounds["DoGS"]
    useful, large = (systematic >= 1e-3) & (systematic <= 1.0), gain >= 100.0
    text = f"Where the systematic bound lies in [0.001, 1], DoGS gains {gain[useful].min():.1f} to "
    text += f"{gain[useful].max():.1f} times."
    if large.any():
        text += f" It gains 100 times only where the systematic bound is below {systematic[large].max():.0e}."
    return text


def draw(findings: Findings, figure: Figure) -> None:
    """Draw Figure 1, its replicates (Figure 9), and the gains."""
    steps, bounds = findings.arrays["steps"], findings.arrays
    first, all_, gains = figure.subplots(1, 3, width_ratios=(1.2, 1.0, 1.0))
    for name, color in LOOKS.items():
        first.plot(steps, bounds[name][0], color=color, lw=1.8, label=f"{name} ({bounds[name][0, -1]:.0e})")
        for number, curve in enumerate(bounds[name][1:]):
            all_.plot(steps, curve, color=color, lw=0.8, label=None if number else name)
    ratios = (("systematic", "DoGS"), ("DoGS", "iterated DoGS"))
    for worse, better in ratios:
        for number, gain in enumerate(bounds[worse] / bounds[better]):
            label = None if number else f"{worse} / {better}"
            gains.plot(steps, gain, color=LOOKS[better], lw=0.9, label=label)
    gains.axhline(100.0, color=INK, lw=0.8, ls=":")
    gains.text(steps[0], 110.0, "two orders of magnitude", fontsize=7, color=INK)
    for axes in (first, all_, gains):
        axes.set_yscale("log")
        axes.set_xlim(0, steps[-1])
    first.axhline(1.0, color=INK, lw=0.8, ls=":")
    tidy(first, "first draw (Figure 1)", "steps", "bound on the total variation")
    first.legend(fontsize=8, frameon=False, loc="lower left", title="bound at the end in brackets", title_fontsize=7)
    tidy(all_, "the other draws (Figure 9)", "steps", "bound on the total variation")
    all_.legend(fontsize=8, frameon=False, loc="lower left")
    tidy(gains, "gains, all draws", "steps", "ratio of bounds")
    gains.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.98))


EXPERIMENT = Experiment(f"{DOGS}; Figures 1 and 9", run, draw, (13.0, 4.2))
