"""The cost of an update as a function of the number of states, the number of factors, and their energy.

Complete graphs whose factors are all of one form: coupling * |a - b| / (D - 1) for states, coupling * x y for
numbers in [0, 1], so that L = Delta * coupling and Psi = (Delta + 1) L / 2. One of D, Delta and L is varied
at a time, with the minibatches of the theorems: L^2 at a site, Psi^2 for whole energies. Exponents are
slopes in logarithms over the three largest values; if costs are sums, they lie between the exponents of the terms.

Table 1 of the paper counts evaluations of factors, D for each factor that is drawn. Here the drawn factors, with
repetitions, and processor time are measured. If sites are numbers, a factor counts at every point at which it is
evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats
from gibbsite.lab.chains import fit_slope
from gibbsite.lab.drawing import COLORS, INK, Figure, tidy
from gibbsite.lab.experiment import POISSON, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.occupancy import watch

BASE: dict[str, Any] = {"D": 4, "Delta": 32, "L": 4.0}
VALUES: dict[str, tuple[Any, ...]] = {"D": (4, 8, 16, 32), "Delta": (16, 32, 64, 128), "L": (2.0, 4.0, 8.0, 16.0)}
_BUDGETS = {"quick": 1e5, "full": 3e6}  # approximate number of factors that a method draws, for each setting


class Setting(NamedTuple):
    """States, factors of a site, and their energy."""

    D: int
    Delta: int
    L: float

    @property
    def total(self) -> float:
        """Psi, the energy of all factors."""
        return (self.Delta + 1) * self.L / 2.0


class Method(NamedTuple):
    """A row of Table 1: its costs, with exponents of D, Delta and L; the kind of factors; colour and dashes."""

    paper: str
    exponents: tuple[float | None, float, float]
    factors: str
    look: tuple[str, str]


METHODS = {
    "Gibbs": Method("D Delta", (1, 1, 0), "tables", (INK, "--")),
    "MIN-Gibbs": Method("D Psi^2", (1, 2, 2), "tables", (COLORS[3], "-")),
    "MGPMH": Method("D L^2 + Delta", (1, 1, 2), "tables", (COLORS[2], "-")),
    "DoubleMIN": Method("D L^2 + Psi^2", (1, 2, 2), "tables", (COLORS[0], "-")),
    "Poisson-Gibbs": Method("D L^2", (1, 0, 2), "tables", (COLORS[5], "-")),
    "Poisson-Gibbs, Potts": Method("D L^2", (1, 0, 2), "agreements", (COLORS[1], "-")),
    "Gibbs-rejection": Method("N Delta", (None, 1, 0), "numbers", (COLORS[2], ":")),
    "PGITS": Method("L^3", (None, 0, 3), "numbers", (COLORS[0], ":")),
    "PGDA": Method("L^2 log L", (None, 0, 2), "numbers", (COLORS[5], ":")),
}


def make_kernel(name: str, at: Setting) -> gs.kernels.Kernel:
    """Return the kernel of a method, with the minibatches of the theorems."""
    local, whole = at.L**2, at.total**2
    kernels: dict[str, gs.kernels.Kernel] = {
        "Gibbs": gs.Gibbs(),
        "MIN-Gibbs": gs.kernels.MinGibbs(whole),
        "MGPMH": gs.kernels.MGPMH(local),
        "DoubleMIN": gs.kernels.DoubleMinGibbs(local, whole),
        "Poisson-Gibbs": gs.PoissonGibbs(local),
        "Poisson-Gibbs, Potts": gs.PoissonGibbs(local),
        "Gibbs-rejection": gs.kernels.ContinuousGibbs("rejection"),
        "PGITS": gs.kernels.ContinuousGibbs("its", minibatch=local),
        "PGDA": gs.kernels.ContinuousGibbs("double", minibatch=local),
    }
    return kernels[name]


def make_model(factors: str, at: Setting) -> gs.Model:
    """Return a complete graph with factors of one kind.

    Examples
    --------
    >>> from gibbsite.kernels.minibatch.factors import local_energies
    >>> for factors in ("tables", "agreements", "numbers"):
    ...     seen = local_energies(gs.graphs.compile_graph(make_model(factors, Setting(3, 7, 2.0))))
    ...     print(seen.degree, round(seen.largest, 9), round(seen.total, 9))
    7 2.0 8.0
    7 2.0 8.0
    7 2.0 8.0
    """
    n, coupling = at.Delta + 1, at.L / at.Delta
    if factors == "numbers":
        return gs.models.continuous_spins(coupling * (1.0 - np.eye(n)))
    if factors == "agreements":
        return gs.potts(coupling * (1.0 - np.eye(n)), at.D)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    states = np.arange(at.D)
    table = coupling * np.abs(states[:, None] - states) / (at.D - 1)
    return gs.FactorGraph(n, groups=[gs.factors.TableFactors(pairs, table[None])], states=at.D)


def predict(name: str, at: Setting) -> float:
    """Return the approximate number of factors of an update, to choose the number of updates."""
    local, whole = at.L**2 + at.L, at.total**2
    found = {
        "Gibbs": at.Delta,
        "MIN-Gibbs": at.D * whole,
        "MGPMH": local + at.Delta,
        "DoubleMIN": local + whole,
        "Gibbs-rejection": at.Delta * (1 + at.L),
    }
    return float(found.get(name, local))


def measure(name: str, at: Setting, budget: float, rng: int) -> tuple[float, float]:
    """Return the mean number of factors of an update, and its seconds."""
    method = METHODS[name]
    model, kernel = make_model(method.factors, at), make_kernel(name, at)
    updates = int(np.clip(budget / predict(name, at), 10, 100_000))
    # numbers start at 1, which is typical of the target; rejection would not move away from 0
    where = {"cells": 1, "start": 1.0} if method.factors == "numbers" else {"cells": at.D}
    # the first updates are not timed, because energies are estimated at the start
    lengths = np.array([updates // 10 + 1, updates])
    seen = watch(model, kernel, lengths, lambda counts: 0.0, rng=rng, **cast("dict[str, Any]", where))
    seconds = np.diff(seen.seconds[0])[0] / (updates - updates // 10 - 1)
    found = seen.report
    looks = found.get("factors", at.Delta)
    if method.factors == "numbers":  # the number of evaluations if each factor were evaluated as often as it is drawn
        looks = found["evaluations"] * found.get("minibatch", looks) / looks
    return float(looks), float(seconds)


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Measure all methods for all values of D, Delta and L."""
    budget = _BUDGETS["quick" if quick else "full"]
    axes = {
        (name, axis): values
        for name, method in METHODS.items()
        for (axis, values), expected in zip(VALUES.items(), method.exponents, strict=True)
        if expected is not None
    }
    meter.expect(len(axes))
    arrays: dict[str, Array] = {axis: np.array(values) for axis, values in VALUES.items()}
    for (name, axis), values in axes.items():
        found = [measure(name, Setting(**(BASE | {axis: value})), budget, rng) for value in values]
        arrays[f"{name}: factors against {axis}"], arrays[f"{name}: seconds against {axis}"] = np.array(found).T
        meter.tick()
    slopes = {
        (name, what): [_slope(arrays, name, what, axis) for axis in VALUES]
        for name in METHODS
        for what in ("factors", "seconds")
    }
    return Findings(
        tables=[_exponents(slopes), _each(arrays), _claims(slopes, arrays)],
        arrays=arrays,
        notes=[
            "Seconds are processor time and depend on the machine; factors depend on the seed alone.",
            "If sites have states, an update evaluates a factor for all of them by one pass over a row "
            "of its table, so time hardly grows with the number of states. Poisson-Gibbs on Potts models counts "
            "agreements instead and evaluates no tables.",
            "Other values are " + ", ".join(f"{axis} = {value:g}" for axis, value in BASE.items()) + ".",
        ],
        settings={"base": BASE, "values": VALUES, "factors looked at": budget},
    )


