"""A comparison of sampling methods: requirements, tuning, and effective draws per second.

The notes rank transformations (excellent, but hard to find), random walks (easy, from terrible to fair) and Gibbs
sampling (fair to good, with effort). Here every method runs on each target to which it applies; the table lists its
requirements and its tuning beside its efficiency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.inference.advice import Efficiency, measure_efficiency
from gibbsite.lab.drawing import COLORS, INK, Figure, tidy
from gibbsite.lab.experiment import GIBBS_NOTES, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.notes import banana
from gibbsite.models.random import gamma, normal

Truth = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Target:
    """A target in the forms that methods need."""

    density: gs.LogDensity  # with gradient
    truth: Truth  # mean and standard deviation of every coordinate
    step: float  # a step for ULA, a tenth of the smallest variance in any direction
    gibbs: tuple[gs.Model, gs.kernels.Kernel] | None = None  # if draws from full conditionals are possible
    relaxed: tuple[gs.Model, gs.kernels.Kernel] | None = None  # if full conditionals are normal, for over-relaxation
    exact: tuple[gs.Model, gs.kernels.Kernel] | None = None  # if exact draws are possible


def autoregressive(n: int, r: float) -> Target:
    """Return an autoregressive sequence of n normal numbers of variance 1, where neighbours have correlation r."""
    rest = 1.0 - r * r

    def value(x: Any) -> Any:
        total = x[0] * x[0]
        for i in range(1, n):
            total += (x[i] - r * x[i - 1]) ** 2 / rest
        return -0.5 * total

    def slope(x: Any) -> Any:
        found = np.zeros(n)
        found[0] = -x[0]
        for i in range(1, n):
            pull = (x[i] - r * x[i - 1]) / rest
            found[i] -= pull
            found[i - 1] += r * pull
        return found

    covariance = r ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    normal_target = gs.Gaussian(covariance=covariance)
    return Target(
        density=gs.LogDensity(value, slope, dim=n),
        truth={str(i): (0.0, 1.0) for i in range(n)},
        step=0.1 * float(np.linalg.eigvalsh(covariance)[0]),
        gibbs=(normal_target, gs.kernels.GaussianGibbs()),
        relaxed=(normal_target, gs.kernels.GaussianGibbs(0.8)),
        exact=(normal_target, gs.kernels.ExactGaussian()),
    )


def mean_and_precision() -> Target:
    """Return the posterior of mean m and precision t of normal data, with priors N(0, 10) and Gamma(2, 1).

    Both full conditionals are known: m given t is normal, and t given m has a gamma distribution.
    """
    rows = 20
    data = np.random.default_rng(1).normal(1.0, 0.7, rows)
    n, total, spread = float(rows), float(data.sum()), float(np.square(data).sum())
    shape = 2.0 + 0.5 * n

    def value(x: Any) -> Any:
        squares = spread - 2.0 * x[0] * total + n * x[0] * x[0]
        return -0.05 * x[0] ** 2 + (shape - 1.0) * np.log(x[1]) - x[1] * (1.0 + 0.5 * squares)

    def slope(x: Any) -> Any:
        squares = spread - 2.0 * x[0] * total + n * x[0] * x[0]
        return np.array([-0.1 * x[0] + x[1] * (total - n * x[0]), (shape - 1.0) / x[1] - 1.0 - 0.5 * squares])

    def draw_mean(x: Any, rng: Any) -> Any:
        precision = 0.1 + n * x[1]
        return normal(rng, x[1] * total / precision, precision**-0.5)

    def draw_precision(x: Any, rng: Any) -> Any:
        squares = spread - 2.0 * x[0] * total + n * x[0] * x[0]
        return gamma(rng, shape, 1.0 / (1.0 + 0.5 * squares))

    truth = _integrate(value, (-1.0, 3.0), (1e-6, 10.0))
    return Target(
        density=gs.LogDensity(value, slope, dim=2, names=["m", "t"], bounds=([-np.inf, 1e-9], [np.inf, np.inf])),
        truth=dict(zip(("m", "t"), truth, strict=True)),
        step=0.1 * min(sd for _, sd in truth) ** 2,
        gibbs=(
            gs.Conditionals({"m": draw_mean, "t": draw_precision}, {"m": gs.Interval(), "t": gs.Interval(0.0, np.inf)}),
            gs.kernels.ConditionalGibbs(),
        ),
    )


def _integrate(value: Callable[[Any], Any], *box: tuple[float, float]) -> list[tuple[float, float]]:
    """Return means and standard deviations of two coordinates, computed on a grid."""
    axes = [low + (np.arange(800) + 0.5) * (high - low) / 800 for low, high in box]
    places = np.stack(np.meshgrid(*axes, indexing="ij"))
    logs = value(places)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    found = []
    for place in places:
        mean = float((p * place).sum())
        found.append((mean, float(np.sqrt((p * (place - mean) ** 2).sum()))))
    return found


def make_targets(quick: bool) -> dict[str, Target]:
    """Return the targets; the quick version has fewer."""
    bent = Target(density=banana.target(), truth={name: banana.truth()[name] for name in ("x", "y")}, step=0.01)
    found = {
        "pair, r = 0.9": autoregressive(2, 0.9),
        "pair, r = 0.999": autoregressive(2, 0.999),
        "50 numbers, r = 0.9": autoregressive(50, 0.9),
        "banana": bent,
        "mean and precision": mean_and_precision(),
    }
    if quick:
        del found["pair, r = 0.999"]
    return found


Run = tuple[gs.Model, gs.kernels.Kernel]


class Method(NamedTuple):
    """A method: its requirements, its tuning, and a function that returns its run on a target, or None."""

    requires: str
    tuning: str
    find: Callable[[Target], Run | None]


METHODS = {
    "exact draws": Method("a transformation of simple draws", "none", lambda target: target.exact),
    "Gibbs": Method("draws from full conditionals", "none", lambda target: target.gibbs),
    "over-relaxed Gibbs": Method("normal conditionals", "relax (0.8)", lambda target: target.relaxed),
    "slice": Method("the log-density", "width, learned", lambda t: (t.density, gs.Slice())),
    "Metropolis": Method("the log-density", "covariance of moves, learned", lambda t: (t.density, gs.Metropolis())),
    "Metropolis, plain": Method(
        "the log-density", "sd of moves, 0.5", lambda t: (t.density, gs.Metropolis(scale=0.5, adapt=False))
    ),
    "one by one": Method(
        "the log-density", "sd of each site, learned", lambda t: (t.density, gs.Metropolis(one_by_one=True))
    ),
    "MALA": Method("log-density and gradient", "step, learned", lambda t: (t.density, gs.MALA())),
    "MALA, shaped": Method(
        "log-density and gradient",
        "step and covariance, learned",
        lambda t: (t.density, gs.MALA(preconditioner="adapt")),
    ),
    "ULA": Method("the gradient", "step, by hand; biased", lambda t: (t.density, gs.kernels.ULA(t.step))),
}


def draw_starts(target: Target, chains: int, rng: np.random.Generator) -> Floats:
    """Draw starts of chains near the mean."""
    means, sds = np.array(list(target.truth.values())).T
    found: Floats = means + 0.5 * sds * rng.standard_normal((chains, means.size))
    return found


def compare(
    targets: dict[str, Target], sweeps: int, rng: int, tick: Callable[[], None]
) -> dict[tuple[str, str], Efficiency]:
    """Measure every method that applies on every target."""
    found: dict[tuple[str, str], Efficiency] = {}
    for where, target in targets.items():
        for name, method in METHODS.items():
            run = method.find(target)
            if run is not None:
                starts = draw_starts(target, 4, np.random.default_rng([rng, 4]))
                found[where, name] = measure_efficiency(
                    *run, sweeps=sweeps, chains=4, rng=rng, start=starts, truth=target.truth
                )
            tick()
    return found


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Compare all methods on all targets."""
    sweeps = 10_000 if quick else 50_000
    targets = make_targets(quick)
    meter.expect(len(targets) * len(METHODS))
    found = compare(targets, sweeps, rng, meter.tick)
    arrays: dict[str, Array] = {}
    tables = []
    for where in targets:
        rows = Rows()
        for name in METHODS:
            e = found.get((where, name))
            if e is None:
                continue
            arrays[f"{where}: {name}"] = np.array(
                [e.per_second, e.per_draw, e.seconds, np.nan if e.off is None else e.off, e.rhat]
            )
            rows.add(
                name,
                f"{e.n_draws / e.seconds:,.0f}",
                f"{e.per_draw:.2g}" if e.converged else f"{e.per_draw:.2g} ?",
                f"{e.per_second:,.0f}" if e.converged else f"{e.per_second:,.0f} ?",
                None if e.off is None else f"{e.off:.1f}",
                f"{e.report['acceptance']:.2f}" if "acceptance" in e.report else None,
            )
        head = ("method", "draws / s", "effective / draw", "effective / s", "errors off", "accepted")
        tables.append(Table(f"{where}: 4 chains of {sweeps:,} sweeps, one thread", head, rows))
    return Findings(
        tables=[_summary(targets, found), *tables, _claims(found)],
        arrays=arrays,
        notes=[
            "Effective draws are the smallest number over means and standard deviations of all coordinates. A "
            "question mark means that chains disagree (R-hat above 1.01), and that the number is too large. Time "
            "includes the warmup, a fifth of the sweeps, in which scales and covariances are learned.",
            "Errors off: the largest deviation of a mean from the truth, in standard errors. Means do not "
            "show the bias of ULA, which affects the variances.",
            "A sweep of Gibbs, of slice sampling and of Metropolis one by one moves every coordinate once. "
            "Log-densities are compiled functions of a user, and are evaluated completely for every move.",
        ],
        settings={"sweeps": sweeps, "targets": list(targets), "methods": list(METHODS)},
    )


