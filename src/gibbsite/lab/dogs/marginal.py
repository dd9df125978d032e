"""Scans for the corner of a 40 x 40 Ising model: bounds, bias, and the sites that they visit.

One grid has open borders and theta = 1 / 3.915, so close to atanh(1/4) that the bounds on influence add up to 1; the
other is a torus with theta = 0.25. There are no fields, so E[X_1] = 0. Chains start at 1 everywhere. A scan is
optimised for each number of steps separately; maps and histograms show the longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.lab.dogs import dobrushin
from gibbsite.lab.drawing import COLORS, INK, Axes, Figure, tidy
from gibbsite.lab.experiment import DOGS, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

SIDE = 40
GRIDS = {"open": (1 / 3.915, False), "torus": (0.25, True)}  # coupling, periodic
STAGES = (0.0, 0.5, 0.75, 0.875, 0.9375, 1.0)  # bounds of the parts of a scan that have a map each


def measure_distance(periodic: bool) -> Ints:
    """Return the Manhattan distance of each site to the corner."""
    along = np.arange(SIDE)
    if periodic:
        along = np.minimum(along, SIDE - along)
    return np.add.outer(along, along).ravel()


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Bound, sample and map both grids."""
    sweep = SIDE * SIDE
    chains = 400 if quick else 10_000
    most = 2 * sweep if quick else 10 * sweep
    lengths = np.unique(
        np.concatenate([[50, 100, 200, 400, 800], np.arange(sweep, most + 1, sweep if quick else sweep // 2)])
    )
    looked = np.array([t for t in lengths if t < sweep or t % sweep == 0])
    meter.expect(len(GRIDS) * (2 + looked.size))
    tables: list[Table] = []
    arrays: dict[str, Array] = {"steps": lengths, "steps of the bias": looked}
    notes: list[str] = []
    for name, (coupling, periodic) in GRIDS.items():
        model = gs.ising_grid((SIDE, SIDE), coupling=coupling, periodic=periodic)
        influence = dobrushin.paper_influence(model)
        curves, scans = dobrushin.guarantee(model, lengths, influence, 0)
        meter.tick()
        bias = {
            "systematic": dobrushin.measure_bias(model, dobrushin.paper_order(sweep), looked, chains=chains, rng=rng)
        }
        meter.tick()
        ends = []
        for scan in scans:
            steps = len(scan.order)
            if steps in looked:
                ends += dobrushin.measure_bias(model, scan, np.array([steps]), chains=chains, rng=rng).tolist()
                meter.tick()
        bias["DoGS"] = np.array(ends)
        order = np.asarray(scans[-1].order)
        arrays |= {f"{name}: bound of {scan}": curve for scan, curve in curves.items()}
        arrays |= {f"{name}: bias of {scan}": curve for scan, curve in bias.items()}
        arrays[f"{name}: scan"] = order
        arrays |= _visits(name, order, measure_distance(periodic))
        here = np.isin(lengths, looked)
        tables += [
            _table(name, looked, {scan: curve[here] for scan, curve in curves.items()}, bias, chains),
            _claims(name, looked, {s: c[here] for s, c in curves.items()}, bias, arrays, chains),
        ]
        exact = gs.influence.bound_influence(model)
        better = gs.dogs(model, target=0, steps=len(order), initial=dobrushin.paper_order(sweep), influence=exact)
        notes.append(
            f"{name}: the bounds of theorem 11, as in the paper, have row sums up to {influence.norms.row_sum:.5f}, "
            f"and the influence itself up to {exact.norms.row_sum:.3f}. With the latter, the bound of DoGS at "
            f"{len(order)} steps is {better.variation:.2g} instead of {curves['DoGS'][-1]:.2g}."
        )
    notes += dobrushin.NOTES
    settings = {"side": SIDE, "steps": int(most), "chains": chains}
    return Findings(tables, arrays, notes, settings)


def _visits(name: str, order: Array, distance: Ints) -> dict[str, Array]:
    """Count the visits of a scan by distance, and by site in each stage."""
    cuts = (np.array(STAGES) * order.size).round().astype(int)
    stages = [np.bincount(order[a:b], minlength=SIDE**2) for a, b in pairwise(cuts)]
    return {
        f"{name}: visits by distance": np.bincount(distance[order]),
        f"{name}: sites by distance": np.bincount(distance),
        f"{name}: distances": distance[order],
        f"{name}: stages": np.array(stages).reshape(-1, SIDE, SIDE),
    }


def _table(name: str, looked: Ints, curves: dict[str, Floats], bias: dict[str, Floats], chains: int) -> Table:
    rows = Rows()
    for k, steps in enumerate(looked.tolist()):
        bounds = curves["systematic"][k], curves["DoGS"][k]
        biases = bias["systematic"][k], bias["DoGS"][k]
        errors = [f"{b:.4f} ({np.sqrt(b * (1 - b) / chains):.4f})" for b in biases]
        rows.add(
            steps, *(f"{c[k]:.3g}" for c in curves.values()), *errors, *dobrushin.compare_gains(bounds, biases, chains)
        )
    head = ("steps", *(f"bound: {c}" for c in curves), "bias: systematic", "bias: DoGS", "gain of bounds", "of biases")
    return Table(f"The corner, {name}: bounds, E[X_1] (standard error) of {chains} chains, and gains", head, rows)


def _claims(
    name: str,
    looked: Ints,
    curves: dict[str, Floats],
    bias: dict[str, Floats],
    arrays: Mapping[str, Array],
    chains: int,
) -> Table:
    """Compare the claims of the source with the findings."""
    uniform, systematic, once, often = (curves[scan] for scan in dobrushin.LOOKS)
    late = looked >= SIDE * SIDE
    share = (np.log(systematic / once) / np.log(systematic / often))[late]
    known = bias["DoGS"] > 5 / chains  # at least five events
    larger = (bias["systematic"] / systematic)[known] > (bias["DoGS"] / once)[known]
    distances = arrays[f"{name}: distances"]
    quarter = distances.size // 4
    near = [float(part.mean()) for part in (distances[:quarter], distances[-quarter:], distances[-16:])]
    sites = np.unique(arrays[f"{name}: scan"]).size
    where = np.searchsorted(looked, SIDE * SIDE)
    return compare_claims(
        Claim(
            "systematic has a better bound than uniform (whole sweeps)",
            f"{systematic[-1]:.3g} against {uniform[-1]:.3g} at {looked[-1]} steps",
            (systematic < uniform)[late].all(),
        ),
        Claim(
            "one pass yields the bulk, iterating little more",
            f"{100 * share.min():.0f} to {100 * share.max():.0f} % of the orders of magnitude",
            share.min() > 0.8,
        ),
        Claim(
            "DoGS reduces the bias much more quickly",
            f"one sweep: {bias['systematic'][where]:.3f} against {bias['DoGS'][where]:.4f}",
            (bias["DoGS"] <= bias["systematic"]).all() and 5 * bias["DoGS"][where] < bias["systematic"][where],
        ),
        Claim(
            "true gains are larger than those of the bounds",
            f"at {int(larger.sum())} of {larger.size} lengths where they are known",
            larger.all(),
        ),
        Claim(
            "visits concentrate around the target",
            f"{sites} of {SIDE**2} sites, half of the visits within distance {np.median(distances):.0f}",
            sites < SIDE**2 / 2,
        ),
        Claim(
            "the scan zeroes in on the target",
            f"mean distance {near[0]:.1f} in the first quarter, {near[1]:.1f} in the last, "
            f"{near[2]:.1f} in the last 16 steps",
            near[2] < near[1] < near[0],
        ),
        subject=name,
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw bounds, biases, and visits by distance and over time, with maps below them, for both grids."""
    parts: Any = figure.subfigures(2 * len(GRIDS), 1, height_ratios=(1.25, 1.0) * len(GRIDS))
    for k, name in enumerate(GRIDS):
        _draw_curves(name, findings, parts[2 * k].subplots(1, 4))
        _draw_maps(name, findings, parts[2 * k + 1].subplots(1, len(STAGES) - 1))


def _draw_curves(name: str, findings: Findings, panels: Any) -> None:
    arrays = findings.arrays
    bound, bias, near, time = panels
    for scan, color in dobrushin.LOOKS.items():
        curve = arrays[f"{name}: bound of {scan}"]
        bound.plot(arrays["steps"], curve, color=color, lw=1.6, label=f"{scan} ({curve[-1]:.2g})")
    bound.set_yscale("log")
    tidy(bound, f"{name}: bounds", "steps", "bound on the total variation of $X_1$")
    bound.legend(fontsize=7, frameon=False, title="bound at the end in brackets", title_fontsize=7)
    biases = {scan: arrays[f"{name}: bias of {scan}"] for scan in ("systematic", "DoGS")}
    dobrushin.draw_bias(bias, arrays["steps of the bias"], biases, findings.settings["chains"])
    tidy(bias, f"{name}: bias from 1 everywhere", "steps", "$E[X_1]$, two standard errors")
    count = arrays[f"{name}: visits by distance"]
    near.bar(np.arange(count.size), count, 0.9, color=COLORS[4], label="all sites together")
    each = count / arrays[f"{name}: sites by distance"][: count.size]
    near.plot(np.arange(count.size), each, color=INK, lw=1.2, label="each site")
    tidy(near, f"{name}: visits of DoGS by distance", "Manhattan distance to the target", "visits")
    near.legend(fontsize=7, frameon=False)
    distances = arrays[f"{name}: distances"]
    time.plot(np.arange(1, distances.size + 1), distances, ".", color=COLORS[5], ms=1.5, mew=0, alpha=0.7)
    time.set_ylim(0, None)
    tidy(time, f"{name}: where DoGS goes, over time", "step", "distance to the target")


def _draw_maps(name: str, findings: Findings, panels: Array) -> None:
    maps = findings.arrays[f"{name}: stages"]
    shift = SIDE // 2 if GRIDS[name][1] else 0  # a torus is shown with its target in the middle
    steps = findings.arrays[f"{name}: scan"].size
    for k, axes in enumerate(panels):
        begin, end = (round(STAGES[k + j] * steps) for j in (0, 1))
        share = np.roll(maps[k], (shift, shift), (0, 1)) / (end - begin)
        _show_map(axes, share, f"{name}: steps {begin + 1} to {end}", shift)


def _show_map(axes: Axes, share: Floats, title: str, shift: int) -> None:
    seen = np.where(share > 0, share, np.nan)
    image = axes.imshow(seen, cmap="viridis_r", vmin=0.0, extent=(-0.5, SIDE - 0.5, SIDE - 0.5, -0.5))
    axes.plot(shift, shift, "+", color=COLORS[5], ms=8, mew=1.2)
    axes.set(xticks=[], yticks=[])
    tidy(axes, title)
    axes.spines[:].set_visible(True)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.ax.tick_params(labelsize=6)
    bar.set_label("share of the steps", fontsize=7, color=INK)


EXPERIMENT = Experiment(f"{DOGS}; Figures 4, 5 and 12 to 15", run, draw, (14.0, 12.5))
