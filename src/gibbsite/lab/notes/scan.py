"""Scans: systematic, random and palindromic ones, and incorrect updates of all sites at once.

A Gibbs step at a site must use the current values of the others. The algorithms in the notes condition on the
values of the previous sweep instead. For a pair of normal variables with correlation r, all moments are known:

* all sites at once from old values: variances stay 1, and the covariance c after a sweep is r^2 times that
  before it, so draws become uncorrelated;
* random sites from old values: with probability 1/2 both sites are drawn in this way, and otherwise one of them
  is drawn correctly, hence c = r^2 c / 2 + r / 2, that is c = r / (2 - r^2).

Detailed balance is tested exactly on two coupled spins: a single step, a random step and a palindromic sweep satisfy
it; a systematic sweep only leaves the target invariant.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.inference.exact.transition import sweep_matrix
from gibbsite.lab.chains import autocorrelations, mean_and_error, sample_quietly
from gibbsite.lab.drawing import COLORS, FAINT, INK, Figure, tidy
from gibbsite.lab.experiment import GIBBS_NOTES, LANGEVIN_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.notes.gaussian_gibbs import autocorrelation, random_map, sweep_map
from gibbsite.models.random import normal, uniform

CORRELATION = 0.9
TABLE = ((0.4, 0.1), (0.2, 0.3))
_CHAINS = 16
_REST = math.sqrt(1.0 - CORRELATION**2)
_SHOWN = 800  # draws in the figure


def draw_at_once(x: Any, rng: Any) -> Any:
    """Draw both sites given the old values of both: Algorithm 11 as printed."""
    first = normal(rng, CORRELATION * x[1], _REST)
    return np.array([first, normal(rng, CORRELATION * x[0], _REST)])


def draw_some_at_once(x: Any, rng: Any) -> Any:
    """Draw two random sites given the old values of all: Algorithm 12 as printed."""
    found = np.array([x[0], x[1]])
    for _ in range(2):
        if uniform(rng) < 0.5:
            found[0] = normal(rng, CORRELATION * x[1], _REST)
        else:
            found[1] = normal(rng, CORRELATION * x[0], _REST)
    return found


def samplers() -> dict[str, tuple[gs.Model, gs.kernels.Kernel, gs.scans.Scan, float, float]]:
    """Return models, kernels and scans, with the exact correlation and lag-1 autocorrelation of z1."""
    covariance = np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    target, gibbs = gs.Gaussian(covariance=covariance, names=["z1", "z2"]), gs.kernels.GaussianGibbs()
    fixed = autocorrelation(covariance, sweep_map(covariance, [0, 1]), 1)[0]
    random = autocorrelation(covariance, random_map(covariance, 2), 1)[0]

    def wrong(draw: Any) -> gs.Model:
        return gs.Conditionals({("z1", "z2"): draw})

    r = CORRELATION
    mixed = r / (2.0 - r**2)
    return {
        "systematic": (target, gibbs, gs.Systematic(), r, fixed),
        "random": (target, gibbs, gs.RandomScan(), r, random),
        "there and back": (target, gibbs, gs.scans.Palindromic(), r, fixed),
        "all at once": (wrong(draw_at_once), gs.kernels.ConditionalGibbs(), gs.Systematic(), 0.0, 0.0),
        "random, from old values": (
            wrong(draw_some_at_once),
            gs.kernels.ConditionalGibbs(),
            gs.Systematic(),
            mixed,
            0.75 * r * mixed + 0.25,
        ),
    }


def asymmetry(matrix: Floats, law: Floats) -> tuple[float, float]:
    """Return the largest asymmetry of probability flows, and the largest change of the distribution in a step."""
    flow = law[:, None] * matrix
    return float(np.abs(flow - flow.T).max()), float(np.abs(law @ matrix - law).max())


def at_once_matrix(joint: Floats) -> Floats:
    """Return the transition matrix of drawing both sites of a pair from the old values of both."""
    first, second = joint / joint.sum(axis=0), joint / joint.sum(axis=1, keepdims=True)
    rows = [np.outer(first[:, b], second[a]).ravel() for a in range(2) for b in range(2)]
    return np.array(rows)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Sample a pair of normal variables with each scan; compute the flows of two spins."""
    sweeps = 5_000 if quick else 100_000
    runs = samplers()
    meter.expect(len(runs) + 1)
    arrays: dict[str, Array] = {}
    rows = Rows()
    for name, (model, kernel, scan, correlation, forgets) in runs.items():
        result = sample_quietly(
            model, kernel, scan=scan, sweeps=sweeps, chains=_CHAINS, record="draws", rng=rng, start=[0.0, 0.0]
        )
        z = np.asarray(result.draws, float)
        of_chains = (z[:, :, 0] * z[:, :, 1]).mean(axis=1) / np.sqrt(np.square(z).mean(axis=1).prod(axis=1))
        found, error = mean_and_error(of_chains)
        lag, its_error = mean_and_error(autocorrelations(z[:, :, 0], 1)[:, 0])
        arrays |= {
            f"{name}: correlation": np.array([found, error, correlation]),
            f"{name}: variances": np.square(z).mean(axis=(0, 1)),
            f"{name}: draws": z[0, :_SHOWN],
        }
        rows.add(
            name, f"{correlation:.4f}", f"{found:.4f} ({error:.4f})", f"{forgets:.4f}", f"{lag:.4f} ({its_error:.4f})"
        )
        meter.tick()
    flows = _flows(arrays)
    meter.tick()
    head = ("order", "correlation, exact", "found", "lag 1 of z1, exact", "found")
    return Findings(
        tables=[
            Table(f"A normal pair of correlation {CORRELATION:g}, {sweeps:,} sweeps", head, rows),
            flows,
            _claims(arrays),
        ],
        arrays=arrays,
        notes=[
            f"{_CHAINS} chains from (0, 0); standard errors from their spread. A sweep is two steps, also of "
            "the random scan.",
            "A palindromic scan draws the site at each turn twice from the same conditional, so its sweeps are "
            "less efficient: after two of them, the autocorrelation of z1 is 0.81 at one turn and 0.66 at the "
            "other; with systematic sweeps, it is 0.66.",
            "Flows are computed from transition matrices of the compiled kernels, without sampling.",
        ],
        settings={"sweeps": sweeps, "chains": _CHAINS, "correlation": CORRELATION, "table": TABLE},
    )


