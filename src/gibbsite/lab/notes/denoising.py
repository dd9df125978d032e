"""Restoration of a noisy image by ten sweeps of Gibbs sampling with J = 4.

Given its neighbours and the noisy image, a pixel is +1 with log-odds 2 J W + 2 Y / sigma^2, where W is
the sum of its neighbours: two, three or four of them, because there are none beyond the border. With J = 4, equal
neighbours outweigh any noise: regions freeze within a few sweeps, and only pixels with equally many neighbours of
both kinds still move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Bools, Floats
from gibbsite.inference.exact.transition import unit_matrix
from gibbsite.lab.chains import sample_quietly
from gibbsite.lab.drawing import COLORS, Figure, show_picture, tidy
from gibbsite.lab.experiment import LANGEVIN_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Table, compare_claims
from gibbsite.lab.herded.denoising import DATA, draw_strokes, find_silhouette

SIGMA, COUPLING, SWEEPS = 1.0, 4.0, 10
COUPLINGS = (0.25, 0.5, 1.0, 2.0, 4.0)
STARTS = ("noisy", "random")


def follow_states(y: Floats, coupling: float, start: Array, rng: int) -> Bools:
    """Return the images after each of ten sweeps, which visit pixels row by row."""
    model = gs.ising_grid(y.shape, coupling=coupling, field=y / SIGMA**2)
    result = sample_quietly(
        model,
        gs.Gibbs(),
        scan=gs.Systematic(),
        sweeps=SWEEPS,
        warmup=0,
        chains=1,
        start=start.astype(np.int64).ravel(),
        record="draws",
        rng=rng,
    )
    states: Bools = result.draws[0].reshape(SWEEPS, *y.shape) == 1
    return states


def conditional_gap(rng: np.random.Generator) -> float:
    """Return the largest difference between compiled conditionals of a 3 x 3 image and the formula, over all states."""
    y = rng.normal(size=(3, 3))
    model = gs.ising_grid((3, 3), coupling=COUPLING / 4.0, field=y / SIGMA**2)
    exact, graph = gs.exact.enumerate(model), gs.graphs.compile_graph(model)
    worst = 0.0
    for i, j in np.ndindex(3, 3):
        site = 3 * i + j
        matrix = unit_matrix(exact, graph, gs.Gibbs(), site)
        near = [(i + a, j + b) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        inside = [3 * a + b for a, b in near if 0 <= a < 3 and 0 <= b < 3]
        spins = 2.0 * exact.states - 1.0
        odds = 2.0 * COUPLING / 4.0 * spins[:, inside].sum(axis=1) + 2.0 * y[i, j] / SIGMA**2
        up = exact.states.copy()
        up[:, site] = 1
        found = matrix[np.arange(len(up)), exact.number(up)]
        worst = max(worst, float(np.abs(found - 1.0 / (1.0 + np.exp(-odds))).max()))
    return worst


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Restore noisy images with all couplings and both starts."""
    noisy = 3 if quick else 10
    real = find_silhouette(4 if quick else 2)
    images = {} if real is None else {real[0]: real[1]}
    images["strokes"] = draw_strokes(100 if quick else 300)
    meter.expect(len(images) * noisy)
    arrays: dict[str, Array] = {"J": np.array(COUPLINGS)}
    pictures: dict[str, Array] = {}
    tables = []
    for name, image in images.items():
        _restore(name, image, noisy, rng, meter, arrays, pictures)
        tables.append(_table(name, image, noisy, arrays))
    gap = conditional_gap(np.random.default_rng([rng, 59]))
    return Findings(
        tables=[*tables, _claims(list(images), arrays, gap)],
        arrays=arrays,
        notes=[
            "Wrong pixels are counted in the state after ten sweeps, which the notes show, and in the more "
            "frequent state of all ten sweeps. Sweeps are row by row.",
            "ICM climbs to the next local maximum without randomness.",
            "The image of the notes is not known.",
        ],
        settings={
            "sigma": SIGMA,
            "J": COUPLING,
            "sweeps": SWEEPS,
            "noisy images": noisy,
            "images": {name: list(image.shape) for name, image in images.items()},
        },
        pictures=pictures,
    )


