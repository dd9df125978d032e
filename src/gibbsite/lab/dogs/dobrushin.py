"""Models, scans and curves that the experiments of the DoGS paper share."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints, Ints16
from gibbsite._numba.jit import compiled_loop
from gibbsite._numba.random.generators import load, store, stream
from gibbsite.errors import ModelError
from gibbsite.kernels.base import Span, Team, alone, visit
from gibbsite.lab.drawing import COLORS, FAINT, Axes
from gibbsite.sampling.sweep import State, start_chain
from gibbsite.scans.base import period, refresh

_THREADS, _PARTS = 2, 8  # each part has its own random stream, so that results do not depend on threads


@compiled_loop
def _start_over(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    state: State,
    team: Team,
    start: Array,
    visited: Ints,
    lengths: Ints,
    sites: Ints,
    out: Ints16,
) -> None:
    """Run chains one after another from ``start``; write their states after each length to ``out``."""
    x, order, memory = state.x, state.order, state.memory
    rng, cycle = load(state.rng), np.uintp(period(schedule))
    for c in range(out.shape[1]):
        for i in visited:
            x[i] = start[i]
        where, done = np.uintp(0), 0
        for k in range(lengths.size):
            left = np.uintp(lengths[k] - done)
            while left > 0:
                if where == 0:
                    rng = refresh(schedule, order, rng)
                stop = min(where + left, cycle)
                span = Span(order, where, stop, np.int64(0), team)
                rng = visit(parameters, arrays, schedule, memory, x, span, rng, state.cond, False)
                left -= stop - where
                where = stop if stop < cycle else np.uintp(0)
            done = lengths[k]
            for s in range(sites.size):
                out[k, c, s] = x[sites[s]]
    store(state.rng, rng)


def run_short(
    model: gs.FactorGraph, scan: gs.scans.Scan, lengths: Ints, sites: Ints, *, chains: int, start: Array, rng: int
) -> Ints16:
    """Return the states of some sites after each number of steps, in many independent chains of Gibbs sampling.

    ``lengths`` are increasing numbers of steps, and ``start`` is the start of all chains. The returned state codes have
    the shape (lengths, chains, sites). Only sites that the scan visits are reset between chains.
    """
    graph, kernel = gs.graphs.compile_graph(model), gs.Gibbs()
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, model)
    moving = np.ones(graph.n_sites, bool)
    moving[scan.left_out(graph, model)] = False
    visited = np.flatnonzero(moving)
    x0 = np.asarray(start, graph.state_dtype)
    out = np.empty((lengths.size, chains, sites.size), np.int16)
    bounds = np.linspace(0, chains, _PARTS + 1).round().astype(int)

    def make(part: int) -> None:
        state = start_chain(graph, kernel, scan, x0, stream(rng, part), False)
        mine = out[:, bounds[part] : bounds[part + 1]]
        _start_over(parameters, graph.arrays, schedule, state, alone(), x0, visited, lengths, sites, mine)

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(make, range(_PARTS)))
    return out


PASSES = 1000  # largest number of passes of iterated DoGS, which stops earlier when there is no gain
NOTES = (
    "The bias is E[X_1] from 1 everywhere, measured as the probability that chains from 1 and from -1 with "
    "the same random numbers still differ; the total variation of X_1 is half of it.",
    "In the first sweep, the systematic scan visits the corner in its last step.",
)
LOOKS = {"uniform": FAINT, "systematic": COLORS[0], "DoGS": COLORS[5], "iterated DoGS": COLORS[1]}


def draw_parameters(side: int, rng: np.random.Generator, *, fields: bool = True) -> tuple[Floats, Floats]:
    """Draw the parameters of the paper's section 5.1: couplings from U(0, 0.25), and fields 0 or 1, or none."""
    couplings = rng.uniform(0.0, 0.25, (2, side, side))
    field = rng.integers(0, 2, (side, side)).astype(np.float64)
    return couplings, field if fields else np.zeros_like(field)


