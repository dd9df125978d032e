"""Herding of moments: errors that fall like 1 / T, on tables of features and on a model.

The weights follow equation 1 of the paper. Features are the states of a distribution (section 1), random numbers of
200 states, or the configurations of the factors of an Ising lattice, whose best state is found exactly or by moving
single sites uphill. Random draws from a distribution with the same moments are shown for comparison; their errors fall
like the root of 1 / T.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite.lab.chains import fit_slope
from gibbsite.lab.drawing import COLORS, FAINT, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims

SPACES = ("20 states", "200 states, 10 features", "Ising lattice 3 x 4")
_DRAWS = 20  # repetitions of random draws


def envelope(errors: Any, lengths: Any) -> Any:
    """Return the largest error of each length and all later ones."""
    later = np.maximum.accumulate(errors[::-1])[::-1]
    return later[np.asarray(lengths) - 1]


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Herd all spaces, and draw from them at random."""
    stream = np.random.default_rng(rng)
    steps = 10_000 if quick else 100_000
    lengths = np.unique(np.geomspace(10, steps // 2, 60).astype(np.int64))
    law = stream.dirichlet(np.ones(20))
    features, weights = stream.normal(size=(200, 10)), stream.dirichlet(np.ones(200))
    model = gs.ising_grid((3, 4), coupling=0.4, field=0.2)
    meter.expect(7)
    cases: list[tuple[str, str, Any]] = [
        (SPACES[0], "herding", gs.herd(np.eye(20), law, steps=steps)),
        (SPACES[1], "herding", gs.herd(features, weights @ features, steps=steps)),
    ]
    meter.tick()
    meter.tick()
    cases.append((SPACES[2], "herding, exact maximum", gs.herd(model, steps=steps // 5)))
    meter.tick()
    cases.append((SPACES[2], "herding, uphill", gs.herd(model, steps=steps // 5, solver="local")))
    meter.tick()
    arrays: dict[str, Any] = {"lengths": lengths}
    rows = Rows()
    for space, method, found in cases:
        here = lengths[lengths <= len(found.errors) // 2]
        arrays[f"{space}: {method}"] = envelope(found.errors, here)
        slope = fit_slope(here[here >= 100], arrays[f"{space}: {method}"][here >= 100])
        t = len(found.errors)
        rows.add(space, method, t, float(found.errors[-1]), float(found.errors[-1] * t), f"{slope:.2f}", found.misses)
    for space, table, p in (
        (SPACES[0], np.eye(20), law),
        (SPACES[1], features, weights),
        (SPACES[2], *_all_features(model)),
    ):
        many = steps // 5 if space == SPACES[2] else steps
        here = lengths[lengths <= many // 2]
        drawn = np.array([_draw(table, p, many, here, stream) for _ in range(_DRAWS)])
        arrays[f"{space}: random"] = np.sqrt(np.square(drawn).mean(axis=0))
        slope = fit_slope(here[here >= 100], arrays[f"{space}: random"][here >= 100])
        rows.add(space, "random draws", many, None, None, f"{slope:.2f}", None)
        meter.tick()
    slopes = [float(row[5]) for row in rows if row[1] in ("herding", "herding, exact maximum")]
    columns = ("space", "method", "T", "error", "error times T", "slope", "misses")
    return Findings(
        tables=[
            Table("Distance of the mean of the features from the moments", columns, rows),
            compare_claims(
                Claim(
                    "the moments are matched with an error of order 1 / T (equation 2)",
                    "slopes " + ", ".join(f"{slope:.2f}" for slope in slopes),
                    max(slopes) < -0.85,
                )
            ),
        ],
        arrays=arrays,
        notes=[
            "Errors of herding are the largest of all later lengths; those of random draws are root mean squares of "
            f"{_DRAWS} runs.",
            "A miss is a step whose state is worse than the average of the moments; without misses the order 1 / T is "
            "proved.",
        ],
        settings={"steps": steps, "draws": _DRAWS},
    )


def _all_features(model: Any) -> tuple[Any, Any]:
    """Return the features of all states of a model of two-state sites, and the probabilities of the states."""
    exact = gs.exact.enumerate(model)
    scopes = [scope for group in model.groups for scope in group.scopes.tolist()]
    columns = [np.eye(2 ** len(scope))[exact.states[:, scope] @ 2 ** np.arange(len(scope))] for scope in scopes]
    return np.concatenate(columns, axis=1), exact.law.ravel()


def _draw(table: Any, p: Any, many: int, lengths: Any, stream: np.random.Generator) -> Any:
    """Return the errors of random draws at some lengths."""
    drawn = stream.choice(len(p), many, p=p / p.sum())
    target, errors = p @ table / p.sum(), []
    counts, before = np.zeros(len(p)), 0
    for length in lengths.tolist():
        counts += np.bincount(drawn[before:length], minlength=len(p))
        before = length
        errors.append(np.linalg.norm(counts @ table / length - target))
    return errors


def draw(findings: Findings, figure: Figure) -> None:
    """Draw errors against lengths, a panel for each space."""
    axes = figure.subplots(1, 3)
    colors = {
        "herding": COLORS[0],
        "herding, exact maximum": COLORS[0],
        "herding, uphill": COLORS[2],
        "random": COLORS[5],
    }
    for panel, space in zip(axes, SPACES, strict=True):
        for name, errors in findings.arrays.items():
            if name.startswith(f"{space}: "):
                method = name.partition(": ")[2]
                here = findings.arrays["lengths"][: len(errors)]
                panel.loglog(here, errors, color=colors.get(method, COLORS[5]), label=method)
                if method in ("herding", "herding, exact maximum"):
                    panel.loglog(here, errors[0] * here[0] / here, ":", color=FAINT, label="1 / T")
        tidy(panel, space, "states T", "distance from the moments")
        panel.legend(frameon=False, fontsize=8)


EXPERIMENT = Experiment(f"{HERDED}, equations 1 and 2", run, draw, (11.0, 3.8))