def _restore(
    name: str, image: Bools, noisy: int, rng: int, meter: Meter, arrays: dict[str, Array], pictures: dict[str, Array]
) -> None:
    """Compute the shares of wrong pixels (noisy images, couplings, ...) for one image."""

    def restore_one(number: int) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the shares of wrong pixels in the restorations of one noisy image, and pictures."""
        chance = np.random.default_rng([rng, number])
        y = np.where(image, 1.0, -1.0) + SIGMA * chance.standard_normal(image.shape)
        starts = {"noisy": y > 0.0, "random": chance.random(image.shape) < 0.5}
        shares: dict[str, Any] = {f"last, start {start}": np.empty(len(COUPLINGS)) for start in STARTS}
        shares |= {"often": np.empty(len(COUPLINGS)), "moved": np.empty((len(COUPLINGS), SWEEPS))}
        shares["before"] = (starts["noisy"] != image).mean()
        shown: dict[str, Array] = {"noise": y}
        for k, coupling in enumerate(COUPLINGS):
            for start, mask in starts.items():
                states = follow_states(y, coupling, mask, rng + number)
                shares[f"last, start {start}"][k] = (states[-1] != image).mean()
                if start == "noisy":
                    shares["often"][k] = ((states.mean(axis=0) > 0.5) != image).mean()
                    steps = np.concatenate([mask[None], states])
                    shares["moved"][k] = (steps[1:] != steps[:-1]).mean(axis=(1, 2))
                if coupling == COUPLING:
                    shown[start] = states[-1]
                if start == "noisy" and coupling == COUPLING:
                    restored = gs.applications.denoise(
                        y, sigma=SIGMA, means=(-1.0, 1.0), coupling=COUPLING, method="icm", progress=False
                    )
                    found = restored.image > 0.0
                    shares["icm"] = (found != image).mean()
                    shares["agrees with icm"] = (found == states[-1]).mean()
        return shares, shown

    made = meter.map(restore_one, range(noisy))
    pictures |= {f"{name}: original": image} | {f"{name}: {what}": one for what, one in made[0][1].items()}
    for what in made[0][0]:
        arrays[f"{name}: {what}"] = np.array([shares[what] for shares, _ in made])


def _share(found: Floats) -> str:
    return f"{found.mean():.2%} ({found.std(ddof=1):.2%})"


def _table(name: str, image: Bools, noisy: int, arrays: dict[str, Array]) -> Table:
    rows = [
        (
            coupling,
            _share(arrays[f"{name}: last, start noisy"][:, k]),
            _share(arrays[f"{name}: often"][:, k]),
            _share(arrays[f"{name}: last, start random"][:, k]),
            f"{arrays[f'{name}: moved'][:, k, -1].mean():.3%}",
        )
        for k, coupling in enumerate(COUPLINGS)
    ]
    height, width = image.shape
    before = _share(arrays[f"{name}: before"])
    return Table(
        f"{name} ({height} x {width}, {image.mean():.0%} white): wrong pixels of {noisy} noisy images after "
        f"{SWEEPS} sweeps, mean (standard deviation); before: {before}",
        ("J", "last state", "most frequent", "last state, random start", "moved in the last sweep"),
        rows,
    )


def _claims(names: list[str], arrays: dict[str, Array], gap: float) -> Table:
    """Compare the claims of the source with the findings."""
    k, one = COUPLINGS.index(COUPLING), COUPLINGS.index(1.0)
    rows: list[Claim] = [
        Claim(
            "log-odds of a pixel are 2 J W + 2 Y / sigma^2, W over neighbours inside the image (corrected)",
            f"compiled conditionals of a 3 x 3 image differ by {gap:.1e} at most",
            gap < 1e-9,
        )
    ]
    for name in names:
        before = arrays[f"{name}: before"].mean()
        last = arrays[f"{name}: last, start noisy"].mean(axis=0)
        random = arrays[f"{name}: last, start random"].mean(axis=0)
        rows += [
            Claim(
                f"{name}: 10 sweeps with J = 4 denoise the image",
                f"wrong pixels {before:.2%} before, {last[k]:.2%} after; J = 1: {last[one]:.2%}",
                last[k] < before / 2.0,
            ),
            Claim(
                f"{name}: those are draws from the posterior",
                f"no: from a random start {random[k]:.2%} are wrong, and {_moved(arrays, name)} of pixels "
                f"still move; {arrays[f'{name}: agrees with icm'].mean():.2%} are as ICM has them",
                False if random[k] > 2.0 * last[k] else None,
            ),
        ]
    return compare_claims(*rows)


def _moved(arrays: dict[str, Array], name: str) -> str:
    return f"{arrays[f'{name}: moved'][:, COUPLINGS.index(COUPLING), -1].mean():.3%}"


def draw(findings: Findings, figure: Figure) -> None:
    """Draw, for each image, Figure 5.5 and the errors of all couplings."""
    arrays, pictures = findings.arrays, findings.pictures
    names = list(findings.settings["images"])
    figure.set_size_inches(13.0, 0.5 + 3.0 * len(names))
    rows = figure.subplots(len(names), 5, squeeze=False, width_ratios=(1, 1, 1, 1, 1.4))
    for name, axes in zip(names, rows, strict=True):
        show_picture(axes[0], pictures[f"{name}: original"], f"{name}: original", (0.0, 1.0))
        show_picture(axes[1], pictures[f"{name}: noise"], "noise, σ = 1", (-3.0, 3.0))
        show_picture(axes[2], pictures[f"{name}: noisy"], f"{SWEEPS} sweeps, J = 4", (0.0, 1.0))
        show_picture(axes[3], pictures[f"{name}: random"], "the same from a random start", (0.0, 1.0))
        for k, (what, title) in enumerate(
            (("last, start noisy", "last state"), ("often", "most frequent"), ("last, start random", "random start"))
        ):
            found = arrays[f"{name}: {what}"]
            axes[4].errorbar(
                arrays["J"],
                found.mean(axis=0),
                found.std(axis=0, ddof=1),
                marker="o",
                ms=3,
                color=COLORS[k],
                label=title,
            )
        axes[4].axhline(arrays[f"{name}: before"].mean(), color="black", lw=0.8, ls=":", label="before")
        axes[4].loglog()
        axes[4].set_xticks(arrays["J"], [f"{j:g}" for j in COUPLINGS])
        axes[4].minorticks_off()
        tidy(axes[4], f"wrong pixels after {SWEEPS} sweeps", xlabel="J")
        axes[4].set_ylim(bottom=axes[4].get_ylim()[0] / 5.0)  # room for the legend
        axes[4].legend(fontsize=7, frameon=False, loc="lower left", ncols=2)


EXPERIMENT = Experiment(f"{LANGEVIN_NOTES} (Example 5.9, Figure 5.5)", run, draw, (13.0, 4.0), DATA)