def _summary(targets: dict[str, Target], found: dict[tuple[str, str], Efficiency]) -> Table:
    """Return the table of the notes: requirements and tuning, and effectiveness relative to the best."""
    best = {
        where: max(e.per_second for (place, name), e in found.items() if place == where and name != "exact draws")
        for where in targets
    }
    rows = Rows()
    for name, method in METHODS.items():
        shares = []
        for where in targets:
            e = found.get((where, name))
            shares.append(None if e is None else f"{e.per_second / best[where]:.2g}{'' if e.converged else ' ?'}")
        rows.add(name, method.requires, method.tuning, *shares)
    return Table(
        "Effective draws per second, relative to the best chain on each target",
        ("method", "requires", "tuning", *targets),
        rows,
    )


def _claims(found: dict[tuple[str, str], Efficiency]) -> Table:
    """Compare the claims of the source with the findings."""

    def span(name: str) -> tuple[float, float]:
        shares = [e.per_draw for (_, method), e in found.items() if method == name]
        return min(shares), max(shares)

    def gain(where: str) -> float:
        walk = found[where, "Metropolis, plain"].per_second
        return found[where, "Gibbs"].per_second / walk if walk else np.inf

    def settled(name: str) -> bool:
        return all(e.converged for (_, method), e in found.items() if method == name)

    exact = [
        e.per_second / max(o.per_second for (place, n), o in found.items() if place == where and n != name)
        for (where, name), e in found.items()
        if name == "exact draws"
    ]
    plain, learned, gibbs = span("Metropolis, plain"), span("Metropolis"), span("Gibbs")
    many = "50 numbers, r = 0.9"
    small, large = gain("pair, r = 0.9"), gain(many)
    wrong = [e.off for e in found.values() if e.exact and e.converged and e.off is not None]
    return compare_claims(
        Claim(
            "transformations are excellent where they exist",
            f"{min(exact):.2g} to {max(exact):.2g} times the effective draws per second of the best chain",
            True if min(exact) > 1.0 else False if max(exact) < 1.0 else None,
        ),
        Claim(
            "random walks are terrible in the worst case, fair in the best",
            f"effective draws per draw from {plain[0]:.2g} to {plain[1]:.2g}; with a learned covariance "
            f"{learned[0]:.2g} to {learned[1]:.2g}",
            True if plain[0] < 0.01 else False if settled("Metropolis, plain") else None,
        ),
        Claim(
            "Gibbs sampling is fair to good",
            f"effective draws per draw from {gibbs[0]:.2g} to {gibbs[1]:.2g}",
            False if gibbs[0] <= 0.02 else True if settled("Gibbs") else None,
        ),
        Claim(
            "with many variables random walks are unlikely to be useful",
            f"Gibbs is {small:.2g} times as effective as a plain walk for 2 numbers, {large:.2g} times "
            "for 50 (more, where the walk has not converged)",
            # the estimated efficiency of a walk that has not converged is too large
            True if large > small else False if found[many, "Metropolis, plain"].converged else None,
        ),
        Claim(
            "all exact methods have the target as their law",
            f"means at most {max(wrong):.1f} standard errors off, of {len(wrong)} runs",
            max(wrong) < 6.0,
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw effective draws per second of every method on every target."""
    targets = findings.settings["targets"]
    panels = figure.subplots(1, len(targets), sharey=True)
    names = list(METHODS)[::-1]
    for where, axes in zip(targets, panels, strict=True):
        for k, name in enumerate(names):
            numbers = findings.arrays.get(f"{where}: {name}")
            if numbers is None:
                continue
            sure = numbers[4] <= 1.01
            color = INK if name == "exact draws" else COLORS[0] if name != "ULA" else COLORS[5]
            axes.plot(numbers[0], k, "o", ms=6, color=color, mfc=color if sure else "white")
        axes.set_xscale("log")
        axes.set_yticks(range(len(names)), names)
        axes.grid(axis="x", lw=0.4)
        tidy(axes, where, xlabel="effective draws / s")
    panels[0].set_xlabel("effective draws / s (open: chains disagree)", fontsize=8, color=INK)


EXPERIMENT = Experiment(f"{GIBBS_NOTES} (page 4)", run, draw, (14.0, 4.0))
