"""Asynchronous (Jacobi) herding: all sites are updated at once, from the states of the sweep before.

The paper recommends it for many cores. If no site waits for its neighbours, a sweep is one parallel phase instead of as
many as there are colors. But the limit is another distribution. If all couplings are between two colors of sites, the
states of the colors at successive sweeps form two separate chains: marginals are right, but sites of different colors
become independent of each other. With odd cycles, marginals are wrong, too. Errors of herded runs are shown beside
those of the limit of random Jacobi updates, which is computed exactly. Herded runs need not have this limit, because
choices that are made at the same time are not independent of each other; no theorem is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints, Words64
from gibbsite._common.wording import Text, part
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.color import color_sites, markov_graph
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import Kernel, KernelWarning, step
from gibbsite.kernels.herded.herding import HerdedMemory, HerdedParameters
from gibbsite.lab.chains import envelope, follow, space_lengths
from gibbsite.lab.drawing import COLORS, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.scans.base import Scan


class JacobiParameters(NamedTuple):
    """Parameters for compiled code."""

    herded: HerdedParameters


class JacobiMemory(NamedTuple):
    """The weights of herding, the states of the sweep before, and the number of visits in this sweep."""

    herded: HerdedMemory
    before: Array
    visits: Ints


@dataclass(frozen=True)
class JacobiHerdedGibbs(Kernel):
    """Herded Gibbs sampling whose conditionals and keys are those of the states of the sweep before."""

    herded: gs.HerdedGibbs = field(default_factory=gs.HerdedGibbs)

    exact: ClassVar[bool] = False
    reversible: ClassVar[bool] = False
    error_source: ClassVar[str] = "none"

    def parameters(self, graph: Graph) -> JacobiParameters:
        """Return the parameters of herding."""
        return JacobiParameters(self.herded.parameters(graph))

    def memory(self, graph: Graph, stream: Words64) -> JacobiMemory:
        """Allocate weights, and space for the states of the sweep before."""
        before = np.zeros(graph.n_sites, graph.state_dtype)
        return JacobiMemory(self.herded.memory(graph, stream), before, np.zeros(1, np.int64))

    def warnings(self, model: Any, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Refuse scans that do not visit every site once; say what the limit is."""
        if not scan.once:
            raise IncompatibleError(
                f"Jacobi updates need a scan that visits every site once per sweep, such as {part('Systematic')}."
            )
        if not markov_graph(graph)[1].size:
            return ()
        if int(color_sites(graph).max()) > 1:
            text = "with odd cycles of couplings, marginals and joint probabilities are wrong even in long runs"
        else:
            text = "sites of different colors become independent, so joint probabilities are wrong even in long runs"
        return (
            KernelWarning(
                Text(
                    f"Jacobi updates read the states of the sweep before: {text}. Use {part('Chromatic')} with "
                    f"{part('HerdedGibbs')}."
                ),
                grave=True,
            ),
        )


