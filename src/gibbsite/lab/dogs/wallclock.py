"""The mean of one of a million variables: running times with and without an optimised scan.

Couplings are drawn from U(0, 0.25), and the target is the corner X_1. The experiment bounds the bias of two systematic
sweeps, searches for the shortest scan with the same bound, and runs each of the two repeatedly from the same start, 1
everywhere; the estimate is the mean of X_1 at the ends of runs. The paper has fields of 0 or 1 in its text
and E[X_1] = 0 "by symmetry" in its figures, which is true only without fields; both cases are run here.

The lengths of such scans are measured for many draws of the parameters, on grids of 60 x 60 sites: a larger grid would
have the same influence on its corner. The paper states one more length, for the graph of its image segmentation
(31 x 20 patches, section 5.5).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints, Ints8
from gibbsite.lab.dogs.dobrushin import LOOKS, draw_parameters, paper_influence, paper_order, random_grid, run_short
from gibbsite.lab.drawing import COLORS, FAINT, INK, Axes, Figure, tidy
from gibbsite.lab.experiment import DOGS, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.timing import compare_times

KINDS = {"fields 0 or 1": True, "no fields": False}
SMALL = 60  # side of the grids on which lengths are counted
PATCHES, CENTRE, AGREEMENT = (20, 31), (slice(6, 14), slice(10, 22)), 0.48
_PAPER_STEP = 12.65e-6  # seconds of a Gibbs step, footnote 1


def shorten(
    model: gs.FactorGraph, scan: gs.scans.Scan, target: Any, *, sweeps: int = 2, search: str = "doubling"
) -> gs.influence.DogsScan:
    """Return the shortest scan whose bound is at most that of some sweeps of a given scan."""
    influence = paper_influence(model)
    goal = gs.certify(model, scan=scan, sweeps=sweeps, target=target, influence=influence).variation
    return gs.dogs(model, target=target, accuracy=goal, initial=scan, search=search, influence=influence)


def bracket_corner(couplings: Floats, field: Floats, side: int = 12) -> tuple[float, float]:
    """Return bounds of E[X_1], below and above, for a grid of any size.

    All sites from ``side`` on are fixed at -1, or at 1. Because couplings are not negative, E[X_1] given the sites
    around the square is an increasing function of each of them (Fortuin, Kasteleyn and Ginibre), so the truth is
    between both values.
    """
    found = []
    for held in (-1.0, 1.0):
        here = np.array(field[:side, :side], float)
        here[-1] += held * couplings[0, side - 1, :side]
        here[:, -1] += held * couplings[1, :side, side - 1]
        square = gs.ising_grid((side, side), coupling=couplings[:, :side, :side], field=here)
        found.append(float(2.0 * gs.solve_exact(square).marginals["0"][1] - 1.0))
    return found[0], found[1]


@dataclass(frozen=True)
class Trial:
    """The trial of one model: the chosen scan, running times, and the values of X_1 at the ends of runs."""

    side: int
    kind: str
    truth: tuple[float, float]
    scan: gs.influence.DogsScan
    setup: float
    each: Mapping[str, float]
    spins: Mapping[str, Ints8]

    @property
    def name(self) -> str:
        """The name of the model."""
        return f"{self.side} x {self.side}, {self.kind}"

    def seconds(self, scan: str, runs: Any) -> Any:
        """Return the time of a number of runs; for DoGS, it includes the choice of the scan."""
        return runs * self.each[scan] + (self.setup if scan == "DoGS" else 0.0)

    def speedup(self, runs: Any) -> Any:
        """Return the ratio of the times of a number of runs with the systematic scan and with DoGS."""
        return self.seconds("systematic", runs) / self.seconds("DoGS", runs)


def try_grid(side: int, kind: str, runs: Mapping[str, int], rng: int, number: int) -> Trial:
    """Choose a scan for a grid, and time runs of it and of two systematic sweeps."""
    seeds = np.random.SeedSequence([rng, side, number, KINDS[kind]])
    couplings, field = draw_parameters(side, np.random.default_rng(seeds), fields=KINDS[kind])
    model, order = gs.ising_grid((side, side), coupling=couplings, field=field), paper_order(side * side)
    begun = time.perf_counter()
    scan = shorten(model, order, 0)
    setup = time.perf_counter() - begun
    start, corner = np.ones(side * side, np.int8), np.array([0])
    each, spins, seed = {}, {}, int(seeds.generate_state(1)[0])
    for name, chosen, steps in (("systematic", order, 2 * side * side), ("DoGS", scan, len(scan.order))):
        begun = time.perf_counter()
        x = run_short(model, chosen, np.array([steps]), corner, chains=runs[name], start=start, rng=seed)
        each[name] = (time.perf_counter() - begun) / runs[name]
        spins[name] = (2 * x[0, :, 0] - 1).astype(np.int8)
    return Trial(side, kind, bracket_corner(couplings, field), scan, setup, each, spins)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Count lengths, time trials, and shorten the scan of the segmentation graph."""
    draws = 20 if quick else 200
    sides = (100, 60) if quick else (1000, 1000, 300)
    runs = {"systematic": 100 if quick else 300, "DoGS": 10_000 if quick else 200_000}
    meter.expect(len(KINDS) * (1 + len(sides)) + 1)
    arrays: dict[str, Array] = {}
    for kind, fields in KINDS.items():
        arrays |= _count_lengths(kind, fields, draws, rng)
        meter.tick()
    try_grid(16, "no fields", {"systematic": 16, "DoGS": 16}, rng, 0)  # compile before times are measured
    trials = []
    for number, side in enumerate(sides):
        for kind in KINDS:
            trials.append(try_grid(side, kind, runs, rng, number))
            meter.tick()
    segmentation = _segment()
    meter.tick()
    counts = np.unique(np.logspace(0, 6, 61).astype(np.int64))
    arrays |= {"runs": counts, "segmentation: visits": segmentation["visits"]}
    for number, trial in enumerate(trials, 1):
        arrays[f"trial {number}: speedup"] = trial.speedup(counts)
        arrays[f"trial {number}: truth"] = np.array(trial.truth)
        for name, spins in trial.spins.items():
            at = np.unique(np.linspace(min(20, spins.size), spins.size, 200).astype(np.int64))
            arrays[f"trial {number}: seconds, {name}"] = trial.seconds(name, at)
            arrays[f"trial {number}: estimate, {name}"] = np.cumsum(spins, dtype=np.int64)[at - 1] / at
    return Findings(
        tables=[
            _lengths(arrays, draws),
            _times(trials),
            _estimates(trials),
            _segmentation(segmentation),
            _claims(arrays, trials, segmentation),
        ],
        arrays=arrays,
        notes=[
            "Seconds depend on the machine and its load, everything else on the seed alone. Runs use two threads.",
            "The paper's order begins along the first row, away from the corner; when started from the order of the "
            "sites themselves, DoGS finds a scan of 4 steps. Bisection finds shorter scans than doubling.",
            "DoGS has a bias that more runs do not reduce: its bound is as good as that of two sweeps, but its bias "
            "may be larger. The error of E[X_1] may be up to twice the bound.",
        ],
        settings={"draws": draws, "sides": list(sides), "runs": runs, "trials": [t.name for t in trials]},
    )