def _slope(arrays: Mapping[str, Array], name: str, what: str, axis: str) -> float | None:
    found: Floats | None = arrays.get(f"{name}: {what} against {axis}")
    return None if found is None else fit_slope(arrays[axis][-3:], found[-3:])


def _exponents(slopes: Mapping[tuple[str, str], list[float | None]]) -> Table:
    rows = Rows()
    for name, method in METHODS.items():
        cells: list[str | None] = []
        for what in ("factors", "seconds"):
            cells += [None if slope is None else f"{slope:.2f}" for slope in slopes[name, what]]
        rows.add(name, f"O({method.paper})", *cells)
    head = ("method", "paper", *(f"{what}: {axis}" for what in ("factors", "time") for axis in VALUES))
    return Table("Exponents of D, Delta and L", head, rows)


def _each(arrays: Mapping[str, Array]) -> Table:
    rows = Rows()
    for name in METHODS:
        cells: list[str | None] = []
        for axis in VALUES:
            if f"{name}: factors against {axis}" not in arrays:
                cells += [None, None]
                continue
            found, seconds = (arrays[f"{name}: {what} against {axis}"] for what in ("factors", "seconds"))
            cells += [f"{found[k]:.3g} / {1e6 * seconds[k]:.3g} us" for k in (0, -1)]
        rows.add(name, *cells)
    head = ("method", *(f"{axis} = {values[k]:g}" for axis, values in VALUES.items() for k in (0, -1)))
    return Table("Factors that an update draws, and its time", head, rows)


