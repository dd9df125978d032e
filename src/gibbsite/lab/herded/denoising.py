"""Restoration of noisy images by herded Gibbs, Gibbs and mean field.

The pixels x of a black and white image are -1 or +1, and y is the image with normal noise of standard deviation sigma.
The prior couples neighbouring pixels with J = 1, so the posterior is an Ising grid with fields y / sigma^2. Samplers
start at sign(y) and visit pixels in raster order; the estimate is the average over all sweeps. Mean field starts at
tanh(y / sigma^2). The error is the mean of (P(x = +1) - truth)^2 over pixels, averaged over noisy images.
"""

from __future__ import annotations

import contextlib
import warnings
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Bools, Floats, Ints
from gibbsite.lab.chains import follow
from gibbsite.lab.data import DataSource
from gibbsite.lab.drawing import COLORS, Figure, show_picture, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Table, all_hold, compare_claims

DATA = DataSource(
    "a silhouette of MPEG-7 and drawn strokes", ("images/mpeg7/beetle-1.png",), "only strokes drawn by the program"
)


def draw_strokes(side: int) -> Bools:
    """Draw a circle, a zigzag, a spiral and a letter with strokes five pixels wide."""
    turn = np.linspace(0.0, 2.0 * np.pi, 40)
    wind = np.linspace(0.0, 4.5 * np.pi, 90)
    circle = np.stack([0.25 + 0.15 * np.sin(turn), 0.25 + 0.15 * np.cos(turn)], axis=1)
    spiral = np.stack([0.72 + 0.014 * wind * np.sin(wind), 0.72 + 0.014 * wind * np.cos(wind)], axis=1)
    zigzag = np.array([[0.58, 0.1], [0.9, 0.17], [0.58, 0.24], [0.9, 0.31], [0.58, 0.38], [0.9, 0.45]])
    letter = [np.array([[0.42, 0.55], [0.08, 0.7], [0.42, 0.85]]), np.array([[0.28, 0.61], [0.28, 0.79]])]
    pixels = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    near = np.full(side * side, np.inf)
    for line in (circle, zigzag, spiral, *letter):
        for a, b in pairwise(line):
            along = np.clip((pixels - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
            near = np.minimum(near, np.linalg.norm(pixels - a - along[:, None] * (b - a), axis=1))
    return (near <= 2.5 / side).reshape(side, side)


def find_silhouette(step: int) -> tuple[str, Bools] | None:
    """Return name and pixels of a real silhouette from ``GIBBSITE_DATA``, every ``step``-th row and column, if any."""
    for path in DATA.paths():
        with contextlib.suppress(ImportError, OSError):
            from PIL import Image

            with Image.open(path) as image:
                pixels = np.asarray(image.convert("L"))
            return path.stem, (pixels >= 128)[::step, ::step]
    return None


SWEEPS = 30
_SHOWN = 4.0  # sigma of Figure 9


class MeanField(NamedTuple):
    """Settings of mean field: its damping, and whether all pixels are updated in parallel."""

    damping: float
    parallel: bool


#: The five methods of the paper, and mean field in place.
METHODS: dict[str, gs.kernels.Kernel | MeanField] = {
    "herded": gs.HerdedGibbs(),
    "shared": gs.HerdedGibbs(keys="shared"),
    "Gibbs": gs.Gibbs(),
    "MF 0.5": MeanField(0.5, True),
    "MF 1": MeanField(1.0, True),
    "MF 0.5 in place": MeanField(0.5, False),
    "MF 1 in place": MeanField(1.0, False),
}
#: Table 2 of the paper: errors times 1000 for sigma = 2, 4, 6, 8.
PAPER = {
    "herded": (21.58, 32.07, 47.52, 67.93),
    "shared": (22.24, 31.40, 42.62, 58.49),
    "Gibbs": (21.63, 37.20, 63.78, 90.27),
    "MF 0.5": (15.52, 41.76, 76.24, 104.08),
    "MF 1": (17.67, 32.04, 51.19, 74.74),
}
PAPER_SIGMAS = (2.0, 4.0, 6.0, 8.0)
_LOOKS = {
    "herded": (COLORS[5], "-"),
    "shared": (COLORS[1], "-"),
    "Gibbs": (COLORS[0], "-"),
    "MF 0.5": (COLORS[2], "-"),
    "MF 1": (COLORS[3], "-"),
    "MF 0.5 in place": (COLORS[2], ":"),
    "MF 1 in place": (COLORS[3], ":"),
}


def restore(method: gs.kernels.Kernel | MeanField, y: Floats, sigma: float, sweeps: Ints, rng: int) -> Floats:
    """Return estimates of P(x = +1), one image for each number of sweeps."""
    model = gs.ising_grid(y.shape, coupling=1.0, field=y / sigma**2)
    if isinstance(method, MeanField):
        found = _iterate(model, method, sweeps)
    else:
        record, start = gs.Marginals(rao_blackwell=False), (y > 0.0).ravel()
        found = follow(model, method, sweeps, record, start=start, rng=rng)[0]
    return found.reshape(-1, *y.shape)


def _iterate(model: gs.FactorGraph, how: MeanField, sweeps: Ints) -> Floats:
    """Return the mean-field distributions after each number of sweeps, continuing from the previous one."""
    law: Any = "unary"
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)  # the number of sweeps is fixed
        for more in np.diff(sweeps, prepend=0).tolist():
            law = gs.mean_field(
                model,
                parallel=how.parallel,
                damping=how.damping,
                start=law,
                max_iterations=more,
                tolerance=0.0,
                progress=False,
            ).cells
            found.append(law)
    return np.array(found)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Restore noisy versions of a real and a drawn image by all methods; the quick version has one image."""
    noisy, sigmas = (4, (2.0, 4.0, 8.0)) if quick else (10, PAPER_SIGMAS)
    real = find_silhouette(3 if quick else 2)
    images = {} if real is None else {real[0]: real[1]}
    if real is None or not quick:
        images["strokes"] = draw_strokes(200 if quick else 300)
    meter.expect(len(images) * len(sigmas) * noisy)
    arrays: dict[str, Array] = {"sigma": np.array(sigmas)}
    pictures: dict[str, Array] = {}
    tables = []
    for name, image in images.items():
        errors = _spoil_and_restore(name, image, sigmas, noisy, rng, meter, arrays, pictures)
        tables.append(_table(name, image, sigmas, noisy, errors))
        tables.append(compare_claims(*_claims(sigmas, errors), subject=name))
    notes = [
        "shared: herded Gibbs with one weight for each number of neighbours in state +1. MF D: mean field "
        "with damping D, which updates all pixels at once unless it is in place.",
        "The image of the paper is not known, and errors depend on it: orderings are compared, not values.",
        "Two methods are distinguished if their errors on the same noisy images differ by more than three "
        "standard errors; otherwise a pair neither holds nor is reversed, and decides nothing.",
        "The paper does not state whether mean field updates all pixels at once or one after another.",
    ]
    if real is None:
        notes.append("No real silhouette is available (GIBBSITE_DATA); only the drawn image is restored.")
    return Findings(
        tables=tables,
        arrays=arrays,
        notes=notes,
        settings={
            "sweeps": SWEEPS,
            "noisy images": noisy,
            "sigma": list(sigmas),
            "images": {name: list(image.shape) for name, image in images.items()},
        },
        pictures=pictures,
    )


def _spoil_and_restore(
    name: str,
    image: Bools,
    sigmas: tuple[float, ...],
    noisy: int,
    rng: int,
    meter: Meter,
    arrays: dict[str, Array],
    pictures: dict[str, Array],
) -> dict[str, Floats]:
    """Return errors after the last sweep by method (sigmas, noisy images); store curves and pictures."""
    errors = {method: np.empty((len(sigmas), noisy)) for method in METHODS}
    curves = {method: np.empty((noisy, SWEEPS)) for method in METHODS}
    pictures[f"{name}: original"] = image

    def restore_one(case: tuple[int, int]) -> tuple[Floats, dict[str, Floats], dict[str, Floats]]:
        """Return a noisy image, and by method its errors after some sweeps and the restored image."""
        (s, number), squares, ends = case, {}, {}
        # curves are drawn for one sigma only
        sweeps = np.arange(1, SWEEPS + 1) if sigmas[s] == _SHOWN else np.array([SWEEPS])
        noise = np.random.default_rng([rng, number, s]).normal(scale=sigmas[s], size=image.shape)
        y = np.where(image, 1.0, -1.0) + noise
        for method, how in METHODS.items():
            found = restore(how, y, sigmas[s], sweeps, rng + 1000 * number)
            squares[method], ends[method] = ((found - image) ** 2).mean(axis=(1, 2)), found[-1]
        return y, squares, ends

    cases = [(s, number) for s in range(len(sigmas)) for number in range(noisy)]
    for (s, number), (y, squares, ends) in zip(cases, meter.map(restore_one, cases), strict=True):
        for method in METHODS:
            errors[method][s, number] = squares[method][-1]
            if sigmas[s] == _SHOWN:
                curves[method][number] = squares[method]
        if sigmas[s] == _SHOWN and number == 0:
            pictures[f"{name}: noisy"] = y
            pictures |= {f"{name}: {method}": end for method, end in ends.items()}
    for method in METHODS:
        arrays[f"{name}: errors of {method}"] = errors[method]
        arrays[f"{name}: errors of {method} by sweep, sigma = {_SHOWN:g}"] = curves[method]
    return errors


def _table(name: str, image: Bools, sigmas: tuple[float, ...], noisy: int, errors: dict[str, Floats]) -> Table:
    rows = []
    for method, found in errors.items():
        paper = PAPER.get(method)
        cells: list[str | None] = [method]
        for s, sigma in enumerate(sigmas):
            cells.append(None if paper is None else f"{paper[PAPER_SIGMAS.index(sigma)]:.1f}")
            cells.append(f"{1e3 * found[s].mean():.1f} ({1e3 * found[s].std(ddof=1):.1f})")
        rows.append(tuple(cells))
    height, width = image.shape
    return Table(
        f"{name} ({height} x {width}, {image.mean():.0%} white): errors x 1000 after {SWEEPS} sweeps, "
        f"mean (standard deviation) of {noisy} noisy images",
        ("method", *(head for sigma in sigmas for head in (f"σ={sigma:g} paper", f"σ={sigma:g} ours"))),
        rows,
    )


def is_less(a: Floats, b: Floats) -> bool | None:
    """Return whether errors ``a`` are less than ``b`` on the same noisy images; None if the difference is not clear."""
    difference = b - a
    error = difference.std(ddof=1) / np.sqrt(difference.size)
    if abs(difference.mean()) <= 3.0 * error:
        return None
    return bool(difference.mean() > 0.0)


def _claims(sigmas: tuple[float, ...], errors: dict[str, Floats]) -> list[Claim]:
    """Return the orderings of methods for each sigma, in the paper and here, and the conclusions of the paper."""
    claims: list[Claim] = []
    for s, sigma in enumerate(sigmas):
        theirs = sorted(PAPER, key=lambda method: PAPER[method][PAPER_SIGMAS.index(sigma)])
        ours = sorted(PAPER, key=lambda method: errors[method][s].mean())
        pairs = [is_less(errors[a][s], errors[b][s]) for a, b in combinations(theirs, 2)]
        counted = f"{pairs.count(True)} of {len(pairs)} pairs, {pairs.count(False)} reversed"
        claims.append(
            Claim(f"sigma {sigma:g}: {' < '.join(theirs)}", " < ".join(ours) + f" ({counted})", all_hold(pairs))
        )
    loud = [s for s, sigma in enumerate(sigmas) if sigma >= 4.0]
    for better, worse in (("shared", "herded"), ("herded", "Gibbs")):
        facts = [is_less(errors[better][s], errors[worse][s]) for s in loud]
        gaps = ", ".join(f"{1 - errors[better][s].mean() / errors[worse][s].mean():.0%} at {sigmas[s]:g}" for s in loud)
        claims.append(Claim(f"{better} beats {worse} for sigma >= 4", f"by {gaps}", all_hold(facts)))
    last = len(sigmas) - 1
    fields = [method for method, how in METHODS.items() if isinstance(how, MeanField)]
    for kind, names in (("all at once", fields[:2]), ("in place", fields[2:])):
        best = min(names, key=lambda method: errors[method][last].mean())
        gap = 1 - errors["shared"][last].mean() / errors[best][last].mean()
        claims.append(
            Claim(
                f"shared beats mean field ({kind}) at sigma {sigmas[last]:g}",
                f"by {gap:.0%} ({best})",
                is_less(errors["shared"][last], errors[best][last]),
            )
        )
    return claims


def draw(findings: Findings, figure: Figure) -> None:
    """Draw, for each image, Figure 8 (pictures), Figure 9 (errors by sweep) and Table 2 (errors by sigma)."""
    arrays, pictures = findings.arrays, findings.pictures
    names = list(findings.settings["images"])
    figure.set_size_inches(13.0, 0.5 + 3.3 * len(names))
    rows = figure.subplots(len(names), 5, squeeze=False, width_ratios=(1, 1, 1, 1.6, 1.6))
    for name, axes in zip(names, rows, strict=True):
        show_picture(axes[0], pictures[f"{name}: original"], f"{name}: original", (0.0, 1.0))
        show_picture(axes[1], pictures[f"{name}: noisy"], f"noise, σ = {_SHOWN:g}", (-8.0, 8.0))
        show_picture(axes[2], pictures[f"{name}: shared"], "shared", (0.0, 1.0))
        for method, (color, line) in _LOOKS.items():
            look = {"color": color, "ls": line, "lw": 1.3, "capsize": 1.5, "elinewidth": 0.7}
            curve = 1e3 * arrays[f"{name}: errors of {method} by sweep, sigma = {_SHOWN:g}"]
            axes[3].errorbar(
                np.arange(1, SWEEPS + 1), curve.mean(axis=0), curve.std(axis=0, ddof=1), label=method, **look
            )
            found = 1e3 * arrays[f"{name}: errors of {method}"]
            axes[4].errorbar(arrays["sigma"], found.mean(axis=1), found.std(axis=1, ddof=1), marker="o", ms=3, **look)
        axes[4].set_xticks(arrays["sigma"])
        late = [arrays[f"{name}: errors of {m} by sweep, sigma = {_SHOWN:g}"][:, 5:] for m in METHODS]
        axes[3].set_ylim(0.7e3 * min(map(np.min, late)), 1.2e3 * max(map(np.max, late)))
        tidy(axes[3], f"σ = {_SHOWN:g}", xlabel="sweeps", ylabel="mean squared error × 1000")
        tidy(axes[4], f"after {SWEEPS} sweeps", xlabel="σ")
    handles, labels = rows[0, 3].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, fontsize=8.5, frameon=False)


EXPERIMENT = Experiment(f"{HERDED}; Table 2, Figures 8 and 9", run, draw, (13.0, 4.0), DATA)