def _count_lengths(kind: str, fields: bool, draws: int, rng: int) -> dict[str, Array]:
    """Shorten two sweeps on many small grids."""
    found: dict[str, list[float]] = {"doubled": [], "bisected": [], "own order": [], "bound": [], "goal": []}
    order, own = paper_order(SMALL**2), gs.Systematic()
    for number in range(draws):
        model = random_grid(SMALL, np.random.default_rng([rng, SMALL, number]), fields=fields)
        influence = paper_influence(model)
        goal = gs.certify(model, scan=order, sweeps=2, target=0, influence=influence).variation
        common: dict[str, Any] = {"target": 0, "accuracy": goal, "initial": order, "influence": influence}
        doubled = gs.dogs(model, search="doubling", **common)
        found["doubled"].append(len(doubled.order))
        found["bisected"].append(len(gs.dogs(model, **common).order))
        found["own order"].append(len(shorten(model, own, 0).order))
        found["bound"].append(doubled.variation)
        found["goal"].append(goal)
    return {f"{kind}: {name}": np.array(values) for name, values in found.items()}


def _segment() -> dict[str, Any]:
    """Shorten a sweep over the patches of an image, with the patches in its centre as targets."""
    model = gs.potts_grid(PATCHES, states=9, coupling=AGREEMENT)
    centre = np.arange(model.n_sites).reshape(PATCHES)[CENTRE].ravel().tolist()
    systematic = gs.Systematic()
    shorten(model, systematic, centre, sweeps=1)  # compile before times are measured
    begun = time.perf_counter()
    doubled = shorten(model, systematic, centre, sweeps=1)
    seconds = time.perf_counter() - begun
    bisected = shorten(model, systematic, centre, sweeps=1, search="bisection")
    influence = paper_influence(model)
    goal = gs.certify(model, scan=systematic, sweeps=1, target=centre, influence=influence).variation
    visits = np.bincount(bisected.order, minlength=model.n_sites).reshape(PATCHES)
    return {
        "goal": goal,
        "targets": len(centre),
        "doubled": len(doubled.order),
        "bisected": len(bisected.order),
        "seconds": seconds,
        "sweep": model.n_sites,
        "visits": visits,
    }