def random_grid(side: int, rng: np.random.Generator, *, fields: bool = True) -> gs.FactorGraph:
    """Draw a model of the paper's section 5.1."""
    couplings, field = draw_parameters(side, rng, fields=fields)
    return gs.ising_grid((side, side), coupling=couplings, field=field)


def paper_order(sites: int) -> gs.Systematic:
    """Return the systematic scan of the paper, q_t = e_((t mod p) + 1) for t = 1, 2, ...

    It starts at the second site and ends at the first.
    """
    return gs.Systematic(np.roll(np.arange(sites, dtype=np.int32), -1))


def paper_influence(model: gs.FactorGraph) -> gs.influence.Influence:
    """Return the bounds of theorem 11, as in the paper; the library's default is the influence itself if possible."""
    return gs.influence.bound_influence(model, method="bound")


def guarantee(
    model: gs.FactorGraph, lengths: Ints, influence: gs.influence.Influence, target: Any = None
) -> tuple[dict[str, Floats], list[gs.influence.DogsScan]]:
    """Bound the bias of uniform and systematic scans, DoGS and iterated DoGS after each number of steps.

    DoGS begins with the systematic scan and optimises a scan for each length; the scans of DoGS are returned, too.
    """
    drawn, order = gs.RandomScan(), paper_order(model.n_sites)

    def improve(passes: int) -> list[gs.influence.DogsScan]:
        common: dict[str, Any] = {"target": target, "initial": order, "influence": influence}
        return [gs.dogs(model, steps=int(t), iterations=passes, **common) for t in lengths]

    uniform = [gs.certify(model, scan=drawn, steps=int(t), target=target, influence=influence) for t in lengths]
    once, often = improve(1), improve(PASSES)
    curves = {
        "uniform": np.array([found.variation for found in uniform]),
        "systematic": np.array([scan.input_variation for scan in once]),
        "DoGS": np.array([scan.variation for scan in once]),
        "iterated DoGS": np.array([scan.variation for scan in often]),
    }
    return curves, once


def measure_bias(model: gs.FactorGraph, scan: gs.scans.Scan, lengths: Ints, *, chains: int, rng: int) -> Floats:
    """Return E[x] of the corner after each number of steps from 1 everywhere, in a model whose E[x] is 0.

    Two chains, one from 1 and one from -1 everywhere, use the same random numbers. If couplings are not
    negative, the heat bath keeps the first above the second, and without fields their means are opposite. So
    the bias is the probability that the two differ. The estimate from counts has a standard error of about
    sqrt(bias / chains), which is far below that of a mean of signs if the bias is small.
    """
    high, low = (
        run_short(
            model, scan, lengths, np.array([0]), chains=chains, start=np.full(model.n_sites, code, np.int8), rng=rng
        )
        for code in (1, 0)
    )
    if (high < low).any():
        raise ModelError("The chains crossed: couplings must not be negative, and the scan must be fixed.")
    bias: Floats = (high != low).mean(axis=(1, 2))
    return bias


def compare_gains(bounds: tuple[float, float], biases: tuple[float, float], chains: int) -> tuple[str, str]:
    """Return the ratios of the bounds and biases of two scans as texts; a bias of zero counts as below 3 / chains."""
    gain = f"{bounds[0] / bounds[1]:.3g}"
    if biases[1] > 0:
        return gain, f"{biases[0] / biases[1]:.3g}"
    return gain, f"> {biases[0] * chains / 3:.3g}" if biases[0] > 0 else "-"


def draw_bias(axes: Axes, steps: Ints, biases: Mapping[str, Floats], chains: int) -> None:
    """Draw the nonzero biases of scans, with two standard errors."""
    for scan, found in biases.items():
        seen = found > 0
        error = 2.0 * np.sqrt(found * (1.0 - found) / chains)[seen]
        low = np.minimum(error, 0.9 * found[seen])  # a logarithmic axis has no zero
        look: dict[str, Any] = {"color": LOOKS[scan], "marker": "o", "ms": 3, "lw": 1.2, "capsize": 2}
        axes.errorbar(steps[seen], found[seen], (low, error), label=scan, **look)
    axes.loglog()
    axes.legend(fontsize=7, frameon=False, loc="lower left")