def _claims(slopes: Mapping[tuple[str, str], list[float | None]], arrays: Mapping[str, Array]) -> Table:
    """Compare the claims of the source with the findings."""
    by_degree = {name: slopes[name, "factors"][1] or 0.0 for name in METHODS}
    by_energy = {name: slopes[name, "factors"][2] or 0.0 for name in METHODS}
    time = slopes["Poisson-Gibbs", "seconds"][1] or 0.0
    free = ("Poisson-Gibbs", "Poisson-Gibbs, Potts", "PGITS", "PGDA")
    worst = max(abs(by_degree[name]) for name in free)
    whole = min(by_degree[name] for name in ("MIN-Gibbs", "DoubleMIN"))
    low, high = sorted(by_energy[name] for name in free[:2])
    last = {name: arrays[f"{name}: factors against L"][-1] for name in ("PGITS", "PGDA")}
    return compare_claims(
        Claim(
            "Poisson-Gibbs does not depend on Delta",
            f"factors grow like Delta^{worst:.2f} at most, time like Delta^{time:.2f}",
            worst < 0.1,
        ),
        Claim("plain Gibbs takes Delta factors", f"Delta^{by_degree['Gibbs']:.2f}", abs(by_degree["Gibbs"] - 1) < 0.05),
        Claim(
            "MIN-Gibbs and DoubleMIN take Psi^2",
            f"Delta^{whole:.2f} or more, with Psi in proportion to Delta",
            whole > 1.7,
        ),
        Claim("Poisson-Gibbs takes L^2", f"L^{low:.2f} to L^{high:.2f}, from L^2 + L", 1.7 < low <= high < 2.1),
        Claim("MGPMH takes Delta beside that", f"Delta^{by_degree['MGPMH']:.2f}", 0.3 < by_degree["MGPMH"] < 1.05),
        Claim(
            "PGITS takes L^3, PGDA L^2 log L",
            f"L^{by_energy['PGITS']:.2f} and L^{by_energy['PGDA']:.2f}, up to {last['PGITS']:.0f} and "
            f"{last['PGDA']:.0f} for L = {arrays['L'][-1]:g}",
            by_energy["PGDA"] < by_energy["PGITS"],
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw factors and time of an update against D, Delta and L."""
    arrays = findings.arrays
    panels = figure.subplots(2, len(VALUES), sharey="row")
    for column, axis in enumerate(VALUES):
        for row, what in enumerate(("factors", "seconds")):
            axes = panels[row, column]
            for name, method in METHODS.items():
                found = arrays.get(f"{name}: {what} against {axis}")
                color, dashes = method.look
                if found is not None:
                    axes.plot(arrays[axis], found, "o", ls=dashes, ms=3, color=color, lw=1.3, label=name)
            axes.loglog(base=2)
            axes.set_yscale("log", base=10)
            axes.set_xticks(arrays[axis], [f"{value:g}" for value in arrays[axis]])
            others = ", ".join(f"{a} = {value:g}" for a, value in BASE.items() if a != axis)
            tidy(axes, f"{what} of an update ({others})", axis)
    panels[0, 0].set_ylabel("factors drawn", fontsize=8, color=INK)
    panels[1, 0].set_ylabel("seconds", fontsize=8, color=INK)
    panels[0, 1].legend(fontsize=6.5, frameon=False, loc="upper left", ncols=2)


EXPERIMENT = Experiment(f"{POISSON}; Table 1", run, draw, (13.0, 7.0))