def _lengths(arrays: Mapping[str, Array], draws: int) -> Table:
    rows = Rows()
    for kind in KINDS:
        doubled, bisected = arrays[f"{kind}: doubled"], arrays[f"{kind}: bisected"]
        shares = [f"{100 * np.mean(doubled == length):.1f} %" for length in (8, 16, 32)]
        own = np.unique(arrays[f"{kind}: own order"]).astype(int).tolist()
        rows.add(
            kind,
            *shares,
            f"{np.median(bisected):.0f} ({bisected.min():.0f} .. {bisected.max():.0f})",
            ", ".join(map(str, own)),
            float(np.median(arrays[f"{kind}: goal"])),
            float(np.median(arrays[f"{kind}: bound"])),
        )
    head = ("model", "8", "16", "32", "bisected", "from site order", "median bound, 2 sweeps", "DoGS")
    return Table(f"Steps for the corner as good as two sweeps, {draws} draws of {SMALL} x {SMALL}", head, rows)


def _times(trials: list[Trial]) -> Table:
    rows: list[tuple[Any, ...]] = [
        (
            trial.name,
            len(trial.scan.order),
            f"{trial.setup:.3f} s",
            f"{1e3 * trial.each['systematic']:.1f} ms",
            f"{1e9 * trial.each['systematic'] / (2 * trial.side**2):.0f} ns",
            f"{1e6 * trial.each['DoGS']:.2f} us",
            f"{trial.speedup(1):.2g}",
            f"{trial.speedup(1000):.2g}",
            f"{trial.each['systematic'] / trial.each['DoGS']:.2g}",
        )
        for trial in trials
    ]
    head = ("model", "steps", "setup", "two sweeps", "a step", "DoGS run", "speedup, 1 run", "1000 runs", "limit")
    return Table("Seconds of choosing a scan and of single runs", head, rows)


def _estimates(trials: list[Trial]) -> Table:
    rows = Rows()
    for trial in trials:
        cells = []
        for spins in trial.spins.values():
            mean = float(spins.mean())
            cells.append(f"{mean:.4f} ({np.sqrt((1 - mean * mean) / spins.size):.4f})")
        low, high = trial.truth
        rows.add(
            trial.name, f"{(low + high) / 2:.5f} ({(high - low) / 2:.0e})", *cells, f"{2 * trial.scan.variation:.4f}"
        )
    counts = [spins.size for spins in trials[0].spins.values()]
    head = ("model", "E[X_1]", f"systematic, {counts[0]} runs", f"DoGS, {counts[1]} runs", "bias of DoGS at most")
    return Table("Estimates of E[X_1], standard errors in brackets", head, rows)