def _flows(arrays: dict[str, Array]) -> Table:
    """Compute asymmetries and invariance for every scan on two coupled spins."""
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), np.array(TABLE))])
    exact, graph = gs.exact.enumerate(model), gs.graphs.compile_graph(model)
    law, kernel = exact.probabilities, gs.Gibbs()
    matrices = {
        "a step at a": sweep_matrix(exact, graph, kernel, gs.scans.FixedOrder(["a"])),
        "systematic sweep": sweep_matrix(exact, graph, kernel, gs.Systematic()),
        "random step": sweep_matrix(exact, graph, kernel, gs.RandomScan()),
        "there and back": sweep_matrix(exact, graph, kernel, gs.scans.Palindromic()),
        "all at once": at_once_matrix(exact.law),
    }
    rows = Rows()
    for name, matrix in matrices.items():
        found = asymmetry(matrix, law)
        arrays[f"flows, {name}"] = np.array(found)
        rows.add(name, f"{found[0]:.4f}", f"{found[1]:.1e}")
    head = ("moves", "largest flow there - back", "change of the law")
    return Table("Detailed balance and invariance on two spins with P = .4 .1 / .2 .3", head, rows)


def _claims(arrays: dict[str, Array]) -> Table:
    """Compare the claims of the source with the findings."""

    def compared(name: str) -> tuple[str, Any]:
        found, error, exact = arrays[f"{name}: correlation"]
        return f"{found:.4f} ({error:.4f}), exactly {exact:.4f}", abs(found - CORRELATION) < 6.0 * error

    def flow(name: str) -> tuple[float, float]:
        one, other = arrays[f"flows, {name}"]
        return float(one), float(other)

    fixed, step, back = flow("systematic sweep"), flow("a step at a"), flow("there and back")
    return compare_claims(
        Claim("Algorithm 11, given the previous sweep, has the target's correlation .9", *compared("all at once")),
        Claim("the same with current values (corrected)", *compared("systematic")),
        Claim(
            "Algorithm 12, given the previous sweep, has the target's correlation .9",
            *compared("random, from old values"),
        ),
        Claim("the same with current values (corrected)", *compared("random")),
        Claim("every K_m satisfies detailed balance", f"largest asymmetry of flows {step[0]:.1e}", step[0] < 1e-14),
        Claim(
            "the Gibbs kernel K_1 ... K_d satisfies detailed balance",
            f"largest asymmetry of flows {fixed[0]:.4f}",
            fixed[0] < 1e-14,
        ),
        Claim(
            "the Gibbs kernel leaves the law invariant (Proposition 5.3)", f"change {fixed[1]:.1e}", fixed[1] < 1e-14
        ),
        Claim(
            "palindromic sweeps satisfy detailed balance (corrected)",
            f"largest asymmetry of flows {back[0]:.1e}",
            back[0] < 1e-14,
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw samples of each scan, with the ellipse of two standard deviations of the target."""
    names = [key.removesuffix(": draws") for key in findings.arrays if key.endswith(": draws")]
    panels = figure.subplots(1, len(names), sharex=True, sharey=True)
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    root = np.linalg.cholesky(np.array([[1.0, CORRELATION], [CORRELATION, 1.0]]))
    ellipse = 2.0 * root @ np.stack([np.cos(turn), np.sin(turn)])
    for name, axes in zip(names, panels, strict=True):
        found, _, exact = findings.arrays[f"{name}: correlation"]
        right = abs(exact - CORRELATION) < 1e-12
        axes.plot(*findings.arrays[f"{name}: draws"].T, ".", ms=2.5, color=COLORS[0 if right else 5])
        axes.plot(*ellipse, color=INK if right else FAINT, lw=1.0)
        axes.set_aspect("equal")
        tidy(axes, f"{name}: {found:.3f}", xlabel="$z_1$")
    panels[0].set_ylabel("$z_2$", fontsize=8, color=INK)


EXPERIMENT = Experiment(
    f"{LANGEVIN_NOTES} (Algorithms 11 and 12, Proposition 5.3). {GIBBS_NOTES} (page 8)", run, draw, (14.0, 3.4)
)