@implement(step, JacobiParameters)
def _step_jacobi(
    params: Any, arrays: Any, memory: JacobiMemory, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Set a site by herding, given the states of the sweep before."""
    before, visits = memory.before, memory.visits
    if visits[0] == 0:
        for k in range(x.size):
            before[k] = x[k]
    was = before[i]
    rng = step(params.herded, arrays, memory.herded, before, i, rng, cond, keep)
    x[i] = before[i]
    before[i] = was
    visits[0] = (visits[0] + 1) % x.size
    return rng


def make_models(rng: int) -> dict[str, gs.FactorGraph]:
    """Return small models: without odd cycles, with one, and with many."""
    stream = np.random.default_rng(rng)
    dense = np.triu(stream.normal(size=(7, 7)) * 0.4, 1)
    return {
        "lattice 3 x 3": gs.ising_grid((3, 3), coupling=0.4, field=0.2),
        "cycle of 5": gs.ising_grid((5,), coupling=0.6, field=0.2, periodic=True),
        "complete graph of 7": gs.ising(dense + dense.T, 0.3 * stream.normal(size=7)),
    }


def jacobi_limit(model: gs.FactorGraph) -> Floats:
    """Return the limit of random Jacobi updates: the probabilities of all states after very many sweeps."""
    exact = gs.exact.enumerate(model)
    law, n = exact.law, model.n_sites
    given = [law / law.sum(axis=i, keepdims=True) for i in range(n)]
    states = exact.states
    up = np.stack([np.take(g, 1, axis=i).ravel()[_others(states, i)] for i, g in enumerate(given)], axis=1)
    matrix = np.ones((len(states), len(states)))
    for i in range(n):
        matrix *= np.where(states[None, :, i] == 1, up[:, None, i], 1.0 - up[:, None, i])
    found = np.full(len(states), 1.0 / len(states))
    for _ in range(12):
        matrix = matrix @ matrix
    limit: Floats = found @ matrix
    return limit


def _others(states: Ints, i: int) -> Ints:
    """Return the number of the state of all sites but one, the last site fastest."""
    rest = np.delete(states, i, axis=1)
    return np.asarray(rest @ 2 ** np.arange(rest.shape[1])[::-1])


def errors_of(pairs: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """Return the largest errors of marginals and of pairs of neighbours; tables (..., pairs, 2, 2)."""
    gap = pairs - truth
    first, second = (np.abs(gap.sum(axis=axis)[..., 1]).max(axis=-1) for axis in (-1, -2))
    return np.maximum(first, second), np.abs(gap).max(axis=(-1, -2, -3))


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Follow chromatic and Jacobi herding on each model."""
    sweeps = space_lengths(100_000 if quick else 10_000_000)
    models = make_models(rng)
    meter.expect(2 * len(models))
    arrays: dict[str, Any] = {"sweeps": sweeps}
    rows = Rows()
    wrong: dict[str, tuple[float, float]] = {}
    for name, model in models.items():
        graph = gs.graphs.compile_graph(model)
        groups: Any = model.groups
        scopes = sorted({tuple(sorted(s)) for group in groups for s in group.scopes.tolist() if len(s) == 2})
        exact = gs.solve_exact(model)
        truth = np.array([exact.joint(*scope) for scope in scopes])
        record = gs.recorders.Joint([tuple(model.sites[k] for k in scope) for scope in scopes])
        law = jacobi_limit(model).reshape((2,) * model.n_sites)
        axes = [tuple(k for k in range(model.n_sites) if k not in scope) for scope in scopes]
        limit = errors_of(np.array([law.sum(axis=axis) for axis in axes]), truth)
        colors = int(color_sites(graph).max()) + 1
        for label, kernel, scan in (
            ("chromatic", gs.HerdedGibbs(), gs.Chromatic()),
            ("Jacobi", JacobiHerdedGibbs(), gs.Systematic()),
        ):
            found = follow(model, kernel, sweeps, record, rng=rng, scan=scan)[0].reshape(sweeps.size, len(scopes), 2, 2)
            marginal, pair = errors_of(found, truth)
            arrays[f"{name}: {label}, marginals"] = envelope(marginal)
            arrays[f"{name}: {label}, pairs"] = envelope(pair)
            many = colors if label == "chromatic" else 1
            beside = (float(limit[0]), float(limit[1])) if label == "Jacobi" else (0.0, 0.0)
            rows.add(name, label, many, float(marginal[-1]), float(pair[-1]), *beside)
            if label == "Jacobi":
                wrong[name] = float(marginal[-1]), float(pair[-1])
            meter.tick()
    columns = ("model", "herding", "phases a sweep", "marginals", "pairs", "limit: marginals", "limit: pairs")
    lattice, others = wrong["lattice 3 x 3"], [wrong[name][0] for name in list(models)[1:]]
    return Findings(
        tables=[
            Table(f"Largest errors of probabilities after {sweeps[-1]:,} sweeps", columns, rows),
            compare_claims(
                Claim(
                    "with many cores the asynchronous Jacobi version is recommended",
                    f"marginals are right to {lattice[0]:.1g} without odd cycles, and wrong by {min(others):.2g} or "
                    f"more with them; pairs are wrong by {lattice[1]:.2g} even without",
                    max(lattice[0], lattice[1], *others) < 0.01,
                )
            ),
        ],
        arrays=arrays,
        notes=[
            "Limits are those of random Jacobi updates, from their transition matrix; that of chromatic updates is the "
            "model.",
            *(f"{name}: {_warning(model)}" for name, model in models.items()),
        ],
        settings={"sweeps": int(sweeps[-1])},
    )


def _warning(model: gs.FactorGraph) -> str:
    return JacobiHerdedGibbs().warnings(model, gs.graphs.compile_graph(model), gs.Systematic())[0].text


def draw(findings: Findings, figure: Figure) -> None:
    """Draw errors of marginals and pairs against sweeps, a panel for each model."""
    sweeps = findings.arrays["sweeps"]
    names = dict.fromkeys(key.partition(": ")[0] for key in findings.arrays if ": " in key)
    for panel, name in zip(figure.subplots(1, len(names)), names, strict=True):
        for label, color in (("chromatic", COLORS[0]), ("Jacobi", COLORS[5])):
            for what, line in (("marginals", "-"), ("pairs", "--")):
                errors = findings.arrays[f"{name}: {label}, {what}"]
                panel.loglog(sweeps, errors, line, color=color, label=f"{label}, {what}")
        tidy(panel, name, "sweeps", "largest error of a probability")
    figure.axes[0].legend(frameon=False, fontsize=8)


EXPERIMENT = Experiment(f"{HERDED}, section 5", run, draw, (11.0, 3.8))