def _segmentation(found: Mapping[str, Any]) -> Table:
    rows: list[tuple[Any, ...]] = [
        ("bound of a sweep of 620 steps", None, f"{found['goal']:.3f} of {found['targets']}"),
        ("steps of DoGS as good, doubled", None, found["doubled"]),
        ("steps of DoGS as good, bisected", 110, found["bisected"]),
        ("milliseconds to choose the scan", 11.5, round(1e3 * found["seconds"], 1)),
    ]
    return Table("Segmentation: 31 x 20 patches, Potts 0.48, the central 12 x 8", ("what", "paper", "ours"), rows)


def _claims(arrays: Mapping[str, Array], trials: list[Trial], segmentation: Mapping[str, Any]) -> Table:
    """Compare the claims of the source with the findings."""
    sixteen = [float(np.mean(arrays[f"{kind}: doubled"] == 16)) for kind in KINDS]
    largest = max(trial.side for trial in trials)
    big = [trial for trial in trials if trial.side == largest]
    setups, early = [t.setup for t in big], [float(t.speedup(1)) for t in big]
    late = [t.each["systematic"] / t.each["DoGS"] for t in big]
    pays = [t.setup / (t.each["systematic"] - t.each["DoGS"]) for t in big]
    step, million = min(t.each["systematic"] for t in big) / (2 * largest**2), largest >= 1000
    first = compare_times([t.each["systematic"] for t in big], [t.setup + t.each["DoGS"] for t in big])
    within = []
    for trial in trials:
        spins = trial.spins["DoGS"]
        error = 5 / np.sqrt(spins.size)
        within.append(abs(spins.mean() - np.mean(trial.truth)) <= 2 * trial.scan.variation + error)
    return compare_claims(
        Claim(
            "the scan has 16 steps",
            f"{100 * min(sixteen):.0f} to {100 * max(sixteen):.0f} % of draws, lengths doubled",
            min(sixteen) > 0.8,
        ),
        Claim(
            "setup takes 15 s for a million variables",
            f"{min(setups):.2f} to {max(setups):.2f} s for {largest**2:.0e}",
            max(setups) < 15 if million else None,
        ),
        Claim(
            "dramatic end-to-end speedups",
            f"{min(late):.1g} to {max(late):.1g} times for many runs; pays after {max(pays):.1f}",
            min(late) > 1000 if million else None,
        ),
        Claim(
            f"from the first run on, with {1e6 * _PAPER_STEP:.2f} us a step and 15 s of setup",
            f"{min(early):.2f} to {max(early):.2f} times, with {1e9 * step:.0f} ns a step",
            first.exceeds() if million else None,
        ),
        Claim("estimates have a bias, within its bound", f"in {sum(within)} of {len(within)} trials", all(within)),
        Claim("segmentation: 110 steps", f"{segmentation['bisected']} by bisection", segmentation["bisected"] == 110),
        Claim(
            "segmentation: they are found by doubling",
            f"doubling finds {segmentation['doubled']}",
            segmentation["doubled"] == 110,
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw estimates over time (Figures 2, 10, 11), speedups, lengths, and the segmentation scan."""
    arrays, names = findings.arrays, findings.settings["trials"]
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.0, 1.0))
    panels = parts[0].subplots(1, len(names) // len(KINDS), sharey=True, squeeze=False)[0]
    for number, name in enumerate(names, 1):
        axes, dashed = panels[(number - 1) // len(KINDS)], not KINDS[name.partition(", ")[2]]
        truth = arrays[f"trial {number}: truth"].mean()
        for scan in ("systematic", "DoGS"):
            x = arrays[f"trial {number}: seconds, {scan}"]
            y = arrays[f"trial {number}: estimate, {scan}"] - truth
            label = f"{scan}, {name.partition(', ')[2]}"
            axes.plot(x, y, color=LOOKS[scan], lw=1.3, ls="--" if dashed else "-", label=label)
            if scan == "DoGS":  # its runs end long before the others; extend its last estimate
                end = arrays[f"trial {number}: seconds, systematic"][-1]
                axes.plot([x[-1], max(end, x[-1])], [y[-1], y[-1]], color=LOOKS[scan], lw=1.3, ls=":")
        title = f"{name.partition(', ')[0]}: estimate - truth, from 20 runs on"
        tidy(axes, title, "seconds, setup included", "error of $E[X_1]$")
    for axes in panels:
        axes.axhline(0.0, color=INK, lw=0.6)
        axes.set_ylim(-0.3, 0.3)
        axes.set_xlim(0.0, None)
        axes.legend(fontsize=7, frameon=False, loc="upper right")
    speed, bars, map_ = parts[1].subplots(1, 3, width_ratios=(1.2, 1.0, 1.1))
    sides = list(dict.fromkeys(name.partition(", ")[0] for name in names))
    for number, name in enumerate(names, 1):
        side, _, kind = name.partition(", ")
        first = names.index(name) == number - 1
        look = {"color": COLORS[(0, 2, 5)[sides.index(side)]], "ls": "-" if KINDS[kind] else "--", "lw": 1.3}
        speed.plot(arrays["runs"], arrays[f"trial {number}: speedup"], label=name if first else None, **look)
    speed.axhline(1.0, color=INK, lw=0.6)
    speed.loglog()
    tidy(speed, "DoGS against systematic, end to end", "runs", "speedup")
    speed.legend(fontsize=7, frameon=False, loc="upper left")
    _draw_lengths(bars, arrays)
    _draw_patches(map_, arrays["segmentation: visits"])


def _draw_lengths(axes: Axes, arrays: Mapping[str, Array]) -> None:
    lengths = (4, 8, 16, 32)
    for k, kind in enumerate(KINDS):
        shares = [100 * np.mean(arrays[f"{kind}: doubled"] == length) for length in lengths]
        axes.bar(np.arange(4) + 0.4 * k - 0.2, shares, 0.38, color=(COLORS[0], COLORS[4])[k], label=kind)
    own = [100 * np.mean(arrays[f"{next(iter(KINDS))}: own order"] == length) for length in lengths]
    seen = np.flatnonzero(own)
    axes.plot(seen, np.array(own)[seen], "D", color=INK, ms=5, label="from site order")
    axes.set_xticks(np.arange(4), [str(length) for length in lengths])
    tidy(axes, f"steps as good as two sweeps, {SMALL} x {SMALL}", "steps of DoGS", "% of draws")
    axes.legend(fontsize=7, frameon=False, loc="center left")


def _draw_patches(axes: Axes, visits: Ints) -> None:
    image = axes.imshow(np.where(visits > 0, visits, np.nan), cmap="viridis_r", vmin=0)
    rows, columns = CENTRE
    corners = (columns.start - 0.5, columns.stop - 0.5), (rows.start - 0.5, rows.stop - 0.5)
    (left, right), (top, bottom) = corners
    axes.plot([left, right, right, left, left], [top, top, bottom, bottom, top], color=COLORS[5], lw=1.5)
    tidy(axes, f"segmentation graph: the {visits.sum()} steps (frame: targets)")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=FAINT)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.75, ticks=range(int(visits.max()) + 1))
    bar.set_label("visits", fontsize=7, color=INK)
    bar.ax.tick_params(labelsize=7)


EXPERIMENT = Experiment(f"{DOGS}; Figures 2, 10 and 11, and section 5.5", run, draw, (13.0, 8.0))
